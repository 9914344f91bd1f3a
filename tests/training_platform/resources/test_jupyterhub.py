from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans import PlannedStack, composed
from tests.support.stack_files import RANGES
from training_platform.catalog import IMAGES
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.config.model.workloads import Notebooks
from training_platform.resources.data_sets import NotebookData
from training_platform.resources.gke import gke_cluster
from training_platform.resources.jupyterhub import hub_gateway, hub_values, jupyterhub, split_image
from training_platform.resources.scope import Scope

RELEASE = "kubernetes:helm.sh/v3:Release"
NAMESPACE = "kubernetes:core/v1:Namespace"
Build = Callable[..., ClusterSpec]
Section = Callable[..., Notebooks]


def plan(
    scope: Scope,
    cluster: ClusterSpec,
    notebooks: Notebooks,
    chart: ChartOverride | None = None,
    data_sets: Mapping[str, NotebookData] | None = None,
) -> PlannedStack:
    return composed(
        lambda into: jupyterhub(
            into, scope, "main", cluster, notebooks, home_claim="homes", data_sets=data_sets or {}, chart=chart
        ),
        "main-notebooks",
    )


def test_an_account_reads_the_buckets_that_notebooks_of_everybody_mount(
    scope: Scope, cluster: Build, notebooks: Section
) -> None:
    data_sets = {"images": NotebookData(bucket="example-images"), "files": NotebookData()}
    planned_hub = plan(scope, cluster(), notebooks(), data_sets=data_sets)
    account = planned_hub.one("gcp:serviceaccount/account:Account").inputs
    grants = planned_hub.of("gcp:storage/bucketIAMMember:BucketIAMMember")
    pod = planned_hub.one("kubernetes:core/v1:ServiceAccount").inputs

    assert account["accountId"] == "prod-main-notebooks"
    assert {(grant.inputs["bucket"], grant.inputs["role"]) for grant in grants} == {
        ("example-images", "roles/storage.objectViewer"),
        ("example-images", "roles/storage.bucketViewer"),
    }
    assert (pod["metadata"]["namespace"], pod["metadata"]["name"]) == ("jupyterhub", "notebooks")
    assert pod["automountServiceAccountToken"] is False
    workload = planned_hub.one("gcp:serviceaccount/iAMMember:IAMMember").inputs
    assert workload["member"].endswith(".svc.id.goog[jupyterhub/notebooks]")
    without = plan(scope, cluster(), notebooks())
    assert without.of("gcp:serviceaccount/account:Account") == []


@pytest.fixture
def values(cluster: Build, notebooks: Section) -> Any:
    return hub_values("main", cluster(), notebooks(), "homes")


def test_its_namespace_is_ours_labelled_and_there_before_it(scope: Scope, cluster: Build, notebooks: Section) -> None:
    planned_hub = plan(scope, cluster(), notebooks())
    namespace = planned_hub.one(NAMESPACE)
    release = planned_hub.one(RELEASE)

    assert namespace.inputs["metadata"]["name"] == release.inputs["namespace"] == "jupyterhub"
    assert namespace.inputs["metadata"]["labels"]["environment"] == "prod"
    assert release.inputs["createNamespace"] is False
    assert (NAMESPACE, "main-notebooks-namespace") in release.options["dependsOn"]
    assert planned_hub.outputs["value"] == "jupyterhub"


@pytest.mark.parametrize("protected", [True, False])
def test_homes_are_protected_with_the_environment(
    scope: Scope, cluster: Build, notebooks: Section, *, protected: bool
) -> None:
    scope_of_hub = dataclasses.replace(scope, deletion_protection=protected)

    assert plan(scope_of_hub, cluster(), notebooks()).one(NAMESPACE).options.get("protect", False) is protected


def test_the_first_deployment_does_not_wait_for_a_secret_made_by_hand(
    scope: Scope, cluster: Build, notebooks: Section
) -> None:
    release = plan(scope, cluster(), notebooks()).one(RELEASE)

    assert (release.inputs["skipAwait"], release.inputs["atomic"]) == (True, False)


def test_the_hub_is_not_on_the_internet(values: Any) -> None:
    assert values["proxy"]["service"]["type"] == "ClusterIP"


def test_only_accounts_of_the_domain_sign_in_through_google(values: Any) -> None:
    config = values["hub"]["config"]

    assert config["JupyterHub"]["authenticator_class"] == "google"
    assert config["GoogleOAuthenticator"] == {
        "client_id": "notebooks.apps.example.com",
        "oauth_callback_url": "https://notebooks.example.com/hub/oauth_callback",
        "hosted_domain": ["example.com"],
        "allow_all": True,
    }


def test_the_client_secret_is_named_and_not_written(cluster: Build, notebooks: Section) -> None:
    other = notebooks(oauth_secret={"name": "sign-in", "key": "google"})
    env = hub_values("main", cluster(), other, "homes")["hub"]["extraEnv"]

    assert env == {"OAUTH_CLIENT_SECRET": {"valueFrom": {"secretKeyRef": {"name": "sign-in", "key": "google"}}}}


def test_homes_are_folders_of_one_claim_that_belong_to_their_users(values: Any) -> None:
    single = values["singleuser"]
    (owner,) = single["initContainers"]
    (mount,) = owner["volumeMounts"]

    assert single["storage"]["type"] == "static"
    assert single["storage"]["static"] == {"pvcName": "homes", "subPath": "{username}"}
    assert owner["command"] == ["chown", "1000:100", single["storage"]["homeMountPath"]]
    assert owner["securityContext"]["runAsUser"] == 0
    assert mount == {"name": "home", "mountPath": single["storage"]["homeMountPath"], "subPath": "{username}"}


