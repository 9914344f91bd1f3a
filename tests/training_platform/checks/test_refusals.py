"""Changes that Kueue, Filestore or the engine refuses are found before a deployment."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.kube.queues import ENVIRONMENT, stacks
from tests.support.places import ORGANISATION
from tests.training_platform.checks.repository import Repository
from tests.training_platform.quota.file_systems import workspace
from training_platform.checks.change_report import (
    Comparison,
    InputChange,
    ResourceChange,
    ResourceChangeKind,
    StackChange,
)
from training_platform.checks.comparison.refusals import (
    DeploymentOrder,
    deployment_order,
    fixed_inputs,
    kept_instances,
    placed_flavors,
    removals,
)
from training_platform.cli.main import app
from training_platform.config.reading.declaration import located
from training_platform.config.reading.finding import Finding
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


def order(head: Workspace, base: Workspace) -> DeploymentOrder:
    return deployment_order(head, base, "prod")


def test_a_team_that_lets_a_pool_go_is_deployed_before_its_environment(base: Workspace, tmp_path: Path) -> None:
    head = without(tmp_path, prod=POOL, prod_nlp=SHARE)
    (finding,) = located(removals(head, base))

    assert (finding.rule, finding.severity, finding.stack, finding.path) == (
        "removed-flavor", "note", "prod", "clusters.us-central1",
    )  # fmt: skip
    assert "flavor a100-80 of cluster us-central1 is removed in the same change" in finding.message
    assert finding.message.endswith("prod-nlp stops using it")
    assert order(head, base).before == {"prod-nlp"}
    assert order(head, base).two_deployments == ""


def test_a_team_whose_file_still_names_a_removed_pool_does_not_stop_using_it(base: Workspace, tmp_path: Path) -> None:
    head = without(tmp_path, prod=POOL)

    assert list(removals(head, base)) == []


def test_what_a_team_comes_to_need_is_deployed_before_it(base: Workspace, tmp_path: Path) -> None:
    before = without(tmp_path, prod=POOL, prod_nlp=SHARE)

    assert order(base, before).before == frozenset()
    assert {stack for stack, _ in order(base, before).added} == {"prod-nlp"}
    assert list(removals(base, before)) == []


def moved(root: Path, share: str) -> Workspace:
    """Return the organisation with one pool replaced by another, and team nlp's ``share`` of the new one."""
    new = POOL.replace("a100-80gb:", "l4:").replace("a2-ultragpu-8g", "g2-standard-96")
    workspace = without(root, prod=POOL, prod_nlp=SHARE)
    for stack, after, text in (("prod", "node_pools:\n", new), ("prod-nlp", "us-central1:\n", share)):
        path = root / "stacks" / f"Pulumi.{stack}.yaml"
        whole = path.read_text(encoding="utf-8")
        place = whole.index(after, whole.index("us-central1:\n")) + len(after)
        path.write_text(whole[:place] + text + whole[place:], encoding="utf-8")
    return read_workspace(workspace.root)


def test_a_team_that_moves_from_one_pool_to_another_needs_two_deployments(base: Workspace, tmp_path: Path) -> None:
    head = moved(tmp_path, "        l4: {nominal_quota: 8}\n")
    (finding,) = located(removals(head, base))

    assert "l4" in head.flavors("prod", "us-central1")
    assert (finding.severity, finding.allowed) == ("warning", "two changes: first the additions, then the removals")
    assert "requires two deployments: prod-nlp starts to use flavor l4 of cluster us-central1" in finding.message


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
    assert order(base, base) == DeploymentOrder((), ())


PLACED = {"topology_aware": True}
TAINT = {"taints": {"team": {"value": "vision", "effect": "NO_SCHEDULE"}}}


