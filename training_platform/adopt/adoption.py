"""A project as stacks of this repository: their files, what imports what stands there, and what that leaves unsaid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from training_platform.adopt.comparison import Difference, differences
from training_platform.adopt.import_file import import_file
from training_platform.adopt.matches import Match, matches
from training_platform.adopt.object_matches import object_differences, object_matches
from training_platform.adopt.sections.environment import Found, environment_section
from training_platform.adopt.sections.queues import Queues
from training_platform.adopt.sections.teams import Platform, team_names, team_section, without_team
from training_platform.adopt.sections.values import Inexpressible
from training_platform.adopt.stack_text import stack_text
from training_platform.clients.project_contents import Contents
from training_platform.config.model.environment import Environment
from training_platform.config.pools import flavors
from training_platform.resources.node_pools import POOL_NAME
from training_platform.resources.planned import KUBERNETES_PROVIDER, Planned
from training_platform.resources.register import CLUSTER, KUBERNETES, SUBNETWORK

Plan = Callable[[Mapping[str, str], str], Sequence[Planned]]
"""Plans a stack by the texts of new stack files, by name, and its own name."""


@dataclass
class AdoptedStack:
    """A stack as it would be adopted.

    ``left_out`` says why things are not in it, by path in the project; ``changes`` what its first update would change,
    and ``unsaid`` what stands there beside, by path; ``new`` are planned resources with nothing that stands there.
    """

    name: str
    text: str
    resources: Sequence[Planned]
    found: Mapping[tuple[str, str], Match]
    section: Mapping[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    changes: dict[str, list[Difference]] = field(default_factory=dict)
    unsaid: dict[str, list[Difference]] = field(default_factory=dict)

    @property
    def new(self) -> list[Planned]:
        """The resources that nothing in the project is."""
        return [each for each in self.resources if each.custom and each.key not in self.found]

    @property
    def imports(self) -> dict[str, dict[str, Any]]:
        """The content of its files for ``pulumi import``, by name, in the order in which they are imported.

        The engine makes the providers of a file before their parents, so that those have to be there already.
        """
        of_objects = {key for key in self.found if key[0].startswith((KUBERNETES, KUBERNETES_PROVIDER))}
        cloud = {key: match for key, match in self.found.items() if key not in of_objects}
        objects = {key: self.found[key] for key in of_objects}
        files = {f"import-{self.name}.json": import_file(self.resources, cloud, objects)}
        if objects:
            files[f"import-{self.name}-objects.json"] = import_file(self.resources, objects)
        return files


def adopt_environment(
    name: str,
    contents: Contents,
    plan: Plan,
    *,
    production: bool,
    queues: Queues | None = None,
    keep_replaced: bool = False,
) -> AdoptedStack:
    """Return the environment stack that is nearest to what stands in a project.

    What its update would replace is left out, unless ``keep_replaced``: no file then touches it.
    """

    def section_of(kept: Contents) -> Found:
        return environment_section(name, kept, queues or Queues(), production=production)

    return _adopt(name, contents, section_of, plan, keep=keep_replaced)


def adopt_teams(
    environment: AdoptedStack,
    contents: Contents,
    plan: Plan,
    *,
    queues: Queues | None = None,
    keep_replaced: bool = False,
) -> list[AdoptedStack]:
    """Return the stacks of an environment's teams; what is no team's is left out of the environment by name.

    A team of which nobody is a member is left out as a whole.
    """
    home, queues = environment.name, _ordered(queues or Queues(), environment)
    teams = team_names(home, contents, queues)
    environment.left_out |= dict(without_team(home, teams, contents))
    found = []
    for team in teams:
        try:
            platform = Platform(home, teams, contents, queues)
            found.append(_adopt_team(environment, team, platform, plan, keep=keep_replaced))
        except Inexpressible as error:
            environment.left_out[f"team {team}"] = str(error)
    return found


def _ordered(queues: Queues, environment: AdoptedStack) -> Queues:
    """Return queues with the order in which the environment has each cluster's flavors."""
    section = Environment.model_validate(environment.section, strict=False)
    return Queues(queues.objects, {key: list(flavors(key, cluster)) for key, cluster in section.clusters.items()})


def _adopt_team(home: AdoptedStack, team: str, platform: Platform, plan: Plan, *, keep: bool) -> AdoptedStack:
    def section_of(kept: Contents) -> Found:
        return team_section(team, platform._replace(contents=kept), home.section.get("labels", {}))

    return _adopt(f"{home.name}-{team}", platform.contents, section_of, plan, home, keep=keep)


def _adopt(
    name: str,
    contents: Contents,
    section_of: Callable[[Contents], Found],
    plan: Plan,
    home: AdoptedStack | None = None,
    *,
    keep: bool,
) -> AdoptedStack:
    """Return a stack, a team's where it has a home, without what its update would replace unless that is kept."""
    kind, beside = ("team", {home.name: home.text}) if home else ("environment", {})
    left_out: dict[str, str] = {}
    while True:
        section = section_of(contents)
        stack = _compared(name, {**beside, name: stack_text(kind, section.section)}, plan, contents)
        stack.left_out, stack.section = {**left_out, **section.left_out}, section.section
        replaced = {} if keep else _replaced(stack, contents)
        if not replaced:
            return stack
        left_out |= replaced
        contents = _without(contents, replaced)


def _without(contents: Contents, gone: Collection[str]) -> Contents:
    return contents.without(lambda path: any(path == each or path.startswith(f"{each}/") for each in gone))


def _compared(name: str, texts: Mapping[str, str], plan: Plan, contents: Contents) -> AdoptedStack:
    resources = plan(texts, name)
    found = matches(resources, contents)
    stack = AdoptedStack(name, texts[name], resources, found | object_matches(resources, found, contents))
    for match in stack.found.values():
        if match.body is not None:
            in_cluster = match.planned.type.startswith(KUBERNETES)
            every = list((object_differences if in_cluster else differences)(match.planned, match.body))
            _keep(stack.changes, match.path, [each for each in every if each.planned is not None])
            _keep(stack.unsaid, match.path, [each for each in every if each.planned is None])
    return stack


def _keep(by_path: dict[str, list[Difference]], path: str, found: list[Difference]) -> None:
    if found:
        by_path[path] = found


def _replaced(stack: AdoptedStack, contents: Contents) -> dict[str, str]:
    """Return why things have to be left out: the update would replace them, or a subnet that they stand in."""
    reasons: dict[str, str] = {}
    for path, found in stack.changes.items():
        if words := [str(each) for each in found if each.replaces]:
            for owner in _owners(path, contents):
                reasons[owner] = f"the stack would replace it: {'; '.join(words)}"
    return reasons


def _owners(path: str, contents: Contents) -> list[str]:
    """Return the things with a section of their own that a path belongs to; the system pool is always there."""
    if path.endswith(f"/nodePools/{POOL_NAME}"):
        return []
    if path in contents.of(SUBNETWORK):
        clusters = contents.of(CLUSTER).items()
        return [each for each, body in clusters if body.get("networkConfig", {}).get("subnetwork") == path]
    return [path]
