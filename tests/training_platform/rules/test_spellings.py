"""Fields with several spellings: all plain fields are read in one pass, which must not change which spelling holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, cast

import pytest

from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.views.adapters import VIEWS
from training_platform.views.view import PlainField, View

NEITHER = "neither"
KNOWN = "known"
UNSAID = "unknown"


def _several() -> Iterator[tuple[type[View], str, tuple[str, ...]]]:
    for kind in VIEWS:
        for name, field in kind.FIELDS.items():
            if isinstance(field, PlainField) and len(field.paths) > 1 and not kind.EACH:
                yield kind, name, field.paths


def _written(paths: tuple[str, ...], states: tuple[str, ...]) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for number, (path, state) in enumerate(zip(paths, states, strict=True)):
        *above, last = path.split(".")
        block = inputs
        for key in above:
            block = block.setdefault(key, {})
        if state != NEITHER:
            block[last] = UNKNOWN if state == UNSAID else str(number)
    return inputs


@pytest.mark.parametrize(
    ("kind", "name", "paths"), [*_several()], ids=lambda value: getattr(value, "__name__", str(value))
)
def test_the_first_spelling_that_is_written_holds(kind: type[View], name: str, paths: tuple[str, ...]) -> None:
    for states in product((NEITHER, KNOWN, UNSAID), repeat=len(paths)):
        planned = StackResource(stack="dev", type=kind.TYPES[0], name="a", inputs=_written(paths, states))
        view = kind.viewed(planned, (), planned.inputs)
        first = next((number for number, state in enumerate(states) if state != NEITHER), None)
        if first is None:
            missing = cast("PlainField[Any]", kind.FIELDS[name]).missing
            assert view.values()[name] is missing
        elif states[first] == UNSAID:
            assert not view.known(name)
        else:
            assert str(getattr(view, name)) == str(first)


def test_some_fields_have_several_spellings() -> None:
    assert {name for _, name, _ in _several()} >= {"disk_gb", "disk_type", "local_ssd_count"}


def test_a_name_that_deployment_tells_is_that_of_the_one_dependency_of_its_type() -> None:
    inputs = {"nodeConfig": {"serviceAccount": UNKNOWN, "machineType": "a3-highgpu-8g"}}
    options = {"dependsOn": [("gcp:serviceaccount/account:Account", "nodes-account")]}
    kind = next(view for view in VIEWS if view.__name__ == "NodePoolView")
    planned = StackResource(stack="dev", type=kind.TYPES[0], name="a", inputs=inputs, options=options)
    view = kind.viewed(planned, (), inputs)

    assert view.values()["service_account"] == "nodes-account"
    assert view.values()["machine_type"] == "a3-highgpu-8g"
