"""A slip in a shipped stack file, as ``check --fast`` tells it: at its line, with what is allowed and the fix."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.places import ORGANISATION
from training_platform.checks.run import run_check
from training_platform.checks.stacks import Options
from training_platform.config.reading.clock import today
from training_platform.config.reading.finding import Finding

V5E_HOST = (
    "v5e-host:\n            machine_type: ct5lp-hightpu-8t\n            zone: us-west4-a\n            topology: 2x4"
)
A100 = "a100:\n            machine_type: a2-highgpu-8g\n            zone: us-central1-c\n            max_nodes: 4"
H100 = (
    "capacity: reservation\n            reservation: h100-training\n            min_nodes: 4\n            max_nodes: 8"
)
MEGA = "zone: us-central1-b\n            capacity: flex-start\n            max_run_hours: 168\n            max_nodes: 8"
H100_SMALL = "machine_type: a3-highgpu-1g\n            zone: us-central1-a\n            max_nodes: 8"


@dataclass(frozen=True)
class Slip:
    """A text of ``prod`` and what stands there instead; the finding is where ``at`` of the new text is."""

    old: str
    new: str
    at: str
    rule: str
    allowed: str
    nearest: str


SLIPS = {
    "a topology with the right product and another shape": Slip(
        "topology: 4x8", "topology: 2x16", "topology: 2x16", "tpu-topology",
        "2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16", "4x8",
    ),
    "a topology whose nearest is beyond the quota": Slip(
        "topology: 4x4x4", "topology: 6x6x6", "topology: 6x6x6", "tpu-topology", "2x2x1, 2x2x2, 2x2x4",
        "4x8x8; 4x4x4 fits the 192 chips of quota that are left, 4x8x8 takes 512",
    ),
    "no topology at all": Slip(
        "topology: 2x2x4", "topology: 2x2x", "topology: 2x2x", "tpu-flavor-topology", "2x2x1, 2x2x2, 2x2x4", "2x2x4",
    ),
    "no slices": Slip("slices: 8", "slices: 0", "slices: 0", "stack-model", "at least 1", "1"),
    "a machine type with the wrong letter": Slip(
        "machine_type: a3-megagpu-8g", "machine_type: a3-megapu-8g", "machine_type: a3-megapu-8g", "stack-model",
        "a3-megagpu-8g, a3-edgegpu-8g", "a3-megagpu-8g",
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
    "hyperdisk on a2": Slip(
        "boot_disk: {type: pd-balanced", "boot_disk: {type: hyperdisk-balanced", "boot_disk: {type: hyperdisk",
        "boot-disk-type", "pd-standard, pd-balanced, pd-ssd", "pd-balanced",
    ),
    "a slice over several hosts on a machine that is a slice by itself": Slip(
        V5E_HOST, V5E_HOST.replace("2x4", "4x8"), "topology: 4x8", "tpu-topology", "2x4",
        "2x4; or machine type ct5lp-hightpu-4t for 4x8",
    ),
    "compact with blue-green": Slip(
        A100, f"{A100}\n            compact: true\n            upgrades: {{strategy: blue-green}}",
        "upgrades: {strategy: blue-green}", "placement-one-zone", "surge", "surge",
    ),
    "spot with a reservation": Slip(
        H100, H100.replace("capacity: reservation", "capacity: spot"), "reservation: h100-training", "stack-model",
        "capacity: reservation, or no reservation", "capacity: reservation",
    ),
    "TPUs of any reservation": Slip(
        "reservation: v5e-training", "reservation: any", "reservation: any", "tpu-reservation-name",
        "the reservation's name", "the reservation's name",
    ),
    "fewest above most": Slip(
        "min_nodes: 4", "min_nodes: 9", "min_nodes: 9", "stack-model", "at most 8, or max_nodes of at least 9", "8",
    ),
    "slices of GPUs": Slip(
        A100, A100.replace("max_nodes", "slices"), "slices: 4", "stack-model", "min_nodes and max_nodes",
        "max_nodes: 4",
    ),
}  # fmt: skip


def found(tmp_path: Path, text: str) -> list[Finding]:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    (tmp_path / "stacks" / "Pulumi.prod.yaml").write_text(text, encoding="utf-8")
    report = run_check(tmp_path, Options(today=today(tmp_path), fast=True), selected=["prod"])
    return list(report.all_findings())


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_found_at_its_line_with_the_fix(slip: str, tmp_path: Path) -> None:
    made = SLIPS[slip]
    text = (ORGANISATION / "stacks" / "Pulumi.prod.yaml").read_text(encoding="utf-8")
    assert made.old in text
    before, _, after = text.partition(made.old)

    findings = found(tmp_path, before + made.new + after)

    line = (before + made.new[: made.new.index(made.at)]).count("\n") + 1
    (finding,) = (each for each in findings if each.rule == made.rule)
    assert finding.position is not None
    assert (finding.file, finding.position.line) == ("stacks/Pulumi.prod.yaml", line)
    assert (finding.allowed or "").startswith(made.allowed)
    assert (finding.nearest or "").startswith(made.nearest) or made.nearest in (finding.nearest or "").split("; or ")
