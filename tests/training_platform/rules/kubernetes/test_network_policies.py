"""Network policies: exceptions lie within their range."""

from __future__ import annotations

import pytest

from tests.training_platform.rules.objects import wrong


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
