"""A project as stacks of this repository: stack files, import files, and differences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import yaml

from training_platform.catalog.nearest import find_nearest
from training_platform.clients.project_contents import Contents
from training_platform.config.expansion import SYSTEM_NAME, flavors
from training_platform.config.first_files import SCHEMA
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import PROJECT
from training_platform.config.reading.finding import UserError
from training_platform.parts.adopt.cluster_objects import Queues
from training_platform.parts.adopt.differences import Difference, differences
from training_platform.parts.adopt.import_file import import_file
from training_platform.parts.adopt.matches import Match, matches, object_differences, object_matches
from training_platform.parts.adopt.sections.environment import AdoptedSection, environment_section
from training_platform.parts.adopt.sections.teams import Platform, team_names, team_section, without_team
from training_platform.parts.adopt.sections.values import Inexpressible
from training_platform.resources.resource_types import (
    BUCKET,
    CLUSTER,
    FILESTORE,
    KUBERNETES,
    NODE_POOL,
    PERSISTENT_RESOURCE,
    RESOURCE_TYPES,
    SUBNETWORK,
)
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, StackResource

Plan = Callable[[Mapping[str, str], str], Sequence[StackResource]]
"""A function that plans a stack, from the texts of new stack files by name, and its own name."""


@dataclass
class AdoptedStack:
    """An adopted stack.

    By path in the project, ``left_out`` has the reasons for resources not in it, ``changes`` the fields that its
    first update would change, ``unsaid`` those that no stack file has. ``new`` are planned resources not found there.
    """

    name: str
    text: str
    resources: Sequence[StackResource]
    matched: Mapping[tuple[str, str], Match]
    section: Mapping[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    changes: dict[str, list[Difference]] = field(default_factory=dict)
    unsaid: dict[str, list[Difference]] = field(default_factory=dict)

    @property
    def new(self) -> list[StackResource]:
        """The resources without a counterpart in the project."""
        return [resource for resource in self.resources if resource.custom and resource.key not in self.matched]

    @property
    def imports(self) -> dict[str, dict[str, Any]]:
        """The content of its files for ``pulumi import`` by name, in the order of import.

        The engine creates the providers of a file before their parents, so the parents have to exist already.
        """
        of_objects = {key for key in self.matched if key[0].startswith((KUBERNETES, KUBERNETES_PROVIDER))}
        cloud = {key: match for key, match in self.matched.items() if key not in of_objects}
        objects = {key: self.matched[key] for key in of_objects}
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
    """Return the environment stack that is closest to a project.

    Resources that its update would replace are left out, unless ``keep_replaced``: no file then touches them.
    """

    def section_of(contents: Contents) -> AdoptedSection:
        return environment_section(name, contents, queues or Queues(), production=production)

    return _adopt(name, contents, section_of, plan, keep=keep_replaced)


def adopt_teams(
    environment: AdoptedStack,
    contents: Contents,
    plan: Plan,
    *,
    queues: Queues | None = None,
    keep_replaced: bool = False,
) -> list[AdoptedStack]:
    """Return the stacks of an environment's teams, and the reasons why other resources belong to no team.

    A team without members is left out as a whole.
    """
    home = environment.name
    section = Environment.model_validate(environment.section, strict=False)
    order = {key: list(flavors(key, cluster)) for key, cluster in section.clusters.items()}
    queues = Queues((queues or Queues()).objects, order)
    teams = team_names(home, contents, queues)
    environment.left_out |= dict(without_team(home, teams, contents))
    platform = Platform(home, teams, contents, queues)
    stacks = []
    for team in teams:

        def section_of(contents: Contents, team: str = team) -> AdoptedSection:
            return team_section(team, platform._replace(contents=contents), environment.section.get("labels", {}))

        try:
            stacks.append(_adopt(f"{home}-{team}", contents, section_of, plan, environment, keep=keep_replaced))
        except Inexpressible as error:
            environment.left_out[f"team {team}"] = str(error)
    return stacks


def _adopt(
    name: str,
    contents: Contents,
    section_of: Callable[[Contents], AdoptedSection],
    plan: Plan,
    home: AdoptedStack | None = None,
    *,
    keep: bool,
) -> AdoptedStack:
    """Return a stack, of a team if it has a home, without resources that its update would replace, unless kept."""
    kind, beside = ("team", {home.name: home.text}) if home else ("environment", {})
    left_out: dict[str, str] = {}
    while True:
        section = section_of(contents)
        stack = _compared(name, {**beside, name: stack_text(kind, section.section)}, plan, contents)
        stack.left_out = {**left_out, **section.left_out}
        stack.section = section.section
        replaced = {} if keep else _replaced(stack, contents)
        if not replaced:
            return stack
        left_out |= replaced
        contents = _without(contents, replaced)


def _without(contents: Contents, replaced: Iterable[str]) -> Contents:
    above = tuple(f"{path}/" for path in replaced)
    return contents.without(lambda path: f"{path}/".startswith(above))


def _compared(name: str, texts: Mapping[str, str], plan: Plan, contents: Contents) -> AdoptedStack:
    resources = plan(texts, name)
    in_cloud = matches(resources, contents)
    stack = AdoptedStack(name, texts[name], resources, in_cloud | object_matches(resources, in_cloud, contents))
    for match in stack.matched.values():
        if match.body is not None:
            if match.planned.type.startswith(KUBERNETES):
                found_differences: Iterable[Difference] = object_differences(match.planned, match.body)
            else:
                found_differences = differences(match.planned, match.body)
            for difference in found_differences:
                by_path = stack.unsaid if difference.planned is None else stack.changes
                by_path.setdefault(match.path, []).append(difference)
    return stack


def _replaced(stack: AdoptedStack, contents: Contents) -> dict[str, str]:
    """Return why resources are left out: the update would replace them or their subnet."""
    reasons: dict[str, str] = {}
    for path, changes in stack.changes.items():
        words = [str(change) for change in changes if change.replaces]
        if not words or path.endswith(f"/nodePools/{SYSTEM_NAME}"):  # the system pool always exists
            continue
        owners = [path]
        if path in contents.of(SUBNETWORK):
            clusters = contents.of(CLUSTER).items()
            owners = [name for name, body in clusters if body.get("networkConfig", {}).get("subnetwork") == path]
        reasons |= dict.fromkeys(owners, f"the stack would replace it: {'; '.join(words)}")
    return reasons


SELECTABLE = (CLUSTER, NODE_POOL, FILESTORE, BUCKET, PERSISTENT_RESOURCE)
"""Kinds that can be selected; networks, accounts and alerts are adopted if the others need them."""


def selected(contents: Contents, only: Sequence[str] = (), leave_out: Sequence[str] = ()) -> Contents:
    """Return the selected part of the contents. Raises UserError.

    A name is the end of a path, ``dev-main`` or ``us-west4/clusters/dev-main``, where ``*`` is any text. A resource
    below another is left out with it.
    """
    paths = [path for kind in SELECTABLE for path in contents.of(kind)]
    for option, names in (("--only", only), ("--leave-out", leave_out)):
        for name in names:
            if not any(_named(path, name) for path in paths):
                nearest = find_nearest(name, [path.rpartition("/")[2] for path in paths])
                hint = f" Nearest: {nearest}." if nearest else ""
                raise UserError(f"{option} {name}: nothing in {contents.project} is called so.{hint}")
    chosen = set(paths)

    def leave(path: str) -> bool:
        if path not in chosen:
            return False
        if any(_covered(path, name) for name in leave_out):
            return True
        below = [other for other in paths if other.startswith(f"{path}/")]  # a pool is in its cluster
        return bool(only) and not any(
            _covered(path, name) or any(_named(other, name) for other in below) for name in only
        )

    left = contents.without(leave)
    _refuse_twins(left)
    return left


def _refuse_twins(contents: Contents) -> None:
    """Raise UserError for two resources of the same kind and name in different locations, which share a key."""
    for kind in (CLUSTER, FILESTORE):
        ends = defaultdict(list)
        for path in sorted(contents.of(kind)):
            ends[path.rpartition("/")[2]].append(path.split("/locations/")[-1])
        for name, places in ends.items():
            if len(places) > 1:
                raise UserError(
                    f"{name} exists {len(places)} times, and a stack can have only one of that name: leave the "
                    f"others out, such as --leave-out {places[-1]} (there are {', '.join(places)})."
                )


def _named(path: str, name: str) -> bool:
    return fnmatchcase(f"/{path}", f"*/{name}")


def _covered(path: str, name: str) -> bool:
    """Whether a name means a path, or one of its parents."""
    parts = path.split("/")
    return any(_named("/".join(parts[:end]), name) for end in range(1, len(parts) + 1))


_INLINE = ("subnet", "boot_disk")


class _Line(dict[str, Any]):
    """A mapping that is written in one line."""


class _Dumper(yaml.SafeDumper):
    """Writes lists indented by two columns below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 # PyYAML asks for it
        return super().increase_indent(flow, False)


