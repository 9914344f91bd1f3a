"""Finds changes that Kueue or Google Cloud refuses, or that need other permissions or a certain order of deployment.

The order depends on which parts of their environment the teams need. A part that a team starts to need is deployed
before the team. A part that a team no longer needs is removed after the team is deployed. There are two reasons.
Kueue's finalizer keeps a ResourceFlavor as long as a queue names it, so the deployment of the environment would wait
for that of the team (seen on Kueue 0.19.2). Once a cluster is deleted, the team's objects in it cannot be reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from training_platform.catalog import FILESTORE_TIERS, LUSTRE_TIERS
from training_platform.checks.change_report import Comparison
from training_platform.config.model.storage import FilestoreSpec, LustreSpec
from training_platform.config.names import Locator
from training_platform.config.reading.declaration import Draft, declare, finding
from training_platform.config.reading.finding import Path, Severity, UserError
from training_platform.config.reading.section import enumeration, listed
from training_platform.config.workspace import Workspace
from training_platform.quota.ledger_findings import promised_of
from training_platform.resources.kueue import resource_flavor
from training_platform.resources.pipeline_accounts import environment_rights
from training_platform.resources.plan import PlanError
from training_platform.resources.resource_types import covers

_FIXED = ("topologyName", "nodeLabels", "tolerations")
FIXED_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "autoscaling.x-k8s.io:ProvisioningRequest": ("spec.parameters", "spec.podSets", "spec.provisioningClassName"),
    "cloud.google.com:ComputeClass": ("spec.autopilot",),
    "jobset.x-k8s.io:JobSet": (
        "spec.failurePolicy", "spec.network", "spec.startupPolicy", "spec.successPolicy", "spec.volumeClaimPolicies",
    ),
    "kueue.x-k8s.io:AdmissionCheck": ("spec.controllerName",),
    "kueue.x-k8s.io:LocalQueue": ("spec.clusterQueue",),
    "kueue.x-k8s.io:Topology": ("spec.levels",),
}  # fmt: skip
"""Immutable inputs, keyed by API group and kind. Those of a ResourceFlavor are immutable if it has a topology."""
_ANEW = "or a new instance to which you copy the data"
_FILESTORE = ("location", "tier", "share", "protocol", "connection", "restore_from")
_LUSTRE = ("location", "mbps_per_tib", "filesystem")
_Spec = FilestoreSpec | LustreSpec


class NeededPart(NamedTuple):
    """A part of an environment that a team needs, such as a cluster: its path in the environment's file, and a noun."""

    path: Path
    noun: str


class DeploymentOrder(NamedTuple):
    """The parts of an environment that teams need and that a change adds or removes, each with the team's stack."""

    added: tuple[tuple[str, NeededPart], ...]
    removed: tuple[tuple[str, NeededPart], ...]

    @property
    def before(self) -> frozenset[str]:
        """The stacks of teams that are deployed before their environment, because they stop needing a part of it."""
        return frozenset(stack for stack, _ in self.removed)

    @property
    def two_deployments(self) -> str:
        """The reason why the change needs two deployments; an empty string if one deployment is enough."""
        for stack, gone in self.removed:
            for new in (need for other, need in self.added if other == stack):
                return (
                    f"{stack} starts to use {new.noun}, which is added, and stops using {gone.noun}, which is removed"
                )
        return ""


def deployment_order(head: Workspace, base: Workspace, environment: str) -> DeploymentOrder:
    """Return the parts that determine in which order an environment and its teams are deployed."""
    offered, before = (_offered(side, environment) for side in (head, base))
    needed = tuple(_needs(head, environment))
    still_needed = frozenset(needed)
    no_longer_needed = [need for need in _needs(base, environment) if need not in still_needed]
    return DeploymentOrder(
        added=tuple((stack, need) for stack, need in needed if need in offered - before),
        removed=tuple((stack, need) for stack, need in no_longer_needed if need in before - offered),
    )


REMOVED_FLAVOR = declare(
    "removed-flavor",
    "Find a resource that an environment removes in the same change in which a team stops using it.",
    ruleset="changes",
    severity="warning",
)


def removals(head: Workspace, base: Workspace) -> Iterator[Draft]:
    """Yield a finding for each part that an environment removes in the change in which a team stops needing it."""
    for home, _ in head.environments():
        order = deployment_order(head, base, home.name)
        why = order.two_deployments
        teams: dict[Path, dict[str, None]] = {}
        parts: dict[Path, dict[str, None]] = {}
        for stack, need in order.removed:
            gone = (
                need.path if home.environment is None or need.path[-1] in home.environment.clusters else need.path[:1]
            )
            teams.setdefault(gone, {})[stack] = None
            parts.setdefault(gone, {})[need.noun] = None
        for path, names in teams.items():
            verb = "is" if len(parts[path]) == 1 else "are"
            stops = "stops" if len(names) == 1 else "stop"
            removed = listed(list(parts[path]), 3)
            message = f"{removed} {verb} removed in the same change in which {enumeration(names)} {stops} using it"
            allowed = f"deploying {enumeration(names)} before {home.name}, as pipelines do"
            if why:
                message += f", which requires two deployments: {why}"
                allowed = "two changes: first the additions, then the removals"
            severity: Severity = "warning" if why else "note"
            yield finding(home, path, message, rule=REMOVED_FLAVOR, severity=severity, allowed=allowed)


