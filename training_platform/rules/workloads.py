"""Rules about model servers and notebooks that do not fit the shares, machines or images that they use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from training_platform.catalog.nearest import find_nearest
from training_platform.config.expansion import ExpandedPool, Flavor, cluster_pools, flavor_name
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team, Vertex
from training_platform.config.model.workloads import NotebookTeam, ServerSpec
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.finding import Finding, Path, Severity
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.resources.kueue import priorities
from training_platform.resources.notebooks import holds_notebooks
from training_platform.resources.serving import OPERATOR, chips_of, most_chips, replica_chips, slice_vms, vms_of
from training_platform.rules.system_requests import system_pool_findings


def workload_findings(workspace: Workspace) -> list[Finding]:
    """Find model servers, teams' notebooks and controllers that could not run."""
    drafts = [*serving_findings(workspace), *notebook_findings(workspace), *system_pool_findings(workspace)]
    return located([*drafts, *share_findings(workspace)])


SHARE_EMPTY = declare(
    "share-empty",
    "Find a share with which no job can run, because its quota and its borrowing limit are 0.",
    ruleset="capacity",
    severity="warning",
    refused_by="`check` only. Kueue accepts the queue, but its jobs wait forever",
    excuse="exemption",
)
TEAM_WITHOUT_SHARE = declare(
    "team-without-share",
    "Find a team that has neither a share nor Vertex AI, so that none of its jobs can run.",
    ruleset="capacity",
    severity="warning",
    refused_by="`check` only, because there is no queue for the team",
    excuse="exemption",
)


def share_findings(workspace: Workspace) -> Iterator[Draft]:
    """Find teams that cannot run anything, and shares that are too small to run anything."""
    for stack, team, _ in workspace.teams():
        if stack.retired is not None or stack.findings:
            continue
        if not team.shares and team.vertex == Vertex():
            message = "is empty, and the team has nothing on Vertex AI either, so none of its jobs can run"
            yield finding(stack, ("shares",), message, rule=TEAM_WITHOUT_SHARE, allowed="a share of a flavor")
        for cluster, shares in team.shares.items():
            for flavor, share in shares.items():
                if share.nominal_quota == 0 and share.borrowing_limit == 0:
                    yield finding(
                        stack,
                        ("shares", cluster, flavor, "borrowing_limit"),
                        "is 0, and so is nominal_quota, so no job in this queue can ever run",
                        rule=SHARE_EMPTY,
                        allowed="a larger nominal_quota or borrowing_limit",
                    )


def serving_findings(workspace: Workspace) -> Iterator[Draft]:
    """Find servers that do not fit the share or the machines of their flavor, and servers that preempt no training."""
    for stack, team, home in workspace.teams():
        for cluster, servers in team.serving.items():
            flavors = workspace.flavors(team.environment, cluster) if cluster in home.clusters else {}
            by_flavor: dict[str, dict[str, ServerSpec]] = defaultdict(dict)
            for name, server in servers.items():
                if server.flavor in flavors and server.flavor in team.shares.get(cluster, ()):
                    path: Path = ("serving", cluster, name)
                    flavor = flavors[server.flavor]
                    yield from _flavor_findings(stack, path, server, flavor)
                    yield from _vms_findings(stack, (*path, "vms"), server, flavor, home.clusters[cluster])
                    yield from _server_image_findings(stack, path, server, home)
                    yield from _priority_findings(stack, path, server, team, home)
                    by_flavor[server.flavor][name] = server
            for name, on_flavor in by_flavor.items():
                nominal = team.shares[cluster][name].nominal_quota
                yield from _over_share(stack, ("serving", cluster), nominal, flavors[name], on_flavor)


SERVING_OVER_SHARE = declare(
    "serving-over-share",
    "Find model servers whose maximum exceeds the team's share.",
    ruleset="capacity",
    excuse="exemption",
)


