"""What pods of a team may connect to: each other, DNS, the metadata server, Google's APIs, and what files name.

Volumes of Filestore and Lustre are mounted by nodes, and pods on their node's network are not held to policies at all.
Sources: GKE docs, Workload Identity (network policies), NodeLocal DNSCache, Cloud DNS for GKE and FQDN network
policies; tektoncd/operator 4000 (the resolver of Cloud DNS is no pod), read 2026-11-22. Not tried on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from training_platform.config.model.environment import Destination, Environment
from training_platform.config.model.team import Team
from training_platform.resources.network.google_apis import Entrance, entrance

Json = dict[str, Any]
POLICY_VERSION, POLICY_KIND = "networking.k8s.io/v1", "NetworkPolicy"
FQDN_VERSION, FQDN_KIND = "networking.gke.io/v1alpha1", "FQDNNetworkPolicy"
METADATA: Final = "169.254.169.254/32"
_RESOLVERS: Final = ("169.254.20.10/32", METADATA)  # NodeLocal DNSCache, and Cloud DNS for GKE
_DNS_PODS: Final = ("kube-dns", "node-local-dns")
# With Dataplane V2, and without it.
_METADATA_PORTS: Final[Mapping[str, tuple[int, ...]]] = {METADATA: (80, 8080), "169.254.169.252/32": (987, 988)}


def egress_spec(team: Team, environment: Environment) -> Json | None:
    """Return the spec of the NetworkPolicy on what a team's pods connect to; None where they may to anything."""
    found = entrance(environment)
    if environment.open_egress or found is None:
        return None
    opened = (*environment.egress, *team.egress)
    return {
        "podSelector": {},
        "policyTypes": ["Egress"],
        "egress": [{"to": [{"podSelector": {}}]}, *_platform(found), *(_opened(each) for each in opened if each.cidr)],
    }


def host_spec(team: Team, environment: Environment) -> Json | None:
    """Return the spec of the FQDNNetworkPolicy that opens hosts by name, beside the NetworkPolicy; None without any."""
    opened = [each for each in (*environment.egress, *team.egress) if each.host]
    if not opened or egress_spec(team, environment) is None:
        return None
    return {"podSelector": {}, "egress": [_host(each) for each in opened]}


def _platform(found: Entrance) -> Iterable[Json]:
    """Yield what every pod needs: names, an identity, and Google's APIs."""
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    pods = [{**system, "podSelector": {"matchLabels": {"k8s-app": name}}} for name in _DNS_PODS]
    dns = [port for protocol in ("UDP", "TCP") for port in _ports([53], protocol)]
    yield {"to": [*pods, *(_block(each) for each in _RESOLVERS)], "ports": dns}
    for address, ports in _METADATA_PORTS.items():
        yield {"to": [_block(address)], "ports": _ports(ports)}
    yield {"to": [_block(found.range)], "ports": _ports([443])}


def _opened(each: Destination) -> Json:
    return {"to": [_block(each.cidr or "")], "ports": _ports(each.ports, each.protocol)}


def _host(each: Destination) -> Json:
    host = each.host or ""
    return {
        "matches": [{"pattern" if host.startswith("*") else "name": host}],
        "ports": _ports(each.ports, each.protocol),
    }


def _block(cidr: str) -> Json:
    return {"ipBlock": {"cidr": cidr}}


def _ports(ports: Sequence[int], protocol: str = "TCP") -> list[Json]:
    return [{"protocol": protocol, "port": port} for port in ports]