def test_a_notebook_has_time_for_its_vm_to_start_and_gives_it_back_when_idle(values: Any) -> None:
    assert values["singleuser"]["startTimeout"] == 30 * 60
    assert values["cull"] == {"enabled": True, "timeout": 60 * 60, "every": 300}


def test_notebooks_reach_the_metadata_server(values: Any) -> None:
    assert values["singleuser"]["cloudMetadata"]["blockWithIptables"] is False
    assert values["singleuser"]["networkPolicy"]["egressAllowRules"]["cloudMetadataServer"] is True


def test_neither_scheduler_nor_pullers_of_the_chart_run(values: Any) -> None:
    scheduling = values["scheduling"]
    assert [scheduling[name] for name in ("userScheduler", "userPlaceholder")] == [{"enabled": False}] * 2
    assert scheduling.keys() == {"userScheduler", "userPlaceholder", "corePods"}
    assert values["prePuller"] == {"hook": {"enabled": False}, "continuous": {"enabled": False}}


def test_the_image_is_the_catalogues_unless_the_stack_names_one(cluster: Build, notebooks: Section) -> None:
    ours = hub_values("main", cluster(), notebooks(image="r.example.com:443/lab@sha256:12ab"), "homes")["singleuser"]
    default = hub_values("main", cluster(), notebooks(), "homes")["singleuser"]

    assert ours["image"] == {"name": "r.example.com:443/lab@sha256", "tag": "12ab"}
    assert ours["initContainers"][0]["image"] == "r.example.com:443/lab@sha256:12ab"
    assert "{name}:{tag}".format(**default["image"]) == IMAGES["notebook"]


GATEWAY = {"address": "notebooks", "certificate_map": "hosts", "members": ("group:a@example.com",)}
PLACE: dict[str, Any] = {"location": "us-central1-a", "subnet": RANGES}
HUB = {"filestore": "homes", "oauth_client_id": "id", "allowed_domain": "example.com"}


@pytest.fixture
def plan_gateway(scope: Scope, notebooks: Section) -> PlannedStack:
    section = notebooks(gateway=GATEWAY)
    assert section.gateway is not None
    gateway = section.gateway
    return composed(lambda into: hub_gateway(into, scope, section, gateway, "jupyterhub"), "main-gateway")


def of_kind(plan_gateway: PlannedStack, kind: str) -> Any:
    (only,) = [resource.inputs for resource in plan_gateway.resources if resource.inputs.get("kind") == kind]
    return only


def test_only_the_host_leads_to_the_hubs_proxy_over_https(plan_gateway: PlannedStack) -> None:
    gateway = of_kind(plan_gateway, "Gateway")
    route = of_kind(plan_gateway, "HTTPRoute")

    assert [(listener["protocol"], listener["port"]) for listener in gateway["spec"]["listeners"]] == [("HTTPS", 443)]
    assert gateway["metadata"]["annotations"] == {"networking.gke.io/certmap": "hosts"}
    assert gateway["spec"]["addresses"] == [{"type": "NamedAddress", "value": "notebooks"}]
    assert route["spec"]["hostnames"] == ["notebooks.example.com"]
    assert route["spec"]["parentRefs"] == [{"name": gateway["metadata"]["name"]}]


def test_identity_aware_proxy_is_before_the_service_that_the_route_names(plan_gateway: PlannedStack) -> None:
    policy = of_kind(plan_gateway, "GCPBackendPolicy")["spec"]
    route = of_kind(plan_gateway, "HTTPRoute")["spec"]
    (rule,) = route["rules"]

    assert policy["default"]["iap"] == {"enabled": True}
    assert policy["targetRef"]["name"] == rule["backendRefs"][0]["name"]
    (member,) = [
        resource.inputs for resource in plan_gateway.resources if resource.type == "gcp:projects/iAMMember:IAMMember"
    ]
    assert (member["role"], member["member"]) == ("roles/iap.httpsResourceAccessor", "group:a@example.com")


@pytest.mark.parametrize(("gateway", "channel"), [(GATEWAY, {"channel": "CHANNEL_STANDARD"}), (None, None)])
def test_the_cluster_has_gateways_only_where_a_hub_has_one(scope: Scope, gateway: Any, channel: Any) -> None:
    hub = {**HUB, "host": "n.example.com", "gateway": gateway}
    spec = ClusterSpec.model_validate_json(json.dumps({**PLACE, "notebooks": hub}))

    planned_cluster = gke_cluster(
        "main", spec, scope, network="n", subnetwork="s", service_account="a", google_groups_domain=None
    )

    assert planned_cluster.inputs["gateway_api_config"] == channel


def test_a_gateway_without_a_host_is_refused() -> None:
    with pytest.raises(ValueError, match="is missing: the gateway needs a host name"):
        ClusterSpec.model_validate_json(json.dumps({**PLACE, "notebooks": {**HUB, "gateway": GATEWAY}}))


def test_the_port_of_the_health_check_is_said_as_its_definition_wants(plan_gateway: PlannedStack) -> None:
    check = of_kind(plan_gateway, "HealthCheckPolicy")["spec"]["default"]["config"]

    assert check["httpHealthCheck"] == {"requestPath": "/hub/health", "portSpecification": "USE_SERVING_PORT"}


@given(st.text(alphabet="ab:/@.", min_size=1))
def test_the_two_parts_joined_are_the_image_again(image: str) -> None:
    name, tag = split_image(image)

    assert f"{name}:{tag}" == image if tag else name in {image, image.removesuffix(":")}


def test_the_catalogues_notebook_images_have_tags() -> None:
    assert all(split_image(IMAGES[name]).tag for name in ("notebook", "notebook-gpu"))
