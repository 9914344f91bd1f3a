"""Renders a job file for one target, and checks job files with their charges to quotas.

Imports that only one target needs are inside functions: importing both would be a third of the time of a rendering.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import yaml

from training_platform.config.reading.finding import Finding, UserError, others_go_on
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.jobs.common_rules import job_findings
from training_platform.parts.jobs.job_model import Target
from training_platform.parts.jobs.naming import as_run, point_runs
from training_platform.parts.jobs.resolve import FOLDER, ResolvedJob, job_source, parse_job, places_on_gke, read_job
from training_platform.quota.charges import QuotaKey, shown

if TYPE_CHECKING:
    from training_platform.parts.jobs.job_cost import JobCost
    from training_platform.parts.jobs.vertex.training_quota import Quotas


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """A rendered job: the manifest or body, empty if the job has errors, and notes for people."""

    text: str = ""
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a finding is an error."""
        return any(finding.severity == "error" for finding in self.findings)


def render_job(
    path: FilePath, root: FilePath, target: Target | None, today: date, *, as_json: bool = False
) -> Rendered:
    """Render one job file as YAML, or JSON; findings about its other target do not count.

    Raises UnreadableError and UserError.
    """
    job, findings = read_job(path, root, read_workspace(root))
    if job is None:
        return Rendered(findings=tuple(findings))
    chosen = chosen_target(job, target)
    verdict = judge(job, chosen, today)
    if verdict.failed:
        return verdict
    if chosen == "vertex":
        from training_platform.parts.jobs.vertex.custom_job import vertex_body

        body = vertex_body(as_run(job, job.name)).body
        return replace(verdict, text=json_text(body) if as_json else yaml_text(body))
    from training_platform.parts.jobs.gke.jobset import jobset

    # A run named like the job, and a JobSet for each point of a sweep.
    manifests = [jobset(run) for run in point_runs(job, job.name)]
    if as_json:
        several = {"apiVersion": "v1", "kind": "List", "items": manifests}
        return replace(verdict, text=json_text(several if len(manifests) > 1 else manifests[0]))
    return replace(verdict, text="---\n".join(map(yaml_text, manifests)))


def cost_of_file(
    path: FilePath, root: FilePath, target: Target | None, today: date
) -> tuple[list[JobCost], tuple[Finding, ...]]:
    """Return the costs of a job file's targets, none if it has errors about anything but quotas.

    Raises UnreadableError and UserError.
    """
    from training_platform.config.own_prices import read_own_prices
    from training_platform.parts.jobs.job_cost import job_cost

    book, wrong = read_own_prices(root)
    job, findings = read_job(path, root, read_workspace(root))
    if job is None:
        return [], (*wrong, *findings)
    chosen = targets(job) if target is None else [chosen_target(job, target)]
    judged = list(wrong)
    for each_target in chosen:
        judged += judge(job, each_target, today).findings
    errors = tuple(finding for finding in judged if finding.severity == "error")
    if not all(error.rule.startswith("job-quota-") for error in errors):
        return [], tuple(judged)
    return [job_cost(job, each_target, book=book, today=today) for each_target in chosen], errors


def judge_folder(root: FilePath, workspace: Workspace, today: date) -> tuple[list[Finding], list[str]]:
    """Return the errors and warnings about a repository's job files, and sentences about unreadable ones.

    Notes are for the owner of a file, who runs ``job check``.
    """
    findings, unreadable = check_jobs(job_files(root), root, workspace, today)
    return [finding for finding in findings if finding.severity != "note"], unreadable


def check_jobs(
    paths: Iterable[FilePath], root: FilePath, workspace: Workspace, today: date
) -> tuple[list[Finding], list[str]]:
    """Return the findings about job files, and sentences about unreadable ones."""

    @cache
    def quotas() -> Quotas:
        from training_platform.parts.jobs.vertex.training_quota import Quotas

        return Quotas(workspace, today)

    findings: list[Finding] = []
    unreadable: list[str] = []
    for path in paths:
        try:
            with others_go_on(path.as_posix(), unreadable):
                findings += check_job(path, root, workspace, today, quotas)
                findings += job_rights(path, root, workspace)
        except UnreadableError as error:
            unreadable.append(str(error))
    return findings, list(dict.fromkeys(unreadable))


