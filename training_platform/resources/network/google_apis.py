"""Private zones by which names of Google's APIs lead to addresses that do not change, so that a policy can name them.

Nodes reach these by Private Google Access and the VPC's default route; nothing else of the VPC changes.
Source: Google Cloud docs, Configure Private Google Access (addresses, zones and records), read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from training_platform.config.model.environment import Environment
from training_platform.resources import gcp
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import MANAGED_ZONE, RECORD_SET
from training_platform.resources.scope import Scope


class Entrance(NamedTuple):
    """Where Google's APIs answer: their own name for it, and its four addresses."""

    name: str
    range: str
    addresses: tuple[str, ...]


ENTRANCES: Final[Mapping[str, Entrance]] = {
    "private": Entrance(
        "private.googleapis.com.", "199.36.153.8/30", tuple(f"199.36.153.{number}" for number in range(8, 12))
    ),
    "restricted": Entrance(
        "restricted.googleapis.com.", "199.36.153.4/30", tuple(f"199.36.153.{number}" for number in range(4, 8))
    ),
}
APIS: Final = "googleapis.com."
DOMAINS: Final = (APIS, "gcr.io.", "pkg.dev.")  # each has a private zone: APIs, and registries of images
TTL_SECONDS: Final = 300
# The names are fixed, and the new zone or record is where the old one is.
_OPTIONS: Final = Options(delete_before_replace=True)


def entrance(environment: Environment) -> Entrance | None:
    """Return where an environment's clusters reach Google's APIs; None where names lead to public addresses."""
    return ENTRANCES.get(environment.google_apis) if environment.clusters else None


def api_zone(name: str, domain: str, scope: Scope, network: Any) -> Declared:
    """Return the zone of a domain, which the VPC alone sees."""
    inputs = gcp.managed_zone(
        project=scope.project,
        name=f"{scope.environment}-{_label(domain)}",
        dns_name=domain,
        description=f"Google's APIs in the VPC of environment {scope.environment}",
        visibility="private",
        private_visibility_config={"networks": [{"network_url": network}]},
        labels=scope.labels,
    )
    return Declared(type=MANAGED_ZONE, name=f"{name}-{_label(domain)}-zone", inputs=inputs, options=_OPTIONS)


def api_records(name: str, domain: str, found: Entrance, scope: Scope, zone: Any) -> Iterator[Declared]:
    """Yield the records of a zone: one name with the addresses, and all names below the domain, which follow it."""
    held = found.name if domain == APIS else domain
    for role, record, kind, data in (
        ("addresses", held, "A", list(found.addresses)),
        ("names", f"*.{domain}", "CNAME", [held]),
    ):
        inputs = gcp.record_set(
            project=scope.project,
            managed_zone=zone,
            name=record,
            type=kind,
            ttl=TTL_SECONDS,
            rrdatas=data,
        )
        yield Declared(type=RECORD_SET, name=f"{name}-{_label(domain)}-{role}", inputs=inputs, options=_OPTIONS)


def _label(domain: str) -> str:
    return domain.rstrip(".").replace(".", "-")
