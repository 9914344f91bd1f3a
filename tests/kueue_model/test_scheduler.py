"""The model of Kueue with any ClusterQueues: several resources, roots and policies that our stacks do not have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kueue_model import cluster as model_cluster
from kueue_model.cluster_queues import Eviction, Job, Pods
from kueue_model.quotas import amount
from kueue_model.scheduler import Scheduler
from kueue_model.traces import read_rows

GPU = "nvidia.com/gpu"
CPU = "cpu"
MEMORY = "memory"
FAIR = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
Flavors = Mapping[str, Mapping[str, object]]


def queue(*groups: Flavors, cohort: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a spec; a group has, by flavor, the nominal quota of each resource."""
    rows = [
        {
            "coveredResources": list(next(iter(group.values()))),
            "flavors": [
                {"name": name, "resources": [{"name": key, "nominalQuota": value} for key, value in quotas.items()]}
                for name, quotas in group.items()
            ],
        }
        for group in groups
    ]
    spec = {"resourceGroups": rows, **more}
    if cohort:
        spec["cohortName"] = cohort
    return spec


def preemption(within: str = "Never", reclaim: str = "Never") -> dict[str, Any]:
    return {"preemption": {"withinClusterQueue": within, "reclaimWithinCohort": reclaim}}


class Cluster:
    """A scheduler whose clock advances with each step."""

    def __init__(
        self, queues: Mapping[str, dict[str, Any]], sharing: tuple[str, ...] | None = FAIR, **parents: str
    ) -> None:
        cohorts = {name: {"parentName": parent} for name, parent in parents.items()}
        self.scheduler = Scheduler(queues, cohorts, sharing)
        self.now = 0.0
        self.evicted: list[str] = []

    def submit(self, name: str, where: str, *pods: Pods, priority: int = 0) -> Job:
        job = Job(name, where, pods, priority)
        self.scheduler.submit(job, self.now)
        self.settle()
        return job

    def end(self, job: Job) -> None:
        self.scheduler.end(job, self.now)
        self.settle()

    def settle(self) -> None:
        while True:
            moves = self.scheduler.settle(self.now).steps
            self.evicted += [move.job.name for move in moves if isinstance(move, Eviction)]
            if self.scheduler.next_at == math.inf:
                break
            self.now = self.scheduler.next_at
        self.now += 10

    def flavors(self, job: Job) -> list[str]:
        return [self.scheduler.quotas.flavors[cell] for cell in job.cells]


def gpus(number: int, *flavors: str, **more: int) -> Pods:
    """Return pods with GPUs; ``more`` are amounts of other resources, as Kueue counts them."""
    return Pods(GPU, number, frozenset(flavors) or None, tuple(more.items()))


@pytest.mark.parametrize(
    ("resource", "quantity", "counted"),
    [
        (CPU, "500m", 500), (CPU, 2, 2000), (CPU, "0.1", 100), (CPU, "1n", 1), (MEMORY, "1Gi", 2**30),
        (MEMORY, "1.5k", 1500), (MEMORY, "100m", 1), (MEMORY, "1e3", 1000), (GPU, "8", 8), (MEMORY, "2E", 2 * 10**18),
    ],
)  # fmt: skip
def test_a_quantity_is_counted_as_kueue_does(resource: str, quantity: object, counted: int) -> None:
    assert amount(resource, quantity) == counted


