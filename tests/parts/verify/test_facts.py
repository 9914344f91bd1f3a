"""Facts of the catalogue against a local cloud that lists the same ones except for planted differences."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.parts.adopt.seeding import served
from tests.parts.verify.lab import Lab, MonitoredCloud
from tests.support.places import ROOT
from training_platform.catalog import ACCELERATORS, CHARTS, IMAGES, MACHINE_TYPES, QUOTAS, ZONES, loader
from training_platform.cli.main import app
from training_platform.clients.failures import ApiError
from training_platform.parts.verify import facts

pytestmark = pytest.mark.timeout(300)
NEW_ZONE = min(ZONES - set(MACHINE_TYPES["ct6e-standard-1t"].zones))
Rows = dict[str, dict[str, Any]]  # by name: the zones of a machine type, and its row in each


class ListingCloud(MonitoredCloud):
    """A local cloud whose Compute Engine lists machine types, and whose Cloud Quotas lists ids."""

    machines: Rows
    ids: Mapping[str, set[str]]
    regions: set[str] = set()
    versions: Sequence[str] | None = ("1.36.1-gke.1",)  # of the control plane, None where GKE is not enabled

    def handle(
        self, service: str, verb: str, path: str, query: Sequence[tuple[str, str]], body: Any, **options: Any
    ) -> tuple[int, dict[str, Any]]:
        """Answer both lists, a page a zone; everything else as the local cloud does."""
        if path.endswith("aggregated/machineTypes"):
            zones = sorted({zone for row in self.machines.values() for zone in row["zones"]})
            number = int(dict(query).get("pageToken", "0"))
            rows = [row["row"] for row in self.machines.values() if zones[number] in row["zones"]]
            more = {"nextPageToken": str(number + 1)} if number + 1 < len(zones) else {}
            return 200, {"items": {f"zones/{zones[number]}": {"machineTypes": rows}}, **more}
        if service == "cloudquotas":
            name = path.split("/services/")[1].partition("/")[0]
            return 200, {"quotaInfos": [quota(name, quota_id) for quota_id in sorted(self.ids[name])]}
        if service == "aiplatform" and path.endswith("/locations"):
            return 200, {"locations": [{"locationId": region} for region in sorted(self.regions)]}
        if path.endswith("/serverConfig") and self.versions is None:
            return 403, {"error": {"message": "container.googleapis.com has not been used"}}
        if path.endswith("/serverConfig"):
            return 200, {"validMasterVersions": self.versions}
        return super().handle(service, verb, path, query, body, **options)


def quota(service: str, quota_id: str) -> dict[str, Any]:
    return {
        "name": f"projects/1/locations/global/services/{service}/quotaInfos/{quota_id}", "quotaId": quota_id,
        "metric": f"{service}/a", "service": service, "containerType": "PROJECT", "dimensionsInfos": [],
    }  # fmt: skip


def as_in_the_catalogue() -> Rows:
    machines: Rows = {}
    for name, machine in MACHINE_TYPES.items():
        row: dict[str, Any] = {"name": name, "memoryMb": int(machine.memory_gb * 1024)}
        if machine.kind == "gpu":
            row["guestCpus"] = machine.vcpus
            row["accelerators"] = [{"guestAcceleratorCount": machine.chips}]
        else:
            row["guestCpus"] = 2 * machine.vcpus
        if machine.zones:
            machines[name] = {"zones": set(machine.zones), "row": row}
    return machines


@contextmanager
def listing(lab: Lab, machines: Rows, without: str = "", **other: Any) -> Iterator[str]:
    before = lab.seeded.cloud
    cloud = ListingCloud(lab.cloud.projects.ids())
    cloud.regions = {
        region for accelerator in ACCELERATORS.values() if accelerator.vertex for region in accelerator.vertex.regions
    }
    for name, value in other.items():
        setattr(cloud, name, value)
    cloud.machines = machines
    cloud.ids = {quota_fact.service: set() for quota_fact in QUOTAS}
    for quota_fact in QUOTAS:
        if quota_fact.quota_id != without:
            cloud.ids[quota_fact.service].add(quota_fact.quota_id)
    lab.seeded.cloud = cloud
    try:
        with served(lab.seeded) as address:
            yield address
    finally:
        lab.seeded.cloud = before


def ask(lab: Lab, address: str) -> Result:
    return CliRunner().invoke(app, ["verify", "lab", "--root", str(lab.root), "--facts", "--local-cloud", address])


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with the catalogue's data files, as a clone has them."""
    shutil.copytree(facts.DATA, tmp_path / "training_platform" / "catalog" / "data")
    return tmp_path


