"""A report is the same whoever planned, and when: one process or two, planned or kept."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path

import pytest

from tests.training_platform.checks.conftest import shared
from training_platform.checks.output import FORMATS, render
from training_platform.checks.planning import planner as module
from training_platform.checks.planning.outcome import Outcome, encode
from training_platform.checks.planning.planner import Planner
from training_platform.checks.planning.workers import Answer, PlanTask
from training_platform.checks.report import Report
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions

TODAY = date(2026, 11, 21)
EMPTY = encode(Outcome(findings=(), branches=(), resources=(), outputs={}))


def texts(report: Report) -> dict[str, str]:
    return {each: render(report, each) for each in FORMATS}


def spoil(root: Path) -> None:
    """Plant an error of a resource, one of a ledger, and one of a team."""
    for stack, old, new in (
        ("prod", "boot_disk: {type: pd-ssd, size_gb: 200}", "boot_disk: {type: pd-ssd, size_gb: 700000}"),
        ("prod", "topology: 4x8", "topology: 4x5"),
        ("prod-nlp", "nominal_quota: 128", "nominal_quota: 192"),
    ):
        path = root / "stacks" / f"Pulumi.{stack}.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


def alone(root: Path, *stacks: str) -> dict[str, str]:
    """Return the report of this process alone, whose plans other tests share."""
    return texts(run_check(root, CheckOptions(today=TODAY, planner=shared()), selected=stacks))


def unreachable(job: PlanTask) -> Answer:
    raise AssertionError(f"{job.name} is planned again")


@pytest.mark.timeout(300)
def test_a_report_is_the_same_by_one_process_by_two_and_from_the_cache(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(copy)
    cache = tmp_path / "cache"
    here = alone(copy)

    assert texts(run_check(copy, CheckOptions(today=TODAY, planner=Planner(jobs=2, cache=cache)))) == here
    monkeypatch.setattr(module, "plan", unreachable)
    assert texts(run_check(copy, CheckOptions(today=TODAY, planner=Planner(jobs=1, cache=cache)))) == here
    assert all(word in here["text"] for word in ("boot-disk-size", "tpu-topology", "capacity-exceeded"))


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> list[str]:
    """Return what is planned, in order, by a stand-in that finds nothing."""
    names: list[str] = []
    clean = encode(dataclasses.replace(outcome, findings=()))

    def stand_in(job: PlanTask) -> Answer:
        names.append(job.name)
        return Answer(clean)

    monkeypatch.setattr(module, "plan", stand_in)
    return names


def test_environments_are_planned_before_their_teams_and_hand_over_their_outputs(
    copy: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    jobs: list[PlanTask] = []

    def stand_in(job: PlanTask) -> Answer:
        jobs.append(job)
        return Answer(encode(outcome))

    monkeypatch.setattr(module, "plan", stand_in)

    run_check(copy, CheckOptions(today=TODAY, planner=Planner(jobs=1)))

    assert [job.name for job in jobs] == ["dev", "prod", "dev-vision", "prod-nlp", "prod-vision"]
    assert [dict(job.outputs) for job in jobs] == [
        {}, {}, {"dev": outcome.outputs}, {"prod": outcome.outputs}, {"prod": outcome.outputs},
    ]  # fmt: skip


def test_a_change_of_one_team_plans_that_team_alone(copy: Path, tmp_path: Path, planned: list[str]) -> None:
    planner = Planner(jobs=1, cache=tmp_path / "cache")
    run_check(copy, CheckOptions(today=TODAY, planner=planner))
    planned.clear()
    path = copy / "stacks" / "Pulumi.prod-nlp.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("32", "16"), encoding="utf-8")

    run_check(copy, CheckOptions(today=TODAY, planner=planner))

    assert planned == ["prod-nlp"]


def test_a_change_of_an_environment_plans_it_and_its_teams(copy: Path, tmp_path: Path, planned: list[str]) -> None:
    planner = Planner(jobs=1, cache=tmp_path / "cache")
    run_check(copy, CheckOptions(today=TODAY, planner=planner))
    planned.clear()
    path = copy / "stacks" / "Pulumi.prod.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")

    run_check(copy, CheckOptions(today=TODAY, planner=planner))

    assert planned == ["prod", "prod-nlp", "prod-vision"]


def test_quotas_exemptions_and_today_hold_for_kept_outcomes_too(copy: Path, tmp_path: Path, planned: list[str]) -> None:
    planner = Planner(jobs=1, cache=tmp_path / "cache")
    assert run_check(copy, CheckOptions(today=TODAY, planner=planner)).all_findings() == []
    planned.clear()
    quotas = copy / "stacks" / "quotas" / "example-train-prod.yaml"
    text = quotas.read_text(encoding="utf-8")
    assert "limit: 72," in text
    quotas.write_text(text.replace("limit: 72,", "limit: 63,"), encoding="utf-8")

    later = run_check(copy, CheckOptions(today=date(2027, 1, 31), planner=planner))

    assert planned == []
    assert {each.rule for each in later.all_findings()} == {"quota-exceeded", "quota-snapshot-age"}


def test_without_a_cache_every_stack_is_planned_again(copy: Path, planned: list[str]) -> None:
    for _ in range(2):
        run_check(copy, CheckOptions(today=TODAY, planner=Planner(jobs=1)))

    assert len(planned) == 10


def test_what_is_edited_while_it_is_planned_is_not_kept(
    copy: Path, tmp_path: Path, planned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planner = Planner(jobs=1, cache=tmp_path / "cache")
    path = copy / "stacks" / "Pulumi.prod-nlp.yaml"
    text = path.read_text(encoding="utf-8")

    def edited(job: PlanTask) -> Answer:
        path.write_text(text + "# changed\n", encoding="utf-8")
        return Answer(EMPTY)

    with monkeypatch.context() as patch:
        patch.setattr(module, "plan", edited)
        run_check(copy, CheckOptions(today=TODAY, planner=planner))
    path.write_text(text, encoding="utf-8")
    run_check(copy, CheckOptions(today=TODAY, planner=planner))

    assert planned == ["prod-nlp"]


def test_a_stack_that_fails_leaves_out_its_teams_and_hides_no_other(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(job: PlanTask) -> Answer:
        return Answer(EMPTY) if job.name == "prod" else Answer(None, f"stack {job.name}: no.")

    monkeypatch.setattr(module, "plan", fails)

    report = run_check(copy, CheckOptions(today=TODAY, planner=Planner(jobs=1)))

    assert report.failures == ("stack dev: no.", "stack prod-nlp: no.", "stack prod-vision: no.")
    assert [stack.name for stack in report.stacks if stack.planned] == ["prod"]


def test_progress_counts_every_stack(copy: Path, planned: list[str]) -> None:
    shown: list[tuple[str, int, int]] = []

    run_check(
        copy,
        CheckOptions(
            today=TODAY,
            planner=Planner(jobs=1),
            progress=lambda what, done=0, total=0: shown.append((what, done, total)),
        ),
    )

    assert shown[:2] == [("planning", 0, 5), ("planned dev", 1, 5)]
    assert shown[-1] == ("planned prod-vision", 5, 5)


@pytest.mark.parametrize("planner", [Planner(), Planner(jobs=2), Planner(jobs=1, cache=Path("/var/a:b"))])
def test_a_planner_survives_being_written_down(planner: Planner) -> None:
    assert Planner.of_text(planner.to_text()) == planner
