"""Commands as whole processes: each beside starting Python alone, a thousand job files, and docs/start.md in a clone.

The rehearsal of docs/start.md needs the engine and its gcp plugin on PATH, and is left out without.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.engine import TOOLS
from benchmarks.measure import BIN, ORGANISATION, PROGRAM, ROOT, Run, cells, run, table

RUNS = 5
OF = ("--root", str(ORGANISATION))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "training-platform --help": [PROGRAM, "--help"],
    "training-platform check": [PROGRAM, "check", *OF],
}


def measure() -> None:
    """Run every command in turn, several times, and print a table."""
    runs: dict[str, list[Run]] = {name: [] for name in COMMANDS}
    for command in COMMANDS.values():
        run(command)  # a warm-up: byte code and the file cache
    for _ in range(RUNS):
        for name, command in COMMANDS.items():
            runs[name].append(run(command))
    base = statistics.median(each.wall for each in runs["python -c pass"])
    table(
        f"The command line, {RUNS} runs each",
        ("command", "wall s, median (min to max)", "CPU s", "peak MiB", "times `python -c pass`"),
        [
            (f"`{name}`", *cells(measured), f"{statistics.median(each.wall for each in measured) / base:.0f}")
            for name, measured in runs.items()
        ],
    )


JOB_RUNS = 5
JOB_FILES = 1_000
JOBS = (
    "gke: {cluster: us-central1, flavor: h100-reservation, nodes: 2}",
    "gke: {cluster: us-west4, flavor: tpu-v5e-4x8-reservation, slices: 2}",
    "vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start}",
    (
        "vertex: {region: us-central1, machine_type: a2-highgpu-1g, persistent_resource: tuning, "
        "boot_disk: {type: pd-ssd, size_gb: 200}}"
    ),
)
LIMITS = {"check": "2.0 s of wall clock", "render": "0.3 s of CPU", "start": "0.5 s of wall clock"}


def measure_jobs() -> None:
    """Check, render and start, several times each, and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        root = write_jobs(Path(folder), JOB_FILES)
        rows = [
            _row(f"job check, {JOB_FILES:,} files", "check", ["job", "check", "--root", str(root)]),
            *(
                _row(f"job render, {target}", "render", ["job", "render", str(file), "--root", str(root)])
                for target, file in zip(("GKE", "Vertex AI"), _of_both(root), strict=True)
            ),
            *(
                _row(f"job {' '.join(words)}", "start", ["job", *words])
                for words in (["--help"], ["submit", "--help"], ["logs", "--help"])
            ),
            _row("job check, 1 file", "start", ["job", "check", str(_of_both(root)[0]), "--root", str(root)]),
            _row("job cost", "start", ["job", "cost", str(_of_both(root)[0]), "--root", str(root)]),
        ]
    table(
        f"Jobs, {JOB_RUNS} runs each",
        ("command", "wall s, median (min to max)", "CPU s", "peak MiB", "limit"),
        rows,
    )


def write_jobs(folder: Path, files: int) -> Path:
    """Write the tests' organisation with so many job files, every fourth alike; returns its root."""
    root = folder / "organisation"
    shutil.copytree(ORGANISATION, root, ignore=shutil.ignore_patterns("inventories"))
    for number in range(files - len(list(root.glob("jobs/*/*.yaml")))):
        head = f"environment: prod\nimage: registry.example.com/train:{number}\ncommand: [python, -m, train]\n"
        (root / "jobs" / "vision" / f"job-{number:04}.yaml").write_text(f"{head}{JOBS[number % len(JOBS)]}\n")
    return root


def _of_both(root: Path) -> tuple[Path, Path]:
    """Return a job for GKE, and one for Vertex AI."""
    return root / "jobs" / "vision" / "job-0000.yaml", root / "jobs" / "vision" / "job-0002.yaml"


def _row(name: str, limit: str, words: list[str]) -> tuple[object, ...]:
    run([PROGRAM, *words])  # a warm-up: byte code, and the file cache
    return f"`{name}`", *cells([run([PROGRAM, *words]) for _ in range(JOB_RUNS)]), LIMITS[limit]


FILES: Final = "Your own files"
REHEARSAL: Final = "A rehearsal on your machine"
CLOUD: Final = "Google Cloud"
_SAMPLE = re.compile(r"(stacks|jobs)/.*\.yaml$")
_SECTION = re.compile(r"^## ([^\n]+)$\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands() -> dict[str, list[str]]:
    """Return the commands of the page by section, in their order."""
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    return {
        title: [line for block in _BLOCK.findall(text) for line in block.replace("\\\n", "").splitlines()]
        for title, text in _SECTION.findall(page)
    }


def clone(folder: Path) -> Path:
    """Lay the tracked files out as they are now, in a repository of their own with this virtualenv.

    The organisation of the tests is there for the samples, which whoever runs this may have deleted.
    """
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file() and not _SAMPLE.match(name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for part in ("stacks", "jobs"):
        shutil.copytree(ORGANISATION / part, folder / part, dirs_exist_ok=True)
    (folder / ".venv").mkdir()
    for part in ("bin", "lib", "pyvenv.cfg"):
        (folder / ".venv" / part).symlink_to(BIN.parent / part)
    for stamp in (".base", ".complete"):  # for make, which then installs nothing
        (folder / ".venv" / stamp).touch()
    (folder / ".venv-policies").symlink_to(ROOT / ".venv-policies")
    for words in (
        "init -q -b main",
        "config user.name example",
        "config user.email me@example.com",
        "add .",
        "commit -q -m New",
        "update-ref refs/remotes/origin/main HEAD",
    ):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return folder


def measure_start() -> None:
    """Run the commands once, in their order, and print a table with their sum."""
    steps = commands()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"\nNot installed, so without the rehearsal: {', '.join(missing)}")
    typed = steps[FILES] + ([] if missing else steps[REHEARSAL])
    with tempfile.TemporaryDirectory() as name:
        root = clone(Path(name) / "clone")
        env = {"PATH": f"{BIN}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(root.parent / "cache")}
        walls = {command: run(["bash", "-c", command], cwd=root, env=env).wall for command in typed}
    rows = [(f"`{command}`", f"{wall:.1f}") for command, wall in walls.items()]
    table("The start page, in a new clone", ("command", "wall s"), [*rows, ("together", f"{sum(walls.values()):.0f}")])