def check_job(
    path: FilePath, root: FilePath, workspace: Workspace, today: date, quotas: Callable[[], Quotas] | None = None
) -> tuple[Finding, ...]:
    """Return the findings about a job file for all of its targets. Raises UnreadableError."""
    source = job_source(path, root)
    job, model_findings = parse_job(source, workspace)
    findings = list(model_findings)
    for index in range(1, places_on_gke(source.value)):
        other_place, rejected = parse_job(source, workspace, index)
        findings += rejected if other_place is None else judge(other_place, "gke", today).findings
    if job:
        for target in targets(job):
            findings += judge(job, target, today, quotas).findings
    return tuple(dict.fromkeys(findings))


def notes_of_file(path: FilePath, root: FilePath, workspace: Workspace, today: date) -> list[str]:
    """Return notes about a job's requests on each of its targets without errors. Raises UnreadableError."""
    job, _ = parse_job(job_source(path, root), workspace)
    if job is None:
        return []
    notes = [(target, note) for target in targets(job) for note in judge(job, target, today).notes]
    return [f"{job.source.file} ({target}): {note}" for target, note in notes]


def job_rights(path: FilePath, root: FilePath, workspace: Workspace) -> tuple[Finding, ...]:
    """Return the findings about rights that a job needs and no stack grants; it plans the stacks.

    Raises UnreadableError.
    """
    from training_platform.parts.jobs.submission_rights import rights_findings

    source = job_source(path, root)
    findings: list[Finding] = []
    for index in range(places_on_gke(source.value)):
        job, _ = parse_job(source, workspace, index)
        if job:
            for target in targets(job):
                findings += rights_findings(job, target)
    return tuple(dict.fromkeys(findings))


def places_of_file(path: FilePath, root: FilePath) -> int:
    """Return the number of places on GKE in a job file, at least 1. Raises UnreadableError."""
    return places_on_gke(job_source(path, root).value)


def needs_of_jobs(root: FilePath, workspace: Workspace, today: date) -> dict[QuotaKey, float]:
    """Return the most of each quota that stacks and any single job without errors need together.

    Raises UnreadableError.
    """
    from training_platform.parts.jobs.vertex.rules import vertex_findings
    from training_platform.parts.jobs.vertex.training_quota import Quotas, job_charges

    quotas = Quotas(workspace, today)
    needs: dict[QuotaKey, float] = {}
    for path in job_files(root):
        job, _ = read_job(path, root, workspace)
        if job and job.spec.vertex and not any(finding.severity == "error" for finding in vertex_findings(job)):
            for charge in job_charges(job, quotas):
                needs[charge.line.key] = max(needs.get(charge.line.key, 0), charge.line.used)
    return needs


def job_files(root: FilePath) -> list[FilePath]:
    """Return every YAML file below ``jobs/``, including those in the wrong folder."""
    return sorted(path for pattern in ("*.yaml", "*.yml") for path in (root / FOLDER).rglob(pattern))


def targets(job: ResolvedJob) -> list[Target]:
    """Return the targets of a job."""
    present: Iterable[tuple[Target, object]] = (("gke", job.spec.gke), ("vertex", job.spec.vertex))
    return [target for target, section in present if section is not None]


def chosen_target(job: ResolvedJob, target: Target | None) -> Target:
    """Return the target if the job has it, or the job's only target if it is None. Raises UserError."""
    available = targets(job)
    if target is None and len(available) > 1:
        raise UserError(f"{job.source.file} can run on {' and on '.join(available)}: say which with --target.")
    if target is not None and target not in available:
        raise UserError(f"{job.source.file} has no {target} target; it has {' and '.join(available)}.")
    return target or available[0]


