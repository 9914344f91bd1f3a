"""The plan of a stack: components, their resources, and references to values that are known only after deployment.

Pure functions create it, ``training_platform/modules`` registers it with Pulumi, and all rules and checks read it. A
resource is identified by its type and name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from traceback import walk_stack
from typing import Any

from training_platform.config.reading.finding import Anchor, Path, Position, UserError
from training_platform.resources.spelling import wire_inputs
from training_platform.resources.stack_resource import UNKNOWN, ResourceKey, StackResource

OWN_RESOURCES = "own_resources.py"
"""The file in which an organisation adds its own resources."""
IN_OWN_RESOURCES: ContextVar[bool] = ContextVar("IN_OWN_RESOURCES", default=False)
"""Whether the organisation's own code is running. Each resource that it adds records the line of code that added it."""
STACK_REFERENCE = "pulumi:pulumi:StackReference"


_PACKAGES = ("gcp:", "kubernetes:", "pulumi:")  # how the types of a stack's resources begin


def own_anchor(stack: str, line: int) -> Anchor:
    """Return the position of a finding about a stack, as a line of the organisation's own code."""
    return Anchor(stack=stack, file=OWN_RESOURCES, position=Position(line, 1))


class PlanError(UserError):
    """A plan that cannot be registered: a repeated name, a cycle of dependencies, or an API that is not enabled.

    ``path`` is the field of the stack file that causes it, empty if the program does. ``line`` is the line of the
    organisation's own code that causes it, otherwise None. If there is a line, ``reason`` is the message without file,
    line and stack.
    """

    def __init__(self, message: str, path: Path = (), *, line: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.reason = reason or message


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a resource, with the names of Pulumi's resource options.

    ``delete_before_replace`` may also be None, because an explicit False would override the provider's own decision.
    ``import_`` is the id of an existing resource that becomes this one. ``timeouts`` apply to create, update and
    delete.
    """

    protect: bool = False
    retain_on_delete: bool = False
    delete_before_replace: bool | None = None
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    replacement_trigger: str | None = None
    import_: str | None = None
    additional_secret_outputs: tuple[str, ...] = ()
    timeouts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def planned(self) -> dict[str, Any]:
        """The options that are set, as ``StackResource`` stores them."""
        every = {
            "protect": self.protect,
            "retainOnDelete": self.retain_on_delete,
            "deleteBeforeReplace": self.delete_before_replace,
            "ignoreChanges": list(self.ignore_changes),
            "replaceOnChanges": list(self.replace_on_changes),
            "replacementTrigger": self.replacement_trigger,
            "import": self.import_,
            "additionalSecretOutputs": list(self.additional_secret_outputs),
            "customTimeouts": dict(self.timeouts),
        }
        return {name: value for name, value in every.items() if value}


PLAIN = Options()


@dataclass(frozen=True, kw_only=True)
class Alias:
    """The former identity of a resource or component, so that Pulumi does not treat it as new.

    Fields that are left out have not changed. ``parents`` are the types of the components that contained it, the
    outermost first. An alias of a component applies to everything below it. If a component is removed, each of its
    children needs an alias that contains it.
    """

    name: str | None = None
    type: str | None = None
    parents: tuple[str, ...] | None = None


@dataclass(kw_only=True, eq=False)
class Resource:
    """A resource of a plan.

    - ``inputs`` have the provider's Python names, and inputs that are None are left out. The inputs of a Kubernetes
      object are its manifest.
    - ``after`` contains what the resource waits for in addition to the resources that its inputs refer to.
    - ``own_provider`` is its provider if that differs from its component's provider.
    - ``read_id`` is the id of an existing resource that is only read.
    - ``own_line`` is the line of the organisation's own code that adds it, None for our resources.
    """

    type: str
    name: str
    inputs: Mapping[str, Any]
    options: Options = PLAIN
    after: list[Node] = field(default_factory=list)
    parent: Component | None = None
    own_provider: Resource | None = None
    read_id: str | None = None
    own_line: int | None = None
    aliases: list[Alias] = field(default_factory=list)

    @property
    def key(self) -> ResourceKey:
        """The type and the name of the resource, which are unique in its stack."""
        return self.type, self.name

    @property
    def provider(self) -> Resource | None:
        """The provider with which the resource is registered; None for a default provider."""
        if self.own_provider is not None or not self.type.startswith("kubernetes:"):
            return self.own_provider
        component = self.parent
        while component is not None and component.provider is None:
            component = component.parent
        return component.provider if component else None

    def output(self, *path: str) -> Any:
        """Return a reference to an output, by its Python name in the provider. It can be used as any input."""
        return Reference(self, path)


@dataclass(frozen=True, eq=False)
class Reference:
    """An output of a resource, which is known once the resource is deployed."""

    resource: Resource
    path: tuple[str, ...]

    @property
    def preview(self) -> Any:
        """The value that a preview knows: the input of the same name, otherwise ``UNKNOWN``.

        Nothing is known about objects whose cluster is not deployed yet, because their provider cannot be queried.
        """
        provider = self.resource.provider
        if provider is not None and not _is_known(provider.inputs):
            return UNKNOWN
        value: Any = self.resource.inputs
        for part in self.path:
            if not isinstance(value, Mapping) or value.get(part) is None:
                return UNKNOWN
            value = value[part]
        return value.preview if isinstance(value, Reference | Computed) else value


@dataclass(frozen=True, eq=False)
class Computed:
    """A value that a named function calculates from other values once all of them are known."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    @property
    def preview(self) -> Any:
        """The value that a preview knows."""
        arguments = [preview(argument) for argument in self.arguments]
        return self.function(*arguments) if _is_known(arguments) else UNKNOWN


def compute(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function. If an argument is known only after deployment, the result is ``Computed``."""
    return Computed(function, arguments) if _is_deferred(arguments) else function(*arguments)


def _is_deferred(value: Any) -> bool:
    """Return True if a value contains a reference, or an output of another Pulumi program, which is not read here."""
    if isinstance(value, Mapping):
        return any(_is_deferred(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_is_deferred(item) for item in value)
    return isinstance(value, Reference | Computed) or (hasattr(value, "is_known") and hasattr(value, "apply"))


def text(template: str, *values: Any) -> Any:
    """Return the text of a template in which each ``{}`` is replaced by a value."""
    return compute(str.format, template, *values)


def once(value: Any, *awaited: Any) -> Any:
    """Return a value that is known only once the ``awaited`` values are known. Resources that use it wait for them."""
    return compute(first, value, *awaited)


def first(value: Any, *_others: Any) -> Any:
    """Return the first of its arguments."""
    return value


class Component:
    """A component of a plan, with its resources and other components in ``children``.

    - ``after`` contains what it waits for; its children wait for this as well.
    - ``provider`` is the provider of Kubernetes objects in it.
    - ``aliases`` are its identities in earlier plans.
    - ``outputs`` are the values that others read, keyed by Python name.
    """

    def __init__(
        self,
        component_type: str,
        name: str,
        *,
        parent: Component | None = None,
        after: Iterable[Node] = (),
        provider: Resource | None = None,
    ) -> None:
        self.type = component_type
        self.name = name
        self.parent = parent
        self.after = list(after)
        self.provider = provider
        self.aliases: list[Alias] = []
        self.outputs: dict[str, Any] = {}
        self.children: list[Node] = []

    @property
    def key(self) -> ResourceKey:
        """The type and the name of the component, which are unique in its stack."""
        return self.type, self.name

    def add(self, resource: Resource, after: Iterable[Node] = ()) -> Resource:
        """Add a resource that also waits for ``after``, and return it."""
        resource.parent = self
        if IN_OWN_RESOURCES.get():
            resource.own_line = _own_line()
            _refuse_circles(resource.inputs, resource.name)
        resource.after.extend(after)
        self.children.append(resource)
        return resource

    def component(
        self, component_type: str, name: str, *, after: Iterable[Node] = (), provider: Resource | None = None
    ) -> Component:
        """Add a component and return it."""
        child = Component(component_type, name, parent=self, after=after, provider=provider)
        self.children.append(child)
        return child

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes below the component, parents first."""
        for child in self.children:
            yield child
            if isinstance(child, Component):
                yield from child.nodes()

    def resources(self) -> Iterator[Resource]:
        """Yield all resources below the component."""
        return (node for node in self.nodes() if isinstance(node, Resource))


def _refuse_circles(value: Any, resource: str, above: tuple[int, ...] = ()) -> None:
    """Raise PlanError if an input from the organisation's own code contains itself. Traversing it would never end."""
    if not isinstance(value, Mapping | list | tuple):
        return
    if id(value) in above:
        raise PlanError(f"the inputs of {resource} contain themselves")
    items = list(value.values() if isinstance(value, Mapping) else value)
    for item in items:
        _refuse_circles(item, resource, (*above, id(value)))


def _own_line() -> int | None:
    """Return the innermost line of the organisation's own code that is being called."""
    lines = (line for frame, line in walk_stack(None) if PurePath(frame.f_code.co_filename).name == OWN_RESOURCES)
    return next(lines, None)


Node = Resource | Component


class Plan(Component):
    """The plan of a stack; ``outputs`` are the values that the stack exports."""

    def __init__(self, stack: str) -> None:
        super().__init__("pulumi:pulumi:Stack", stack)

    def check(self) -> None:
        """Raise PlanError if two resources have the same type and name, or if a dependency cannot be satisfied.

        This is the case for a dependency that is not in the plan, or that depends on the resource itself.
        """
        counts = Counter(node.key for node in self.nodes())
        repeated = [f"{name} ({kind})" for (kind, name), count in counts.items() if count > 1]
        if repeated:
            reason = f"two resources have the same type and name: {', '.join(repeated)}"
            added = (node for node in self.resources() if node.own_line is not None and counts[node.key] > 1)
            line = next((node.own_line for node in added), None)
            raise PlanError(f"stack {self.name}: {reason}.", line=line, reason=reason)
        needs = _needs(self)
        absent = [
            f"{node.name} needs {other.name} ({other.type})"
            for node, needed in needs.items()
            for other in needed
            if other not in needs
        ]
        if absent:
            raise PlanError(
                f"stack {self.name}: {', '.join(absent)}, which is not in the plan: add that resource as well."
            )
        _sorted(needs)

    def check_providers(self) -> None:
        """Raise PlanError for a resource of an unsupported provider, and for a Kubernetes object without a provider.

        Without a provider, Pulumi would create the object in the cluster of the caller's kubeconfig.
        """
        resources = list(self.resources())
        for resource in resources:
            if not resource.type.startswith(_PACKAGES):
                reason = (
                    f"{resource.name} ({resource.type}) belongs to a provider that stacks do not have: they have "
                    f"only gcp and kubernetes. Put the resource into a separate Pulumi program"
                )
                raise PlanError(f"stack {self.name}: {reason}.", line=resource.own_line, reason=reason)
        homeless = [row for row in resources if row.type.startswith("kubernetes:") and row.provider is None]
        if homeless:
            names = ", ".join(f"{resource.name} ({resource.type})" for resource in homeless)
            reason = f"{names} is not in a cluster: add it to a component with the provider of a cluster"
            raise PlanError(f"stack {self.name}: {reason}.", line=homeless[0].own_line, reason=reason)

    def planned(self, types: Container[str] | None = None) -> list[StackResource]:
        """Return all resources and components as a preview would register them, except those that are only read.

        ``types`` limits the result to these types; None means all types.
        """
        nodes = (node for node in self.nodes() if not is_read(node))
        return [_planned(node, self) for node in nodes if types is None or node.type in types]

    def preview_outputs(self) -> dict[str, Any]:
        """Return the outputs of the plan as a preview knows them."""
        return {name: preview(value) for name, value in self.outputs.items()}


def is_read(node: Node) -> bool:
    """Return True if a resource exists already and is only read, so it is not registered."""
    return isinstance(node, Resource) and node.read_id is not None


def preview(value: Any) -> Any:
    """Return a value in which references are replaced by what a preview knows."""
    if isinstance(value, Mapping):
        return {key: preview(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [preview(item) for item in value]
    return value.preview if isinstance(value, Reference | Computed) else value


def _is_known(value: Any) -> bool:
    if isinstance(value, Reference | Computed):
        return _is_known(value.preview)
    if isinstance(value, Mapping):
        return all(_is_known(item) for item in value.values())
    if isinstance(value, list | tuple):
        return all(_is_known(item) for item in value)
    return value is not UNKNOWN


_SCALARS = (str, int, float, type(None))  # most values; telling that they are no mapping takes much longer


def references(value: Any) -> list[Reference]:
    """Return the outputs that a value contains, in their order; an output may occur repeatedly."""
    outputs: list[Reference] = []
    remaining = [value]
    while remaining:
        item = remaining.pop()
        if isinstance(item, _SCALARS):
            continue
        if isinstance(item, Reference):
            outputs.append(item)
        elif isinstance(item, Computed):
            remaining.extend(item.arguments)
        elif isinstance(item, Mapping):
            remaining.extend(item.values())
        elif isinstance(item, list | tuple):
            remaining.extend(item)
    outputs.reverse()  # the last item is taken first
    return outputs


def referenced(value: Any) -> Iterator[Resource]:
    """Yield the resources whose outputs a value contains; a resource may occur repeatedly."""
    return (reference.resource for reference in references(value))


def awaited(node: Node) -> Iterator[Resource]:
    """Yield the resources that a node waits for.

    These are the resources that it refers to, and those that ``after`` contains, directly or within a component.
    """
    yield from _awaited_explicitly(node)
    if isinstance(node, Resource):
        yield from referenced(node.inputs)


def _awaited_explicitly(node: Node) -> Iterator[Resource]:
    for other in node.after:
        if isinstance(other, Component):
            yield from other.resources()
        else:
            yield other


def _planned(node: Node, plan: Plan) -> StackResource:
    parent = None if node.parent is None or node.parent is plan else node.parent.key
    waits = {resource.key for resource in _awaited_explicitly(node)}
    if isinstance(node, Component):
        options: dict[str, Any] = {"dependsOn": sorted(waits)} if waits else {}
        return StackResource(
            stack=plan.name, type=node.type, name=node.name, inputs={}, custom=False, parent=parent, options=options
        )
    inputs_from = _sources(node)
    waits.update(*inputs_from.values())
    options = dict(node.options.planned)
    if waits:
        options["dependsOn"] = sorted(waits)
    if node.provider:
        options["provider"] = node.provider.name
    return StackResource(
        stack=plan.name,
        type=node.type,
        name=node.name,
        inputs=wire_inputs(node.type, node.inputs, preview),
        parent=parent,
        options=options,
        inputs_from=inputs_from,
        own_line=node.own_line,
    )


def _sources(resource: Resource) -> dict[str, tuple[ResourceKey, ...]]:
    """Return the resources whose outputs each input contains, keyed by the input's name as sent to the provider."""
    sources = {}
    for name, value in resource.inputs.items():
        keys = tuple(sorted({origin.key for origin in referenced(value)}))
        if keys:
            (wire_name,) = wire_inputs(resource.type, {name: ""})
            sources[wire_name] = keys
    return sources


def parent_types(node: Node) -> tuple[str, ...]:
    """Return the types of the components that contain a node, the outermost first, without the stack's type."""
    types: list[str] = []
    component = node.parent
    while component is not None and component.parent is not None:
        types.append(component.type)
        component = component.parent
    return tuple(reversed(types))


def in_order(root: Component) -> list[Node]:
    """Return everything below a component. Each node is after its parent and its dependencies. Raises PlanError."""
    return _sorted(_needs(root))


def _needs(root: Component) -> dict[Node, list[Node]]:
    """Return the nodes that must be registered before each node: its parent, its provider, and its dependencies."""
    needs: dict[Node, list[Node]] = {}
    for node in root.nodes():
        before: list[Node] = []
        if node.parent is not None and node.parent is not root:
            before.append(node.parent)
        if isinstance(node, Resource) and node.provider is not None:
            before.append(node.provider)
        needs[node] = list(dict.fromkeys((*before, *awaited(node))))
    return needs


def _sorted(needs: Mapping[Node, Iterable[Node]]) -> list[Node]:
    """Sort nodes so that each one comes after the nodes that it needs, and otherwise keep the given order.

    This is not recursive, because chains of dependencies may be longer than Python's stack.
    """
    done: dict[Node, None] = {}
    for start in needs:
        chain = {start: iter(needs[start])}  # each node needs the next one
        while chain:
            node, remaining = next(reversed(chain.items()))
            needed = next((other for other in remaining if other not in done), None)
            if node in done or needed is None:
                done[node] = None
                chain.popitem()
            elif needed in chain:
                names = [other.name for other in chain]
                circle = " -> ".join([*names[names.index(needed.name) :], needed.name])
                raise PlanError(f"resources depend on each other in a circle: {circle}.")
            else:
                chain[needed] = iter(needs[needed])
    return list(done)
