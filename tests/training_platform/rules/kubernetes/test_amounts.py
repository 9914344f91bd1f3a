"""Sizes of volumes, quotas of namespaces and their limits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import wrong


@pytest.mark.parametrize(("size", "right"), [("1Gi", True), ("0", False), ("-1Gi", False)])
def test_a_volume_has_a_size(size: str, right: bool) -> None:
    claim = wrong("volume-amount", "core/v1:PersistentVolumeClaim", spec={"resources": {"requests": {"storage": size}}})
    volume = wrong("volume-amount", "core/v1:PersistentVolume", spec={"capacity": {"storage": size}})

    assert claim == ([] if right else ["spec.resources.requests.storage"])
    assert volume == ([] if right else ["spec.capacity.storage"])


def test_a_quota_is_not_below_0() -> None:
    assert wrong("quota-amount", "core/v1:ResourceQuota", spec={"hard": {"pods": "0"}}) == []
    assert wrong("quota-amount", "core/v1:ResourceQuota", spec={"hard": {"pods": "-1"}}) == ["spec.hard"]


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"scopes": ["BestEffort"], "hard": {"pods": "4"}}, []),
        ({"scopes": ["BestEffort"], "hard": {"requests.cpu": "4"}}, ["spec.scopes"]),
        ({"scopes": ["NotBestEffort"], "hard": {"requests.cpu": "4", "requests.nvidia.com/gpu": "8"}}, []),
        ({"scopes": ["Terminating"], "hard": {"services": "4"}}, ["spec.scopes"]),
        ({"scopes": ["Terminating", "NotTerminating"], "hard": {"pods": "4"}}, ["spec.scopes"]),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "BestEffort"}]}, "hard": {"cpu": "1"}},
            ["spec.scopeSelector.matchExpressions[0].scopeName"],
        ),
        ({"hard": {"services": "4"}}, []),
    ],
)
def test_a_scope_counts_what_its_quota_limits(spec: dict[str, Any], paths: list[str]) -> None:
    assert wrong("quota-scope", "core/v1:ResourceQuota", spec=spec) == paths


@pytest.mark.parametrize(
    ("limit", "path"),
    [
        ({"defaultRequest": {"cpu": "2"}, "default": {"cpu": "2"}, "max": {"cpu": "2"}}, None),
        ({"defaultRequest": {"cpu": "3"}, "default": {"cpu": "2"}}, "spec.limits[0].defaultRequest"),
        ({"default": {"cpu": "3"}, "max": {"cpu": "2"}}, "spec.limits[0].default"),
    ],
)
def test_limits_stand_in_order(limit: dict[str, Any], path: str | None) -> None:
    spec = {"limits": [{"type": "Container", **limit}]}

    assert wrong("limit-range", "core/v1:LimitRange", spec=spec) == [path] * bool(path)


def test_a_type_has_one_limit() -> None:
    spec = {"limits": [{"type": "Container"}, {"type": "Container"}]}

    assert wrong("limit-range", "core/v1:LimitRange", spec=spec) == ["spec.limits[1].type"]
