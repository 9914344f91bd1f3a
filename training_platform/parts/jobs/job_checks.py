"""Checks jobs: findings and notes about a job file's targets, their quota charges, and the permissions they need.

Imports that only one target needs are inside functions, since importing both would take a third of the rendering time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from training_platform.config.reading.finding import Finding, UserError, others_go_on
from training_platform.config.reading.section import counted
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import Workspace
from training_platform.parts.jobs.common_rules import job_findings
from training_platform.parts.jobs.job_file import FOLDER, job_source
from training_platform.parts.jobs.job_model import Target, VertexTarget
from training_platform.parts.jobs.resolve import ResolvedJob, parse_places
from training_platform.quota.charges import QuotaKey, shown

if TYPE_CHECKING:
    from training_platform.checks.parts import CheckedStacks
    from training_platform.parts.jobs.gke.gke_job import GkeJob
    from training_platform.parts.jobs.vertex.training_quota import Quotas


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The findings about a job on one of its targets. If none is an error, also notes about its requests."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether one of the findings is an error."""
        return any(finding.severity == "error" for finding in self.findings)


def judge_folder(stacks: CheckedStacks) -> tuple[list[Finding], list[str]]:
    """Return the errors and warnings about a repository's job files, and sentences about unreadable ones.

    Notes are left out, since they are for the owner of a file, who runs ``job check``. Notes about things that could
    not be checked are included.
    """
    findings, unreadable = check_jobs(job_files(stacks.root), stacks.root, stacks.workspace, stacks.today, stacks)
    return [finding for finding in findings if finding.severity != "note" or finding.unjudged], unreadable


def check_jobs(
    paths: Iterable[FilePath], root: FilePath, workspace: Workspace, today: date, stacks: CheckedStacks | None = None
) -> tuple[list[Finding], list[str]]:
    """Return the findings about job files, and sentences about unreadable ones.

    ``stacks`` are the stacks that the same command checked.
    """

    @cache
    def quotas() -> Quotas:
        from training_platform.parts.jobs.vertex.training_quota import Quotas

        return Quotas(workspace, today, stacks)

    findings: list[Finding] = []
    unreadable: list[str] = []
    for path in paths:
        try:
            with others_go_on(path.as_posix(), unreadable):
                findings += check_job(path, root, workspace, today, quotas)
        except UnreadableError as error:
            unreadable.append(str(error))
    return findings, list(dict.fromkeys(unreadable))


def check_job(
    path: FilePath, root: FilePath, workspace: Workspace, today: date, quotas: Callable[[], Quotas] | None = None
) -> tuple[Finding, ...]:
    """Return the findings about a job file: for each cluster or region it names, and about missing permissions.

    Missing permissions are those that no stack grants. ``quotas`` returns the quotas that several files share. Raises
    UnreadableError.
    """
    from training_platform.parts.jobs.submission_rights import rights_findings

    source = job_source(path, root)
    findings: list[Finding] = []
    for placed in parse_places(source, workspace):
        findings += placed.findings
        if placed.job is None:
            continue
        for target in placed.targets:
            findings += judge(placed.job, target, today, quotas).findings
        for target in placed.targets:
            findings += rights_findings(placed.job, target)
    return tuple(dict.fromkeys(findings))  # a later place repeats what is found of the file


def judge(
    job: ResolvedJob, target: Target, today: date, quotas_of_all: Callable[[], Quotas] | None = None
) -> Judgement:
    """Return findings and notes about one of a job's targets. ``quotas_of_all`` returns quotas that all jobs share.

    Raises UnreadableError for a broken quota snapshot.
    """
    common = list(job_findings(job))
    if target == "gke":
        from training_platform.parts.jobs.gke.gke_job import on_gke
        from training_platform.parts.jobs.gke.rules import gke_findings

        judgement = Judgement(findings=(*common, *gke_findings(job)))
        if judgement.failed:
            return judgement
        job_on_gke = on_gke(job)
        return replace(judgement, notes=(_queue_note(job_on_gke), _parts_note(job_on_gke), _run_note(job_on_gke)))
    from training_platform.parts.jobs.vertex.rules import vertex_findings
    from training_platform.parts.jobs.vertex.training_quota import (
        Quotas,
        job_charges,
        quota_findings,
        quota_notes,
        snapshot_findings,
    )

    findings = [*common, *vertex_findings(job)]
    if any(finding.severity == "error" for finding in findings):
        return Judgement(findings=tuple(findings))  # its charges are unknown
    quotas = quotas_of_all() if quotas_of_all else Quotas(job.workspace, today)
    snapshots = quotas.snapshots
    findings += snapshot_findings(job, quotas)
    charged = job_charges(job, quotas)
    findings += quota_findings(job, charged, snapshots)
    timeout = (_timeout_note(job.spec.vertex),) if job.spec.vertex else ()
    notes = (*quota_notes(job, charged, snapshots), *timeout)
    return Judgement(findings=tuple(findings), notes=notes)


