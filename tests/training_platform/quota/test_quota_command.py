"""The commands of quotas: who uses what, snapshots, and plans of requests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from click.testing import CliRunner, Result
from rich.console import Console

from local_google_cloud.api import Judge, LocalCloud, QuotaLimit, serve
from tests.support.places import ORGANISATION, ROOT
from training_platform.checks.reports.quota_tables import GROUPINGS, By, print_overview
from training_platform.cli import quota
from training_platform.cli.main import app
from training_platform.quota.charges import (
    Usage,
    VmUsage,
    accelerator_usage,
    filestore_usage,
    vertex_usage,
    vm_usage,
)
from training_platform.quota.overview import read_overview
from training_platform.quota.snapshot import Snapshot, read_snapshots

TODAY = date(2026, 11, 21)
PROD = "stacks/quotas/example-train-prod.yaml"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    return tmp_path


class Limits(Judge):
    """The limits of snapshots, as Cloud Quotas lists them."""

    def __init__(self, snapshots: Mapping[str, Snapshot]) -> None:
        self.snapshots = snapshots

    def limits(self, project: str, service: str) -> Mapping[str, list[QuotaLimit]]:
        rows = self.snapshots[project].limits.get(service, {})
        return {
            name: [QuotaLimit(row.place, row.dimensions, row.limit) for row in limits] for name, limits in rows.items()
        }


@pytest.fixture
def google(repository: Path) -> Iterator[str]:
    """Serve the limits that the repository's snapshots have now; gives the address of Cloud Quotas."""
    snapshots = read_snapshots(repository, TODAY).by_project
    with serve(LocalCloud(snapshots, judge=Limits(snapshots))) as port:
        yield f"http://127.0.0.1:{port}/cloudquotas/"


def run(repository: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["quota", *arguments, "--root", str(repository)])


def edit(repository: Path, file: str, old: str, new: str) -> None:
    path = repository / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def shown(repository: Path, *arguments: str) -> Any:
    return json.loads(run(repository, "show", "--format", "json", *arguments).stdout)


def test_the_command_takes_every_grouping_that_there_is() -> None:
    assert get_args(quota.GroupBy) == GROUPINGS


def test_a_limit_is_shown_with_its_holders_and_their_teams(repository: Path) -> None:
    document = shown(repository, "--project", "example-train-prod", "--quota", "CustomModelTrainingA100GPUs")

    (ledger,) = document["quotas"]
    (line,) = ledger["lines"]
    assert (ledger["project"], ledger["taken"]) == ("example-train-prod", "2026-11-01")
    assert (line["limit"], line["used"], line["left"], line["unlimited"]) == (8, 4, 4, False)
    assert line["holders"] == [{"stack": "prod-vision", "name": "tuning", "amount": 4, "team": "vision"}]
    assert document["capacity"] == []


def test_a_teams_share_has_what_is_its_own_and_what_it_may_borrow_and_lend(repository: Path) -> None:
    document = shown(repository, "--stack", "prod", "--region", "us-west4")

    slices = next(line for line in document["capacity"] if line["flavor"] == "tpu-v5e-4x8-reservation")
    assert (slices["pools_hold"], slices["free"]) == (128, 0)
    assert slices["shares"] == [
        # vision lends 32 of its 64 and no more; nlp has no lending limit, and vision may borrow 64 at most
        {"team": "nlp", "stack": "prod-nlp", "guaranteed": 64, "may_borrow": 32, "may_lend": 64},
        {"team": "vision", "stack": "prod-vision", "guaranteed": 64, "may_borrow": 64, "may_lend": 32},
    ]


def test_a_selection_shows_nothing_of_others(repository: Path) -> None:
    of_team = shown(repository, "--team", "vision")
    of_project = shown(repository, "--project", "example-train-dev")
    of_region = shown(repository, "--region", "us-west4")

    holders = [[holder["team"] for holder in line["holders"]] for row in of_team["quotas"] for line in row["lines"]]
    shares = [[share["team"] for share in line["shares"]] for line in of_team["capacity"]]
    assert holders
    assert shares
    assert all("vision" in teams for teams in (*holders, *shares))
    assert {line["environment"] for line in of_project["capacity"]} == {"dev"}
    assert {line["cluster"] for line in of_region["capacity"]} == {"us-west4"}


@pytest.mark.parametrize("by", GROUPINGS)
@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_left_out(by: By, width: int) -> None:
    written = StringIO()
    print_overview(read_overview(ORGANISATION, TODAY), by, Console(width=width, file=written, highlight=False))
    text = written.getvalue()

    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for word in ("GPUS-PER-GPU-FAMILY", "NVIDIA_H100", "prod/h100 64", "guaranteed", "72", "not known"):
        assert word in text


