"""Registers a plan with Pulumi: each resource uses the provider's class for its type."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

import pulumi
import pulumi_kubernetes
from pulumi_kubernetes.apiextensions import CustomResource

from training_platform.catalog.nearest import find_nearest
from training_platform.resources.environment_outputs import OutputsError
from training_platform.resources.plan import (
    OWN_RESOURCES,
    STACK_REFERENCE,
    Alias,
    Component,
    Computed,
    Node,
    Options,
    Reference,
    Resource,
    in_order,
    is_read,
    references,
)
from training_platform.resources.project import SERVICE_AGENTS
from training_platform.resources.resource_types import SERVICE, api_of
from training_platform.resources.spelling import camel_case
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def register_plan(plan: Component, opts: pulumi.ResourceOptions | None = None) -> Registered:
    """Register everything in a plan, each resource after all resources that it waits for.

    ``opts``, such as a parent, apply to the outermost children. Raises PlanError, and pulumi.RunError for resources
    that the provider SDKs do not have.
    """
    nodes = in_order(plan)
    _refuse_unknown(node for node in nodes if isinstance(node, Resource) and node.type != STACK_REFERENCE)
    registered = Registered(opts)
    for node in nodes:
        registered.add(node, outermost=node.parent is plan)
    registered.finish()
    return registered


def _refuse_unknown(resources: Iterable[Resource]) -> None:
    """Raise pulumi.RunError for all resources that no class can register, before anything is registered."""
    wrong = [f"{resource.name}: {mistake}" for resource in resources for mistake in _mistakes(resource)]
    if wrong:
        raise pulumi.RunError("Nothing was registered:\n" + "\n".join(wrong))


def _mistakes(resource: Resource) -> Iterator[str]:
    """Yield what the provider's classes lack: the resource's type, its inputs, or the outputs that it reads.

    Objects of custom kinds have no class, so they have to say what they are.
    """
    try:
        resource_class = class_of(resource.type)
    except LookupError as error:
        yield str(error)
        return
    if resource.read_id is None and resource_class is not None:
        constructor = resource_class._internal_init  # noqa: SLF001 # __init__ is overloaded
        parameters = inspect.signature(constructor).parameters
        for name in sorted(set(_arguments(resource.type, resource.inputs)) - set(parameters)):
            yield f"{resource.type} has no input {name}.{_hint(name, parameters)}"
    if resource_class is None:
        for name in ("apiVersion", "kind"):
            if name not in resource.inputs:
                yield f"{resource.type} has no {name}, which every object of a custom kind needs."
    for reference in references(resource.inputs):
        yield from _unknown_output(reference)


def _unknown_output(reference: Reference) -> Iterator[str]:
    """Yield an error if a Google Cloud class does not have the output. Unknown types are reported elsewhere."""
    origin = reference.resource.type
    if not origin.startswith("gcp:") or not reference.path:
        return
    try:
        origin_class = class_of(origin)
    except LookupError:
        return
    output = reference.path[0]
    if not hasattr(origin_class, output):
        outputs = [name for name in vars(origin_class) if not name.startswith("_")]
        yield f"{origin} has no output {output}.{_hint(output, outputs)}"


def _hint(name: str, names: Iterable[str]) -> str:
    nearest = find_nearest(name, names)
    return f" Nearest: {nearest}." if nearest else ""


class Registered:
    """The part of a plan that is already registered."""

    def __init__(self, opts: pulumi.ResourceOptions | None) -> None:
        self._opts = opts
        self._resources: dict[Node, Any] = {}

    def __getitem__(self, node: Node) -> Any:
        """Return the registered resource or component of a node of the plan."""
        return self._resources[node]

    def add(self, node: Node, *, outermost: bool) -> None:
        """Register a node. Everything that it waits for must already be registered."""
        assert node.parent is not None, "the root of a plan is registered by whoever made it"
        opts = pulumi.ResourceOptions(
            parent=None if outermost else self._resources[node.parent],
            depends_on=[self._resources[other] for other in dict.fromkeys(node.after)],
        )
        opts.aliases = [_alias(alias, node) for alias in node.aliases]
        if isinstance(node, Resource) and node.own_provider is not None:
            opts.provider = self._resources[node.own_provider]
        if outermost and self._opts is not None:
            opts = pulumi.ResourceOptions.merge(self._opts, opts)
        if isinstance(node, Component):
            if node.provider is not None:
                opts.providers = [self._resources[node.provider]]
            self._resources[node] = pulumi.ComponentResource(node.type, node.name, {}, opts)
        elif is_read(node):
            self._resources[node] = _read(node, opts)
        else:
            self._resources[node] = self._register(node, pulumi.ResourceOptions.merge(opts, _options(node.options)))

    def finish(self) -> None:
        """Register the outputs of all components, which completes them."""
        for node, resource in self._resources.items():
            if isinstance(node, Component):
                outputs = {camel_case(name): self.resolve(value) for name, value in node.outputs.items()}
                resource.register_outputs(outputs)

    def output(self, value: Any) -> pulumi.Output[Any]:
        """Return a value of the plan as an output of a component."""
        return pulumi.Output.from_input(self.resolve(value))

    def resolve(self, value: Any) -> Any:
        """Return a value in which references are replaced by Pulumi outputs and None is removed."""
        if isinstance(value, Reference):
            resource = self._resources[value.resource]
            # The SDK has classes for what outputs contain, but outputs of custom objects contain maps.
            has_maps = isinstance(resource, CustomResource | OtherObject)
            output = resource
            for part in value.path:
                is_in_map = has_maps and output is not resource
                output = output[part] if is_in_map else getattr(output, part)
            return output
        if isinstance(value, Computed):
            arguments = [self.resolve(argument) for argument in value.arguments]
            return pulumi.Output.all(*arguments).apply(lambda values: _call(value.function, values))
        if isinstance(value, Mapping):
            return {key: self.resolve(item) for key, item in value.items() if item is not None}
        if isinstance(value, list | tuple):
            return [self.resolve(item) for item in value]
        return value

    def _register(self, resource: Resource, opts: pulumi.ResourceOptions) -> Any:
        inputs = self.resolve(resource.inputs)
        resource_class = class_of(resource.type)
        if resource_class is not None:
            return resource_class(resource.name, **_arguments(resource.type, inputs), opts=opts)
        if set(inputs) <= {"apiVersion", "kind", "metadata", "spec"}:
            names = {_snake_case(name): value for name, value in inputs.items()}
            return CustomResource(resource.name, **names, opts=opts)
        return OtherObject(resource.type, resource.name, inputs, opts)


def make_later_resources_wait(plan: Component, registered: Registered) -> None:
    """Make resources that the program registers later wait for their API and for the roles of Google's service agents.

    The resources of a plan wait for the same. If the stack does not enable the API of a resource, registering the
    resource raises pulumi.RunError. This uses Pulumi's older kind of transformation because
    `register_resource_transform` has three disadvantages (tried with engine 3.260 and SDK 3.272):

    - It blocks until everything that was created before has finished.
    - Its dependencies are not in the state, so the order of deletion differs.
    - An error in it is shown as a traceback.
    """
    services = {node.inputs["service"]: registered[node] for node in plan.resources() if node.type == SERVICE}
    agents = [registered[node] for node in plan.children if node.type == SERVICE_AGENTS]

    def after_its_api(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if isinstance(args.resource, pulumi.ComponentResource):
            # One of another package creates its resources in a process of its own, where nothing here sees them.
            after = pulumi.ResourceOptions(depends_on=[*services.values(), *agents])
            return pulumi.ResourceTransformationResult(args.props, pulumi.ResourceOptions.merge(args.opts, after))
        try:
            api = api_of(args.type_)
        except LookupError:  # of a service that no stack of ours uses: its program says what it waits for
            return None
        if api is None:
            return None
        if api not in services:
            raise pulumi.RunError(
                f"{args.name} ({args.type_}) needs {api}, which this stack does not enable: "
                f'{OWN_RESOURCES} enables it with own.enable_api("{api}").'
            )
        after = pulumi.ResourceOptions(depends_on=[services[api], *agents])
        return pulumi.ResourceTransformationResult(args.props, pulumi.ResourceOptions.merge(args.opts, after))

    pulumi.runtime.register_stack_transformation(after_its_api)


class OtherObject(pulumi.CustomResource):
    """A Kubernetes object whose CRD has fields other than ``spec``. The SDK's class accepts only ``spec``."""

    def __init__(self, resource_type: str, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        of_provider = pulumi.ResourceOptions(version=_kubernetes_version())
        super().__init__(resource_type, name, dict(inputs), pulumi.ResourceOptions.merge(opts, of_provider))


@cache
def _kubernetes_version() -> str:
    return version("pulumi-kubernetes")


def _read(resource: Resource, opts: pulumi.ResourceOptions) -> Any:
    """Read a resource that already exists."""
    assert resource.read_id is not None
    if resource.type == STACK_REFERENCE:
        return pulumi.StackReference(resource.read_id)
    resource_class = class_of(resource.type)
    assert resource_class is not None, f"{resource.type} has no class"
    return resource_class.get(resource.name, resource.read_id, opts=opts)


def _call(function: Callable[..., Any], arguments: Iterable[Any]) -> Any:
    """Call a function of the plan. A missing output of an environment is reported without a traceback."""
    try:
        return function(*arguments)
    except OutputsError as error:
        raise pulumi.RunError(str(error)) from error


def _alias(alias: Alias, node: Node) -> str | pulumi.Alias:
    """Return an alias in Pulumi's form. If its parents differ, it is a URN, which contains the parents' types."""
    name = alias.name or node.name
    resource_type = alias.type or node.type
    if alias.parents is None:
        return pulumi.Alias(name=name, type_=resource_type)
    types = "$".join((*alias.parents, resource_type))
    return f"urn:pulumi:{pulumi.get_stack()}::{pulumi.get_project()}::{types}::{name}"


def _options(options: Options) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(
        protect=options.protect or None,  # an explicit False would override what a parent says
        retain_on_delete=options.retain_on_delete or None,
        delete_before_replace=options.delete_before_replace,
        ignore_changes=list(options.ignore_changes),
        replace_on_changes=list(options.replace_on_changes),
        replacement_trigger=options.replacement_trigger,
        import_=options.import_,
        additional_secret_outputs=list(options.additional_secret_outputs) or None,
        custom_timeouts=pulumi.CustomTimeouts(**options.timeouts) if options.timeouts else None,
    )


def _arguments(resource_type: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs keyed by the parameter names of a class. Google Cloud inputs already have these names."""
    if resource_type.startswith("gcp:"):
        return dict(inputs)
    # The classes of Kubernetes' own kinds know their kind.
    return {_snake_case(name): value for name, value in inputs.items() if name not in ("apiVersion", "kind")}


@cache
def _snake_case(name: str) -> str:
    return _CAPITAL.sub("_", name).lower()


@cache
def class_of(resource_type: str) -> Any:
    """Return the provider's class for a type: ``gcp:compute/network:Network`` is pulumi_gcp.compute.Network.

    Return None for a kind of Kubernetes object from a CRD. Raises LookupError for a type that neither provider has.
    """
    if resource_type == KUBERNETES_PROVIDER:
        return pulumi_kubernetes.Provider
    package, module, name = resource_type.split(":")
    if package == "gcp":
        path = f"pulumi_gcp.{module.partition('/')[0]}"
        try:
            return getattr(import_module(path), name)
        except (ModuleNotFoundError, AttributeError) as error:
            raise LookupError(f"{resource_type} is not a type of pulumi-gcp {version('pulumi-gcp')}.") from error
    if package != "kubernetes":
        raise LookupError(f"{resource_type} belongs neither to pulumi-gcp nor to pulumi-kubernetes.")
    group, _, api_version = module.partition("/")
    path = f"pulumi_kubernetes.{group.partition('.')[0]}.{api_version}"
    try:
        resource_class = getattr(import_module(path), name, None)
    except ModuleNotFoundError:
        return None
    return resource_class if getattr(resource_class, "pulumi_type", None) == resource_type else None
