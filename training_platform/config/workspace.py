"""All stack files of a repository: references between them, lent capacity, and the order of deployment."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path as FilePath
from typing import Any, Literal, NamedTuple, TypeVar

from training_platform.catalog.locations import region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.config.expansion import Flavor, flavors
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack, read_stack, stack_name
from training_platform.config.model.team import Team
from training_platform.config.names import clashes, sections, vpc_name
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.finding import Path, Place, UserError, dotted, others_go_on
from training_platform.config.reading.rejection import STACK_MODEL
from training_platform.config.reading.section import enumeration
from training_platform.config.reading.source import UnreadableError
from training_platform.config.references import team_references

T = TypeVar("T")
STACKS_FOLDER = "stacks"
_MEANT_AS_STACK = re.compile(r"pulumi\..+\.ya?ml\Z", re.IGNORECASE | re.DOTALL)
_STACK_CONFIG = re.compile(rb"^\s+training-platform:(environment|team):", re.MULTILINE)

EXISTING_RANGES_OVERLAP = declare(
    "existing-ranges-overlap",
    "Find two overlapping ranges of an existing VPC, of subnets or of Filestore instances, in any environment.",
    ruleset="addresses",
    source="Compute docs, subnets: ranges of one VPC do not overlap",
    refused_by="Google Cloud",
    excuse="exemption",
)

REPOSITORY_PERIMETER = declare(
    "repository-perimeter",
    "Find remote repositories that VPC Service Controls may cut off from their upstream.",
    ruleset="addresses",
    severity="warning",
    source="Artifact Registry API v1, VPCSCConfig, read 2026-11-28",
    refused_by="VPC Service Controls",
    excuse="exemption",
)


CHECKPOINTS_SHARED = declare(
    "checkpoints-shared",
    "Find the add-on for multi-tier checkpointing in a cluster that several teams share.",
    ruleset="clusters",
    severity="warning",
    source="GKE docs, multi-tier checkpointing (an excerpt, read 2026-11-23); docs/development/decisions/0019",
    refused_by="`check` only: without it, a team could read the checkpoints of another team",
    excuse="exemption",
)
_CHECKPOINTING = ("addons_config", "high_scale_checkpointing_config", "enabled")


@dataclass(frozen=True)
class Workspace:
    """Every stack of a repository, environments first.

    ``unreadable`` contains a sentence for each file that is not YAML, has a wrong name, or triggers a bug in this
    program, keyed by the file that should contain the stack. Values that are derived from the stacks are cached. A copy
    made by ``dataclasses.replace`` has its own cache, since its stacks may be different.
    """

    root: FilePath
    stacks: dict[str, Stack] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    _built: dict[Hashable, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def once(self, key: Hashable, build: Callable[[], T]) -> T:
        """Return the cached value for a key. The first call computes it with ``build``."""
        if key not in self._built:
            self._built[key] = build()
        built: T = self._built[key]
        return built

    def flavors(self, environment: str, cluster: str) -> dict[str, Flavor]:
        """Return the flavors of a cluster, keyed by name. They are cached, since every team needs them."""

        def of_cluster() -> dict[str, Flavor]:
            home = self.stacks[environment].environment
            return flavors(cluster, home.clusters[cluster]) if home else {}

        return self.once(("flavors", environment, cluster), of_cluster)

    @property
    def unread_stacks(self) -> frozenset[str]:
        """The stacks whose files exist but cannot be read."""
        names = (stack_name(FilePath(file)) for file in self.unreadable)
        return frozenset(name for name in names if name is not None)

    @property
    def unknown_stacks(self) -> frozenset[str]:
        """The stacks that sums cannot include, because their own file or the file of their environment is invalid."""
        unknown = (name for name, stack in self.stacks.items() if not (stack.section and self.environment_of(stack)))
        return self.unread_stacks.union(unknown)

    @property
    def uncounted(self) -> int:
        """The number of stack files that are rejected or unreadable."""
        return sum(stack.section is None for stack in self.stacks.values()) + len(self.unreadable)

    def environment_of(self, stack: Stack) -> Environment | None:
        """Return a stack's environment, which may be the stack itself, or None if its file is missing or rejected."""
        home = self.stacks.get(stack.environment_name)
        return home.environment if home else None

    def environments(self) -> Iterator[tuple[Stack, Environment]]:
        """Yield the environment stacks with valid files."""
        for stack in self.stacks.values():
            if stack.environment:
                yield stack, stack.environment

    def kept_environments(self, base: Workspace) -> Iterator[tuple[Stack, Environment, Stack, Environment]]:
        """Yield the environments that exist in ``base`` too, by this or a former name, each with its base version."""
        for stack, environment in self.environments():
            former = base.stacks.get(environment.renamed_from or stack.name) or base.stacks.get(stack.name)
            if former and former.environment:
                yield stack, environment, former, former.environment

    def teams(self) -> Iterator[tuple[Stack, Team, Environment]]:
        """Yield the team stacks with valid files, each with its environment."""
        for stack in self.stacks.values():
            home = self.environment_of(stack)
            if stack.team and home:
                yield stack, stack.team, home

    def teams_called(self, name: str, scope: Literal["environment", "project"], key: str) -> list[tuple[Stack, Team]]:
        """Return the teams of this name in an environment, or in all environments of a project. Results are cached."""
        return self.once("teams by name", self._teams_by_name).get((name, scope, key), [])

    def teams_meant(self, name: str, environment: str) -> list[str]:
        """Return the stacks of a team, which an environment's file may name by the team's or its stack's name."""
        called = [stack.name for stack, _ in self.teams_called(name, "environment", environment)]
        if called:
            return called
        stack = self.stacks.get(name)
        return [name] if stack and stack.team else []

    def _teams_by_name(self) -> dict[tuple[str, str, str], list[tuple[Stack, Team]]]:
        teams: dict[tuple[str, str, str], list[tuple[Stack, Team]]] = {}
        for stack in self.stacks.values():
            if team := stack.team:
                home = self.environment_of(stack)
                project = home.project if home else ""
                teams.setdefault((team.name, "environment", team.environment), []).append((stack, team))
                teams.setdefault((team.name, "project", project), []).append((stack, team))
        return teams

    def teams_on(self, environment: str, instance: str) -> list[str]:
        """Return the teams of an environment with a directory on one of its Filestore instances."""
        teams = (team for _, team, _ in self.teams() if team.environment == environment)
        return [team.name for team in teams if any(row.filestore == instance for row in team.directories.values())]

    def project_of(self, stack: Stack) -> str | None:
        """Return the Google Cloud project of a stack's resources."""
        home = self.environment_of(stack)
        if stack.team and stack.team.project:
            return stack.team.project
        return home.project if home else None


