"""The operations that the platform's principals perform in Google Cloud, read from ``operations.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from training_platform.catalog.reading import table
from training_platform.catalog.types import Json


@dataclass(frozen=True)
class Principal:
    """A principal, the pattern that its members match in policies, and the methods that each of its operations calls.

    ``excess`` gives, for each role that grants more than the principal's operations use, the reason for this.
    """

    title: str
    members: str
    operations: Mapping[str, tuple[str, ...]]
    excess: Mapping[str, str]

    @property
    def methods(self) -> frozenset[str]:
        """All methods that the principal calls."""
        return frozenset(method for methods in self.operations.values() for method in methods)


@cache
def principals() -> Mapping[str, Principal]:
    """Return the principals, keyed by name."""
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
    """Return the methods that any principal calls."""
    return frozenset(method for principal in principals().values() for method in principal.methods)