def _over_share(
    stack: Stack, path: Path, nominal: int, flavor: Flavor, servers: Mapping[str, ServerSpec]
) -> Iterator[Draft]:
    """Find servers whose replicas may request more chips than the team can reclaim at any time."""
    requested = {name: most_chips(server, flavor) for name, server in servers.items()}
    total = sum(requested.values())
    if total <= nominal:
        return
    parts = ", ".join(f"{name} {chips}" for name, chips in requested.items())
    message = f"model servers on {flavor.name} can request {total} {flavor.accelerator.resource} ({parts})"
    for name, server in servers.items():
        fits = max(0, nominal - (total - requested[name])) // replica_chips(server, flavor)
        yield finding(
            stack,
            (*path, name, "max_replicas"),
            f"{message}, but the team's share is {nominal}",
            rule=SERVING_OVER_SHARE,
            allowed=f"at most {fits} in addition to the others" if fits else "a larger share",
            nearest=fits if fits >= server.min_replicas else None,
        )


def _flavor_findings(stack: Stack, path: Path, server: ServerSpec, flavor: Flavor) -> Iterator[Draft]:
    """Find a flavor whose VMs belong to one job, and a number of chips that no VM can give to one pod."""
    if flavor.by_request:
        message = f"VMs of {flavor.name} are created for one job and deleted after their maximum run time"
        yield _wrong(stack, (*path, "flavor"), message, "a flavor without queued provisioning")
    places = min(pool.machine.chips * pool.places_per_gpu for pool in flavor.pools)
    chips = chips_of(server, flavor)
    whole = flavor.accelerator.kind == "tpu" or vms_of(server, flavor) > 1
    if chips > places or (whole and chips != places):
        message = f"is {chips}, but a VM of {flavor.name} has {places}"
        message += ", and a pod has to use all of them" if whole else ""
        yield _wrong(stack, (*path, "chips"), message, str(places) if whole else f"at most {places}", places)


def _vms_findings(stack: Stack, path: Path, server: ServerSpec, flavor: Flavor, spec: ClusterSpec) -> Iterator[Draft]:
    """Find VMs that do not form a whole slice, and replicas on several VMs in a cluster without LeaderWorkerSets."""
    vms = vms_of(server, flavor)
    in_slice = slice_vms(flavor)
    if flavor.accelerator.kind == "tpu" and (server.vms or in_slice) != in_slice:
        message = f"is {server.vms}, but a slice of {flavor.name} has {in_slice}"
        yield _wrong(stack, path, message, str(in_slice), in_slice)
    elif vms > 1 and OPERATOR not in spec.operators:
        message = f"a replica on {flavor.name} has {vms} VMs, but its cluster does not have the operator {OPERATOR}"
        yield _wrong(stack, (*path[:-1], "flavor"), message, f"a cluster with {OPERATOR} among its operators")
    elif vms == 1 and server.worker_command:
        message = f"has no effect: a replica on {flavor.name} has only one VM"
        yield _wrong(stack, (*path[:-1], "worker_command"), message, "`vms` of at least 2, or the field left out")


def _server_image_findings(stack: Stack, path: Path, server: ServerSpec, home: Environment) -> Iterator[Draft]:
    """Find an image that the cluster's admission policy refuses."""
    sources = home.image_sources
    if sources and not server.image.startswith(sources):
        message = f"{server.image} is not from image_sources of {stack.environment_name}"
        yield _wrong(stack, (*path, "image"), message, f"images of {enumeration(sources)}")


def _priority_findings(stack: Stack, path: Path, server: ServerSpec, team: Team, home: Environment) -> Iterator[Draft]:
    """Find a server whose priority is too low: if its load grows, its additional pods would wait for training jobs."""
    values = priorities(home)
    if team.preemption.within_queue == "Never":
        message = "the team's model servers cannot preempt its jobs, so they wait until a job ends"
        yield _wrong(
            stack, ("preemption", "within_queue"), message, "LowerPriority", "LowerPriority", severity="warning"
        )
    above = [other for other, value in values.items() if value > values.get(server.priority, 0)]
    if above:
        message = f"{server.priority} is below {enumeration(above)}, so it does not preempt their jobs"
        nearest = max(values, key=values.__getitem__)
        yield _wrong(stack, (*path, "priority"), message, "the highest priority", nearest, severity="warning")