def read_workspace(root: FilePath) -> Workspace:
    """Read every stack file below ``root/stacks``. An error in one file never hides another file."""
    stacks: list[Stack] = []
    unreadable: dict[str, str] = {}
    paths = sorted((root / STACKS_FOLDER).glob("*.y*ml"))
    names = {path.name for path in paths}
    for path in paths:
        if stack_name(path) is None:  # the engine does not read it either
            unreadable.update(_misnamed_file(path, names))
            continue
        file = f"{STACKS_FOLDER}/{path.name}"
        failures: list[str] = []
        try:
            with others_go_on(file, failures):
                stacks.append(read_stack(path, root))
        except UnreadableError as error:
            failures.append(str(error))
        unreadable.update((file, sentence) for sentence in failures)
    unreadable.update(_files_in_folders(root))
    ordered = sorted(stacks, key=lambda stack: (stack.team is not None, stack.name))
    return cross_check(Workspace(root, {stack.name: stack for stack in ordered}, unreadable=unreadable))


def _misnamed_file(path: FilePath, names: Collection[str]) -> dict[str, str]:
    """Return a sentence about a misnamed stack file, keyed by its correct name; empty if it is no stack file."""
    if not (_MEANT_AS_STACK.match(path.name) or _has_stack_config(path)):
        return {}
    nearest_file = stack_file(re.sub(r"^pulumi\.", "", path.stem, flags=re.IGNORECASE))
    name = FilePath(nearest_file).name
    nearest = f" Nearest: {name}." if stack_name(FilePath(nearest_file)) and name not in names else ""
    sentence = (
        f"{STACKS_FOLDER}/{path.name}: a file of this name is not read as a stack. Allowed: Pulumi.<stack>.yaml, "
        f"with letters, digits, dots, dashes and underscores.{nearest}"
    )
    return {nearest_file: sentence}


