"""What holds for every rule."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.builders import FLAWLESS, check, example, gpu_pool, slice_pool
from training_platform.config.reading.finding import Finding
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import View, evaluate, program, view_rules, views_of_plan
from training_platform.rules.descriptions import rule_sheet
from training_platform.views.adapters import VIEWS_OF

BEYOND = {
    "alpha-cluster",
    "auto-provisioning-nodes",
    "cluster-needs",
    "e2-features",
    "blue-green-settings",
    "bucket-hierarchical",
    "filestore-clients",
    "filestore-exports",
    "filestore-multishare",
    "filestore-protection",
    "filestore-snapshot",
    "local-ssd-forms",
    "lustre-addresses",
    "lustre-location",
    "lustre-region",
    "partial-admission",
    "persistent-network",
    "range-names",
    "topology-autoscaled",
    "vm-local-ssds",
    "vm-migration",
    "elastic-job",
    "queued-metadata",
    "topology-group",
    "topology-request",
    "attachment-range",
    "node-huge-pages",
    "node-sysctls",
    "subnet-range",
}  # read in Google's docs or Kueue's source; in no row of the sheet
# Fields that decide nothing for a flawless view: they are there for ledgers and messages, or matter beside others.
UNREAD = {
    "batch_nodes", "checks", "cidr", "clashing", "compute_class", "count",
    "default_machine", "disk_driver", "flavor", "gpu_topology", "group", "ignored",
    "instance", "local_ssds", "makes_pools", "max_ports", "most_gib",
    "min_cpu_platform", "mtu", "pools_inside", "ports",
    "profile", "queue", "ranges", "resource", "specific", "tolerated", "versioning", "zone",
}  # fmt: skip


def found(*views: View, production: bool = True) -> list[Finding]:
    return evaluate(program(views, stack="dev", environment="dev", team="vision", production=production))


def test_flawless_views_break_no_rule() -> None:
    assert found(*(make() for make in FLAWLESS)) == []


@pytest.mark.parametrize("rule", [rule.id for rule in view_rules()])
def test_a_whole_program_breaks_no_rule(rule: str) -> None:
    assert [finding for finding in check(rule, *example()) if finding.severity != "note"] == []


def test_unknown_field_is_a_note_and_never_an_error() -> None:
    noted: dict[str, bool] = {}
    for make in FLAWLESS:
        for field in make().values():
            findings = found(make(**{field: UNKNOWN}))
            assert {finding.severity for finding in findings} <= {"note"}, (field, findings)
            assert all("is not known before deployment" in finding.message for finding in findings)
            noted[field] = noted.get(field, False) or bool(findings)

    assert {field for field, seen in noted.items() if not seen} == UNREAD


def test_optional_field_that_is_left_out_is_never_an_exception() -> None:
    other_views = [make() for make in FLAWLESS]
    for make in FLAWLESS:
        view = make()
        bare = type(view)(stack="dev", type=view.type, name="bare")
        for field, left_out in bare.values().items():
            if left_out is None:
                found(make(**{field: None}), *other_views)


@pytest.mark.parametrize("kind", sorted(VIEWS_OF))
def test_resource_without_inputs_is_never_an_exception(kind: str) -> None:
    other_views = [make() for make in FLAWLESS]
    nothing: list[Any] = [{}, UNKNOWN]
    for inputs in nothing:
        views = views_of_plan([StackResource(stack="dev", type=kind, name="bare", inputs=inputs)])

        found(*views, *other_views)


def test_every_rule_says_where_it_is_from_and_what_it_finds() -> None:
    for rule in view_rules():
        assert rule.source, rule.id
        assert rule.title.startswith("Find "), rule.id
        assert rule.title.endswith("."), rule.id
        assert (
            rule_sheet(rule.id).facts
            or rule.owner in ("house", "catalogue", "kubernetes", "documents")
            or rule.id in BEYOND
        ), rule.id


def test_finding_names_rule_resource_and_section() -> None:
    (finding,) = found(gpu_pool(disk_gb=9))

    assert finding.rule == "boot-disk-size"
    assert finding.resource == "NodePoolView thing"
    assert finding.path == "section.boot_disk.size_gb"
    assert finding.source is not None


def test_what_is_wrong_alike_in_one_section_is_said_once() -> None:
    slices = [slice_pool(name=f"slice-{index}", tpu_topology="3x8") for index in range(3)]
    elsewhere = slice_pool(name="other", tpu_topology="3x8", origin=("other",))
    views = [*slices, elsewhere, slice_pool(name="a", origin=(), tpu_topology="3x8")]
    topologies = [finding for finding in found(*views) if finding.rule == "tpu-topology"]

    assert [finding.path for finding in topologies] == [
        "section.topology",
        "other.topology",
        "placementPolicy.tpuTopology",
    ]
