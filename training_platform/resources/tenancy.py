"""A team's namespace: permissions in it, its quota, the destinations of its pods, and its admission policies.

Pods may connect to each other, DNS, the metadata server, Google's APIs, and the destinations in the stack files. Nodes
mount the volumes of Filestore and Lustre. Network policies do not apply to pods on their node's network.

Sources: GKE docs, Workload Identity (network policies), NodeLocal DNSCache, Cloud DNS for GKE and FQDN network
policies; tektoncd/operator 4000 (Cloud DNS's resolver is not a pod), read 2026-11-22. Not tried on a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final, NamedTuple

from training_platform.catalog import IMAGES
from training_platform.catalog.types import Json
from training_platform.config.expansion import Flavor
from training_platform.config.model.environment import Destination, Environment
from training_platform.config.model.queues import Share
from training_platform.config.model.team import Team
from training_platform.resources.admission import MAX_RUN_SECONDS, OperatorJob, policies
from training_platform.resources.admission_policy import API_VERSION, Bounds
from training_platform.resources.kubernetes_objects import (
    IDENTITY,
    LIMIT_RANGE,
    NETWORK_POLICY,
    RBAC,
    RESOURCE_QUOTA,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT_OBJECT,
    binding,
    kubernetes_object,
    object_type,
    rules_of_role,
)
from training_platform.resources.kueue import run_limit_hours
from training_platform.resources.member_rights import shared_role
from training_platform.resources.network import Entrance, entrance
from training_platform.resources.plan import Component, Options, Resource
from training_platform.resources.pod_admission import ACCELERATORS, ALLOW_LABEL, CONFINED_LABEL, HOST_NETWORK
from training_platform.resources.resource_types import NAMESPACE
from training_platform.resources.scope import SERVICE_ACCOUNT, TEAM_LABEL, Scope, slug

ADMISSION_POLICY = object_type(API_VERSION, "ValidatingAdmissionPolicy")
ADMISSION_BINDING = object_type(API_VERSION, "ValidatingAdmissionPolicyBinding")

_ALL = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_READ = ("get", "list", "watch")


class RoleRule(NamedTuple):
    """A rule of a Role."""

    api_group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


class RoleSubject(NamedTuple):
    """A subject to which a Role is bound."""

    kind: str
    name: str


# No right to create pods, or any objects that create pods but Jobs: Kueue lets those start without quota.
MEMBER_RULES = (
    RoleRule("batch", ("jobs",), verbs=_ALL),
    RoleRule("jobset.x-k8s.io", ("jobsets",), verbs=_ALL),
    RoleRule("jobset.x-k8s.io", ("jobsets/status",), verbs=_READ),
    # No right to delete them either: Jobs and Ray clusters replace a deleted pod while it still holds its node.
    RoleRule("", ("pods",), verbs=_READ),
    RoleRule("", ("pods/log",), verbs=_READ),
    # kubectl speaks to these through a web socket, which starts with a GET.
    RoleRule("", ("pods/exec", "pods/portforward"), verbs=("get", "create")),
    RoleRule("", ("persistentvolumeclaims", "configmaps", "secrets"), verbs=_ALL),
    RoleRule("", ("events",), verbs=_READ),
    RoleRule("kueue.x-k8s.io", ("localqueues", "workloads"), verbs=_READ),
    # `job why` reads these: a run's place in its queue, and the request to GKE for its VMs.
    RoleRule("visibility.kueue.x-k8s.io", ("localqueues/pendingworkloads",), verbs=("get", "list")),
    RoleRule("autoscaling.x-k8s.io", ("provisioningrequests",), verbs=_READ),
)


def rules_of(kinds: Iterable[OperatorJob]) -> list[RoleRule]:
    """Return the Role rules for the kinds of jobs that a cluster's operators run."""
    return [RoleRule(kind.group, (kind.resource,), verbs=_ALL) for kind in kinds]


