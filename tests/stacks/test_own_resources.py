"""The example of docs/own-resources.md: in ``check``'s plan, in what the program registers, and nowhere without it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pulumi
import pytest
from click.testing import CliRunner, Result

from local_google_cloud.kubernetes import plain_struct
from tests.support.places import ORGANISATION, ROOT
from tests.support.recording_monitor import run_program
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace
from training_platform.resources import own_worker
from training_platform.resources.gcp import declares
from training_platform.resources.plan import IN_OWN_RESOURCES, Plan, PlanError, Resource
from training_platform.resources.stack_resource import ResourceKey

if TYPE_CHECKING:
    from pulumi_gcp import pubsub

    # mypy, which also checks this file, reports an ignored error that it does not find.
    topic = declares("gcp:pubsub/topic:Topic", lambda: pubsub.Topic)
    topic("events", name="events", labels={"team": "vision"})
    topic("events", lables={"team": "vision"})  # type: ignore[call-arg]
    topic("events", message_storage_policy={"regions": 1})  # type: ignore[arg-type]

TOPIC = ("gcp:pubsub/topic:Topic", "events")
BUCKET = ("gcp:storage/bucket:Bucket", "reports")
SERVICE = "gcp:projects/service:Service"
MEMBER = "gcp:projects/iAMMember:IAMMember"


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    """Return a repository with the page's ``own_resources.py``."""
    page = (ROOT / "docs" / "own-resources.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    shutil.copy(ROOT / "__main__.py", tmp_path)
    (tmp_path / "own_resources.py").write_text(example, encoding="utf-8")
    return tmp_path


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--root", str(root)])


def registered(root: Path, stack: str) -> dict[ResourceKey, Registration]:
    """Return the program's resources: their inputs, and the types and names of their dependencies."""
    monitor = run_program(root, read_workspace(root).stacks[stack])
    return {
        (request.type, request.name): Registration(
            plain_struct(request.object), {monitor.key_of(urn) for urn in request.dependencies}
        )
        for request in monitor.registrations
    }


class Registration(NamedTuple):
    """A resource as the engine receives it."""

    inputs: dict[str, Any]
    after: set[ResourceKey]


@pytest.mark.parametrize(("stack", "key"), [("prod-vision", TOPIC), ("prod", BUCKET)])
def test_the_pages_resource_is_planned_and_registered_and_waits_for_its_api(
    root: Path, stack: str, key: ResourceKey
) -> None:
    (planned,) = json.loads(run(root, "plan", stack, "--format", "json").stdout)["plans"]
    resources = {(resource["type"], resource["name"]): resource for resource in planned["resources"]}
    registration = registered(root, stack)[key]

    assert registration.inputs == resources[key]["inputs"]
    assert SERVICE in {kind for kind, _ in registration.after}


def change(root: Path, old: str, new: str) -> None:
    """Change the page's example, before anything reads it."""
    file = root / "own_resources.py"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_the_pages_resources_are_clean(root: Path) -> None:
    assert run(root, "check").exit_code == 0


def test_a_rule_judges_an_own_resource(root: Path) -> None:
    change(root, "labels=scope.labels,\n            uniform", "uniform")

    done = run(root, "check", "prod")

    assert done.exit_code == 1
    assert "reports" in done.output
    assert "[labels]" in done.output


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (", after=[api]", "", "events (gcp:pubsub/topic:Topic) has to depend on its API: after=[own.enable_api(...)]"),
        ("def add_resources", "def add", "own_resources.py:1:1: has no function add_resources"),
        (
            "scope = own.scope",
            "scope = own.scop",
            "own_resources.py:16:1: AttributeError: 'OwnResources' object has no attribute 'scop'",
        ),
        (
            "from training_platform.resources.plan",
            "from nowhere",
            "own_resources.py:4:1: ModuleNotFoundError: No module",
        ),
        ("    if own.team is", "    if own.team is (", "own_resources.py:17:1: SyntaxError: "),
        (
            "gcp:pubsub/topic:Topic",
            "aws:sns/topic:Topic",
            "own_resources.py:20:1: events (aws:sns/topic:Topic) belongs to a",
        ),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(root: Path, old: str, new: str, sentence: str) -> None:
    change(root, old, new)

    done = run(root, "check", "prod-vision")

    assert done.exit_code == 1
    assert sentence in " ".join(done.output.split())


def test_the_text_of_an_error_in_the_file_is_shown_on_request_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    change(root, "scope = own.scope", "raise ValueError('hunter22')")

    shown = run(root, "check", "prod-vision").output
    monkeypatch.setenv("TRAINING_PLATFORM_TRACEBACK", "1")
    on_request = run(root, "check", "prod-vision").output + capfd.readouterr().err

    assert (
        "own_resources.py:16:1: ValueError. The message may contain a secret: TRAINING_PLATFORM_TRACEBACK=1 shows it"
        in shown
    )
    assert "hunter22" not in shown
    assert "hunter22" in on_request


def verdict(done: Result) -> str:
    """Return the last line of a check but for the hint."""
    return next(line for line in reversed(done.output.splitlines()) if not line.startswith("More about it"))


def test_one_line_is_one_finding_of_all_stacks_and_an_exemption_is_of_one(root: Path) -> None:
    change(root, "labels=scope.labels)", "labels={})")
    teams = [name for name, stack in read_workspace(root).stacks.items() if stack.team]
    exemption = {
        "rule": "labels", "stack": teams[0], "resource": "events", "reason": "tried", "owner": "a@example.com",
        "expires": "2027-01-31",
    }  # fmt: skip

    before = [line for line in run(root, "check").output.splitlines() if line.startswith("error")]
    (root / "stacks" / "exemptions.yaml").write_text(json.dumps({"exemptions": [exemption]}), encoding="utf-8")
    after = [line for line in run(root, "check").output.splitlines() if line.startswith("error")]

    assert before
    assert all(line.startswith("error own_resources.py:20:1: labels: label ") for line in before)
    assert f"label team is missing on Topic events (in {len(teams)} stacks: " in "".join(before)
    assert f"(in {len(teams) - 1} stacks: " in "".join(after)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("gcp:pubsub/topic:Topic", "gcp:pubsub/topics:Topic", "pulumi-gcp 10.2.0 has no type gcp:pubsub/topics:Topic"),
        ("labels=scope.labels)", "labels=scope.labels, nonsense=1)", "has no nonsense of gcp:pubsub/topic"),
        (
            "labels=scope.labels)",
            "labels=scope.labels, message_retention_duration=86400)",
            "'86400', which has",
        ),
    ],
)
def test_names_and_kinds_of_inputs_are_checked_at_the_line_that_gives_them(
    root: Path, old: str, new: str, sentence: str
) -> None:
    change(root, old, new)

    (error,) = [line for line in run(root, "check").output.splitlines() if line.startswith("error")]

    assert error.startswith("error own_resources.py:20:1: ")
    assert sentence in error
    assert "events" in error or "topics" in error


