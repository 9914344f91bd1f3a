"""What no team was promised: how much it is, whose it becomes, and which plans follow."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from tests.places import ROOT
from training_platform.checks.comparison.compare import affected
from training_platform.checks.planning.cache import stack_digest
from training_platform.checks.planning.outcome import PlanningError
from training_platform.checks.planning.planner import plan_order
from training_platform.checks.planning.recorder import plan_stacks
from training_platform.checks.reports.json_report import json_report
from training_platform.checks.reports.quota import print_overview
from training_platform.checks.reports.sections import shares_of
from training_platform.checks.reports.text import summary
from training_platform.checks.stacks import Options, check_stacks
from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import ROOT_COHORT
from training_platform.config.model.stack import parse_stack
from training_platform.config.names import Locator
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check, lending, read_workspace, unpromised
from training_platform.quota.ledger import capacity_ledger
from training_platform.quota.overview import may_borrow, read_overview
from training_platform.resources.model import planned_of_model
from training_platform.resources.register import COHORT

Json = dict[str, Any]
TPU, GPU = "tpu-v5e-2x4-reservation", "h100-reservation"
POOLS: Json = {
    "h100": {"machine_type": "a3-highgpu-8g", "capacity": "reservation", "reservation": "h100", "max_nodes": 8},
    "v5e": {"machine_type": "ct5lp-hightpu-4t", "topology": "2x4", "slices": 4, "capacity": "reservation",
            "reservation": "v5e"},
}  # fmt: skip


def files(teams: Json, **environment: Any) -> dict[str, str]:
    cluster = {
        "location": "us-central1-a",
        "subnet": {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"},
        "node_pools": POOLS,
    }
    lab = {"project": "example-lab", "production": False, "clusters": {"c": cluster}, **environment}
    sections: Json = {"lab": {"training-platform:environment": lab}}
    for name, shares in teams.items():
        given = {flavor: {"nominal_quota": quota} for flavor, quota in shares.items()}
        team = {"environment": "lab", "name": name, "members": ["group:a@example.com"], "shares": {"c": given}}
        sections[f"lab-{name}"] = {"training-platform:team": team}
    return {name: yaml.safe_dump({"config": section}) for name, section in sections.items()}


def workspace(teams: Json, **environment: Any) -> Workspace:
    texts = files(teams, **environment)
    stacks = {name: parse_stack(name, parse_source(text, f"stacks/Pulumi.{name}.yaml")) for name, text in texts.items()}
    return cross_check(Workspace(Path(), stacks))


def root_quotas(environment: Environment) -> dict[str, int]:
    shares = environment.cohorts[ROOT_COHORT].shares.get("c", {})
    return {flavor: share.nominal_quota for flavor, share in shares.items()}


def test_what_neither_teams_nor_cohorts_were_promised_is_counted_in_whole_slices() -> None:
    cohorts = {"research": {"shares": {"c": {GPU: {"nominal_quota": 8}}}}}
    found = workspace({"vision": {GPU: 24, TPU: 10}, "nlp": {GPU: 16}}, cohorts=cohorts)

    # 64 GPUs less 24, 16 and 8; 32 chips less 10 are 22, of which two slices of 8 are whole.
    left = {GPU: 64 - 24 - 16 - 8, TPU: 16}
    assert unpromised(found, "lab") == {"c": left}
    assert {line.flavor.name: line.unpromised for line in capacity_ledger(found)} == left


@pytest.mark.parametrize("promised", [64, 72])
def test_where_all_or_more_was_promised_nothing_is_left(promised: int) -> None:
    found = workspace({"vision": {GPU: promised, TPU: 32}})

    assert unpromised(found, "lab") == {}
    assert {line.unpromised for line in capacity_ledger(found)} == {0}


def test_the_switch_gives_it_to_the_cohort_over_all_others_beside_quota_of_its_own() -> None:
    own = {ROOT_COHORT: {"weight": 3, "shares": {"c": {GPU: {"nominal_quota": 8, "lending_limit": 8}}}}}
    found = lending(workspace({"vision": {GPU: 24, TPU: 32}}, lend_unpromised=True, cohorts=own), "lab")

    assert root_quotas(found) == {GPU: 64 - 24}
    assert found.cohorts[ROOT_COHORT].weight == 3


def test_without_the_switch_the_environment_stays_as_its_file_says() -> None:
    found = workspace({"vision": {GPU: 24}})

    assert lending(found, "lab") is found.stacks["lab"].environment


def test_the_cohort_is_planned_with_it_and_its_findings_land_on_the_switch() -> None:
    found = workspace({"vision": {GPU: 24, TPU: 32}}, lend_unpromised=True)
    (cohort,) = [each for each in planned_of_model(found.stacks["lab"], found) if each.type == COHORT]

    (group,) = cohort.inputs["spec"]["resourceGroups"]
    assert group["flavors"] == [{"name": GPU, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "40"}]}]
    assert Locator(found.stacks["lab"].section).path(cohort.name) == ("lend_unpromised",)  # type: ignore[arg-type]
    idle = workspace({"vision": {GPU: 24, TPU: 32}})
    assert [each for each in planned_of_model(idle.stacks["lab"], idle) if each.type == COHORT] == []


@pytest.mark.parametrize("lends", [True, False])
def test_the_ledger_says_whether_it_is_lent_or_idle(lends: bool) -> None:
    found = workspace({"vision": {GPU: 24}, "nlp": {GPU: 0}}, lend_unpromised=lends)
    (line,) = [each for each in capacity_ledger(found) if each.flavor.name == GPU]
    nlp = next(share for share in line.shares if share.holder.label == "nlp")

    assert (line.unpromised, line.lent) == (40, 40 if lends else 0)
    assert may_borrow(line, nlp, found) == 24 + (40 if lends else 0)
    assert line.headroom == 40  # what is lent can still be promised


def test_a_changed_team_changes_the_environment_that_lends_and_no_other() -> None:
    changed = ["stacks/Pulumi.lab-vision.yaml"]
    before, after = ({"vision": {GPU: quota}} for quota in (24, 16))
    lends = affected(changed, workspace(after, lend_unpromised=True), workspace(before, lend_unpromised=True))
    idle = affected(changed, workspace(after), workspace(before))

    assert lends.head == lends.base == ("lab", "lab-vision")
    assert idle.head == ("lab-vision",)


@pytest.mark.parametrize(("lends", "same"), [(True, False), (False, True)])
def test_a_kept_plan_of_an_environment_that_lends_ends_with_a_changed_team(
    lends: bool, same: bool, tmp_path: Path
) -> None:
    digests = []
    (tmp_path / "stacks").mkdir()
    for quota in (24, 16):
        for name, text in files({"vision": {GPU: quota}}, lend_unpromised=lends).items():
            (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
        stack = workspace({}, lend_unpromised=lends).stacks["lab"]
        digests.append(stack_digest("program", tmp_path, stack, inputs=True))

    assert (digests[0] == digests[1]) is same


@pytest.mark.parametrize(("lends", "planned"), [(True, []), (False, ["lab", "lab-nlp"])])
def test_with_a_rejected_team_nobody_knows_what_is_left_to_lend(lends: bool, planned: list[str]) -> None:
    found = workspace({"vision": {GPU: -1}, "nlp": {GPU: 8}}, lend_unpromised=lends)

    assert [stack.name for stack in plan_order(found, found.stacks)] == planned


@pytest.fixture
def organisation(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes stack files beside the repository's own program, and says where."""

    def write(teams: Json, **environment: Any) -> Path:
        (tmp_path / "stacks").mkdir(exist_ok=True)
        for name in ("__main__.py", "Pulumi.yaml"):
            shutil.copy(ROOT / name, tmp_path / name)
        if not (tmp_path / "modules").exists():
            (tmp_path / "modules").symlink_to(ROOT / "modules")
        for name, text in files(teams, **environment).items():
            (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_the_program_counts_what_all_teams_were_promised(organisation: Callable[..., Path]) -> None:
    root = organisation({"vision": {GPU: 24, TPU: 32}, "nlp": {GPU: 8}}, lend_unpromised=True)
    lab = read_workspace(root).stacks["lab"]

    ((_, plan),) = plan_stacks(Workspace(root, {"lab": lab}), [lab])

    (group,) = plan.one(COHORT).inputs["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"] == [{"name": "nvidia.com/gpu", "nominalQuota": str(64 - 24 - 8)}]


def test_the_program_lends_nothing_while_a_teams_file_is_rejected(organisation: Callable[..., Path]) -> None:
    root = organisation({"vision": {GPU: -1}}, lend_unpromised=True)
    lab = read_workspace(root).stacks["lab"]

    with pytest.raises(PlanningError, match=r"stacks/Pulumi\.lab-vision\.yaml"):
        list(plan_stacks(Workspace(root, {"lab": lab}), [lab]))


@pytest.mark.parametrize(("lends", "said"), [(True, "72 lent to all"), (False, "72 idle")])
def test_every_report_says_what_becomes_of_it(organisation: Callable[..., Path], lends: bool, said: str) -> None:
    root = organisation({"vision": {GPU: 24, TPU: 0}}, lend_unpromised=lends)
    report = check_stacks(root, None, Options(today=date(2026, 11, 22), fast=True)).report
    console = Console(record=True, width=200)
    console.print(*summary(report, 200))

    # 40 GPUs, and 32 chips of TPUs.
    assert f"of what no team was promised, {said}" in console.export_text()
    (gpus,) = [line for line in report.capacity if line.flavor.name == GPU]
    assert shares_of(gpus) == f"vision 24, {'lent to all' if lends else 'idle'} 40"
    document = next(line for line in json.loads(json_report(report))["capacity"] if line["flavor"] == GPU)
    assert (document["unpromised"], document["lent"]) == (40, 40 if lends else 0)
    shown = Console(record=True, width=200)
    print_overview(read_overview(root, date(2026, 11, 22)), "project", shown)
    assert re.search(rf"{'lent to all' if lends else 'idle'} +{40 if lends else 0} +40\n", shown.export_text())
