"""Rules about single Kubernetes objects: fields of one object that an API server or a webhook compares."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from training_platform.catalog.types import Json
from training_platform.config.reading.declaration import Draft, Owner, finding, rule
from training_platform.config.reading.unknown import UNKNOWN, is_list
from training_platform.views.inputs import as_number
from training_platform.views.whole_stack import ObjectView, Program

SERVER: Final = "Kubernetes API server 1.36.3, tried 2026-11-22"
SUBDOMAIN: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
"""The format of most objects' names: a DNS subdomain (RFC 1123) with at most 253 characters."""


ObjectRule = Callable[[ObjectView], Iterator[Draft]]


def object_rule(
    rule_id: str, *kinds: str, ruleset: str, source: str, owner: Owner = "kubernetes"
) -> Callable[[ObjectRule], ObjectRule]:
    """Register a rule about single objects of these kinds, such as ``kueue.x-k8s.io:ClusterQueue``, in any version."""

    def register(check: ObjectRule) -> ObjectRule:
        def over(program: Program) -> Iterator[Draft]:
            objects = program.once(_by_kind)
            for kind in kinds:
                for view in objects.get(kind, ()):
                    yield from check(view)

        over.__doc__ = check.__doc__
        over.__module__ = check.__module__
        rule(rule_id, ruleset=ruleset, source=source, owner=owner)(over)
        return check

    return register


def is_block(value: Any) -> bool:
    """Whether a value is a block of inputs."""
    return value.__class__ is dict or isinstance(value, Mapping)


def block(value: Any, *names: str) -> Json:
    """Return the block at a path of names within a block; an empty one if it is missing, unknown or not a block."""
    for name in names:
        value = value.get(name) if is_block(value) else None
    return value if is_block(value) else {}


def entries(value: Any, name: str) -> list[tuple[int, Json]]:
    """Return the blocks in a list, which is an input of a block, each with its index; empty if the list is unknown."""
    return [(index, row) for index, row in enumerate(_rows(value, name)) if is_block(row)]


def strings(value: Any, name: str) -> list[str]:
    """Return the strings in a list, which is an input of a block."""
    return [row for row in _rows(value, name) if isinstance(row, str)]


def string(value: Any, name: str) -> str | None:
    """Return an input of a block if it is a string."""
    written = value.get(name) if is_block(value) else None
    return written if isinstance(written, str) else None


def integer(value: Any, name: str) -> int | None:
    """Return an input of a block if it is an integer."""
    number = value.get(name) if is_block(value) else None
    number = as_number(number)
    return None if number is None or number is UNKNOWN else int(number)


def is_unknown(value: Any, name: str) -> bool:
    """Return True if an input is known only after deployment."""
    return is_block(value) and value.get(name) is UNKNOWN


def duplicates(names: Sequence[str | None]) -> Iterator[tuple[int, str]]:
    """Yield each name that occurred before in the list, with its index."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name is not None and name in seen:
            yield index, name
        seen.add(name or "")


def _rows(value: Any, name: str) -> Sequence[Any]:
    rows: Any = value.get(name) if is_block(value) else None
    return rows if is_list(rows) else ()


def _by_kind(program: Program) -> Mapping[str, list[ObjectView]]:
    objects: dict[str, list[ObjectView]] = defaultdict(list)
    for view in program.all(ObjectView):
        if view.type.startswith("kubernetes:"):
            _, version, kind = view.type.split(":")
            objects[f"{version.partition('/')[0]}:{kind}"].append(view)
    return objects


_PEERS = {"ingress": "from", "egress": "to"}


@object_rule("policy-exceptions", "networking.k8s.io:NetworkPolicy", ruleset="objects", source=SERVER)
def policy_exceptions(view: ObjectView) -> Iterator[Draft]:
    """Find an exception to an address range that is outside the range, or equal to it."""
    inputs = view.inputs
    for part, peers in _PEERS.items():
        for index, row in entries(block(inputs, "spec"), part):
            for peer_index, peer in entries(row, peers):
                ip_block = block(peer, "ipBlock")
                whole = _range(string(ip_block, "cidr"))
                for number, written in enumerate(strings(ip_block, "except")):
                    hole = _range(written)
                    path = f"spec.{part}[{index}].{peers}[{peer_index}].ipBlock.except[{number}]"
                    if whole and (hole is None or not _is_inside(hole, whole)):
                        yield finding(
                            view, path, f"{written} is not a part of {whole}", allowed=f"a smaller range within {whole}"
                        )


def _is_inside(hole: IPv4Network | IPv6Network, whole: IPv4Network | IPv6Network) -> bool:
    return hole.version == whole.version and hole != whole and hole.subnet_of(whole)  # type: ignore[arg-type]


def _range(value: str | None) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(value, strict=False) if value else None
    except ValueError:
        return None


# Types whose data Kubernetes uses, with their required keys; one key of each inner tuple is enough.
_KEYS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "kubernetes.io/basic-auth": (("username", "password"),),
    "kubernetes.io/dockercfg": ((".dockercfg",),),
    "kubernetes.io/dockerconfigjson": ((".dockerconfigjson",),),
    "kubernetes.io/ssh-auth": (("ssh-privatekey",),),
    "kubernetes.io/tls": (("tls.crt",), ("tls.key",)),
}


@object_rule("secret-keys", "core:Secret", ruleset="objects", source=SERVER)
def secret_keys(view: ObjectView) -> Iterator[Draft]:
    """Find a Secret object without a key that its type requires."""
    inputs = view.inputs
    kind = inputs.get("type")
    if is_unknown(inputs, "data") or is_unknown(inputs, "stringData") or not isinstance(kind, str):
        return
    written = {*block(inputs, "data"), *block(inputs, "stringData")}
    for names in _KEYS.get(kind, ()):
        if not written & set(names):
            required = " or ".join(names)
            yield finding(view, "stringData", f"a secret of type {kind} has no {required}", allowed=required)
