"""No value that can be a secret is in any output: a marker in each such input of every type, each format searched."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi_gcp
import pulumi_kubernetes
import pytest
from click.testing import CliRunner, Result

from tests.support.places import ORGANISATION, ROOT
from training_platform.checks.outcome import flat_resource
from training_platform.checks.output import FORMATS, render
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.cli.main import app
from training_platform.config.reading.clock import today
from training_platform.config.reading.secrets import Secrets, can_be_secret, shows
from training_platform.resources.stack_resource import StackResource
from training_platform.rules import evaluate, program, views_of_plan

MARKER = "Zx9-secret-of-nobody-4711"
"""Of no format that an input has; its first half is looked for, since messages cut long values."""
NUMBER = 8_417_263_559
DOCUMENTS = ROOT / "training_platform" / "rules" / "documents"
FILES = ("google", "kubernetes", "gke", "operators")
BY_HAND = {  # what programs write secrets into, whoever marks it
    ("stringData", "token"), ("data", "password"), ("spec", "containers", 0, "env", 0, "value"),
    ("spec", "containers", 0, "args", 0), ("spec", "containers", 0, "command", 1), ("binaryData", "key"),
    ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "env", 0, "value"), ("secretData",), ("privateKey",),
    ("masterAuth", "password"), ("template", "containers", 0, "envs", 0, "value"), ("sensitiveLabels", "authToken"),
    ("httpHeaders", "headers", 0, "value"), ("metadataStartupScript",), ("oauth2ClientSecret",),
}  # fmt: skip
NOT_HIDDEN = {
    ("spec", "containers", 0, "env", 0, "name"), ("spec", "volumes", 0, "secret", "secretName"), ("machineType",),
    ("spec", "automountServiceAccountToken"), ("spec", "containers", 0, "env", 0, "valueFrom", "secretKeyRef", "key"),
}  # fmt: skip


def shapes(name: str) -> Any:
    return json.loads((DOCUMENTS / f"{name}.json").read_text(encoding="utf-8"))


def secret_inputs(content: Any, number: int, keys: tuple[Any, ...] = (), seen: tuple[int, ...] = ()) -> Iterator[Any]:
    """Yield the paths of a document's inputs that can be secrets; a recursive shape is walked once."""
    if number in seen:
        return
    shape = content["shapes"][number]
    if shape["is"] == "block":
        for name, inner in shape["fields"].items():
            yield from secret_inputs(content, inner, (*keys, name), (*seen, number))
    elif shape["is"] in ("list", "map"):
        key = 0 if shape["is"] == "list" else "entry"
        yield from secret_inputs(content, shape["of"], (*keys, key), (*seen, number))
    if can_be_secret(keys):
        yield keys


def nested(keys: tuple[Any, ...], value: Any) -> Any:
    for key in reversed(keys):
        value = [value] if key == 0 else {key: value}
    return value


def merged(first: Any, second: Any) -> Any:
    if isinstance(first, dict) and isinstance(second, dict):
        return {**first, **{key: merged(first.get(key), value) for key, value in second.items()}}
    if isinstance(first, list) and isinstance(second, list):
        return [merged(first[0], second[0])]
    return second if first is None else first


def of_documents() -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name in FILES:
        content = shapes(name)
        for token, number in content["types"].items():
            for keys in dict.fromkeys(secret_inputs(content, number)):
                yield token, keys


def findings_text(token: str, inputs: Any) -> str:
    resource = StackResource(stack="dev", type=token, name="one", inputs=inputs)
    whole = program(views_of_plan([resource]), stack="dev", environment="dev", team=None, production=True)
    return "\n".join(f"{finding!r} {finding}" for finding in evaluate(whole))


def leaks(text: str) -> bool:
    return MARKER[:10] in text or str(NUMBER) in text.replace(",", "")