def side(pool: dict[str, Any], *, name: str = "placed", location: str = "us-central1-a") -> Workspace:
    """Return stack files whose pool ``placed`` has other fields or another name."""
    clusters = yaml.safe_load(ENVIRONMENT)["clusters"]
    pools = clusters["main"]["node_pools"]
    whole = pools.pop("placed") | {"topology_aware": False} | pool
    clusters["main"] |= {"node_pools": {**pools, name: whole}, "location": location}
    return stacks({"clusters": clusters}, {})


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (PLACED, {}, "topologyName"),
        (PLACED, PLACED | TAINT, "tolerations"),
        (PLACED | TAINT, {}, "topologyName, tolerations"),
    ],
    ids=["no-topology", "taint", "both"],
)
def test_a_change_that_kueue_refuses_is_found_at_the_pool(
    before: dict[str, Any], after: dict[str, Any], changed: str
) -> None:
    (finding,) = located(placed_flavors(side(after), side(before)))

    assert (finding.rule, finding.severity, finding.path) == (
        "placed-flavor",
        "error",
        "clusters.main.node_pools.placed",
    )
    assert finding.position is not None
    assert f"changes {changed} of flavor h100-mega-reservation," in finding.message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (side({}), side(PLACED)),  # a topology can be given to a flavor
        (side({}), side(TAINT)),
        (side(PLACED), side(PLACED | {"max_nodes": 5})),
        (side(PLACED), side(PLACED, name="another")),  # of the same flavor
        (side(PLACED), side({"capacity": "spot", "reservation": None, "min_nodes": 0})),  # of another
    ],
    ids=["topology", "taint", "size", "pool", "flavor"],
)
def test_what_kueue_takes_is_not(before: Workspace, after: Workspace) -> None:
    assert list(placed_flavors(after, before)) == []


def test_a_flavor_of_another_cluster_or_of_a_new_environment_is_not_the_same_object() -> None:
    assert list(placed_flavors(side({}, location="us-central1-c"), side(PLACED))) == []
    assert list(placed_flavors(side({}), Workspace(side(PLACED).root, {}))) == []


def change(
    root: Path, before: int, after: int, *, tier: str = "ZONAL", extra: str = "", now: str | None = None
) -> list[Finding]:
    sides = []
    for name, capacity, more in (("before", before, extra), ("after", after, extra if now is None else now)):
        (root / name).mkdir()
        sides.append(workspace(root / name, capacity=capacity, one_gib=1, other_gib=1, tier=tier, extra=more))
    return located(kept_instances(sides[1], sides[0]))


@pytest.mark.parametrize(
    ("tier", "before", "after", "nearest"),
    [
        ("ZONAL", 9984, 10240, "9984"),
        ("ZONAL", 10240, 9984, "10240"),
        ("REGIONAL", 1024, 12800, "9984"),
        ("BASIC_HDD", 2048, 2047, "2048"),
        ("BASIC_SSD", 4096, 2560, "4096"),
    ],
)
def test_what_the_tier_cannot_do_is_found_at_its_line(
    tmp_path: Path, tier: str, before: int, after: int, nearest: str
) -> None:
    (finding,) = change(tmp_path, before, after, tier=tier)

    assert (finding.rule, finding.severity, finding.path) == (
        "filestore-growth",
        "error",
        "filestore.data.capacity_gib",
    )
    assert finding.position is not None
    assert finding.nearest == nearest


@pytest.mark.parametrize(
    ("tier", "before", "after"),
    [("ZONAL", 1024, 9984), ("ZONAL", 9984, 1024), ("ZONAL", 102400, 10240), ("BASIC_HDD", 2047, 2048)],
)
def test_what_it_can_do_is_not(tmp_path: Path, tier: str, before: int, after: int) -> None:
    assert change(tmp_path, before, after, tier=tier) == []


def ranged(text: str | None) -> str:
    return f"reserved_range: {text}" if text else ""


@pytest.mark.parametrize("now", ["10.0.1.0/24", None])
def test_an_instance_keeps_the_range_that_it_was_created_with(tmp_path: Path, now: str | None) -> None:
    (finding,) = change(tmp_path, 1024, 1024, extra=ranged("10.0.0.0/24"), now=ranged(now))

    assert (finding.rule, finding.path) == ("filestore-range-kept", "filestore.data.reserved_range")
    assert finding.position is not None
    assert finding.nearest == "10.0.0.0/24"


@pytest.mark.parametrize(("before", "now"), [(None, "10.0.0.0/24"), ("10.0.0.0/24", "10.0.0.0/24")])
def test_a_file_may_say_later_which_range_an_instance_has(tmp_path: Path, before: str | None, now: str) -> None:
    assert change(tmp_path, 1024, 1024, extra=ranged(before), now=ranged(now)) == []


LUSTRE = "\n    private_services_range: 10.200.0.0/20\n    lustre: {scratch: {location: us-central1-a, SPEC}}\n"


def lustre(root: Path, before: str, after: str) -> list[Finding]:
    sides = []
    for name, spec in (("before", before), ("after", after)):
        (root / name).mkdir()
        workspace(root / name, capacity=1024, one_gib=1, other_gib=1)
        path = root / name / "stacks" / "Pulumi.env.yaml"
        path.write_text(path.read_text().rstrip() + LUSTRE.replace("SPEC", spec))
        sides.append(read_workspace(root / name))
        assert not sides[-1].stacks["env"].findings
    return located(kept_instances(sides[1], sides[0]))


