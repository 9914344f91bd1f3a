"""Ports of containers and of services, at their boundaries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import JOB, job, wrong

FIRST = "spec.template.spec.containers[0].ports"
SERVICE = "core/v1:Service"


def found(*ports: dict[str, Any], other: list[dict[str, Any]] | None = None, **pod: Any) -> list[str]:
    containers = [{"name": "a", "ports": list(ports)}, {"name": "b", "ports": other or []}]
    return wrong("container-ports", JOB, spec=job(containers, **pod))


def test_ports_of_one_container_have_a_name_each() -> None:
    assert found({"name": "a", "containerPort": 80.0}, {"name": "b", "containerPort": 81.0}) == []
    assert found({"name": "a", "containerPort": 80.0}, other=[{"name": "a", "containerPort": 81.0}]) == []
    assert found({"name": "a", "containerPort": 80.0}, {"name": "a", "containerPort": 81.0}) == [f"{FIRST}[1].name"]


@pytest.mark.parametrize(
    ("other", "path"),
    [
        ({"hostPort": 80.0}, "spec.template.spec.containers[1].ports[0].hostPort"),
        ({"hostPort": 81.0}, None),
        ({"hostPort": 80.0, "protocol": "UDP"}, None),
        ({"hostPort": 80.0, "hostIP": "10.0.0.1"}, None),
        ({}, None),
    ],
)
def test_a_port_of_the_node_is_taken_once(other: dict[str, Any], path: str | None) -> None:
    ports = found({"containerPort": 80.0, "hostPort": 80.0}, other=[{"containerPort": 8080.0, **other}])

    assert ports == [path] * bool(path)


def test_in_the_network_of_the_node_a_port_is_the_nodes() -> None:
    assert found({"containerPort": 80.0, "hostPort": 80.0}, hostNetwork=True) == []
    assert found({"containerPort": 80.0}, hostNetwork=True) == []
    assert found({"containerPort": 80.0, "hostPort": 81.0}) == []
    assert found({"containerPort": 80.0, "hostPort": 81.0}, hostNetwork=True) == [f"{FIRST}[0].hostPort"]


def test_several_ports_of_a_service_have_a_name_each() -> None:
    def named(*names: str | None) -> list[str]:
        ports = [{"port": 80.0 + index, "name": name} for index, name in enumerate(names)]
        return wrong("service-ports", SERVICE, spec={"ports": ports})

    assert named(None) == []
    assert named("a", "b") == []
    assert named("a", None) == ["spec.ports[1].name"]
    assert named("a", "a") == ["spec.ports[1].name"]


def test_a_port_of_a_service_is_there_once() -> None:
    def ports(*more: dict[str, Any]) -> list[str]:
        rows = [{"port": 80.0, "name": str(index), **each} for index, each in enumerate(({}, *more))]
        return wrong("service-ports", SERVICE, spec={"ports": rows})

    assert ports({"protocol": "UDP"}) == []
    assert ports({"port": 81.0}) == []
    assert ports({"protocol": "TCP"}) == ["spec.ports[1].port"]


@pytest.mark.parametrize(("kind", "count"), [(None, 1), ("ClusterIP", 1), ("NodePort", 0), ("LoadBalancer", 0)])
def test_a_service_inside_the_cluster_has_no_port_of_nodes(kind: str | None, count: int) -> None:
    spec = {"type": kind, "ports": [{"port": 80.0, "nodePort": 30080.0}]}

    assert wrong("service-ports", SERVICE, spec=spec) == ["spec.ports[0].nodePort"] * count
