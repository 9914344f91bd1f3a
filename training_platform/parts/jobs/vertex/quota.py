"""What a job on Vertex AI charges to its project's quotas, beside what the stacks hold of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from training_platform.config.reading.finding import Finding, Path, dotted
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import Workspace
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.vertex.custom_job import charges
from training_platform.parts.jobs.vertex.pools import vertex_target
from training_platform.quota.charges import Charge, Holder, shown
from training_platform.quota.demand import stack_demand
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
        self._held: dict[str, list[Charge]] = {}

    @cached_property
    def snapshots(self) -> Snapshots:
        """The snapshots of all projects."""
        return read_snapshots(self._workspace.root, self._today)

    def held(self, project: str) -> list[Charge]:
        """Return what stacks charge in a project: those whose resources are there."""
        if project not in self._held:
            space = self._workspace
            stacks = (stack for stack in space.stacks.values() if space.project_of(stack) == project)
            self._held[project] = [charge for stack in stacks for charge in stack_demand(stack, space)]
        return self._held[project]


def stale(job: ResolvedJob, quotas: Quotas) -> list[Finding]:
    """Return what is wrong with the snapshot of the job's project. Raises UnreadableError for it."""
    file = f"{FOLDER}/{job.scope.project}.yaml"
    if sentence := quotas.snapshots.unreadable.get(file):
        raise UnreadableError(sentence)
    return [finding for finding in quotas.snapshots.findings if finding.file == file]


def job_charges(job: ResolvedJob, quotas: Quotas) -> list[JobCharge]:
    """Return what a job with a Vertex target charges, accelerators first."""
    holder = Holder(job.source.file, ("vertex",), job.name)
    own = [usage.by(holder) for usage in charges(job)]
    keys = {key for charge in own for key in charge.keys}
    others = [charge for charge in quotas.held(job.scope.project) if not keys.isdisjoint(charge.keys)]
    ledgers = project_ledgers([*others, *own], quotas.snapshots)
    charged = {
        line.key: JobCharge(line=line, amount=share.amount)
        for ledger in ledgers.values()
        for line in ledger.lines
        for share in line.holders
        if share.holder == holder
    }
    return [next(charged[key] for key in charge.keys if key in charged) for charge in own]


def quota_findings(job: ResolvedJob, charged: list[JobCharge], snapshots: Snapshots) -> Iterator[Finding]:
    """Find quotas that are not known, that the job alone exceeds, or that stacks leave too little of (a warning)."""
    project = job.scope.project
    pull = f"training-platform quota pull {project}"
    snapshot = snapshots.get(project)
    if snapshot and snapshot.placeholder:
        return  # its own finding says so
    if charged and snapshot is None:
        file = f"{FOLDER}/{project}.yaml"
        message, missing = f"no quotas of {project} are known: {file} is missing or rejected", ((file,),)
        yield job.finding(
            ("vertex",), message, rule="job-quota-snapshot", allowed="a snapshot", nearest=pull, spoils=missing,
            rests_on=missing,
        )  # fmt: skip
        return
    path: Path = ("vertex", "topology" if vertex_target(job).topology else "replicas")
    for charge in charged:
        line, headroom = charge.line, charge.headroom
        if line.limit is None or headroom is None:
            message = f"{line.key.quota_id} of {line.key.service}, which it charges, is not in {FOLDER}/{project}.yaml"
            nearest = f"{pull}, or its limit written there by hand"
            yield job.finding(
                path, message, rule="job-quota-unknown", allowed="quota ids in the snapshot", nearest=nearest,
                severity="warning" if is_guess(line.key, listed=False) else "error",
            )  # fmt: skip
        elif charge.amount > min(line.limit, headroom):
            over, left = charge.amount > line.limit, max(0, line.limit if charge.amount > line.limit else headroom)
            why = f"leave {shown(headroom)} of {shown(line.limit)}"
            why = f"the limit is {shown(line.limit)}" if over else f"the stacks, with all that they may run, {why}"
            fits = int(left // (charge.amount / vertex_target(job).replicas))
            wanted = charge.amount if over else line.used
            way_out = f"request {shown(wanted)} {line.unit} (training-platform quota plan)"
            if not over:  # so a stack holds the rest
                holder = next(held.holder for held in line.holders if held.holder.stack != job.source.file)
                field = f"{dotted(holder.field or holder.path)} of {holder.stack}"
                way_out = f"lower {field} by {shown(charge.amount - left)} {line.unit}; or {way_out}"
            most = f"at most {shown(left)} {line.unit}" if left else f"a limit of {shown(charge.amount)} {line.unit}"
            yield job.finding(
                path, f"{line.key} is charged {shown(charge.amount)} {line.unit}, and {why}",
                rule=f"job-quota-{'exceeded' if over else 'headroom'}", severity="error" if over else "warning",
                allowed=most, nearest=f"replicas {fits}" if fits else way_out,
            )  # fmt: skip


def quota_notes(job: ResolvedJob, charged: list[JobCharge], snapshots: Snapshots) -> Iterator[str]:
    """Yield a line for each charge with limit and headroom, or one that says why there is none."""
    if resource := vertex_target(job).persistent_resource:
        yield f"charges nothing: persistent resource {resource} has been charged already"
    snapshot = snapshots.get(job.scope.project)
    taken = f", as of {snapshot.taken}" if snapshot else ""
    for charge in charged:
        line, headroom = charge.line, charge.headroom
        limit = "not known" if line.limit is None else f"{shown(line.limit)}{taken}"
        left = "not known" if headroom is None else f"{shown(headroom)} beside the stacks"
        what = f"charges {shown(charge.amount)} {line.unit} to {line.key} of {line.key.project}"
        yield f"{what}; limit {limit}; headroom {left}"
