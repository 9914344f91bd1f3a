"""The platform's local cloud. Like ``check``, it refuses violations of Google's rules, quotas and IAM permissions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from local_google_cloud.api import (
    Access,
    Clock,
    CloudSettings,
    Judge,
    LocalCloud,
    Missing,
    Policies,
    Quota,
    QuotaLimit,
    Refusal,
    Store,
    TrainingVms,
)
from training_platform.catalog import IMAGES, MACHINE_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.permissions import permissions
from training_platform.catalog.types import ChargedCapacity, Json
from training_platform.config.reading.finding import Finding
from training_platform.quota.charges import VERTEX_DEFAULT_DISK, Charge, QuotaKey, Usage, VmUsage, vertex_usage
from training_platform.quota.demand import demand_of_views
from training_platform.quota.snapshot import Snapshot
from training_platform.resources.rights import PolicyGrant, Rights, lacking, requirements, resource_named
from training_platform.rules import evaluate, program, view_rules
from training_platform.views.adapters import views_of_rest
from training_platform.views.node_pool import NodePoolView
from training_platform.views.vertex import PersistentPoolView
from training_platform.views.view import View

# Google refuses no request by these rules: it applies a default, which costs something later.
_NOT_REFUSED: Final = frozenset({"vertex-boot-disk-written"})
_RULES: Final = tuple(
    rule
    for rule in view_rules()
    if (rule.owner, rule.severity) == ("google", "error") and not (rule.whole or rule.across or rule.id in _NOT_REFUSED)
)
# GKE's default machine type. Shared-core machines are not in the catalogue; this one is charged like the type beside it
# (Compute docs, general-purpose machines: 2 vCPUs; general knowledge).
_CHARGED_AS: Final = {"e2-medium": "e2-standard-2"}
_READER: Final = "roles/artifactregistry.reader"
_CAPACITY: Final[Mapping[str, ChargedCapacity]] = {"SPOT": "spot", "FLEX_START": "flex-start"}


class PlatformJudge(Judge):
    """Applies the checks of ``check`` to REST bodies: Google's rules, quotas from ``snapshots``, and permissions.

    A limit that a snapshot does not list is not enforced. VMs of a machine type outside the catalogue are refused,
    since their charge is unknown. Permissions on billing accounts are unknown. Google's own accounts have the roles
    that Google grants them when their API is enabled.
    """

    def __init__(self, snapshots: Mapping[str, Snapshot]) -> None:
        self._snapshots = snapshots

    def findings(self, collection: str, body: Json, *, project: str, name: str) -> list[Finding]:
        """Return the errors in the body of a resource."""
        views = views_of_rest(collection, body, project=project, name=name)
        if not views:
            return []
        whole = program(views, stack="", environment="", team=None, production=False)
        return [finding for finding in evaluate(whole, _RULES) if finding.severity == "error"]

    # Quotas

    def charges(
        self, collection: str, body: Json, *, project: str, name: str, nodes: int | None
    ) -> Iterator[tuple[Quota, float]]:
        """Yield each quota that a resource uses, with the amount for the current VMs of its pools."""
        views = views_of_rest(collection, body, project=project, name=name)
        charges, _ = demand_of_views([_with_current_nodes(_with_known_machine(view), nodes) for view in views], project)
        for charge in charges:
            if charge.amount:
                yield self._charged(charge), charge.amount

    def training_charges(self, vms: TrainingVms) -> Iterator[tuple[Quota, float]]:
        """Yield each quota that the VMs of a training job use, with the amount."""
        if vms.machine_type not in MACHINE_TYPES:
            nearest = find_nearest(vms.machine_type, MACHINE_TYPES)
            hint = f" Nearest: {nearest}." if nearest else ""
            raise Refusal(400, f'Machine type "{vms.machine_type}" is not supported.{hint}')
        usage = VmUsage(
            project=vms.project,
            machine_type=vms.machine_type,
            nodes=vms.nodes,
            capacity=_CAPACITY.get(vms.strategy, "on-demand"),
            location=vms.location,
            disk_type=vms.disk_type or VERTEX_DEFAULT_DISK,
            disk_gb=vms.disk_gb,
            accelerator_type=vms.accelerator_type or None,
            accelerator_count=vms.accelerator_count,
        )
        for charge in vertex_usage(usage):
            yield self._charged(charge), charge.amount

    def _charged(self, charge: Charge | Usage) -> Quota:
        """Return the quota that an amount is charged to: the first one with a limit, else the first one."""
        quotas = [Quota._make(key) for key in charge.keys]
        return next((quota for quota in quotas if self.limit(quota)), quotas[0])

    def limit(self, quota: Quota) -> float | None:
        """Return the limit of a quota, or None if it is unknown."""
        snapshot = self._snapshots.get(quota.project)
        return snapshot.limit(QuotaKey._make(quota)) if snapshot else None

    def limits(self, project: str, service: str) -> Mapping[str, Sequence[QuotaLimit]]:
        """Return the limits in the project's snapshot."""
        snapshot = self._snapshots.get(project)
        rows = snapshot.limits.get(service, {}) if snapshot else {}
        return {
            name: [QuotaLimit(limit.place, limit.dimensions, amount=limit.limit) for limit in limits]
            for name, limits in rows.items()
        }

    # Rights

    def lacking(self, member: str, access: Access, policies: Policies) -> Iterator[Missing]:
        """Yield the permissions that a member's request needs and that no policy grants."""
        # Service Networking names the project only in its body.
        resource = access.resource or resource_named(str(access.request.get("network", "")), "")
        resource = _by_id(policies, resource)
        if resource.startswith("billingAccounts/") or access.method.endswith(".testIamPermissions"):
            return
        rights = _rights(policies)
        try:
            needs = list(requirements(access.method, resource, access.request))
        except KeyError as error:
            message = f"the local cloud does not know the permissions of {access.method}: see catalog/operations.yaml"
            raise Refusal(501, message) from error
        needs = [need._replace(resource=_by_id(policies, need.resource)) for need in needs if need.resource]
        *_, project = ["", *rights.ancestry(resource)]
        denied = lacking(
            rights,
            member,
            needs,
            lambda name: _agent(policies, name, project.partition("/")[2]),
            time=policies.time,
            modified_roles=access.modified_roles,
        )
        for who, need in denied:
            yield Missing(who, need.permission, resource=need.resource, of_agent=bool(need.agent))

    def held(self, member: str, permissions: Collection[str], resource: str, policies: Policies) -> list[str]:
        """Return those of the given permissions that a member has on a resource."""
        rights = _rights(policies)
        return [name for name in permissions if rights.grant_of(member, name, resource) is not None]


