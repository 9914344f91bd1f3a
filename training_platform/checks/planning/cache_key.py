"""What a plan's outcome depends on, as one digest: whatever can change the outcome changes the digest.

That is the stack's file and its environment's, of one that lends all stacks' files, the program, the code and data of
``modules`` and ``training_platform``, Python and every installed package. Today, snapshots, exemptions and the baseline
are not in it: they are applied to outcomes afterwards. Nor is the policy pack, which no check runs.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path

from training_platform.config.model.stack import Stack, stack_name
from training_platform.config.workspace import STACKS_FOLDER

CODE = Path(__file__).resolve().parents[3]
PROGRAM = ("Pulumi.yaml", "__main__.py")


def program_digest(root: Path, code: Path = CODE) -> str:
    """Return the digest of all but stack files: the program and ``modules`` at ``root``, the packages below ``code``.

    Installed from a wheel, ``code`` has no ``modules``; in tests ``root`` may have none, and is planned by ours.
    """
    parts = [sys.version, sys.platform, platform.machine(), *sorted(_installed())]
    files = [*((name, root / name) for name in PROGRAM), *code_files(root, code)]
    return _digest((*parts, *(text for name, path in files for text in (name, _content(path)))))


def code_files(root: Path, code: Path = CODE) -> Iterator[tuple[str, Path]]:
    """Yield the files of both packages, each with the name by which it is imported from one folder."""
    for package, folder in {
        "training_platform": code,
        "modules": root if (root / "modules").is_dir() else code,
    }.items():
        yield from ((path.relative_to(folder).as_posix(), path) for path in _files(folder / package))


def stack_digest(program: str, root: Path, stack: Stack, *, inputs: bool) -> str:
    """Return the digest of all that a stack's outcome depends on; ``inputs`` as an outcome has them."""
    others = (stack_name(path) for path in (root / STACKS_FOLDER).glob("Pulumi.*.yaml")) if stack.lends else ()
    names = dict.fromkeys((stack.name, stack.environment_name, *sorted(each for each in others if each)))
    files = (_content(root / STACKS_FOLDER / f"Pulumi.{name}.yaml") for name in names)
    return _digest((program, "inputs" if inputs else "brief", *names, *files))


def _installed() -> Iterator[str]:
    for each in distributions():
        yield f"{each.metadata['Name']} {each.version}"


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


def _content(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "absent"


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