def subjects(members: Iterable[str]) -> list[RoleSubject]:
    """Return IAM members as Kubernetes subjects. There, a service account is a user, named by its e-mail address.

    A group has access only in a cluster with Google Groups for RBAC, and only if it is a member of that cluster's
    ``gke-security-groups@`` group. ``domain:`` has no equivalent and is left out: such members get no access here.
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
# Beside its VMs: pods without accelerators, waiting pods, and those of a job that restarts.
SPARE_PODS = 100
SPARE_CPUS = 64
SPARE_MEMORY_GIB = 256
# Beside the pods that run or wait: those of finished jobs, which exist until their job is deleted.
FINISHED_PODS = 1000
FINISHED_PODS_OF_VM = 50


def namespace_labels(
    team: str, kinds: Iterable[str], *, host_network: bool = False, confined: bool = False
) -> dict[str, str]:
    """Return the namespace labels that admission reads: the team, and the namespace's exceptions from baseline.

    ``kinds`` are kinds of GPUDirect. Without exceptions, Pod Security refuses pods that exceed baseline. With
    exceptions, Pod Security only warns, and the cluster's own policies refuse such pods.
    """
    beyond = [kind.lower() for kind in kinds]
    if host_network:
        beyond.append(HOST_NETWORK)
    modes = ("warn", "audit") if beyond else ("enforce", "warn")
    labels = {TEAM_LABEL: team}
    if confined:
        labels[CONFINED_LABEL] = "true"
    return {
        **labels,
        **{f"{ALLOW_LABEL}{permission}": "true" for permission in beyond},
        **{f"{POD_SECURITY}{mode}": "baseline" for mode in modes},
    }


def run_limit(team: Team, environment: Environment) -> dict[str, str]:
    """Return the annotation with the time limit of a team's jobs, which admission enforces."""
    hours = run_limit_hours(team, environment)
    return {MAX_RUN_SECONDS: str(hours * 3600)} if hours else {}


def resource_quota(
    shares: Mapping[str, Share], flavors: Mapping[str, Flavor], gated: Mapping[str, int] | None = None
) -> dict[str, str]:
    """Return the field ``hard`` of a team's ResourceQuota in one cluster, as the strings that the server returns.

    Kueue counts accelerators. The ResourceQuota limits a job that bypasses Kueue to the chips that the team has or can
    borrow. CPUs and memory are limited to the amounts on the VMs with these chips, plus a margin. ``gated`` are the
    chips of each flavor that pods request while Kueue gates them and other jobs still run. They must be included,
    because a refused pod could not preempt these jobs.
    """
    gated = gated or {}
    chips = Counter(dict.fromkeys(ACCELERATORS, 0))
    vms = 0
    cpus = float(SPARE_CPUS)
    memory = float(SPARE_MEMORY_GIB)
    for name, share in shares.items():
        flavor = flavors[name]
        max_chips = most_chips(share, flavor) + gated.get(name, 0)
        chips[flavor.accelerator.resource] += max_chips
        largest = max(flavor.pools, key=lambda pool: pool.machine.vcpus / _chips(flavor))
        hosts = ceil(max_chips / _chips(flavor))
        vms += hosts * largest.places_per_gpu
        cpus += hosts * largest.machine.vcpus
        memory += hosts * largest.machine.memory_gb
    return {
        **{f"requests.{resource}": str(maximum) for resource, maximum in chips.items()},
        "pods": str(2 * vms + SPARE_PODS),
        "count/pods": str((2 + FINISHED_PODS_OF_VM) * vms + SPARE_PODS + FINISHED_PODS),
        "requests.cpu": str(ceil(cpus)),
        "requests.memory": f"{ceil(memory)}Gi",
        **{kind: str(maximum) for kind, maximum in OBJECTS.items()},
    }


def most_chips(share: Share, flavor: Flavor) -> int:
    """Return the maximum number of a flavor's chips that a team can use: its own, and all that it may borrow."""
    nominal = share.nominal_quota
    borrowable = max(0, flavor.capacity_chips - nominal)
    return nominal + (borrowable if share.borrowing_limit is None else min(share.borrowing_limit, borrowable))