def with_accident(root: Path, code: str) -> None:
    """Write own resources that do something to the process that they run in."""
    imports = "import os, sys, threading\n\nNODE = ('parent', 'inputs', 'options')\n\n\n"
    program = f"{imports}def add_resources(own):\n    {code}\n"
    (root / "own_resources.py").write_text(program, encoding="utf-8")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "os._exit(0)",
            "own_resources.py ends the planning process for stack dev, so the plan of the stack is not known.",
        ),
        (
            "sys.modules['__main__'].document_of_plan = lambda _: dict(stack=0, nodes=[dict.fromkeys(NODE)])",
            "own_resources.py changes the format of plans: 'NoneType' object has no attribute 'items'.",
        ),
        (
            "while True: pass",
            "own_resources.py takes more than 2 s for stack dev, so the plan of the stack is not known.",
        ),
    ],
)
def test_own_code_that_returns_no_plan_ends_a_check_with_2(
    root: Path, code: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_worker, "_SECONDS", 2 if "while" in code else 60)
    with_accident(root, code)

    done = run(root, "check", "prod")

    assert done.exit_code == 2
    assert sentence in done.output


@pytest.mark.parametrize(
    "code",
    [
        "from training_platform.config.reading.declaration import RULES; RULES.clear()",
        "threading.Thread(target=threading.Event().wait).start()",
    ],
)
def test_own_code_changes_no_verdict_by_accident(root: Path, code: str, tmp_path: Path) -> None:
    with_accident(root, "pass")
    file = root / "stacks" / "Pulumi.prod-vision.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("gib: ", "gib: 99"), encoding="utf-8")
    expected = run(root, "check", "--format", "json")
    with_accident(root, code)

    done = run(root, "check", "--format", "json")

    assert expected.exit_code == 1
    assert done.stdout == expected.stdout


def test_a_file_that_adds_nothing_is_not_run(root: Path) -> None:
    program = 'import os\n\nos._exit(0)\n\n\ndef add_resources(own):\n    """Add nothing."""\n'
    (root / "own_resources.py").write_text(program, encoding="utf-8")

    assert run(root, "check", "prod").exit_code == 0


def test_an_input_that_is_no_json_is_an_error_at_its_line(root: Path) -> None:
    change(root, "labels=scope.labels)", "labels={1, 2})")

    done = run(root, "check", "prod-vision")

    assert done.exit_code == 1
    assert "events has an input of type set; inputs are strings, numbers, booleans" in " ".join(done.output.split())