@pytest.mark.parametrize(
    ("before", "after", "nearest"),
    [
        ("18000", "9000", "18000"),
        ("1530000", "1584000", "1530000"),
        ("9000", "1530000", None),
        ("18000", "18000", None),
    ],
)
def test_managed_lustre_grows_in_its_band(tmp_path: Path, before: str, after: str, nearest: str | None) -> None:
    findings = lustre(tmp_path, f"capacity_gib: {before}", f"capacity_gib: {after}")

    assert [(finding.path, finding.nearest) for finding in findings] == (
        [("lustre.scratch.capacity_gib", nearest)] if nearest else []
    )


def test_managed_lustre_of_another_throughput_is_another_instance(tmp_path: Path) -> None:
    assert lustre(tmp_path, "capacity_gib: 36000", "capacity_gib: 18000, mbps_per_tib: 500") == []


def test_another_instance_may_have_any_capacity(tmp_path: Path) -> None:
    assert change(tmp_path, 9984, 10240, extra="share: one", now="share: two") == []


def test_a_capacity_that_no_band_has_is_another_rule_s(tmp_path: Path) -> None:
    assert change(tmp_path, 9984, 9985) == []


@pytest.mark.parametrize(
    ("kind", "type_", "path", "count"),
    [
        ("changed", "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue", "spec.clusterQueue", 1),
        ("changed", "kubernetes:kueue.x-k8s.io/v1beta1:Topology", "spec.levels[0].nodeLabel", 1),
        ("changed", "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue", "spec.stopPolicy", 0),
        ("replaced", "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue", "spec.clusterQueue", 0),
        ("changed", "gcp:storage/bucket:Bucket", "spec.clusterQueue", 0),
    ],
)
def test_an_input_that_nobody_may_change_is_an_error_on_an_object_that_stays(
    base: Workspace, kind: ResourceChangeKind, type_: str, path: str, count: int
) -> None:
    resource = ResourceChange(
        kind=kind, type=type_, name="own", inputs=(InputChange(path, "a", "b", kind == "replaced"),)
    )
    change = StackChange(name="prod", kind="changed", resources=(resource,), head=base.stacks["prod"])

    findings = located(fixed_inputs(Comparison(ref="base", commit="", stacks=(change,))))

    assert [(finding.rule, finding.severity, finding.stack) for finding in findings] == [
        ("fixed-input", "error", "prod")
    ] * count


OWN = """\
from training_platform.resources.plan import Resource


def add_resources(own):
    if own.team and own.team.buckets:
        own.plan.add(Resource(type="gcp:storage/folder:Folder", name="own", inputs={}))
"""


def test_a_deployer_needs_further_rights_for_the_first_of_a_type_and_not_for_the_second(repository: Repository) -> None:
    def rights() -> list[str]:
        findings = repository.compare(base="HEAD").all_findings()
        notes = [finding for finding in findings if finding.rule == "deployer-rights"]
        assert all(note.file == "stacks/Pulumi.small.yaml" and note.severity == "note" for note in notes)
        return [note.message for note in notes]

    repository.edit("small-vision", "    vertex:", "    secrets: [one]\n    vertex:")
    (first,) = rights()
    repository.commit()
    repository.edit("small-vision", "[one]", "[one, two]")
    second = rights()

    assert first.startswith("the account that deploys it needs further rights: secretmanager.secrets.create, ")
    assert first.endswith(" in example-small")
    assert second == []


def test_a_type_whose_permissions_are_not_known_is_a_further_right_and_a_line_of_the_script(
    repository: Repository,
) -> None:
    (repository.root / "own_resources.py").write_text(OWN, encoding="utf-8")
    repository.commit()
    repository.edit("small-vision", "    vertex:", "    buckets: {data: {location: us-central1}}\n    vertex:")

    findings = repository.compare(base="HEAD").all_findings()
    script = CliRunner().invoke(app, ["pipeline-accounts", "example-admin", "--root", str(repository.root)])

    (message,) = [finding.message for finding in findings if finding.rule == "deployer-rights"]
    assert "gcp:storage/folder:Folder, " in message
    assert script.exit_code == 0
    account = "deploy-small@example-admin.iam.gserviceaccount.com"
    assert f"# Grant {account} the right to create gcp:storage/folder:Folder in example-small yourself" in script.stdout
