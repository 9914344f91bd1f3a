"""The examples' job files, in a copy of the organisation."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.examples.jobs.conftest import EXAMPLES
from tests.support.places import ORGANISATION
from training_platform.config.reading.clock import today
from training_platform.parts.jobs.render import render_job

GKE = {"pretrain_jax": "nlp", "fsdp_torch": "vision", "all_gather": "vision", "wandb_launch": "vision"}
VERTEX = {"finetune_vit": "customJobs", "tune": "hyperparameterTuningJobs", "dask_cluster": "customJobs"}


def placed(root: Path, example: str, team: str) -> Path:
    """Copy an example's job file to its team, in a copy of the organisation."""
    for name in ("stacks", "jobs"):
        shutil.copytree(ORGANISATION / name, root / name)
    shutil.copy(ORGANISATION / "Pulumi.yaml", root)
    path = root / "jobs" / team / f"{example.replace('_', '-')}.yaml"
    shutil.copy(EXAMPLES / example / "job.yaml", path)
    return path


def rendered(root: Path, example: str, team: str) -> str:
    rendered_job = render_job(placed(root, example, team), root, None, today(ORGANISATION))
    assert [str(finding) for finding in rendered_job.findings if finding.severity != "note"] == []
    return rendered_job.text
