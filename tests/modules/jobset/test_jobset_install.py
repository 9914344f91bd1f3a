from __future__ import annotations

import pulumi
import pulumi_kubernetes as kubernetes

from modules.controllers import JobSet, JobSetArgs
from training_platform.catalog import CHARTS
from training_platform.checks.planning.recorder import record
from training_platform.config.model.environment import ChartOverride
from training_platform.resources.operators import POD_LABELS, jobset_values
from training_platform.resources.planned import Planned


def release(chart: ChartOverride | None = None) -> Planned:
    def program() -> None:
        provider = kubernetes.Provider("cluster", kubeconfig="{}")
        JobSet("main-jobset", JobSetArgs(chart=chart), pulumi.ResourceOptions(provider=provider))

    plan = record(program, project="training-platform", stack_name="prod")
    return plan.one("kubernetes:helm.sh/v3:Release", "main-jobset-release")


def test_the_chart_is_the_catalogues_and_objects_are_named_after_jobset() -> None:
    planned = release()

    assert planned.inputs["chart"] == CHARTS["jobset"].chart
    assert planned.inputs["version"] == CHARTS["jobset"].version
    assert (planned.inputs["name"], planned.inputs["namespace"]) == ("jobset", "jobset-system")
    assert planned.inputs["createNamespace"] is True
    assert planned.options["provider"] == "cluster"


def test_it_is_ready_before_whatever_depends_on_it() -> None:
    assert release().inputs["skipAwait"] is False


def test_a_stack_file_picks_another_version() -> None:
    assert release(ChartOverride(version="0.13.0")).inputs["version"] == "0.13.0"


def test_a_node_may_be_drained_while_a_replica_answers_the_webhooks() -> None:
    controller = jobset_values()["controller"]

    assert controller["replicas"] == 2
    assert controller["leaderElection"] == {"enable": True}
    assert controller["podDisruptionBudget"] == {"enabled": True, "minAvailable": 1}
    (apart,) = controller["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert apart["podAffinityTerm"]["labelSelector"]["matchLabels"] == POD_LABELS


def test_nothing_that_is_not_in_the_cluster_is_asked_for() -> None:
    assert jobset_values()["prometheus"] == {"enable": False}
    assert jobset_values()["certManager"] == {"enable": False}
