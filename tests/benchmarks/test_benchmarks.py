"""The invented organisations: clean by construction, the same every time, and wrong only where a fault is planted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.fleet import TODAY, Fault, FleetSize, write_fleet
from tests.support.places import ROOT
from training_platform.catalog import ACCELERATORS
from training_platform.catalog.types import Json
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.expansion import pools
from training_platform.config.workspace import read_workspace

SHAPE = FleetSize(environments=3, pools=24, teams=2)


def oversized_disk(pool: Json) -> bool:
    """Plant a disk that is too large, but not in a pool of several slices, which would have it several times."""
    if "max_nodes" not in pool:
        return False
    pool["boot_disk"] = {"size_gb": 700_000}
    return True


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

    report = run_check(tmp_path, CheckOptions(today=TODAY))

    assert [str(finding) for finding in report.all_findings()] == []
    assert report.failures == ()
    assert len(report.stacks) == SHAPE.stacks == 3 + 3 * 2


def test_a_fleet_has_the_pools_that_it_is_asked_for_of_many_kinds(tmp_path: Path) -> None:
    write_fleet(tmp_path, SHAPE)

    pools_of_stacks = {stack.name: list(pools(home)) for stack, home in read_workspace(tmp_path).environments()}

    assert [len(stack_pools) for stack_pools in pools_of_stacks.values()] == [24, 24, 24]
    all_pools = [pool for stack_pools in pools_of_stacks.values() for pool in stack_pools]
    assert {pool.spec.capacity for pool in all_pools} == {"on-demand", "spot", "flex-start", "reservation"}
    assert len({pool.accelerator.name for pool in all_pools}) >= len(ACCELERATORS) / 2
    assert any(pool.multi_host for pool in all_pools)


def test_the_same_shape_gives_the_same_files(tmp_path: Path) -> None:
    write_fleet(tmp_path / "one", SHAPE)
    write_fleet(tmp_path / "two", SHAPE)

    assert files(tmp_path / "one") == files(tmp_path / "two")


@pytest.mark.parametrize("rule", FAULTS)
def test_a_planted_fault_is_found_in_every_environment_and_nothing_else_is(rule: str, tmp_path: Path) -> None:
    write_fleet(tmp_path, SHAPE, FAULTS[rule])

    errors = [
        finding
        for finding in run_check(tmp_path, CheckOptions(today=TODAY)).all_findings()
        if finding.severity == "error"
    ]

    assert {error.stack for error in errors if error.rule == rule} == {"env000", "env001", "env002"}
    # A larger disk needs more quota; another topology is another flavor, which the teams then do not name.
    follows = {"quota-exceeded", "capacity-exceeded", "stack-model"}
    assert {error.rule for error in errors} - follows <= {rule}


def test_a_name_that_is_no_benchmark_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["engine", "nothing"])

    assert ended.value.code == 2
    assert capsys.readouterr().err == f"There is no benchmark nothing. There are: {', '.join(BENCHMARKS)}.\n"


def test_pages_name_only_benchmarks_that_exist() -> None:
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md")]

    named = {name for page in pages for name in re.findall(r"make bench ARGS=(\w+)", page)}

    assert named
    assert named <= set(BENCHMARKS)
