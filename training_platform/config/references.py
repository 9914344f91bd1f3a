"""Checks that what a team's file refers to exists in its environment: instances, attachments, keys, cohorts.

Also finds a team's data sets that have the same name as one of the environment's data sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import ROOT_COHORT
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import OWN_ATTACHMENT, Team
from training_platform.config.model.workloads import SERVING_PRIORITY
from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.reading.finding import Path
from training_platform.config.reading.rejection import STACK_MODEL
from training_platform.config.reading.section import enumeration


def team_references(stack: Stack, team: Team, home: Environment) -> Iterator[Draft]:
    """Find references of a team that contradict its environment, or to objects that the environment does not have."""
    yield from _directories(stack, team, home)
    yield from _data_in_folders(stack, team, home)
    for name, resource in team.vertex.persistent_resources.items():
        attachment: Path = ("vertex", "persistent_resources", name, "network_attachment")
        if resource.network_attachment == OWN_ATTACHMENT:
            for message, allowed in missing_attachment(team, home, resource.region):
                yield finding(stack, attachment, message, rule=STACK_MODEL, allowed=allowed)
    for name in team.data_sets.keys() & home.data_sets.keys():
        allowed = "another name, because for the team's jobs the name would be ambiguous"
        yield finding(
            stack,
            ("data_sets", name),
            f"is also the name of a data set of {team.environment}",
            rule=STACK_MODEL,
            allowed=allowed,
        )
    yield from _queue_references(stack, team, home)
    yield from server_references(stack, team, home)
    if team.budget and home.billing_account is None:
        message = f"needs billing_account of environment {team.environment}, which is not set"
        yield finding(
            stack, ("budget",), message, rule=STACK_MODEL, allowed="no budget, or an environment with billing_account"
        )
    clusters = {name: home.clusters[name] for name in team.shares if name in home.clusters}
    without = [name for name, cluster in clusters.items() if not cluster.fqdn_policies]
    for number, destination in enumerate(team.egress):
        if destination.host and without:
            message = (
                f"is a host name, which needs fqdn_policies in clusters {enumeration(without)} of {team.environment}"
            )
            allowed = "cidr, or clusters with fqdn_policies: true"
            yield finding(stack, ("egress", number, "host"), message, rule=STACK_MODEL, allowed=allowed)
    for number, destination in enumerate(team.egress):
        for message, allowed in home.guarded_behind(destination):
            yield finding(stack, ("egress", number), message, rule=STACK_MODEL, allowed=allowed)
    yield from _without_key(stack, team, home)


def _directories(stack: Stack, team: Team, home: Environment) -> Iterator[Draft]:
    """Find directories on instances that do not exist, belong to another team, or contain notebook users' homes."""
    paths: dict[str, Path] = {name: ("directories", name, "filestore") for name in team.directories}
    for name, directory in team.directories.items():
        if directory.filestore not in home.filestore:
            kind = f"Filestore instance of {team.environment}"
            yield stack.dangling(paths[name], directory.filestore, kind, home.filestore)
    # Whoever mounts the share with the homes of notebooks can read and write all of them.
    homes = {spec.notebooks.filestore: name for name, spec in home.clusters.items() if spec.notebooks}
    taken = {
        name: f"contains the home directories of all users of notebooks in {cluster}" for name, cluster in homes.items()
    }
    reserved = {name: spec.team for name, spec in home.filestore.items() if spec.team not in (None, team.name)}
    of_other_teams = {name: f"belongs to team {owner}" for name, owner in reserved.items()}
    for problems in (taken, of_other_teams):
        free = home.filestore.keys() - problems
        for name, directory in team.directories.items():
            if directory.filestore in problems:
                message = f"{directory.filestore!r} {problems[directory.filestore]}"
                allowed = enumeration(free) or "another instance, which you declare under filestore"
                yield finding(
                    stack, paths[name], message, rule=STACK_MODEL, allowed=allowed, nearest=min(free, default=None)
                )


def _data_in_folders(stack: Stack, team: Team, home: Environment) -> Iterator[Draft]:
    """Find data sets in the team's folder that others read: their mounts would follow links that the team creates."""
    folders = {
        directory.filestore: name
        for name, directory in team.directories.items()
        if directory.filestore in home.filestore and directory.of_folder(home.filestore[directory.filestore])
    }
    for key, data in home.data_sets.items():
        files = data.filestore
        if files and files.instance in folders and files.path.split("/")[0] == team.name and data.teams != (team.name,):
            message = (
                f"is the folder that contains data set {key} of {team.environment}: its readers would follow links "
                f"that the team creates"
            )
            allowed = f"another path or instance for {key}, or only teams: [{team.name}]"
            yield finding(stack, ("directories", folders[files.instance]), message, rule=STACK_MODEL, allowed=allowed)


