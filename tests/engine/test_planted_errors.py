"""An error in a stack file is found at its line by ``check``, and by the real engine before anything is deployed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from tests.engine.workspace import MakeWorkspace, Preview
from training_platform.checks.report import Report
from training_platform.checks.run import run_check
from training_platform.checks.stacks import Options
from training_platform.config.reading.clock import today

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

STACK = "prod"
FILE = f"stacks/Pulumi.{STACK}.yaml"
PLANTED = {  # old text, new text, the rule that it breaks
    "over quota": (
        "max_nodes: 8\n            boot_disk: {size_gb: 200}\n          h100-mega",
        "max_nodes: 10\n            boot_disk: {size_gb: 200}\n          h100-mega",
        "quota-exceeded",
    ),
    "a boot disk of 700,000 GB": (
        "boot_disk: {type: pd-ssd, size_gb: 200}",
        "boot_disk: {type: pd-ssd, size_gb: 700000}",
        "boot-disk-size",
    ),
    "an illegal topology": ("topology: 4x8", "topology: 4x5", "tpu-topology"),
}
MISSPELT = ("machine_type: a3-megagpu-8g", "machine_type: a3-megapu-8g")
_PLACE = re.compile(rf"^{FILE}:(\d+):\d+: ", re.MULTILINE)
_RULE = re.compile(r"^  Rule: ([a-z-]+)\.", re.MULTILINE)


class Error(NamedTuple):
    """What a finding is known by: which rule found it, and on which line of the stack file."""

    rule: str
    line: int


@dataclass(frozen=True)
class Judged:
    """What was said of a stack with errors in its file; ``lines`` has the line of each."""

    lines: list[int]
    report: Report
    preview: Preview

    @property
    def errors(self) -> set[Error]:
        """The errors that check found; one without a place is on line 0."""
        found = [each for each in self.report.all_findings() if each.severity == "error"]
        return {Error(each.rule, each.position.line if each.position else 0) for each in found}

    @property
    def violations(self) -> set[Error]:
        """The mandatory violations; every one names its rule and its place, or this fails."""
        found = self.preview.violations("mandatory")
        return {Error(_RULE.findall(message)[0], int(_PLACE.findall(message)[0])) for message in found}


def judge(make: MakeWorkspace, name: str, *planted: tuple[str, str]) -> Judged:
    workspace = make(name)
    lines = [workspace.plant(STACK, old, new) for old, new in planted]
    report = run_check(workspace.root, Options(today=today(workspace.root)), selected=[STACK])
    workspace.init(STACK)
    return Judged(lines, report, workspace.preview(STACK, "--policy-pack", "policies"))


@pytest.fixture(scope="module")
def judged(workspace: MakeWorkspace) -> Judged:
    """The planted errors all at once, since a preview takes long and none of them hides another."""
    return judge(workspace, "planted", *((old, new) for old, new, _ in PLANTED.values()))


@pytest.mark.parametrize("error", PLANTED)
def test_check_finds_a_planted_error_at_its_line(error: str, judged: Judged) -> None:
    line = judged.lines[list(PLANTED).index(error)]

    assert judged.report.exit_code() == 1
    assert Error(PLANTED[error][2], line) in judged.errors


@pytest.mark.parametrize("error", PLANTED)
def test_the_policy_pack_finds_a_planted_error_at_its_line(error: str, judged: Judged) -> None:
    line = judged.lines[list(PLANTED).index(error)]

    assert judged.preview.code != 0
    assert Error(PLANTED[error][2], line) in judged.violations


def test_check_and_the_policy_pack_find_the_same_errors(judged: Judged) -> None:
    assert judged.violations == judged.errors


def test_what_the_model_rejects_ends_a_preview_with_the_words_of_check(workspace: MakeWorkspace) -> None:
    judged = judge(workspace, "misspelt", MISSPELT)

    assert judged.report.exit_code() == 1
    assert judged.preview.code != 0
    assert judged.preview.resources == {}
    assert "Traceback" not in judged.preview.text
    said = [str(each) for each in judged.report.all_findings()]
    assert len(said) == 1
    assert said[0].startswith(f"{FILE}:{judged.lines[0]}:")
    assert said[0].splitlines()[0] in judged.preview.text
