"""Parts, the optional extensions: each folder of ``training_platform/parts`` declares in ``PART`` what it adds.

The core imports no part by name. The functions of a ``PART`` import their modules when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

    from training_platform.config.reading.finding import Finding
    from training_platform.config.workspace import Workspace
    from training_platform.quota.charges import Charge, QuotaKey
    from training_platform.quota.snapshot import Snapshots

FOLDER = "training_platform.parts"


@dataclass(frozen=True, kw_only=True)
class CheckedStacks:
    """The stacks of a repository, what they charge to quotas, and the limits, for the checks of a part's own files."""

    root: Path
    today: date
    workspace: Workspace
    charges: Sequence[Charge]
    snapshots: Snapshots


@dataclass(frozen=True, kw_only=True)
class CheckOfFiles:
    """A part's check of a folder at the root of a repository.

    ``findings`` also returns a sentence about each file that cannot be read. ``quota_needs`` returns the amount of each
    quota that the files need in addition to the stacks.
    """

    folder: str
    findings: Callable[[CheckedStacks], tuple[list[Finding], list[str]]]
    quota_needs: Callable[[Path, Workspace, date], dict[QuotaKey, float]]


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a part adds to the core.

    - ``needs`` are the other parts that it imports. If one of them is missing, this part is not available.
    - ``commands`` are commands of ``training-platform``, keyed by name, or by ``group name`` for a command in a
      group of the core.
    - ``schemas`` returns JSON Schemas keyed by the file that ``training-platform schema`` writes.
    - ``declare_rules`` imports the modules that declare the part's rules.
    """

    commands: Mapping[str, Callable[[], click.Command]]
    needs: tuple[str, ...] = ()
    files: CheckOfFiles | None = None
    schemas: Callable[[], dict[str, dict[str, Any]]] | None = None
    declare_rules: Callable[[], None] | None = None


@cache
def installed_parts() -> dict[str, Part]:
    """Return the parts by name. A part is left out if its folder, or the folder of a part that it needs, is missing."""
    try:
        folders = import_module(FOLDER).__path__
    except ModuleNotFoundError:
        return {}
    names = sorted(module.name for module in iter_modules(folders))
    parts: dict[str, Part] = {name: import_module(f"{FOLDER}.{name}").PART for name in names}
    return {name: part for name, part in parts.items() if parts.keys() >= set(part.needs)}


def checks_of_files() -> list[CheckOfFiles]:
    """Return the parts' checks of files other than stack files."""
    return [part.files for part in installed_parts().values() if part.files]


def declare_rules_of_parts() -> None:
    """Import the modules that declare the rules of parts."""
    for part in installed_parts().values():
        if part.declare_rules:
            part.declare_rules()


def part_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of parts, keyed by file."""
    schemas: dict[str, dict[str, Any]] = {}
    for part in installed_parts().values():
        if part.schemas:
            schemas |= part.schemas()
    return schemas
