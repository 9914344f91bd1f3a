"""The documents of Google's resources: whole, and equal to what the generator makes of the installed packages."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.kube.api_servers import ControlPlanes
from tests.support.places import ROOT
from tools.documents import __main__, google, kubernetes
from tools.documents import __main__ as generator
from tools.documents.google import prose_facts
from tools.documents.provider_schemas import Provider
from tools.documents.sdk_types import write_sdk_types
from training_platform.resources.api_fields import paths
from training_platform.resources.resource_types import RESOURCE_TYPES
from training_platform.rules.documents.constraints import FREE, OPEN, Constraint, Shape, ShapeRows
from training_platform.rules.documents.openapi import KindReader
from training_platform.rules.documents.problems import BrokenConstraint
from training_platform.rules.documents.shapes import check_of


@pytest.fixture(scope="module", name="written")
def _written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, google.TypeReader]:
    folder = tmp_path_factory.mktemp("documents")
    return folder / "google.json", generator.write_google(folder)


@pytest.fixture(scope="module", name="planned")
def _planned() -> google.TypeReader:
    """Return a reader that has read the types of ``resource_types.yaml``, whose inputs are explained by hand."""
    reader = google.TypeReader()
    for token in RESOURCE_TYPES:
        if token.startswith("gcp:"):
            reader.type(token)
    return reader


def test_the_documents_are_those_of_the_installed_packages(written: tuple[Path, google.TypeReader]) -> None:
    committed = (generator.TARGET / "google.json").read_text(encoding="utf-8")

    assert written[0].read_text(encoding="utf-8") == committed, "run make documents"


def test_the_list_of_further_types_is_that_of_the_installed_provider(tmp_path: Path) -> None:
    write_sdk_types(tmp_path / "sdk_types.txt", paths()["types"])

    committed = (generator.TARGET / "sdk_types.txt").read_text(encoding="utf-8")
    assert (tmp_path / "sdk_types.txt").read_text(encoding="utf-8") == committed, "run make documents"


def test_every_resource_type_of_google_cloud_has_a_document() -> None:
    types = {token for token in RESOURCE_TYPES if token.startswith("gcp:")}

    assert types <= set(paths()["types"])
    assert [token for token in types if check_of(token) is None] == []


def test_every_input_has_a_field_or_a_reason_to_have_none(planned: google.TypeReader) -> None:
    without_field = {name for row in google.PATHS["left"] for name in row["inputs"]}
    missing = {
        input_path if input_path in without_field else input_path.rpartition(".")[2]
        for input_path in planned.missing - _output()
    }

    assert missing == without_field


def test_every_renamed_input_is_one_that_the_provider_has(written: tuple[Path, google.TypeReader]) -> None:
    renamed = {f"{message}.{name}" for message, names in paths()["names"].items() for name in names}

    assert renamed == written[1].used
    assert renamed & written[1].missing == set()


def test_every_field_that_only_the_api_writes_is_refused_or_known_to_be_taken(
    written: tuple[Path, google.TypeReader], planned: google.TypeReader
) -> None:
    assert planned.output - _output() == set(google.PATHS["written"])
    assert _output() <= written[1].output | written[1].missing


def _output() -> set[str]:
    return set(google.PATHS["output"])


def test_the_package_has_what_is_written_by_hand(tmp_path: Path) -> None:
    __main__.write_by_hand(tmp_path / "by_hand.json")

    written = (tmp_path / "by_hand.json").read_text(encoding="utf-8")
    assert written == (generator.TARGET / "by_hand.json").read_text(encoding="utf-8"), "run make documents"
    assert json.loads(written) == {**__main__.content(), "types": [list(row) for row in __main__.content()["types"]]}


LABEL = {"pattern": "^([a-z]([-a-z0-9]{0,61}[a-z0-9])?)?$"}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("number", "Span of time. Must be from 0 to 999,999,999 inclusive.", {"minimum": 0, "maximum": 999999999}),
        ("number", "The value of the field must be in [0, 1].", {"minimum": 0, "maximum": 1}),
        ("number", "Valid range is [0.0,1.0].", {"minimum": 0, "maximum": 1}),
        ("number", "If set, this value must be between 20 and 60. The default is 20.", {"minimum": 20, "maximum": 60}),
        ("number", "Must be greater than or equal to 1 hour and less than or equal to 48 hours.",
         {"minimum": 1, "maximum": 48}),
        ("number", "The maximum allowed value is 31,622,400s (1 year).", {"maximum": 31622400}),
        ("number", "The maximum allowed value is two weeks (1,209,600).", {"maximum": 1209600}),
        ("number", "The duration. The minimum allowed value is 300.", {"minimum": 300}),
        ("number", "Must be from 1 to 12, or 0 to specify a year without a month and day.",
         {"minimum": 0, "maximum": 12}),
        ("number", "A value between 01 and 0777 (octal). If 0 or not set, one applies.",
         {"minimum": 0, "maximum": 511}),
        ("text", "The display name is limited to 512 Unicode characters.", {"maxLength": 512}),
        ("text", "Optional. A description with 2048 characters or less.", {"maxLength": 2048}),
        ("text", "It must be between 3 and 255 characters in length.", {"minLength": 3, "maxLength": 255}),
        ("text", "Cannot exceed 256 characters.", {"maxLength": 256}),
        ("text", "The name must be 1-63 characters long, and comply withRFC1035.", LABEL),
        ("list", "A maximum of 10 audiences may be configured.", {"maxItems": 10}),
        ("list", "Up to 5 headers can be specified.", {"maxItems": 5}),
    ],
)  # fmt: skip
def test_a_sentence_that_says_bounds_is_read(kind: str, text: str, expected: dict[str, Any]) -> None:
    assert prose_facts(kind, (text,), FREE) == expected


def test_the_api_is_believed_before_the_provider_and_a_pattern_of_a_document_before_prose() -> None:
    texts = ("Must be between 1 and 30 days, inclusive.", "Must be between 1 and 31 days, inclusive.")

    assert prose_facts("number", texts, FREE) == {"minimum": 1, "maximum": 31}
    assert prose_facts("text", ("Cannot exceed 9 characters.",), Constraint(pattern="[a-z]{3}")) == {}


@pytest.mark.parametrize(
    ("token", "inputs", "path"),
    [
        ("gcp:compute/route:Route", {"priority": 70_000}, "priority"),  # a wider bound of its type in the document
        ("gcp:compute/backendService:BackendService", {"cdnPolicy": {"clientTtl": 40_000_000}}, "cdnPolicy.clientTtl"),
        ("gcp:lustre/instance:Instance", {"instanceId": "a" * 64}, "instanceId"),
        ("gcp:billing/budget:Budget", {"budgetFilter": {"customPeriod": {"startDate": {"day": 0}}}},
         "budgetFilter.customPeriod.startDate.day"),  # the provider's bound is narrower than that in prose
    ],
)  # fmt: skip
def test_a_value_out_of_the_bounds_is_found(token: str, inputs: dict[str, Any], path: str) -> None:
    problems = list[BrokenConstraint]()
    judge = check_of(token)
    assert judge

    judge(inputs, (), problems.append)

    assert [problem.path for problem in problems if problem.kind in ("range", "format")] == [path]


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
			"region": {Type: schema.TypeString, DiffSuppressFunc: tpgresource.CompareSelfLinkOrResourceName},
			"project": {Type: schema.TypeString, DiffSuppressFunc: ownComparison},
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
        "": {"atMostOne": [["groupPlacementPolicy", "snapshotSchedulePolicy"]]},
        "name": {"pattern": "^[a-z]+$"},
        "description": {"minLength": 2, "maxLength": 9},
        "region": {"alike": "link"},
        "groupPlacementPolicy": {"atMostOne": [["gpuTopology", "maxDistance"]]},
        "groupPlacementPolicy.collocation": {"enum": ["COLLOCATED", "SPREAD"], "closed": False},
        "groupPlacementPolicy.maxDistance": {"minimum": 1, "maximum": 3},
        "snapshotSchedulePolicy.schedule": {"exactlyOne": [["dailySchedule", "hourlySchedule"]]},
        days: {"minItems": 1, "maxItems": 7},
        f"{days}[].day": {  # the SDK documents more, as values that its own version takes
            "enum": ["FRIDAY", "MONDAY", "SATURDAY", "SUNDAY", "THURSDAY", "TUESDAY", "WEDNESDAY"], "closed": True,
        },
    }  # fmt: skip
    assert Provider(tmp_path).rows("gcp:compute/network:Network") == {}


GRANTS = """
var IamProjectSchema = map[string]*schema.Schema{
	"project": {Type: schema.TypeString, DiffSuppressFunc: CompareProjectName},
}
"""


def test_facts_of_grants_are_those_of_the_resource_that_they_are_on(tmp_path: Path) -> None:
    folder = tmp_path / "resourcemanager"
    folder.mkdir()
    (folder / "iam_project.go").write_text(GRANTS, encoding="utf-8")

    for kind in ("IAMMember", "IAMBinding", "IAMAuditConfig"):
        rows = Provider(tmp_path).rows(f"gcp:projects/{kind[0].lower()}{kind[1:]}:{kind}")
        assert rows == {"project": {"alike": "link"}}, kind


CRDS = ROOT.parent / "shared" / "schemas"


@pytest.fixture(scope="module", name="crds")
def _crds() -> Path:
    if not CRDS.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    return CRDS


def test_custom_kinds_are_as_their_crds_say(crds: Path) -> None:
    committed = json.loads((generator.TARGET / "kubernetes.json").read_text(encoding="utf-8"))
    rows = ShapeRows(committed["shapes"])
    reader = KindReader({})
    kinds = {token: reader.kind(schema, OPEN) for token, schema in kubernetes.definitions(crds)}

    assert len(kinds) > 30
    for token, kind in kinds.items():
        assert _whole(rows.shape(committed["types"][token])) == _whole(kind), token


@pytest.mark.kube
def test_kinds_of_operators_are_as_their_crds_say(tmp_path: Path) -> None:
    folders = [os.environ.get(f"TRAINING_PLATFORM_{name}_DEFINITIONS") for name in ("LWS", "KUBERAY", "TRAINER")]
    if None in folders:
        pytest.skip("settings name no CRDs of LeaderWorkerSet, KubeRay and Trainer")
    for folder in filter(None, folders):
        for file in Path(folder).glob("*.yaml"):
            if file.name.startswith(("leaderworkerset", "ray.io", "trainer")):
                shutil.copy(file, tmp_path)

    generator.write_apart(tmp_path / "found.json", kubernetes.OPERATORS, tmp_path)

    committed = (generator.TARGET / "operators.json").read_text(encoding="utf-8")
    assert (tmp_path / "found.json").read_text(encoding="utf-8") == committed


@pytest.mark.kube
def test_the_documents_are_those_of_a_real_server_and_the_crds(crds: Path, tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    binaries = Path(os.environ["KUBEBUILDER_ASSETS"])
    with ControlPlanes(binaries, tmp_path / "planes") as planes, planes.server("cluster").client() as http:
        version = http.get("/version").json()["gitVersion"]
        for name, group in http.get("/openapi/v3").json()["paths"].items():
            file = specs / f"{name.replace('/', '__')}_openapi.json"
            file.write_text(http.get(group["serverRelativeURL"]).text, encoding="utf-8")
    if version != f"v{kubernetes.SOURCE['kubernetes']}":
        pytest.skip(f"the documents are of {kubernetes.SOURCE['kubernetes']}, and the server of {version}")

    generator.write_kubernetes(tmp_path / "kubernetes.json", specs, crds)

    generated = json.loads((tmp_path / "kubernetes.json").read_text(encoding="utf-8"))
    committed = json.loads((generator.TARGET / "kubernetes.json").read_text(encoding="utf-8"))
    assert generated["source"] == committed["source"]
    assert generated["types"].keys() == committed["types"].keys()
    of_server = ShapeRows(generated["shapes"])
    rows = ShapeRows(committed["shapes"])
    for token, number in generated["types"].items():
        assert _whole(of_server.shape(number)) == _whole(rows.shape(committed["types"][token])), token


def _whole(shape: Shape) -> Any:
    """Return a shape as plain data, but for the metadata, which all kinds share."""
    fields = {name: _whole(inner) for name, inner in shape.fields.items() if name != "metadata"}
    entry = _whole(shape.entry) if shape.entry else None
    return shape.kind, fields, entry, shape.is_open, shape.limits
