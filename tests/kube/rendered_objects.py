"""The objects that a plan renders, and an API server that creates them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import httpx

from tests.kube.queues import Json
from tests.support.plans import PlannedStack
from training_platform.resources.stack_resource import UNKNOWN, StackResource

HELM_RELEASE = "kubernetes:helm.sh/v3:Release"
_NETWORKING = "published in GoogleCloudPlatform/gke-networking-api 34c617f, config/crds"
_GATEWAY = "published in kubernetes-sigs/gateway-api, config/crd/standard; GKE brings it with gateway_api_config"
_POLICY = "published in GoogleCloudPlatform/gke-gateway-api fc40d60, config/crd"
GKES_OWN: Mapping[tuple[str, str], str] = {
    ("cloud.google.com/v1", "ComputeClass"): "published in GoogleCloudPlatform/compute-class-api 8067eae",
    ("gateway.networking.k8s.io/v1", "Gateway"): _GATEWAY,
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): _GATEWAY,
    ("networking.gke.io/v1", "GCPBackendPolicy"): _POLICY,
    ("networking.gke.io/v1", "HealthCheckPolicy"): _POLICY,
    ("networking.gke.io/v1", "GKENetworkParamSet"): _NETWORKING,
    ("networking.gke.io/v1", "Network"): _NETWORKING,
    ("networking.gke.io/v1alpha1", "FQDNNetworkPolicy"): _NETWORKING,
}
"""Kinds that GKE itself defines, and why their definitions are not beside this checkout (read 2026-11-22)."""


class Rendered(NamedTuple):
    """An object as a deployment makes it, and whose cluster it is for."""

    cluster: tuple[str, str]  # the environment's stack, or the source; the cluster's name
    name: str  # stack and logical name
    body: Json

    @property
    def kind(self) -> tuple[str, str]:
        """The version of the API and the kind."""
        return self.body["apiVersion"], self.body["kind"]


class Kind(NamedTuple):
    """Where the API server has the objects of a kind."""

    plural: str
    namespaced: bool


class ApiServer:
    """A real API server that creates objects and refuses unknown fields."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.kinds = dict(self._served())

    def _served(self) -> Iterator[tuple[tuple[str, str], Kind]]:
        accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
        for path in ("/api", "/apis"):
            for group in self._client.get(path, headers=accept).json()["items"]:
                for version in group["versions"]:
                    named = "/".join(filter(None, (group["metadata"].get("name"), version["version"])))
                    for served in version.get("resources", ()):
                        row = Kind(served["resource"], served["scope"] == "Namespaced")
                        yield (named, served["responseKind"]["kind"]), row

    def refusal(self, body: Json, *, keep: bool = False) -> str:
        """Return the refusal of a new object, or "" if it is accepted; it stays only with ``keep``."""
        kind = self.kinds[body["apiVersion"], body["kind"]]
        space = f"/namespaces/{body['metadata'].get('namespace', 'default')}" if kind.namespaced else ""
        path = f"/{'apis' if '/' in body['apiVersion'] else 'api'}/{body['apiVersion']}{space}/{kind.plural}"
        options = {"fieldValidation": "Strict"}
        if not keep:
            options["dryRun"] = "All"
        answer = self._client.post(path, json=body, params=options)
        return "" if answer.is_success else f"{answer.status_code} {answer.text}"


def rendered(source: str, stack: str, plan: PlannedStack) -> Iterator[Rendered]:
    """Yield a plan's objects as a deployment makes them, but what only a deployment tells and no place depends on."""
    by_key = {resource.key: resource for resource in plan.resources}
    for resource in plan.resources:
        if resource.type.startswith("kubernetes:") and resource.type != HELM_RELEASE:
            body = _told(resource.inputs)
            if resource.inputs["metadata"].get("namespace") is UNKNOWN:
                body["metadata"]["namespace"] = _namespace(resource, by_key)
            cluster = resource.options["provider"].removeprefix("share-").removesuffix("-kubernetes")
            yield Rendered((source, cluster), f"{stack} {resource.name}", body)


def _namespace(planned: StackResource, by_key: Mapping[tuple[str, str], StackResource]) -> str:
    (name,) = {
        by_key[key].inputs["metadata"]["name"]
        for key in planned.inputs_from["metadata"]
        if key[0] == "kubernetes:core/v1:Namespace"
    }
    return str(name)


def _told(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _told(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_told(inner) for inner in value]
    return "unknown" if value is UNKNOWN else value