def test_the_inputs_that_the_sdks_mark_are_known_by_their_names() -> None:
    documented = {token for name in FILES for token in shapes(name)["types"]}
    marks = set()
    for package in (pulumi_gcp, pulumi_kubernetes):
        for path in Path(str(package.__file__)).parent.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "pulumi.Output.secret(" not in text:
                continue
            token = re.search(r"__init__\(\s*'([a-z]+:[^']+)'", text)
            if token and token[1] in documented:
                names = re.findall(r"pulumi\.Output\.secret\((\w+)\)", text)
                marks |= {(token[1], re.sub(r"_(\w)", lambda match: match[1].upper(), name)) for name in names}

    assert ("gcp:secretmanager/secretVersion:SecretVersion", "secretData") in marks
    assert ("kubernetes:core/v1:Secret", "stringData") in marks
    assert [mark for mark in sorted(marks) if not can_be_secret(mark[1:])] == []


@pytest.mark.parametrize("keys", sorted(BY_HAND, key=str), ids=str)
def test_what_programs_write_secrets_into_is_known(keys: tuple[Any, ...]) -> None:
    assert can_be_secret(keys) or "envs" in keys


@pytest.mark.parametrize("keys", sorted(NOT_HIDDEN, key=str), ids=str)
def test_names_and_references_are_shown(keys: tuple[Any, ...]) -> None:
    assert not can_be_secret(keys)


def test_no_finding_has_the_value_of_an_input_that_can_be_secret() -> None:
    rows = list(of_documents())
    inputs: dict[tuple[str, int], Any] = {}  # all such inputs of a type at once, of each kind of value
    for token, keys in rows:
        for kind, value in enumerate((MARKER, NUMBER, [MARKER], {"a": NUMBER}, [{"a": MARKER}])):
            inputs[token, kind] = merged(inputs.get((token, kind)), nested(keys, value))

    wrong = [token for (token, _), secret in inputs.items() if leaks(findings_text(token, secret))]

    assert len(rows) > 300
    assert wrong == []


def test_no_finding_has_the_value_of_a_block_that_holds_a_secret() -> None:
    secret = {"containers": [{"env": [{"name": "A", "value": MARKER}]}]}
    for inputs in ({"spec": [secret]}, {"spec": {"containers": {"env": MARKER}}}, {"spec": {"volumes": [[secret]]}}):
        assert not leaks(findings_text("kubernetes:core/v1:Pod", inputs))


def test_a_secret_of_six_characters_is_found_and_a_shorter_one_is_a_word() -> None:
    assert shows("is hunter, not a date", ["hunter"])
    assert not shows("is a date", ["date"])


@pytest.mark.parametrize(
    "text", ["is 1837577.976", "is 1,837,577.976", "is 1.83758e+06", "is 1,837,578", "is 1,837,577"]
)
def test_a_float_is_known_by_all_of_its_digits_and_rounded(text: str) -> None:
    secrets = Secrets()
    secrets.add({"env": [{"name": "A", "value": 1837577.976}]})

    assert shows(text, [1837577.976])
    assert secrets.shown_in(text)


def test_a_part_of_a_secret_is_known_and_a_word_is_none() -> None:
    assert shows(f"is {MARKER[:16]}...", [MARKER])
    assert shows("is 8,417,263,559", [NUMBER])
    assert not shows("is true", ["true", "is", True, None])


