from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.places import ORGANISATION
from training_platform.checks.comparison.refusals import Order, deployment_order, removals
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


def order(head: Workspace, base: Workspace) -> Order:
    return deployment_order(head, base, "prod")


def test_a_team_that_lets_a_pool_go_is_deployed_before_its_environment(base: Workspace, tmp_path: Path) -> None:
    head = without(tmp_path, prod=POOL, prod_nlp=SHARE)
    (found,) = removals(head, base)

    assert (found.rule, found.severity, found.stack, found.path) == (
        "removed-flavor", "note", "prod", "clusters.us-central1",
    )  # fmt: skip
    assert "flavor a100-80 of cluster us-central1 goes in the change in which prod-nlp lets it go" in found.message
    assert order(head, base).before == {"prod-nlp"}
    assert order(head, base).two_deployments == ""


def test_what_a_team_comes_to_need_is_deployed_before_it(base: Workspace, tmp_path: Path) -> None:
    before = without(tmp_path, prod=POOL, prod_nlp=SHARE)

    assert order(base, before).before == frozenset()
    assert {stack for stack, _ in order(base, before).added} == {"prod-nlp"}
    assert list(removals(base, before)) == []


def moved(root: Path, share: str) -> Workspace:
    """Return the organisation with another pool in the place of one, and ``share`` of the new one with team nlp."""
    new = POOL.replace("a100-80gb:", "l4:").replace("a2-ultragpu-8g", "g2-standard-96")
    workspace = without(root, prod=POOL, prod_nlp=SHARE)
    for stack, after, text in (("prod", "node_pools:\n", new), ("prod-nlp", "us-central1:\n", share)):
        path = root / "stacks" / f"Pulumi.{stack}.yaml"
        whole = path.read_text(encoding="utf-8")
        place = whole.index(after, whole.index("us-central1:\n")) + len(after)
        path.write_text(whole[:place] + text + whole[place:], encoding="utf-8")
    return read_workspace(workspace.root)


def test_a_team_that_moves_from_one_pool_to_another_wants_two_deployments(base: Workspace, tmp_path: Path) -> None:
    head = moved(tmp_path, "        l4: {nominal_quota: 8}\n")
    (found,) = removals(head, base)

    assert "l4" in head.flavors("prod", "us-central1")
    assert (found.severity, found.allowed) == ("warning", "two changes: additions, then removals")
    assert "wants two deployments: prod-nlp needs flavor l4 of cluster us-central1" in found.message


def test_a_pool_that_comes_for_nobody_keeps_a_removal_in_one_deployment(base: Workspace, tmp_path: Path) -> None:
    head = moved(tmp_path, "")

    assert order(head, base).two_deployments == ""
    assert order(head, base).before == {"prod-nlp"}


def test_a_share_that_goes_first_is_as_it_should_be(base: Workspace, tmp_path: Path) -> None:
    assert list(removals(without(tmp_path, prod_nlp=SHARE), base)) == []


def test_a_pool_whose_share_went_before_is_as_it_should_be(base: Workspace, tmp_path: Path) -> None:
    before = without(tmp_path / "before", prod_nlp=SHARE)

    assert list(removals(without(tmp_path / "after", prod=POOL, prod_nlp=SHARE), before)) == []


def test_an_unchanged_organisation_removes_nothing(base: Workspace) -> None:
    assert list(removals(base, base)) == []
    assert order(base, base) == Order((), ())
