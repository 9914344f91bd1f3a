"""The way to a hub from the internet: GKE's Gateway, and Identity-Aware Proxy before what it leads to.

Without an OAuth client of its own, Identity-Aware Proxy takes one that Google manages, for the organisation's accounts.
Sources: GKE docs, deploying Gateways, securing a Gateway and configuring Gateway resources with Policies; IAP docs,
enabling IAP for GKE; z2jh 4.4.0 (the Service and the path of health), read 2026-11-22. Not tried on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from training_platform.config.model.workloads import GatewaySpec

ACCESS_ROLE: Final = "roles/iap.httpsResourceAccessor"
NAME: Final = "notebooks"
_SERVICE, _PORT = "proxy-public", 80
_CLASS: Final = "gke-l7-global-external-managed"
_GATEWAY, _GKE = "gateway.networking.k8s.io/v1", "networking.gke.io/v1"
_DAY_SECONDS: Final = 24 * 3600  # how long a notebook's web socket may live: 30 seconds otherwise


class GatewayObject(NamedTuple):
    """An object beside the hub; its name is that of all of them."""

    api_version: str
    kind: str
    spec: dict[str, Any]
    annotations: dict[str, str] | None = None


def gateway_objects(gateway: GatewaySpec, host: str) -> Iterator[GatewayObject]:
    """Yield the load balancer, its route to the hub, and the policies on the hub's Service."""
    listener = {"name": "https", "protocol": "HTTPS", "port": 443, "hostname": host}
    address = {"type": "NamedAddress", "value": gateway.address}
    yield GatewayObject(
        _GATEWAY,
        "Gateway",
        {"gatewayClassName": _CLASS, "listeners": [listener], "addresses": [address]},
        {"networking.gke.io/certmap": gateway.certificate_map},
    )
    rules = [{"backendRefs": [{"name": _SERVICE, "port": _PORT}]}]
    yield GatewayObject(_GATEWAY, "HTTPRoute", {"parentRefs": [{"name": NAME}], "hostnames": [host], "rules": rules})
    target = {"targetRef": {"group": "", "kind": "Service", "name": _SERVICE}}
    # The default is said: checks of the definition read it, and refuse a policy without (gke-gateway-api fc40d60).
    http = {"requestPath": "/hub/health", "portSpecification": "USE_SERVING_PORT"}
    check = {"type": "HTTP", "httpHealthCheck": http}
    yield GatewayObject(_GKE, "HealthCheckPolicy", {"default": {"config": check}, **target})
    guard = {"iap": {"enabled": True}, "timeoutSec": _DAY_SECONDS}
    yield GatewayObject(_GKE, "GCPBackendPolicy", {"default": guard, **target})
