"""Kubernetes objects by themselves: what an API server or a webhook compares in one object.

CEL expressions are read without a parser: brackets, quotes and ends.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final, NamedTuple

from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.config.reading.finding import Severity
from training_platform.resources.planned import UNKNOWN
from training_platform.rules.registry import Draft, Owner, finding, rule
from training_platform.views.inputs import as_number, is_list
from training_platform.views.program import ObjectView, Program

SERVER: Final = "Kubernetes API server 1.36.3, asked 2026-11-22"
SUBDOMAIN: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
"""What names of most objects look like: DNS subdomains (RFC 1123), of at most 253 characters."""


class Flaw(NamedTuple):
    """What is wrong with one input of an object, at its path as the program writes it."""

    path: str
    message: str
    allowed: str
    nearest: str | None = None
    severity: Severity | None = None  # another than the rule's


Check = Callable[[Json], Iterator[Flaw]]


def object_rule(
    rule_id: str, *kinds: str, ruleset: str, source: str, owner: Owner = "kubernetes"
) -> Callable[[Check], Check]:
    """Register a rule about single objects of some kinds, ``kueue.x-k8s.io:ClusterQueue``, in every version."""

    def register(check: Check) -> Check:
        def over(program: Program) -> Iterator[Draft]:
            objects = program.once(_by_kind)
            for view in (view for kind in kinds for view in objects.get(kind, ())):
                for wrong in check(view.inputs):
                    yield finding(
                        view, wrong.path, wrong.message,
                        allowed=wrong.allowed, nearest=wrong.nearest, severity=wrong.severity,
                    )  # fmt: skip

        over.__doc__, over.__module__ = check.__doc__, check.__module__
        rule(rule_id, ruleset=ruleset, source=source, owner=owner)(over)
        return check

    return register


def is_block(value: Any) -> bool:
    """Whether a value is a block of inputs, as most are."""
    return value.__class__ is dict or isinstance(value, Mapping)


def block(value: Any, *names: str) -> Json:
    """Return a block within a block, empty where a part of the way is missing, unknown or of another type."""
    for name in names:
        value = value.get(name) if is_block(value) else None
    return value if is_block(value) else {}


def entries(value: Any, name: str) -> list[tuple[int, Json]]:
    """Return the blocks in a list of a block, each with its place; none where the list is not known."""
    return [(index, row) for index, row in enumerate(_rows(value, name)) if is_block(row)]


def texts(value: Any, name: str) -> list[str]:
    """Return the texts of a list in a block."""
    return [row for row in _rows(value, name) if isinstance(row, str)]


def text(value: Any, name: str) -> str | None:
    """Return a text of a block."""
    written = value.get(name) if is_block(value) else None
    return written if isinstance(written, str) else None


def whole(value: Any, name: str) -> int | None:
    """Return a whole number of a block."""
    number = value.get(name) if is_block(value) else None
    number = as_number(number)
    return None if number is None or number is UNKNOWN else int(number)


def is_unknown(value: Any, name: str) -> bool:
    """Whether only a deployment tells an input."""
    return is_block(value) and value.get(name) is UNKNOWN


def twice(names: Sequence[str | None]) -> Iterator[tuple[int, str]]:
    """Yield each name that was there before, with its place."""
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


_GROUP: Final = "admissionregistration.k8s.io"
_EXPRESSIONS: Final = {
    "validations": ("expression", "messageExpression"), "matchConditions": ("expression",),
    "variables": ("expression",), "auditAnnotations": ("valueExpression",),
}  # fmt: skip
# A text of CEL: raw or not, in three quotes or one, of which the last may not span lines; and a comment.
_TEXTS: Final = re.compile(
    r'[rR][bB]?"""[\s\S]*?"""|[rR][bB]?"[^"\n]*"|[rR][bB]?\'[^\'\n]*\'|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\''
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*'
)
_CLOSING: Final = {")": "(", "]": "[", "}": "{"}
_OPERATOR: Final = re.compile(r"(&&|\|\||[-+*/%<>=!?:,.]|\bin)\s*\Z")


@object_rule(
    "admission-expression", f"{_GROUP}:ValidatingAdmissionPolicy", f"{_GROUP}:MutatingAdmissionPolicy",
    ruleset="objects", source=SERVER,
)  # fmt: skip
def admission_expression(inputs: Json) -> Iterator[Flaw]:
    """Find CEL expressions that end too early: unclosed brackets or quotes, or nothing after an operator."""
    for part, names in _EXPRESSIONS.items():
        for index, row in entries(block(inputs, "spec"), part):
            for name in names:
                written = text(row, name)
                problem = _problem(written) if written is not None else None
                if problem:
                    yield Flaw(f"spec.{part}[{index}].{name}", f"the expression {problem}", "a complete expression")


def _problem(written: str) -> str | None:
    rest, opened = _TEXTS.sub(lambda match: "" if match[0].startswith("//") else "0", written), list[str]()
    if not rest.strip():
        return "is empty"
    for letter in rest:
        if letter in _CLOSING.values():
            opened.append(letter)
        elif letter in _CLOSING and (not opened or opened.pop() != _CLOSING[letter]):
            return f"has an unmatched {letter}"
        elif letter in "\"'":
            return "has an unclosed quote"
    if opened:
        return f"has an unclosed {opened[-1]}"
    last = _OPERATOR.search(rest)
    return f"ends in {last[1]}" if last else None


_PEERS = {"ingress": "from", "egress": "to"}


@object_rule("policy-exceptions", "networking.k8s.io:NetworkPolicy", ruleset="objects", source=SERVER)
def policy_exceptions(inputs: Json) -> Iterator[Flaw]:
    """Find exceptions of a range of addresses that are not inside it, or are all of it."""
    for part, peers in _PEERS.items():
        for index, row in entries(block(inputs, "spec"), part):
            for place, peer in entries(row, peers):
                own, whole = block(peer, "ipBlock"), _range(text(block(peer, "ipBlock"), "cidr"))
                for number, written in enumerate(texts(own, "except")):
                    hole, here = _range(written), f"spec.{part}[{index}].{peers}[{place}].ipBlock.except[{number}]"
                    if whole and (hole is None or not _is_inside(hole, whole)):
                        yield Flaw(here, f"{written} is not a part of {whole}", f"a smaller range within {whole}")


def _is_inside(hole: IPv4Network | IPv6Network, whole: IPv4Network | IPv6Network) -> bool:
    return hole.version == whole.version and hole != whole and hole.subnet_of(whole)  # type: ignore[arg-type]


def _range(value: str | None) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(value, strict=False) if value else None
    except ValueError:
        return None


_SOURCE = "Kubernetes' guide to deprecated APIs, read 2026-11-22"


@rule("removed-version", ruleset="objects", owner="kubernetes", source=_SOURCE)
def removed_version(program: Program) -> Iterator[Draft]:
    """Find an object of an API version that Kubernetes has removed."""
    for view in program.all(ObjectView):
        if not view.type.startswith("kubernetes:"):
            continue
        _, version, kind = view.type.split(":")
        kinds = _removed().get(version, {})
        last, instead = kinds.get(kind) or kinds.get("*") or (None, None)
        if last:
            message = f"{kind} of {version} was last served by Kubernetes {last}"
            yield finding(
                view, "apiVersion", message, allowed=instead or "nothing: it has no replacement", nearest=instead
            )


@cache
def _removed() -> Mapping[str, Mapping[str, tuple[str, str | None]]]:
    versions: Mapping[str, Mapping[str, tuple[str, str | None]]] = table(__file__, "removed_versions.yaml")
    return versions


# Types whose data is used by Kubernetes; of the keys of a tuple in a tuple one is enough.
_KEYS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "kubernetes.io/basic-auth": (("username", "password"),),
    "kubernetes.io/dockercfg": ((".dockercfg",),),
    "kubernetes.io/dockerconfigjson": ((".dockerconfigjson",),),
    "kubernetes.io/ssh-auth": (("ssh-privatekey",),),
    "kubernetes.io/tls": (("tls.crt",), ("tls.key",)),
}


@object_rule("secret-keys", "core:Secret", ruleset="objects", source=SERVER)
def secret_keys(inputs: Json) -> Iterator[Flaw]:
    """Find an object of a known type of Secret without a key that its type has."""
    kind = inputs.get("type")
    if is_unknown(inputs, "data") or is_unknown(inputs, "stringData") or not isinstance(kind, str):
        return
    there = {*block(inputs, "data"), *block(inputs, "stringData")}
    for names in _KEYS.get(kind, ()):
        if not there & set(names):
            wanted = " or ".join(names)
            yield Flaw("stringData", f"a secret of type {kind} has no {wanted}", wanted)
