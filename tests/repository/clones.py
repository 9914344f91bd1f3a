"""A new clone of the repository to type commands in, and the commands of docs/start.md by section."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from benchmarks.measure import BIN, ORGANISATION, ROOT

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