def test_a_type_without_a_document_is_counted_as_not_judged(root: Path) -> None:
    change(root, "gcp:pubsub/topic:Topic", "gcp:pubsub/liteTopic:LiteTopic")
    change(root, ", labels=scope.labels)", ")")
    teams = sum(stack.team is not None for stack in read_workspace(root).stacks.values())

    done = run(root, "check")

    assert done.exit_code == 0
    assert verdict(done).endswith(f"not judged: {teams} resources of gcp:pubsub beyond names and kinds of inputs")


ADDED = """
from training_platform.resources.plan import Resource


def add_resources(own):
    if own.team is None:
        api = own.enable_api("storage.googleapis.com")
        bucket = Resource(type="gcp:storage/bucket:Bucket", name="reports", inputs={"location": "us-central1"})
        own.plan.add(bucket, after=[api])
        own.plan.add(RESOURCE, after=[api])
"""


@pytest.mark.parametrize(
    ("resource", "sentence"),
    [
        (
            'Resource(type="gcp:storage/bucket:Bucket", name="logs", inputs={"locaton": "us-central1", "x": 1})',
            "logs: gcp:storage/bucket:Bucket has no input locaton. Nearest: location.\nlogs: .* has no input x",
        ),
        (
            'Resource(type="gcp:storage/buckett:Buckett", name="logs", inputs={})',
            "logs: gcp:storage/buckett:Buckett is not a type of pulumi-gcp",
        ),
        (
            'Resource(type="gcp:storage/folder:Folder", name="logs", inputs={"bucket": bucket.output("nam")})',
            "logs: gcp:storage/bucket:Bucket has no output nam. Nearest: name.",
        ),
    ],
)
def test_what_no_class_of_the_sdk_can_register_ends_up_before_anything_is_registered(
    root: Path, resource: str, sentence: str
) -> None:
    (root / "own_resources.py").write_text(ADDED.replace("RESOURCE", resource), encoding="utf-8")

    with pytest.raises(pulumi.RunError, match=f"^Nothing was registered:\n{sentence}"):
        registered(root, "prod")


def test_an_unknown_type_that_another_resource_refers_to_is_one_sentence(root: Path) -> None:
    lost = 'Resource(type="gcp:storage/buckett:Buckett", name="lost", inputs={})'
    folder = 'Resource(type="gcp:storage/folder:Folder", name="logs", inputs={"bucket": lost.output("name")})'
    both = f"lost = own.plan.add({lost}, after=[api])\n        own.plan.add({folder}"
    text = ADDED.replace("own.plan.add(RESOURCE", both)
    (root / "own_resources.py").write_text(text, encoding="utf-8")

    with pytest.raises(pulumi.RunError) as raised:
        registered(root, "prod")
    assert [line.partition(" ")[0] for line in str(raised.value).splitlines()] == ["Nothing", "lost:"]


PLAIN = """
import pulumi
import pulumi_gcp

pulumi_gcp.storage.Bucket("plain", location="us-central1")
"""


def test_plain_code_after_the_plan_waits_for_its_api_and_for_the_agents_and_check_does_not_see_it(root: Path) -> None:
    (root / "__main__.py").write_text((root / "__main__.py").read_text() + PLAIN, encoding="utf-8")

    after = registered(root, "prod")["gcp:storage/bucket:Bucket", "plain"].after

    assert {name for kind, name in after if kind == SERVICE} >= {"apis-storage"}
    assert MEMBER in {kind for kind, _ in after}
    assert "plain" not in run(root, "plan", "prod").stdout


def test_a_component_of_another_package_waits_for_every_api_and_for_the_agents(root: Path) -> None:
    remote = 'pulumi.ComponentResource("theirs:index:Topics", "theirs", {}, remote=True)\n'
    (root / "__main__.py").write_text(f"{(root / '__main__.py').read_text()}\n{remote}", encoding="utf-8")

    after = registered(root, "prod")["theirs:index:Topics", "theirs"].after

    services = {key for key in registered(root, "prod") if key[0] == SERVICE}
    assert services <= after
    assert MEMBER in {kind for kind, _ in after}


def test_plain_code_without_its_api_says_where_to_enable_it(root: Path) -> None:
    instance = 'from pulumi_gcp import workbench\n\nworkbench.Instance("plain", location="us-central1-a")\n'
    (root / "__main__.py").write_text((root / "__main__.py").read_text() + instance, encoding="utf-8")

    with pytest.raises(
        pulumi.RunError, match=r'plain .* needs notebooks.* own\.enable_api\("notebooks\.googleapis\.com"\)'
    ):
        registered(root, "prod")


def test_inputs_that_contain_themselves_are_refused_before_they_are_walked() -> None:
    labels: dict[str, Any] = {}
    labels["labels"] = [labels]
    token = IN_OWN_RESOURCES.set(True)

    try:
        with pytest.raises(PlanError, match="the inputs of x contain themselves"):
            Plan("own").add(Resource(type="gcp:pubsub/topic:Topic", name="x", inputs={"labels": labels}))
    finally:
        IN_OWN_RESOURCES.reset(token)