def test_a_comparison_shows_that_a_secret_changed_but_not_its_values() -> None:
    before, after = (
        flat_resource(StackResource(
            stack="dev", type="kubernetes:core/v1:Secret", name="one",
            inputs={"stringData": {"a": value}},
        ))
        for value in (MARKER, f"{MARKER}-2")
    )  # fmt: skip

    assert before.inputs != after.inputs
    assert not leaks(repr((before, after)))
    assert flat_resource(replace(StackResource(stack="", type="a", name="b", inputs={"type": "x"}))).inputs == {
        "type": "x"
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("stacks", "jobs"):
        shutil.copytree(ORGANISATION / folder, tmp_path / folder)
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    return tmp_path


GPU = "gke: {cluster: us-central1, flavor: h100-reservation, nodes: 1}\n"
JOBS = {
    "a token as a variable": f"env: {{HF_TOKEN: {MARKER}}}",
    "a number as a variable": f"env: {{ANY: {NUMBER}}}",
    "a list as an argument": f"args: [[{MARKER}]]",
    "a text in the place of the variables": f"env: {MARKER}",
}


@pytest.mark.parametrize("line", JOBS.values(), ids=JOBS)
def test_no_value_of_a_jobs_variables_and_arguments_is_in_any_output(line: str, root: Path) -> None:
    path = root / "jobs" / "vision" / "train.yaml"
    path.write_text(f"environment: prod\nimage: a:1\n{line}\n{GPU}")
    position = f"{path}:3"

    results = [
        run(root, "job", "check", str(path)), run(root, "job", "check", str(path), "--format", "json"),
        run(root, "job", "render", str(path)), run(root, "job", "cost", str(path)), run(root, "explain", position),
    ]  # fmt: skip
    report = run_check(root, CheckOptions(today=today(root, None)))
    texts = [done.output for done in results] + [render(report, form, links="") for form in FORMATS]

    assert [done.exit_code for done in results[:3]] == [1, 1, 1]
    assert all("train.yaml" in text for text in texts[:2])
    assert [text for text in texts if leaks(text)] == []


def run(root: Path, *command: str) -> Result:
    return CliRunner().invoke(app, [*command, "--root", str(root)])


OWN = """
from training_platform.resources.plan import Resource


def add_resources(own):
    if own.team is None and own.environment.production:
        inputs = {{"secret": "projects/example/secrets/token", "secret_data": {0!r}}}
        api = own.enable_api("secretmanager.googleapis.com")
        kind = "gcp:secretmanager/secretVersion:SecretVersion"
        own.plan.add(Resource(type=kind, name="token", inputs=inputs, after=[api]))
    if own.team is not None and own.team.name == "vision":
        inputs = {{"project": own.scope.project, "name": "example-other", "location": "EU", "storage_class": {0!r}}}
        own.plan.add(Resource(type="gcp:storage/bucket:Bucket", name="other", inputs=inputs))
"""


def test_no_finding_has_the_secret_of_another_stacks_resource(root: Path) -> None:
    (root / "own_resources.py").write_text(OWN.format("us-nowhere1"))
    report = run_check(root, CheckOptions(today=today(root, None)))

    texts = [render(report, form, links="") for form in FORMATS]

    refused = [finding for finding in report.all_findings() if "Bucket other" in str(finding.resource)]
    assert "a value that may be secret is invalid: document-format" in {finding.message for finding in refused}
    assert [text for text in texts if "us-nowhere1" in text] == []


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("stacks/Pulumi.dev.yaml", ("check",)),
        ("stacks/Pulumi.dev.yaml", ("stacks",)),
        ("stacks/quotas/example-train-prod.yaml", ("quota", "plan")),
        ("stacks/exemptions.yaml", ("check",)),
        ("jobs/vision/finetune.yaml", ("job", "check")),
        ("jobs/vision/finetune.yaml", ("job", "render", "jobs/vision/finetune.yaml")),
    ],
)
def test_a_link_that_leads_out_of_the_repository_is_refused_by_name(
    file: str, command: tuple[str, ...], root: Path, tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    outside = tmp_path_factory.mktemp("outside") / "secret"
    outside.write_text(f"{MARKER}: [")
    (root / file).unlink(missing_ok=True)
    (root / file).symlink_to(outside)
    monkeypatch.chdir(root)

    done = run(root, *command)

    assert done.exit_code == 2
    assert f"{file}: is a symbolic link to a place outside the repository" in " ".join(done.output.split())
    assert not leaks(done.output)


def test_a_link_inside_the_repository_is_read(root: Path) -> None:
    path = root / "stacks" / "Pulumi.dev.yaml"
    path.rename(root / "dev.yaml")
    path.symlink_to(root / "dev.yaml")

    assert run(root, "check").exit_code == 0
