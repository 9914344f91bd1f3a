"""A bug of ours in one stack, job, snapshot or rule is named; the exit code is 2, and the others are checked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.places import ORGANISATION, ROOT
from training_platform.cli.main import app
from training_platform.config.reading.declaration import RULES, Draft, rule
from training_platform.views.whole_stack import Program

BROKEN = "stacks/Pulumi.prod-nlp.yaml"
VALUE = "a value of the file"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the organisation with an error in production that every command must still find."""
    for folder in ("stacks", "jobs"):
        shutil.copytree(ORGANISATION / folder, tmp_path / folder)
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    path = tmp_path / "stacks" / "Pulumi.prod.yaml"
    path.write_text(path.read_text().replace("boot_disk: {size_gb: 200}", "boot_disk: {size_gb: 700000}", 1))
    return tmp_path


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[..., bool]], None]:
    """Return a function that makes one of ours fail for the arguments that a test chooses."""

    def plant(name: str, where: Callable[..., bool]) -> None:
        module, _, function = name.rpartition(".")
        before = __import__(module, fromlist=[function])
        real = getattr(before, function)

        def failing(*arguments: Any, **named: Any) -> Any:
            if where(*arguments):
                raise KeyError(VALUE)
            return real(*arguments, **named)

        monkeypatch.setattr(name, failing)

    return plant


def run(root: Path, *command: str) -> Result:
    return CliRunner().invoke(app, [*command, "--root", str(root)])


def is_broken(stack: Any, *_: object) -> bool:
    return str(getattr(stack, "name", stack)).endswith(("prod-nlp", "prod-nlp.yaml"))


PARTS = {
    "reading": "training_platform.config.workspace.read_stack",
    "comparing with other files": "training_platform.config.workspace._across",
    "counting": "training_platform.checks.stacks.stack_demand",
    "planning": "training_platform.checks.stacks.stack_plan",
    "judging": "training_platform.checks.stacks.outcome_of",
}


@pytest.mark.parametrize("part", PARTS)
def test_a_stack_whose_part_fails_hides_no_other(part: str, root: Path, fails: Callable[..., None]) -> None:
    fails(PARTS[part], is_broken)

    done = run(root, "check", "--format", "json")

    assert done.exit_code == 2, done.output
    report = json.loads(done.stdout)
    assert any(BROKEN in sentence and "KeyError in " in sentence for sentence in report["failures"])
    assert VALUE not in done.output
    assert "boot-disk-size" in {finding["rule"] for finding in report["findings"]}


@pytest.fixture
def broken_rule() -> Iterator[str]:
    """Register a rule that fails at one stack."""

    @rule("sample-that-fails", ruleset="disks", source="here")
    def sample(program: Program) -> Iterator[Draft]:
        """Find nothing."""
        yield from ()
        if program.name == "prod-nlp":
            raise KeyError(VALUE)

    yield "sample-that-fails"
    del RULES["sample-that-fails"]


def test_a_rule_that_fails_is_named_and_hides_no_other(root: Path, broken_rule: str) -> None:
    (root / "stacks" / "exemptions.yaml").write_text(
        f'exemptions:\n- {{rule: {broken_rule}, stack: prod-nlp, path: "*", reason: no reason, owner: nobody, '
        'expires: "2026-12-31"}\n'
    )

    done = run(root, "check", "--format", "json")

    report = json.loads(done.stdout)
    assert done.exit_code == 2
    assert any(f"{BROKEN}: {broken_rule} did not check prod-nlp" in sentence for sentence in report["failures"])
    assert "boot-disk-size" in {finding["rule"] for finding in report["findings"]}
    assert broken_rule not in {finding["rule"] for finding in report["findings"]}


def test_a_job_whose_check_fails_hides_no_other(root: Path, fails: Callable[..., None]) -> None:
    broken = root / "jobs" / "vision" / "broken.yaml"
    other = root / "jobs" / "vision" / "other.yaml"
    for path in (broken, other):
        path.write_text("environment: nowhere\nimage: a:1\ngke: {cluster: a, flavor: b, nodes: 1}\n")
    fails("training_platform.parts.jobs.job_checks.check_job", lambda path, *_: path == broken)

    alone = run(root, "job", "check")
    whole = run(root, "check")

    for done in (alone, whole):
        assert done.exit_code == 2
        assert "vision/broken.yaml was not checked because of a bug in training-platform: KeyError" in done.output
        assert "jobs/vision/other.yaml:1:" in done.output


@pytest.mark.parametrize("command", [("quota", "plan"), ("quota", "show"), ("check",)], ids=" ".join)
def test_a_snapshot_whose_reading_fails_hides_no_other(
    command: tuple[str, ...], root: Path, fails: Callable[..., None]
) -> None:
    path = root / "stacks" / "quotas" / "example-train-prod.yaml"
    fails("training_platform.quota.snapshot.parse_snapshot", lambda project, *_: project == path.stem)

    done = run(root, *command)

    assert done.exit_code == 2
    assert f"stacks/quotas/{path.name} was not checked because of a bug in training-platform" in " ".join(
        done.output.split()
    )
    assert "example-train-dev" in done.output


@pytest.mark.parametrize("command", [("quota", "plan"), ("quota", "show")], ids=" ".join)
def test_a_stack_that_cannot_be_counted_hides_no_other(
    command: tuple[str, ...], root: Path, fails: Callable[..., None]
) -> None:
    fails("training_platform.quota.demand.stack_demand", is_broken)

    done = run(root, *command)

    assert done.exit_code == 2
    assert f"the demand of {BROKEN} was not checked" in " ".join(done.output.split())
    assert "example-train-dev" in done.output


@pytest.mark.parametrize(("arguments", "message"), [
    (["prod", "--kept"], "--kept needs --retired"),
    (["--base", "HEAD"], "--base needs ENVIRONMENT"),
    (["--retired"], "--retired needs ENVIRONMENT"),
])  # fmt: skip
def test_an_option_of_stacks_without_what_it_needs_is_refused(root: Path, arguments: list[str], message: str) -> None:
    done = run(root, "stacks", *arguments)

    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_no_order_of_deployment_leaves_out_a_stack_whose_reading_failed(root: Path, fails: Callable[..., None]) -> None:
    fails("training_platform.config.workspace.read_stack", is_broken)

    done = run(root, "stacks")

    assert done.exit_code == 2
    assert f"{BROKEN} was not checked because of a bug in training-platform" in done.output
