"""A project as stacks of this repository: their files, what imports what stands there, and what that leaves unsaid."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import yaml

from training_platform.adopt.cluster_objects import Queues
from training_platform.adopt.comparison import Difference, differences
from training_platform.adopt.import_file import import_file
from training_platform.adopt.matches import Match, matches, object_differences, object_matches
from training_platform.adopt.sections.environment import Found, environment_section
from training_platform.adopt.sections.teams import Platform, team_names, team_section, without_team
from training_platform.adopt.sections.values import Inexpressible
from training_platform.catalog.nearest import find_nearest
from training_platform.clients.project_contents import Contents
from training_platform.config.first_files import SCHEMA
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import PROJECT
from training_platform.config.pools import flavors
from training_platform.config.reading.finding import UserError
from training_platform.resources.node_pools import POOL_NAME
from training_platform.resources.planned import KUBERNETES_PROVIDER, Planned
from training_platform.resources.register import (
    BUCKET,
    CLUSTER,
    FILESTORE,
    KUBERNETES,
    NODE_POOL,
    PERSISTENT_RESOURCE,
    REGISTER,
    SUBNETWORK,
)

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


SELECTABLE = (CLUSTER, NODE_POOL, FILESTORE, BUCKET, PERSISTENT_RESOURCE)
"""What a person may name; networks, accounts and alerts are adopted where what is left needs them."""


def selected(contents: Contents, only: Sequence[str] = (), leave_out: Sequence[str] = ()) -> Contents:
    """Return the contents without what was not asked for. Raises UserError.

    A name is the end of a path, ``dev-main`` or ``us-west4/clusters/dev-main``, where ``*`` is any text. What stands
    below something goes with it.
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
        return bool(only) and not any(_covered(path, name) or _above(path, name, paths) for name in only)

    kept = contents.without(leave)
    _refuse_twins(kept)
    return kept


def _named(path: str, name: str) -> bool:
    return fnmatchcase(f"/{path}", f"*/{name}")


def _covered(path: str, name: str) -> bool:
    """Whether a name means a path, or something above it."""
    parts = path.split("/")
    return any(_named("/".join(parts[:end]), name) for end in range(1, len(parts) + 1))


def _above(path: str, name: str, paths: Sequence[str]) -> bool:
    """Whether something below a path is meant: a pool is in its cluster."""
    return any(each.startswith(f"{path}/") and _named(each, name) for each in paths)


def _refuse_twins(contents: Contents) -> None:
    """Refuse things of one kind and name in several locations: a stack file has one key for them."""
    for kind in (CLUSTER, FILESTORE):
        by_name = defaultdict(list)
        for path in contents.of(kind):
            by_name[path.rpartition("/")[2]].append(path)
        for name, paths in by_name.items():
            if len(paths) > 1:
                ends = [each.split("/locations/")[-1] for each in sorted(paths)]
                raise UserError(
                    f"{name} is there {len(paths)} times, and a stack can have only one of that name: leave the others "
                    f"out, such as --leave-out {ends[-1]} (there are {', '.join(ends)})."
                )


_INLINE = ("subnet", "boot_disk")


class _Line(dict[str, Any]):
    """A mapping that stands on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes lists below their key, two deeper."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 # PyYAML asks for it
        return super().increase_indent(flow, False)


def _line(dumper: _Dumper, value: _Line) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=True)


_Dumper.add_representer(_Line, _line)


def stack_text(kind: str, section: Mapping[str, Any], notes: str = "") -> str:
    """Return the file of a stack; ``kind`` is ``environment`` or ``team``, ``notes`` a comment's text."""
    content = {"config": {f"{PROJECT}:{kind}": _folded(section)}}
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    said = "".join(f"# {line}\n" for line in notes.splitlines())
    return f"{SCHEMA}{said}{text}"


def _folded(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        inner = {name: _folded(each, name) for name, each in value.items()}
        return _Line(inner) if key in _INLINE else inner
    return [_folded(each) for each in value] if isinstance(value, list) else value


def lines(stacks: Sequence[AdoptedStack], unread: Mapping[str, str]) -> Iterator[str]:
    """Yield the report, a line at a time; ``unread`` says which lists could not be had."""
    yield from (f"could not be listed, so that all of its kind is planned as new: {why}" for why in unread.values())
    for stack in stacks:
        yield from _lines(stack)


def _lines(stack: AdoptedStack) -> Iterator[str]:
    yield f"{stack.name}: {len(stack.found)} resources to import, {len(stack.new)} new"
    yield from _section("left out, and stays as it is", (f"{_short(p)}: {why}" for p, why in stack.left_out.items()))
    yield from _section("the first update changes", _fields(stack.changes))
    yield from _section("is there, and no stack file can say it", _fields(stack.unsaid))
    yield from _section("new, since nothing in the project matches it", _new(stack.new))


def as_json(stack: AdoptedStack) -> dict[str, Any]:
    """Return the report of a stack for programs."""
    return {
        "stack": stack.name,
        "imported": len(stack.found),
        "left_out": stack.left_out,
        "changes": _rows(stack.changes),
        "unsaid": _rows(stack.unsaid),
        "new": [{"type": each.type, "name": each.name} for each in stack.new],
    }


def _section(title: str, rows: Any) -> Iterator[str]:
    said = list(rows)
    if said:
        yield f"  {title}:"
        yield from (f"    {row}" for row in said)


def _fields(by_path: Mapping[str, Sequence[Difference]]) -> Iterator[str]:
    for path, found in by_path.items():
        yield _short(path)
        yield from (f"  {each}{' (replaces it)' if each.replaces else ''}" for each in found)


def _rows(by_path: Mapping[str, Sequence[Difference]]) -> list[dict[str, Any]]:
    return [
        {
            "resource": path,
            "field": each.path,
            "stands": each.stands,
            "planned": each.planned,
            "replaces": each.replaces,
        }
        for path, found in by_path.items()
        for each in found
    ]


def _new(resources: Sequence[Planned]) -> Iterator[str]:
    """Yield counts by kind; what only adds to something is there already, or comes to be with nothing lost."""
    adding = [each for each in resources if each.type in REGISTER and REGISTER[each.type].adds]
    objects = [each for each in resources if each.type.startswith(KUBERNETES)]
    others = [each for each in resources if each not in adding and each not in objects]
    for each in others:
        yield f"{_kind(each.type)} {each.name}"
    if adding:
        yield f"{_counted(adding)}, which only add: where one is there already, nothing changes"
    if objects:
        yield f"{_counted(objects)}: an object that is in its cluster is taken over as it is planned"


def _counted(resources: Sequence[Planned]) -> str:
    counts = Counter(_kind(each.type) for each in resources)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def _kind(token: str) -> str:
    row = REGISTER.get(token)
    return row.kind if row else token.rpartition(":")[2]


def _short(path: str) -> str:
    """Return a path without its project."""
    return path.split("/", 2)[-1] if path.startswith("projects/") else path
