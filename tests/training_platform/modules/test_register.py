"""The program registers a stack's plan: request by request, field by field, and nothing more."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pulumi
import pytest

from local_google_cloud.kubernetes import as_sent, plain_struct
from tests.stacks import every_field as reach
from tests.support.places import ORGANISATION, ROOT
from tests.support.recording_monitor import STACK, RecordingMonitor, record, run_program
from tests.support.stack_files import text_of
from training_platform.config.workspace import read_workspace
from training_platform.modules.register import class_of, register_plan
from training_platform.resources.gke import kubeconfig
from training_platform.resources.plan import Alias, Component, Computed, Node, Options, Plan, Resource, awaited, is_read
from training_platform.resources.stack_plan import stack_plan
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, StackResource

NETWORK = "gcp:compute/network:Network"
OF_THE_SDK = {
    "acceptResources": "the SDK reads resources as values",
    "acceptSecrets": "the SDK reads secrets",
    "additionalSecretOutputs": "the provider's class knows its secret outputs",
    "aliases": "the provider's class knows earlier names of its type",
    "deleteBeforeReplaceDefined": "whether deleteBeforeReplace is set, with which it is compared",
    "hooks": "an empty message, since there are none",
    "sourcePosition": "the line of the program, for messages",
    "stackTrace": "the lines of the program, for messages",
    "supportsPartialValues": "the SDK reads unknown values",
    "supportsResultReporting": "the SDK reads how the registration ended",
    "version": "the installed version of the provider",
}
"""Fields of requests that no plan decides, each with its reason."""


def assert_registered(monitor: RecordingMonitor, plan: Plan) -> None:
    """Assert that the requests of a program are those of a plan, in an order that the plan allows."""
    planned = {resource.key: resource for resource in plan.planned()}
    nodes = {node.key: node for node in plan.nodes()}
    registered = [(request.type, request.name) for request in monitor.registrations]
    read = [(request.type, request.name) for request in monitor.reads]

    assert sorted(registered) == sorted(planned)
    assert sorted(read) == sorted(key for key, node in nodes.items() if is_read(node))
    for request in monitor.registrations:
        key = (request.type, request.name)
        assert sent(request, monitor) == expected(nodes[key], planned[key]), key
    for request in monitor.reads:
        node = nodes[request.type, request.name]
        assert isinstance(node, Resource)
        assert (request.id, parent_of(request, monitor)) == (node.read_id, parent_of_node(node))
        assert keys(request.dependencies, monitor) == {awaited_node.key for awaited_node in awaited(node)}
        assert provider_of(request.provider, monitor) is None
    assert monitor.outputs == plan.preview_outputs()


def sent(request: Any, monitor: RecordingMonitor) -> dict[str, Any]:
    """Return the fields that a request sets, empty ones of a message included; resources by type and name."""
    fields = {field.name: value for field, value in request.ListFields() if field.name not in OF_THE_SDK}
    fields["parent"] = parent_of(request, monitor)
    fields["object"] = plain_struct(request.object)
    fields["dependencies"] = keys(request.dependencies, monitor)
    fields["propertyDependencies"] = {
        name: keys(sources.urns, monitor) for name, sources in request.propertyDependencies.items() if sources.urns
    }
    if request.deleteBeforeReplaceDefined:
        fields["deleteBeforeReplace"] = request.deleteBeforeReplace
    if request.providers:
        fields["providers"] = {name: provider_of(reference, monitor) for name, reference in request.providers.items()}
    if request.provider:
        fields["provider"] = provider_of(request.provider, monitor)
    if request.HasField("customTimeouts"):
        fields["customTimeouts"] = {field.name: value for field, value in request.customTimeouts.ListFields()}
    if request.HasField("replacement_trigger"):
        fields["replacement_trigger"] = as_sent(request.replacement_trigger)
    return fields


def expected(node: Node, planned: StackResource) -> dict[str, Any]:
    """Return the fields that the request of a planned resource or component sets."""
    fields: dict[str, Any] = {
        "type": node.type,
        "name": node.name,
        "parent": parent_of_node(node),
        "object": dict(planned.inputs),
        "dependencies": {resource.key for resource in awaited(node)},
        "propertyDependencies": {name: set(sources) for name, sources in planned.inputs_from.items()},
    }
    if isinstance(node, Component):
        provider = provider_of_component(node)
        if provider is not None:
            fields["providers"] = {"kubernetes": provider.key}
        return fields
    fields["custom"] = True
    if node.provider is not None:
        fields["provider"] = node.provider.key
    options = {
        "protect": node.options.protect or None,
        "retainOnDelete": node.options.retain_on_delete or None,
        "deleteBeforeReplace": node.options.delete_before_replace,
        "ignoreChanges": list(node.options.ignore_changes) or None,
        "replaceOnChanges": list(node.options.replace_on_changes) or None,
        "replacement_trigger": node.options.replacement_trigger,
        "customTimeouts": dict(node.options.timeouts) or None,
        "importId": node.options.import_,
    }
    return fields | {name: value for name, value in options.items() if value is not None}


def keys(urns: Any, monitor: RecordingMonitor) -> set[tuple[str, str]]:
    return {monitor.key_of(urn) for urn in urns}


def parent_of(request: Any, monitor: RecordingMonitor) -> tuple[str, str] | None:
    parent = monitor.key_of(request.parent)
    return None if parent[0] == STACK else parent


def parent_of_node(node: Node) -> tuple[str, str] | None:
    assert node.parent is not None
    return None if isinstance(node.parent, Plan) else node.parent.key


def provider_of_component(component: Component | None) -> Resource | None:
    """Return the provider of a component, or of the nearest one around it."""
    while component is not None and component.provider is None:
        component = component.parent
    return component.provider if component else None


def provider_of(reference: str, monitor: RecordingMonitor) -> tuple[str, str] | None:
    urn = reference.rpartition("::")[0]  # what follows is the provider's id
    return monitor.key_of(urn) if urn else None


def assert_program_registers_plan(root: Path, name: str) -> None:
    workspace = read_workspace(root)
    plan = stack_plan(workspace.stacks[name], workspace)
    assert plan is not None

    assert_registered(run_program(root, workspace.stacks[name]), plan)


def names(root: Path) -> list[str]:
    return sorted(path.stem.removeprefix("Pulumi.") for path in (root / "stacks").glob("Pulumi.*.yaml"))


@pytest.mark.parametrize("name", names(ROOT))
def test_a_sample_is_registered_as_planned(name: str) -> None:
    assert_program_registers_plan(ROOT, name)


MAXIMAL = {"everything": (reach.ENVIRONMENT, reach.TEAM), "somebody else's": (reach.BORROWED, reach.PLAIN_TEAM)}


@pytest.mark.parametrize("sections", MAXIMAL.values(), ids=MAXIMAL)
@pytest.mark.parametrize("name", ["env", "team"])
def test_a_stack_with_every_field_is_registered_as_planned(name: str, sections: Any, tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    shutil.copy(ROOT / "__main__.py", tmp_path)
    for stack, kind, section in zip(("env", "team"), ("environment", "team"), sections, strict=True):
        (tmp_path / "stacks" / f"Pulumi.{stack}.yaml").write_text(text_of({kind: section}), encoding="utf-8")

    assert_program_registers_plan(tmp_path, name)


EVERY_OPTION = Options(
    protect=True,
    retain_on_delete=True,
    delete_before_replace=True,
    ignore_changes=("a",),
    replace_on_changes=("b",),
    replacement_trigger="c",
    timeouts={"create": "1m"},
)


def network_plan(options: Options, **inputs: Any) -> Plan:
    plan = Plan("dev")
    plan.add(Resource(type=NETWORK, name="net", inputs=inputs, options=options))
    return plan


@pytest.mark.parametrize("options", [Options(), Options(delete_before_replace=False), EVERY_OPTION])
def test_an_option_is_sent_if_the_plan_sets_it(options: Options) -> None:
    plan = network_plan(options)

    assert_registered(record(lambda: register_plan(plan)), plan)


def test_earlier_names_ids_to_import_and_secret_outputs_are_sent() -> None:
    plan = Plan("dev")
    part = plan.component("test:index:Part", "part")
    part.aliases.append(Alias(type="test:index:Former"))
    options = Options(import_="their-id", additional_secret_outputs=("selfLink",))
    inner = part.add(Resource(type=NETWORK, name="inner", inputs={}, options=options))
    inner.aliases += [Alias(name="old"), Alias(parents=("test:index:Removed",))]

    requests = {request.name: request for request in record(lambda: register_plan(plan)).registrations}

    assert [alias.spec.type for alias in requests["part"].aliases] == ["test:index:Former"]
    assert (requests["inner"].importId, list(requests["inner"].additionalSecretOutputs)) == ("their-id", ["selfLink"])
    assert [alias.spec.name or alias.urn for alias in requests["inner"].aliases] == [
        "old", f"urn:pulumi:dev::training-platform::test:index:Removed${NETWORK}::inner"
    ]  # fmt: skip


def test_a_component_registers_its_outputs_in_the_spelling_of_other_languages() -> None:
    plan = Plan("dev")
    part = plan.component("test:index:Part", "part")
    network = part.add(Resource(type=NETWORK, name="inner", inputs={"name": "shared"}))
    part.outputs = {"network_name": network.output("name"), "network_id": None}

    monitor = record(lambda: register_plan(plan))

    assert monitor.component_outputs == {("test:index:Part", "part"): {"networkName": "shared"}}


@pytest.mark.parametrize("field", ["spec", "data"])  # the SDK's class has spec alone
def test_an_output_of_a_custom_object_is_registered_as_the_plan_has_it(field: str) -> None:
    plan = Plan("dev")
    inputs = {"apiVersion": "example.com/v1", "kind": "Queue", "metadata": {"name": "own"}, field: {}}
    queue = plan.add(Resource(type="kubernetes:example.com/v1:Queue", name="own", inputs=inputs))
    plan.add(Resource(type=NETWORK, name="net", inputs={"name": queue.output("metadata", "name")}))

    assert_registered(record(lambda: register_plan(plan)), plan)


def test_options_of_the_caller_reach_the_outermost_children() -> None:
    plan = Plan("dev")
    plan.component("test:index:Part", "part").add(Resource(type=NETWORK, name="inner", inputs={}))
    plan.add(Resource(type=NETWORK, name="outer", inputs={}))

    def program() -> None:
        whole = pulumi.ComponentResource("test:index:Whole", "whole")
        register_plan(plan, pulumi.ResourceOptions(parent=whole))

    monitor = record(program)
    parents = {request.name: parent_of(request, monitor) for request in monitor.registrations}
    assert parents == {
        "whole": None,
        "outer": ("test:index:Whole", "whole"),
        "part": ("test:index:Whole", "whole"),
        "inner": ("test:index:Part", "part"),
    }


def failing(_value: Any) -> str:
    raise ValueError("no such value")


def test_an_error_of_a_computed_value_is_raised() -> None:
    plan = network_plan(Options(), name="net")
    (network,) = plan.resources()
    plan.add(Resource(type=NETWORK, name="other", inputs={"description": Computed(failing, (network.output("name"),))}))

    with pytest.raises(ValueError, match="no such value"):
        record(lambda: register_plan(plan))


def test_an_error_that_nobody_awaits_is_raised() -> None:
    def program() -> None:
        asyncio.get_event_loop().create_task(lost())

    async def lost() -> None:
        raise ValueError("lost")

    with pytest.raises(BaseExceptionGroup) as raised:
        record(program)
    assert [str(error) for error in raised.value.exceptions] == ["lost"]


def test_a_type_of_neither_provider_is_refused() -> None:
    with pytest.raises(LookupError, match="aws:s3/bucket:Bucket belongs neither to pulumi-gcp"):
        class_of("aws:s3/bucket:Bucket")


def dev_vision(outputs: Any) -> RecordingMonitor:
    workspace = read_workspace(ORGANISATION)
    return run_program(ORGANISATION, workspace.stacks["dev-vision"], outputs)


def test_a_team_reads_what_its_environment_exports() -> None:
    workspace = read_workspace(ORGANISATION)
    stacks = workspace.stacks["dev"].environment
    team = workspace.stacks["dev-vision"].team
    assert stacks is not None
    assert team is not None
    clusters = {name: {"endpoint": f"{name}.example.com", "flavors": list(team.shares[name])} for name in team.shares}
    instances = {name: {"instance": name, "ip": "10.0.0.2"} for name in stacks.filestore}

    monitor = dev_vision({"clusters": clusters, "filestore": instances, "google_apis": "199.36.153.8/30"})

    kubeconfigs = {
        request.name: plain_struct(request.object)["kubeconfig"]
        for request in monitor.registrations
        if request.type == KUBERNETES_PROVIDER
    }
    assert kubeconfigs == {f"share-{name}-kubernetes": kubeconfig(f"{name}.example.com") for name in team.shares}


def test_an_object_of_a_custom_kind_says_what_it_is() -> None:
    plan = Plan("dev")
    plan.add(Resource(type="kubernetes:example.com/v1:Queue", name="own", inputs={"spec": {}}))

    with pytest.raises(pulumi.RunError, match=r"own: \S+ has no apiVersion, which .*\nown: .* has no kind, "):
        register_plan(plan)


def test_an_output_that_the_environment_lacks_is_one_sentence() -> None:
    with pytest.raises(pulumi.RunError, match=r"first run `pulumi up -s dev`\.$"):
        dev_vision({"clusters": {}})
