"""A team's namespace as plain data: the rights in it, its quota, and the destinations of its pods.

Pods connect to each other, DNS, the metadata server, Google's APIs, and what the stack files name. Volumes of Filestore
and Lustre are mounted by nodes, and pods on their node's network are not held to policies at all.
Sources: GKE docs, Workload Identity (network policies), NodeLocal DNSCache, Cloud DNS for GKE and FQDN network
policies; tektoncd/operator 4000 (the resolver of Cloud DNS is no pod), read 2026-11-22. Not tried on a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

from training_platform.catalog.types import Json
from training_platform.config.model.environment import Destination, Environment
from training_platform.config.model.queues import Share
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.team import DirectorySpec, Team
from training_platform.config.pools import Flavor
from training_platform.resources.admission import (
    ACCELERATORS,
    ALLOW_LABEL,
    HOST_NETWORK,
    MAX_RUN_SECONDS,
    SHARED_CLAIMS,
    JobKind,
)
from training_platform.resources.kueue import run_limit_hours
from training_platform.resources.network import Entrance, entrance
from training_platform.resources.scope import TEAM_LABEL

_ALL = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_READ = ("get", "list", "watch")


class RoleRule(NamedTuple):
    """A rule of a Role."""

    api_group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


class RoleSubject(NamedTuple):
    """Whom a Role is bound to."""

    kind: str
    name: str


# No right to create pods, or any objects that create pods but Jobs: Kueue lets those start without quota.
MEMBER_RULES = (
    RoleRule("batch", ("jobs",), _ALL),
    RoleRule("jobset.x-k8s.io", ("jobsets",), _ALL),
    RoleRule("jobset.x-k8s.io", ("jobsets/status",), _READ),
    RoleRule("", ("pods",), (*_READ, "delete")),
    RoleRule("", ("pods/log",), _READ),
    # kubectl speaks to these through a web socket, which starts with a GET.
    RoleRule("", ("pods/exec", "pods/portforward"), ("get", "create")),
    RoleRule("", ("persistentvolumeclaims", "configmaps", "secrets"), _ALL),
    RoleRule("", ("events",), _READ),
    RoleRule("kueue.x-k8s.io", ("localqueues", "workloads"), _READ),
    # `job why` reads these: a run's place in its queue, and the request to GKE for its VMs.
    RoleRule("visibility.kueue.x-k8s.io", ("localqueues/pendingworkloads",), ("get", "list")),
    RoleRule("autoscaling.x-k8s.io", ("provisioningrequests",), _READ),
)


def rules_of(kinds: Iterable[JobKind]) -> list[RoleRule]:
    """Return the rights to the kinds of jobs that a cluster's operators run."""
    return [RoleRule(kind.group, (kind.resource,), _ALL) for kind in kinds]


def subjects(members: Iterable[str]) -> list[RoleSubject]:
    """Return IAM members as Kubernetes knows them; a service account is a user there, by its email address.

    A group is known only in a cluster with Google Groups for RBAC, and only if it is a member of that cluster's
    ``gke-security-groups@`` group. ``domain:`` has no counterpart and is left out: such members get no access here.
    """
    kinds = {"group": "Group", "user": "User", "serviceAccount": "User"}
    split = (member.partition(":") for member in members)
    return [RoleSubject(kinds[kind], name) for kind, _, name in split if kind in kinds]


POD_SECURITY = "pod-security.kubernetes.io/"
# Objects that a team can fill the cluster's store with; a few hundred jobs at a time need far fewer.
OBJECTS = {
    "configmaps": 1000,
    "secrets": 1000,
    "persistentvolumeclaims": 100,
    "services": 500,  # JobSet makes one for each job
    "services.loadbalancers": 0,
    "services.nodeports": 0,
    "count/jobs.batch": 2000,
    "count/jobsets.jobset.x-k8s.io": 500,
}
# Beside its VMs: pods without accelerators, those that wait, and those of a job that is being started over.
SPARE_PODS, SPARE_CPUS, SPARE_MEMORY_GIB = 100, 64, 256
# Beside the pods that run or wait: those of finished jobs, which are there until their job is deleted.
FINISHED_PODS, FINISHED_PODS_OF_VM = 1000, 50


def namespace_labels(team: str, kinds: Iterable[str], *, host_network: bool) -> dict[str, str]:
    """Return the labels of a team's namespace that admission reads: its team, and rights above Pod Security's baseline.

    ``kinds`` are those of GPUDirect. Without rights beyond the baseline, Pod Security refuses pods beyond it;
    elsewhere it warns, and the policies of the cluster refuse.
    """
    beyond = [*(kind.lower() for kind in kinds), *([HOST_NETWORK] if host_network else [])]
    modes = ("warn", "audit") if beyond else ("enforce", "warn")
    return {
        TEAM_LABEL: team,
        **{f"{ALLOW_LABEL}{permission}": "true" for permission in beyond},
        **{f"{POD_SECURITY}{mode}": "baseline" for mode in modes},
    }


def shared_claims(
    directories: Mapping[str, DirectorySpec], instances: Mapping[str, FilestoreSpec], others: Sequence[str] = ()
) -> dict[str, str]:
    """Return the annotation that holds pods to the team's folder of its claims, but for whole shares.

    An instance of one team belongs to it as a whole, with or without directories. ``others`` are claims that are not
    directories of the team's file.
    """
    shared = (
        name
        for name, directory in directories.items()
        if not directory.whole_share and instances[directory.filestore].team is None
    )
    names = ",".join(sorted((*shared, *others)))
    return {SHARED_CLAIMS: names} if names else {}


