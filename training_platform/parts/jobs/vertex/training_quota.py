"""A job's charges to its project's quotas on Vertex AI, in addition to the charges of stacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from training_platform.config.reading.declaration import Draft, finding, located
from training_platform.config.reading.finding import Finding, Path, dotted
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import Workspace
from training_platform.parts.jobs.job_rules import vertex_rule
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.vertex.custom_job import charges
from training_platform.parts.jobs.vertex.worker_pools import vertex_target
from training_platform.quota.charges import Charge, Holder, QuotaKey, shown
from training_platform.quota.demand import stack_demand
from training_platform.quota.ledger import Line, project_ledgers
from training_platform.quota.quota_ids import is_guess
from training_platform.quota.snapshot import FOLDER, Snapshots, read_snapshots

if TYPE_CHECKING:
    from training_platform.checks.parts import CheckedStacks

SNAPSHOT_ROLE = "roles/cloudquotas.viewer"  # members of a team have it not


@dataclass(frozen=True, kw_only=True)
class JobCharge:
    """A quota that a job charges: the project's total charges including the job, and the job's own amount."""

    line: Line
    amount: float

    @property
    def headroom(self) -> float | None:
        """Quota that the stacks leave for jobs. Negative if they exceed the limit, None if the limit is unknown."""
        return None if self.line.headroom is None else self.line.headroom + self.amount


class Quotas:
    """The quotas of all projects, and the stacks' charges to them. Both are read only once for all jobs of a check.

    They are read on first use. If the whole repository is checked, ``stacks`` are the checked stacks, which have
    already read both.
    """

    def __init__(self, workspace: Workspace, today: date, stacks: CheckedStacks | None = None) -> None:
        self._workspace = workspace
        self._today = today
        self._stacks = stacks
        self._held: dict[str, list[Charge]] = {}

    @cached_property
    def snapshots(self) -> Snapshots:
        """The snapshots of all projects."""
        return self._stacks.snapshots if self._stacks else read_snapshots(self._workspace.root, self._today)

    def held(self, project: str) -> list[Charge]:
        """Return the charges of all stacks in a project."""
        if project not in self._held:
            workspace = self._workspace
            stacks = [stack for stack in workspace.stacks.values() if workspace.project_of(stack) == project]
            if self._stacks:
                names = {stack.name for stack in stacks}
                charges = [charge for charge in self._stacks.charges if charge.holder.stack in names]
            else:
                charges = [charge for stack in stacks for charge in stack_demand(stack, workspace)]
            self._held[project] = charges
        return self._held[project]


def snapshot_findings(job: ResolvedJob, quotas: Quotas) -> list[Finding]:
    """Return the findings about the snapshot of the job's project. Raises UnreadableError if it is broken."""
    file = f"{FOLDER}/{job.scope.project}.yaml"
    if sentence := quotas.snapshots.unreadable.get(file):
        raise UnreadableError(sentence)
    return [finding for finding in quotas.snapshots.findings if finding.file == file]


def job_charges(job: ResolvedJob, quotas: Quotas) -> list[JobCharge]:
    """Return the charges of a job with a Vertex target, accelerators first."""
    holder = Holder(job.source.file, ("vertex",), label=job.name)
    of_job = [usage.by(holder) for usage in charges(job)]
    keys = {key for charge in of_job for key in charge.keys}
    of_stacks = [charge for charge in quotas.held(job.scope.project) if not keys.isdisjoint(charge.keys)]
    charged: dict[QuotaKey, JobCharge] = {}
    for ledger in project_ledgers([*of_stacks, *of_job], quotas.snapshots).values():
        for line in ledger.lines:
            for share in line.holders:
                if share.holder == holder:
                    charged[line.key] = JobCharge(line=line, amount=share.amount)
    return [next(charged[key] for key in charge.keys if key in charged) for charge in of_job]


def quota_findings(job: ResolvedJob, charged: list[JobCharge], snapshots: Snapshots) -> list[Finding]:
    """Find unknown quotas, and quotas that the job exceeds by itself or together with the stacks (a warning)."""
    return located(_drafts(job, charged, snapshots))


JOB_QUOTA_SNAPSHOT = vertex_rule(
    "job-quota-snapshot",
    "Find a job on Vertex AI in a project without a snapshot of its limits.",
)


JOB_QUOTA_UNKNOWN = vertex_rule(
    "job-quota-unknown",
    "Find a quota that a job charges but the snapshot does not list.",
)