def _files_in_folders(root: FilePath) -> dict[str, str]:
    """Return a sentence about each stack file in a subfolder of the stacks' folder, keyed by file."""
    sentences: dict[str, str] = {}
    for path in sorted((root / STACKS_FOLDER).glob("*/**/*.y*ml")):
        if _MEANT_AS_STACK.match(path.name) and _has_stack_config(path):
            file = path.relative_to(root).as_posix()
            nearest = f"{STACKS_FOLDER}/{path.name}"
            sentences[file] = f"{file}: stack files in subfolders of {STACKS_FOLDER}/ are not read. Nearest: {nearest}."
    return sentences


def stack_file(stack: str) -> str:
    """Return the file of a stack, relative to the repository."""
    return f"{STACKS_FOLDER}/Pulumi.{stack}.yaml"


def _has_stack_config(path: FilePath) -> bool:
    """Return True if a file configures an environment or a team. A folder or an unreadable file does not."""
    try:
        return _STACK_CONFIG.search(path.read_bytes()) is not None
    except OSError:
        return False


def cross_check(workspace: Workspace) -> Workspace:
    """Return the workspace with additional findings about conflicts between files, or between sections of a file."""
    checked = {}
    unreadable = dict(workspace.unreadable)
    for name, stack in workspace.stacks.items():
        home = workspace.environment_of(stack)
        findings = list(stack.findings)
        failures: list[str] = []
        with others_go_on(f"{stack.source.file} beside other files", failures):
            findings += located(_across(stack, workspace))
        production = home.production if home else None
        if stack.retired is not None:  # its protection is off so that it can be destroyed
            production = False
        checked[name] = dataclasses.replace(stack, production=production, findings=tuple(findings))
        unreadable.update((stack.source.file, sentence) for sentence in failures)
    return dataclasses.replace(workspace, stacks=checked, unreadable=unreadable)


def _across(stack: Stack, workspace: Workspace) -> Iterator[Draft]:
    if stack.section:
        for name, paths in clashes(stack.section).items():
            other_places = ", ".join(dotted(path) for path in paths[:-1])
            yield finding(
                stack,
                paths[-1],
                f"would be called {name!r}, as would {other_places}",
                rule=STACK_MODEL,
                allowed="another name",
            )
        yield from _of_retirement(stack, stack.section, workspace)
    if team := stack.team or stack.partial_team:
        yield from _of_team(dataclasses.replace(stack, team=team), team, workspace)
    if environment := stack.environment:
        for name, cohort in environment.cohorts.items():
            path: Path = ("cohorts", name, "shares")
            yield from _share_references(stack, path, cohort.shares, environment, workspace)
        yield from _ranges_of_existing_subnets(stack, workspace)
        yield from _repositories_in_a_perimeter(stack, environment)
        yield from _shared_checkpoints(stack, environment, workspace)


def _shared_checkpoints(stack: Stack, environment: Environment, workspace: Workspace) -> Iterator[Draft]:
    """Find clusters in which one identity backs up the checkpoints of several teams."""
    for key, cluster in environment.clusters.items():
        value: Any = cluster.provider_inputs
        for name in _CHECKPOINTING:
            value = value.get(name) if isinstance(value, Mapping) else None
        teams = [team.name for _, team, home in workspace.teams() if home is environment and key in team.shares]
        if value is True and len(teams) > 1:
            message = f"backs up the checkpoints of teams {enumeration(teams)} with one identity, to one bucket"
            path = ("clusters", key, "provider_inputs", *_CHECKPOINTING)
            yield finding(stack, path, message, rule=CHECKPOINTS_SHARED, allowed="a cluster for only one team")


def _repositories_in_a_perimeter(stack: Stack, environment: Environment) -> Iterator[Draft]:
    """Find repositories whose upstream a VPC-SC perimeter may block. Stack files do not contain its settings."""
    remotes: dict[Path, Collection[str]] = {}
    if environment.python_repository:
        remotes[("python_repository",)] = [environment.python_repository]
    if environment.images and environment.images.remotes:
        remotes[("images", "remotes")] = environment.images.locations
    if environment.google_apis != "restricted":
        return
    for path, locations in remotes.items():
        message = f"reads from the internet, which VPC Service Controls block in {enumeration(locations)} by default"
        allowed = "vpcscConfig: ALLOW in Artifact Registry for each location, set by the owner of the perimeter"
        yield finding(stack, path, message, rule=REPOSITORY_PERIMETER, allowed=allowed)


