"""A job's cost at list prices: per hour, and for its maximum run time, for each provisioning model of its machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import EXAMPLES, LIST, Cost, PriceBook, machines_cost
from training_platform.catalog.types import ChargedCapacity, MachineType
from training_platform.config.model.team import Team
from training_platform.config.own_prices import read_own_prices
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.jobs.gke.gke_job import GkeJob, on_gke
from training_platform.parts.jobs.job_checks import chosen_target, judge
from training_platform.parts.jobs.job_file import job_source
from training_platform.parts.jobs.job_model import TARGETS, Target
from training_platform.parts.jobs.resolve import ResolvedJob, parse_places
from training_platform.parts.jobs.vertex.worker_pools import pools, vertex_target, vms
from training_platform.quota.chip_hours import Usages

LEFT_OUT: Mapping[Target, tuple[str, ...]] = {
    "gke": ("disks", "storage", "network"),
    "vertex": ("disks", "storage", "network", "Vertex AI's own fee"),
}
"""Costs that no sum includes, so every sum is a lower bound. The catalogue has no price for Vertex AI's own fee."""


class Machines(NamedTuple):
    """VMs of one type that a job has at the same time, with their attached GPUs."""

    machine_type: str
    vms: int


_MEANS: Mapping[ChargedCapacity, str] = {
    "on-demand": "starts if Google has VMs",
    "spot": "Google may stop the VMs at any time, so write checkpoints",
    "flex-start": "starts when Google has VMs, waits without cost, and ends after 7 days",
    "reservation": "is charged whether it is used or not",
}


_Rows = tuple[tuple[MachineType, int], ...]
"""Machine types of the catalogue, each with a number of VMs."""


@dataclass(frozen=True, kw_only=True)
class JobCost:
    """The cost of a job. ``hours`` is its maximum run time, or None. ``an_hour`` is keyed by provisioning model.

    A sweep has ``trials``; ``parallel`` of them run at the same time. The machines and ``an_hour`` are for one trial.
    The cost of the longest run is for all trials.
    """

    target: Target
    place: str
    machines: tuple[Machines, ...]
    capacity: ChargedCapacity
    hours: int | None
    an_hour: Mapping[ChargedCapacity, Cost]
    trials: int = 1
    parallel: int = 1
    borrowed: bool = False  # whether flex-start has no price, so that the on-demand price is used
    how: Mapping[ChargedCapacity, str] = field(default_factory=dict)  # to change the job to another provisioning model
    today: date | None = None
    part: str = ""  # the part of each VM that the sums cover; empty for whole VMs
    paid_already: str = ""  # the persistent resource, which costs the same without the job

    def longest_run(self, capacity: ChargedCapacity) -> float | None:
        """Return the cost in USD for the maximum run time, or None without a price or a limit of the run time."""
        cost = self.an_hour[capacity]
        return None if self.hours is None or not _has_sum(cost) else cost.maximum * self.hours * self.trials

    def as_json(self) -> dict[str, Any]:
        """Return the cost as JSON data."""
        at_least_usd = {}
        for capacity, cost in self.an_hour.items():
            longest_run = self.longest_run(capacity)
            at_least_usd[capacity] = {
                "an_hour": round(cost.maximum, 2) if _has_sum(cost) else None,
                "longest_run": None if longest_run is None else round(longest_run, 2),
                "unpriced": list(cost.unpriced),
                "prices_of": str(cost.read) if cost.read else None,
                "example": bool(self.today and cost.is_example(self.today)),
            }
        return {
            "target": self.target,
            "place": self.place,
            "machines": [machine._asdict() for machine in self.machines],
            "capacity": self.capacity,
            "longest_run_hours": self.hours,
            "trials": self.trials,
            "parallel_trials": self.parallel,
            "paid_already": self.paid_already or None,
            "at_least_usd": at_least_usd,
            "left_out": list(LEFT_OUT[self.target]),
        }