def judged_cloud(
    projects: Iterable[str],
    snapshots: Mapping[str, Snapshot] | None = None,
    *,
    store: Store | None = None,
    clock: Clock | None = None,
    settings: CloudSettings | None = None,
) -> LocalCloud:
    """Return a local cloud that refuses what Google refuses. It has ``projects`` and those of ``snapshots``."""
    judge = PlatformJudge(snapshots or {})
    return LocalCloud({*projects, *(snapshots or {})}, store=store, clock=clock, settings=settings, judge=judge)


def _with_known_machine(view: View) -> View:
    """Return the view of a resource whose machine type can be charged. Raises Refusal for an unknown machine type.

    Surge VMs are not charged, since they exist only during an upgrade.
    """
    if not isinstance(view, (NodePoolView, PersistentPoolView)):
        return view
    if isinstance(view, NodePoolView):
        view = view.replaced(upgrades=True, upgrade_strategy="SURGE", max_surge=0)
    name = view.machine_type or ""
    if name in _CHARGED_AS:
        return view.replaced(machine_type=_CHARGED_AS[name])
    if name not in MACHINE_TYPES:
        nearest = find_nearest(name, MACHINE_TYPES)
        hint = f"; nearest: '{nearest}'" if nearest else ""
        message = (
            f"Machine type with name '{name}' does not exist (the local cloud has the catalogue's machine types{hint})."
        )
        raise Refusal(400, message)
    return view


def _with_current_nodes(view: View, nodes: int | None) -> View:
    """Return the view of a resource with its current VMs as the maximum of its pool, since Google charges these.

    ``nodes`` is the current size of a node pool.
    """
    if isinstance(view, PersistentPoolView):
        return view.replaced(max_replicas=None)
    if not isinstance(view, NodePoolView):
        return view
    return view.replaced(total_max_nodes=nodes, max_nodes=nodes, node_count=0, initial_nodes=0)


def _rights(policies: Policies) -> Rights:
    """Return the permissions that policies grant, and those that Google grants to its own accounts."""
    grants = [PolicyGrant._make(grant) for grant in policies.grants]
    public_repositories = {resource_named(image, "") for image in IMAGES.values()} - {""}  # such as Vertex AI's images
    grants += (PolicyGrant("allUsers", _READER, resource=repository) for repository in public_repositories)
    for name, agent in permissions().agents.items():
        for project in policies.numbers:
            if (project, agent.of) in policies.enabled:
                member = _agent(policies, name, project)
                grants += (PolicyGrant(member, role, resource=f"projects/{project}") for role in agent.roles)
    return Rights(grants=grants, groups=policies.groups, project_of=lambda bucket: policies.buckets.get(bucket, ""))


def _agent(policies: Policies, name: str, project: str) -> str:
    return f"serviceAccount:{permissions().agents[name].email.format(policies.numbers.get(project))}"


def _by_id(policies: Policies, resource: str) -> str:
    """Return a resource's name with the id of its project instead of the number, if the cloud has the project."""
    kind, _, project_path = resource.partition("/")
    project, slash, below = project_path.partition("/")
    ids = {number: name for name, number in policies.numbers.items()}
    if kind != "projects" or project not in ids:
        return resource
    return f"projects/{ids[project]}{slash}{below}"
