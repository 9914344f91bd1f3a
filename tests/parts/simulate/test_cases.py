"""Cases worked out by hand: how long jobs wait, and what they use, borrow and lose."""

from __future__ import annotations

import math

import pytest
import yaml

from kueue_model import NEVER, CapacityTimes, LossTime, Played, Pods, TraceJob, expected_losses, play
from kueue_model.results import (
    ALL,
    ClusterFlavor,
    Figures,
    Result,
    TeamEvictions,
    TeamFlavor,
    figures,
    sections,
)
from tests.parts.simulate.clusters import ENVIRONMENT, cluster, shares
from training_platform.catalog.types import ChargedCapacity
from training_platform.parts.simulate.provisioning_times import DEFAULTS

GPU = "nvidia.com/gpu"
HOUR = 3600.0
REQUEUE = 1.0  # second for which Kueue gathers changes


def job(name: str, team: str, hour: float, gpus: int, hours: float) -> TraceJob:
    return TraceJob(name, hour * HOUR, team, "main", (Pods(GPU, gpus),), hours * HOUR)


@pytest.fixture(scope="module")
def borrowed() -> Played:
    """The example of docs/development/simulation.md."""
    queues = cluster({"vision": shares(h100_reservation=8), "nlp": shares(h100_reservation=8)})
    jobs = [job("a", "vision", 0, 16, 10), job("b", "nlp", 1, 8, 4), job("c", "vision", 2, 8, 1)]
    return play(queues, jobs, DEFAULTS)


def test_a_team_takes_back_what_it_lent(borrowed: Played) -> None:
    a, b, c = borrowed.runs

    assert (b.started, b.ended) == (1 * HOUR, 5 * HOUR)
    assert (c.started, c.ended) == (2 * HOUR, 3 * HOUR)
    assert (a.started, a.evictions, a.ended) == (0, 1, 5 * HOUR + REQUEUE + 9 * HOUR)


def test_what_is_held_borrowed_and_lent_adds_up(borrowed: Played) -> None:
    vision, nlp = (borrowed.use[team, "h100-reservation"] for team in ("vision", "nlp"))

    assert vision.held == (16 * 1 + 8 * 1 + 16 * 9) * HOUR
    assert vision.borrowed == nlp.lent == (8 * 1 + 8 * 9) * HOUR
    assert nlp.held == 8 * 4 * HOUR
    assert vision.lost_by_eviction == 0  # a checkpoint was just saved


def test_a_team_that_lends_nothing_has_lent_nothing() -> None:
    keeps = {"shares": {"main": {"h100-reservation": {"nominal_quota": 8, "lending_limit": 0}}}}
    queues = cluster({"vision": shares(h100_reservation=8), "nlp": keeps, "audio": shares(h100_reservation=8)})

    played = play(queues, [job("a", "vision", 0, 16, 10)], DEFAULTS)

    lent = {team: played.use[team, "h100-reservation"].lent for team in ("nlp", "audio")}
    assert lent == {"nlp": 0, "audio": 8 * 10 * HOUR}


def test_a_job_whose_team_would_borrow_less_and_the_jobs_that_it_evicts_are_a_loop() -> None:
    """The example of a loop in docs/development/simulation.md."""
    queues = cluster({"vision": shares(h100_reservation=4), "nlp": shares(h100_reservation=12)})
    jobs = [job("a", "vision", 0, 2, 10), job("b", "vision", 1, 10, 10), job("c", "nlp", 2, 16, 1)]

    played = play(queues, jobs, DEFAULTS)
    never = play(queues, [*jobs[:2], job("c", "nlp", 2, 14, 1)], DEFAULTS)

    assert played.loop_moments == 1
    assert {(key.team, key.victim, key.reason) for key in played.loops} == {("nlp", "vision", "share")}
    assert never.loop_moments == 0


def test_work_after_the_last_checkpoint_is_lost_with_an_eviction() -> None:
    queues = cluster({"vision": shares(h100_reservation=8), "nlp": shares(h100_reservation=8)})
    jobs = [job("a", "vision", 0, 16, 10), job("b", "nlp", 1.25, 8, 4)]

    played = play(queues, jobs, DEFAULTS)

    assert played.use["vision", "h100-reservation"].lost_by_eviction == 16 * 0.25 * HOUR
    assert played.runs[0].ended == pytest.approx((1.25 + 4 + 9) * HOUR + REQUEUE)


def test_an_interrupted_job_goes_on_from_its_checkpoint_and_keeps_its_quota() -> None:
    queues = cluster({"vision": shares(h100_spot=16)})
    times = {**DEFAULTS, "spot": CapacityTimes(lost_hours=LossTime(mean=3))}

    (run,) = (played := play(queues, [job("a", "vision", 0, 8, 20)], times, seed=1)).runs
    use = played.use["vision", "h100-spot"]

    assert run.interruptions > 0
    assert run.evictions == 0
    assert use.ran == pytest.approx(8 * 20 * HOUR + use.lost_by_interruption)
    assert use.held == use.ran  # machines come at once here
    assert use.lost_by_interruption > 0


