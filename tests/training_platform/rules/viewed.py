"""Views of one planned resource, for the tests of how inputs are read."""

from __future__ import annotations

from typing import Any, TypeVar

from training_platform.resources.stack_resource import StackResource
from training_platform.rules import View, views_of_plan

V = TypeVar("V", bound=View)


def views(kind: type[V], resource_type: str, options: Any = None, **inputs: Any) -> list[V]:
    """Return the views of a kind of a resource with these inputs."""
    planned = StackResource(stack="dev", type=resource_type, name="thing", inputs=inputs, options=options or {})
    return [view for view in views_of_plan([planned]) if isinstance(view, kind)]


def one(kind: type[V], resource_type: str, options: Any = None, **inputs: Any) -> V:
    """Return the only view of a kind of a resource with these inputs."""
    (view,) = views(kind, resource_type, options, **inputs)
    return view
