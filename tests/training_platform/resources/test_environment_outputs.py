"""What a team stack reads of its environment: a flavor that is not deployed is one sentence."""

from __future__ import annotations

import pytest

from training_platform.resources.environment_outputs import EnvironmentOutputs, OutputsError, parse_outputs


def outputs(flavors: list[str] | None) -> EnvironmentOutputs:
    cluster = {"endpoint": "gke.example.com", **({"flavors": flavors} if flavors is not None else {})}
    return parse_outputs("prod", {"clusters": {"west": cluster}})


def test_a_cluster_with_the_teams_flavors_is_found() -> None:
    assert outputs(["a100-40", "h100"]).cluster_with("west", ["h100"]).endpoint == "gke.example.com"


@pytest.mark.parametrize(
    ("wanted", "said"), [(["h100"], "flavor h100"), (["h100", "a100-40", "b200"], "flavors h100, b200")]
)
def test_a_flavor_that_is_not_deployed_is_refused_with_what_to_run(wanted: list[str], said: str) -> None:
    with pytest.raises(OutputsError) as refused:
        outputs(["a100-40"]).cluster_with("west", wanted)

    assert (
        str(refused.value) == f"Stack prod is deployed without {said} in cluster west: run `pulumi up -s prod` first."
    )


def test_an_environment_of_an_older_program_is_taken_at_its_file() -> None:
    assert outputs(None).cluster_with("west", ["h100"]).endpoint == "gke.example.com"


def test_a_cluster_without_any_flavor_has_none_of_the_teams() -> None:
    with pytest.raises(OutputsError, match="without flavor h100"):
        outputs([]).cluster_with("west", ["h100"])


@pytest.mark.parametrize("deployed", [None, "199.36.153.4/30"])
def test_googles_apis_elsewhere_than_the_team_lets_its_pods_connect_to_are_refused(deployed: str | None) -> None:
    found = parse_outputs("prod", {"clusters": {}, "google_apis": deployed})

    with pytest.raises(OutputsError, match=r"lead to 199\.36\.153\.8/30: run `pulumi up -s prod` first"):
        found.check_google_apis("199.36.153.8/30")
    parse_outputs("prod", {"clusters": {}, "google_apis": "199.36.153.8/30"}).check_google_apis("199.36.153.8/30")