SERVING_FITS = declare(
    "serving-fits",
    "Find a model server that does not fit a VM of its flavor, or that cannot preempt training.",
    ruleset="capacity",
    excuse="exemption",
)


def _wrong(
    stack: Stack, path: Path, message: str, allowed: str, nearest: object = None, *, severity: Severity = "error"
) -> Draft:
    return finding(stack, path, message, rule=SERVING_FITS, severity=severity, allowed=allowed, nearest=nearest)


NOTEBOOKS_OF_TEAMS = declare(
    "notebooks-of-teams",
    "Find notebooks of a team that can never start.",
    ruleset="capacity",
    excuse="exemption",
)


def notebook_findings(workspace: Workspace) -> Iterator[Draft]:
    """Find a team's notebook profile that nobody could start.

    The team, its share, the machine, the account or the image is missing.
    """
    for stack, home in workspace.environments():
        teams = {team.name: team for _, team, _ in workspace.teams() if team.environment == stack.name}
        for cluster, spec in home.clusters.items():
            path: Path = ("clusters", cluster, "notebooks")
            pools = {pool.name: pool for pool in cluster_pools(cluster, spec)}
            if spec.notebooks is None:
                continue
            for name, team in spec.notebooks.teams.items():
                here = (*path, "teams", name)
                if name not in teams:
                    message = f"{stack.name} has no stack of a team {name!r}"
                    allowed = enumeration(teams) or "the name of a team with a stack"
                    nearest = find_nearest(name, teams)  # its file may be added after the environment's
                    yield finding(
                        stack,
                        here,
                        message,
                        rule=NOTEBOOKS_OF_TEAMS,
                        severity="warning",
                        allowed=allowed,
                        nearest=nearest,
                    )
                    continue
                yield from _notebook_pool_findings(stack, here, team, teams[name], pools)
                yield from _notebook_user_findings(stack, here, team, spec.notebooks.allowed_domain)
            if spec.notebooks.teams:
                yield from _notebook_image_findings(stack, path, spec.notebooks.image, home)


def _notebook_pool_findings(
    stack: Stack, path: Path, spec: NotebookTeam, team: Team, pools: Mapping[str, ExpandedPool]
) -> Iterator[Draft]:
    cluster = str(path[1])
    shares = team.shares.get(cluster, {})
    good = [name for name, pool in pools.items() if flavor_name(pool) in shares and holds_notebooks(pool)]
    for number, name in enumerate(spec.pools):
        if name in good:
            continue
        if holds_notebooks(pools[name]):
            flavor = flavor_name(pools[name])
            message = f"team {team.name} has no share of {flavor} in {cluster}: its notebooks would wait forever"
        else:
            message = f"{name} cannot run notebooks: its VMs do not start for a notebook, which is a single pod"
        allowed = enumeration(good) or "a pool of single VMs whose flavor is in a share of the team"
        yield finding(
            stack,
            (*path, "pools", number),
            message,
            rule=NOTEBOOKS_OF_TEAMS,
            allowed=allowed,
            nearest=min(good, default=None),
        )


def _notebook_user_findings(stack: Stack, path: Path, spec: NotebookTeam, domain: str) -> Iterator[Draft]:
    for number, user in enumerate(spec.users):
        name, _, user_domain = user.partition("@")
        if user_domain != domain:
            message = f"{user} is not an account of {domain}, and other accounts cannot sign in"
            yield finding(stack, (*path, "users", number), message, rule=NOTEBOOKS_OF_TEAMS, nearest=f"{name}@{domain}")


def _notebook_image_findings(stack: Stack, path: Path, image: str | None, home: Environment) -> Iterator[Draft]:
    if home.image_sources and not (image or "").startswith(home.image_sources):
        message = f"{image or 'the image of the catalogue'} is not from image_sources"
        yield finding(
            stack,
            (*path, "image"),
            f"{message}: its pods are refused in namespaces of teams",
            rule=NOTEBOOKS_OF_TEAMS,
            allowed=f"images of {enumeration(home.image_sources)}",
        )
