"""Network policies: what the API server compares in one."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from training_platform.rules.kubernetes.objects import Json, Wrong, block, entries, object_rule, text, texts
from training_platform.rules.kubernetes.pods import SERVER

_PEERS = {"ingress": "from", "egress": "to"}


@object_rule("policy-exceptions", "networking.k8s.io:NetworkPolicy", ruleset="objects", source=SERVER)
def policy_exceptions(inputs: Json) -> Iterator[Wrong]:
    """Find exceptions of a range of addresses that are not inside it, or are all of it."""
    for part, peers in _PEERS.items():
        for index, row in entries(block(inputs, "spec"), part):
            for place, peer in entries(row, peers):
                own, whole = block(peer, "ipBlock"), _range(text(block(peer, "ipBlock"), "cidr"))
                for number, written in enumerate(texts(own, "except")):
                    hole, here = _range(written), f"spec.{part}[{index}].{peers}[{place}].ipBlock.except[{number}]"
                    if whole and (hole is None or not _is_inside(hole, whole)):
                        yield Wrong(here, f"{written} is not a part of {whole}", f"a smaller range within {whole}")


def _is_inside(hole: IPv4Network | IPv6Network, whole: IPv4Network | IPv6Network) -> bool:
    return hole.version == whole.version and hole != whole and hole.subnet_of(whole)  # type: ignore[arg-type]


def _range(value: str | None) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(value, strict=False) if value else None
    except ValueError:
        return None
