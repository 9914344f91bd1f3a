"""Converts the errors with which the model rejects values to findings, with the allowed and the nearest value."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path as FilePath
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import ErrorDetails

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.declaration import Draft, Rule, declare, finding, located
from training_platform.config.reading.finding import Finding, Path, UserError
from training_platform.config.reading.secrets import HIDDEN, can_be_secret
from training_platform.config.reading.section import EMAIL, FORMS, MEMBERS, Problem, Section, enumeration
from training_platform.config.reading.source import Source, SourceSection, read_source, value_at

STACK_MODEL = declare(
    "stack-model",
    "Find a field or value that the model of stack files rejects.",
    ruleset="files",
)
_Model = TypeVar("_Model", bound=BaseModel)
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
    "greater_than": ("more than", "gt"),
    "less_than": ("less than", "lt"),
}
_LENGTHS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}
_SWITCHES = {
    "true": "true",
    "false": "false",
    "yes": "true",
    "on": "true",
    "y": "true",
    "no": "false",
    "off": "false",
    "n": "false",
}
_EXAMPLES = {"topology": "a string such as 4x4"}  # of fields for which a quoted number is wrong too
_LISTS = {"command": " such as [python, train.py]", "args": " such as [--epochs=3, --lr=0.1]"}
_SIZE = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?) *(?P<unit>[GT])i?B?", re.IGNORECASE)
_DURATION = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?) *(?P<unit>s(ec(ond)?s?)?|m(in(ute)?s?)?|h(ours?|rs?)?|d(ays?)?)")
_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
_FULL_NAME = re.compile(r"projects/(?P<project>[^/]+)/([^/]+/)+(?P<name>[^/]+)")
_ADDRESS = re.compile(r"gs://(?P<bucket>[^/]+)")
_GROUPED = re.compile(r"[0-9]{1,3}([,'\u2019 ][0-9]{3})+")
_GIGAS = {"G": {"gb": 1, "gib": 1}, "T": {"gb": 1000, "gib": 1024}}  # people write TB for Filestore's TiB
_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "date_parsing": "a day such as 2026-11-01",
    "dict_type": "a mapping of names",
    "model_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
}


def validated(
    model: type[_Model],
    value: Any,
    source: Source,
    below: Path = (),
    *,
    stack: str | None = None,
    rule: Rule = STACK_MODEL,
) -> tuple[_Model | None, list[Finding]]:
    """Validate a value of a file. Return its model, or None and a finding for each rejected value.

    The value is validated as JSON, like the configuration that the engine passes to a program.
    """
    try:
        return model.model_validate_json(json.dumps(value)), []
    except ValidationError as error:
        return None, located(rejections(error, model, SourceSection(source, below, stack=stack), rule))


def rejections(
    error: ValidationError, model: type[BaseModel], section: SourceSection, rule: Rule = STACK_MODEL
) -> list[Draft]:
    """Return the draft of a finding for each rejected value in a file's section.

    A list that is too short only because of rejected entries has no finding of its own.
    """
    details = error.errors(include_url=False)
    entries = {detail["loc"][:-1] for detail in details}
    drafts = []
    misplaced = _misplaced_entries(details, model)
    for entry, home in misplaced.items():
        draft = finding(
            section,
            entry,
            f"has the fields of an entry of {home}",
            rule=rule,
            nearest=f"indent this line and the lines below it by 4 more spaces, to be in {home} of the entry above",
            spoils=(section.place(entry), section.place(entry[:-1])),
        )
        drafts.append(draft)
    for detail in details:
        if detail["type"] == "too_short" and detail["loc"] in entries:
            continue
        if any(detail["loc"][: len(entry)] == entry for entry in misplaced):
            continue
        problems = _problems(detail, model, section.source.written.get((*section.below, *detail["loc"])))
        drafts += (_rejection(problem, detail, section, rule) for problem in problems)
    return drafts


def _misplaced_entries(details: Iterable[ErrorDetails], model: type[BaseModel]) -> dict[Path, str]:
    """Return the paths of values that belong one level deeper, each with the mapping that it belongs in."""
    misplaced: dict[Path, str] = {}
    for detail in details:
        if detail["type"] == "missing":
            entry = detail["loc"][:-1]
            home = _home_inside(_section_at(model, entry), detail["input"])
            if home:
                misplaced.setdefault(entry, home)
    return misplaced


def _rejection(problem: Problem, detail: ErrorDetails, section: SourceSection, rule: Rule) -> Draft:
    path = problem.path
    missing = detail["type"] == "missing"
    later = _later_keys(section.source, (*section.below, *path)) if path and _is_empty_section(detail) else []
    nearest = problem.nearest
    spoiled: list[object] = []
    if missing:
        pass
    elif detail["type"] == "extra_forbidden" or "[key]" in detail["loc"]:
        spoiled = [path[-1], nearest or path[-1]]
    elif nearest and path:
        spoiled = [nearest]
    else:
        spoiled = [*later]
    if later:
        column = section.source.position((*section.below, *path)).column + 1
        nearest = f"indent the lines below that belong to this section by {column} spaces"
    return finding(
        section,
        path,
        problem.message,
        rule=rule,
        allowed=problem.allowed,
        nearest=nearest,
        spoils=(section.place((*path[:-1], str(name))) for name in spoiled),
        rests_on=(section.place(path[:depth]) for depth in range(len(path) - 1 + missing, 0, -1)),
    )


def read_section(path: FilePath, model: type[_Model]) -> _Model:
    """Read a YAML file that consists of one section. Raises UnreadableError, or UserError with every finding."""
    source = read_source(path.absolute(), str(path))
    section, findings = validated(model, {} if source.value is None else source.value, source)
    if section is None:
        raise UserError("\n".join(map(str, findings)))
    return section


def _is_empty_section(detail: ErrorDetails) -> bool:
    return detail["input"] is None and detail["type"] in ("dict_type", "model_type")


def _later_keys(source: Source, path: Path) -> list[str]:
    """Return the keys that follow the last key of a path in its mapping, since they may belong inside it."""
    keys = list(value_at(source.value, path[:-1]) or ())
    return keys[keys.index(path[-1]) + 1 :] if path[-1] in keys else []


def right_part(value: Any, model: type[_Model]) -> _Model | None:
    """Return the model of a value without its rejected fields, or None if it is still rejected."""
    accepted_part = copy.deepcopy(value)
    for _ in range(3):  # a section may be rejected for lack of a dropped field
        try:
            return model.model_validate_json(json.dumps(accepted_part))
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                _drop(accepted_part, detail["loc"][:-1] if detail["type"] == "missing" else detail["loc"])
    return None


def _drop(value: Any, path: Path) -> None:
    if not path:
        return
    head, *remaining_path = path
    inner = value.get(head) if isinstance(value, dict) else None
    if remaining_path and isinstance(inner, dict):
        _drop(inner, tuple(remaining_path))
    elif isinstance(value, dict):
        value.pop(head, None)


def _problems(detail: ErrorDetails, model: type[BaseModel], written: str | None) -> Iterator[Problem]:
    """Yield the problems in a validation error, with paths relative to the model's section.

    ``written`` is the original text of a number.
    """
    context: Mapping[str, Any] = detail.get("ctx", {})
    section = tuple(part for part in detail["loc"] if part != "[key]")
    path = section + tuple(context.get("at", ()))
    if can_be_secret(path) and (detail["type"] in _EXPECTED or "string" in detail["type"]):
        expected = _EXPECTED.get(detail["type"], "in the right form")
        allowed = expected
        if detail["type"] == "string_type":
            allowed += " (in quotes)"
        if expected == "a list":
            allowed += _LISTS.get(str(path[-1]), "")
        yield Problem(path, f"{HIDDEN} is not {expected}", allowed=allowed, nearest=None)
    else:
        message, allowed_instead, nearest = _explain(detail, context, model, path, written)
        yield Problem(path, message, allowed=allowed_instead, nearest=nearest)
    for problem in context.get("more", ()):
        yield problem._replace(path=section + problem.path)


def _explain(
    detail: ErrorDetails, context: Mapping[str, Any], model: type[BaseModel], path: Path, written: str | None
) -> tuple[str, str | None, str | None]:
    kind = detail["type"]
    value = detail["input"]
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    if isinstance(value, dict) and "secure" in value:
        text = HIDDEN  # encrypted by the engine, and still nobody's to repeat
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    if kind == "extra_forbidden":
        return _unknown_field(_section_at(model, path[:-1]), str(path[-1]), value)
    if kind == "missing":
        return "is missing", _described(model, path), None
    if kind == "literal_error":
        allowed = [text.strip("'") for text in str(context["expected"]).replace(" or ", ", ").split(", ")]
        return f"{shown} is not one of the allowed values", ", ".join(allowed), _nearest_choice(value, allowed)
    if kind in _BOUNDS:
        return _out_of_bounds(kind, value, context, shown)
    if kind in _LENGTHS:
        word, limit = _LENGTHS[kind]
        return f"has {len(value)} entries", f"{word} {context[limit]}", None
    if kind in _EXPECTED:
        return _wrong_type(kind, value, path, written or shown, _section_at(model, path))
    if kind == "string_pattern_mismatch":
        section = _section_at(model, path) if "[key]" in detail["loc"] else None
        return _malformed(str(value), shown, context["pattern"], section)
    if kind == "value_error":
        return str(context["error"]), None, None
    return detail["msg"], context.get("allowed"), context.get("nearest")


def _out_of_bounds(kind: str, value: object, context: Mapping[str, Any], shown: str) -> tuple[str, str, str]:
    """Explain a number that is out of bounds: the message, the allowed values, and the nearest valid number."""
    words, key = _BOUNDS[kind]
    bound = context[key]
    nearest = bound
    if key == "ge" and type(value) is int and value < -1:  # -1 means none or all to many programs
        nearest = max(-value, bound)
    elif type(value) is int:
        nearest = bound + {"lt": -1, "gt": 1}.get(key, 0)
    return f"is {shown}", f"{words} {bound}", str(nearest)


def _unknown_field(section: type[Section] | None, name: str, value: object) -> tuple[str, str | None, str | None]:
    message = "is not a field of this section"
    if section is None:
        return message, "", None
    if name in section.REMOVED:
        return "is no longer a field of this section", section.REMOVED[name], None
    home = _home_inside(section, value)
    if home:
        nearest: str | None = f"move the line below {home}, and indent it and the lines below it by 2 more spaces"
    else:
        nearest = section.ELSEWHERE.get(name) or _in_sections(section, name) or find_nearest(name, section.model_fields)
    return message, enumeration(section.model_fields, max_names=20), nearest


def _home_inside(section: type[Section] | None, value: object) -> str | None:
    """Return the name of the mapping to which a value belongs as an entry, such as ``node_pools`` for a pool."""
    if section is None or not isinstance(value, dict):
        return None
    for name, field in section.model_fields.items():
        inner = _unwrap(field.annotation)
        entry = _unwrap(get_args(inner)[1]) if get_origin(inner) is dict else None
        if isinstance(entry, type) and issubclass(entry, Section):
            required = {key for key, spec in entry.model_fields.items() if spec.is_required()}
            if required and required <= set(value) <= set(entry.model_fields):
                return name
    return None


def _in_sections(section: type[Section], name: str) -> str | None:
    """Return the paths of the fields in nested sections that have the given name, such as ``gke.max_run_hours``."""
    homes = []
    for home, field in section.model_fields.items():
        inner = _unwrap(field.annotation)
        if isinstance(inner, type) and issubclass(inner, Section) and name in inner.model_fields:
            homes.append(f"{home}.{name}")
    return " or ".join(homes) or None


def _nearest_choice(value: Any, allowed: Sequence[str]) -> str | None:
    """Return the most similar choice. For a number, return the closest one."""
    if isinstance(value, int) and all(text.isdecimal() for text in allowed):
        return min(allowed, key=lambda text: abs(int(text) - value))
    return find_nearest(str(value), allowed)


def _malformed(value: str, shown: str, pattern: str, section: type[Section] | None) -> tuple[str, str, str | None]:
    """Explain a string that does not match a pattern, or that is the name of a misplaced field."""
    form = FORMS.get(pattern, f"text that matches {pattern}")
    if re.search(re.sub(r"\{0,\d+\}", "*", pattern), value):
        return f"{shown} has {len(value)} characters", form, None
    if section and value in section.model_fields:
        deeper = "indent this line and the lines below it by 2 more spaces"
        return "is a field, but here a section needs a name", form, deeper
    if pattern == EMAIL and value.startswith("group:"):
        return f"{shown} is a group", "the address with which a person signs in, such as ada@example.com", None
    if (full_name := _FULL_NAME.fullmatch(value)) and re.match(pattern, full_name["name"]):
        nearest = f"{full_name['name']}, and the additional field project: {full_name['project']}"
        return f"{shown} is a full resource name", form, nearest
    if (address := _ADDRESS.match(value)) and re.match(pattern, address["bucket"]):
        return f"{shown} is an address", form, address["bucket"]
    kind, _, email = value.rpartition(":")
    group = f"{find_nearest(kind, MEMBERS) or 'group'}:{email.casefold()}"  # of an address without its kind
    plain = re.sub("[^a-z0-9]+", "-", value.casefold()).strip("-")
    candidates = (group, value.casefold(), plain)
    matching = next((candidate for candidate in candidates if re.match(pattern, candidate)), None)
    return f"{shown} is not in the right form", form, matching


def _wrong_type(
    kind: str, value: object, path: Path, shown: str, section: type[Section] | None
) -> tuple[str, str, str | None]:
    """Explain a value of the wrong type: the message, the expected type, and the value in that type."""
    expected = _EXPECTED[kind]
    field = str(path[-1]) if path else ""
    if value is None:
        return "has no value", expected, None
    if isinstance(value, (dict, list)):
        return f"is {'a mapping' if isinstance(value, dict) else 'a list'} and not {expected}", expected, None
    message = f"{shown} is not {expected}"
    if kind == "model_type" and section:
        required = [name for name, spec in section.model_fields.items() if spec.is_required()]
        return message, expected, f"{{{required[0]}: {value}}}" if len(required) == 1 else None
    if kind == "string_type" and field == "project":
        return f"{shown} is a project number", "the project ID: 6 to 30 lower-case letters, digits and dashes", None
    if kind == "string_type":
        return message, _EXAMPLES.get(field, f"{expected} (in quotes)"), None if field in _EXAMPLES else f'"{shown}"'
    text = str(value).strip()
    if expected == "an integer" and (integer := _nearly_integer(text, value, field, path)):
        return message, *integer
    if kind in ("tuple_type", "list_type") and isinstance(value, str):
        return message, expected, f"[{', '.join(text.split())}]"
    if kind == "bool_type":
        return message, expected, {field: "true", **_SWITCHES}.get(text.casefold())
    return message, expected, None


def _nearly_integer(text: str, value: object, field: str, path: Path) -> tuple[str, str | None] | None:
    """For a string or fraction that stands for an integer, return the allowed values and this integer."""
    expected = "an integer"
    unit = field.rpartition("_")[2]
    if isinstance(value, float):
        is_share = 0 < value <= 1 and any("percent" in str(part) for part in path)
        if unit in _SECONDS:
            return f"{expected}, of {unit}", str(math.ceil(value))
        return (f"{expected}, of percent", f"{100 * value:g}") if is_share else None
    if (length := _DURATION.fullmatch(text)) and unit in _SECONDS:
        seconds = float(length["number"]) * next(_SECONDS[name] for name in _SECONDS if name[0] == length["unit"][0])
        return f"{expected}, of {unit}", str(max(1, math.ceil(seconds / _SECONDS[unit])))
    if text.isascii() and text.isdecimal():
        return f"{expected} (without quotes)", text
    if _GROUPED.fullmatch(text):
        return f"{expected}, without commas between the digits", re.sub(r"\D", "", text)
    if (amount := _SIZE.fullmatch(text)) and unit in ("gb", "gib"):
        number = float(amount["number"]) * _GIGAS[amount["unit"].upper()][unit]
        nearest = f"{number:g}" if number.is_integer() else None
        return f"{expected}, without a unit: {field} is in {unit.upper().replace('I', 'i')}", nearest
    return None


def choices(model: type[BaseModel], path: Path) -> tuple[Any, ...]:
    """Return the possible values of the field at ``path``, or an empty tuple if it is not a choice."""
    annotation = reduce(_step, path, model)
    while get_origin(annotation) is not Literal:
        inner = [argument for argument in get_args(annotation) if argument is not type(None)]
        if not inner:
            return ()
        annotation = inner[0]
    return get_args(annotation)


def _section_at(model: type[BaseModel], path: Path) -> type[Section] | None:
    """Return the section at ``path``, found through the model's annotations."""
    annotation = _unwrap(reduce(_step, path, model))
    return annotation if isinstance(annotation, type) and issubclass(annotation, Section) else None


def _described(model: type[BaseModel], path: Path) -> str | None:
    """Return the description of the field at ``path``."""
    fields = getattr(_unwrap(reduce(_step, path[:-1], model)), "model_fields", {})
    description = fields[str(path[-1])].description if path and str(path[-1]) in fields else None
    return f"the field with its value: {description.removesuffix('.')}" if description else None


def _step(annotation: Any, part: str | int) -> Any:
    annotation = _unwrap(annotation)
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        annotation = annotation.model_fields["root"].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(str(part))
        return field.annotation if field else None
    arguments = get_args(annotation)
    if get_origin(annotation) is dict:
        return arguments[1]
    return arguments[0] if arguments else None


def _unwrap(annotation: Any) -> Any:
    """Return the type without ``| None`` and ``Annotated``."""
    while annotation is not None:
        inner = [argument for argument in get_args(annotation) if argument is not type(None)]
        origin = get_origin(annotation)
        if origin in (dict, tuple, list) or not inner or isinstance(annotation, type):
            return annotation
        annotation = inner[0]
    return None
