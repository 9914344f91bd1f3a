from __future__ import annotations

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from modules.controllers import JOBSET, KUEUE, Controller, ControllerMonitoring, ControllerMonitoringArgs
from training_platform.catalog import CHARTS
from training_platform.checks.planning.recorder import Plan, record
from training_platform.resources.scope import Scope
from training_platform.sandbox.kubernetes.definitions import CrdSchema

SCRAPE = "kubernetes:monitoring.googleapis.com/v1:ClusterPodMonitoring"
SECRET = "kubernetes:core/v1:Secret"
ACCOUNT = "kubernetes:core/v1:ServiceAccount"
RBAC = "kubernetes:rbac.authorization.k8s.io/v1"

both = pytest.mark.parametrize("controller", [KUEUE, JOBSET], ids=["kueue", "jobset"])


def plan(scope: Scope, controller: Controller) -> Plan:
    def program() -> None:
        provider = kubernetes.Provider("cluster", kubeconfig="{}")
        args = ControllerMonitoringArgs(scope=scope, controller=controller)
        ControllerMonitoring("main-metrics", args, pulumi.ResourceOptions(provider=provider))

    return record(program, project="training-platform", stack_name="prod")


@both
def test_the_scrape_is_one_that_the_crd_takes(
    scope: Scope, controller: Controller, crds: dict[tuple[str, str, str], CrdSchema]
) -> None:
    scrape = plan(scope, controller).one(SCRAPE)

    assert crds["monitoring.googleapis.com", "v1", "ClusterPodMonitoring"].errors(scrape.inputs) == []


@both
def test_metrics_are_read_over_https_from_the_port_that_the_pods_name(scope: Scope, controller: Controller) -> None:
    (endpoint,) = plan(scope, controller).one(SCRAPE).inputs["spec"]["endpoints"]

    assert (endpoint["port"], endpoint["scheme"]) == ("metrics", "https")
    assert endpoint["tls"] == {"insecureSkipVerify": True}


@both
def test_the_scrapes_token_is_the_one_that_the_cluster_makes_for_its_account(
    scope: Scope, controller: Controller
) -> None:
    made = plan(scope, controller)
    (endpoint,) = made.one(SCRAPE).inputs["spec"]["endpoints"]
    secret, account = made.one(SECRET), made.one(ACCOUNT)

    assert endpoint["authorization"] == {
        "type": "Bearer",
        "credentials": {
            "secret": {
                "name": secret.inputs["metadata"]["name"],
                "namespace": secret.inputs["metadata"]["namespace"],
                "key": "token",
            }
        },
    }
    assert secret.inputs["type"] == "kubernetes.io/service-account-token"
    assert (
        secret.inputs["metadata"]["annotations"]["kubernetes.io/service-account.name"]
        == account.inputs["metadata"]["name"]
    )
    assert "data" not in secret.inputs
    assert "stringData" not in secret.inputs
    assert (ACCOUNT, "main-metrics-account") in secret.options["dependsOn"]


@both
def test_the_account_may_read_metrics_and_nothing_else(scope: Scope, controller: Controller) -> None:
    made = plan(scope, controller)
    binding = made.one(f"{RBAC}:ClusterRoleBinding").inputs
    account = made.one(ACCOUNT).inputs["metadata"]

    assert binding["roleRef"]["name"] == f"{controller.name}-metrics-reader"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    ]
    assert account["namespace"] == CHARTS[controller.name].namespace
    assert all(subject["name"] != account["name"] for subject in made.one(f"{RBAC}:RoleBinding").inputs["subjects"])


@both
def test_googles_collector_may_read_that_secret_and_no_other(scope: Scope, controller: Controller) -> None:
    made = plan(scope, controller)
    binding, role = made.one(f"{RBAC}:RoleBinding").inputs, made.one(f"{RBAC}:Role").inputs

    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": [made.one(SECRET).inputs["metadata"]["name"]],
            "verbs": ["get", "list", "watch"],
        }
    ]
    assert role["metadata"]["namespace"] == made.one(SECRET).inputs["metadata"]["namespace"]
    assert binding["roleRef"]["kind"] == "Role"
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "collector", "namespace": "gmp-system"}]


def test_both_scrapes_fit_into_one_cluster(scope: Scope) -> None:
    objects = [
        (resource.type, resource.inputs["metadata"].get("namespace"), resource.inputs["metadata"]["name"])
        for controller in (KUEUE, JOBSET)
        for resource in plan(scope, controller).resources
        if "metadata" in resource.inputs
    ]

    assert len(objects) == 2 * 6
    assert len(set(objects)) == len(objects)


@both
def test_every_object_is_in_the_cluster(scope: Scope, controller: Controller) -> None:
    objects = [resource for resource in plan(scope, controller).resources if "metadata" in resource.inputs]

    assert {resource.options.get("provider") for resource in objects} == {"cluster"}


def test_pods_are_found_by_the_labels_that_the_charts_give_them(scope: Scope) -> None:
    selectors = {
        controller.name: plan(scope, controller).one(SCRAPE).inputs["spec"]["selector"]["matchLabels"]
        for controller in (KUEUE, JOBSET)
    }

    assert selectors["kueue"] == {"app.kubernetes.io/name": "kueue", "app.kubernetes.io/instance": "kueue"}
    assert selectors["jobset"] == {
        "app.kubernetes.io/name": "jobset",
        "app.kubernetes.io/instance": "jobset",
        "app.kubernetes.io/component": "controller",
    }
