"""The operations of the platform's principals in Google Cloud: ``operations.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from training_platform.catalog.reading import table
from training_platform.catalog.types import Json


@dataclass(frozen=True)
class Principal:
    """A principal, the pattern of its members in policies, and the methods of each of its operations.

    ``excess`` says of a role, by its name, why the principal has more than its operations use.
    """

    title: str
    members: str
    operations: Mapping[str, tuple[str, ...]]
    excess: Mapping[str, str]

    @property
    def methods(self) -> frozenset[str]:
        """Every method that it calls."""
        return frozenset(method for methods in self.operations.values() for method in methods)


@cache
def principals() -> Mapping[str, Principal]:
    """Return the principals by name."""
    rows: Json = table(__file__, "operations.yaml")
    return {
        name: Principal(
            row["title"],
            row["members"],
            operations={title: _methods(collections) for title, collections in row["operations"].items()},
            excess=row.get("excess", {}),
        )
        for name, row in rows.items()
    }


def _methods(collections: Json) -> tuple[str, ...]:
    return tuple(f"{collection}.{verb}" for collection, verbs in collections.items() for verb in verbs)


def called_methods() -> frozenset[str]:
    """Return the methods of all principals."""
    return frozenset(method for principal in principals().values() for method in principal.methods)
