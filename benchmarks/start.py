"""The commands of docs/start.md before an account is needed, as typed, in a clone: how long each takes.

The rehearsal needs the engine and its gcp plugin on PATH, and is left out without.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.engine import TOOLS
from benchmarks.measure import BIN, ORGANISATION, ROOT, run, table

FILES: Final = "Your own files"
REHEARSAL: Final = "A rehearsal on your machine"
CLOUD: Final = "Google Cloud"
_SAMPLE = re.compile(r"(stacks|jobs)/.*\.yaml$")
_SECTION = re.compile(r"^## ([^\n]+)$\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)


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
    (folder / ".venv").symlink_to(BIN.parent)
    for words in (
        "init -q",
        "config user.name example",
        "config user.email me@example.com",
        "add .",
        "commit -q -m New",
    ):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return folder


def measure() -> None:
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