def test_in_a_pipe_there_are_no_colours_and_no_progress(repository: Path) -> None:
    done = run(repository, "show")

    assert done.exit_code == 0
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("by", "titles"), [("team", ["platform", "vision"]), ("stack", ["dev", "prod", "prod-vision"])]
)
def test_sections_are_by_whoever_holds_something(repository: Path, by: str, titles: list[str]) -> None:
    text = run(repository, "show", "--by", by, "--format", "markdown").stdout

    assert [line.split(" ", 2)[2] for line in text.splitlines() if line.startswith(f"### {by.capitalize()}")] == titles


def test_sections_have_what_each_team_has_in_json_too(repository: Path) -> None:
    by_team = shown(repository, "--by", "team")
    by_region = shown(repository, "--by", "region", "--region", "us-west4")

    has = {
        (section["title"], row["quota_id"], row["location"]): row["has"]
        for section in by_team["sections"]
        for row in section["rows"]
    }
    assert by_team["by"] == "team"
    assert has["vision", "CustomModelTrainingA100GPUsPerProjectPerRegion", "us-central1"] == 4
    assert has["platform", "GPUS-PER-GPU-FAMILY-per-project-region", "us-central1"] == 64
    assert [section["title"] for section in by_region["sections"]] == ["us-west4"]
    assert {row["has"] for row in by_region["sections"][0]["rows"]} == {None}


def test_what_snapshots_leave_open_is_said(repository: Path) -> None:
    edit(repository, PROD, "TPU-PODSLICE-V4-per", "TPU-V2-per")

    not_known = shown(repository, "--today", "2026-12-02")["not_known"]

    assert "example-train-prod: its snapshot does not list TPU-PODSLICE-V4-per-project-region" in not_known
    assert "example-train-dev: its limits were read 31 days ago and may have changed since then" in not_known
    assert not_known[-1].startswith("a snapshot contains only limits")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stack", "pord"], "stack 'pord'. Nearest: prod."),
        (["--team", "visoin"], "team 'visoin'. Nearest: vision."),
        (["--region", "us-west5"], "region 'us-west5'. Nearest: us-west4."),
        (["--quota", "GPU-ALL-REGIONS"], "Nearest: GPUS-ALL-REGIONS."),
        (["--project", "x"], "There are: example-train-dev, example-train-prod."),
        (["--today", "soon"], "'soon' is not a date"),
    ],
)
def test_a_name_that_nothing_is_known_of_is_one_sentence(repository: Path, arguments: list[str], message: str) -> None:
    done = run(repository, "show", *arguments)

    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("stacks/Pulumi.prod-vision.yaml", "config:", "config: [", "is not YAML"),
        (PROD, "limits:", "limits: [", "is not YAML"),
    ],
)
@pytest.mark.parametrize("command", ["show", "plan"])
def test_a_file_that_is_not_counted_is_named_and_ends_with_2(  # noqa: PLR0917
    repository: Path, command: str, file: str, old: str, new: str, message: str
) -> None:
    edit(repository, file, old, new)

    done = run(repository, command)

    assert done.exit_code == 2
    assert message in done.output
    assert "not counted" in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("command", ["show", "plan", "pull"])
def test_every_error_of_the_files_is_said_with_what_is_allowed(repository: Path, command: str) -> None:
    edit(repository, PROD, "- limit: 1200", "- {limit: -7, unit: GPUs}")
    edit(repository, PROD, "{limit: 72, region: us-central1, gpu_family", "{limit: 72, gpu_family")
    edit(repository, "stacks/Pulumi.prod-vision.yaml", "replicas: 1", "replicas: one\n          machin: x")

    done = run(repository, command)

    errors = [line.partition("not counted: ")[2] for line in done.output.splitlines() if "not counted: " in line]
    assert done.exit_code == 2
    assert len(errors) == 5
    assert sum("Pulumi.prod-vision.yaml:" in error for error in errors) == 2
    assert sum(f"{PROD}:" in error for error in errors) == 3
    assert all("Allowed: " in error for error in errors)