def cost_of_file(
    path: FilePath, root: FilePath, target: Target | None, today: date
) -> tuple[list[JobCost], tuple[Finding, ...]]:
    """Return a job file's costs at each place where it may run, or none if it has errors that are not about quotas.

    Raises UnreadableError or UserError.
    """
    book, wrong = read_own_prices(root)
    chosen: list[tuple[Target, ResolvedJob]] = []
    judged = list(wrong)
    for job, at_targets, findings in parse_places(job_source(path, root), read_workspace(root)):
        if job is None:
            return [], (*wrong, *findings)
        named_target = None if target is None else chosen_target(job, target)
        chosen += [(at_target, job) for at_target in at_targets if named_target in (None, at_target)]
    for each_target, job in chosen:
        judged += judge(job, each_target, today).findings
    findings_once = tuple(dict.fromkeys(judged))
    errors = tuple(finding for finding in findings_once if finding.severity == "error")
    if not all(error.rule.startswith("job-quota-") for error in errors):
        return [], findings_once
    chosen.sort(key=lambda row: TARGETS.index(row[0]))
    return [job_cost(job, each_target, book=book, today=today) for each_target, job in chosen], errors


def job_cost(job: ResolvedJob, target: Target, *, book: PriceBook = LIST, today: date | None = None) -> JobCost:
    """Return a job's cost on one of its targets. Raises ValueError if the job does not have this target."""
    return _on_gke(on_gke(job), book, today) if target == "gke" else _on_vertex(job, book, today)


def _on_gke(job: GkeJob, book: PriceBook, today: date | None) -> JobCost:
    gke = job.gke
    pool = job.pool
    machines: _Rows = ((pool.machine, job.slices * job.hosts),)
    heads = job.cluster.pathways if gke.pathways else None
    head: _Rows = ((MACHINE_TYPES[heads.machine_type], 1),) if heads else ()
    whole_vms = _an_hour(machines, pool.region, book, head)
    if gke.pool:  # CPU pools have only the capacity of their spec
        whole_vms = {way: cost for way, cost in whole_vms.items() if way == pool.spec.charged}
    fraction = job.part_of_vm(pool)
    part = ""
    if fraction < 1 and gke.pool:
        part = f", {job.spec.cpu} of {pool.machine.vcpus} vCPUs each"
    elif fraction < 1:
        part = f", {gke.gpus} of {pool.machine.chips} GPUs each"
    trials = job.spec.sweep.size if job.spec.sweep else 1
    return JobCost(
        target="gke",
        place=gke.cluster,
        machines=tuple(Machines(machine.name, count) for machine, count in (*head, *machines)),
        capacity=pool.spec.charged,
        hours=job.run_hours or job.vm_hours,
        trials=trials,
        parallel=trials,
        an_hour={
            way: replace(cost, minimum=cost.minimum * fraction, maximum=cost.maximum * fraction)
            for way, cost in whole_vms.items()
        },
        part=part,
        borrowed=_without_own((*head, *machines), book),
        how={} if gke.pool else _flavors(job),
        today=today,
    )


def _on_vertex(job: ResolvedJob, book: PriceBook, today: date | None) -> JobCost:
    target = vertex_target(job)
    more_of_slice = vms(target) - target.replicas  # a TPU's slice is one replica of several VMs
    counts = []
    for pool in pools(target):
        more = more_of_slice if pool.vm.title == target.title else 0
        counts.append((pool, pool.replicas + more))
    machines = tuple((pool.machine, count) for pool, count in counts)
    return JobCost(
        target="vertex",
        place=target.region,
        machines=tuple(Machines(pool.vm.title, count) for pool, count in counts),
        capacity=target.capacity,
        hours=target.timeout_hours,
        trials=job.spec.sweep.size if job.spec.sweep else 1,
        parallel=job.spec.sweep.parallel if job.spec.sweep else 1,
        an_hour=_an_hour(machines, target.region, book),
        borrowed=_without_own(machines, book),
        how={way: f"set vertex.capacity to {way}" for way in ("on-demand", "spot", "flex-start")},
        today=today,
        paid_already=f"persistent resource {target.persistent_resource}" if target.persistent_resource else "",
    )


