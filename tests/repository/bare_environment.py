"""A virtual environment with a wheel and just what its metadata asks for, made without an index.

The distributions that are needed are linked from the environment that runs the tests, so what is missing from the
wheel's metadata is missing there too.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


class BareEnvironment:
    """A new virtual environment at ``folder`` that holds ``wheel`` with these extras."""

    def __init__(self, folder: Path, wheel: Path, *extras: str) -> None:
        venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
        self.python = folder / "bin" / "python"
        self.command = folder / "bin" / "training-platform"
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
        (site,) = folder.glob("lib/python*/site-packages")
        ours = PathDistribution(next(site.glob("training_platform-*.dist-info")))
        self.requirements = needed(ours, *extras)
        for each in self.requirements.values():
            _link(each, site)

    def run(self, *command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run one of its programs, which sees no other packages than its own."""
        environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "120", "XDG_CACHE_HOME": str(self.python.parent / "cache")}
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def needed(of: Distribution, *extras: str) -> dict[str, Distribution]:
    """Return all that a distribution needs, with what that needs, by canonical name."""
    known: dict[str, Distribution] = {}
    waiting = [(of, ("", *extras))]
    done: set[tuple[str, str]] = set()
    while waiting:
        each, wanted = waiting.pop()
        for requirement in map(Requirement, each.requires or ()):
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": extra}) for extra in wanted):
                continue
            name = canonicalize_name(requirement.name)
            if name == "training-platform":
                waiting.append((of, ("", *requirement.extras)))
                continue
            known[name] = distribution(name)
            asked = ("", *sorted(requirement.extras))
            if (name, str(asked)) not in done:
                done.add((name, str(asked)))
                waiting.append((known[name], asked))
    return known


def _link(each: Distribution, site: Path) -> None:
    """Link a distribution's packages; folders that several share, such as ``google``, are made and filled."""
    top = Path(str(each.locate_file("")))
    for part in {Path(str(file)).parts[0] for file in each.files or ()} - {".."}:
        _link_path(top / part, site / part, {Path(str(file)) for file in each.files or ()}, top)


def _link_path(source: Path, target: Path, files: set[Path], top: Path) -> None:
    if not source.is_dir() or (source / "__init__.py").exists() or source.suffix == ".dist-info":
        if source.exists() and not target.exists():
            target.symlink_to(source)
        return
    target.mkdir(exist_ok=True)
    depth = len(source.relative_to(top).parts)
    inside = {file.parts[depth] for file in files if file.is_relative_to(source.relative_to(top))}
    for part in inside:
        _link_path(source / part, target / part, files, top)