def _needs(workspace: Workspace, environment: str) -> Iterator[tuple[str, NeededPart]]:
    """Yield the parts of an environment that teams need, each with the team's stack."""
    for stack, team, home in workspace.teams():
        if team.environment != environment:
            continue
        for cluster, shares in team.shares.items():
            yield stack.name, _cluster(cluster)
            yield from ((stack.name, _flavor(cluster, flavor)) for flavor in shares)
        for directory in team.directories.values():
            yield stack.name, _instance(directory.filestore)
        for data in home.data_sets.values():
            if data.filestore and data.readable_by(team.name):
                yield stack.name, _instance(data.filestore.instance)


def _offered(workspace: Workspace, environment: str) -> frozenset[NeededPart]:
    """Return the parts that an environment has and that teams can need; empty if the environment does not exist."""
    stack = workspace.stacks.get(environment)
    home = stack.environment if stack else None
    if home is None:
        return frozenset()
    flavors = (
        _flavor(cluster, flavor) for cluster in home.clusters for flavor in workspace.flavors(environment, cluster)
    )
    return frozenset((*map(_cluster, home.clusters), *flavors, *map(_instance, home.filestore)))


def _cluster(name: str) -> NeededPart:
    return NeededPart(("clusters",), f"cluster {name}")


def _flavor(cluster: str, name: str) -> NeededPart:
    return NeededPart(("clusters", cluster), f"flavor {name} of cluster {cluster}")


def _instance(name: str) -> NeededPart:
    return NeededPart(("filestore",), f"Filestore instance {name}")


PLACED_FLAVOR = declare(
    "placed-flavor",
    "Find a change to a flavor with a topology that Kueue refuses.",
    ruleset="changes",
)


def placed_flavors(head: Workspace, base: Workspace) -> Iterator[Draft]:
    """Yield a finding for each flavor that remains but changes inputs, although its topology makes them immutable.

    Replacing the object is not possible: its finalizer blocks the deletion as long as a queue names it, and the queues
    are in the stacks of teams. Source: Kueue 0.19.2, CEL rules of the CRD of ResourceFlavor, read 2026-11-22 and seen
    on an API server.
    """
    for stack, environment, was, former in head.kept_environments(base):
        for cluster, spec in environment.clusters.items():
            old_spec = former.clusters.get(cluster)
            if old_spec is None or old_spec.location != spec.location:
                continue
            old_flavors = base.flavors(was.name, cluster)
            for name, flavor in head.flavors(stack.name, cluster).items():
                old = old_flavors.get(name)
                if old is None:
                    continue
                changed = fixed_by_topology(resource_flavor(old), resource_flavor(flavor))
                if changed:
                    pools = [pool.name for pool in flavor.pools if pool.name in spec.node_pools]
                    section = ("node_pools", pools[0]) if pools else ()
                    path = ("clusters", cluster, *section)
                    yield finding(
                        stack,
                        path,
                        f"changes {', '.join(changed)} of flavor {name}, which Kueue refuses because the flavor has "
                        f"a topology",
                        rule=PLACED_FLAVOR,
                        allowed="the pool unchanged; or two changes: remove the pool with all its shares, then add "
                        "both again",
                        spoils=(stack.at(path),),
                    )


