"""A slip in a shipped stack file, as ``check`` tells it: at its line, with what is allowed and the fix."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.places import ORGANISATION
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.reading.clock import today
from training_platform.config.reading.finding import Finding

V5E_HOST = (
    "v5e-host:\n            machine_type: ct5lp-hightpu-8t\n            zone: us-west4-a\n            topology: 2x4"
)
A100 = "a100:\n            machine_type: a2-highgpu-8g\n            zone: us-central1-c\n            max_nodes: 4"
MEGA = "zone: us-central1-b\n            capacity: flex-start\n            max_run_hours: 168\n            max_nodes: 8"
H100_SMALL = "machine_type: a3-highgpu-1g\n            zone: us-central1-a\n            max_nodes: 8"


@dataclass(frozen=True)
class Slip:
    """A text of ``prod`` and its replacement; the finding is at ``marked``, a part of the new text."""

    old: str
    new: str
    marked: str
    rule: str
    allowed: str
    nearest: str


SLIPS = {
    "a topology with the right product and another shape": Slip(
        "topology: 4x8", "topology: 2x16", "topology: 2x16", "tpu-topology",
        "2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16", "4x8",
    ),
    "a topology that no machine has, where teams name the flavor of another": Slip(
        "topology: 4x4x4", "topology: 6x6x6", "topology: 6x6x6", "tpu-topology", "2x2x1, 2x2x2, 2x2x4",
        "4x4x4",
    ),
    "a machine type with the wrong letter": Slip(
        "machine_type: a3-megagpu-8g", "machine_type: a3-megapu-8g", "machine_type: a3-megapu-8g", "stack-model",
        "a3-megagpu-8g, ", "a3-megagpu-8g",
    ),
    "a machine type that the catalogue no longer has": Slip(
        "machine_type: a3-megagpu-8g", "machine_type: a3-edgegpu-8g", "machine_type: a3-edgegpu-8g", "stack-model",
        "a3-", "a3-megagpu-8g",
    ),
    "device TPUs, which the catalogue no longer has": Slip(
        V5E_HOST, V5E_HOST.replace("ct5lp-", "ct5l-"), "machine_type: ct5l-hightpu-8t", "stack-model",
        "ct5lp-hightpu-1t", "ct5lp-hightpu-8t",
    ),
    "a zone without the machine": Slip(
        MEGA, MEGA.replace("us-central1-b", "us-central1-f"), "zone: us-central1-f", "machine-zone",
        "with quota for 64 GPUs: us-central1-a, us-central1-b, us-central1-c", "us-central1-a (",
    ),
    "flex-start on v4": Slip(
        "slices: 2\n            capacity: spot", "slices: 2\n            capacity: flex-start", "capacity: flex-start",
        "capacity-offered", "on-demand, spot, reservation",
        "capacity spot, with 64 of PREEMPTIBLE-TPU-PODSLICE-V4-per-project-region left",
    ),
    "plain on-demand a3-highgpu-1g": Slip(
        A100, f"a100:\n            {H100_SMALL}", "a100:", "capacity-offered", "spot, flex-start",
        "spot, charged to PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region in us-central1",
    ),
    "a slice over several hosts on a machine that is a slice by itself": Slip(
        V5E_HOST, V5E_HOST.replace("2x4", "4x8"), "topology: 4x8", "tpu-topology", "2x4",
        "2x4; or machine type ct5lp-hightpu-4t for 4x8",
    ),
}  # fmt: skip


def found_in_prod(tmp_path: Path, text: str) -> list[Finding]:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    (tmp_path / "stacks" / "Pulumi.prod.yaml").write_text(text, encoding="utf-8")
    report = run_check(tmp_path, CheckOptions(today=today(tmp_path)), selected=["prod"])
    return list(report.all_findings())


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_in_the_organisation_is_found_at_its_line_with_the_fix(slip: str, tmp_path: Path) -> None:
    planted = SLIPS[slip]
    text = (ORGANISATION / "stacks" / "Pulumi.prod.yaml").read_text(encoding="utf-8")
    assert planted.old in text
    before, _, after = text.partition(planted.old)

    findings = found_in_prod(tmp_path, before + planted.new + after)

    line = (before + planted.new[: planted.new.index(planted.marked)]).count("\n") + 1
    (finding,) = (finding for finding in findings if finding.rule == planted.rule)
    assert finding.position is not None
    assert (finding.file, finding.position.line) == ("stacks/Pulumi.prod.yaml", line)
    assert (finding.allowed or "").startswith(planted.allowed)
    assert (finding.nearest or "").startswith(planted.nearest) or planted.nearest in (finding.nearest or "").split(
        "; or "
    )
