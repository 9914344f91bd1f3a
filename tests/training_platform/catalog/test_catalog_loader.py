"""Reading data files: a new family is a file, each mistake in one is named, and importing the catalogue is cheap."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from training_platform import catalog
from training_platform.catalog import loader, reading
from training_platform.catalog.attachments import attached
from training_platform.catalog.loader import default, load
from training_platform.catalog.reading import CatalogError
from training_platform.catalog.topologies import hosts, legal_for, nearest_topology
from training_platform.catalog.types import QuotaId

SHIPPED = Path(loader.__file__).parent / "data"

FAMILY = """
quotas:
  tpu-v9:
    service: compute.googleapis.com
    quota_id: TPUS-PER-TPU-FAMILY-per-project-region
    unit: chips
    dimensions: {tpu_family: CT9}
    source: invented for this test
accelerators:
  tpu-v9:
    kind: tpu
    title: TPU v9
    gke_label: tpu-v9-slice
    hbm_gb: 512
    peak_bf16_tflops: null
    topologies: {dims: 3, shapes: [2x2x1], cube_side: 4, max_cubes: 96, ascending: true}
    quotas: {on-demand: tpu-v9}
    fallback: {}
    vertex: null
    partitions: {}
    source: invented for this test
machine_types:
  ct9:
    shared: {kind: tpu, accelerator: tpu-v9, boot_disk_types: [hyperdisk-balanced], cpu_quota: {}, price: null}
    rows:
      ct9-standard-4t:
        chips: 4
        vcpus: 100
        memory_gb: 500.5
        single_host: 2x2x1
        multi_host: true
        capacities: [on-demand]
        zones: [mars-north1-ai1a]
        source: invented for this test
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the shipped data files, to spoil."""
    return Path(shutil.copytree(SHIPPED, tmp_path / "data"))


def rejection(folder: Path) -> str:
    """Return the message that refuses a folder."""
    with pytest.raises(CatalogError) as caught:
        load(folder)
    return str(caught.value)


def test_a_new_family_of_accelerators_is_one_new_file(folder: Path) -> None:
    before = load(folder)
    (folder / "tpu-v9.yaml").write_text(FAMILY)

    after = load(folder)

    machine = after.machine_types["ct9-standard-4t"]
    assert set(after.machine_types) - set(before.machine_types) == {"ct9-standard-4t"}
    assert machine.accelerator is after.accelerators["tpu-v9"]
    assert machine.accelerator.quotas["on-demand"] == QuotaId(
        "compute.googleapis.com", "TPUS-PER-TPU-FAMILY-per-project-region", "chips", "region", (("tpu_family", "CT9"),)
    )
    assert hosts(machine, "16x16x24") == 16 * 16 * 24 // 4
    assert legal_for(machine, "16x16x24")
    assert nearest_topology(machine, "8x4x4") == "4x4x8"
    assert after.zones - before.zones == {"mars-north1-ai1a"}
    assert after.regions - before.regions == {"mars-north1"}
    assert after.general_quotas == before.general_quotas


def test_a_gpu_that_is_attached_brings_its_zones_and_a_machine_its_regions(folder: Path) -> None:
    attachment = """
    attachment:
      families: [n1-standard]
      counts: [[1, 8], [2, 16]]
      vertex_counts: []
      capacities: [spot]
      zones: [venus-east2-b]
      source: invented for this test
