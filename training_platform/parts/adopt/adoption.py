"""Compares a repository's stacks with a project: import files, differences, and resources that no stack plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from training_platform.catalog.locations import MULTI_REGIONS, region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.clients.project_contents import Contents
from training_platform.config.model.stack import Stack
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.section import counted
from training_platform.config.workspace import Workspace
from training_platform.parts.adopt.differences import Difference, differences
from training_platform.parts.adopt.import_file import import_file
from training_platform.parts.adopt.matches import Match, matches, object_differences, object_matches
from training_platform.resources.resource_types import (
    BUCKET,
    CLUSTER,
    FILESTORE,
    KUBERNETES,
    NETWORK,
    NODE_POOL,
    PERSISTENT_RESOURCE,
    REPOSITORY,
    RESOURCE_TYPES,
    SECRET,
    TENSORBOARD,
    imported_as,
)
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, StackResource


@dataclass
class AdoptedStack:
    """A stack and the resources of a project that it plans.

    The keys of ``changes`` and ``unsaid`` are paths in the project. ``changes`` contains the fields that the first
    update would change. ``unsaid`` contains the fields that no stack file sets. ``new`` lists planned resources that
    the project does not have.
    """

    name: str
    resources: Sequence[StackResource]
    matched: Mapping[tuple[str, str], Match]
    changes: dict[str, list[Difference]] = field(default_factory=dict)
    unsaid: dict[str, list[Difference]] = field(default_factory=dict)

    @property
    def new(self) -> list[StackResource]:
        """The resources without a counterpart in the project."""
        return [resource for resource in self.resources if resource.custom and resource.key not in self.matched]

    @property
    def replaced(self) -> list[str]:
        """The paths of resources that the first update would replace."""
        return [path for path, fields in self.changes.items() if any(change.replaces for change in fields)]

    @property
    def imports(self) -> dict[str, dict[str, Any]]:
        """The content of the files for ``pulumi import``, keyed by name, in the order of import.

        When it imports a file, the engine creates the providers in it first, so their parents have to exist already.
        """
        of_objects = {key for key in self.matched if key[0].startswith((KUBERNETES, KUBERNETES_PROVIDER))}
        cloud = {key: match for key, match in self.matched.items() if key not in of_objects}
        objects = {key: self.matched[key] for key in of_objects}
        files = {f"import-{self.name}.json": import_file(self.resources, cloud, objects)}
        if objects:
            files[f"import-{self.name}-objects.json"] = import_file(self.resources, objects)
        return files


def stacks_to_adopt(workspace: Workspace, project: str, name: str) -> list[Stack]:
    """Return a stack. If it is an environment, also return its teams in the same project.

    Raises UserError for an unknown name, a stack of another project, or a file with errors.
    """
    stack = workspace.stacks.get(name)
    if stack is None:
        nearest = find_nearest(name, workspace.stacks)
        hint = f" Nearest: {nearest}." if nearest else ""
        raise UserError(
            f"stacks/Pulumi.{name}.yaml does not exist: create it, for example with `init environment`. "
            f"Allowed: {', '.join(workspace.stacks) or 'none'}.{hint}"
        )
    stacks = [stack]
    if stack.team is None:
        stacks += [team for team, spec, _ in workspace.teams() if spec.environment == name]
    errors = [str(finding) for row in stacks for finding in row.findings if finding.severity == "error"]
    if errors or stack.section is None or workspace.environment_of(stack) is None:
        raise UserError("\n".join([*errors, "The stack files have errors: correct them first."]))
    if workspace.project_of(stack) != project:
        raise UserError(f"{name} is in project {workspace.project_of(stack)}, not in {project}.")
    return [row for row in stacks if workspace.project_of(row) == project]


def planned_regions(resources: Iterable[StackResource]) -> set[str]:
    """Return the regions of planned resources of Google Cloud."""
    places = (resource.inputs.get("region") or resource.inputs.get("location") for resource in resources)
    names = {place for place in places if isinstance(place, str)} - MULTI_REGIONS.keys() - {"global"}
    return {region_of(name) for name in names}


def compared(name: str, resources: Sequence[StackResource], contents: Contents) -> AdoptedStack:
    """Return a stack with the planned resources that exist, and their differences."""
    in_cloud = matches(resources, contents)
    stack = AdoptedStack(name, resources, matched=in_cloud | object_matches(resources, in_cloud, contents))
    for match in stack.matched.values():
        if match.body is None:
            continue
        if match.planned.type.startswith(KUBERNETES):
            fields = list(object_differences(match.planned, match.body))
        else:
            fields = differences(match.planned, match.body)
        for difference in fields:
            by_path = stack.unsaid if difference.planned is None else stack.changes
            by_path.setdefault(match.path, []).append(difference)
    return stack


UNPLANNED_KINDS = (
    CLUSTER, NODE_POOL, FILESTORE, BUCKET, PERSISTENT_RESOURCE, TENSORBOARD, REPOSITORY, SECRET, NETWORK,
)  # fmt: skip
"""Kinds of resources to report if no stack plans them: those with data, jobs or machines, and networks."""


class Unplanned(NamedTuple):
    """A resource of a project that no stack plans. ``id`` is its id for ``pulumi import``."""

    kind: str
    id: str


def unplanned(stacks: Sequence[AdoptedStack], contents: Contents) -> list[Unplanned]:
    """Return the resources of a project that none of its stacks plans."""
    planned = {match.path for stack in stacks for match in stack.matched.values()}
    return [
        Unplanned(RESOURCE_TYPES[kind].kind, imported_as(kind, path, contents.project))
        for kind in UNPLANNED_KINDS
        for path in sorted(contents.of(kind))
        if path not in planned
    ]


def lines(
    stacks: Sequence[AdoptedStack], unplanned_resources: Sequence[Unplanned], unread: Mapping[str, str]
) -> Iterator[str]:
    """Yield the lines of the report. ``unread`` contains the reasons why some resources cannot be listed."""
    yield from (f"a list could not be read, so its resources are planned as new: {why}" for why in unread.values())
    for stack in stacks:
        yield f"{stack.name}: {len(stack.matched)} resources to import, {len(stack.new)} new"
        sections: dict[str, Iterable[str]] = {
            "the first update changes": _fields(stack.changes),
            "exists, but stack files have no field for it": _fields(stack.unsaid),
            "new, because nothing in the project matches it": _new(stack.new),
        }
        for title, rows in sections.items():
            texts = [f"    {row}" for row in rows]
            yield from [f"  {title}:", *texts] if texts else ()
        if stack.replaced:
            count = counted(len(stack.replaced), "resource")
            yield f"  {count} would be replaced: correct the stack file before the first `pulumi up`"
    if unplanned_resources:
        yield "exists in the project, and no stack plans it:"
        yield from (f"  {resource.kind} {resource.id}" for resource in unplanned_resources)


def _fields(by_path: Mapping[str, Sequence[Difference]]) -> Iterator[str]:
    for path, fields in by_path.items():
        yield path.split("/", 2)[-1] if path.startswith("projects/") else path
        yield from (f"  {change}{' (replaces it)' if change.replaces else ''}" for change in fields)


def _new(resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield the names of resources. For kinds whose creation cannot lose anything, yield only their number."""
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
        yield f"{_counted(adding)} only add something: nothing changes if it exists already"
    if objects:
        yield f"{_counted(objects)}: existing objects are adopted as planned"


def _counted(kinds: Iterable[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(kinds).items()))


def as_json(stack: AdoptedStack) -> dict[str, Any]:
    """Return the report of a stack as JSON data."""
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
        "changes": changes,
        "unsaid": unsaid,
        "new": [{"type": resource.type, "name": resource.name} for resource in stack.new],
    }