class _ExistingRange(NamedTuple):
    """A range of addresses in a VPC. ``network`` is the VPC's project and name, ``subnet`` the range's owner.

    For an existing subnet, ``subnet`` is its region and name. For a subnet that the environment creates, or a Filestore
    instance, it is the stack and its section.
    """

    stack: str
    network: tuple[str, str]
    subnet: tuple[str, str]
    path: Path
    addresses: IPv4Network
    exists: bool


def _ranges_of_existing_subnets(stack: Stack, workspace: Workspace) -> Iterator[Draft]:
    """Find a range in an existing VPC that overlaps another range, in the same subnet or of any environment.

    Rules compare only the resources of one stack. An existing subnet is not a resource of any stack, and environments
    can share a VPC, which may belong to one of them. Several clusters may use one subnet.
    """
    environments = [(other.name, environment) for other, environment in workspace.environments()]
    existing = {_network(name, environment) for name, environment in environments if environment.network}
    ranges = [
        row
        for name, environment in environments
        if _network(name, environment) in existing
        for row in _ranges_of_network(name, environment)
    ]
    for index, row in enumerate(ranges):
        if row.stack != stack.name:
            continue
        for earlier in ranges[:index]:
            same_section = (earlier.stack, earlier.path[:-1]) == (row.stack, row.path[:-1])
            comparable = earlier.network == row.network and (same_section or earlier.subnet != row.subnet)
            planned = not (earlier.exists or row.exists) or "filestore" in (earlier.path[0], row.path[0])
            if earlier.stack == row.stack and planned:
                continue  # rules on the stack's plan compare these
            if comparable and earlier.addresses.overlaps(row.addresses):
                owner = f"{dotted(earlier.path)} of {earlier.stack}"
                message = f"{row.addresses} overlaps {earlier.addresses}, {owner}"
                allowed = "ranges of one VPC that do not overlap"
                yield finding(stack, row.path, message, rule=EXISTING_RANGES_OVERLAP, allowed=allowed)
                break


def _network(stack: str, environment: Environment) -> tuple[str, str]:
    """Return the project and the name of an environment's VPC, whether existing or created by the environment."""
    name = environment.network.name if environment.network else vpc_name(stack)
    return environment.network_project, name


def _ranges_of_network(stack: str, environment: Environment) -> Iterator[_ExistingRange]:
    """Yield the address ranges that a file sets in its VPC, for subnets, attachments, Filestore and services."""
    network = _network(stack, environment)
    for region, addresses in environment.network_attachments.items():
        path: Path = ("network_attachments", region)
        subnet = (region, f"{stack}/attachment")
        yield _ExistingRange(stack, network, subnet=subnet, path=path, addresses=IPv4Network(addresses), exists=False)
    if environment.private_services_range:
        path = ("private_services_range",)
        addresses_of_services = IPv4Network(environment.private_services_range)
        yield _ExistingRange(
            stack, network, subnet=(stack, "services"), path=path, addresses=addresses_of_services, exists=False
        )
    for name, cluster in environment.clusters.items():
        if cluster.subnet is None:
            continue
        exists = cluster.subnet.name is not None
        subnet = (region_of(cluster.location), cluster.subnet.name or f"{stack}/{name}")
        for field_ in ("nodes", "pods", "services"):
            path = ("clusters", name, "subnet", field_)
            yield _ExistingRange(
                stack,
                network,
                subnet=subnet,
                path=path,
                addresses=IPv4Network(getattr(cluster.subnet, field_)),
                exists=exists,
            )
    for name, instance in environment.filestore.items():
        if instance.reserved_range and instance.connection == "direct-peering":
            path = ("filestore", name, "reserved_range")
            reserved = IPv4Network(instance.reserved_range)
            yield _ExistingRange(stack, network, subnet=(stack, name), path=path, addresses=reserved, exists=False)


