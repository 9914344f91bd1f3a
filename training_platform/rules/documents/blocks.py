"""Relations between the inputs of one block: required inputs, inputs that exclude each other, and their order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from training_platform.resources.stack_resource import UNKNOWN
from training_platform.rules.documents.constraints import Case, Constraint, Names, Order, Values
from training_platform.rules.documents.problems import BrokenConstraint, Reporter, Where, missing, refused
from training_platform.rules.documents.scalars import FORMS, measured

BlockCheck = Callable[[Mapping[str, Any], Where, Reporter], None]


def compared(limits: Constraint) -> BlockCheck | None:
    """Return the check that compares a block's inputs with each other; None without such a constraint."""
    required = limits.required
    groups = [
        *(_Group(names, needed=True, together=False) for names in limits.exactly_one),
        *(_Group(names, needed=False, together=False) for names in limits.at_most_one),
        *(_Group(names, needed=True, together=True) for names in limits.at_least_one),
    ]
    cases = [(_always_in(case.when), case) for case in limits.cases]
    if not (required or groups or cases or limits.orders or limits.disjoint):
        return None

    def check(value: Mapping[str, Any], where: Where, report: Reporter) -> None:
        for key in filter(lambda key: value.get(key) is None, required):
            report(missing(where, key))
        for group in groups:
            if group.needed or not value.keys().isdisjoint(group.names):
                _counted(value, group, where, report)
        for keys, case in cases:
            if value.keys() >= keys and all(
                _is_among(_input_at(value, key), values) for key, values in case.when.items()
            ):
                _in_case(value, case, where, report)
        for order in limits.orders:
            _ordered(value, order, where, report)
        if limits.disjoint:
            _in_both(value, limits.disjoint, where, report)

    return check


class _Group(NamedTuple):
    """A group of inputs. If ``needed``, at least one must be set. Unless ``together``, at most one may be set."""

    names: Names
    needed: bool
    together: bool


def _always_in(when: Values) -> frozenset[str]:
    """Return the inputs that must be set for a case to apply. Most blocks have none of these inputs."""
    return frozenset(key.partition(".")[0] for key, values in when.items() if None not in values)


def _input_at(value: Any, path: str) -> Any:
    """Return the input at a path. In a list, this is the input of the first entry that has it."""
    if "." not in path:
        return value.get(path)
    for key in path.split("."):
        if isinstance(value, list):
            values = (entry.get(key) for entry in value if isinstance(entry, Mapping))
            value = next((inner for inner in values if inner is not None), None)
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _is_among(value: Any, values: Sequence[Any]) -> bool:
    """Return True if a value is one of the values in a case.

    There, ``<written>`` means any non-empty value, and null means a missing value.
    """
    return value in values or ("<written>" in values and value is not UNKNOWN and bool(value))


def _counted(value: Mapping[str, Any], group: _Group, where: Where, report: Reporter) -> None:
    """Report a block in which too few or too many of certain inputs are set."""
    written = [name for name in group.names if value.get(name) not in (None, [])]
    names = ", ".join(group.names)
    if group.needed and not written:
        report(
            BrokenConstraint(
                "required", (where, group.names[0]), message=f"none of {names} is set", allowed=f"one of {names}"
            )
        )
        return
    decided = [name for name in written if value[name] is not UNKNOWN]
    if len(decided) > 1 and not group.together:
        message = f"{' and '.join(decided)} are both set"
        report(BrokenConstraint("required", (where, decided[-1]), message=message, allowed=f"one of {names}"))


def _in_case(value: Mapping[str, Any], case: Case, where: Where, report: Reporter) -> None:
    """Report missing inputs that a case requires, and set inputs that it forbids."""
    why = " and ".join(f"{key} is {_shown_at(value, key)}" for key in case.when)
    beside = f", and {why}" if why else ""
    for key in case.required:
        if not _input_at(value, key) and _input_at(value, key) != 0:
            message = f"{key} is not set{beside}"
            report(BrokenConstraint("required", (where, key), message=message, allowed=f"a value for {key}"))
    for key in case.forbidden:
        if _is_among(_input_at(value, key), ["<written>"]):
            message = f"{key} is set{beside}"
            report(BrokenConstraint("required", (where, key), message=message, allowed=f"no {key}"))
    names = case.at_least_one
    if names and not any(_input_at(value, name) for name in names):
        message = f"none of {', '.join(names)} is set{beside}"
        report(BrokenConstraint("required", (where, names[0]), message=message, allowed=f"one of {', '.join(names)}"))
    _listed(value, case, why, where, report)
    _valued(value, case, f"and {why}" if why else "which is refused", where, report)


def _valued(value: Mapping[str, Any], case: Case, why: str, where: Where, report: Reporter) -> None:
    """Report inputs with a value, format or size that a case does not allow."""
    for key, values in (*case.enum.items(), *case.doubted_enum.items()):
        written = _input_at(value, key)
        if written not in (None, UNKNOWN) and not any(_is_like(written, allowed) for allowed in values):
            problem = refused("enum", (where, key), written, why, ", ".join(map(str, values)))
            report(problem if key in case.enum else problem._replace(severity="warning"))
    for key, pattern in case.pattern.items():
        written = _input_at(value, key)
        if isinstance(written, str) and not re.search(pattern, written):
            report(refused("format", (where, key), written, why, f"a string that matches {pattern}"))
    for key, values in case.not_.items():
        written = _input_at(value, key)
        if written is not UNKNOWN and any(_is_like(written, refused_value) for refused_value in values):
            report(refused("range", (where, key), written, why, "another value of one of them"))
    for key, minimum in case.minimum.items():
        written = _input_at(value, key)
        maximum = case.maximum[key]
        (kind, size), (low_kind, low), (_, high) = map(measured, (written, minimum, maximum))
        if kind == low_kind and not low <= size <= high:
            report(refused("range", (where, key), written, why, f"{minimum} to {maximum}"))


