"""What a program in another language gave a component, checked by the models of stack files.

Values arrive as nested dictionaries, and every number as a float.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pulumi.errors import InputPropertiesError, InputPropertyErrorDetails
from pydantic import BaseModel, ValidationError

from components.models import Place
from training_platform.config.reading.finding import Path, dotted
from training_platform.config.reading.rejection import rejections
from training_platform.config.reading.section import Name, fits
from training_platform.config.reading.source import Source, whole_numbers
from training_platform.resources.scope import Scope, complete_labels
from training_platform.resources.spelling import camel_case

Spec = TypeVar("Spec", bound=BaseModel)


def read(name: str, args: Any, spec: type[Spec]) -> tuple[Scope, Spec]:
    """Return the scope that ``args["place"]`` says, and ``args["spec"]``.

    Raises pulumi.InputPropertiesError with everything that is wrong, by the names that the package's schema has.
    """
    sections = _sections(name, args, {"place": Place, "spec": spec})
    place, parsed = sections["place"], sections["spec"]
    assert isinstance(place, Place)
    assert isinstance(parsed, spec)
    return _scope(place), parsed


def read_place(name: str, args: Any) -> Scope:
    """Return the scope that ``args["place"]`` says, of a component without a spec; raises as ``read`` does."""
    place = _sections(name, args, {"place": Place})["place"]
    assert isinstance(place, Place)
    return _scope(place)


def refusal(*rejected: InputPropertyErrorDetails) -> InputPropertiesError:
    """Return the error that says everything that is wrong, each with its property."""
    return InputPropertiesError("its inputs are not what the component takes", list(rejected))


def _sections(name: str, args: Any, models: Mapping[str, type[BaseModel]]) -> dict[str, BaseModel]:
    rejected = [*_of_name(name)]
    sections = {}
    for key, model in models.items():
        try:
            sections[key] = model.model_validate_json(json.dumps(whole_numbers(args.get(key, {}))))
        except ValidationError as error:
            rejected += _details(error, model, (key,))
    if rejected:
        raise refusal(*rejected)
    return sections


def _of_name(name: str) -> Iterator[InputPropertyErrorDetails]:
    """Yield what is wrong with a resource's name, which becomes part of names in Google Cloud."""
    if not fits(Name, name):
        reason = (
            f"the resource's name {name!r} is not lower-case letters, digits and dashes, a letter first, at most 30"
        )
        yield {"property_path": "name", "reason": reason}


def _details(error: ValidationError, model: type[BaseModel], below: Path) -> Iterator[InputPropertyErrorDetails]:
    source = Source(file="")
    for finding in rejections(error, model, source, (), ""):
        parts = [finding.message]
        parts += [f"Allowed: {finding.allowed}"] if finding.allowed else []
        parts += [f"Nearest: {finding.nearest}"] if finding.nearest else []
        yield {"property_path": camel_case(f"{dotted(below)}.{finding.path}"), "reason": ". ".join(parts)}


def _scope(place: Place) -> Scope:
    return Scope(
        environment=place.environment,
        team=place.team,
        project=place.project,
        labels=complete_labels(place.labels, place.environment, place.team),
        deletion_protection=place.deletion_protection,
        keys=place.keys,
    )
