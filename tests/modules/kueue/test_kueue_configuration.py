"""Kueue's configuration: what pkg/config of v0.19.2 refuses is not in it, and what the platform rests on is."""

from __future__ import annotations

from itertools import pairwise

import pytest
import yaml

from training_platform.config.model.capacity import Capacity
from training_platform.resources.kueue import PODS_READY_MINUTES, UNCOUNTED, configuration, configuration_text

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
    config = yaml.safe_load(configuration_text(["spot"]))

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
