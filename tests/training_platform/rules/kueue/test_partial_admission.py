"""Annotations of Jobs: a least parallelism below their own, and completions that follow it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import JOB, wrong
from training_platform.resources.planned import UNKNOWN

LEAST, EQUAL = "job-min-parallelism", "job-completions-equal-parallelism"
INDEXED = {"completionMode": "Indexed", "parallelism": 4.0, "completions": 4.0}


@pytest.mark.parametrize(
    ("name", "value", "spec", "path"),
    [
        (LEAST, "3", {"parallelism": 4.0}, None),
        (LEAST, "4", {"parallelism": 4.0}, "metadata.annotations"),
        (LEAST, "0", {"parallelism": 4.0}, "metadata.annotations"),
        (LEAST, "some", {"parallelism": 4.0}, "metadata.annotations"),
        (LEAST, "2", {"parallelism": 4.0, "completions": 2.0}, "metadata.annotations"),
        (LEAST, "1", {}, "metadata.annotations"),
        (LEAST, "9", {"parallelism": UNKNOWN}, None),
        (LEAST, UNKNOWN, {"parallelism": 4.0}, None),
        (EQUAL, "true", INDEXED, None),
        (EQUAL, "true", {**INDEXED, "completions": 8.0}, "spec.completions"),
        (EQUAL, "true", {"completionMode": "Indexed", "parallelism": 4.0}, "spec.completions"),
        (EQUAL, "true", {"completionMode": "Indexed", "completions": 4.0}, "spec.completions"),
        (EQUAL, "true", {**INDEXED, "completionMode": "NonIndexed"}, "metadata.annotations"),
        (EQUAL, "false", {**INDEXED, "completions": 8.0}, None),
    ],
)
def test_fewer_pods_are_fewer_and_completions_follow(
    name: str, value: object, spec: dict[str, Any], path: str | None
) -> None:
    metadata = {"annotations": {f"kueue.x-k8s.io/{name}": value}}

    assert wrong("partial-admission", JOB, metadata=metadata, spec=spec) == [path] * bool(path)