def _flavors(job: GkeJob) -> dict[ChargedCapacity, str]:
    """Return how to change a job on GKE to each provisioning model: another flavor of its cluster, or a new pool."""
    cluster = job.gke.cluster
    flavor = job.flavor
    machine = job.pool.machine
    how = {}
    for way in machine.capacities:
        alike = (
            row.name
            for row in job.workspace.flavors(job.stack.environment_name, cluster).values()
            if (row.accelerator, row.topology, row.capacity) == (flavor.accelerator, flavor.topology, way)
        )
        name = next(alike, None)
        if name is None:
            pool = f"init pool {job.stack.environment_name} --machine-type {machine.name} --capacity {way}"
            if flavor.topology:
                pool += f" --topology {flavor.topology}"
            if way == "reservation":
                pool += " --reservation NAME"
            how[way] = f"no pool of {cluster} has it; to add one: training-platform {pool}"
        elif name in job.team.shares.get(cluster, {}):
            how[way] = f"set gke.flavor to {name}"
        else:
            how[way] = f"set gke.flavor to {name}, after the team gets a share of it in {cluster}"
    return how


def _an_hour(machines: _Rows, region: str, book: PriceBook, on_demand: _Rows = ()) -> dict[ChargedCapacity, Cost]:
    """Return the cost per hour, keyed by the provisioning models of the machine with the most accelerators.

    Machines in ``on_demand`` have the on-demand price in every model.
    """
    always = Cost()
    for machine, count in on_demand:
        always += machines_cost(machine, "on-demand", region, count, count, book=book)
    costs = {}
    for way in max((machine for machine, _ in machines), key=lambda machine: machine.chips).capacities:
        costs[way] = always
        for machine, count in machines:
            costs[way] += machines_cost(machine, way, region, count, count, book=book)
    return costs


@dataclass(frozen=True, kw_only=True)
class TeamCost:
    """What a team used in a month: chip-hours of each cluster and flavor, their list prices, and the team's budgets."""

    month: str
    rows: tuple[tuple[str, str, float, float | None], ...]  # cluster, flavor, chip-hours, USD of its machines
    budgets: Mapping[str, int]
    held: Collection[str]

    def used(self, cluster: str) -> float:
        """Return the chip-hours used in a cluster."""
        return sum(hours for place, _, hours, _ in self.rows if place == cluster)

    def as_json(self) -> dict[str, Any]:
        """Return the team's month as JSON data."""
        names = ("cluster", "flavor", "chip_hours", "list_price_usd")
        budgets = [
            {"cluster": cluster, "chip_hours": self.used(cluster), "budget": budget, "held": cluster in self.held}
            for cluster, budget in self.budgets.items()
        ]
        return {
            "month": self.month,
            "flavors": [dict(zip(names, row, strict=True)) for row in self.rows],
            "budgets": budgets,
        }


def team_cost(workspace: Workspace, team: Team, usages: Usages, month: str, book: PriceBook = LIST) -> TeamCost:
    """Return the amounts that a team used in a month, according to its environment's ledger."""
    rows = []
    home = workspace.stacks[team.environment].environment
    for cluster, flavors in usages.hours(team, month).items():
        declared = workspace.flavors(team.environment, cluster) if home and cluster in home.clusters else {}
        for name, hours in flavors.items():
            usd = None
            if name in declared:
                pool = declared[name].largest_pool
                an_hour = _an_hour(((pool.machine, 1),), pool.region, book).get(pool.spec.charged, Cost())
                if _has_sum(an_hour):
                    usd = round(an_hour.maximum / pool.machine.chips * hours, 2)
            rows.append((cluster, name, hours, usd))
    return TeamCost(month=month, rows=tuple(rows), budgets=team.monthly_chip_hours, held=team.hold.keys())


