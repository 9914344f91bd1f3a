"""What the capacity ledger says of model servers: at their most they have to fit into the team's share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.model.workloads import ServerSpec
from training_platform.config.pools import Flavor
from training_platform.config.reading.finding import Finding, Path, Severity
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.resources.kueue.objects import priorities
from training_platform.resources.serving.leader_worker_set import OPERATOR
from training_platform.resources.serving.server import chips_of, most_chips, replica_chips, slice_vms, vms_of


def serving_findings(workspace: Workspace) -> Iterator[Finding]:
    """Find servers that the share or the machines of their flavor do not hold, and those that no training yields to."""
    for stack, team, home in workspace.teams():
        for cluster, servers in team.serving.items():
            known = workspace.flavors(team.environment, cluster) if cluster in home.clusters else {}
            by_flavor: dict[str, dict[str, ServerSpec]] = defaultdict(dict)
            for name, server in servers.items():
                if server.flavor in known and server.flavor in team.shares.get(cluster, ()):
                    path: Path = ("serving", cluster, name)
                    yield from _unfit(stack, path, server, known[server.flavor])
                    yield from _several(stack, (*path, "vms"), server, known[server.flavor], home.clusters[cluster])
                    yield from _elsewhere(stack, path, server, home)
                    yield from _yields_nothing(stack, path, server, team, home)
                    by_flavor[server.flavor][name] = server
            for flavor, each in by_flavor.items():
                nominal = team.shares[cluster][flavor].nominal_quota
                yield from _over_share(stack, ("serving", cluster), nominal, known[flavor], each)


def _over_share(
    stack: Stack, path: Path, nominal: int, flavor: Flavor, servers: Mapping[str, ServerSpec]
) -> Iterator[Finding]:
    """Find servers that at their most ask for more than the team can always get back."""
    asked = {name: most_chips(server, flavor) for name, server in servers.items()}
    total = sum(asked.values())
    for name, server in servers.items() if total > nominal else ():
        fits = max(0, nominal - (total - asked[name])) // replica_chips(server, flavor)
        each = ", ".join(f"{other} {chips}" for other, chips in asked.items())
        message = f"model servers on {flavor.name} can have {total} {flavor.accelerator.resource} ({each})"
        yield stack.finding(
            "serving-over-share", (*path, name, "max_replicas"), f"{message}; the team's share is {nominal}",
            allowed=f"at most {fits} besides the others" if fits else "a larger share",
            nearest=fits if fits >= server.min_replicas else None,
        )  # fmt: skip


def _unfit(stack: Stack, path: Path, server: ServerSpec, flavor: Flavor) -> Iterator[Finding]:
    """Find a flavor whose VMs are one job's, and chips that no VM gives a pod."""
    if flavor.by_request:
        message = f"VMs of {flavor.name} come for one job and are deleted after its longest run"
        yield _wrong(stack, (*path, "flavor"), message, "a flavor without queued provisioning")
    places = min(pool.machine.chips * pool.places_per_gpu for pool in flavor.pools)
    chips = chips_of(server, flavor)
    whole = flavor.accelerator.kind == "tpu" or vms_of(server, flavor) > 1
    if chips > places or (whole and chips != places):
        message = f"is {chips}, and a VM of {flavor.name} has {places}"
        message += ", all of which a pod takes" if whole else ""
        yield _wrong(stack, (*path, "chips"), message, str(places) if whole else f"at most {places}", places)


def _several(stack: Stack, path: Path, server: ServerSpec, flavor: Flavor, spec: ClusterSpec) -> Iterator[Finding]:
    """Find VMs that are no slice, and replicas of several VMs where nothing makes their pods."""
    vms, own = vms_of(server, flavor), slice_vms(flavor)
    if flavor.accelerator.kind == "tpu" and (server.vms or own) != own:
        yield _wrong(stack, path, f"is {server.vms}, and a slice of {flavor.name} has {own}", str(own), own)
    elif vms > 1 and OPERATOR not in spec.operators:
        message = f"a replica on {flavor.name} is of {vms} VMs, for which its cluster has no {OPERATOR}"
        yield _wrong(stack, (*path[:-1], "flavor"), message, f"a cluster with {OPERATOR} among its operators")
    elif vms == 1 and server.worker_command:
        message = f"has no effect: a replica on {flavor.name} is of one VM"
        yield _wrong(stack, (*path[:-1], "worker_command"), message, "vms of at least 2, or the field left out")


def _elsewhere(stack: Stack, path: Path, server: ServerSpec, home: Environment) -> Iterator[Finding]:
    """Find an image that the cluster's admission policy refuses."""
    sources = home.image_sources
    if sources and not server.image.startswith(sources):
        message = f"{server.image} comes from elsewhere than image_sources of {stack.environment_name} say"
        yield _wrong(stack, (*path, "image"), message, f"images of {enumeration(sources)}")


def _yields_nothing(stack: Stack, path: Path, server: ServerSpec, team: Team, home: Environment) -> Iterator[Finding]:
    """Find a server that waits behind running training, though pods of it are asked for by load."""
    values = priorities(home)
    if team.preemption.within_queue == "Never":
        message = "no job of the team is stopped for its model servers, which wait until one ends"
        yield _wrong(
            stack, ("preemption", "within_queue"), message, "LowerPriority", "LowerPriority", severity="warning"
        )
    above = [other for other, value in values.items() if value > values.get(server.priority, 0)]
    if above:
        message = f"{server.priority} is below {enumeration(above)}, jobs of which are not stopped for it"
        nearest = max(values, key=values.__getitem__)
        yield _wrong(stack, (*path, "priority"), message, "the highest priority", nearest, severity="warning")


def _wrong(
    stack: Stack, path: Path, message: str, allowed: str, nearest: object = None, *, severity: Severity = "error"
) -> Finding:
    return stack.finding("serving-fits", path, message, severity=severity, allowed=allowed, nearest=nearest)
