"""Errors that ``check`` and the real engine find before a deployment, and the pack on a program in plain pulumi-gcp."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.engine.workspace import MakeWorkspace, Preview, Workspace
from tests.support.places import PACK_ENVIRONMENT, ROOT
from training_platform.checks.report import Report
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.reading.clock import today
from training_platform.policy.build import build

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
    """The check and the preview of a stack with errors in its file; ``lines`` has the line of each error."""

    lines: list[int]
    report: Report
    preview: Preview

    @property
    def errors(self) -> set[Error]:
        """The errors that check found; one without a place is on line 0."""
        errors = [finding for finding in self.report.all_findings() if finding.severity == "error"]
        return {Error(finding.rule, finding.position.line if finding.position else 0) for finding in errors}

    @property
    def violations(self) -> set[Error]:
        """The mandatory violations; every one names its rule and its place, or this fails."""
        messages = self.preview.violations("mandatory")
        return {Error(_RULE.findall(message)[0], int(_PLACE.findall(message)[0])) for message in messages}


def judge(make: MakeWorkspace, name: str, *planted: tuple[str, str]) -> Judged:
    workspace = make(name)
    lines = [workspace.plant(STACK, old, new) for old, new in planted]
    report = run_check(workspace.root, CheckOptions(today=today(workspace.root)), selected=[STACK])
    workspace.init(STACK)
    return Judged(lines, report, workspace.preview(STACK, "--policy-pack", "policies"))


def test_check_and_the_policy_pack_find_the_same_errors_at_their_lines(workspace: MakeWorkspace) -> None:
    judged = judge(workspace, "planted", *((old, new) for old, new, _ in PLANTED.values()))

    planted = {Error(rule, line) for (_, _, rule), line in zip(PLANTED.values(), judged.lines, strict=True)}
    assert planted <= judged.errors
    assert judged.violations == judged.errors
    assert judged.preview.code != 0


def test_what_the_model_rejects_ends_a_preview_with_the_words_of_check(workspace: MakeWorkspace) -> None:
    judged = judge(workspace, "misspelt", MISSPELT)

    assert judged.report.exit_code() == 1
    assert judged.preview.code != 0
    assert judged.preview.resources == {}
    assert "Traceback" not in judged.preview.text
    findings = [str(finding) for finding in judged.report.all_findings()]
    assert len(findings) == 1
    assert findings[0].startswith(f"{FILE}:{judged.lines[0]}:")
    assert findings[0].splitlines()[0] in judged.preview.text


EXAMPLE_STACK = "dev"
PROJECT_FILE = """\
name: plain-gcp
stackConfigDir: stacks
runtime: {name: python, options: {toolchain: pip, virtualenv: .venv}}
"""
FOUND = ["boot-disk-type", "labels", "labels", "quota-exceeded", "tpu-topology"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A project with the example's program and nothing of ours, and beside it the folder to publish."""
    program = (ROOT / "examples" / "plain_gcp" / "__main__.py").read_text(encoding="utf-8")
    workspace = Workspace(tmp_path_factory.mktemp("plain"), program=program)
    (workspace.root / "Pulumi.yaml").write_text(PROJECT_FILE, encoding="utf-8")
    pack = workspace.root / "published"
    build(pack)
    (pack / "PulumiPolicy.yaml").write_text(f"runtime: {{name: python, options: {{virtualenv: {PACK_ENVIRONMENT}}}}}\n")
    site = workspace.root / "site"
    for wheel in pack.glob("*.whl"):
        shutil.unpack_archive(wheel, site, "zip")
    workspace.environment["PYTHONPATH"] = str(site)
    workspace.init(EXAMPLE_STACK)
    return workspace


def preview(place: Workspace, pack: Path, **config: Any) -> Preview:
    limits = ROOT / "examples" / "plain_gcp" / "quotas" / "example-plain.yaml"
    settings = {"labels": {"environment": "dev", "team": "vision"}, "quota": {"snapshot": str(limits)}, **config}
    file = place.root / "policy-config.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    return place.preview(EXAMPLE_STACK, "--policy-pack", str(pack), "--policy-pack-config", str(file))


def rules(seen: Preview, level: str) -> list[str]:
    return sorted(violation.rpartition("Rule: ")[2].partition(".")[0] for violation in seen.violations(level))


@pytest.mark.parametrize("pack", ["the checkout's", "the published"])
def test_the_pack_finds_the_examples_mistakes(pack: str, place: Workspace) -> None:
    seen = preview(place, ROOT / "policies" if pack == "the checkout's" else place.root / "published")

    assert seen.code != 0
    assert rules(seen, "mandatory") == FOUND
    assert any("other stacks are not counted" in violation for violation in seen.violations("advisory"))


def test_what_has_one_right_answer_is_put_right_where_a_config_says_so(place: Workspace) -> None:
    labels = {"environment": "dev", "team": "vision", "enforcementLevel": "remediate"}

    seen = preview(place, ROOT / "policies", labels=labels, disks="remediate")

    assert rules(seen, "mandatory") == ["quota-exceeded", "tpu-topology"]
    bucket = seen.resources["gcp:storage/bucket:Bucket", "data"]["inputs"]
    assert (bucket["labels"]["environment"], bucket["labels"]["team"]) == ("dev", "vision")
