"""Validates the arguments of a component with the models of stack files before anything is registered."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

import pulumi
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from training_platform.catalog.nearest import find_nearest
from training_platform.config.component_arguments import Arguments, FromDeployment, flat_fields
from training_platform.config.reading.declaration import as_text
from training_platform.config.reading.finding import Path, dotted
from training_platform.config.reading.rejection import rejections
from training_platform.config.reading.section import FORMS, NAME, Name, enumeration, fits
from training_platform.config.reading.source import Source, SourceSection, whole_numbers

SPELLING: ContextVar[Callable[[str], str]] = ContextVar("SPELLING", default=str)
"""Converts field names in a path or sentence to those of the caller's language; unchanged for Python."""
_Arguments = TypeVar("_Arguments", bound=Arguments)
_PLACEHOLDER = "known-once-deployed"


class Rejection(NamedTuple):
    """A rejected argument: its path, and a sentence with the error, the allowed values and the nearest one."""

    path: str
    reason: str


class RejectedArguments(pulumi.RunError):
    """The arguments that a component's models reject, all in one error, which is shown without a traceback."""

    def __init__(self, component: str, name: str, rejected: list[Rejection]) -> None:
        self.rejected = rejected
        lines = [f"{path}: {reason}" for path, reason in rejected]
        super().__init__(f"{component} {name}:\n" + "\n".join(f"  {line}" for line in lines))


def read(component: str, name: str, args: Mapping[str, Any], model: type[_Arguments]) -> _Arguments:
    """Return the arguments of a component as their model. Fields marked as deployment results may be outputs.

    ``name`` is the component's name, which is part of names in Google Cloud. Raises RejectedArguments.
    """
    fields = flat_fields(model)
    deployed = {key for key, field in fields.items() if _is_marked(field)}
    outputs = {key: value for key, value in args.items() if key in deployed and _is_output(value)}
    plain = {key: _PLACEHOLDER if key in outputs else value for key, value in args.items() if value is not None}
    # An output below is refused first: nothing can validate it.
    rejected = list(_refused_values(plain))
    if not rejected:
        rejected = [*_wrong_name(name), *_unknown(plain, list(fields))]
        nested = _nested(whole_numbers(plain), model)
        try:
            arguments = model.model_validate_json(json.dumps(nested))
        except ValidationError as error:
            rejected += _rejections(error, model)
    if rejected:
        respelt = SPELLING.get()
        raise RejectedArguments(component, name, [Rejection(*map(respelt, problem)) for problem in rejected])
    return arguments.model_copy(update=outputs)


def _is_marked(field: FieldInfo) -> bool:
    return any(isinstance(mark, FromDeployment) for mark in field.metadata)


def _is_output(value: Any) -> bool:
    return isinstance(value, pulumi.Output | Awaitable)


def _refused_values(value: Any, path: Path = ()) -> Iterator[Rejection]:
    """Yield values that are unknown but decide which resources exist, and values that no stack file could contain."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _refused_values(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _refused_values(item, (*path, index))
    elif _is_output(value):
        message = (
            "is an output, whose value is known only during a deployment, but it determines which resources exist. "
        )
        yield Rejection(
            dotted(path), f"{message}Allowed: a plain value, such as a value of the program's configuration"
        )
    elif not isinstance(value, str | int | float | bool | None):
        message = f"is of type {type(value).__name__}"
        yield Rejection(dotted(path), f"{message}. Allowed: a string, a number, true or false, a list, a mapping")


def _wrong_name(name: str) -> Iterator[Rejection]:
    if not fits(Name, name):
        yield Rejection("name", f"the resource's name {name!r} is not in the right form. Allowed: {FORMS[NAME]}")


def _unknown(args: Mapping[str, Any], fields: list[str]) -> Iterator[Rejection]:
    for key in args:
        if key not in fields:
            nearest = find_nearest(key, fields)
            hint = f". Nearest: {nearest}" if nearest else ""
            allowed = enumeration(fields, max_names=len(fields))
            yield Rejection(key, f"is not an argument of this component. Allowed: {allowed}{hint}")


def _nested(args: Mapping[str, Any], model: type[Arguments]) -> dict[str, Any]:
    """Return the arguments as the model nests them, with the fields of a stack file's section below ``spec``."""
    fields = flat_fields(model)
    direct = {key: value for key, value in args.items() if key in fields and key in model.model_fields}
    if "spec" not in model.model_fields:
        return direct
    return {**direct, "spec": {key: value for key, value in args.items() if key in fields and key not in direct}}


def _rejections(error: ValidationError, model: type[Arguments]) -> Iterator[Rejection]:
    for draft in rejections(error, model, SourceSection(Source(file=""))):
        assert not isinstance(draft.field, str), "the model's errors have paths"
        path = draft.field[1:] if draft.field[:1] == ("spec",) else draft.field
        parts = [draft.message]
        if draft.allowed is not None:
            parts.append(f"Allowed: {as_text(draft.allowed, ', ')}")
        if draft.nearest is not None:
            parts.append(f"Nearest: {as_text(draft.nearest, '; or ')}")
        yield Rejection(dotted(path), ". ".join(parts))
