"""Versions of Kubernetes' APIs that its servers have no longer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import yaml

from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.program import ObjectView, Program

_SOURCE = "Kubernetes' guide to deprecated APIs, read 2026-11-22"


@rule("removed-version", ruleset="objects", owner="kubernetes", source=_SOURCE)
def removed_version(program: Program) -> Iterator[Draft]:
    """Find an object of an API version that Kubernetes has removed."""
    for view in program.all(ObjectView):
        if not view.type.startswith("kubernetes:"):
            continue
        _, version, kind = view.type.split(":")
        kinds = _removed().get(version, {})
        last, instead = kinds.get(kind) or kinds.get("*") or (None, None)
        if last:
            message = f"{kind} of {version} was last served by Kubernetes {last}"
            yield finding(
                view, "apiVersion", message, allowed=instead or "nothing: it has no replacement", nearest=instead
            )


@cache
def _removed() -> Mapping[str, Mapping[str, tuple[str, str | None]]]:
    text = Path(__file__).with_name("removed_versions.yaml").read_text(encoding="utf-8")
    loaded: Mapping[str, Mapping[str, tuple[str, str | None]]] = yaml.load(text, Loader=yaml.CSafeLoader)  # safe
    return loaded
