"""What a deployed environment exports: a cluster without a flavor that is used is refused."""

from __future__ import annotations

import pytest

from training_platform.resources.environment_outputs import ClusterOutputs, EnvironmentOutputs, OutputsError


@pytest.mark.parametrize(
    ("flavors", "missing"),
    [(("h100", "tpu", "spot"), ""), (("spot", "h100"), "flavor tpu in"), ((), "flavors h100, tpu in"), (None, "")],
)
def test_a_cluster_lacks_the_flavors_that_its_environment_does_not_export(
    flavors: tuple[str, ...] | None, missing: str
) -> None:
    outputs = EnvironmentOutputs(environment="lab", clusters={"main": ClusterOutputs(endpoint="e", flavors=flavors)})

    if missing:
        with pytest.raises(OutputsError, match=f"is deployed without {missing} cluster main: "):
            outputs.cluster_with("main", ["h100", "tpu"])
    else:
        assert outputs.cluster_with("main", ["h100", "tpu"]).flavors == flavors