@pytest.mark.parametrize("quantity", ["", "-1", "1 Gi", "x", "1GiB", "9" * 40, "nan"])
def test_what_is_no_quantity_is_refused(quantity: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        amount(MEMORY, quantity)


def test_pods_get_a_flavor_that_has_all_of_their_resources() -> None:
    small = {GPU: 8, CPU: 4}
    large = {GPU: 8, CPU: 32}
    cluster = Cluster({"a": queue({"small": small, "large": large}, {"memory": {MEMORY: "10Gi"}})})

    job = cluster.submit("j0", "a", gpus(4, cpu=8000), Pods(MEMORY, 2**30))
    too_large = cluster.submit("j1", "a", gpus(4, cpu=25_000))
    cluster.end(job)

    assert cluster.flavors(job) == []
    assert cluster.flavors(too_large) == ["large"]


def test_a_kind_of_pods_that_fits_nowhere_begins_at_its_first_flavors_again() -> None:
    """In the first cycle the second kind finds CPUs and no GPUs; the next goes on at the first kind's flavors."""
    spec = queue({"burst": {CPU: 4}, "default": {CPU: 4}}, {"x": {GPU: 8}, "y": {GPU: 4}})
    lab = model_cluster.Cluster("lab", {"a": spec}, {}, {}, {}, FAIR, model_cluster.Counting())
    row = {"submitted": 0, "team": "a", "needs": f"4 {GPU} 1 cpu + 6 {GPU} 1 cpu", "seconds": 1}
    (traced,) = read_rows(Path("jobs.csv"), [row], [lab]).jobs
    cluster = Cluster({"a": spec})

    job = cluster.submit("j0", "a", *traced.pods)

    assert cluster.flavors(job) == ["default", "y", "burst", "x"]


def test_cpus_that_others_hold_are_why_a_job_waits_and_are_reclaimed() -> None:
    quotas = {"x": {GPU: 8, CPU: 16}}
    cluster = Cluster({
        name: queue(quotas, cohort="all", **preemption(reclaim="Any")) for name in ("a", "b")
    })  # fmt: skip

    borrowed = cluster.submit("j0", "a", gpus(1, cpu=24_000))
    owned = cluster.submit("j1", "b", gpus(8, cpu=16_000))

    assert cluster.evicted == ["j0"]
    assert (cluster.flavors(borrowed), cluster.flavors(owned)) == ([], ["x"])


def test_ties_between_cohorts_are_decided_again_each_time() -> None:
    none = {"x": {GPU: 0}}
    cluster = Cluster({
        "own": queue({"x": {GPU: 4}}, cohort="all", **preemption(reclaim="Any")),
        "a": queue(none, cohort="north"), "b": queue(none, cohort="south"),
    }, north="all", south="all")  # fmt: skip
    for name in "ab":
        cluster.submit(f"{name}0", name, gpus(2))

    for number in range(20):
        cluster.end(cluster.submit(f"own{number}", "own", gpus(2)))

    assert set(cluster.evicted) == {"a0", "b0"}


@pytest.mark.parametrize("sharing", [FAIR, None])
def test_a_queue_without_a_cohort_preempts_only_its_own_jobs(sharing: tuple[str, ...] | None) -> None:
    policy = preemption("LowerPriority", "Any")
    cluster = Cluster({
        "a": queue({"x": {GPU: 8}}, **policy), "b": queue({"x": {GPU: 8}}, cohort="north", **policy),
        "c": queue({"x": {GPU: 8}}, cohort="south", **policy),
    }, sharing)  # fmt: skip

    jobs = [cluster.submit(f"{name}0", name, gpus(8)) for name in "abc"]
    urgent = cluster.submit("a1", "a", gpus(8), priority=5)
    waits = cluster.submit("b1", "b", gpus(8))

    assert cluster.evicted == ["a0"]
    assert [cluster.flavors(job) for job in (*jobs, urgent, waits)] == [[], ["x"], ["x"], ["x"], []]


@pytest.mark.parametrize(("strategy", "before", "after"), [("StrictFIFO", [], ["x"]), ("BestEffortFIFO", ["x"], [])])
def test_the_head_of_a_strict_queue_keeps_others_back(strategy: str, before: list[str], after: list[str]) -> None:
    cluster = Cluster({"a": queue({"x": {GPU: 8}}, queueingStrategy=strategy)})

    holds, head, small = (cluster.submit(f"j{number}", "a", gpus(count)) for number, count in enumerate((4, 8, 2)))
    started = cluster.flavors(small)
    cluster.end(holds)

    assert (started, cluster.flavors(head)) == (before, after)


@pytest.mark.parametrize(("preference", "flavor"), [("BorrowingOverPreemption", "y"), ("PreemptionOverBorrowing", "x")])
def test_a_queue_that_prefers_preemption_does_not_borrow(preference: str, flavor: str) -> None:
    tries = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor", "preference": preference}
    both = {"x": {GPU: 4}, "y": {GPU: 0}}
    cluster = Cluster({
        "a": queue(both, cohort="all", flavorFungibility=tries, **preemption("LowerPriority")),
        "b": queue({"y": {GPU: 4}}, cohort="all"),
    }, None)  # fmt: skip

    cluster.submit("low", "a", gpus(4, "x"))
    job = cluster.submit("high", "a", gpus(4), priority=1)

    assert cluster.flavors(job) == [flavor]


def test_a_queue_that_is_held_starts_nothing_and_one_that_is_drained_gives_its_quota_back() -> None:
    cluster = Cluster({name: queue({"x": {GPU: 8}}, cohort="all") for name in "ab"})
    running = cluster.submit("a0", "a", gpus(8))

    cluster.scheduler.hold("a", "Hold", cluster.now)
    waits = cluster.submit("a1", "a", gpus(1))
    held = (cluster.flavors(running), cluster.flavors(waits))
    cluster.scheduler.hold("a", "HoldAndDrain", cluster.now)
    cluster.settle()
    borrower = cluster.submit("b0", "b", gpus(15))

    assert held == (["x"], [])
    assert cluster.evicted == ["a0"]
    assert cluster.flavors(borrower) == ["x"]


def test_jobs_that_were_drained_come_after_those_that_waited() -> None:
    cluster = Cluster({"a": queue({"x": {GPU: 8}})})
    drained = cluster.submit("a0", "a", gpus(8))
    cluster.scheduler.hold("a", "HoldAndDrain", cluster.now)
    cluster.settle()
    waits = cluster.submit("a1", "a", gpus(8))

    cluster.scheduler.hold("a", "None", cluster.now)
    cluster.settle()
    first = (cluster.flavors(drained), cluster.flavors(waits))
    cluster.end(waits)

    assert first == ([], ["x"])
    assert cluster.flavors(drained) == ["x"]


def test_a_job_with_a_higher_priority_passes_others_and_evicts_them() -> None:
    cluster = Cluster({"a": queue({"x": {GPU: 8}}, **preemption("LowerPriority"))})
    runs, _, last = (cluster.submit(f"j{number}", "a", gpus(8)) for number in range(3))

    cluster.scheduler.set_priority(last, 5, cluster.now)
    cluster.settle()
    after = (cluster.flavors(runs), cluster.flavors(last))
    cluster.scheduler.set_priority(runs, 9, cluster.now)
    cluster.settle()

    assert after == ([], ["x"])
    assert cluster.evicted == ["j0", "j2"]
    assert cluster.flavors(runs) == ["x"]


def test_a_threshold_bounds_the_priority_of_jobs_that_are_taken_while_borrowing() -> None:
    evicted = []
    for threshold in (None, 100, 99):
        policy = preemption(reclaim="LowerPriority")
        policy["preemption"]["borrowWithinCohort"] = {"policy": "LowerPriority", "maxPriorityThreshold": threshold}
        cluster = Cluster({
            "a": queue({"x": {GPU: 0}}, cohort="all", **policy), "b": queue({"x": {GPU: 0}}, cohort="all"),
            "c": queue({"x": {GPU: 8}}, cohort="all"),
        }, None)  # fmt: skip
        cluster.submit("borrower", "b", gpus(8), priority=100)
        cluster.submit("urgent", "a", gpus(8), priority=200)
        evicted.append(cluster.evicted)

    assert evicted == [["borrower"], ["borrower"], []]


@pytest.mark.parametrize(("strategy", "first"), [("BestEffortFIFO", "j0"), ("StrictFIFO", "j1")])
def test_a_job_that_evicts_others_stays_first_until_it_is_admitted_if_its_queue_is_not_strict(
    strategy: str, first: str
) -> None:
    cluster = Cluster({"a": queue({"x": {GPU: 8}}, queueingStrategy=strategy, **preemption("LowerPriority"))})
    cluster_queue = cluster.scheduler.queues["a"]
    preemptor, urgent = (Job(name, "a", (gpus(8),), priority) for name, priority in (("j0", 1), ("j1", 9)))

    cluster_queue.prefer(preemptor)
    for job in (preemptor, urgent):
        job.created = cluster.now
        cluster_queue.push(job)

    popped = [cluster_queue.pop(), cluster_queue.pop()]
    assert popped[0] is {"j0": preemptor, "j1": urgent}[first]
    assert set(popped) == {preemptor, urgent}
    cluster_queue.push(urgent)
    cluster_queue.push(preemptor)
    cluster_queue.prefer(None)
    assert cluster_queue.pop() is urgent
