"""What a team's namespace has for its notebooks: rights of the hub, ways between both, room for pods that wait.

Source: jupyterhub/kubespawner 7.1.0 (it watches each namespace that it has pods in by itself) and z2jh 4.4.0 (ports,
labels, rights of the hub's account in its own namespace), read 2026-11-22.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.config.pools import Flavor, cluster_pools, flavor_name
from training_platform.resources.jupyterhub.profiles import HUB_NAMESPACE, holds_notebooks

HUB_ACCOUNT: Final = "hub"  # the chart's name of its service account
NOTEBOOK_PORT, HUB_PORT = 8888, 8081
_WATCH = ("get", "list", "watch")
# Pods, and no more: homes are there, and secrets of single users are of https between hub and notebooks, which is off.
RULES: Final = (
    {"api_groups": [""], "resources": ["pods"], "verbs": [*_WATCH, "create", "delete"]},
    {"api_groups": [""], "resources": ["events", "persistentvolumeclaims"], "verbs": list(_WATCH)},
)
_PODS = {"matchLabels": {"component": "singleuser-server"}}
_HUB = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": HUB_NAMESPACE}}}


def notebooks_of(cluster: ClusterSpec, team: str) -> Notebooks | None:
    """Return a cluster's notebooks where they have profiles of the team."""
    return cluster.notebooks if cluster.notebooks and team in cluster.notebooks.teams else None


def network_policy(*, closed: bool) -> dict[str, Any]:
    """Return the spec of a NetworkPolicy that opens notebooks to the hub and its proxy, and the hub to notebooks.

    The second where the namespace is ``closed`` towards the outside: elsewhere it would close all else.
    """
    egress = [{"to": [_HUB], "ports": [{"protocol": "TCP", "port": HUB_PORT}]}]
    return {
        "podSelector": _PODS,
        "policyTypes": ["Ingress", *(["Egress"] if closed else [])],
        "ingress": [{"from": [_HUB], "ports": [{"protocol": "TCP", "port": NOTEBOOK_PORT}]}],
        **({"egress": egress} if closed else {}),
    }


def waiting_chips(cluster_name: str, cluster: ClusterSpec, team: str, flavors: Mapping[str, Flavor]) -> Counter[str]:
    """Return by flavor what notebooks of a team may ask for while they wait: one of each user, on the largest VM."""
    asked: Counter[str] = Counter()
    notebooks = notebooks_of(cluster, team)
    if notebooks is None:
        return asked
    profile = notebooks.teams[team]
    for pool in cluster_pools(cluster_name, cluster):
        name = flavor_name(pool)
        if pool.name in profile.pools and name in flavors and holds_notebooks(pool):
            asked[name] = max(asked[name], len(profile.users) * pool.machine.chips)
    return asked
