"""Kueue's objects: its CRDs and webhooks (v0.19.2) accept them, and they select the right nodes and quotas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.team_queues import cluster_queue, team_of
from training_platform.config.expansion import Flavor, flavors
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.node_pool import BLOCK_LEVELS, SLICE_LEVELS
from training_platform.config.model.queues import ROOT_COHORT, CohortSpec, Fallback, Share
from training_platform.resources import kueue
from training_platform.resources.kueue import (
    API_VERSION,
    admission_check,
    cohort,
    local_queue,
    local_queue_names,
    longest_run_hours,
    provisioning_request_config,
    resource_flavor,
)
from training_platform.resources.queues import topology_objects
from training_platform.resources.scope import Scope
from training_platform.rules.documents.definitions import CrdSchema

Build = Callable[..., ClusterSpec]
Crds = dict[tuple[str, str, str], CrdSchema]
POOLS: dict[str, object] = {
    "spot": {"machine_type": "ct5lp-hightpu-4t", "topology": "4x8", "capacity": "spot"},
    "h100": {"machine_type": "a3-highgpu-8g"},
    "reserved": {"machine_type": "a3-highgpu-8g", "capacity": "reservation", "reservation": "h100"},
    "slices": {"machine_type": "ct5lp-hightpu-4t", "topology": "4x8"},
    "small": {"machine_type": "ct5lp-hightpu-8t", "topology": "2x4"},
}


@pytest.fixture
def fleet(cluster: Build) -> dict[str, Flavor]:
    return flavors("main", cluster(**POOLS))


def share(nominal: int = 8, borrowing: int | None = None, lending: int | None = None) -> Share:
    return Share(nominal_quota=nominal, borrowing_limit=borrowing, lending_limit=lending)


def refusals(crds: Crds, kind: str, spec: dict[str, Any]) -> list[str]:
    obj = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "some"}, "spec": spec}
    return crds["kueue.x-k8s.io", "v1beta2", kind].errors(obj)


def test_every_flavor_is_one_that_the_crd_takes(fleet: dict[str, Flavor], crds: Crds) -> None:
    assert [
        error for flavor in fleet.values() for error in refusals(crds, "ResourceFlavor", resource_flavor(flavor))
    ] == []


def groups(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [group for group in spec["resourceGroups"] if group["flavors"]]


def test_limits_are_written_only_where_they_are_given(fleet: dict[str, Flavor]) -> None:
    spec = cluster_queue("vision", {"h100": share(24, borrowing=0, lending=16), "h100-reservation": share(8)}, fleet)
    (group,) = spec["resourceGroups"]
    quotas = {flavor["name"]: flavor["resources"] for flavor in group["flavors"]}

    assert quotas == {
        "h100": [{"name": "nvidia.com/gpu", "nominalQuota": "24", "borrowingLimit": "0", "lendingLimit": "16"}],
        "h100-reservation": [{"name": "nvidia.com/gpu", "nominalQuota": "8"}],
    }


def test_only_the_teams_own_namespace_reaches_its_queue(fleet: dict[str, Flavor]) -> None:
    selector = cluster_queue("vision", {"h100": share()}, fleet)["namespaceSelector"]

    assert selector == {"matchLabels": {"kubernetes.io/metadata.name": "vision"}}


def test_jobs_name_the_teams_queue_or_none() -> None:
    assert local_queue_names("vision") == ("vision", "default")
    assert local_queue_names("default") == ("default",)


def test_a_local_queue_is_one_that_the_crd_takes(crds: Crds) -> None:
    assert local_queue("vision") == {"clusterQueue": "vision"}
    assert refusals(crds, "LocalQueue", local_queue("vision")) == []


def test_a_team_that_borrows_in_the_place_of_lower_priorities_says_so(fleet: dict[str, Flavor], crds: Crds) -> None:
    spec = cluster_queue("vision", {"h100": share()}, fleet, preemption={"borrow_within_cohort": "LowerPriority"})

    assert spec["preemption"]["borrowWithinCohort"] == {"policy": "LowerPriority"}
    assert refusals(crds, "ClusterQueue", spec) == []


def test_a_cohort_has_its_parent_its_weight_and_quota_of_its_own_in_each_cluster(
    fleet: dict[str, Flavor], crds: Crds
) -> None:
    quota = {"main": {"h100": share(16, borrowing=8), "tpu-v5e-4x8": share(32)}}
    spec = cohort("robots", CohortSpec(parent="research", weight=3, shares=quota), "main", fleet)

    assert spec["parentName"] == "research"
    assert spec["fairSharing"] == {"weight": "3"}
    assert {group["coveredResources"][0]: group["flavors"] for group in spec["resourceGroups"]} == {
        "nvidia.com/gpu": [
            {"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "16", "borrowingLimit": "8"}]}
        ],
        "google.com/tpu": [{"name": "tpu-v5e-4x8", "resources": [{"name": "google.com/tpu", "nominalQuota": "32"}]}],
    }
    assert refusals(crds, "Cohort", spec) == []
    assert cohort("robots", CohortSpec(shares=quota), "other", fleet)["resourceGroups"] == []


def test_every_cohort_is_in_the_clusters_own_which_is_in_none(fleet: dict[str, Flavor]) -> None:
    assert cohort("research", CohortSpec(), "main", fleet)["parentName"] == ROOT_COHORT
    assert "parentName" not in cohort(ROOT_COHORT, CohortSpec(), "main", fleet)


@pytest.mark.parametrize(
    ("pool", "placed"),
    [
        ({"machine_type": "a3-megagpu-8g"}, ("blocks", BLOCK_LEVELS)),
        ({"machine_type": "a3-ultragpu-8g", "capacity": "reservation", "reservation": "r"}, ("blocks", BLOCK_LEVELS)),
        ({"machine_type": "ct5lp-hightpu-4t", "topology": "4x8"}, ("slices", SLICE_LEVELS)),
    ],
)
def test_a_flavor_whose_nodes_have_places_carries_its_topology(
    scope: Scope, cluster: Build, crds: Crds, pool: dict[str, Any], placed: tuple[str, tuple[str, ...]]
) -> None:
    topology, levels = placed
    flavors_by_name = flavors("main", cluster(placed={**pool, "topology_aware": True}))
    (declared,) = topology_objects("main-flavors", flavors_by_name, scope)
    (spec,) = (resource_flavor(flavor) for flavor in flavors_by_name.values())

    assert spec["topologyName"] == declared.inputs["metadata"]["name"] == topology
    assert [level["nodeLabel"] for level in declared.inputs["spec"]["levels"]] == list(levels)
    assert refusals(crds, "ResourceFlavor", spec) == []
    assert crds["kueue.x-k8s.io", "v1beta2", "Topology"].errors(dict(declared.inputs)) == []


MEGA: dict[str, object] = {"machine_type": "a3-megagpu-8g"}


@pytest.mark.parametrize(
    "machine", [{"machine_type": "a2-highgpu-8g"}, {"machine_type": "ct5lp-hightpu-8t", "topology": "2x4"}]
)
def test_a_pool_without_labels_of_places_is_refused_a_topology(cluster: Build, machine: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="neither block labels"):
        cluster(pool={**machine, "topology_aware": True})


H100: dict[str, object] = {"machine_type": "a3-highgpu-8g", "max_nodes": 2}
QUEUED = "h100-queued-provisioning"


@pytest.fixture
def fleet_queued(cluster: Build) -> dict[str, Flavor]:
    reserved = {**H100, "capacity": "reservation", "reservation": "h100"}
    queued = {**H100, "capacity": "queued-provisioning"}
    pools = {"paid": reserved, "a": {**queued, "max_run_hours": 48}, "b": {**queued, "max_run_hours": 24}}
    return flavors("main", cluster(**pools, spot={**H100, "capacity": "spot"}))


def shares(*names: str) -> dict[str, Share]:
    return {name: Share(nominal_quota=8) for name in names}


def order(spec: dict[str, Any]) -> list[str]:
    return [flavor["name"] for group in spec["resourceGroups"] for flavor in group["flavors"]]


def test_a_check_is_on_the_queued_flavor_and_on_no_other(fleet_queued: dict[str, Flavor], crds: Crds) -> None:
    spec = cluster_queue("vision", shares("h100-reservation", QUEUED), fleet_queued)

    assert spec["admissionChecksStrategy"] == {"admissionChecks": [{"name": QUEUED, "onFlavors": [QUEUED]}]}
    assert refusals(crds, "ClusterQueue", spec) == []
    assert refusals(crds, "ClusterQueue", spec) == []


def test_a_queue_without_queued_flavors_has_no_check(fleet_queued: dict[str, Flavor]) -> None:
    assert "admissionChecksStrategy" not in cluster_queue("vision", shares("h100-reservation"), fleet_queued)


def test_the_check_leads_to_gkes_class_through_a_config_of_its_name(
    fleet_queued: dict[str, Flavor], crds: Crds
) -> None:
    check = admission_check(fleet_queued[QUEUED])
    config = provisioning_request_config(fleet_queued[QUEUED])

    assert check["controllerName"] == "kueue.x-k8s.io/provisioning-request"
    assert check["parameters"] == {
        "apiGroup": "kueue.x-k8s.io",
        "kind": "ProvisioningRequestConfig",
        "name": QUEUED,
    }
    assert config["provisioningClassName"] == "queued-provisioning.gke.io"
    assert config["managedResources"] == ["nvidia.com/gpu"]
    retries = config["retryStrategy"]
    waits = [min(60 * 2**number, retries["backoffMaxSeconds"]) for number in range(retries["backoffLimitCount"])]
    assert sum(waits) > 2 * 3600  # VMs of the job before go after tens of minutes
    assert refusals(crds, "AdmissionCheck", check) == []
    assert refusals(crds, "ProvisioningRequestConfig", config) == []


def test_the_config_sets_no_parameter_that_a_job_sets(fleet_queued: dict[str, Flavor]) -> None:
    # Where both do and differ, Kueue deletes and makes the request at each pass, and the job never starts.
    assert "parameters" not in provisioning_request_config(fleet_queued[QUEUED])


def test_the_longest_run_of_a_flavor_is_one_that_every_pool_allows(
    fleet_queued: dict[str, Flavor], cluster: Build
) -> None:
    unlimited = flavors("main", cluster(a={**H100, "capacity": "queued-provisioning"}))

    assert longest_run_hours(fleet_queued[QUEUED]) == 24
    assert longest_run_hours(unlimited[QUEUED]) is None


def test_flavors_are_tried_by_their_capacity_unless_the_team_says_otherwise(fleet_queued: dict[str, Flavor]) -> None:
    team_shares = shares("h100-spot", QUEUED, "h100-reservation")
    fallback = Fallback(order={"main": ("h100-spot", "h100-reservation")})
    vision = team_of("vision", {"main": team_shares, "other": team_shares}, fallback=fallback)

    assert order(cluster_queue("vision", team_shares, fleet_queued)) == ["h100-reservation", QUEUED, "h100-spot"]
    assert order(kueue.cluster_queue(vision, "main", fleet_queued)) == ["h100-spot", "h100-reservation", QUEUED]
    assert order(kueue.cluster_queue(vision, "other", fleet_queued))[0] == "h100-reservation"
