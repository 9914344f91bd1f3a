"""The invented organisations: clean by construction, the same every time, and wrong only where a fault is planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.fleet import TODAY, Fault, Shape, write_fleet
from benchmarks.others import oversized_disk, terraform_plan
from training_platform.catalog import ACCELERATORS
from training_platform.catalog.types import Json
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.pools import pools
from training_platform.config.workspace import read_workspace

SHAPE = Shape(environments=3, pools=24, teams=2)


def illegal_topology(pool: Json) -> bool:
    if "x" not in str(pool.get("topology", "")) or pool["topology"].count("x") != 1:
        return False
    pool["topology"] = "3x5"
    return True


def too_many(pool: Json) -> bool:
    if "max_nodes" not in pool or pool["capacity"] == "reservation":
        return False  # reserved VMs are charged to no quota of accelerators everywhere
    pool["max_nodes"] = 64
    return True


FAULTS: dict[str, Fault] = {
    "boot-disk-size": oversized_disk,
    "tpu-topology": illegal_topology,
    "quota-exceeded": too_many,
}


def files(root: Path) -> dict[str, str]:
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def test_a_fleet_has_no_findings(tmp_path: Path) -> None:
    write_fleet(tmp_path, SHAPE)

    report = run_check(tmp_path, CheckOptions(today=TODAY, fast=True))

    assert [str(finding) for finding in report.all_findings()] == []
    assert report.failures == ()
    assert len(report.stacks) == SHAPE.stacks == 3 + 3 * 2


def test_a_fleet_has_the_pools_that_it_is_asked_for_of_many_kinds(tmp_path: Path) -> None:
    write_fleet(tmp_path, SHAPE)

    found = {stack.name: list(pools(home)) for stack, home in read_workspace(tmp_path).environments()}

    assert [len(each) for each in found.values()] == [24, 24, 24]
    all_pools = [pool for each in found.values() for pool in each]
    assert {pool.spec.capacity for pool in all_pools} == {"on-demand", "spot", "flex-start", "reservation"}
    assert len({pool.accelerator.name for pool in all_pools}) > len(ACCELERATORS) / 2
    assert any(pool.multi_host for pool in all_pools)


def test_the_same_shape_gives_the_same_files(tmp_path: Path) -> None:
    write_fleet(tmp_path / "one", SHAPE)
    write_fleet(tmp_path / "two", SHAPE)

    assert files(tmp_path / "one") == files(tmp_path / "two")


@pytest.mark.parametrize("rule", FAULTS)
def test_a_planted_fault_is_found_in_every_environment_and_nothing_else_is(rule: str, tmp_path: Path) -> None:
    write_fleet(tmp_path, SHAPE, FAULTS[rule])

    errors = [
        each
        for each in run_check(tmp_path, CheckOptions(today=TODAY, fast=True)).all_findings()
        if each.severity == "error"
    ]

    assert {each.stack for each in errors if each.rule == rule} == {"env000", "env001", "env002"}
    # A larger disk needs more quota; another topology is another flavor, which the teams then do not name.
    follows = {"quota-exceeded", "capacity-exceeded", "stack-model"}
    assert {each.rule for each in errors} - follows <= {rule}


def test_the_terraform_plan_has_every_pool_with_its_machine_and_disk(tmp_path: Path) -> None:
    write_fleet(tmp_path, SHAPE, oversized_disk)
    workspace = read_workspace(tmp_path)

    resources = terraform_plan(workspace)["planned_values"]["root_module"]["resources"]

    node_pools = [each for each in resources if each["type"] == "google_container_node_pool"]
    homes = [home for _, home in workspace.environments()]
    own = sum(len(pool.gke_pools) for home in homes for pool in pools(home))
    assert len(node_pools) == own + sum(len(home.clusters) for home in homes)  # each cluster has a system pool
    machines = {pool.spec.machine_type for home in homes for pool in pools(home)}
    assert machines <= {each["values"]["node_config"][0]["machine_type"] for each in node_pools}
    assert len({each["address"] for each in resources}) == len(resources)
    sizes = [each["values"]["node_config"][0]["boot_disk"][0]["size_gb"] for each in node_pools]
    assert sizes.count(700_000) == 3


def test_a_name_that_is_no_benchmark_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["rules", "nothing"])

    assert ended.value.code == 2
    assert capsys.readouterr().err == f"There is no benchmark nothing. There are: {', '.join(BENCHMARKS)}.\n"
