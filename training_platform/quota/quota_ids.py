"""The catalogue's facts about a quota, looked up by service and id: unit, location, dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, NamedTuple

from training_platform.catalog import QUOTAS
from training_platform.quota.charges import QuotaKey, short_quota_id

_SLIP = 0.9  # similarity, at most 1: ids that differ by a letter or two; other machine families are less similar


class KnownQuota(NamedTuple):
    """A quota id. ``dimensions`` contains its dimensions other than the location, with the known values of each."""

    unit: str
    per: Literal["region", "zone", "project"]
    dimensions: Mapping[str, frozenset[str]]


@lru_cache(maxsize=1)
def known_quotas() -> Mapping[tuple[str, str], KnownQuota]:
    """Return all quotas of the catalogue, keyed by service and id."""
    quotas: dict[tuple[str, str], KnownQuota] = {}
    for quota in QUOTAS:
        key = (quota.service, quota.quota_id)
        values = {name: {value} for name, value in quota.dimensions}
        before = quotas[key].dimensions if key in quotas else {}
        both = {name: frozenset(values.get(name, ())) | before.get(name, frozenset()) for name in {*values, *before}}
        quotas[key] = KnownQuota(quota.unit, quota.per, dimensions=both)
    return quotas


@lru_cache(maxsize=1)
def _guessed() -> Mapping[str, frozenset[tuple[str, str, tuple[tuple[str, str], ...]]]]:
    """Return the quotas whose id or dimensions are unverified, keyed by the name of the unverified field.

    Each quota is given as its service, id and dimensions.
    """
    fields = ("quota_id", "dimensions")
    return {
        name: frozenset(
            (key.service, key.quota_id, key.dimensions) for key, row in QUOTAS.items() if name in row.unverified
        )
        for name in fields
    }


def is_guess(key: QuotaKey, *, listed: bool) -> bool:
    """Return True if the id or the dimensions of a quota are unverified in the catalogue and may be wrong.

    ``listed`` says whether the snapshot lists the id. If it does, only the dimensions may be wrong.
    """
    exact = (key.service, key.quota_id, key.dimensions)
    guessed = _guessed()
    return exact in guessed["dimensions"] or (not listed and exact in guessed["quota_id"])


def services() -> tuple[str, ...]:
    """Return the services with quotas in the catalogue, sorted."""
    return tuple(sorted({service for service, _ in known_quotas()}))


def units() -> frozenset[str]:
    """Return the units in which the catalogue's quotas are measured."""
    return frozenset(quota.unit for quota in known_quotas().values())


def misspelt_quota_id(service: str, quota_id: str) -> str | None:
    """Return the known quota id of a service that an unknown id probably misspells, or None."""
    ids = {short_quota_id(name): name for home, name in known_quotas() if home == service}
    close = get_close_matches(short_quota_id(quota_id), ids, n=1, cutoff=_SLIP)
    return ids[close[0]] if close else None