def missing_attachment(team: Team, home: Environment, region: str) -> Iterator[tuple[str, str]]:
    """Yield a message and the allowed values if VMs in a region cannot use one of the environment's attachments."""
    if region not in home.network_attachments:
        allowed = f"{region} under network_attachments of {team.environment}, or the full name of another attachment"
        yield f"{team.environment} has no network attachment in {region}", allowed
    elif team.project not in (None, home.project):
        message = f"is in project {home.project}, where the Vertex AI agent of {team.project} has no role"
        yield message, "the full name of an attachment that this agent may use"


def _queue_references(stack: Stack, team: Team, home: Environment) -> Iterator[Draft]:
    """Find references to missing cohorts and clusters, and a borrowing policy that fair sharing ignores.

    Source for the policy: Kueue v0.19.2, pages on preemption and fair sharing; no webhook refuses it (read 2026-11-22).
    """
    cohorts = {*home.cohorts, ROOT_COHORT}
    if team.cohort and team.cohort not in cohorts:
        yield stack.dangling(("cohort",), team.cohort, f"cohort of {team.environment}", cohorts)
    for field_ in ("hold", "monthly_chip_hours", "wandb_launch"):
        clusters: Iterable[str] = getattr(team, field_)
        for cluster in clusters:
            if cluster not in team.shares:
                kind = "cluster in which the team has a share"
                yield stack.dangling((field_, cluster), cluster, kind, team.shares)
    if home.fair_sharing and team.preemption.borrow_within_cohort != "Never":
        path: Path = ("preemption", "borrow_within_cohort")
        message = f"has no effect with fair sharing, which {team.environment} uses"
        allowed = f"Never, or fair_sharing: false in {team.environment}"
        yield finding(stack, path, message, rule=STACK_MODEL, allowed=allowed, nearest="Never")


def _without_key(stack: Stack, team: Team, home: Environment) -> Iterator[Draft]:
    """Find resources that would be encrypted with Google's keys although the environment has its own keys."""
    if home.encryption is None:
        return
    regions: dict[Path, str] = {("buckets", name, "location"): spec.location for name, spec in team.buckets.items()}
    machines = team.vertex.persistent_resources
    regions |= {("vertex", "persistent_resources", name, "region"): spec.region for name, spec in machines.items()}
    regions |= {("vertex", "tensorboards", number): region for number, region in enumerate(team.vertex.tensorboards)}
    for path, region in regions.items():
        if region not in home.encryption.by_region:
            message = f"is {region}, but encryption.keys of {team.environment} has no key for that region"
            allowed = enumeration(home.encryption.by_region)
            yield finding(
                stack, path, message, rule=STACK_MODEL, allowed=allowed, nearest=min(home.encryption.by_region)
            )


def server_references(stack: Stack, team: Team, home: Environment) -> Iterator[Draft]:
    """Find references of model servers to missing objects, and clusters whose Kueue does not queue pods."""
    for cluster, servers in team.serving.items():
        path: Path = ("serving", cluster)
        if cluster not in team.shares or cluster not in home.clusters:
            yield stack.dangling(path, cluster, "cluster in which the team has a share", team.shares)
            continue
        if not home.clusters[cluster].serving:
            message = f"{cluster} of {team.environment} is not set up for model servers"
            serving_clusters = [other for other, spec in home.clusters.items() if spec.serving and other in team.shares]
            allowed = enumeration(serving_clusters) or f"a cluster with serving: true in {team.environment}"
            yield finding(
                stack, path, message, rule=STACK_MODEL, allowed=allowed, nearest=min(serving_clusters, default=None)
            )
        for name, server in servers.items():
            server_path: Path = (*path, name)
            priorities = {SERVING_PRIORITY, *home.priorities}
            if server.flavor not in team.shares[cluster]:
                kind = f"flavor with a share of the team in {cluster}"
                yield stack.dangling((*server_path, "flavor"), server.flavor, kind, team.shares[cluster])
            for variable, secret in server.secrets.items():
                if (key := secret.partition(":")[0]) not in team.secrets:
                    yield stack.dangling((*server_path, "secrets", variable), key, "secret of the team", team.secrets)
            if server.priority not in priorities:
                kind = f"priority of {team.environment}"
                yield stack.dangling((*server_path, "priority"), server.priority, kind, priorities)