def team_text(cost: TeamCost) -> str:
    """Return a team's month as text."""
    rows = [("cluster", "flavor", "chip-hours", "its machines at list prices")]
    for cluster, flavor, hours, usd in cost.rows:
        rows.append((cluster, flavor, f"{hours:,.1f}", "-" if usd is None else f"${usd:,.2f}"))
    lines = list(_aligned(rows))
    for cluster, budget in cost.budgets.items():
        used = cost.used(cluster)
        held = ", and is held" if cluster in cost.held else ""
        lines.append(f"{cluster}: {used:,.1f} of {budget:,} chip-hours of {cost.month} ({used / budget:.0%}){held}")
    return "\n".join(lines)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def cost_text(cost: JobCost) -> str:
    """Return a cost as text."""
    vms = Counter[str]()
    for machine in cost.machines:
        vms[machine.machine_type] += machine.vms
    machines = " and ".join(f"{count:,} x {machine_type}" for machine_type, count in vms.items())
    hours = "" if cost.hours is None else f", {cost.hours:,} hours{' each' if cost.trials > 1 else ''}"
    head = ("provisioning model", "per hour of a trial" if cost.trials > 1 else "per hour")
    rows = [(*head, f"longest run{hours or ': no limit'}")]
    for capacity, an_hour in cost.an_hour.items():
        mark = " (this job)" if capacity == cost.capacity else ""
        bound = "at least " if an_hour.unpriced else ""
        if capacity == "flex-start" and cost.borrowed:
            bound = "about " if an_hour.unpriced else "at most "
        usd = an_hour.maximum if _has_sum(an_hour) else None
        rows.append((f"{capacity}{mark}", _usd(usd, bound), _usd(cost.longest_run(capacity), bound)))
    trials = f", for each of {cost.trials:,} trials, up to {cost.parallel:,} at a time" if cost.trials > 1 else ""
    lines = [
        f"On {cost.target} in {cost.place}: {machines}{cost.part}{trials}",
        *(f"  {row}" for row in _aligned(rows)),
        f"  {_note(cost)}",
        *(f"  {way}: {_advice(cost, way)}." for way in cost.an_hour if way != cost.capacity and way in cost.how),
    ]
    if cost.paid_already:
        lines.append(f"  {cost.paid_already} already pays for these VMs, whether the job runs or not.")
    return "\n".join(lines)


def _has_sum(cost: Cost) -> bool:
    return cost.read is not None and cost.sums_up


def _advice(cost: JobCost, way: ChargedCapacity) -> str:
    """Return the price difference of another provisioning model, its consequences, and the way to change to it."""
    current = cost.an_hour.get(cost.capacity, Cost())
    other = cost.an_hour[way]
    parts = [_MEANS[way], cost.how[way]]
    if _has_sum(current) and _has_sum(other) and round(other.maximum, 2) != round(current.maximum, 2):
        percent = round(100 * abs(1 - other.maximum / current.maximum))
        parts.insert(0, f"{percent}% {'less' if other.maximum < current.maximum else 'more'} than this job")
    return "; ".join(parts)


def _usd(amount: float | None, bound: str) -> str:
    return "-" if amount is None else f"{bound}${amount:,.2f}"


def _note(cost: JobCost) -> str:
    """Return the dates of the prices, and the costs that they do not include."""
    dates = [an_hour.read for an_hour in cost.an_hour.values() if an_hour.read]
    unpriced = dict.fromkeys(name for an_hour in cost.an_hour.values() for name in an_hour.unpriced)
    parts = [f"Prices cover machines only, without {', '.join(LEFT_OUT[cost.target])}"]
    oldest = [way for way, an_hour in cost.an_hour.items() if an_hour.read and an_hour.read == min(dates)]
    if not dates:
        parts.append("No price is known: write yours into stacks/prices.yaml")
    elif len(oldest) == len(dates):
        parts.append(f"The prices are as of {min(dates)}")
    else:
        parts.append(f"The oldest price, for {', '.join(oldest)}, is as of {min(dates)}")
    if cost.today and any(an_hour.is_example(cost.today) for an_hour in cost.an_hour.values()):
        parts.append(f"{EXAMPLES[0].upper()}{EXAMPLES[1:]}")
    if dates and unpriced:
        parts.append(f"No price is known for {', '.join(unpriced)}")
    if "flex-start" in cost.an_hour and cost.borrowed:
        parts.append("Flex-start has no list price: it costs at most as much as on-demand")
    return "".join(f"\n  {part}." for part in parts).strip()


def _without_own(machines: _Rows, book: PriceBook) -> bool:
    """Return True if a machine has a flex-start price neither in a contract nor in the price list."""
    for machine, _ in machines:
        listed = machine.price.usd if machine.price else {}
        if "flex-start" not in book.machines.get(machine.name, {}) and "flex-start" not in listed:
            return True
    return False
