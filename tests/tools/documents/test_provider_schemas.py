"""What the provider checks, read from Go: as invented sources say it, and as it is committed for every type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.documents import __main__ as generator
from tools.documents.go_literals import Call, Literal, Name
from tools.documents.provider_schemas import SOURCE, Provider
from training_platform.resources.rest import paths
from training_platform.rules.documents.shapes import check_of

POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
SCHEMA = """
package compute

var kinds = []string{"COLLOCATED", "SPREAD"}

func timesSchema() *schema.Schema {
	return &schema.Schema{Type: schema.TypeString, ValidateFunc: validation.StringLenBetween(2, 9)}
}

func ResourceComputeResourcePolicy() *schema.Resource {
	return &schema.Resource{
		Create: func(d *schema.ResourceData) error { return other(map[string]int{"a": 1}) },
		Schema: tpgresource.MergeSchemas(map[string]*schema.Schema{
			"name": {ValidateFunc: verify.ValidateRegexp(`^[a-z]+$`)}, // a comment, with a { in it
		}, map[string]*schema.Schema{
			"description": timesSchema(),
			"unheard_of":  {ValidateFunc: validation.IntBetween(1, 2)},
			"group_placement_policy": {
				Type: schema.TypeList, MaxItems: 1, ConflictsWith: []string{"snapshot_schedule_policy"},
				Elem: &schema.Resource{Schema: map[string]*schema.Schema{
					"collocation":  {ValidateFunc: validation.StringInSlice(kinds, false)},
					"gpu_topology": {ValidateFunc: validation.StringInSlice([]string{"a"}, true)},
					"max_distance": {
						ValidateFunc:  validation.IntBetween(1, 3),
						ConflictsWith: []string{"group_placement_policy.0.gpu_topology"},
					},
					"vm_count": {ValidateFunc: func(i interface{}, k string) ([]string, []error) { return nil, nil }},
				}},
			},
			"snapshot_schedule_policy": {Elem: &schema.Resource{Schema: map[string]*schema.Schema{
				"schedule": {Elem: &schema.Resource{Schema: map[string]*schema.Schema{
					"weekly_schedule": {Elem: &schema.Resource{Schema: map[string]*schema.Schema{
						"day_of_weeks": {
							MinItems: 1, MaxItems: 7,
							Elem: &schema.Resource{Schema: map[string]*schema.Schema{
								"day": {ValidateFunc: verify.ValidateEnum([]string{"MONDAY", ""})},
							}},
						},
					}}},
					"daily_schedule": {ExactlyOneOf: []string{
						"snapshot_schedule_policy.0.schedule.0.daily_schedule",
						"snapshot_schedule_policy.0.schedule.0.hourly_schedule",
					}},
				}}},
			}}},
		}),
	}
}
"""


def test_facts_of_a_schema_stand_under_pulumis_names(tmp_path: Path) -> None:
    folder = tmp_path / "compute"
    folder.mkdir()
    (folder / "resource_compute_resource_policy.go").write_text(SCHEMA, encoding="utf-8")

    days = "snapshotSchedulePolicy.schedule.weeklySchedule.dayOfWeeks"
    assert Provider(tmp_path).rows(POLICY) == {
        "": {"groups": [{"of": ["groupPlacementPolicy", "snapshotSchedulePolicy"], "most": 1}]},
        "name": {"pattern": "^[a-z]+$"},
        "description": {"shortest": 2, "longest": 9},
        "groupPlacementPolicy": {"groups": [{"of": ["gpuTopology", "maxDistance"], "most": 1}]},
        "groupPlacementPolicy.collocation": {"enum": ["COLLOCATED", "SPREAD"]},
        "groupPlacementPolicy.maxDistance": {"least": 1, "most": 3},
        "snapshotSchedulePolicy.schedule": {
            "groups": [{"of": ["dailySchedule", "hourlySchedule"], "least": 1, "most": 1}]
        },
        days: {"fewest": 1, "most": 7},
        f"{days}[].day": {"enum": ["MONDAY"]},
    }
    assert Provider(tmp_path).rows("gcp:compute/network:Network") == {}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ('"a\\"b"', 'a"b'),
        ("`a`", "a"),
        ("-1.5", -1.5),
        ("true", True),
        ("a.B", Name("a.B")),
        ('f(1, "x")', Call("f", [1, "x"])),
        ("&a.B{C: 1, D: []int{2, 3},}", {"C": 1, "D": [2, 3]}),
        ('map[string]*a.B{"x": {}}', {"x": []}),
        ("[]string{}", []),
        ('{"a": b + "c", "d": 1}', {"a": Name("b"), "d": 1}),
    ],
)
def test_literals_of_go_are_plain_values(source: str, value: Any) -> None:
    assert Literal(source, 0).value() == value


def test_what_is_committed_names_inputs_of_judged_types_and_its_source() -> None:
    content = json.loads((generator.TARGET / "provider.json").read_text(encoding="utf-8"))

    assert content["source"] == SOURCE
    assert content["types"].keys() <= paths()["types"].keys()
    assert sum(len(rows) for rows in content["types"].values()) > 300
    assert all(check_of(token) for token in content["types"])
