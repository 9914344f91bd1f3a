"""How the inputs of one block go together: which must be there, which exclude each other, and in what order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from training_platform.resources.planned import UNKNOWN
from training_platform.rules.documents.problems import Problem, Report, Where, a_written, missing, refused
from training_platform.rules.documents.scalars import FORMS, measured

Shape = Mapping[str, Any]
Check = Callable[[Mapping[str, Any], Where, Report], None]


def compared(shape: Shape) -> Check | None:
    """Return what judges the inputs of a block by each other; None where nothing is said of them."""
    required, orders, disjoint = shape.get("required", ()), shape.get("orders", ()), shape.get("disjoint", ())
    groups = [(frozenset(group["of"]).isdisjoint, group.get("least", 0), group) for group in shape.get("groups", ())]
    cases = [(_always_in(case["when"]), case) for case in shape.get("cases", ())]
    if not (required or groups or cases or orders or disjoint):
        return None

    def check(value: Mapping[str, Any], where: Where, report: Report) -> None:
        for key in filter(lambda key: value.get(key) is None, required):
            report(missing(where, key))
        for has_none, least, group in groups:
            if least or not has_none(value):
                _counted(value, group, where, report)
        for keys, case in cases:
            if value.keys() >= keys and all(
                _is_one(_below(value, key), values) for key, values in case["when"].items()
            ):
                _in_case(value, case, where, report)
        for order in orders:
            _ordered(value, order, where, report)
        if disjoint:
            _in_both(value, disjoint, where, report)

    return check


def _always_in(when: Shape) -> frozenset[str]:
    """Return the inputs without which a block is not the case: most blocks have none of them."""
    return frozenset(key.partition(".")[0] for key, values in when.items() if None not in values)


def _below(value: Any, path: str) -> Any:
    """Return an input by its path; of a list the first one that an entry has."""
    if "." not in path:
        return value.get(path)
    for key in path.split("."):
        if isinstance(value, list):
            values = (entry.get(key) for entry in value if isinstance(entry, Mapping))
            value = next((inner for inner in values if inner is not None), None)
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _is_one(value: Any, values: Sequence[Any]) -> bool:
    """Whether a value is one of a case: ``<written>`` is any but an empty one, and null one that is not there."""
    return value in values or ("<written>" in values and value is not UNKNOWN and bool(value))


def _counted(value: Mapping[str, Any], group: Shape, where: Where, report: Report) -> None:
    """Report a block that has fewer or more of some inputs than it may."""
    there = [name for name in group["of"] if value.get(name) not in (None, [])]
    names = ", ".join(group["of"])
    if len(there) < group.get("least", 0):
        least = group["least"] if group["least"] > 1 else "one"
        message = f"{' and '.join(there) or 'none'} of {names} is written"
        report(Problem("required", (where, group["of"][0]), message, f"{least} of {names}"))
        return
    known = [name for name in there if value[name] is not UNKNOWN]
    if len(known) > group.get("most", len(known)):
        message = f"{' and '.join(known)} are written together"
        report(Problem("required", (where, known[-1]), message, f"one of {names}"))


def _in_case(value: Mapping[str, Any], case: Shape, where: Where, report: Report) -> None:
    """Report what a block has or has not beside the values that make the case."""
    why = " and ".join(f"{key} is {_said(value, key)}" for key in case["when"])
    beside = f", and {why}" if why else ""
    for key in case.get("required", ()):
        if not _below(value, key) and _below(value, key) != 0:
            message = f"{key} is not written{beside}"
            report(Problem("required", (where, key), message, a_written(key)))
    for key in case.get("without", ()):
        if _is_one(_below(value, key), ["<written>"]):
            message = f"{key} is written{beside}"
            report(Problem("required", (where, key), message, f"no {key}"))
    names = case.get("some", ())
    if names and not any(_below(value, name) for name in names):
        message = f"none of {', '.join(names)} is written{beside}"
        report(Problem("required", (where, names[0]), message, f"one of {', '.join(names)}"))
    _listed(value, case, why, where, report)
    _valued(value, case, f"and {why}" if why else "which is refused", where, report)


def _valued(value: Mapping[str, Any], case: Shape, why: str, where: Where, report: Report) -> None:
    """Report inputs with values that a case does not allow, of another form, or out of its bounds."""
    only, doubted = case.get("only", {}), case.get("doubted", {})
    for key, values in (*only.items(), *doubted.items()):
        found = _below(value, key)
        if found not in (None, UNKNOWN) and not any(_is_like(found, allowed) for allowed in values):
            problem = refused("enum", (where, key), found, why, ", ".join(map(str, values)))
            report(problem if key in only else problem._replace(severity="warning"))
    for key, pattern in case.get("like", {}).items():
        found = _below(value, key)
        if isinstance(found, str) and not re.search(pattern, found):
            report(refused("format", (where, key), found, why, f"a text that matches {pattern}"))
    for key, values in case.get("never", {}).items():
        found = _below(value, key)
        if found is not UNKNOWN and any(_is_like(found, refused_value) for refused_value in values):
            report(refused("range", (where, key), found, why, "another value of one of them"))
    for key, bounds in case.get("within", {}).items():
        found = _below(value, key)
        (kind, size), (low_kind, low), (_, high) = map(measured, (found, *bounds))
        if kind == low_kind and not low <= size <= high:
            report(refused("range", (where, key), found, why, f"{bounds[0]} to {bounds[1]}"))


def _in_both(value: Mapping[str, Any], pairs: Sequence[Sequence[str]], where: Where, report: Report) -> None:
    """Report entries of a list, or keys of a mapping, that a second one has too."""
    for one, other in pairs:
        first, second = _below(value, one), value.get(other)
        if not (isinstance(first, (list, Mapping)) and isinstance(second, (list, Mapping))):
            continue
        for index, item in enumerate(second):
            if item is not UNKNOWN and item in list(first):  # a key or entry of a wrong type has no hash
                at, message = item if isinstance(second, Mapping) else index, f"{item} is in {one}, too"
                report(Problem("range", ((where, other), at), message, f"what is not in {one}"))


def _listed(value: Mapping[str, Any], case: Shape, why: str, where: Where, report: Report) -> None:
    """Report lists with more entries than a case has, or with entries of another form."""
    for key, most in case.get("few", {}).items():
        if isinstance(found := value.get(key), list) and len(found) > most:
            message = f"there are {len(found)} {key}, and {why}"
            report(Problem("range", (where, key), message, f"{most} of {key}"))
    for key, form in case.get("each", {}).items():
        is_right, example = FORMS[form]
        for index, item in enumerate(found if isinstance(found := value.get(key), list) else ()):
            if isinstance(item, str) and not is_right(item):
                report(refused("format", ((where, key), index), item, f"and {why}", example))


def _is_like(value: Any, allowed: Any) -> bool:
    return value == allowed or (isinstance(value, str) and isinstance(allowed, str) and fnmatchcase(value, allowed))


def _said(value: Mapping[str, Any], key: str) -> str:
    found = _below(value, key)
    return "not written" if found is None else str(found) if isinstance(found, (str, int, float)) else "written"


def _ordered(value: Mapping[str, Any], order: Sequence[Any], where: Where, report: Report) -> None:
    """Report two inputs of which the first is above the second, or with ``<`` equal to it.

    With ``or 0`` nothing is said beside a second one of 0, and a number is the second one where it is not written.
    """
    small, large, *how = order
    first = _below(value, small)
    if first is None:
        return
    strictly, found = "<" in how, [first, _below(value, large)]
    if found[1] is None:
        found[1] = next((number for number in how if isinstance(number, int)), None)
    kinds, sizes = zip(*map(measured, found), strict=True)
    if kinds[0] is None or kinds[0] != kinds[1] or sizes[0] < sizes[1] or (sizes[0] == sizes[1] and not strictly):
        return
    if "or 0" in how and sizes[1] == 0:
        return
    why = f"and {large} is {found[1]}"
    report(refused("range", (where, small), found[0], why, f"{'below' if strictly else 'at most'} {found[1]}"))


def repeated(value: Any, keys: list[str], where: Where, report: Report) -> None:
    """Report entries that are told apart by their keys, or by themselves where there are none, and are not."""
    seen: list[Any] = []
    for index, item in enumerate(value):
        own = [_below(item, key) for key in keys] if keys and isinstance(item, Mapping) else [item]
        if own in seen and UNKNOWN not in own and own not in ([None], [""]):
            name = ", ".join(str(part) for part in own if part is not None)
            report(Problem("range", (where, index), f"{name} is listed twice", "each entry once"))
        seen.append(own)


def unique(keys: list[str]) -> Callable[[Any, Where, Report], None]:
    """Return what finds two entries of a list with the same keys, beside those that tell them apart."""
    return lambda value, where, report: repeated(value, keys, where, report)


def apart(pairs: Sequence[Sequence[str]]) -> Callable[[Any, Where, Report], None]:
    """Return what finds two entries of a list that exclude each other."""

    def check(value: Any, where: Where, report: Report) -> None:
        for one, other in pairs:
            if one in value and other in value:
                message = f"there are both {one} and {other}"
                report(Problem("range", (where, value.index(other)), message, f"{one} or {other}"))

    return check


def alone(entry: str) -> Callable[[Any, Where, Report], None]:
    """Return what finds a list that has others beside the entry which stands for all."""

    def check(value: Any, where: Where, report: Report) -> None:
        if entry in value and len(value) > 1:
            report(Problem("range", where, f"there are others beside {entry}", f"{entry} alone"))

    return check


def holding(wanted: str) -> Callable[[Any, Where, Report], None]:
    """Return what finds a list that has entries, and not the one that all others need."""

    def check(value: Any, where: Where, report: Report) -> None:
        if value and wanted not in value and UNKNOWN not in value:
            report(Problem("required", where, f"{wanted} is not among {', '.join(map(str, value))}", wanted))

    return check


LISTS: Final[Mapping[str, Callable[[Any], Callable[[Any, Where, Report], None]]]] = {
    "alone": alone, "apart": apart, "holds": holding, "unique": unique,
}  # fmt: skip
"""What is said of a list as a whole beside its size, each with what makes its check."""