def notes_of_file(path: FilePath, root: FilePath, workspace: Workspace, today: date) -> list[str]:
    """Return notes about a job's requests on each target that has no errors. Raises UnreadableError."""
    source = job_source(path, root)
    notes = []
    for job, at_targets, _ in parse_places(source, workspace):
        if job is None:
            continue
        for target in at_targets:
            notes += [f"{source.file} ({target}): {note}" for note in judge(job, target, today).notes]
    return notes


def needs_of_jobs(root: FilePath, workspace: Workspace, today: date) -> dict[QuotaKey, float]:
    """Return, for each quota, the largest amount that all stacks and a single job without errors need together.

    Raises UnreadableError.
    """
    from training_platform.parts.jobs.vertex.rules import vertex_findings
    from training_platform.parts.jobs.vertex.training_quota import Quotas, job_charges

    quotas = Quotas(workspace, today)
    needs: dict[QuotaKey, float] = {}
    for path in job_files(root):
        for job, at_targets, _ in parse_places(job_source(path, root), workspace):
            if job is None or "vertex" not in at_targets:
                continue
            if any(finding.severity == "error" for finding in vertex_findings(job)):
                continue
            for charge in job_charges(job, quotas):
                needs[charge.line.key] = max(needs.get(charge.line.key, 0), charge.line.used)
    return needs


def targets(job: ResolvedJob) -> list[Target]:
    """Return the targets of a job."""
    present: Iterable[tuple[Target, object]] = (("gke", job.spec.gke), ("vertex", job.spec.vertex))
    return [target for target, section in present if section is not None]


def chosen_target(job: ResolvedJob, target: Target | None) -> Target:
    """Return ``target`` if the job has it. If it is None, return the job's only target. Raises UserError."""
    available = targets(job)
    if target is None and len(available) > 1:
        raise UserError(f"{job.source.file} can run on {' and on '.join(available)}: choose one with --target.")
    if target is not None and target not in available:
        raise UserError(f"{job.source.file} has no {target} target; it has {' and '.join(available)}.")
    return target or available[0]


def job_files(root: FilePath) -> list[FilePath]:
    """Return every YAML file below ``jobs/``, including those in the wrong folder."""
    return sorted(path for pattern in ("*.yaml", "*.yml") for path in (root / FOLDER).rglob(pattern))


def _queue_note(job: GkeJob) -> str:
    from training_platform.parts.jobs.gke.team_quota import cpu_quota, reach

    gke = job.gke
    vms = f"{job.slices} x {job.hosts} VMs" if job.slices > 1 else counted(job.hosts, "VM")
    if gke.pool:
        return (
            f"requests {job.demand:,} vCPUs of pool {gke.pool} in {gke.cluster} ({counted(job.hosts, 'pod')}), "
            f"which use no queue quota; team {job.team.name} may request {cpu_quota(job):,} there"
        )
    nominal, reachable = reach(job)
    return (
        f"requests {job.demand:,} {job.flavor.accelerator.resource} of {job.flavor.name} in {gke.cluster} ({vms}); "
        f"team {job.team.name}: nominal quota {nominal:,}, with borrowing {shown(reachable)}"
    )


def _run_note(job: GkeJob) -> str:
    if job.run_hours is None:
        return "runs without a time limit (max_run_hours)"
    return f"runs for at most {counted(job.run_hours, 'hour')} (max_run_hours of the job, or the default)"


def _timeout_note(target: VertexTarget) -> str:
    default = "" if "timeout_hours" in target.model_fields_set else ", the default"
    return f"runs for at most {counted(target.timeout_hours, 'hour')} (timeout_hours{default})"


def _parts_note(job: GkeJob) -> str:
    from training_platform.parts.jobs.gke.pod_sizes import pod_parts

    parts = pod_parts(job)
    cpus = job.cpus_per_pod or parts.cpus
    size = parts.shared_memory if job.spec.shared_memory_gib is None else job.spec.shared_memory_gib
    memory = f"{parts.memory:,} GiB of memory"
    if size and (job.chips_per_pod or job.spec.data_loaders):
        memory += f", {size:,} GiB of them for /dev/shm"
    vcpus = f"{cpus} vCPUs" if cpus else "all vCPUs of its VM"
    return f"each pod has at most {memory}, and {parts.disk:,} GiB of disk; {vcpus}"