def _of_retirement(stack: Stack, section: Environment | Team, workspace: Workspace) -> Iterator[Draft]:
    """Find kept resources that a retired stack does not have, and active teams in a retired environment."""
    if section.retired is None:
        return
    declared = {dotted(path): None for _, path in sections(section)}
    for number, kept in enumerate(section.retired.keeps):
        if kept not in declared:
            yield stack.dangling(("retired", "keeps", number), kept, "section of this file", [*declared])
    active = [
        other.name
        for other in workspace.stacks.values()
        if other.team and other.team.environment == stack.name and other.retired is None
    ]
    if active:
        message = f"retires the environment, but {enumeration(active)} in it is not retired"
        yield finding(
            stack,
            ("retired",),
            message,
            rule=STACK_MODEL,
            allowed="retirement of these teams as well, or the field left out",
        )


def _of_team(stack: Stack, team: Team, workspace: Workspace) -> Iterator[Draft]:
    """Find conflicts between a team's file and those of its environment and other teams."""
    environment_stack = workspace.stacks.get(team.environment)
    if environment_stack is None or environment_stack.team:
        names = [name for name, other in workspace.stacks.items() if other.team is None]
        missing = stack_file(team.environment)
        draft = stack.dangling(("environment",), team.environment, "environment", names, rests_on=((missing,),))
        if environment_stack is None:
            draft = dataclasses.replace(
                draft,
                message=f"{draft.message}: there is no {missing}",
                allowed=f"{draft.allowed}, or a new environment: training-platform init environment {team.environment}",
            )
        yield dataclasses.replace(draft, spoils=((missing,), stack.source.place(())))
        return
    home = workspace.environment_of(stack)
    if home is None:
        return  # the environment has findings of its own
    yield from _file_of_another(stack, team, workspace)
    yield from _same_team(stack, team, workspace)
    yield from _share_references(stack, ("shares",), team.shares, home, workspace)
    yield from team_references(stack, team, home)
    for name, directory in team.directories.items():
        other_teams = [
            other for other in workspace.teams_on(team.environment, directory.filestore) if other != team.name
        ]
        if directory.whole_share and other_teams:
            message = (
                f"{directory.filestore!r} is also used by team {enumeration(other_teams)}, whose files are in the share"
            )
            path: Path = ("directories", name, "whole_share")
            yield finding(
                stack,
                path,
                message,
                rule=STACK_MODEL,
                allowed="false, or a separate instance for each team",
                nearest="false",
            )


def _file_of_another(stack: Stack, team: Team, workspace: Workspace) -> Iterator[Draft]:
    """Find a team in a file with another environment's or team's name, since people deploy and review by file name."""
    beginnings = [stack.name[:index] for index, letter in enumerate(stack.name) if letter == "-"]
    named = [name for name in beginnings if name in workspace.stacks and workspace.stacks[name].environment]
    if named and team.environment not in named:
        message = f"is {team.environment!r}, but the file's name contains {named[-1]}"
        allowed = f"{named[-1]}, or a file Pulumi.{team.environment}-{team.name}.yaml"
        all_of_it = (stack.source.place(()), stack.at(("name",)), stack.at(("shares",)))
        yield finding(
            stack, ("environment",), message, rule=STACK_MODEL, allowed=allowed, nearest=named[-1], spoils=all_of_it
        )
    of_file = stack.name.removeprefix(f"{team.environment}-")
    twins = workspace.teams_called(team.name, "environment", team.environment)
    intended = team.name in (of_file, stack.name) or team.renamed_from  # only the stack may have been renamed
    if team.environment in named and not intended and len(twins) < 2:
        message = f"is {team.name!r}, but the file's name contains {of_file}"
        allowed = f"{of_file}, or a file Pulumi.{team.environment}-{team.name}.yaml"
        spoils = (stack.source.place(()),)
        yield finding(stack, ("name",), message, rule=STACK_MODEL, allowed=allowed, nearest=of_file, spoils=spoils)


