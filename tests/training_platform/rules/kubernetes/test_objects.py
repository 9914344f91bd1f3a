"""Rules of single Kubernetes objects: network policies and Secrets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import wrong
from training_platform.resources.stack_resource import UNKNOWN


@pytest.mark.parametrize(
    ("cidr", "hole", "refused"),
    [
        ("10.0.0.0/24", "10.0.0.16/28", False),
        ("10.0.0.0/24", "10.0.0.0/25", False),
        ("10.0.0.0/24", "10.0.0.0/24", True),
        ("10.0.0.0/24", "10.0.1.0/28", True),
        ("10.0.0.0/24", "10.0.0.0/23", True),
        ("10.0.0.0/24", "fd00::/64", True),
        ("fd00::/48", "fd00::/64", False),
        ("10.0.0.0/24", "all", True),
        ("all", "10.0.0.0/24", False),  # the range is what is wrong there
    ],
)
@pytest.mark.parametrize(("part", "peers"), [("ingress", "from"), ("egress", "to")])
def test_an_exception_is_a_part_of_its_range(part: str, peers: str, cidr: str, hole: str, refused: bool) -> None:
    spec = {part: [{peers: [{"podSelector": {}}, {"ipBlock": {"cidr": cidr, "except": [hole]}}]}]}
    path = f"spec.{part}[0].{peers}[1].ipBlock.except[0]"

    assert wrong("policy-exceptions", "networking.k8s.io/v1:NetworkPolicy", spec=spec) == [path] * refused


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