_Dumper.add_representer(
    _Line, lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=True)
)


def stack_text(kind: str, section: Mapping[str, Any], notes: str = "") -> str:
    """Return the file of a stack; ``kind`` is ``environment`` or ``team``, ``notes`` a comment's text."""
    content = {"config": {f"{PROJECT}:{kind}": _folded(section)}}
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return "".join([SCHEMA, *(f"# {line}\n" for line in notes.splitlines()), text])


def _folded(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        inner = {name: _folded(item, name) for name, item in value.items()}
        return _Line(inner) if key in _INLINE else inner
    return [_folded(item) for item in value] if isinstance(value, list) else value


def lines(stacks: Sequence[AdoptedStack], unread: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the report; ``unread`` has the reasons of unreadable lists."""
    yield from (f"could not be listed, so that all of its kind is planned as new: {why}" for why in unread.values())
    for stack in stacks:
        yield f"{stack.name}: {len(stack.matched)} resources to import, {len(stack.new)} new"
        sections: dict[str, Iterable[str]] = {
            "left out, and stays as it is": (f"{_short(path)}: {why}" for path, why in stack.left_out.items()),
            "the first update changes": _fields(stack.changes),
            "exists, and has no field in stack files": _fields(stack.unsaid),
            "new, since nothing in the project matches it": _new(stack.new),
        }
        for title, rows in sections.items():
            texts = [f"    {row}" for row in rows]
            yield from [f"  {title}:", *texts] if texts else ()


def _fields(by_path: Mapping[str, Sequence[Difference]]) -> Iterator[str]:
    for path, fields in by_path.items():
        yield _short(path)
        yield from (f"  {change}{' (replaces it)' if change.replaces else ''}" for change in fields)


def _short(path: str) -> str:
    """Return a path without its project."""
    return path.split("/", 2)[-1] if path.startswith("projects/") else path


def _new(resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield the names of resources, or counts by kind for those whose creation loses nothing."""
    adding: list[str] = []
    objects: list[str] = []
    for resource in resources:
        row = RESOURCE_TYPES.get(resource.type)
        kind = row.kind if row else resource.type.rpartition(":")[2]
        if row and row.adds:
            adding.append(kind)
        elif resource.type.startswith(KUBERNETES):
            objects.append(kind)
        else:
            yield f"{kind} {resource.name}"
    if adding:
        yield f"{_counted(adding)}, which only add: nothing changes if they exist"
    if objects:
        yield f"{_counted(objects)}: existing objects are adopted as planned"


def _counted(kinds: Iterable[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(kinds).items()))


def as_json(stack: AdoptedStack) -> dict[str, Any]:
    """Return the report of a stack for programs."""
    changes, unsaid = (
        [
            {
                "resource": path,
                "field": change.path,
                "stands": change.current,
                "planned": change.planned,
                "replaces": change.replaces,
            }
            for path, fields in by_path.items()
            for change in fields
        ]
        for by_path in (stack.changes, stack.unsaid)
    )
    return {
        "stack": stack.name,
        "imported": len(stack.matched),
        "left_out": stack.left_out,
        "changes": changes,
        "unsaid": unsaid,
        "new": [{"type": resource.type, "name": resource.name} for resource in stack.new],
    }