def _same_team(stack: Stack, team: Team, workspace: Workspace) -> Iterator[Draft]:
    """Find another team with the same name in the environment, or in another environment of the project."""
    for other, _ in workspace.teams_called(team.name, "environment", team.environment):
        if other.name != stack.name:
            message = f"{team.name!r} is also the name of the team at {other.place(('name',))}"
            home_of_file, _, of_file = stack.name.partition(f"{team.environment}-")
            copied = not home_of_file and of_file not in ("", team.name)  # the file's name is another team's
            spoils = (stack.source.place(()), stack.at(("name",)))
            causes = [stack.at(("name",))]
            if not copied:
                causes.insert(0, other.at(("name",)))
            yield finding(
                stack,
                ("name",),
                message,
                rule=STACK_MODEL,
                allowed="one stack per team",
                nearest=of_file if copied else None,
                spoils=spoils,
                rests_on=tuple(causes),
            )
    home = workspace.environment_of(stack)
    if home is None:
        return
    for other, twin in workspace.teams_called(team.name, "project", home.project):
        if other.name <= stack.name and twin.environment != team.environment:
            message = f"stack {other.name} also has a team {team.name!r} in project {home.project}"
            why = f"{message}: pods of both namespaces would have the same workload identity"
            allowed = "another name, or a separate project for each environment"
            yield finding(
                stack, ("name",), why, rule=STACK_MODEL, allowed=allowed, nearest=f"{team.name}-{team.environment}"
            )


def _share_references(
    stack: Stack, path: Path, shares: Mapping[str, Collection[str]], home: Environment, workspace: Workspace
) -> Iterator[Draft]:
    for cluster, flavors_of in shares.items():
        if cluster not in home.clusters:
            kind = f"cluster of {stack.environment_name}"
            yield stack.dangling((*path, cluster), cluster, kind, home.clusters, rests_on=(stack.at(path),))
            continue
        if home.clusters[cluster].software.kueue == "none":
            message = f"has no Kueue (software.kueue of {stack.environment_name} is none), so it cannot have queues"
            queued = [name for name, spec in home.clusters.items() if spec.software.kueue != "none"]
            yield finding(stack, (*path, cluster), message, rule=STACK_MODEL, allowed=enumeration(queued) or "no share")
            continue
        in_cluster = workspace.flavors(stack.environment_name, cluster)
        for flavor in flavors_of:
            if flavor not in in_cluster:
                pools = pools_meant(workspace.stacks[stack.environment_name], cluster, flavor, in_cluster)
                kind = f"flavor of cluster {cluster}"
                causes = (*pools, stack.at(path))
                draft = stack.dangling((*path, cluster, flavor), flavor, kind, in_cluster, rests_on=causes)
                yield of_pool(draft, flavor, in_cluster.values())


def pools_meant(home: Stack, cluster: str, name: str, flavors: Mapping[str, Flavor]) -> tuple[Place, ...]:
    """Return the places of the pools with the flavor most similar to an unknown name, then of the pools' section."""
    path: Path = ("clusters", cluster, "node_pools")
    nearest = find_nearest(name, flavors)
    pools = flavors[nearest].pools if nearest else ()
    return (*(home.at((*path, pool.name)) for pool in pools), home.at(path))


def of_pool(draft: Draft, name: str, flavors_of: Iterable[Flavor]) -> Draft:
    """If an unknown flavor is the name of a node pool, return the finding with this pool's flavor as its suggestion."""
    for flavor in flavors_of:
        if any(pool.name == name for pool in flavor.pools):
            message = f"{draft.message}: it is the name of a node pool of flavor {flavor.name}"
            spoils = (*draft.spoils, *((*place[:-1], flavor.name) for place in draft.spoils[:1]))
            return dataclasses.replace(draft, message=message, nearest=flavor.name, spoils=spoils)
    return draft


def environment_order(workspace: Workspace) -> tuple[list[str], list[str]]:
    """Return the environments that are not production, and all others. Raises UserError if a file is invalid."""
    _refuse_unsorted(workspace)
    names = {stack.name: environment.production for stack, environment in workspace.environments()}
    not_production = [name for name, production in names.items() if production is False]
    return not_production, [name for name in names if name not in not_production]


def stacks_of(workspace: Workspace, environment: str) -> list[str]:
    """Return an environment's stack, followed by its teams' stacks. Raises UserError if a file is invalid."""
    _refuse_unsorted(workspace)
    return [name for name, stack in workspace.stacks.items() if stack.environment_name == environment]


def _refuse_unsorted(workspace: Workspace) -> None:
    """Raise UserError if files are invalid, since they may belong to the environment to deploy."""
    sentences = list(workspace.unreadable.values())
    for stack in workspace.stacks.values():
        if not stack.section:
            sentences += (finding.one_line for finding in stack.findings)
    if sentences:
        raise UserError(f"it is not known to which environment each stack belongs: {sentences[0]}")