def test_a_plan_says_the_request_and_the_lines_to_paste(repository: Path) -> None:
    edit(repository, PROD, "{limit: 72, region: us-central1, gpu_family", "{limit: 63, region: us-central1, gpu_family")

    text = run(repository, "plan", "--project", "example-train-prod").stdout
    document = json.loads(run(repository, "plan", "--format", "json").stdout)

    assert "GPUS-PER-GPU-FAMILY NVIDIA_H100 in us-central1: 63 -> 64 GPUs" in text
    assert "1 request to make." in text
    pasted = yaml.safe_load(text[text.index("quota_requests:") :])["quota_requests"]
    assert pasted["gpus-per-gpu-family-nvidia-h100-us-central1"]["value"] == 64
    requests = {project["project"]: project["requests"] for project in document["projects"]}
    assert [request["value"] for request in requests["example-train-prod"]] == [64]
    assert requests["example-train-dev"] == []
    assert "**64**" in run(repository, "plan", "--format", "markdown").stdout


def test_where_one_project_cannot_be_read_no_file_is_written(repository: Path, google: str) -> None:
    edit(repository, PROD, "limit: 1200", "limit: 1000")
    edit(repository, "stacks/quotas/example-train-dev.yaml", "limits:", "limits: [")
    before = {path: path.read_text() for path in (repository / "stacks").rglob("*.yaml")}

    done = run(repository, "pull", "--endpoint", google)

    assert done.exit_code == 2
    assert "stacks/quotas/example-train-dev.yaml:" in done.stderr
    assert "nothing was written" in done.stderr
    assert {path: path.read_text() for path in (repository / "stacks").rglob("*.yaml")} == before


def test_a_project_without_a_snapshot_gets_one(repository: Path, google: str) -> None:
    (repository / PROD).unlink()

    assert run(repository, "pull", "--endpoint", google).exit_code == 0

    assert read_snapshots(repository, TODAY).findings == ()
    assert run(repository, "plan").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["X"], "'X' is not a project id"),
        (["--endpoint", "http://quotas.example.com"], "http://127.0.0.1:PORT/ for a local server"),
        (["--today", "soon"], "'soon' is not a date"),
    ],
)
def test_a_pull_that_cannot_be_is_one_sentence(repository: Path, arguments: list[str], message: str) -> None:
    done = run(repository, "pull", *arguments)

    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def vms(machine_type: str, **changes: Any) -> VmUsage:
    defaults = {"nodes": 1, "capacity": "on-demand", "disk_type": "pd-balanced", "disk_gb": 100}
    values: dict[str, Any] = {"project": "p", "location": "us-central1-a", **defaults, **changes}
    return VmUsage(machine_type=machine_type, **values)


def amounts(usages: list[Usage]) -> dict[str, float]:
    """Return amounts by quota id; an id that is charged twice would hide, so it is refused."""
    amount_of = {usage.keys[0].quota_id: usage.amount for usage in usages}
    assert len(amount_of) == len(usages)
    return amount_of


def test_h100_charges_family_global_disk_and_instances_for_every_vm() -> None:
    assert amounts(vm_usage(vms("a3-highgpu-8g", nodes=3, disk_gb=200))) == {
        "INSTANCES-per-project-region": 3,
        "GPUS-PER-GPU-FAMILY-per-project-region": 3 * 8,
        "GPUS-ALL-REGIONS-per-project": 3 * 8,
        "SSD-TOTAL-GB-per-project-region": 3 * 200,
        "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region": 3 * 16 * 375,
    }


def test_a100_charges_its_own_vcpus_and_the_global_ones() -> None:
    charged = amounts(vm_usage(vms("a2-highgpu-8g", nodes=2, disk_type="pd-standard")))

    assert charged["NVIDIA-A100-GPUS-per-project-region"] == 2 * 8
    assert charged["A2-CPUS-per-project-region"] == charged["CPUS-ALL-REGIONS-per-project"] == 2 * 96
    assert charged["DISKS-TOTAL-GB-per-project-region"] == 2 * 100
    assert "LOCAL-SSD-TOTAL-GB-per-project-region" not in charged


def test_spot_charges_preemptible_quota() -> None:
    charged = amounts(vm_usage(vms("a2-highgpu-8g", capacity="spot")))

    assert charged["PREEMPTIBLE-NVIDIA-A100-GPUS-per-project-region"] == 8
    assert charged["PREEMPTIBLE-CPUS-per-project-region"] == 96
    assert "NVIDIA-A100-GPUS-per-project-region" not in charged


def test_flex_start_falls_back_to_standard_quota() -> None:
    (usage,) = [usage for usage in vm_usage(vms("ct5lp-hightpu-8t", capacity="flex-start")) if usage.unit == "chips"]

    assert [key.quota_id for key in usage.keys] == [
        "PREEMPTIBLE-TPU-LITE-PODSLICE-V5-per-project-region",
        "TPU-LITE-PODSLICE-V5-per-project-region",
    ]
    assert usage.amount == 8