def judge(job: ResolvedJob, target: Target, today: date, quotas_of_all: Callable[[], Quotas] | None = None) -> Rendered:
    """Return findings and notes about one of a job's targets; ``quotas_of_all`` returns quotas shared by all jobs.

    Raises UnreadableError for a broken quota snapshot.
    """
    common = list(job_findings(job))
    if target == "gke":
        from training_platform.parts.jobs.gke.rules import gke_findings

        rendered = Rendered(findings=(*common, *gke_findings(job)))
        if rendered.failed:
            return rendered
        return replace(rendered, notes=(_queue_note(job), _parts_note(job)))
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
        return Rendered(findings=tuple(findings))  # its charges are unknown
    quotas = quotas_of_all() if quotas_of_all else Quotas(job.workspace, today)
    snapshots = quotas.snapshots
    findings += snapshot_findings(job, quotas)
    charged = job_charges(job, quotas)
    findings += quota_findings(job, charged, snapshots)
    return Rendered(findings=tuple(findings), notes=tuple(quota_notes(job, charged, snapshots)))


def _queue_note(job: ResolvedJob) -> str:
    from training_platform.parts.jobs.gke.pods import gke_target, layout
    from training_platform.parts.jobs.gke.rules import cpu_quota, demand, reach

    gke, flavor = gke_target(job)
    jobs, hosts = layout(gke, flavor)
    pods = f"{jobs} x {hosts} VMs" if jobs > 1 else f"{hosts} VM{'s' if hosts > 1 else ''}"
    if gke.pool:
        return (
            f"asks for {demand(job):,} vCPUs of pool {gke.pool} in {gke.cluster} ({hosts} pod{'s' * (hosts > 1)}), "
            f"which no queue counts; team {job.team.name} may request {cpu_quota(job):,} there"
        )
    nominal, most = reach(job)
    return (
        f"asks for {demand(job):,} {flavor.accelerator.resource} of {flavor.name} in {gke.cluster} ({pods}); "
        f"team {job.team.name}: nominal quota {nominal:,}, with what it borrows {shown(most)}"
    )


def _parts_note(job: ResolvedJob) -> str:
    from training_platform.parts.jobs.gke.pods import chips_each, cpus_each, gke_target, pod_parts

    gke, flavor = gke_target(job)
    parts = pod_parts(job)
    cpus = cpus_each(job) or parts.cpus
    size = parts.shared_memory if job.spec.shared_memory_gib is None else job.spec.shared_memory_gib
    shared = bool(size and (chips_each(gke, flavor) or job.spec.data_loaders))
    return (
        f"each pod has at most {parts.memory:,} GiB of memory{f', {size:,} of them in /dev/shm' * shared}, and "
        f"{parts.disk:,} GiB of disk; {f'{cpus} vCPUs' if cpus else 'all vCPUs of its VM'}"
    )


_PLAIN = re.compile(r"[A-Za-z]([A-Za-z0-9_./:-]*[A-Za-z0-9_./-])?")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def yaml_text(value: Any) -> str:
    """Return a value as YAML, keys in their order; a string of several lines is a block, and an alias when repeated.

    Strings that some YAML parser takes for a number, a boolean or a date are quoted: kubectl reads ``1e3`` as a number
    and ``y`` as true, and PyYAML writes both plain.
    """
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=_ONE_LINE))


def json_text(value: Any) -> str:
    """Return a value as JSON, keys in their order."""
    return json.dumps(value, indent=2) + "\n"


# libyaml's dumper is ten times faster and writes the same text; a PyYAML without libyaml has only its own.
_Fastest: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_ONE_LINE = 2**31 - 1  # libyaml's longest line


class _Dumper(_Fastest):  # type: ignore[misc] # the base is chosen at run time
    def ignore_aliases(self, data: Any) -> bool:
        return not (isinstance(data, str) and "\n" in data)  # the launcher, in each pool of a custom job


def _string_node(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None if _PLAIN.fullmatch(value) and value.lower() not in _WORDS else '"'
    if "\n" in value:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _string_node)
