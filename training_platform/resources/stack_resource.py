"""A resource as a program registers it with Pulumi: planned by our own code, or passed to a policy pack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from training_platform.config.reading.unknown import UNKNOWN

__all__ = ["KUBERNETES_PROVIDER", "PROVIDER_TYPES", "UNKNOWN", "ResourceKey", "StackResource"]

PROVIDER_TYPES = "pulumi:providers:"
"""The beginning of a provider's type, before the name of its package."""
KUBERNETES_PROVIDER = f"{PROVIDER_TYPES}kubernetes"

ResourceKey = tuple[str, str]
"""The type and the name of a resource, which are unique in its stack."""


@dataclass(kw_only=True)  # not frozen: a fleet has many, and nobody changes one
class StackResource:
    """A planned resource, with the provider's names (type ``gcp:container/nodePool:NodePool``, inputs in camelCase).

    - Integers in ``inputs`` may be floats. A value that is not known yet is ``UNKNOWN``.
    - ``parent`` is the parent's type and name.
    - ``options`` are the options of the registration: ``protect``, ``ignoreChanges``, ``deleteBeforeReplace``,
      ``customTimeouts``, ``retainOnDelete``, ``dependsOn`` (type and name pairs), ``provider``.
    - ``inputs_from`` lists the resources whose outputs each input contains, if known.
    - ``own_line`` is the line of the organisation's own code that adds the resource, None for any other resource.
    """

    stack: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    custom: bool = True
    parent: ResourceKey | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    inputs_from: Mapping[str, tuple[ResourceKey, ...]] = field(default_factory=dict)
    own_line: int | None = None

    @property
    def key(self) -> ResourceKey:
        """The type and the name of the resource, which are unique in its stack."""
        return self.type, self.name
