"""Queued provisioning and fallback in Kueue: checks on the flavors that need them, and the order of flavors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.modules.kueue.conftest import cluster_queue, team_of
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.queues import Fallback, Share
from training_platform.config.model.team import Team
from training_platform.config.pools import Flavor, flavors
from training_platform.resources import kueue
from training_platform.resources.kueue import (
    API_VERSION,
    MAX_RUN_ANNOTATION,
    admission_check,
    longest_run_hours,
    provisioning_request_config,
    resource_flavor,
)
from training_platform.sandbox.kubernetes.definitions import CrdSchema, load_crds

Build = Callable[..., ClusterSpec]
Crds = dict[tuple[str, str, str], CrdSchema]
H100: dict[str, object] = {"machine_type": "a3-highgpu-8g", "max_nodes": 2}
QUEUED = "h100-queued-provisioning"


@pytest.fixture
def fleet(cluster: Build) -> dict[str, Flavor]:
    reserved = {**H100, "capacity": "reservation", "reservation": "h100"}
    queued = {**H100, "capacity": "queued-provisioning"}
    pools = {"paid": reserved, "a": {**queued, "max_run_hours": 48}, "b": {**queued, "max_run_hours": 24}}
    return flavors("main", cluster(**pools, spot={**H100, "capacity": "spot"}))


def shares(*names: str) -> dict[str, Share]:
    return {name: Share(nominal_quota=8) for name in names}


def order(spec: dict[str, Any]) -> list[str]:
    return [flavor["name"] for group in spec["resourceGroups"] for flavor in group["flavors"]]


def refusals(crds: Crds, kind: str, spec: dict[str, Any]) -> list[str]:
    obj = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "some"}, "spec": spec}
    return crds["kueue.x-k8s.io", "v1beta2", kind].errors(obj)


def test_a_check_is_on_the_queued_flavor_and_on_no_other(fleet: dict[str, Flavor]) -> None:
    spec = cluster_queue("vision", shares("h100-reservation", QUEUED), fleet)

    assert spec["admissionChecksStrategy"] == {"admissionChecks": [{"name": QUEUED, "onFlavors": [QUEUED]}]}


def test_a_queue_with_a_check_is_one_that_kueue_takes(fleet: dict[str, Flavor], crds: Crds) -> None:
    spec = cluster_queue("vision", shares("h100-reservation", QUEUED), fleet)

    assert refusals(crds, "ClusterQueue", spec) == []


def test_a_queue_without_queued_flavors_has_no_check(fleet: dict[str, Flavor]) -> None:
    assert "admissionChecksStrategy" not in cluster_queue("vision", shares("h100-reservation"), fleet)


def test_the_check_leads_to_gkes_class_through_a_config_of_its_name(fleet: dict[str, Flavor], crds: Crds) -> None:
    check, config = admission_check(fleet[QUEUED]), provisioning_request_config(fleet[QUEUED])

    assert check["controllerName"] == "kueue.x-k8s.io/provisioning-request"
    assert check["parameters"] == {
        "apiGroup": "kueue.x-k8s.io",
        "kind": "ProvisioningRequestConfig",
        "name": QUEUED,
    }
    assert config["provisioningClassName"] == "queued-provisioning.gke.io"
    assert config["managedResources"] == ["nvidia.com/gpu"]
    assert refusals(crds, "AdmissionCheck", check) == []
    assert refusals(crds, "ProvisioningRequestConfig", config) == []


def test_the_config_sets_no_parameter_that_a_job_sets(fleet: dict[str, Flavor]) -> None:
    # Where both do and differ, Kueue deletes and makes the request at each pass, and the job never starts.
    assert "parameters" not in provisioning_request_config(fleet[QUEUED])


def test_the_longest_run_of_a_flavor_is_one_that_every_pool_allows(fleet: dict[str, Flavor], cluster: Build) -> None:
    unlimited = flavors("main", cluster(a={**H100, "capacity": "queued-provisioning"}))

    assert longest_run_hours(fleet[QUEUED]) == 24
    assert longest_run_hours(unlimited[QUEUED]) is None


def test_the_request_that_kueue_makes_is_one_that_the_autoscaler_takes(fleet: dict[str, Flavor]) -> None:
    folder = Path(__file__).parents[3].parent / "shared" / "schemas" / "autoscaler"
    if not folder.is_dir():
        pytest.skip("the upstream CRD is not beside this checkout, in ../shared/schemas")
    config = provisioning_request_config(fleet[QUEUED])
    spec = {
        "provisioningClassName": config["provisioningClassName"],
        "parameters": {MAX_RUN_ANNOTATION.partition("/")[2]: str(24 * 3600)},
        "podSets": [{"count": 2, "podTemplateRef": {"name": "some"}}],
    }
    kind = load_crds(folder)["autoscaling.x-k8s.io", "v1", "ProvisioningRequest"]
    named = {"metadata": {"name": "some", "namespace": "vision"}, "spec": spec}

    assert kind.errors({"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", **named}) == []


def test_pods_tolerate_what_keeps_others_off_queued_nodes(fleet: dict[str, Flavor], crds: Crds) -> None:
    spec = resource_flavor(fleet[QUEUED])

    assert {each["key"]: each["value"] for each in spec["tolerations"]} == {
        "nvidia.com/gpu": "present",
        "cloud.google.com/gke-queued": "true",
    }
    assert spec["nodeLabels"]["cloud.google.com/gke-queued"] == "true"
    assert refusals(crds, "ResourceFlavor", spec) == []


def test_flavors_are_tried_by_their_capacity_unless_the_team_says_otherwise(fleet: dict[str, Flavor]) -> None:
    wanted = shares("h100-spot", QUEUED, "h100-reservation")
    asked = Fallback(order={"main": ("h100-spot", "h100-reservation")})
    vision = team_of("vision", {"main": wanted, "other": wanted}, fallback=asked)

    assert order(cluster_queue("vision", wanted, fleet)) == ["h100-reservation", QUEUED, "h100-spot"]
    assert order(kueue.cluster_queue(vision, "main", fleet)) == ["h100-spot", "h100-reservation", QUEUED]
    assert order(kueue.cluster_queue(vision, "other", fleet))[0] == "h100-reservation"


def test_when_the_next_flavor_is_tried_is_the_teams(fleet: dict[str, Flavor], crds: Crds) -> None:
    asked = Fallback(when_can_borrow="TryNextFlavor", when_can_preempt="MayStopSearch")
    spec = cluster_queue("vision", shares("h100-reservation"), fleet, fallback=asked)

    assert spec["flavorFungibility"] == {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "MayStopSearch"}
    assert refusals(crds, "ClusterQueue", spec) == []


def test_an_order_of_what_the_team_has_no_share_of_is_refused() -> None:
    said = {"environment": "prod", "name": "vision", "members": ("group:v@example.com",)}
    asked = {"order": {"main": ("h100-spto",)}}
    with pytest.raises(ValidationError) as refused:
        Team.model_validate({**said, "shares": {"main": shares("h100-spot")}, "fallback": asked})

    (error,) = refused.value.errors()
    assert error["ctx"]["nearest"] == "h100-spot"
    assert error["ctx"]["at"] == ("fallback", "order", "main", 0)