"""
    text = FAMILY.replace("kind: tpu", "kind: gpu").replace("{dims: 3", "null # {dims: 3")
    text = text.replace("\nmachine_types", f"{attachment}machine_types")
    text = text.replace("        single_host: 2x2x1\n        multi_host: true\n", "        regions: [pluto-west1]\n")
    (folder / "gpu-v9.yaml").write_text(text)

    after = load(folder)

    machine = attached(after.machine_types["n1-standard-16"], after.accelerators["tpu-v9"], 2)
    assert machine is not None
    assert (machine.kind, machine.chips, machine.zones) == ("gpu", 2, ("venus-east2-b",))
    assert attached(after.machine_types["n1-standard-16"], after.accelerators["tpu-v9"], 1) is None
    assert {"venus-east2-b", "mars-north1-ai1a"} <= after.zones
    assert {"venus-east2", "mars-north1", "pluto-west1"} <= after.regions


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("gke_label: tpu-v9-slice", "gke_lable: tpu-v9-slice", "Nearest: 'gke_label'"),
        ("cube_side: 4", "cube: 4", "accelerators.tpu-v9.topologies: unknown key 'cube'"),
        (
            "    unit: chips\n",
            "    unit: chips\n    kind: x\n",
            "quotas.tpu-v9: unknown key 'kind'. Allowed: dimensions,",
        ),
        ("    rows:", "    row:", "machine_types.ct9: unknown key 'row'"),
        ("        source: invented for this test\n", "", "machine_types.ct9.ct9-standard-4t: lacks source"),
        ("vcpus: 100", "vcpus: many", "ct9-standard-4t.vcpus: 'many' is not of type int"),
        ("vcpus: 100", "vcpus: true", "ct9-standard-4t.vcpus: True is not of type int"),
        ("vcpus: 100", "vcpus: 100.0", "ct9-standard-4t.vcpus: 100.0 is not of type int"),
        ("memory_gb: 500.5", "memory_gb: lots", "ct9-standard-4t.memory_gb: 'lots' is not a number"),
        ("kind: tpu\n", "kind: dpu\n", "accelerators.tpu-v9.kind: 'dpu' is not one of tpu, gpu, cpu"),
        (
            "{on-demand: tpu-v9}",
            "{on-demand: tpu-v8}",
            "quotas.on-demand: 'tpu-v8' names no QuotaId. Nearest: 'tpu-v9'",
        ),
        ("{on-demand: tpu-v9}", "{ondemand: tpu-v9}", "tpu-v9.quotas: 'ondemand' is not one of on-demand, spot"),
        ("accelerator: tpu-v9", "accelerator: tpu-9", "'tpu-9' names no Accelerator. Nearest: 'tpu-v9'"),
        ("shapes: [2x2x1]", "shapes: 2x2x1", "topologies.shapes: '2x2x1' is not a list"),
        ("partitions: {}", "partitions: []", "accelerators.tpu-v9.partitions: [] is not a mapping"),
        ("[hyperdisk-balanced]", "[hyperdisk-balance]", "boot_disk_types: ('hyperdisk-balance',) does not exist"),
        ("single_host: 2x2x1", "single_host: 2x2x2", "single_host: '2x2x2' does not exist, or contradicts"),
        ("single_host: 2x2x1", "single_host: 4x4x4", "single_host: '4x4x4' does not exist, or contradicts"),
        ("[mars-north1-ai1a]", "[mars-north1]", "zones: ('mars-north1',) does not exist"),
        ("cpu_quota: {}", "cpu_quota: {spot: cpus}", "cpu_quota: {"),
        ("{kind: tpu, acc", "{kind: gpu, acc", "ct9-standard-4t.kind: 'gpu' does not exist, or contradicts"),
        ("chips: 4", "chips: 0", "ct9-standard-4t.chips: 0 does not exist, or contradicts"),
        (
            "        capacities: [on-demand]\n",
            "        capacities: [on-demand]\n        allowlisted: [spot]\n",
            "allowlisted: ('spot',) does not exist, or contradicts",
        ),
        (
            "        chips: 4\n",
            "        chips: 4\n        rdma_nics: 1\n",
            "rdma_nics: 1 does not exist, or contradicts",
        ),
        ("    unit: chips\n", "    unit: chips\n    per: planet\n", "quotas.tpu-v9.per: 'planet' is not one of region"),
        ("    title: TPU v9\n", "    title: TPU v9\n    title: TPU v10\n", "a key is written twice"),
        (
            "    title: TPU v9\n",
            "    title: TPU v9\n    name: v9\n",
            "accelerators.tpu-v9: takes its name from its key",
        ),
        ("title: TPU v9", "title: [", "tpu-v9.yaml: while parsing"),
        ("price: null}", "price: null, zones: &a [x], zones: *a}", "a key is written twice"),
    ],
)
def test_a_mistake_is_refused_with_the_name_of_file_and_key(folder: Path, right: str, wrong: str, message: str) -> None:
    assert right in FAMILY
    (folder / "tpu-v9.yaml").write_text(FAMILY.replace(right, wrong, 1))

    refused = rejection(folder)

    assert refused.startswith("tpu-v9.yaml: ")
    assert message in refused


@pytest.mark.parametrize("text", ["", "- a", "1: {}", "quotas: 3", "quotas: {a: 3}"])
def test_a_file_that_holds_no_mapping_is_refused(folder: Path, text: str) -> None:
    (folder / "tpu-v9.yaml").write_text(text)

    assert "is not a mapping" in rejection(folder)


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "tpu-v9.yaml").write_bytes(b"\xff\xfe")

    assert rejection(folder).startswith("tpu-v9.yaml: ")


def test_a_row_that_stands_in_two_files_is_refused(folder: Path) -> None:
    (folder / "tpu-v9.yaml").write_text("quotas: {cpus: {service: s, quota_id: q, unit: u, source: s}}")

    assert rejection(folder) == "tpu-v9.yaml: quotas.cpus: stands in quotas.yaml too"


def test_a_machine_that_stands_in_two_groups_is_refused(folder: Path) -> None:
    (folder / "tpu-v9.yaml").write_text(FAMILY.replace("ct9-standard-4t", "e2-standard-4"))

    assert "'e2-standard-4' is also under machine_types.e2-standard" in rejection(folder)


def test_a_folder_without_locations_is_refused(folder: Path) -> None:
    (folder / "locations.yaml").unlink()

    assert "has the section 'locations'" in rejection(folder)


def test_a_row_overrides_what_its_group_shares_key_by_key(folder: Path) -> None:
    shared = "price: {unit: vm, read: 2026-01-01, source: invented, usd: {on-demand: {us-east1: 1.5}}}"
    row = "        price: {usd: {on-demand: {us-east1: 2}}}\n        vcpus: 100\n"
    (folder / "tpu-v9.yaml").write_text(FAMILY.replace("price: null", shared).replace("        vcpus: 100\n", row))

    price = load(folder).machine_types["ct9-standard-4t"].price

    assert price is not None
    assert (price.unit, price.usd) == ("vm", {"on-demand": {"us-east1": 2.0}})


def test_sizes_make_a_row_for_every_number_of_vcpus(folder: Path) -> None:
    cpus = yaml.safe_load((folder / "cpu.yaml").read_text())
    group = {**cpus["machine_types"]["n2-standard"], "sizes": {"vcpus": [3, 6], "gb_per_vcpu": 1.5, "vertex": [6]}}
    (folder / "x9.yaml").write_text(yaml.safe_dump({"machine_types": {"x9-odd": group}}))

    machines = load(folder).machine_types

    assert [(machines[f"x9-odd-{vcpus}"].memory_gb, machines[f"x9-odd-{vcpus}"].vertex) for vcpus in (3, 6)] == [
        (4.5, False),
        (9.0, True),
    ]
    assert machines["x9-odd-3"].price is None


def test_a_group_has_either_rows_or_sizes(folder: Path) -> None:
    (folder / "x9.yaml").write_text("machine_types: {x9: {shared: {}}}")

    assert rejection(folder) == "x9.yaml: machine_types.x9: needs either rows or sizes"


def test_the_files_read_the_same_without_the_c_parser() -> None:
    assert issubclass(reading._Loader, yaml.CSafeLoader)
    for path in SHIPPED.glob("*.yaml"):
        assert reading.read_file(path) == yaml.load(path.read_text(), Loader=yaml.SafeLoader)


def run(program: str) -> str:
    """Run a program in a separate Python that has imported nothing."""
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_the_catalogue_reads_nothing_and_reading_it_never_imports_pulumi() -> None:
    printed = run(
        "import sys, training_platform.catalog as catalog\n"
        "print('yaml' in sys.modules, 'training_platform.catalog.loader' in sys.modules)\n"
        "catalog.MACHINE_TYPES\n"
        "import training_platform.catalog.locations, training_platform.catalog.topologies\n"
        "print('yaml' in sys.modules, [name for name in sys.modules if name.startswith(('pulumi', 'pydantic'))])"
    )

    assert printed.splitlines() == ["False False", "True []"]


def test_the_models_give_no_machine_its_type_before_somebody_asks_for_it() -> None:
    printed = run(
        "from training_platform.catalog import loader\n"
        "typed, build = [], loader.build\n"
        "loader.build = lambda kind, *rest: typed.append(kind.__name__) or build(kind, *rest)\n"
        "from training_platform.config.model import stack\n"
        "print('MachineType' in typed)\n"
        "loader.default().machine_types['a3-highgpu-8g']\n"
        "print(typed.count('MachineType'))"
    )

    assert printed.splitlines() == ["False", "1"]


def test_the_facts_are_read_once() -> None:
    assert catalog.QUOTAS is catalog.QUOTAS
    assert catalog.MACHINE_TYPES is default().machine_types


def test_every_public_name_has_facts() -> None:
    assert [name for name in catalog.__all__ if not getattr(catalog, name)] == []


def test_a_name_that_is_not_public_is_refused_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="no attribute 'MACHINES'"):
        _ = catalog.MACHINES  # type: ignore[attr-defined]


def test_quotas_that_no_family_owns_have_short_names() -> None:
    assert catalog.GENERAL_QUOTAS["gpus-all-regions"] == QuotaId(
        "compute.googleapis.com", "GPUS-ALL-REGIONS-per-project", "GPUs", "project"
    )
    assert not {"tpu-v4", "h100", "filestore-ssd"} & set(catalog.GENERAL_QUOTAS)


def test_every_quota_is_known_by_its_id_with_its_source() -> None:
    assert len(catalog.QUOTAS) == len(default().quotas)  # no id under two names
    assert set(catalog.GENERAL_QUOTAS.values()) < set(catalog.QUOTAS)
    assert catalog.QUOTAS[catalog.GENERAL_QUOTAS["vertex-pd-ssd"]].unverified == ("quota_id",)
    assert catalog.QUOTAS[catalog.GENERAL_QUOTAS["cpus"]].unverified == ()


def test_every_image_has_a_tag() -> None:
    assert [image for image in catalog.IMAGES.values() if ":" not in image.rpartition("/")[2]] == []
