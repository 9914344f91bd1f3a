"""The recorder takes, refuses and records what the real engine does, in small programs."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.engine.comparison import different_inputs, different_options, different_outputs, missing
from tests.engine.workspace import Workspace
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model.stack import PROJECT

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

STACK = "dev"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
PRELUDE = """
import json
import pulumi
import pulumi_kubernetes as k8s
from pulumi import ResourceOptions as Options

def kubeconfig(server):
    return json.dumps({
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    })

def settings(name, data=None, **options):
    return k8s.core.v1.ConfigMap(name, metadata={"name": name}, data=data or {}, opts=Options(**options))

class Part(pulumi.ComponentResource):
    def __init__(self, name, kind="Part", opts=None):
        super().__init__(f"training-platform:tests:{kind}", name, {}, opts)

one = k8s.Provider("one", kubeconfig=kubeconfig("https://one.example.com"), cluster_identifier="one")
"""
VALUES = """
later = settings("later", provider=one)
k8s.apiextensions.CustomResource(
    "values", api_version="example.com/v1", kind="Values", metadata={"name": "values"},
    spec={
        "whole": 3, "large": 2**53, "negative": -1, "decimal": 0.1, "true": True, "false": False, "nothing": None,
        "text": "é 漢 😀", "empty": "", "list": [], "map": {}, "nested": [[1, [None]], {"a": [{"b": None}]}],
        "later": later.id, "in text": pulumi.Output.concat("x-", later.id), "in list": [1, later.id],
        "in map": {"known": 1, "later": later.id}, "name": later.metadata["name"], "whole map": later.data,
    },
    opts=Options(provider=one),
)
settings("from-apply", {"name": later.metadata.apply(lambda found: f"{found.name}-x")}, provider=one)
"""
PROVIDERS = """
later = settings("later", provider=one)
two = k8s.Provider("two", kubeconfig=later.id.apply(lambda name: kubeconfig(f"https://{name}")), cluster_identifier="2")
far = settings("far", {"known": "x"}, provider=two)
settings("from-far", {"name": far.metadata["name"], "known": far.data["known"]}, provider=one)
part = Part("part", opts=Options(providers=[one, two]))
inner = Part("inner", opts=Options(parent=part, provider=one))
settings("below", parent=inner)
"""
OPTIONS = """
part, other = Part("part"), Part("other")
first = settings("first", parent=part, provider=one)
settings(
    "all", parent=part, provider=one, protect=True, retain_on_delete=True, delete_before_replace=True,
    ignore_changes=["data", "metadata.labels"], replace_on_changes=["data"],
    custom_timeouts=pulumi.CustomTimeouts(create="90s", update="1h30m", delete="8h"),
)
settings("after-component", parent=other, provider=one, depends_on=[part])
settings("after-resource", {"name": first.metadata["name"]}, provider=one, depends_on=first)
settings("child", parent=first, provider=one)
Part("protected", opts=Options(protect=True, parent=part))
"""
TRANSFORMED = """
first = settings("first", provider=one)
def wait(args):
    if args.name == "first" or args.type_.startswith("pulumi:"):
        return None
    more = Options(depends_on=[first], ignore_changes=["data"])
    return pulumi.ResourceTransformationResult(args.props, Options.merge(args.opts, more))
pulumi.runtime.register_stack_transformation(wait)
settings("second", parent=Part("part"), provider=one)
"""
EXPORTS = """
later = settings("later", {"a": "1"}, provider=one)
pulumi.export("whole", 3)
pulumi.export("decimal", 1.5)
pulumi.export("nested", {"a": [1, {"b": later.id}], "c": {}, "d": []})
pulumi.export("text", later.metadata["name"])
pulumi.export("unknown", later.id)
pulumi.export("map", later.data)
"""
PROGRAMS = {
    "values": VALUES,
    "providers": PROVIDERS,
    "options": OPTIONS,
    "transformed": TRANSFORMED,
    "exports": EXPORTS,
}


@pytest.fixture
def make(tmp_path: Path, kubernetes: int) -> Callable[[str], Workspace]:
    """Make a workspace with a program and an empty stack."""

    def make(program: str) -> Workspace:
        workspace = Workspace(tmp_path, kubernetes, program=dedent(PRELUDE) + program)
        workspace.init(STACK)
        return workspace

    return make


def recorded(workspace: Workspace) -> Plan:
    main = workspace.root / "__main__.py"
    return record(lambda: runpy.run_path(str(main)), project=PROJECT, stack_name=STACK, root=workspace.root)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_recorder_records_what_a_preview_shows(program: str, make: Callable[[str], Workspace]) -> None:
    workspace = make(program)

    plan, preview = recorded(workspace), workspace.preview(STACK)

    assert (preview.code, preview.errors) == (0, [])
    assert missing(plan, preview) == []
    assert different_inputs(plan, preview) == []
    assert different_options(plan, preview) == []
    assert different_outputs(plan, preview) == []


REFUSED = {
    "a type and name given twice": 'settings("twice", provider=one)\nsettings("twice", provider=one)\n',
    "a component given twice": 'Part("twice")\nPart("twice")\n',
    "the same below parents of one type": """
for name in ("a", "b"):
    settings("twice", parent=Part(name), provider=one)
""",
    "an error of the program": 'settings("first", provider=one)\nraise KeyError("boom")\n',
    "an error within an apply": """
settings("x", {"a": one.urn.apply(lambda urn: {}[urn])}, provider=one)
""",
    "a stack that nobody deployed": 'pulumi.StackReference("organization/training-platform/nowhere")\n',
}


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED)
def test_the_recorder_refuses_what_the_engine_refuses(program: str, make: Callable[[str], Workspace]) -> None:
    workspace = make(program)

    preview = workspace.preview(STACK)

    assert preview.code != 0
    with pytest.raises(Exception, match=r"two resources|boom|urn:pulumi|has no outputs"):
        recorded(workspace)


def test_the_recorder_alone_refuses_one_type_and_name_below_parents_of_two_types(
    make: Callable[[str], Workspace],
) -> None:
    """The engine tells them apart by their parents' types; nothing else here does, findings and policies least."""
    workspace = make("""
for kind in ("A", "B"):
    settings("twice", parent=Part(kind, kind), provider=one)
""")

    preview = workspace.preview(STACK)

    assert (preview.code, preview.errors) == (0, [])
    with pytest.raises(Exception, match=f"two resources are {CONFIG_MAP} twice"):
        recorded(workspace)


def test_one_name_for_two_types_is_fine_for_both(make: Callable[[str], Workspace]) -> None:
    workspace = make('settings("same", provider=one)\nPart("same")\n')

    plan, preview = recorded(workspace), workspace.preview(STACK)

    assert (preview.code, preview.errors) == (0, [])
    assert missing(plan, preview) == []
    assert len(plan.resources) == 3


def test_a_secret_is_recorded_as_what_it_holds_and_a_preview_hides_it(make: Callable[[str], Workspace]) -> None:
    workspace = make('settings("s", {"a": pulumi.Output.secret("hush"), "b": "open"}, provider=one)\n')

    plan, preview = recorded(workspace), workspace.preview(STACK)

    assert (preview.code, preview.errors) == (0, [])
    assert plan.one(CONFIG_MAP, "s").inputs["data"] == {"a": "hush", "b": "open"}
    assert "hush" not in preview.text
    assert preview.resources[CONFIG_MAP, "s"]["inputs"]["data"] != {"a": "hush", "b": "open"}
