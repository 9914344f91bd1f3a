from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from modules.jupyterhub import HubGateway, HubGatewayArgs
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.resources.gke import gke_cluster
from training_platform.resources.jupyterhub import hub_values
from training_platform.resources.scope import Scope

Section = Callable[..., Notebooks]
GATEWAY = {"address": "notebooks", "certificate_map": "hosts", "members": ("group:a@example.com",)}
SUBNET = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}
PLACE: dict[str, Any] = {"location": "us-central1-a", "subnet": SUBNET}
HUB = {"filestore": "homes", "oauth_client_id": "id", "allowed_domain": "example.com"}


@pytest.fixture
def plan(scope: Scope, notebooks: Section) -> Plan:
    section = notebooks(gateway=GATEWAY)
    assert section.gateway is not None
    args = HubGatewayArgs(scope=scope, notebooks=section, gateway=section.gateway, namespace="jupyterhub")

    def program() -> None:
        inside = pulumi.ResourceOptions(provider=kubernetes.Provider("cluster", kubeconfig="{}"))
        HubGateway("main-gateway", args, inside)

    return record(program, project="training-platform", stack_name="prod")


def of_kind(plan: Plan, kind: str) -> Any:
    (only,) = [each.inputs for each in plan.resources if each.inputs.get("kind") == kind]
    return only


def test_only_the_host_leads_to_the_hubs_proxy_over_https(plan: Plan) -> None:
    gateway, route = of_kind(plan, "Gateway"), of_kind(plan, "HTTPRoute")

    assert [(each["protocol"], each["port"]) for each in gateway["spec"]["listeners"]] == [("HTTPS", 443)]
    assert gateway["metadata"]["annotations"] == {"networking.gke.io/certmap": "hosts"}
    assert gateway["spec"]["addresses"] == [{"type": "NamedAddress", "value": "notebooks"}]
    assert route["spec"]["hostnames"] == ["notebooks.example.com"]
    assert route["spec"]["parentRefs"] == [{"name": gateway["metadata"]["name"]}]


def test_identity_aware_proxy_is_before_the_service_that_the_route_names(plan: Plan) -> None:
    policy, route = of_kind(plan, "GCPBackendPolicy")["spec"], of_kind(plan, "HTTPRoute")["spec"]
    (rule,) = route["rules"]

    assert policy["default"]["iap"] == {"enabled": True}
    assert policy["targetRef"]["name"] == rule["backendRefs"][0]["name"]
    (member,) = [each.inputs for each in plan.resources if each.type == "gcp:projects/iAMMember:IAMMember"]
    assert (member["role"], member["member"]) == ("roles/iap.httpsResourceAccessor", "group:a@example.com")


@pytest.mark.parametrize(("gateway", "channel"), [(GATEWAY, {"channel": "CHANNEL_STANDARD"}), (None, None)])
def test_the_cluster_has_gateways_only_where_a_hub_has_one(scope: Scope, gateway: Any, channel: Any) -> None:
    hub = {**HUB, "host": "n.example.com", "gateway": gateway}
    spec = ClusterSpec.model_validate_json(json.dumps({**PLACE, "notebooks": hub}))

    found = gke_cluster(
        "main", spec, scope, network="n", subnetwork="s", service_account="a", google_groups_domain=None
    )

    assert found.inputs["gateway_api_config"] == channel


def test_a_gateway_without_a_host_is_refused() -> None:
    with pytest.raises(ValueError, match="is missing: a gateway is for one host name"):
        ClusterSpec.model_validate_json(json.dumps({**PLACE, "notebooks": {**HUB, "gateway": GATEWAY}}))


def test_without_a_gateway_the_hub_stays_inside(notebooks: Section) -> None:
    cluster = ClusterSpec.model_validate(PLACE)

    assert hub_values("main", cluster, notebooks(), "homes")["proxy"]["service"]["type"] == "ClusterIP"


def test_the_port_of_the_health_check_is_said_as_its_definition_wants(plan: Plan) -> None:
    check = of_kind(plan, "HealthCheckPolicy")["spec"]["default"]["config"]

    assert check["httpHealthCheck"] == {"requestPath": "/hub/health", "portSpecification": "USE_SERVING_PORT"}
