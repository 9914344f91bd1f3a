"""Training jobs: one file under ``jobs/<team>/`` becomes a JobSet for GKE or a CustomJob for Vertex AI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from training_platform.checks.parts import CheckedStacks, CheckOfFiles, Part

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    import click

    from training_platform.config.reading.finding import Finding
    from training_platform.config.workspace import Workspace
    from training_platform.quota.charges import QuotaKey


def _init_job() -> click.Command:
    from training_platform.parts.jobs.cli.init_job import init_job

    return init_job


def _job() -> click.Command:
    from training_platform.parts.jobs.cli.job import app

    return app


def _image() -> click.Command:
    from training_platform.parts.jobs.cli.image import app

    return app


def _persistent_resource() -> click.Command:
    from training_platform.parts.jobs.cli.persistent_resource import app

    return app


def _findings(stacks: CheckedStacks) -> tuple[list[Finding], list[str]]:
    from training_platform.parts.jobs.job_checks import judge_folder

    return judge_folder(stacks)


def _quota_needs(root: Path, workspace: Workspace, today: date) -> dict[QuotaKey, float]:
    from training_platform.parts.jobs.job_checks import needs_of_jobs

    return needs_of_jobs(root, workspace, today)


def _schemas() -> dict[str, dict[str, Any]]:
    from training_platform.parts.jobs.schema import schema_files

    return schema_files()


def _declare_rules() -> None:
    from training_platform.parts.jobs import submission_rights  # noqa: F401
    from training_platform.parts.jobs.gke import rules  # noqa: F401
    from training_platform.parts.jobs.runs import submission  # noqa: F401
    from training_platform.parts.jobs.vertex import rules as vertex_rules  # noqa: F401
    from training_platform.parts.jobs.vertex import training_quota  # noqa: F401


PART = Part(
    commands={"init job": _init_job, "job": _job, "image": _image, "persistent-resource": _persistent_resource},
    files=CheckOfFiles(folder="jobs", findings=_findings, quota_needs=_quota_needs),
    schemas=_schemas,
    declare_rules=_declare_rules,
)
