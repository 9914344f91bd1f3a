"""What the tests of in-cluster monitoring share: a scope, and the upstream CRDs of Managed Prometheus."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.places import ROOT
from tests.support.plans import PlannedStack, composed
from training_platform.catalog import CHARTS
from training_platform.catalog.types import Chart
from training_platform.config.expansion import SYSTEM_PRIORITY, SYSTEM_TAINT
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.resources.controllers import (
    JOBSET,
    JOBSET_POD_LABELS,
    KUEUE,
    Controller,
    controller_monitoring,
    jobset,
    jobset_values,
)
from training_platform.resources.kubernetes_objects import ChartRef, chart_ref
from training_platform.resources.kubernetes_objects import release as chart_release
from training_platform.resources.kueue import kueue_values
from training_platform.resources.metrics_adapter import adapter_deployment
from training_platform.resources.operators import OPERATORS
from training_platform.resources.scope import Scope
from training_platform.resources.stack_resource import StackResource
from training_platform.rules.documents.definitions import CrdSchema, load_crds
from training_platform.views.inputs import at


@pytest.fixture(scope="session")
def crds() -> dict[tuple[str, str, str], CrdSchema]:
    """The upstream CRDs, which are not part of this repository."""
    folder = ROOT.parent / "shared" / "schemas" / "gmp"
    if not folder.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    return load_crds(folder)


SCRAPE = "kubernetes:monitoring.googleapis.com/v1:ClusterPodMonitoring"
SECRET = "kubernetes:core/v1:Secret"
ACCOUNT = "kubernetes:core/v1:ServiceAccount"
RBAC = "kubernetes:rbac.authorization.k8s.io/v1"

both = pytest.mark.parametrize("controller", [KUEUE, JOBSET], ids=["kueue", "jobset"])


def plan(scope: Scope, controller: Controller) -> PlannedStack:
    return composed(lambda into: controller_monitoring(into, scope, controller), "main-metrics")


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
    planned_controller = plan(scope, controller)
    (endpoint,) = planned_controller.one(SCRAPE).inputs["spec"]["endpoints"]
    secret = planned_controller.one(SECRET)
    account = planned_controller.one(ACCOUNT)

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
    planned_controller = plan(scope, controller)
    binding = planned_controller.one(f"{RBAC}:ClusterRoleBinding").inputs
    account = planned_controller.one(ACCOUNT).inputs["metadata"]

    assert binding["roleRef"]["name"] == f"{controller.name}-metrics-reader"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    ]
    assert account["namespace"] == CHARTS[controller.name].namespace
    assert all(
        subject["name"] != account["name"]
        for subject in planned_controller.one(f"{RBAC}:RoleBinding").inputs["subjects"]
    )


@both
def test_googles_collector_may_read_that_secret_and_no_other(scope: Scope, controller: Controller) -> None:
    planned_controller = plan(scope, controller)
    binding = planned_controller.one(f"{RBAC}:RoleBinding").inputs
    role = planned_controller.one(f"{RBAC}:Role").inputs

    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": [planned_controller.one(SECRET).inputs["metadata"]["name"]],
            "verbs": ["get", "list", "watch"],
        }
    ]
    assert role["metadata"]["namespace"] == planned_controller.one(SECRET).inputs["metadata"]["namespace"]
    assert binding["roleRef"]["kind"] == "Role"
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "collector", "namespace": "gmp-system"}]


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


def release(chart: ChartOverride | None = None) -> StackResource:
    plan = composed(lambda into: jobset(into, chart), "main-jobset")
    return plan.one("kubernetes:helm.sh/v3:Release", "main-jobset-release")


def test_the_chart_is_the_catalogues_and_objects_are_named_after_jobset() -> None:
    planned = release()

    assert planned.inputs["chart"] == CHARTS["jobset"].chart
    assert planned.inputs["version"] == CHARTS["jobset"].version
    assert (planned.inputs["name"], planned.inputs["namespace"]) == ("jobset", "jobset-system")
    assert planned.inputs["createNamespace"] is True


def test_it_is_ready_before_whatever_depends_on_it() -> None:
    assert release().inputs["skipAwait"] is False


def test_a_node_may_be_drained_while_a_replica_answers_the_webhooks() -> None:
    controller = jobset_values()["controller"]

    assert controller["replicas"] == 2
    assert controller["leaderElection"] == {"enable": True}
    assert controller["podDisruptionBudget"] == {"enabled": True, "minAvailable": 1}
    (apart,) = controller["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert apart["podAffinityTerm"]["labelSelector"]["matchLabels"] == JOBSET_POD_LABELS


def test_what_is_installed_runs_on_a_system_pool_that_is_kept_for_it() -> None:
    values = {
        "kueue": kueue_values("main", ClusterSpec.model_validate({"location": "us-central1", "existing": "shared"})),
        "jobset": jobset_values(),
        **{name: operator.values for name, operator in OPERATORS.items()},
        "adapter": adapter_deployment()["template"],
    }
    places = {
        "kueue": ("controllerManager", "tolerations"), "jobset": ("controller", "tolerations"),
        "ray": ("tolerations",), "leader-worker-set": ("tolerations",), "trainer": ("manager", "tolerations"),
        "adapter": ("spec", "tolerations"),
    }  # fmt: skip
    for name, path in places.items():
        (toleration,) = at(values[name], path)
        assert (toleration["key"], toleration["value"]) == SYSTEM_TAINT, name
    classes = [at(values["kueue"], ("controllerManager", "manager", "priorityClassName"))]
    classes += [values[name]["priorityClassName"] for name in ("ray", "leader-worker-set")]
    assert {*classes, at(values["adapter"], ("spec", "priorityClassName"))} == {SYSTEM_PRIORITY}


def test_nothing_that_is_not_in_the_cluster_is_asked_for() -> None:
    assert jobset_values()["prometheus"] == {"enable": False}
    assert jobset_values()["certManager"] == {"enable": False}


READ = f"made up for tests, {date(2026, 11, 21)}"
OCI = Chart(name="kueue", chart="oci://r.io/kueue", version="1.2.3", repository=None, namespace="k", source=READ)
REPO = replace(OCI, name="hub", chart="hub", repository="https://charts.example.com")


def test_the_page_of_pipelines_names_the_hosts_of_all_charts() -> None:
    page = (ROOT / "docs" / "pipelines.md").read_text()
    hosts = {urlsplit(chart.repository or chart.chart).hostname for chart in CHARTS.values()}

    assert {host for host in hosts if f"`{host}`" not in page} == set()


def test_an_oci_chart_has_no_repository() -> None:
    assert chart_ref(OCI) == ChartRef("oci://r.io/kueue", "1.2.3", None)


def test_a_named_chart_is_looked_for_in_its_repository() -> None:
    assert chart_ref(REPO) == ChartRef("hub", "1.2.3", "https://charts.example.com")


def test_a_repository_for_an_oci_chart_holds_it_under_its_own_name() -> None:
    moved = ChartOverride(repository="https://mirror.example.com")

    assert chart_ref(OCI, moved) == ChartRef("kueue", "1.2.3", "https://mirror.example.com")
    called = replace(REPO, name="ours")  # the catalogue's row, which people override it by
    assert chart_ref(called, moved) == ChartRef("hub", "1.2.3", "https://mirror.example.com")


def test_a_chart_in_a_folder_changes_its_release_by_its_content(tmp_path: Path) -> None:
    template = tmp_path / "templates" / "a.yaml"
    template.parent.mkdir()
    descriptions = []
    for file, text in ((template, "a: 1"), (template, "a: 2"), (template, "a: 1"), (template.with_name("b.yaml"), "")):
        file.write_text(text)
        descriptions.append(description(ChartOverride(chart=str(tmp_path))))

    first, second, third, fourth = descriptions
    assert first == third
    assert len({first, second, fourth}) == 3
    assert description(ChartOverride(chart="./missing")) is None
    assert description(None) is None


def description(override: ChartOverride | None) -> str | None:
    """Return the description of a release of a chart."""
    plan = composed(lambda into: chart_release(into, REPO, override, {}))
    text: str | None = plan.one("kubernetes:helm.sh/v3:Release").inputs.get("description")
    return text


@pytest.mark.parametrize("awaited", [True, False])
def test_only_a_release_that_is_waited_for_can_go_back(*, awaited: bool) -> None:
    plan = composed(
        lambda into: chart_release(into, REPO, None, {"a": {"b": [1]}}, prepared=None if awaited else "there")
    )
    release = plan.one("kubernetes:helm.sh/v3:Release")

    assert (release.inputs["atomic"], release.inputs["skipAwait"]) == (awaited, not awaited)
    assert release.inputs["repositoryOpts"] == {"repo": "https://charts.example.com"}
    assert (release.inputs["createNamespace"], release.inputs["namespace"]) == (awaited, "k" if awaited else "there")
    assert release.inputs["values"] == {"a": {"b": [1]}}
    assert release.inputs["maxHistory"] == 10
