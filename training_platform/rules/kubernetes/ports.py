"""Ports of containers and of services: what the API server compares in one pod, and in one service."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.rules.kubernetes.objects import Json, Wrong, block, entries, object_rule, text, twice, whole
from training_platform.rules.kubernetes.pods import SERVER, WORKLOADS, containers, pods


@object_rule("container-ports", *WORKLOADS, ruleset="pods", source=SERVER)
def container_ports(inputs: Json) -> Iterator[Wrong]:
    """Find ports of one container called alike, ports of a node taken twice, and others in the network of the node."""
    for at, pod in pods(inputs):
        taken: list[str | None] = []
        places: list[str] = []
        for here, container in containers(at, pod):
            rows = entries(container, "ports")
            for index, name in twice([text(row, "name") for _, row in rows]):
                yield Wrong(f"{here}.ports[{index}].name", f"there are two ports {name}", "a name for each")
            for index, row in rows:
                port, of_node = whole(row, "containerPort"), whole(row, "hostPort")
                places.append(f"{here}.ports[{index}].hostPort")
                own = f"{row.get('protocol') or 'TCP'} {row.get('hostIP') or ''}:{of_node}"
                taken.append(own if of_node and "initContainers" not in here else None)
                if pod.get("hostNetwork") is True and of_node and port and of_node != port:
                    message = f"hostPort is {of_node}, and in the network of the node port {port} is that port"
                    yield Wrong(places[-1], message, str(port), str(port))
        for index, port_of_node in twice(taken):
            yield Wrong(places[index], f"{port_of_node} of the node is taken twice", "a port for each")


@object_rule("service-ports", "core:Service", ruleset="pods", source=SERVER)
def service_ports(inputs: Json) -> Iterator[Wrong]:
    """Find ports of a service without a name beside others, called alike or the same, or of nodes in a ClusterIP's."""
    spec = block(inputs, "spec")
    rows = entries(spec, "ports")
    names = [text(row, "name") for _, row in rows]
    for index, row in rows:
        if len(rows) > 1 and not row.get("name"):
            yield Wrong(f"spec.ports[{index}].name", "one of several ports has no name", "a name for each")
        if row.get("nodePort") and spec.get("type") in (None, "ClusterIP"):
            message = "a service of type ClusterIP has no port of nodes"
            yield Wrong(f"spec.ports[{index}].nodePort", message, "no nodePort, or type NodePort or LoadBalancer")
    for index, name in twice(names):
        yield Wrong(f"spec.ports[{index}].name", f"there are two ports {name}", "a name for each")
    own = [f"{row.get('protocol') or 'TCP'} {port}" if (port := whole(row, "port")) else None for _, row in rows]
    for index, name in twice(own):
        yield Wrong(f"spec.ports[{index}].port", f"port {name} is there twice", "another port or protocol")
