"""What a cluster has for model servers, and a server as its component registers it."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from modules.serving import MetricsAccount, MetricsAdapter, MetricsAdapterArgs
from training_platform.catalog import IMAGES
from training_platform.checks.planning.recorder import Plan, record
from training_platform.resources.scope import Scope

GCP = "gcp:projects/iAMMember:IAMMember"


@pytest.fixture
def adapter(scope: Scope) -> Plan:
    def program() -> None:
        cluster = kubernetes.Provider("cluster", kubeconfig="{}")
        inside = pulumi.ResourceOptions(provider=cluster)
        account = MetricsAccount("metrics", scope)
        account.let_in([cluster])
        MetricsAdapter("main-adapter", MetricsAdapterArgs(scope=scope, account=account.email), inside)

    return record(program, project="training-platform", stack_name="prod")


def test_the_adapters_account_views_metrics_and_no_more(adapter: Plan) -> None:
    roles = [each.inputs["role"] for each in adapter.resources if each.type == GCP]
    (workload,) = [each for each in adapter.resources if each.type == "gcp:serviceaccount/iAMMember:IAMMember"]

    assert roles == ["roles/monitoring.viewer"]
    assert workload.inputs["role"] == "roles/iam.workloadIdentityUser"
    member = str(workload.inputs["member"])
    assert member.endswith("[custom-metrics/custom-metrics-stackdriver-adapter]")


def test_its_pods_are_let_in_once_the_project_has_a_cluster_and_a_pool_of_identities(adapter: Plan) -> None:
    (workload,) = [each for each in adapter.resources if each.type == "gcp:serviceaccount/iAMMember:IAMMember"]

    assert ("pulumi:providers:kubernetes", "cluster") in workload.options["dependsOn"]


def test_every_object_has_a_type_that_the_provider_can_read(adapter: Plan) -> None:
    """It refuses ``kubernetes:v1:Service``: a module is a group and a version."""
    modules = [each.type.split(":")[1] for each in adapter.resources if each.type.startswith("kubernetes:")]

    assert modules
    assert all(module.count("/") == 1 for module in modules)


def test_autoscalers_ask_the_adapter_in_both_versions(adapter: Plan) -> None:
    found = {each.inputs["metadata"]["name"]: each.inputs["spec"] for each in of_kind(adapter, "APIService")}

    assert set(found) == {"v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"}
    (service,) = of_kind(adapter, "Service")
    for spec in found.values():
        assert spec["service"] == {key: service.inputs["metadata"][key] for key in ("name", "namespace")}


def test_its_pods_are_those_that_its_service_reaches_and_run_the_catalogues_image(adapter: Plan) -> None:
    (pods,), (service,) = of_kind(adapter, "Deployment"), of_kind(adapter, "Service")
    template = pods.inputs["spec"]["template"]

    assert service.inputs["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert template["spec"]["containers"][0]["image"] == IMAGES["metrics-adapter"]
    assert "--use-new-resource-model=true" in template["spec"]["containers"][0]["command"]


def of_kind(plan: Plan, kind: str) -> list[Any]:
    return [each for each in plan.resources if each.inputs.get("kind") == kind]