def _in_both(value: Mapping[str, Any], pairs: Sequence[Sequence[str]], where: Where, report: Reporter) -> None:
    """Report entries of a list, or keys of a mapping, that are also in a second list or mapping."""
    for first_path, second_name in pairs:
        first = _input_at(value, first_path)
        second = value.get(second_name)
        if not (isinstance(first, (list, Mapping)) and isinstance(second, (list, Mapping))):
            continue
        for index, item in enumerate(second):
            if item is not UNKNOWN and item in list(first):  # a key or entry of a wrong type has no hash
                key = item if isinstance(second, Mapping) else index
                message = f"{item} is also in {first_path}"
                report(
                    BrokenConstraint(
                        "range",
                        ((where, second_name), key),
                        message=message,
                        allowed=f"entries that are not in {first_path}",
                    )
                )


def _listed(value: Mapping[str, Any], case: Case, why: str, where: Where, report: Reporter) -> None:
    """Report lists with more entries than a case allows, or with entries of a different format."""
    for key, maximum in case.max_items.items():
        items = value.get(key)
        if isinstance(items, list) and len(items) > maximum:
            message = f"{key} has {len(items)} entries, and {why}"
            report(BrokenConstraint("range", (where, key), message=message, allowed=f"at most {maximum} of {key}"))
    for key, form in case.format.items():
        is_right, example = FORMS[form]
        items = value.get(key)
        if not isinstance(items, list):
            continue
        for index, item in enumerate(items):
            if isinstance(item, str) and not is_right(item):
                report(refused("format", ((where, key), index), item, f"and {why}", example))


def _is_like(value: Any, allowed: Any) -> bool:
    return value == allowed or (isinstance(value, str) and isinstance(allowed, str) and fnmatchcase(value, allowed))


def _shown_at(value: Mapping[str, Any], key: str) -> str:
    """Return the value of an input as text for messages."""
    written = _input_at(value, key)
    if written is None:
        return "not written"
    return str(written) if isinstance(written, (str, int, float)) else "written"


def _ordered(value: Mapping[str, Any], order: Order, where: Where, report: Reporter) -> None:
    """Report an input that is larger than another input, or equal to it if it must be smaller."""
    lower = _input_at(value, order.smaller)
    if lower is None:
        return
    upper = _input_at(value, order.larger)
    if upper is None:
        upper = order.default
    lower_kind, lower_size = measured(lower)
    upper_kind, upper_size = measured(upper)
    if lower_kind is None or lower_kind != upper_kind:
        return
    if order.zero_is_no_bound and upper_size == 0:
        return
    if lower_size > upper_size or (order.strictly and lower_size == upper_size):
        allowed = f"{'below' if order.strictly else 'at most'} {upper}"
        report(refused("range", (where, order.smaller), lower, f"and {order.larger} is {upper}", allowed))


def compared_entries(limits: Constraint) -> Callable[[Any, Where, Reporter], None] | None:
    """Return the check that compares the entries of a list, or the keys of a map, with each other.

    Return None if there is no constraint on them.
    """
    keys = list(limits.unique_by)
    if limits.unique_items:
        keys.append(())  # of no inputs: entries themselves differ
    alone = limits.alone
    required = limits.contains
    if not (keys or limits.exclusive or alone is not None or required is not None):
        return None

    def check(value: Any, where: Where, report: Reporter) -> None:
        for names in keys:
            _repeated(value, names, where, report)
        if alone in value and len(value) > 1:
            report(
                BrokenConstraint(
                    "range", where, message=f"has other entries in addition to {alone}", allowed=f"only {alone}"
                )
            )
        for first, second in limits.exclusive:
            if first in value and second in value:
                message = f"{first} and {second} exclude each other"
                report(
                    BrokenConstraint(
                        "range", (where, value.index(second)), message=message, allowed=f"{first} or {second}"
                    )
                )
        if required is not None and value and required not in value and UNKNOWN not in value:
            report(
                BrokenConstraint(
                    "required", where, message=f"{required} is not among {', '.join(map(str, value))}", allowed=required
                )
            )

    return check


def _repeated(value: Any, keys: Names, where: Where, report: Reporter) -> None:
    """Report entries that have equal values of ``keys``, or that are equal if ``keys`` is empty."""
    seen: list[Any] = []
    for index, item in enumerate(value):
        identity = [_input_at(item, key) for key in keys] if keys and isinstance(item, Mapping) else [item]
        if identity in seen and UNKNOWN not in identity and identity not in ([None], [""]):
            name = ", ".join(str(part) for part in identity if part is not None)
            report(
                BrokenConstraint("range", (where, index), message=f"{name} is listed twice", allowed="each entry once")
            )
        seen.append(identity)