def run_limit(team: Team, environment: Environment) -> dict[str, str]:
    """Return the annotation by which the cluster holds a team's jobs to their limit of time."""
    hours = run_limit_hours(team, environment)
    return {MAX_RUN_SECONDS: str(hours * 3600)} if hours else {}


def resource_quota(
    shares: Mapping[str, Share], flavors: Mapping[str, Flavor], gated: Mapping[str, int] | None = None
) -> dict[str, str]:
    """Return the ``hard`` part of a team's ResourceQuota in one cluster, in texts as the server gives them back.

    Kueue counts accelerators; this bounds a job that bypasses Kueue: by the team's own chips and the chips that
    it can borrow. CPUs and memory are those of the VMs for them, and some beside. ``gated`` are chips by flavor that
    pods ask for while Kueue holds them back, and its jobs still run: a pod that is refused would stop none of them.
    """
    gated = gated or {}
    chips = Counter(dict.fromkeys(ACCELERATORS, 0))
    vms, cpus, memory = 0, float(SPARE_CPUS), float(SPARE_MEMORY_GIB)
    for name, share in shares.items():
        flavor = flavors[name]
        most = most_chips(share, flavor) + gated.get(name, 0)
        chips[flavor.accelerator.resource] += most
        largest = max(flavor.pools, key=lambda pool: pool.machine.vcpus / _chips(flavor))
        hosts = ceil(most / _chips(flavor))
        vms += hosts * largest.places_per_gpu
        cpus += hosts * largest.machine.vcpus
        memory += hosts * largest.machine.memory_gb
    return {
        **{f"requests.{resource}": str(most) for resource, most in chips.items()},
        "pods": str(2 * vms + SPARE_PODS),
        "count/pods": str((2 + FINISHED_PODS_OF_VM) * vms + SPARE_PODS + FINISHED_PODS),
        "requests.cpu": str(ceil(cpus)),
        "requests.memory": f"{ceil(memory)}Gi",
        **{kind: str(most) for kind, most in OBJECTS.items()},
    }


def most_chips(share: Share, flavor: Flavor) -> int:
    """Return the most that a team can have of a flavor: its own, and what others may lend it of what the pools hold."""
    nominal = share.nominal_quota
    others = max(0, flavor.capacity_chips - nominal)
    return nominal + (others if share.borrowing_limit is None else min(share.borrowing_limit, others))


def _chips(flavor: Flavor) -> int:
    """Chips or GPUs, or places on shared GPUs, of the flavor's smallest VM."""
    return min(pool.machine.chips * pool.places_per_gpu for pool in flavor.pools)


# A quota of CPUs refuses pods that name none. Those of jobs ask for accelerators alone, and are counted as nothing.
DEFAULT_REQUESTS = {"cpu": "0", "memory": "0"}


POLICY_VERSION, POLICY_KIND = "networking.k8s.io/v1", "NetworkPolicy"
FQDN_VERSION, FQDN_KIND = "networking.gke.io/v1alpha1", "FQDNNetworkPolicy"
METADATA: Final = "169.254.169.254/32"
_RESOLVERS: Final = ("169.254.20.10/32", METADATA)  # NodeLocal DNSCache, and Cloud DNS for GKE
_DNS_PODS: Final = ("kube-dns", "node-local-dns")
# With Dataplane V2, and without it.
_METADATA_PORTS: Final[Mapping[str, tuple[int, ...]]] = {METADATA: (80, 8080), "169.254.169.252/32": (987, 988)}


def egress_spec(team: Team, environment: Environment) -> Json | None:
    """Return the spec of the NetworkPolicy on connections of a team's pods; None where they may connect to anything."""
    vip = entrance(environment)
    if environment.open_egress or vip is None:
        return None
    opened = (*environment.egress, *team.egress)
    return {
        "podSelector": {},
        "policyTypes": ["Egress"],
        "egress": [{"to": [{"podSelector": {}}]}, *_platform(vip), *(_opened(peer) for peer in opened if peer.cidr)],
    }


def host_spec(team: Team, environment: Environment) -> Json | None:
    """Return the spec of the FQDNNetworkPolicy that opens hosts by name, beside the NetworkPolicy; None without any."""
    opened = [destination for destination in (*environment.egress, *team.egress) if destination.host]
    if not opened or egress_spec(team, environment) is None:
        return None
    return {"podSelector": {}, "egress": [_host(destination) for destination in opened]}


def _platform(vip: Entrance) -> Iterable[Json]:
    """Yield the destinations that every pod needs: DNS, the metadata server, and Google's APIs."""
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    pods = [{**system, "podSelector": {"matchLabels": {"k8s-app": name}}} for name in _DNS_PODS]
    dns = [port for protocol in ("UDP", "TCP") for port in _ports([53], protocol)]
    yield {"to": [*pods, *(_block(resolver) for resolver in _RESOLVERS)], "ports": dns}
    for address, ports in _METADATA_PORTS.items():
        yield {"to": [_block(address)], "ports": _ports(ports)}
    yield {"to": [_block(vip.range)], "ports": _ports([443])}


def _opened(destination: Destination) -> Json:
    return {"to": [_block(destination.cidr or "")], "ports": _ports(destination.ports, destination.protocol)}


def _host(destination: Destination) -> Json:
    host = destination.host or ""
    return {
        "matches": [{"pattern" if host.startswith("*") else "name": host}],
        "ports": _ports(destination.ports, destination.protocol),
    }


def _block(cidr: str) -> Json:
    return {"ipBlock": {"cidr": cidr}}


def _ports(ports: Sequence[int], protocol: str = "TCP") -> list[Json]:
    return [{"protocol": protocol, "port": port} for port in ports]