def test_reserved_tpu_charges_no_chips_and_no_gpu_quota() -> None:
    charged = amounts(vm_usage(vms("ct5lp-hightpu-4t", nodes=8, capacity="reservation")))

    assert charged == {"INSTANCES-per-project-region": 8, "SSD-TOTAL-GB-per-project-region": 8 * 100}


@pytest.mark.parametrize(("count", "gb"), [(None, 8 * 375), (8, 8 * 375), (0, None)])
def test_local_ssd_is_what_the_machine_brings_unless_given(count: int | None, gb: float | None) -> None:
    charged = amounts(vm_usage(vms("a2-ultragpu-8g", local_ssd_count=count)))

    assert charged.get("LOCAL-SSD-TOTAL-GB-per-project-region") == gb


def test_place_is_the_region_and_empty_for_the_whole_project() -> None:
    places = {usage.keys[0].quota_id: usage.keys[0].location for usage in vm_usage(vms("a3-highgpu-8g"))}

    assert places["GPUS-ALL-REGIONS-per-project"] == ""
    assert set(places.values()) == {"", "us-central1"}


def test_vertex_charges_its_own_quotas_and_none_of_compute_engine() -> None:
    usages = vertex_usage(VmUsage("p", "a2-highgpu-1g", 4, "on-demand", "us-central1", "pd-ssd", 200))

    assert amounts(usages) == {
        "CustomModelTrainingA100GPUsPerProjectPerRegion": 4 * 1,
        "CustomModelTrainingPDSSDPerProjectPerRegion": 4 * 200,
    }
    assert {usage.keys[0].service for usage in usages} == {"aiplatform.googleapis.com"}


def test_vertex_cpu_machine_charges_vcpus() -> None:
    usages = vertex_usage(VmUsage("p", "n2-standard-8", 3, "on-demand", "us-central1", "pd-standard", 100))

    assert amounts(usages) == {
        "CustomModelTrainingN2CPUsPerProjectPerRegion": 3 * 8,
        "CustomModelTrainingPDHDDPerProjectPerRegion": 3 * 100,
    }


@pytest.mark.parametrize(
    ("tier", "capacity", "quota_id"),
    [
        ("BASIC_HDD", 1024, "StandardStorageGbPerRegion"),
        ("BASIC_SSD", 2560, "PremiumStorageGbPerRegion"),
        ("ZONAL", 9984, "EnterpriseStorageGibPerRegion"),
        ("ZONAL", 10240, "HighScaleSSDStorageGibPerRegion"),
        ("REGIONAL", 10240, "EnterpriseStorageGibPerRegion"),
    ],
)
def test_filestore_charges_the_quota_of_its_tier_and_band(tier: str, capacity: int, quota_id: str) -> None:
    (usage,) = filestore_usage("p", tier, capacity, "us-central1-a")

    assert (usage.keys[0].quota_id, usage.keys[0].location, usage.amount) == (quota_id, "us-central1", capacity)


def auto_provisioned(gke_label: str, chips: int, most_vcpus: int = 99_999) -> dict[str, float]:
    return amounts(accelerator_usage("example-train", gke_label, chips, "us-central1", most_vcpus))


def test_auto_provisioned_a100_charge_the_fewest_vcpus_that_they_can_have() -> None:
    charged = auto_provisioned("nvidia-tesla-a100", 32)

    assert charged["NVIDIA-A100-GPUS-per-project-region"] == charged["GPUS-ALL-REGIONS-per-project"] == 32
    assert charged["A2-CPUS-per-project-region"] == 32 * 96 / 16  # as many as a2-megagpu-16g has of them
    assert charged["CPUS-ALL-REGIONS-per-project"] == 32 * 96 / 16


def test_auto_provisioned_vcpus_stay_below_the_limit_of_cpu() -> None:
    assert auto_provisioned("nvidia-tesla-a100", 32, 191)["A2-CPUS-per-project-region"] == 191
    assert auto_provisioned("nvidia-tesla-a100", 32, 192)["A2-CPUS-per-project-region"] == 192
    assert auto_provisioned("nvidia-tesla-a100", 32, 193)["A2-CPUS-per-project-region"] == 192


@pytest.mark.parametrize("gke_label", ["nvidia-h100-80gb", "tpu-v5-lite-podslice", "nvidia-tesla-t4"])
def test_machines_whose_vcpus_no_quota_of_their_own_counts_charge_none(gke_label: str) -> None:
    assert [quota for quota in auto_provisioned(gke_label, 32) if "CPUS" in quota] == []