def _drafts(job: ResolvedJob, charged: list[JobCharge], snapshots: Snapshots) -> Iterator[Draft]:
    project = job.scope.project
    pull = f"training-platform quota pull {project}"
    by_whom = f"which anybody with {SNAPSHOT_ROLE} can pull"
    snapshot = snapshots.get(project)
    if snapshot and snapshot.placeholder:
        return  # another finding reports it
    if charged and snapshot is None:
        file = f"{FOLDER}/{project}.yaml"
        yield finding(
            job,
            ("vertex",),
            f"no quotas of {project} are known: {file} is missing or rejected",
            rule=JOB_QUOTA_SNAPSHOT,
            allowed=f"a snapshot, {by_whom}",
            nearest=pull,
            spoils=((file,),),
            rests_on=((file,),),
        )
        return
    path: Path = ("vertex", "topology" if vertex_target(job).topology else "replicas")
    for charge in charged:
        line = charge.line
        headroom = charge.headroom
        if line.limit is None or headroom is None:
            yield finding(
                job,
                path,
                f"{line.key.quota_id} of {line.key.service}, which it charges, is not in {FOLDER}/{project}.yaml",
                rule=JOB_QUOTA_UNKNOWN,
                severity="warning" if is_guess(line.key, listed=False) else "error",
                allowed=f"quota ids in the snapshot, {by_whom}",
                nearest=f"{pull}, or write its limit there by hand",
            )
        elif charge.amount > line.limit:
            yield _over_limit(job, path, charge, line.limit)
        elif charge.amount > headroom:
            yield _over_headroom(job, path, charge, line.limit, headroom)


JOB_QUOTA_EXCEEDED = vertex_rule(
    "job-quota-exceeded",
    "Find a job that exceeds a limit of its project, even without other usage.",
)


def _over_limit(job: ResolvedJob, path: Path, charge: JobCharge, limit: float) -> Draft:
    """Return a finding for a job that needs more than the limit by itself."""
    line = charge.line
    needed = f"{shown(charge.amount)} {line.unit}"
    return finding(
        job,
        path,
        f"{line.key} is charged {needed}, but the limit is {shown(limit)}",
        rule=JOB_QUOTA_EXCEEDED,
        allowed=f"at most {shown(limit)} {line.unit}" if limit > 0 else f"a limit of {needed}",
        nearest=_replicas_within(job, charge, limit) or f"request {needed} (training-platform quota plan)",
    )


JOB_QUOTA_HEADROOM = vertex_rule(
    "job-quota-headroom",
    "Find a job that needs more of a limit than the stacks at their maximum size leave.",
    severity="warning",
)


def _over_headroom(job: ResolvedJob, path: Path, charge: JobCharge, limit: float, headroom: float) -> Draft:
    """Return a finding for a job that needs more than the stacks leave of a limit."""
    line = charge.line
    available = max(0, headroom)
    holder = next(held.holder for held in line.holders if held.holder.stack != job.source.file)
    missing = f"{shown(charge.amount - available)} {line.unit}"
    lower = f"lower {dotted(holder.field or holder.path)} of {holder.stack} by {missing}"
    request = f"request {shown(line.used)} {line.unit} (training-platform quota plan)"
    stacks = f"the stacks at their maximum size leave {shown(headroom)} of {shown(limit)}"
    return finding(
        job,
        path,
        f"{line.key} is charged {shown(charge.amount)} {line.unit}, and {stacks}",
        rule=JOB_QUOTA_HEADROOM,
        allowed=f"at most {shown(available)} {line.unit}"
        if available
        else f"a limit of {shown(charge.amount)} {line.unit}",
        nearest=_replicas_within(job, charge, available) or f"{lower}; or {request}",
    )


def _replicas_within(job: ResolvedJob, charge: JobCharge, amount: float) -> str | None:
    """Return how many replicas an amount of quota is enough for, or None if it is not enough for one."""
    replicas = int(max(0, amount) // (charge.amount / vertex_target(job).replicas))
    return f"replicas {replicas}" if replicas else None


def quota_notes(job: ResolvedJob, charged: list[JobCharge], snapshots: Snapshots) -> Iterator[str]:
    """Yield a line with limit and headroom for each charge, and one about machines that are already charged."""
    if resource := vertex_target(job).persistent_resource:
        yield f"charges nothing: persistent resource {resource} already charges the quota"
    snapshot = snapshots.get(job.scope.project)
    taken = f", as of {snapshot.taken}" if snapshot else ""
    for charge in charged:
        line = charge.line
        limit = "not known" if line.limit is None else f"{shown(line.limit)}{taken}"
        headroom = "not known" if charge.headroom is None else f"{shown(charge.headroom)} left by the stacks"
        amount = f"charges {shown(charge.amount)} {line.unit} to {line.key} of {line.key.project}"
        yield f"{amount}; limit {limit}; headroom {headroom}"
