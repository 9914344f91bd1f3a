"""Job files and the commands about them, as whole processes: a thousand files checked, one rendered, start-up."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from benchmarks.measure import ORGANISATION, PROGRAM, cells, run, table

RUNS = 5
FILES = 1_000
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


def measure() -> None:
    """Check, render and start, several times each, and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        root = write_jobs(Path(folder), FILES)
        rows = [
            _row(f"job check, {FILES:,} files", "check", ["job", "check", "--root", str(root)]),
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
        f"Jobs, {RUNS} runs each",
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
    return f"`{name}`", *cells([run([PROGRAM, *words]) for _ in range(RUNS)]), LIMITS[limit]
