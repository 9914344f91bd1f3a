"""Objects checked against the upstream definitions, directly and through the plugin."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from local_google_cloud.kubernetes.wire import readable
from tests.local_google_cloud.kubernetes.client import Client
from training_platform.catalog.types import Json
from training_platform.config.reading.secrets import SECRET, SIGNATURE
from training_platform.config.reading.unknown import UNKNOWN
from training_platform.rules.documents.definitions import CrdSchema, load_crds

KUEUE = "kueue.x-k8s.io"
Schemas = dict[tuple[str, str, str], CrdSchema]


def cluster_queue() -> Json:
    quota = [{"name": "cpu", "nominalQuota": "96"}, {"name": "google.com/tpu", "nominalQuota": 4 * 8}]
    group = {"coveredResources": ["cpu", "google.com/tpu"], "flavors": [{"name": "v5e", "resources": quota}]}
    return {
        "apiVersion": f"{KUEUE}/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "research", "labels": {"team": "vision"}},
        "spec": {"cohortName": "research", "namespaceSelector": {}, "resourceGroups": [group]},
    }


def spoiled(**changes: Any) -> Json:
    """A ClusterQueue with fields set by path, such as ``spec__cohort``; a list is entered at its first item."""
    queue = cluster_queue()
    for path, value in changes.items():
        here: Any = queue
        *above, last = path.split("__")
        for name in above:
            here = here[name][0] if isinstance(here[name], list) else here[name]
        here[last] = value
    return queue


def custom(spec: Json, **more: Any) -> CrdSchema:
    root = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, **more}}
    return CrdSchema(namespaced=True, spec=root)


def test_every_served_version_of_every_upstream_kind_is_usable(crds: Schemas) -> None:
    for crd in crds.values():
        assert crd.errors({"noSuchField": 1})
        for pattern in _patterns(crd.spec):
            re.compile(pattern.replace("(?i)", ""))

    assert {(KUEUE, v, "ClusterQueue") for v in ("v1beta1", "v1beta2")} <= crds.keys()
    assert {("jobset.x-k8s.io", "v1alpha2", "JobSet"), ("monitoring.googleapis.com", "v1", "Rules")} <= crds.keys()


def _patterns(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [pattern for part in schema for pattern in _patterns(part)]
    if not isinstance(schema, dict):
        return []
    patterns = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    return patterns + [pattern for part in schema.values() for pattern in _patterns(part)]


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (spoiled(spec__cohort="x"), "spec.cohort: spec has no cohort; allowed: admissionChecksStrategy, "),
        (
            spoiled(spec__queueingStrategy="LIFO"),
            "spec.queueingStrategy: queueingStrategy does not take 'LIFO'; allowed: StrictFIFO, BestEffortFIFO",
        ),
        (
            spoiled(spec__resourceGroups__flavors=[]),
            "spec.resourceGroups[0].flavors: has 0 entries; allowed: 1 to",
        ),
        (
            spoiled(spec__resourceGroups__flavors__name="V5e"),
            "spec.resourceGroups[0].flavors[0].name: name is 'V5e', which has the wrong form",
        ),
        (
            spoiled(spec__resourceGroups__flavors__resources__nominalQuota=1.5),
            "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: nominalQuota is 1.5, which is neither",
        ),
        (
            spoiled(spec__resourceGroups__flavors__resources=[{"name": "cpu"}]),
            "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: nominalQuota is required but missing",
        ),
        (
            spoiled(spec__resourceGroups__flavors__resources=[{"name": "cpu", "nominalQuota": 1}] * 2),
            "spec.resourceGroups[0].flavors[0].resources[1]: cpu is listed twice",
        ),
        (spoiled(status={"workloads": 1}), "status.workloads: status has no workloads"),
    ],
)
def test_one_spoiled_field_is_one_refusal_at_its_path(crds: Schemas, queue: Json, expected: str) -> None:
    errors = crds[KUEUE, "v1beta2", "ClusterQueue"].errors(queue)

    assert len(errors) == 1
    assert errors[0].startswith(expected)


def test_versions_differ(crds: Schemas) -> None:
    queue = {**spoiled(spec__cohort="x"), "apiVersion": f"{KUEUE}/v1beta1"}
    del queue["spec"]["cohortName"]

    assert crds[KUEUE, "v1beta1", "ClusterQueue"].errors(queue) == []


def test_a_pattern_with_a_flag_in_its_middle_is_understood(crds: Schemas) -> None:
    def check(kind: str) -> list[str]:
        parameters = {"apiGroup": KUEUE, "kind": kind, "name": "dws"}
        spec = {"controllerName": f"{KUEUE}/provisioning-request", "parameters": parameters}
        return crds[KUEUE, "v1beta2", "AdmissionCheck"].errors({"metadata": {"name": "a"}, "spec": spec})

    assert check("ProvisioningRequestConfig") == []
    assert check("Not_A_Kind")[0].startswith("spec.parameters.kind: kind is 'Not_A_Kind', which has the wrong form")


@pytest.mark.parametrize("unknown", [UNKNOWN_ON_WIRE, {SIGNATURE: SECRET, "value": UNKNOWN_ON_WIRE}, object()])
@pytest.mark.parametrize("path", ["spec", "spec__queueingStrategy", "spec__resourceGroups", "metadata"])
def test_an_unknown_anywhere_is_passed_over(crds: Schemas, path: str, unknown: Any) -> None:
    assert crds[KUEUE, "v1beta2", "ClusterQueue"].errors(spoiled(**{path: readable(unknown)})) == []


def test_beside_an_unknown_the_rest_is_judged(crds: Schemas) -> None:
    queue = spoiled(spec__resourceGroups__flavors__name=UNKNOWN, spec__cohort="x", spec__stopPolicy="Never")

    errors = crds[KUEUE, "v1beta2", "ClusterQueue"].errors(queue)

    assert [error.split(":")[0] for error in errors] == ["spec.cohort", "spec.stopPolicy"]


def test_a_secret_is_judged_by_what_it_holds(crds: Schemas) -> None:
    def check(value: str) -> list[str]:
        queue = readable(spoiled(spec__queueingStrategy={SIGNATURE: SECRET, "value": value}))
        return crds[KUEUE, "v1beta2", "ClusterQueue"].errors(queue)

    assert check("StrictFIFO") == []
    assert check("LIFO") != []


def test_the_object_is_left_as_it_was(crds: Schemas) -> None:
    queue = spoiled(spec__queueingStrategy=UNKNOWN)
    before = copy.deepcopy(queue)

    crds[KUEUE, "v1beta2", "ClusterQueue"].errors(queue)

    assert queue == before


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ({"x-kubernetes-int-or-string": True}, [1, "1"], [1.5, True, {}]),
        ({"type": "string", "nullable": True}, ["a", None], [1]),
        ({"type": "string"}, ["a"], [None]),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {}}, [{"a": 1}], [1]),
        ({"type": "object", "additionalProperties": {"type": "string"}}, [{"a": "b"}], [{"a": 1}]),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, [{}, {"a": "b"}], [{"b": "c"}]),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"properties": {"a": {"pattern": "^x$"}}}, {"properties": {"a": {"pattern": "^y$"}}}],
            },
            [{"a": "x", "b": "any"}],
            [{"a": "z"}],
        ),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, [1], [0]),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, [9], [10]),
        ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, [["a", "b"]], [["a", "a"]]),
    ],
)
def test_openapi_is_read_as_kubernetes_means_it(field: Json, right: list[Any], wrong: list[Any]) -> None:
    crd = custom({"field": field})

    assert [value for value in right if crd.errors({"spec": {"field": value}})] == []
    assert [value for value in wrong if not crd.errors({"spec": {"field": value}})] == []


def test_keys_that_hold_an_unknown_are_no_duplicates() -> None:
    items = {"type": "object", "properties": {"name": {"type": "string"}}}
    crd = custom({"l": {"type": "array", "items": items, "x-kubernetes-list-map-keys": ["name"]}})

    assert crd.errors({"spec": {"l": [{"name": UNKNOWN}, {"name": UNKNOWN}]}}) == []
    beside = [{"name": UNKNOWN}, {"name": "a"}, {"name": "a"}]
    assert crd.errors({"spec": {"l": beside}}) == ["spec.l[2]: a is listed twice; allowed: each entry once"]


def test_metadata_is_the_servers_own_business() -> None:
    crd = custom({}, metadata={"type": "object"})

    assert crd.errors({"metadata": {"name": "a", "noSuchField": 1}}) == []
    assert crd.errors({"metadata": "a"}) != []
    assert crd.errors({"noSuchField": 1}) != []


def test_widths_and_forms_are_those_that_a_server_takes() -> None:
    crd = custom({"count": {"type": "integer", "format": "int32"}, "every": {"type": "string", "format": "duration"}})

    assert crd.errors({"spec": {"count": 2**31 - 1, "every": "1h30m"}}) == []
    assert [error.split(":")[0] for error in crd.errors({"spec": {"count": 2**31, "every": "hourly"}})] == [
        "spec.count", "spec.every",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "right", "wrong"),
    [
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1}, {"a": 1, "b": 1}], [{}]),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1}], [{}, {"a": 1, "b": 1}]),
        ({"allOf": [{"required": ["a"]}, {"properties": {"a": {"maximum": 5}}}]}, [{"a": 5}], [{"a": 6}, {}]),
        ({"not": {"required": ["a"]}}, [{"b": 1}], [{"a": 1}]),
    ],
)
def test_parts_beside_a_block_narrow_it(parts: Json, right: list[Json], wrong: list[Json]) -> None:
    number = {"type": "integer"}
    crd = custom({"field": {"type": "object", "properties": {"a": number, "b": number}, **parts}})

    assert [value for value in right if crd.errors({"spec": {"field": value}})] == []
    assert [value for value in wrong if not crd.errors({"spec": {"field": value}})] == []
    assert crd.errors({"spec": {"field": {"a": UNKNOWN}}}) == []


def test_a_missing_folder_is_not_an_empty_one(tmp_path: Path) -> None:
    assert load_crds(tmp_path) == {}
    with pytest.raises(FileNotFoundError):
        load_crds(tmp_path / "absent")


@pytest.fixture
def definition(tmp_path: Path) -> Callable[[str], Path]:
    def write(served: str) -> Path:
        (tmp_path / "a.yaml").write_text(
            "kind: ConfigMap\n---\nkind: CustomResourceDefinition\nspec:\n  group: example.com\n  scope: Cluster\n"
            "  names: {kind: Thing, plural: things}\n  versions:\n"
            f"  - {{name: v1, served: {served}, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}\n"
        )
        return tmp_path

    return write


@pytest.mark.parametrize(("served", "definitions"), [("true", {("example.com", "v1", "Thing")}), ("false", set())])
def test_only_served_versions_of_definitions_are_read(
    definition: Callable[[str], Path], served: str, definitions: set[tuple[str, str, str]]
) -> None:
    assert load_crds(definition(served)).keys() == definitions


CLUSTER_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
FLAVOR = "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
LOCAL_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"


def custom_kind(kind: str, **spec: Any) -> Json:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def test_a_right_object_is_made(strict: Client) -> None:
    inputs = custom_kind("ResourceFlavor", nodeLabels={"cloud.google.com/gke-tpu-topology": "2x4"})

    assert strict.check(FLAVOR, "f", inputs) == (inputs, {})
    assert strict.create(FLAVOR, "f", inputs)[0] == "x"


def test_a_wrong_field_is_refused_by_path_and_reason(strict: Client) -> None:
    _, failures = strict.check(CLUSTER_QUEUE, "q", custom_kind("ClusterQueue", cohort="c", stopPolicy="Never"))

    assert failures["spec.cohort"].startswith("spec has no cohort; allowed: ")
    assert failures["spec.cohort"].endswith("; nearest: 'cohortName'")
    assert failures["spec.stopPolicy"].startswith("stopPolicy does not take 'Never'; allowed: ")
    assert len(failures) == 2


def test_a_namespace_is_by_the_definitions_scope(strict: Client) -> None:
    assert strict.create(LOCAL_QUEUE, "l", custom_kind("LocalQueue", clusterQueue="q"))[0] == "default/x"
    queue = custom_kind("ClusterQueue")
    queue["metadata"]["namespace"] = "nowhere"
    assert strict.create(CLUSTER_QUEUE, "q", queue)[0] == "x"
