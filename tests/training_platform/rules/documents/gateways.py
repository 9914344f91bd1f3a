"""Gateways, routes and health checks, each right and with one thing wrong, and where the wrong one is found."""

from __future__ import annotations

from typing import Any, NamedTuple

HTTPS = {"name": "https", "protocol": "HTTPS", "port": 443}
BACKEND = {"name": "hub", "port": 80}
REDIRECT = {"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}


class Case(NamedTuple):
    """A part of an object that is wrong, the same part as it is right, and the input that is found."""

    kind: str
    wrong: dict[str, Any]
    right: dict[str, Any]
    path: str

    @property
    def version(self) -> str:
        """The version of the API that has the kind."""
        return "networking.gke.io/v1" if self.kind == "HealthCheckPolicy" else "gateway.networking.k8s.io/v1"


def inputs(kind: str, part: dict[str, Any]) -> dict[str, Any]:
    """Return an object with a part: a listener of a Gateway, a rule of a route, or what a check of health is."""
    parts = {
        "Gateway": {"gatewayClassName": "gke-l7-rilb", "listeners": [HTTPS, part]},
        "HTTPRoute": {"parentRefs": [{"name": "hub"}], "rules": [part]},
        "HealthCheckPolicy": {"targetRef": {"group": "", "kind": "Service", "name": "hub"}, "default": part},
    }
    return {"metadata": {"name": "hub"}, "spec": parts[kind]}


def _match(value: str, **more: str) -> dict[str, Any]:
    return {"matches": [{"path": {"type": "PathPrefix", "value": value, **more}}]}


def _check(kind: str = "HTTP", **check: Any) -> dict[str, Any]:
    return {"config": {"type": kind, "httpHealthCheck": check}}


LISTENER = "spec.listeners[1]"
RULE = "spec.rules[0]"
CHECK = "spec.default"
CASES = (
    Case("Gateway", HTTPS | {"port": 8443}, {"name": "other", "protocol": "HTTPS", "port": 8443}, LISTENER),
    Case("Gateway", HTTPS | {"name": "other"}, HTTPS | {"name": "other", "hostname": "hub.example.com"}, LISTENER),
    Case(
        "Gateway",
        {"name": "http", "protocol": "HTTP", "port": 80, "tls": {"mode": "Terminate", "options": {"a": "b"}}},
        {"name": "http", "protocol": "HTTP", "port": 80},
        f"{LISTENER}.tls",
    ),
    Case(
        "Gateway",
        {"name": "tls", "protocol": "TLS", "port": 444, "tls": {"mode": "Terminate"}},
        {"name": "tls", "protocol": "TLS", "port": 444, "tls": {"mode": "Passthrough"}},
        f"{LISTENER}.tls.certificateRefs",
    ),
    Case("HTTPRoute", _match("v1"), _match("/v1"), f"{RULE}.matches[0].path.value"),
    Case("HTTPRoute", _match("/a//b"), _match("//.*", type="RegularExpression"), f"{RULE}.matches[0].path.value"),
    Case("HTTPRoute", _match("/a/.."), _match("/a/..b"), f"{RULE}.matches[0].path.value"),
    Case("HTTPRoute", {"backendRefs": [{"name": "hub"}]}, {"backendRefs": [BACKEND]}, f"{RULE}.backendRefs[0].port"),
    Case(
        "HTTPRoute", {"filters": [REDIRECT], "backendRefs": [BACKEND]}, {"filters": [REDIRECT]}, f"{RULE}.backendRefs"
    ),
    Case(
        "HTTPRoute",
        {"filters": [{"type": "RequestRedirect"}]},
        {"filters": [REDIRECT]},
        f"{RULE}.filters[0].requestRedirect",
    ),
    Case(
        "HTTPRoute",
        {"timeouts": {"request": "10s", "backendRequest": "20s"}},
        {"timeouts": {"request": "0s", "backendRequest": "20s"}},
        f"{RULE}.timeouts.backendRequest",
    ),
    Case(
        "HealthCheckPolicy",
        _check("HTTPS", portSpecification="USE_SERVING_PORT"),
        _check(portSpecification="USE_SERVING_PORT"),
        f"{CHECK}.config.httpsHealthCheck",
    ),
    Case(
        "HealthCheckPolicy",
        _check(portSpecification="USE_SERVING_PORT", port=80),
        _check(portSpecification="USE_FIXED_PORT", port=80),
        f"{CHECK}.config.httpHealthCheck.port",
    ),
    Case(
        "HealthCheckPolicy",
        {"timeoutSec": 9, "checkIntervalSec": 5},
        {"timeoutSec": 5, "checkIntervalSec": 5},
        f"{CHECK}.timeoutSec",
    ),
)
IDS = [f"{number} {case.path}" for number, case in enumerate(CASES)]