def _chips(flavor: Flavor) -> int:
    """Return the number of chips or GPUs on the flavor's smallest VM. For shared GPUs, each share counts as one."""
    return min(pool.machine.chips * pool.places_per_gpu for pool in flavor.pools)


# A quota of CPUs refuses pods that request none. Pods of jobs request only accelerators, and count as nothing.
DEFAULT_REQUESTS = {"cpu": "0", "memory": "0"}


POLICY_VERSION = "networking.k8s.io/v1"
POLICY_KIND = "NetworkPolicy"
FQDN_VERSION = "networking.gke.io/v1alpha1"
FQDN_KIND = "FQDNNetworkPolicy"
METADATA: Final = "169.254.169.254/32"
_RESOLVERS: Final = ("169.254.20.10/32", METADATA)  # NodeLocal DNSCache, and Cloud DNS for GKE
_DNS_PODS: Final = ("kube-dns", "node-local-dns")
# With Dataplane V2, and without it.
_METADATA_PORTS: Final[Mapping[str, tuple[int, ...]]] = {METADATA: (80, 8080), "169.254.169.252/32": (987, 988)}


def egress_spec(team: Team, environment: Environment) -> Json | None:
    """Return the spec of the NetworkPolicy for outgoing traffic of a team's pods, or None if it is not limited."""
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
    """Return the spec of the FQDNNetworkPolicy, or None. It allows host names in addition to the NetworkPolicy."""
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


COLLECTOR_NAMESPACE = "gmp-system"  # of Managed Prometheus
_MEMBERS = "members"
_QUOTA = "team"


@dataclass(frozen=True, kw_only=True)
class NamespaceParts:
    """The contents of a team's namespace in one cluster.

    - ``google_service_account`` is the e-mail address of the account that jobs act as in Google Cloud.
    - ``labels`` and ``annotations`` are read by admission.
    - ``quota`` limits all objects of the namespace together.
    - ``egress`` and ``hosts`` are the specs of the policies on outgoing traffic, if it is limited.
    - ``kinds`` are the kinds of jobs that operators run. Members may create them as well.
    - ``operators`` are the specs of the policies that allow traffic from operators, keyed by operator.
    """

    scope: Scope
    team: str
    members: tuple[str, ...]
    google_service_account: Any
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    quota: Mapping[str, str] = field(default_factory=dict)
    egress: Mapping[str, Any] | None = None
    hosts: Mapping[str, Any] | None = None
    kinds: Sequence[OperatorJob] = ()
    operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def team_namespace(into: Component, args: NamespaceParts) -> Any:
    """Add a namespace with the team's name, its members' roles and its jobs' account, isolated from other teams.

    Kueue counts accelerators: the ResourceQuota stops only jobs that bypass Kueue. Returns the namespace's name, which
    is known once it exists.
    """
    name = into.name
    scope = args.scope
    created = kubernetes_object(
        NAMESPACE,
        f"{name}-namespace",
        scope,
        args.team,
        {},
        labels=args.labels,
        annotations=args.annotations,
        # To delete it is to delete every job that runs in it and every claim of the team.
        options=Options(protect=scope.deletion_protection),
    )
    namespace = into.add(created).output("metadata", "name")
    into.outputs = {"namespace": namespace}
    into.add(
        kubernetes_object(
            SERVICE_ACCOUNT_OBJECT,
            f"{name}-service-account",
            scope,
            SERVICE_ACCOUNT,
            {},
            namespace=namespace,
            annotations={IDENTITY: args.google_service_account},
        )
    )
    _grant_members(into, args, namespace)
    _isolate(into, args, namespace)
    if args.quota:
        _limit(into, args, namespace)
    return namespace


