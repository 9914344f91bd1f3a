"""What a team's file refers to in its environment: instances, attachments, keys, cohorts, and what both call alike."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from training_platform.catalog.locations import region_of
from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import ROOT_COHORT
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import OWN_ATTACHMENT, Team
from training_platform.config.model.workloads import SERVING_PRIORITY, ServerSpec
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.rejection import RULE
from training_platform.config.reading.section import enumeration


def team_references(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find what a team names and its environment does not have, or has otherwise."""
    yield from _directories(stack, team, home)
    yield from _attachments(stack, team, home)
    yield from _without_subnet(stack, team, home)
    for name in team.data_sets.keys() & home.data_sets.keys():
        allowed = "another name: its jobs would not know which is meant"
        yield stack.finding(RULE, ("data_sets", name), f"is a data set of {team.environment} too", allowed=allowed)
    yield from _queue_references(stack, team, home)
    yield from server_references(stack, team, home)
    if team.budget and home.billing_account is None:
        message = f"needs billing_account of environment {team.environment}, which is not set"
        yield stack.finding(RULE, ("budget",), message, allowed="no budget, or the environment with billing_account")
    yield from _hosts(stack, team, home)
    yield from _without_key(stack, team, home)


def _directories(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find directories on instances that are not there, are another team's, or hold the homes of notebooks."""
    for name, directory in team.directories.items():
        if directory.filestore not in home.filestore:
            path: Path = ("directories", name, "filestore")
            what = f"Filestore instance of {team.environment}"
            yield stack.dangling(path, directory.filestore, what, home.filestore)
    yield from _among_homes(stack, team, home)
    yield from _of_another_team(stack, team, home)


def _attachments(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find persistent resources whose VMs cannot use the network attachment that they name."""
    for name, resource in team.vertex.persistent_resources.items():
        path = ("vertex", "persistent_resources", name, "network_attachment")
        if resource.network_attachment == OWN_ATTACHMENT:
            for message, allowed in missing_attachment(team, home, resource.region):
                yield stack.finding(RULE, path, message, allowed=allowed)


def _among_homes(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find a directory on the share that holds the homes of notebooks: whoever mounts it reads and writes them all."""
    homes = {each.notebooks.filestore: name for name, each in home.clusters.items() if each.notebooks}
    others = home.filestore.keys() - homes
    for name, directory in team.directories.items():
        if directory.filestore in homes:
            message = (
                f"{directory.filestore!r} holds the homes of all users of notebooks in {homes[directory.filestore]}"
            )
            allowed = enumeration(others) or "another instance, to be declared under filestore"
            path: Path = ("directories", name, "filestore")
            yield stack.finding(RULE, path, message, allowed=allowed, nearest=min(others, default=None))


def _of_another_team(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find a directory on an instance that the environment keeps for another team."""
    open_to = {name for name, each in home.filestore.items() if each.team in (None, team.name)}
    for name, directory in team.directories.items():
        instance = home.filestore.get(directory.filestore)
        if instance and instance.team not in (None, team.name):
            message = f"{directory.filestore!r} is team {instance.team}'s alone"
            allowed = enumeration(open_to) or "another instance, to be declared under filestore"
            path: Path = ("directories", name, "filestore")
            yield stack.finding(RULE, path, message, allowed=allowed, nearest=min(open_to, default=None))


def missing_attachment(team: Team, home: Environment, region: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong, and what is allowed, where VMs in a region cannot use an attachment of the environment."""
    if region not in home.network_attachments:
        allowed = f"{region} under network_attachments of {team.environment}, or the full name of another"
        yield f"{team.environment} has no network attachment in {region}", allowed
    elif team.project not in (None, home.project):
        message = f"is in project {home.project}, where the Vertex AI agent of {team.project} has no role"
        yield message, "the full name of an attachment that this agent may use"


def _without_subnet(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find a Workbench instance in another region than its subnet, or without one that it may join."""
    regions = {region_of(cluster.location) for cluster in home.own_clusters.values()}
    for name, instance in team.vertex.workbench.items():
        path: Path = ("vertex", "workbench", name)
        region = region_of(instance.zone)
        if instance.subnet and instance.subnet.split("/")[3] != region:
            message, allowed = f"is in another region than zone {instance.zone}", f"a subnet in {region}"
            yield stack.finding(RULE, (*path, "subnet"), message, allowed=allowed)
        elif instance.subnet is None and team.project not in (None, home.project):
            message = f"needs a subnet that machines of {team.project} may join: those of {home.project} are not shared"
            yield stack.finding(RULE, path, message, allowed="subnet: the full name of one")
        elif instance.subnet is None and region not in regions:
            message = f"is in {region}, where no cluster of {team.environment} has a subnet"
            allowed = f"a zone in {enumeration(regions)}, or subnet" if regions else "subnet: the full name of one"
            yield stack.finding(RULE, (*path, "zone"), message, allowed=allowed)


def _queue_references(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find a cohort and clusters, held or with agents, that are not there, and borrowing that fair sharing leaves out.

    Source of the last: Kueue v0.19.2, pages on preemption and fair sharing; no webhook refuses it (read 2026-11-22).
    """
    cohorts = {*home.cohorts, ROOT_COHORT}
    if team.cohort and team.cohort not in cohorts:
        yield stack.dangling(("cohort",), team.cohort, f"cohort of {team.environment}", cohorts)
    for field_, clusters in (("hold", team.hold), ("wandb_launch", team.wandb_launch)):
        for cluster in (each for each in clusters if each not in team.shares):
            what = "cluster that the team has a share of"
            yield stack.dangling((field_, cluster), cluster, what, team.shares)
    if home.fair_sharing and team.preemption.borrow_within_cohort != "Never":
        path: Path = ("preemption", "borrow_within_cohort")
        message = f"has no effect beside fair sharing, which {team.environment} uses"
        allowed = f"Never, or fair_sharing: false in {team.environment}"
        yield stack.finding(RULE, path, message, allowed=allowed, nearest="Never")


def _hosts(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find host names that a cluster of the team does not hold its pods to."""
    clusters = {name: home.clusters[name] for name in team.shares if name in home.clusters}
    without = [name for name, cluster in clusters.items() if not cluster.fqdn_policies]
    for number, each in enumerate(team.egress):
        if each.host and without:
            message = f"is a name, which needs fqdn_policies of clusters {enumeration(without)} in {team.environment}"
            allowed = "cidr, or clusters with fqdn_policies: true"
            yield stack.finding(RULE, ("egress", number, "host"), message, allowed=allowed)


def _without_key(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find what would be left to Google's keys in an environment that has its own."""
    if home.encryption is None:
        return
    regions: dict[Path, str] = {("buckets", name, "location"): each.location for name, each in team.buckets.items()}
    machines = team.vertex.persistent_resources
    regions |= {("vertex", "persistent_resources", name, "region"): each.region for name, each in machines.items()}
    benches = team.vertex.workbench
    regions |= {("vertex", "workbench", name, "zone"): region_of(each.zone) for name, each in benches.items()}
    regions |= {("vertex", "tensorboards", number): each for number, each in enumerate(team.vertex.tensorboards)}
    for path, region in regions.items():
        if region not in home.encryption.by_region:
            message = f"is {region}, for which encryption.keys of {team.environment} has no key"
            allowed = enumeration(home.encryption.by_region)
            yield stack.finding(RULE, path, message, allowed=allowed, nearest=min(home.encryption.by_region))


def server_references(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find what servers name and is not there, and clusters whose Kueue does not count pods."""
    for cluster, servers in team.serving.items():
        path: Path = ("serving", cluster)
        if cluster not in team.shares or cluster not in home.clusters:
            yield stack.dangling(path, cluster, "cluster that the team has a share of", team.shares)
            continue
        if not home.clusters[cluster].serving:
            message = f"{cluster} of {team.environment} is not set up for model servers"
            others = [each for each, spec in home.clusters.items() if spec.serving and each in team.shares]
            allowed = enumeration(others) or f"a cluster with serving: true in {team.environment}"
            yield stack.finding(RULE, path, message, allowed=allowed, nearest=min(others, default=None))
        for name, server in servers.items():
            for where, value, what, names in _references(cluster, server, team, home):
                if value not in names:
                    yield stack.dangling((*path, name, *where), value, what, names)


def _references(
    cluster: str, server: ServerSpec, team: Team, home: Environment
) -> Iterator[tuple[Path, str, str, Collection[str]]]:
    """Yield field, value, what it should be, and all that there are."""
    what = f"flavor that the team has a share of in {cluster}"
    yield ("flavor",), server.flavor, what, team.shares[cluster]
    for variable, secret in server.secrets.items():
        yield ("secrets", variable), secret.partition(":")[0], "secret of the team", team.secrets
    yield ("priority",), server.priority, f"priority of {team.environment}", {SERVING_PRIORITY, *home.priorities}
