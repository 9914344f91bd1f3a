from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.places import ORGANISATION
from training_platform.checks.comparison.removed_flavors import removed_flavors
from training_platform.config.workspace import Workspace, read_workspace

SHARE = "        a100-80: {nominal_quota: 32}\n"
POOL = """\
          a100-80gb:
            machine_type: a2-ultragpu-8g
            zone: us-central1-c
            max_nodes: 4
            boot_disk: {type: pd-ssd, size_gb: 200}
"""


@pytest.fixture
def base() -> Workspace:
    return read_workspace(ORGANISATION)


def without(root: Path, **removed: str) -> Workspace:
    shutil.copytree(ORGANISATION / "stacks", root / "stacks")
    for stack, text in removed.items():
        path = root / "stacks" / f"Pulumi.{stack.replace('_', '-')}.yaml"
        whole = path.read_text(encoding="utf-8")
        assert text in whole
        path.write_text(whole.replace(text, ""), encoding="utf-8")
    return read_workspace(root)


def test_a_pool_that_goes_with_its_share_wants_two_changes(base: Workspace, tmp_path: Path) -> None:
    (found,) = removed_flavors(without(tmp_path, prod=POOL, prod_nlp=SHARE), base)

    assert (found.rule, found.severity, found.stack, found.path) == (
        "removed-flavor", "warning", "prod", "clusters.us-central1",
    )  # fmt: skip
    assert "flavor a100-80 goes in the change in which team nlp's share of it goes" in found.message
    assert found.allowed == "two changes: first the share, then the pool"


def test_a_share_that_goes_first_is_as_it_should_be(base: Workspace, tmp_path: Path) -> None:
    assert list(removed_flavors(without(tmp_path, prod_nlp=SHARE), base)) == []


def test_a_pool_whose_share_went_before_is_as_it_should_be(base: Workspace, tmp_path: Path) -> None:
    before = without(tmp_path / "before", prod_nlp=SHARE)

    assert list(removed_flavors(without(tmp_path / "after", prod=POOL, prod_nlp=SHARE), before)) == []


def test_an_unchanged_organisation_removes_nothing(base: Workspace) -> None:
    assert list(removed_flavors(base, base)) == []