def _grant_members(into: Component, args: NamespaceParts, namespace: Any) -> None:
    rules = rules_of_role(
        *(
            {"apiGroups": [rule.api_group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
            for rule in (*MEMBER_RULES, *rules_of(args.kinds))
        )
    )
    into.add(kubernetes_object(ROLE, f"{into.name}-role", args.scope, _MEMBERS, rules, namespace=namespace))
    members = [{"apiGroup": RBAC, "kind": subject.kind, "name": subject.name} for subject in subjects(args.members)]
    bound = binding("Role", _MEMBERS, members)
    logical = f"{into.name}-role-binding"
    into.add(kubernetes_object(ROLE_BINDING, logical, args.scope, _MEMBERS, bound, namespace=namespace))


def _isolate(into: Component, args: NamespaceParts, namespace: Any) -> None:
    """Allow traffic from the team's own pods, metrics collectors and operators, and to the destinations in the files.

    The workers of a training job must reach each other, and they trust every client. Network policies do not apply to
    pods on their node's network.
    """
    collector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": COLLECTOR_NAMESPACE}}}
    same_namespace = {
        "podSelector": {},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {}}, collector]}],
    }
    network_policies: list[tuple[str, str, str, Mapping[str, Any] | None]] = [
        ("network", NETWORK_POLICY, "same-namespace", same_namespace),
        ("egress", object_type(POLICY_VERSION, POLICY_KIND), "egress", args.egress),
        ("hosts", object_type(FQDN_VERSION, FQDN_KIND), "hosts", args.hosts),
    ]
    for operator, spec in args.operators.items():
        network_policies.append((operator, object_type(POLICY_VERSION, POLICY_KIND), operator, spec))
    for role, kind, name, policy in network_policies:
        if policy:
            logical = f"{into.name}-{role}-policy"
            into.add(kubernetes_object(kind, logical, args.scope, name, {"spec": policy}, namespace=namespace))


def _limit(into: Component, args: NamespaceParts, namespace: Any) -> None:
    """Add the quota that limits the objects of the namespace."""
    limits = {"limits": [{"type": "Container", "defaultRequest": dict(DEFAULT_REQUESTS)}]}
    for kind, role, spec in (
        (LIMIT_RANGE, "limit-range", limits),
        (RESOURCE_QUOTA, "resource-quota", {"hard": dict(args.quota)}),
    ):
        logical = f"{into.name}-{role}"
        into.add(kubernetes_object(kind, logical, args.scope, _QUOTA, {"spec": spec}, namespace=namespace))


# To find a cluster and to connect to its DNS-based endpoint (container.clusters.get and .connect), and no right inside
# it. That the role holds the second permission is (unverified): a listing of its permissions, without a date, lacks it.
CONNECT_ROLE = "roles/container.clusterViewer"


def cluster_callers(scope: Scope, project: str, members: Sequence[str]) -> Iterator[Resource]:
    """Yield the roles with which a team's members call the clusters; ``project`` is the project of the clusters."""
    for member in members:
        yield shared_role(f"connect-{slug(member)}", scope, project, CONNECT_ROLE, member)


def admission(
    into: Component,
    scope: Scope,
    images: Mapping[str, str],
    bounds: Bounds,
    *,
    sources: Sequence[str] = (),
    kinds: Sequence[OperatorJob] = (),
    devices: bool = False,
) -> None:
    """Add the ValidatingAdmissionPolicies of one cluster and their bindings. They apply in every team's namespace.

    - ``images`` are the stack file's locations of the images that nodes and the daemons of GPUDirect run.
    - ``sources`` are the allowed prefixes of images in teams' pods, if the environment limits them.
    - ``kinds`` are the kinds of jobs that operators run.
    - ``devices`` allows pods to claim network devices.
    """
    for policy in policies({**IMAGES, **images}, bounds, sources, kinds, devices=devices):
        logical = f"{into.name}-{policy.name.removeprefix('training-platform-')}"
        refused = into.add(kubernetes_object(ADMISSION_POLICY, logical, scope, policy.name, {"spec": policy.spec}))
        bound = kubernetes_object(ADMISSION_BINDING, f"{logical}-binding", scope, policy.name, {"spec": policy.binding})
        into.add(bound, [refused])
