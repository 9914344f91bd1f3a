from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
import yaml

from modules.controllers import Kueue, KueueArgs
from training_platform.catalog import CHARTS
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.resources.kueue import kueue_values, resources
from training_platform.resources.scope import Scope

RELEASE = "kubernetes:helm.sh/v3:Release"
Build = Callable[..., ClusterSpec]


def plan(scope: Scope, cluster: ClusterSpec, chart: ChartOverride | None = None) -> Plan:
    def program() -> None:
        provider = kubernetes.Provider("cluster", kubeconfig="{}")
        args = KueueArgs(scope=scope, cluster_name="main", cluster=cluster, chart=chart)
        Kueue("main-kueue", args, pulumi.ResourceOptions(provider=provider))

    return record(program, project="training-platform", stack_name="prod")


def configuration_of(release: Any) -> Any:
    return yaml.safe_load(release["values"]["managerConfig"]["controllerManagerConfigYaml"])


def test_the_chart_is_the_catalogues_and_objects_are_named_after_kueue(scope: Scope, cluster: Build) -> None:
    release = plan(scope, cluster()).one(RELEASE, "main-kueue-release")

    assert release.inputs["chart"] == CHARTS["kueue"].chart
    assert release.inputs["version"] == CHARTS["kueue"].version
    assert "repositoryOpts" not in release.inputs
    assert (release.inputs["name"], release.inputs["namespace"]) == ("kueue", "kueue-system")
    assert release.inputs["createNamespace"] is True
    assert release.options["provider"] == "cluster"


def test_it_is_deployed_once_its_pods_are_ready_and_a_failed_upgrade_goes_back(scope: Scope, cluster: Build) -> None:
    release = plan(scope, cluster()).one(RELEASE)

    assert release.inputs["atomic"] is True
    assert release.inputs["skipAwait"] is False
    assert release.inputs["timeout"] == 600


@pytest.mark.parametrize("protected", [True, False])
def test_uninstalling_which_deletes_every_queue_is_for_environments_without_protection(
    scope: Scope, cluster: Build, *, protected: bool
) -> None:
    release = plan(dataclasses.replace(scope, deletion_protection=protected), cluster()).one(RELEASE)

    assert release.options.get("protect", False) is protected


def test_a_mirror_takes_the_charts_place(scope: Scope, cluster: Build) -> None:
    mirror = ChartOverride(chart="oci://mirror.example.com/kueue", version="0.19.1")
    release = plan(scope, cluster(), mirror).one(RELEASE)

    assert release.inputs["chart"] == "oci://mirror.example.com/kueue"
    assert release.inputs["version"] == "0.19.1"


def test_the_time_out_follows_the_clusters_pools(scope: Scope, cluster: Build) -> None:
    gpus = {"machine_type": "a3-highgpu-8g", "max_nodes": 2}
    slow = cluster(gpus=gpus, flex={**gpus, "capacity": "flex-start", "max_run_hours": 24})

    assert configuration_of(plan(scope, cluster(gpus=gpus)).one(RELEASE).inputs)["waitForPodsReady"]["timeout"] == "60m"
    assert configuration_of(plan(scope, slow).one(RELEASE).inputs)["waitForPodsReady"]["timeout"] == "1440m"


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
    made = cluster(slices=slices)
    nodes = 30 * (4 * 8 // 4) + made.system_pool.max_nodes

    assert (
        kueue_values("main", made)["controllerManager"]["manager"]["resources"]["limits"]["memory"] == f"{32 * nodes}Mi"
    )
