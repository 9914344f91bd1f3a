"""Groups of LeaderWorkerSet and their parts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import wrong

PART = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"


@pytest.mark.parametrize(
    ("group", "right"),
    [
        ({"size": 8, "subGroupPolicy": {"subGroupSize": 4}}, True),
        ({"size": 9, "subGroupPolicy": {"subGroupSize": 4}}, True),
        ({"size": 8, "subGroupPolicy": {"subGroupSize": 3}}, False),
        ({"size": 8, "subGroupPolicy": {"subGroupSize": 16}}, False),
        ({"size": 8, "subGroupPolicy": {"subGroupSize": 0}}, False),
        ({"size": 8, "subGroupPolicy": {"subGroupSize": 4, "type": "LeaderExcluded"}}, False),
        ({"size": 9, "subGroupPolicy": {"subGroupSize": 4, "type": "LeaderExcluded"}}, True),
        ({"subGroupPolicy": {"subGroupSize": 1}}, True),
        ({"size": 8}, True),
    ],
)
def test_a_group_is_divided_into_whole_subgroups(group: dict[str, Any], right: bool) -> None:
    found = wrong(
        "lws-subgroup-size", "leaderworkerset.x-k8s.io/v1:LeaderWorkerSet", spec={"leaderWorkerTemplate": group}
    )

    assert found == ([] if right else [PART])
