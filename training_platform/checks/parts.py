"""Parts: each folder of ``training_platform/parts`` declares its additions to the core in ``PART``.

The core imports no part by name. What a part adds is named, ``module:attribute``, and imported when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from training_platform.config.reading.finding import Finding
    from training_platform.config.workspace import Workspace
    from training_platform.quota.charges import QuotaKey

FOLDER = "training_platform.parts"


@dataclass(frozen=True, kw_only=True)
class Part:
    """The additions of a part to the core; names are ``module:attribute``, relative to the part's package.

    ``needs`` are the other parts that it imports: if one is absent, so is this. ``commands`` are commands of
    ``training-platform`` by name, or ``group name`` for one of a group of the core.
    ``judges`` is the folder at the root of a repository that ``findings`` judges: a function of root, workspace and
    today that returns findings, and sentences about files that cannot be read. ``quota_needs`` takes the same and
    returns the amount of each quota that files of the folder need beside the stacks. ``schemas`` returns JSON Schemas
    by the file that ``training-platform schema`` writes.
    """

    commands: Mapping[str, str]
    needs: tuple[str, ...] = ()
    judges: str = ""
    findings: str = ""
    quota_needs: str = ""
    schemas: str = ""


@cache
def installed_parts() -> dict[str, Part]:
    """Return the parts by name, except those whose folder, or that of a part that they need, is missing."""
    try:
        folders = import_module(FOLDER).__path__
    except ModuleNotFoundError:
        return {}
    names = sorted(module.name for module in iter_modules(folders))
    parts: dict[str, Part] = {name: import_module(f"{FOLDER}.{name}").PART for name in names}
    return {name: part for name, part in parts.items() if parts.keys() >= set(part.needs)}


def full_name(part: str, name: str) -> str:
    """Return the absolute form of a part's name, such as ``PACKAGE.render:judge_folder``."""
    return f"{FOLDER}.{part}.{name}"


def loaded(name: str) -> Any:  # a command, or a function of one of the signatures below
    """Import the object of a full name, ``module:attribute``."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


Findings = Callable[[Path, "Workspace", date], "tuple[list[Finding], list[str]]"]
Needs = Callable[[Path, "Workspace", date], "dict[QuotaKey, float]"]


def part_findings() -> dict[str, Findings]:
    """Return the functions that check files of a repository, by the folder that they check."""
    return {
        part.judges: cast("Findings", loaded(full_name(name, part.findings)))
        for name, part in installed_parts().items()
        if part.findings
    }


def part_quota_needs() -> list[Needs]:
    """Return the functions that return the quota that files of a repository need beside its stacks."""
    return [
        cast("Needs", loaded(full_name(name, part.quota_needs)))
        for name, part in installed_parts().items()
        if part.quota_needs
    ]


def part_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of parts by file."""
    schemas: dict[str, dict[str, Any]] = {}
    for name, part in installed_parts().items():
        if part.schemas:
            schemas |= loaded(full_name(name, part.schemas))()
    return schemas
