"""Policies of single resources that say which resources they are about, so that no other is read for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulumi_policy import ResourceValidationPolicy

Concerns = Callable[[str, str], bool]


class ResourcePolicy(ResourceValidationPolicy):
    """A policy of single resources; ``concerns`` says by type and URN whether it has anything to look at."""

    def __init__(self, *args: Any, concerns: Concerns, **more: Any) -> None:
        super().__init__(*args, **more)
        self.concerns = concerns
