"""What pods ask of a topology: one of them, and slices with their size."""

from __future__ import annotations

import pytest

from tests.training_platform.rules.objects import JOB, wrong


@pytest.mark.parametrize(
    ("names", "refused"),
    [
        ([], False),
        (["required-topology"], False),
        (["required-topology", "preferred-topology"], True),
        (["unconstrained-topology", "preferred-topology"], True),
        (["required-topology", "slice-required-topology", "slice-size"], False),
        (["required-topology", "slice-required-topology"], True),
        (["slice-size"], True),
        (["preferred-topology", "group-name"], False),
        (["group-name"], True),
    ],
)
def test_pods_ask_for_one_topology_and_for_slices_with_a_size(names: list[str], refused: bool) -> None:
    annotations = {f"kueue.x-k8s.io/podset-{name}": "own/rack" for name in names}
    spec = {"template": {"metadata": {"annotations": annotations}, "spec": {}}}

    assert wrong("topology-request", JOB, spec=spec) == ["spec.template.metadata.annotations"] * refused
