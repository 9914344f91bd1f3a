"""Reports with something of every kind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from tests.support.places import ORGANISATION, ROOT
from training_platform.checks.report import Report, StackReport
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.reading.finding import Finding, Position

TODAY = date(2026, 11, 21)
EXEMPTIONS = """\
exemptions:
  - rule: boot-disk-size
    stack: prod
    path: clusters.us-central1.node_pools.h100
    reason: The cache <b>moves</b> | to Filestore.
    owner: ml-platform@example.com
    expires: "2027-01-31"
  - {rule: labels, stack: prod, path: alerts, reason: once, owner: ml@example.com, expires: "2026-11-20"}
  - {rule: labels, stack: dev, path: alerts, reason: once, owner: ml@example.com, expires: "2027-11-20"}
"""
REQUESTS = """\
    quota_requests:
      more-h100:
        service: compute.googleapis.com
        quota_id: GPUS-PER-GPU-FAMILY-per-project-region
        dimensions: {region: us-central1, gpu_family: NVIDIA_H100}
        value: 96
        justification: Two teams train at once.
        contact: ml-platform@example.com
      more-v4:
        service: compute.googleapis.com
        quota_id: TPU-PODSLICE-V4-per-project-region
        dimensions: {region: us-central2}
        value: 256
        justification: A second cube.
        contact: ml-platform@example.com
      granted:
        service: compute.googleapis.com
        quota_id: N2-CPUS-per-project-region
        dimensions: {region: us-central2}
        value: 48
        justification: System nodes.
        contact: ml-platform@example.com
    filestore:
"""


def finding(message: str = "is 9 GB", **fields: Any) -> Finding:
    """Return a finding about a disk, with other fields if given."""
    defaults: dict[str, Any] = {
        "rule": "boot-disk-size",
        "severity": "error",
        "stack": "prod",
        "file": "stacks/Pulumi.prod.yaml",
        "position": Position(14, 7),
        "path": "clusters.main.node_pools.h100.boot_disk.size_gb",
    }
    return Finding(message=message, **{**defaults, **fields})


def report_of(*findings: Finding, **fields: Any) -> Report:
    """Return the report of one stack with these findings."""
    stack = StackReport(name="prod", kind="environment", file="stacks/Pulumi.prod.yaml", findings=findings)
    return Report(today=TODAY, stacks=(stack,), **fields)


@pytest.fixture(scope="session")
def build_report() -> Callable[..., Report]:
    """Return a builder of reports: of one stack with these findings."""
    return report_of


@pytest.fixture(scope="session")
def build_finding() -> Callable[..., Finding]:
    """Return a builder of findings."""
    return finding


@pytest.fixture(scope="session")
def clean() -> Report:
    """Return the report of the sample organisation, in which nothing is wrong."""
    return run_check(ORGANISATION, CheckOptions(today=TODAY))


@pytest.fixture(scope="session")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return a report with errors, a warning, an exempt finding, a rejected file, and a file that is no YAML."""
    folder = tmp_path_factory.mktemp("spoiled")
    shutil.copytree(ORGANISATION / "stacks", folder / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", folder)
    prod = folder / "stacks" / "Pulumi.prod.yaml"
    text = prod.read_text().replace("size_gb: 200}", "size_gb: 700000}")
    text = text.replace("            max_nodes: 8\n", "            max_nodes: 10\n")
    prod.write_text(text.replace("    filestore:\n", REQUESTS, 1))
    nlp = folder / "stacks" / "Pulumi.prod-nlp.yaml"
    nlp.write_text(nlp.read_text().replace("name: nlp", "name: '<img src=x> | @nlp'"))
    (folder / "stacks" / "exemptions.yaml").write_text(EXEMPTIONS)
    (folder / "stacks" / "Pulumi.broken.yaml").write_text("a: [")
    return run_check(folder, CheckOptions(today=TODAY))
