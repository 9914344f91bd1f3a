"""Secrets of known types have the keys of those."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import wrong
from training_platform.resources.planned import UNKNOWN


@pytest.mark.parametrize(
    ("inputs", "count"),
    [
        ({"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ=="}, "stringData": {"tls.key": "a"}}, 0),
        ({"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ=="}}, 1),
        ({"type": "kubernetes.io/tls", "data": UNKNOWN}, 0),
        ({"type": "kubernetes.io/tls"}, 2),
        ({"type": "kubernetes.io/basic-auth", "stringData": {"password": "a"}}, 0),
        ({"type": "kubernetes.io/basic-auth", "stringData": {"user": "a"}}, 1),
        ({"type": "Opaque"}, 0),
        ({"type": UNKNOWN}, 0),
        ({}, 0),
    ],
)
def test_a_secret_of_a_known_type_has_its_keys(inputs: dict[str, Any], count: int) -> None:
    assert wrong("secret-keys", "core/v1:Secret", **inputs) == ["stringData"] * count