def test_lists_that_are_as_the_catalogue_change_no_value(lab: Lab) -> None:
    with listing(lab, as_in_the_catalogue()) as address:
        result = ask(lab, address)

    assert result.exit_code == 0, result.output
    assert "and 0 differ." in result.stderr
    assert "decided: tpu7x-standard-4t: memory_gb matches the catalogue." in result.stderr
    changes = [line for line in result.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert [line.split("#")[0].strip() for line in changes] == [
        "-      unverified: [cpu_quota, memory_gb, regions]", "+", "+      unverified: [cpu_quota, regions]",
    ]  # fmt: skip


def test_planted_differences_are_a_patch_that_git_applies(lab: Lab, clone: Path) -> None:
    machines = as_in_the_catalogue()
    machines["a3-highgpu-8g"]["row"]["memoryMb"] = 1900 * 1024
    machines["a3-highgpu-1g"]["row"]["guestCpus"] = 30
    for name in ("ct6e-standard-1t", "ct6e-standard-4t", "ct6e-standard-8t"):
        machines[name]["zones"].add(NEW_ZONE)
    machines["a2-highgpu-1g"]["zones"].clear()  # which refutes nothing
    gone = "NVIDIA-A100-GPUS-per-project-region"
    with listing(lab, machines, without=gone) as address:
        result = ask(lab, address)

    assert result.exit_code == 1, result.output
    differ = [line for line in result.stderr.splitlines() if line.startswith("different: ")]
    assert len(differ) == 6, differ
    assert "different: a3-highgpu-8g: memory_gb is 1900, but the catalogue has 1872." in differ
    assert "different: a3-highgpu-1g: vcpus is 30, but the catalogue has 26." in differ
    assert f"different: ct6e-standard-8t: is also listed in {NEW_ZONE}." in differ
    assert any(f"quota {gone}: compute.googleapis.com does not list it" in line for line in differ)
    assert "training-platform verify lab --facts | git apply" in result.stderr
    subprocess.run(["git", "apply", "-"], input=result.stdout, text=True, check=True, cwd=clone)
    changed = loader.load(clone / "training_platform" / "catalog" / "data").machine_types
    assert changed["a3-highgpu-8g"].memory_gb == 1900
    assert changed["a3-highgpu-1g"].vcpus == 30
    assert NEW_ZONE in changed["ct6e-standard-1t"].zones
    assert {name for name, row in changed.items() if row != MACHINE_TYPES[name]} == {
        "a3-highgpu-8g", "a3-highgpu-1g", "ct6e-standard-1t", "ct6e-standard-4t", "ct6e-standard-8t",
        *(name for name in MACHINE_TYPES if name.startswith("tpu7x")),
    }  # fmt: skip
    assert "example-lab" not in result.stdout


def test_a_cloud_that_lists_nothing_decides_nothing(lab: Lab) -> None:
    machines = {"other-1": {"zones": {"us-central1-a"}, "row": {"name": "other-1", "guestCpus": 1, "memoryMb": 1024}}}
    with listing(lab, machines) as address:
        lab.seeded.cloud.ids = {quota_fact.service: set() for quota_fact in QUOTAS}  # type: ignore[attr-defined]
        lab.seeded.cloud.regions = set()  # type: ignore[attr-defined]
        lab.seeded.cloud.versions = ()  # type: ignore[attr-defined]
        result = ask(lab, address)

    assert result.exit_code == 2
    assert result.stdout == ""


def test_versions_that_gke_no_longer_offers_and_regions_that_vertex_ai_lacks_are_named(lab: Lab) -> None:
    with listing(lab, as_in_the_catalogue(), versions=["1.28.9-gke.1"], regions={"us-central1"}) as address:
        result = ask(lab, address)

    assert result.exit_code == 1, result.output
    says = "different: chart kueue requires Kubernetes 1.29, but GKE in us-central1-a offers 1.28.9-gke.1."
    assert says in result.stderr
    assert re.search(r"different: accelerator \S+: Vertex AI does not list .*europe-west4", result.stderr)
    assert "chart kueue wants" not in "".join(facts_of(lab, ["1.36.1-gke.1"]))


def test_an_api_that_is_not_enabled_decides_nothing_and_stops_nothing(lab: Lab) -> None:
    with listing(lab, as_in_the_catalogue(), versions=None) as address:
        result = ask(lab, address)

    assert result.exit_code == 0, result.output
    assert "not decided: GKE denies access" in result.stderr
    assert "Vertex AI lists its" in result.stderr


def facts_of(lab: Lab, versions: Sequence[str]) -> list[str]:
    with listing(lab, as_in_the_catalogue(), versions=versions) as address:
        return ask(lab, address).stderr.splitlines()


class Shelves:
    """Registries that lack one image and one version, and one that does not answer."""

    def versions(self, chart: str, _: str | None) -> list[str]:
        if "jobset" in chart:
            raise ApiError("registry.k8s.io cannot be reached.")
        return [] if "kueue" in chart else [chart_version.version for chart_version in CHARTS.values()]

    def has(self, image: str) -> bool:
        return image != IMAGES["node-gib"]


def test_charts_and_images_that_are_not_in_their_registries_are_named() -> None:
    told = list(facts.published_software(Shelves()))  # type: ignore[arg-type]

    assert [fact.says for fact in told if fact.holds is False] == [
        f"chart kueue {CHARTS['kueue'].version} is not in its registry",
        f"image node-gib, {IMAGES['node-gib']} is not in its registry",
    ]
    assert [fact.says for fact in told if fact.holds is None] == [
        f"chart jobset {CHARTS['jobset'].version}: registry.k8s.io cannot be reached"
    ]
    assert len(told) == len(CHARTS) + len(IMAGES)


def test_the_patch_names_the_data_files_as_the_repository_does() -> None:
    assert (ROOT / "training_platform" / "catalog" / "data").samefile(facts.DATA)


def test_zones_of_a_family_without_any_are_told_and_not_written(lab: Lab) -> None:
    machines = as_in_the_catalogue()
    for name, machine in MACHINE_TYPES.items():
        if name.startswith("g4-"):
            row = {"name": name, "memoryMb": int(machine.memory_gb * 1024), "guestCpus": machine.vcpus}
            accelerators = [{"guestAcceleratorCount": machine.chips}]
            machines[name] = {"zones": {"us-central1-b"}, "row": {**row, "accelerators": accelerators}}
    with listing(lab, machines) as address:
        result = ask(lab, address)

    assert "different: g4-standard-48: is also listed in us-central1-b." in result.stderr
    assert "us-central1-b" not in result.stdout
