"""The host of the components for programs in other languages. The engine starts it: ``pulumi package add``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pulumi import ResourceOptions, RunError
from pulumi.errors import InputPropertiesError, InputPropertyErrorDetails
from pulumi.provider.experimental.analyzer import ComponentDefinition
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.provider import ConstructResult
from pulumi.provider.server import ComponentInitError, main
from pydantic import BaseModel

from training_platform.config.component_arguments import COMPONENTS as ARGUMENTS
from training_platform.config.component_arguments import flat_fields
from training_platform.modules import components
from training_platform.modules.reading import SPELLING, RejectedArguments
from training_platform.resources.spelling import camel_case

NAME: Final = "training-platform"
_NAME_OF_FIELD: Final = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")


def serve(version: str) -> None:
    """Serve the components as a package of this version until the engine ends."""
    main(Host(version), sys.argv[1:])


class Host(ComponentProvider):
    """Pulumi's component provider, extended to keep unknown keys and the reasons why values are rejected."""

    def __init__(self, version: str) -> None:
        super().__init__([getattr(components, name) for name in components.__all__], NAME, version=version)

    def map_inputs(self, inputs: Any, component_def: ComponentDefinition) -> dict[str, Any]:
        """Return inputs with Python's field names. An unknown key is unchanged, and validation rejects it later.

        The SDK drops unknown keys, stops at the first missing one, and does not rename keys below a map of maps.
        """
        fields = flat_fields(ARGUMENTS[component_def.name])
        return _respelt_fields(inputs, {name: field.annotation for name, field in fields.items()})

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: ResourceOptions | None = None
    ) -> ConstructResult:
        """Construct a component. Raises InputPropertiesError with all wrong properties, in the caller's field names."""
        token = SPELLING.set(_as_others_spell)
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            if isinstance(error.inner, RejectedArguments):
                details: list[InputPropertyErrorDetails] = [
                    {"property_path": path, "reason": reason} for path, reason in error.inner.rejected
                ]
                raise InputPropertiesError("the component rejects its arguments", details) from error
            if isinstance(error.inner, RunError):
                raise error.inner from error
            raise
        finally:
            SPELLING.reset(token)


def _respelt_fields(values: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with Python's names as keys; ``fields`` are the types of the fields, keyed by these names."""
    names = {camel_case(name): name for name in fields}
    respelt = {}
    for key, value in values.items():
        name = names.get(key, key)
        respelt[name] = _respelt(value, fields.get(name))
    return respelt


def _respelt(value: Any, annotation: Any) -> Any:
    """Return a value of a type with Python's names as keys. The keys of a map are the user's and are unchanged."""
    kind = annotation
    while get_origin(kind) in (Annotated, Union, UnionType):
        kind = next(inner for inner in get_args(kind) if inner is not NoneType)
    if isinstance(value, Mapping) and isinstance(kind, type) and issubclass(kind, BaseModel):
        return _respelt_fields(value, {name: field.annotation for name, field in kind.model_fields.items()})
    if isinstance(value, Mapping) and get_origin(kind) is dict:
        return {key: _respelt(item, get_args(kind)[1]) for key, item in value.items()}
    if isinstance(value, list) and get_origin(kind) is tuple:
        return [_respelt(item, get_args(kind)[0]) for item in value]
    return value


def _as_others_spell(text: str) -> str:
    """Return a path or sentence with the field names that languages other than Python use."""
    names = _field_names()
    return _NAME_OF_FIELD.sub(lambda word: camel_case(word[0]) if word[0] in names else word[0], text)


@cache
def _field_names() -> frozenset[str]:
    models = {model for arguments in ARGUMENTS.values() for model in _models(arguments)}
    return frozenset(name for model in models for name in model.model_fields)


def _models(annotation: Any) -> set[type[BaseModel]]:
    """Return all models in a type, including the models of its fields."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        inner = (field.annotation for field in annotation.model_fields.values())
        return {annotation}.union(*map(_models, inner))
    return set[type[BaseModel]]().union(*map(_models, get_args(annotation)))
