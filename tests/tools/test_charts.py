"""Ports of a chart's pods that the API server calls, read from rendered objects."""

from __future__ import annotations

from typing import Any

import pytest

from tools.charts import called_ports

WEBHOOK = {"clientConfig": {"service": {"name": "webhooks", "namespace": "system", "path": "/mutate"}}}
SERVICE = {
    "kind": "Service",
    "metadata": {"name": "webhooks"},
    "spec": {"ports": [{"port": 443, "targetPort": "webhook-server"}, {"port": 8080, "targetPort": 8080}]},
}
DEPLOYMENT = {
    "kind": "Deployment",
    "spec": {
        "template": {"spec": {"containers": [{"ports": [{"name": "webhook-server", "containerPort": 9443}]}]}},
    },
}


@pytest.mark.parametrize(
    "caller",
    [
        {"kind": "MutatingWebhookConfiguration", "webhooks": [WEBHOOK]},
        {"kind": "ValidatingWebhookConfiguration", "webhooks": [WEBHOOK]},
        {"kind": "APIService", "spec": {"service": {"name": "webhooks", "port": 443}}},
        {"kind": "CustomResourceDefinition", "spec": {"conversion": {"webhook": WEBHOOK}}},
    ],
    ids=lambda caller: caller["kind"],
)
def test_a_called_service_leads_to_the_port_of_its_pods(caller: dict[str, Any]) -> None:
    assert called_ports([DEPLOYMENT, SERVICE, caller]) == [9443]


def test_a_service_that_only_pods_call_has_no_port() -> None:
    assert called_ports([DEPLOYMENT, SERVICE]) == []


def test_the_port_that_is_called_is_the_one_of_the_reference() -> None:
    caller = {"kind": "APIService", "spec": {"service": {"name": "webhooks", "port": 8080}}}

    assert called_ports([DEPLOYMENT, SERVICE, caller]) == [8080]


def test_a_service_outside_the_chart_is_an_error() -> None:
    with pytest.raises(KeyError, match="webhooks"):
        called_ports([{"kind": "MutatingWebhookConfiguration", "webhooks": [WEBHOOK]}])