def fixed_by_topology(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return the inputs in which two specs of a ResourceFlavor differ although the first one's topology fixes them."""
    if before.get("topologyName") is None:
        return []
    return [field for field in _FIXED if before.get(field) != after.get(field)]


FIXED_INPUT = declare(
    "fixed-input",
    "Find a change to an input that the API server treats as immutable.",
    ruleset="changes",
)


def fixed_inputs(comparison: Comparison) -> Iterator[Draft]:
    """Yield a finding for each object that remains but changes an input which its API server does not allow to change.

    Source: rules on the old object in the CRDs of Kueue 0.19.2, JobSet 0.12.0, ProvisioningRequest and ComputeClass
    (compute-class-api 8067eae), read 2026-11-28.
    """
    for change in comparison.stacks:
        stack = change.head
        if stack is None or stack.section is None:
            continue
        locator = Locator(stack.section)
        for resource in change.resources:
            fixed = FIXED_INPUTS.get(_without_version(resource.type), ())
            changed = [name for name in fixed if any(covers(name, row.path) for row in resource.inputs)]
            if changed and resource.kind == "changed":
                kind = resource.type.rpartition(":")[2]
                message = f"changes {enumeration(changed)} of {kind} {resource.name}, which the API server refuses"
                path = locator.path(resource.name)
                yield finding(
                    stack,
                    path,
                    message,
                    rule=FIXED_INPUT,
                    allowed="the old value; or an object with another name; or the input in replace_on_changes",
                    spoils=(stack.at(path),) if path else (),
                )


def _without_version(resource_type: str) -> str:
    """Return a Kubernetes type without the version, ``kueue.x-k8s.io:LocalQueue``; any other type is unchanged."""
    _, group, kind = resource_type.rsplit(":", 2) if resource_type.count(":") == 2 else ("", resource_type, "")
    return f"{group.partition('/')[0]}:{kind}"


FILESTORE_RANGE_KEPT = declare(
    "filestore-range-kept",
    "Find a change of a Filestore instance's address range: the instance would keep its original range.",
    ruleset="changes",
)


FILESTORE_GROWTH = declare(
    "filestore-growth",
    "Find a new capacity that an existing instance does not support.",
    ruleset="changes",
)


def kept_instances(head: Workspace, base: Workspace) -> Iterator[Draft]:
    """Yield a finding for each file system that remains but changes its IP range, or its capacity in a refused way.

    Source: Filestore docs, service tiers, read 2026-04-10; Filestore CSI driver 2edb466, controller.go; Managed Lustre
    docs, increase the capacity, read 2026-11-22.
    """
    for stack, environment, _, former in head.kept_environments(base):
        sections: tuple[tuple[str, Mapping[str, _Spec], Mapping[str, _Spec], tuple[str, ...]], ...] = (
            ("filestore", environment.filestore, former.filestore, _FILESTORE),
            ("lustre", environment.lustre, former.lustre, _LUSTRE),
        )
        for section, specs, old_specs, fields in sections:
            for name, spec in specs.items():
                old = old_specs.get(name)
                if old is None or any(getattr(spec, field) != getattr(old, field) for field in fields):
                    continue  # a new instance may have any capacity and range
                if isinstance(old, FilestoreSpec) and isinstance(spec, FilestoreSpec) and old.reserved_range:
                    kept = old.reserved_range
                    written = spec.reserved_range
                    if written != kept:
                        message = (
                            f"is {written or 'left out'}, but the instance keeps {kept}: Filestore reads this field "
                            f"only at creation"
                        )
                        yield finding(
                            stack,
                            (section, name, "reserved_range"),
                            message,
                            rule=FILESTORE_RANGE_KEPT,
                            allowed=f"{kept}, {_ANEW}",
                            nearest=kept,
                            spoils=(stack.at((section, name, "reserved_range")),),
                        )
                if refusal := _refusal(spec, old.capacity_gib):
                    path = (section, name, "capacity_gib")
                    yield finding(
                        stack,
                        path,
                        refusal.message,
                        rule=FILESTORE_GROWTH,
                        allowed=refusal.allowed,
                        nearest=str(refusal.nearest_gib),
                        spoils=(stack.at(path), stack.at(promised_of(name))),
                    )


class _Refusal(NamedTuple):
    message: str
    allowed: str
    nearest_gib: int


def _refusal(spec: _Spec, before: int) -> _Refusal | None:
    if isinstance(spec, LustreSpec):
        name = "Managed Lustre"
        bands = LUSTRE_TIERS[f"lustre-{spec.mbps_per_tib}"].bands
        shrinks = False
    elif tier := FILESTORE_TIERS.get(spec.tier):
        name = tier.name
        bands = tier.bands
        shrinks = tier.shrinks
    else:
        return None
    after = spec.capacity_gib
    if after < before and not shrinks:
        return _Refusal(
            message=f"is {after:,}, less than the current {before:,} GiB: {name} does not shrink",
            allowed=f"{before:,} GiB or more, {_ANEW}",
            nearest_gib=before,
        )
    old, new = (next((band for band in bands if band.low_gib <= gib <= band.high_gib), None) for gib in (before, after))
    if old is not None and new not in (old, None):
        return _Refusal(
            message=f"is {after:,}, in another capacity band than the current {before:,} GiB: {name} does not change "
            f"its band",
            allowed=f"{old.low_gib:,} to {old.high_gib:,} GiB, {_ANEW}",
            nearest_gib=old.high_gib if after > before else old.low_gib,
        )
    return None


DEPLOYER_RIGHTS = declare(
    "deployer-rights",
    "Find rights that the account which deploys an environment needs for this change.",
    ruleset="changes",
    severity="note",
)


def further_rights(comparison: Comparison, head: Workspace, base: Workspace) -> Iterator[Draft]:
    """Yield a note for each environment whose deployer would get a 403 because setup has not granted it a new role."""
    created = [
        change.name
        for change in comparison.stacks
        if any(resource.kind in ("added", "replaced") for resource in change.resources)
    ]
    homes = dict.fromkeys(head.stacks[name].environment_name for name in created if name in head.stacks)
    for name in homes:
        try:
            before = environment_rights(name, base).needs
            needs = environment_rights(name, head).needs
        except (PlanError, UserError):  # other findings say why
            continue
        further = {place: sorted(rights - before.get(place, set())) for place, rights in needs.items()}
        if sentences := [f"{listed(rights, 4)} in {place}" for place, rights in further.items() if rights]:
            yield finding(
                head.stacks[name],
                (),
                f"the account that deploys it needs further rights: {'; '.join(sentences)}",
                rule=DEPLOYER_RIGHTS,
                allowed="if a pipeline deploys it, run `training-platform pipeline-accounts` before the merge, or "
                "`pulumi up` fails",
            )
