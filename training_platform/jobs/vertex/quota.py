"""What a job on Vertex AI charges to its project's quotas, beside what the stacks hold of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import Workspace
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.vertex.custom_job import charges
from training_platform.jobs.vertex.pools import vertex_target
from training_platform.quota.charges import Charge, Holder, shown
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import Line, project_ledgers
from training_platform.quota.quota_ids import is_guess
from training_platform.quota.snapshot import FOLDER, Snapshots, read_snapshots


@dataclass(frozen=True, kw_only=True)
class JobCharge:
    """One quota that a job charges: the line of the project's ledger with the job on it, and the job's own amount."""

    line: Line
    amount: float

    @property
    def headroom(self) -> float | None:
        """What the stacks leave for jobs, negative where they want more than there is; None for an unknown limit."""
        return None if self.line.headroom is None else self.line.headroom + self.amount


class Quotas:
    """Quotas of all projects and what stacks hold of them, read when a job asks, and once for all jobs of a check."""

    def __init__(self, workspace: Workspace, today: date) -> None:
        self._workspace, self._today = workspace, today

    @cached_property
    def snapshots(self) -> Snapshots:
        """The snapshots of all projects."""
        return read_snapshots(self._workspace.root, self._today)

    @cached_property
    def held(self) -> Mapping[str, list[Charge]]:
        """What stacks charge, by project."""
        by_project: dict[str, list[Charge]] = {}
        for charge in workspace_demand(self._workspace):
            for project in {key.project for key in charge.keys}:
                by_project.setdefault(project, []).append(charge)
        return by_project


def stale(job: ResolvedJob, quotas: Quotas) -> list[Finding]:
    """Return what is wrong with the snapshot of the job's project. Raises UnreadableError for it."""
    file = f"{FOLDER}/{job.scope.project}.yaml"
    for sentence in quotas.snapshots.unreadable:
        if sentence.startswith(f"{file}:"):
            raise UnreadableError(sentence)
    return [finding for finding in quotas.snapshots.findings if finding.file == file]


def job_charges(job: ResolvedJob, quotas: Quotas) -> list[JobCharge]:
    """Return what a job with a Vertex target charges, accelerators first."""
    holder = Holder(job.source.file, ("vertex",), job.name)
    own = [usage.by(holder) for usage in charges(job)]
    ledgers = project_ledgers([*quotas.held.get(job.scope.project, ()), *own], quotas.snapshots)
    held = {
        each.line.key: each
        for each in (
            JobCharge(line=line, amount=share.amount)
            for ledger in ledgers.values()
            for line in ledger.lines
            for share in line.holders
            if share.holder == holder
        )
    }
    return [next(held[key] for key in charge.keys if key in held) for charge in own]


def quota_findings(job: ResolvedJob, charged: list[JobCharge], snapshots: Snapshots) -> Iterator[Finding]:
    """Find quotas that are not known, that the job alone exceeds, or that stacks leave too little of (a warning)."""
    project = job.scope.project
    pull = f"training-platform quota pull {project}"
    if charged and snapshots.get(project) is None:
        message = f"no quotas of {project} are known: {FOLDER}/{project}.yaml is missing or rejected"
        yield job.finding(("vertex",), message, rule="job-quota-snapshot", allowed="a snapshot", nearest=pull)
        return
    for each in charged:
        line, headroom = each.line, each.headroom
        if line.limit is None or headroom is None:
            message = f"{line.key.quota_id} of {line.key.service}, which it charges, is not in {FOLDER}/{project}.yaml"
            nearest = f"{pull}, or its limit written there by hand"
            yield job.finding(
                _field(job),
                message,
                rule="job-quota-unknown",
                allowed="quota ids in the snapshot",
                nearest=nearest,
                severity="warning" if is_guess(line.key, listed=False) else "error",
            )
        elif each.amount > line.limit:
            yield _short(job, each, line.limit, "exceeded", f"and the limit is {shown(line.limit)}")
        elif each.amount > headroom:
            why = f"and the stacks, with all that they may run, leave {shown(headroom)} of {shown(line.limit)}"
            yield _short(job, each, headroom, "headroom", why)


def quota_notes(job: ResolvedJob, charged: list[JobCharge], snapshots: Snapshots) -> Iterator[str]:
    """Yield a line for each charge with limit and headroom, or one that says why there is none."""
    if resource := vertex_target(job).persistent_resource:
        yield f"charges nothing: persistent resource {resource} has been charged already"
    snapshot = snapshots.get(job.scope.project)
    taken = f", as of {snapshot.taken}" if snapshot else ""
    for each in charged:
        line, headroom = each.line, each.headroom
        limit = "not known" if line.limit is None else f"{shown(line.limit)}{taken}"
        left = "not known" if headroom is None else f"{shown(headroom)} beside the stacks"
        what = f"charges {shown(each.amount)} {line.unit} to {line.key} of {line.key.project}"
        yield f"{what}; limit {limit}; headroom {left}"


def _short(job: ResolvedJob, charge: JobCharge, most: float, what: str, why: str) -> Finding:
    unit, left = charge.line.unit, max(0, most)
    fits = int(left // (charge.amount / vertex_target(job).replicas))
    return job.finding(
        _field(job), f"{charge.line.key} is charged {shown(charge.amount)} {unit}, {why}", rule=f"job-quota-{what}",
        severity="warning" if what == "headroom" else "error",
        allowed=f"at most {shown(left)} {unit}", nearest=f"replicas {fits}" if fits else None,
    )  # fmt: skip


def _field(job: ResolvedJob) -> Path:
    return ("vertex", "topology" if vertex_target(job).topology else "replicas")
