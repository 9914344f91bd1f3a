"""Cases worked out by hand: how long jobs wait, and what they use, borrow and lose."""

from __future__ import annotations

import math

import pytest
import yaml

from kueue_model import NEVER, CapacityTimes, LossTime, Pods, TraceJob, expected_losses, play
from kueue_model.results import (
    Figures,
    Result,
    TeamEvictions,
    sections,
)
from tests.parts.simulate.clusters import ENVIRONMENT, cluster, shares
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import hourly_usd
from training_platform.catalog.types import ChargedCapacity
from training_platform.parts.simulate.provisioning_times import DEFAULTS

GPU = "nvidia.com/gpu"
HOUR = 3600.0


def job(name: str, team: str, hour: float, gpus: int, hours: float) -> TraceJob:
    return TraceJob(name, hour * HOUR, team, "main", (Pods(GPU, gpus),), hours * HOUR)


def test_losses_grow_exponentially_with_the_time_between_checkpoints() -> None:
    times = {**DEFAULTS, "spot": CapacityTimes(lost_hours=LossTime(mean=1))}
    spot: frozenset[ChargedCapacity] = frozenset({"spot"})

    often, seldom = (expected_losses(times, spot, 10 * HOUR, HOUR * checkpoint) for checkpoint in (1, 10))

    assert often == pytest.approx(10 * (math.e - 1))
    assert seldom == pytest.approx(math.e**10 - 1)
    assert expected_losses(times, spot, 10_000 * HOUR, 10_000 * HOUR) == math.inf
    assert expected_losses(DEFAULTS, frozenset[ChargedCapacity]({"reservation"}), HOUR, HOUR) == 0


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


def test_a_chip_costs_its_part_of_one_vm() -> None:
    flavors = cluster({"vision": shares(h100_spot=8)}).flavors
    an_hour = hourly_usd(MACHINE_TYPES["ct5lp-hightpu-4t"], "on-demand", "us-central1")

    assert an_hour is not None
    assert flavors["tpu-v5e-4x4"].usd == pytest.approx(an_hour / 4)


def test_runs_without_a_loop_count_when_runs_are_summed_up() -> None:
    key = TeamEvictions("c", "a", "b", "h100", "reclaim")
    looped = Figures(1.0)
    quiet = Figures(1.0)
    looped.loops[key] = {"evictions": 5}
    result = Result([looped, quiet, quiet], [quiet, quiet, quiet])

    (section,) = (section for section in sections(result) if section.title == "preemption loops")

    assert [row.cells[-1] for row in section.rows] == ["0 → 0 (0 to 5)"]
