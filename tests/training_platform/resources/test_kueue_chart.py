"""Kueue's configuration: what pkg/config of v0.19.2 refuses is not in it, and what the platform rests on is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import pairwise

import pytest
import yaml

from tests.support.plans import PlannedStack, composed
from training_platform.catalog import CHARTS
from training_platform.config.model.capacity import Capacity
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.resources.controllers import kueue
from training_platform.resources.kueue import (
    PODS_READY_MINUTES,
    UNCOUNTED,
    configuration,
    configuration_text,
    kueue_values,
    resources,
)
from training_platform.resources.scope import Scope

RELEASE = "kubernetes:helm.sh/v3:Release"
Build = Callable[..., ClusterSpec]


def plan(scope: Scope, cluster: ClusterSpec, chart: ChartOverride | None = None) -> PlannedStack:
    return composed(lambda into: kueue(into, scope, "main", cluster, chart), "main-kueue")


def test_it_is_deployed_once_its_pods_are_ready_and_a_failed_upgrade_goes_back(scope: Scope, cluster: Build) -> None:
    release = plan(scope, cluster()).one(RELEASE)

    assert release.inputs["atomic"] is True
    assert release.inputs["skipAwait"] is False
    assert release.inputs["timeout"] == 10 * 60


@pytest.mark.parametrize("protected", [True, False])
def test_uninstalling_which_deletes_every_queue_is_for_environments_without_protection(
    scope: Scope, cluster: Build, *, protected: bool
) -> None:
    release = plan(dataclasses.replace(scope, deletion_protection=protected), cluster()).one(RELEASE)

    assert release.options.get("protect", False) is protected


def test_a_digest_pins_the_chart_beside_its_version(scope: Scope, cluster: Build) -> None:
    digest = f"sha256:{'5e' * 32}"
    release = plan(scope, cluster(), ChartOverride(digest=digest)).one(RELEASE)

    assert release.inputs["chart"] == f"{CHARTS['kueue'].chart}@{digest}"
    assert release.inputs["version"] == CHARTS["kueue"].version


def test_a_node_may_be_drained_while_a_replica_answers_the_webhooks(cluster: Build) -> None:
    manager = kueue_values("main", cluster())["controllerManager"]

    assert manager["replicas"] == 2
    assert manager["podDisruptionBudget"] == {"enabled": True, "minAvailable": 1}
    assert manager["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"


def test_no_object_of_the_prometheus_operator_is_asked_for(cluster: Build) -> None:
    assert kueue_values("main", cluster())["enablePrometheus"] is False


@pytest.mark.parametrize(("nodes", "memory_mib"), [(0, 4096), (128, 4096), (129, 129 * 32), (1000, 1000 * 32)])
def test_memory_grows_with_the_cluster_from_four_gib(nodes: int, memory_mib: int) -> None:
    assert resources(nodes)["limits"]["memory"] == f"{memory_mib}Mi"


@pytest.mark.parametrize(("nodes", "cores"), [(0, "2"), (500, "2"), (501, "3"), (1000, "4")])
def test_cores_grow_with_the_cluster_from_two(nodes: int, cores: str) -> None:
    assert resources(nodes)["limits"]["cpu"] == cores


def test_every_pool_counts_at_its_most_vms(cluster: Build) -> None:
    slices = {"machine_type": "ct5lp-hightpu-4t", "topology": "4x8", "slices": 30}
    spec = cluster(slices=slices)
    nodes = 30 * (4 * 8 // 4) + spec.system_pool.max_nodes

    assert (
        kueue_values("main", spec)["controllerManager"]["manager"]["resources"]["limits"]["memory"] == f"{32 * nodes}Mi"
    )


# apis/config/v1beta2 of v0.19.2; the controller reads strictly and stops at any other.
FIELDS = {
    *("apiVersion", "kind", "namespace", "webhook", "leaderElection", "metrics", "health", "pprofBindAddress"),
    *("controller", "tls", "manageJobsWithoutQueueName", "managedJobsNamespaceSelector", "internalCertManagement"),
    *("waitForPodsReady", "clientConnection", "integrations", "multiKueue", "fairSharing", "admissionFairSharing"),
    *("resources", "featureGates", "objectRetentionPolicies", "visibilityServer"),
}
FRAMEWORKS = {
    *("batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob", "workload.codeflare.dev/appwrapper"),
    *(f"kubeflow.org/{kind}job" for kind in ("mpi", "paddle", "pytorch", "tf", "xgboost", "jax")),
    *("ray.io/rayjob", "ray.io/rayservice", "ray.io/raycluster", "sparkoperator.k8s.io/sparkapplication"),
    *("pod", "deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"),
}
GUARD_EVERY_POD = {"pod", "deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"}


def test_the_text_is_the_whole_configuration_in_the_version_that_kueue_reads() -> None:
    config = yaml.safe_load(configuration_text(frozenset({"spot"})))

    assert config == configuration(["spot"])
    assert config["apiVersion"] == "config.kueue.x-k8s.io/v1beta2"
    assert config["kind"] == "Configuration"
    assert set(config) <= FIELDS


def test_the_ports_are_those_that_the_chart_opens_and_probes() -> None:
    config = configuration([])

    assert config["health"]["healthProbeBindAddress"] == ":8081"
    assert config["metrics"]["bindAddress"] == ":8443"
    assert config["webhook"]["port"] == 9443
    assert config["leaderElection"]["leaderElect"] is True


def test_jobs_and_jobsets_are_queued_and_no_webhook_stands_before_every_pod() -> None:
    frameworks = configuration([])["integrations"]["frameworks"]

    assert {"batch/job", "jobset.x-k8s.io/jobset"} <= set(frameworks) <= FRAMEWORKS - GUARD_EVERY_POD
    assert len(frameworks) == len(set(frameworks))


@pytest.mark.parametrize("pods", [True, False])
def test_kueue_and_its_webhooks_look_at_namespaces_of_teams_alone(*, pods: bool) -> None:
    """The chart gives the selector to its webhooks, which fail closed (v0.19.2, templates/webhook/manifests.yaml)."""
    (selected,) = configuration([], pods=pods)["managedJobsNamespaceSelector"]["matchExpressions"]

    assert selected == {"key": "training-platform/team", "operator": "Exists"}


def test_only_accelerators_are_counted() -> None:
    resources = configuration([])["resources"]

    assert set(resources["excludeResourcePrefixes"]) == {"cpu", "memory", "ephemeral-storage"} == set(UNCOUNTED)
    assert "quotaCheckStrategy" not in resources  # IgnoreUndeclared is refused beside the prefixes
    assert not any(name.startswith(UNCOUNTED) for name in ("google.com/tpu", "nvidia.com/gpu"))


def test_quota_is_reported_as_metrics() -> None:
    assert configuration([])["metrics"]["enableClusterQueueResources"] is True


def test_what_is_idle_is_shared_fairly_by_strategies_in_an_order_that_kueue_takes() -> None:
    strategies = configuration([])["fairSharing"]["preemptionStrategies"]

    assert strategies == ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]


def test_jobs_of_other_software_run_without_a_queue() -> None:
    assert configuration([])["manageJobsWithoutQueueName"] is False


@pytest.mark.parametrize(
    ("capacities", "minutes", "recovery"),
    [
        ([], 30, 30),
        (["reservation"], 30, 30),
        (["reservation", "on-demand"], 60, 60),
        (["flex-start"], 24 * 60, 24 * 60),
        (["flex-start", "spot"], 24 * 60, 60),  # flex-start makes no other job hold broken machines for a day
        (["flex-start", "reservation"], 24 * 60, 30),
    ],
)
def test_pods_have_as_long_to_get_ready_as_the_slowest_capacity_takes(
    capacities: list[Capacity], minutes: int, recovery: int
) -> None:
    wait = configuration(capacities)["waitForPodsReady"]

    assert (wait["timeout"], wait["recoveryTimeout"]) == (f"{minutes}m", f"{recovery}m")
    assert wait["blockAdmission"] is False


def test_no_capacity_has_less_time_than_kueue_gives_by_itself() -> None:
    order: tuple[Capacity, ...] = ("reservation", "on-demand", "spot", "flex-start")

    assert min(PODS_READY_MINUTES.values()) == 30
    assert all(PODS_READY_MINUTES[faster] <= PODS_READY_MINUTES[slower] for faster, slower in pairwise(order))


def test_a_job_that_never_gets_ready_is_given_up() -> None:
    assert configuration([])["waitForPodsReady"]["requeuingStrategy"]["backoffLimitCount"] == 5