def test_a_job_that_needs_its_machines_for_longer_than_they_stay_never_ends_and_holds_nothing() -> None:
    queues = cluster({"vision": shares(h100_spot=16)})
    days = job("a", "vision", 0, 16, 20 * 24)._replace(checkpoint=21 * 24 * HOUR)
    saved = job("b", "vision", 1, 16, 20 * 24)

    played = play(queues, [days, saved], DEFAULTS)
    summed = figures([played], 20)

    assert played.endless == summed.endless == 1
    assert summed.rows["never"] == {
        ("main", "vision", "never ends: it would need its machines for 480.0 hours without an interruption"): {
            "jobs": 1
        }
    }
    assert summed.waits[TeamFlavor("main", "vision", ALL)]["jobs"] == 1  # the other


def test_losses_grow_exponentially_with_the_time_between_checkpoints() -> None:
    times = {**DEFAULTS, "spot": CapacityTimes(lost_hours=LossTime(mean=1))}
    spot: frozenset[ChargedCapacity] = frozenset({"spot"})

    often, seldom = (expected_losses(times, spot, 10 * HOUR, HOUR * checkpoint) for checkpoint in (1, 10))

    assert often == pytest.approx(10 * (math.e - 1))
    assert seldom == pytest.approx(math.e**10 - 1)
    assert expected_losses(times, spot, 10_000 * HOUR, 10_000 * HOUR) == math.inf
    assert expected_losses(DEFAULTS, frozenset[ChargedCapacity]({"reservation"}), HOUR, HOUR) == 0


def test_a_seed_repeats_a_run_and_another_does_not() -> None:
    queues = cluster({"vision": shares(h100_spot=16)})
    jobs = [job(f"j{number}", "vision", number / 4, 8, 3) for number in range(20)]

    first, again, other = ([run.ended for run in play(queues, jobs, DEFAULTS, seed).runs] for seed in (1, 1, 2))

    assert first == again != other


@pytest.mark.parametrize(
    ("team", "gpus", "why"),
    [
        ({}, 32, "needs 32, but the queue can use at most 16"),
        ({"hold": {"main": "Hold"}}, 8, "the queue is held"),
    ],
)
def test_a_job_that_never_starts_says_why(team: dict[str, object], gpus: int, why: str) -> None:
    queues = cluster({"vision": {**shares(h100_reservation=16), **team}})

    played = play(queues, [job("a", "vision", 0, gpus, 1)], DEFAULTS)

    assert played.runs[0].started == NEVER
    assert figures([played], 1).rows["never"] == {("main", "vision", why): {"jobs": 1}}


def test_a_job_larger_than_each_queued_pool_never_gets_machines_and_leaves_its_quota_to_others() -> None:
    queued = {"machine_type": "a3-highgpu-8g", "capacity": "queued-provisioning"}
    spec = yaml.safe_load(ENVIRONMENT)["clusters"]["main"]
    spec["node_pools"] = {"left": {**queued, "max_nodes": 5}, "right": {**queued, "max_nodes": 3}}
    queues = cluster({"vision": shares(h100_queued_provisioning=64)}, clusters={"main": spec})

    played = play(queues, [job("a", "vision", 0, 6 * 8, 1), job("b", "vision", 1, 5 * 8, 1)], DEFAULTS)

    large, fitting = played.runs
    assert (large.started, large.why) == (
        NEVER,
        "needs 48 of h100-queued-provisioning, but one provisioning request gets at most 40",
    )
    assert fitting.ended != NEVER


def test_waits_utilisation_and_idle_hours_are_those_of_the_runs() -> None:
    queues = cluster({"vision": shares(h100_reservation=16)})
    jobs = [job(name, "vision", 0, 16, 2) for name in "abc"]

    summed = figures([play(queues, jobs, DEFAULTS)], 1)

    waits = summed.waits[TeamFlavor("main", "vision", ALL)]
    assert waits["median_seconds"] == pytest.approx(2 * HOUR, abs=2 * REQUEUE)
    assert waits["longest_seconds"] == waits["p90_seconds"] == pytest.approx(4 * HOUR, abs=3 * REQUEUE)
    assert waits["slowdown"] == pytest.approx(2, abs=0.001)
    row = summed.flavors[ClusterFlavor("main", "h100-reservation", "reservation")]
    assert row["utilisation"] == pytest.approx(1, abs=0.001)
    assert row["idle_reserved_chip_hours"] == pytest.approx(0, abs=1)


def test_runs_without_a_loop_count_when_runs_are_summed_up() -> None:
    key = TeamEvictions("c", "a", "b", "h100", "reclaim")
    looped = Figures(1.0)
    quiet = Figures(1.0)
    looped.loops[key] = {"evictions": 5}
    result = Result([looped, quiet, quiet], [quiet, quiet, quiet])

    (section,) = (section for section in sections(result) if section.title == "preemption loops")

    assert [row.cells[-1] for row in section.rows] == ["0 → 0 (0 to 5)"]
