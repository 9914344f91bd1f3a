"""Bounds that APIs say in prose: of each input a value at its bound, and one beyond it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.training_platform.rules.documents.whole_objects import found, of
from training_platform.rules.documents.definitions import CrdSchema


def _mounted_key(mode: int) -> dict[str, Any]:
    """Return a template of Cloud Run that mounts a secret's value as a file of a mode."""
    items = [{"path": "key", "version": "1", "mode": mode}]
    return {"volumes": [{"name": "keys", "secret": {"secret": "keys", "items": items}}]}


BOUNDS: list[tuple[str, str, Any, Any]] = [
    ("artifactregistry/repository:Repository", "repositoryId", "all-images", "All_Images"),
    ("billing/budget:Budget", "displayName", "a" * 60, "a" * 61),
    ("compute/backendService:BackendService", "logConfig", {"sampleRate": 1}, {"sampleRate": 1.1}),
    ("compute/instance:Instance", "scheduling", {"provisioningModel": "SPOT", "automaticRestart": False},
     {"provisioningModel": "SPOT", "automaticRestart": True}),
    ("compute/resourcePolicy:ResourcePolicy", "snapshotSchedulePolicy",
     {"schedule": {"dailySchedule": {"daysInCycle": 1, "startTime": "04:00"}}},
     {"schedule": {"dailySchedule": {"daysInCycle": 1, "startTime": "04:30"}}}),
    ("filestore/instance:Instance", "networks", [{"network": "a", "modes": ["MODE_IPV4"]}],
     [{"network": name, "modes": ["MODE_IPV4"]} for name in ("a", "b")]),
    ("storage/bucket:Bucket", "lifecycleRules", [{"action": {"type": "Delete"}, "condition": {"age": 1}}],
     [{"action": {"type": "Delete"}, "condition": {}}]),
    ("storage/bucket:Bucket", "name", "own-goog-le", "goog-own"),
    ("storage/bucket:Bucket", "name", "own.g00g1e", "own-g00gle"),
    ("storage/bucket:Bucket", "name", "10.0.0.256", "10.0.0.255"),
    ("cloudrunv2/service:Service", "template", _mounted_key(0), _mounted_key(-1)),
    ("cloudrunv2/service:Service", "template", _mounted_key(0o777), _mounted_key(0o1000)),
    ("storage/bucket:Bucket", "customPlacementConfig", {"dataLocations": ["US-EAST1", "US-WEST1"]},
     {"dataLocations": ["US-EAST1"]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "path", "right", "wrong"), BOUNDS, ids=[f"{place}-{bound[0]}" for place, bound in enumerate(BOUNDS)]
)
def test_a_value_at_its_bound_is_taken_and_one_beyond_is_not(kind: str, path: str, right: Any, wrong: Any) -> None:
    def at(value: Any) -> list[str]:
        rows = found(f"gcp:{kind}", **of(f"gcp:{kind}", path, value))
        return [row.rule for row in rows if re.split(r"[.\[]", row.path or "")[0] == path]

    assert at(right) == []
    assert at(wrong) != []


def test_a_machine_with_gpus_is_not_moved() -> None:
    def severities(policy: str) -> list[str]:
        rows = found("gcp:compute/instance:Instance", guestAccelerators=[{"type": "nvidia-l4", "count": 1}],
                     scheduling={"onHostMaintenance": policy})  # fmt: skip
        return [row.severity for row in rows if "onHostMaintenance" in (row.path or "")]

    assert (severities("TERMINATE"), severities("MIGRATE")) == ([], ["error"])


@pytest.mark.parametrize(("stored", "severities"), [("STANDARD", []), ("NEARLINE", ["warning"])])
def test_a_class_of_storage_beside_autoclass_is_a_warning(stored: str, severities: list[str]) -> None:
    rows = found("gcp:storage/bucket:Bucket", location="us-central1", storageClass=stored, autoclass={"enabled": True})

    assert [row.severity for row in rows if row.path == "storageClass"] == severities


@pytest.mark.parametrize(("kind", "count"), [("CNAME", 1), ("A", 0), (None, 0)])
def test_another_name_stands_for_one(kind: str | None, count: int) -> None:
    rows = found("gcp:dns/recordSet:RecordSet", name="a.example.com.", managedZone="own", type=kind, rrdatas=["a", "b"])

    assert len([row for row in rows if row.path == "rrdatas"]) == count


@pytest.mark.parametrize(("purpose", "count"), [("REGIONAL_MANAGED_PROXY", 1), ("PRIVATE", 0), (None, 0)])
def test_a_subnet_of_proxies_has_a_role(purpose: str | None, count: int) -> None:
    rows = found("gcp:compute/subnetwork:Subnetwork", network="a", ipCidrRange="10.0.0.0/23", purpose=purpose)

    assert len([row for row in rows if row.path == "role"]) == count


@pytest.mark.parametrize(("address", "count"), [("10.0.0.5", 0), ("hub.example.com.", 1)])
def test_a_record_of_addresses_has_addresses(address: str, count: int) -> None:
    rows = found("gcp:dns/recordSet:RecordSet", name="a.example.com.", managedZone="own", type="A", rrdatas=[address])

    assert len([row for row in rows if row.path == "rrdatas[0]"]) == count


def test_a_bound_that_is_no_value_is_refused_with_the_nearest_value() -> None:
    size = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    schema = CrdSchema(namespaced=True, spec={"type": "object", "properties": {"size": size}})

    assert schema.errors({"size": 1}) == []
    assert schema.errors({"size": 0}) == ["size: size is 0, which is out of range; allowed: at least 1; nearest: '1'"]


def test_a_list_that_its_definition_calls_a_set_has_each_entry_once() -> None:
    modes = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    schema = CrdSchema(namespaced=True, spec={"type": "object", "properties": {"modes": modes}})

    assert schema.errors({"modes": ["a", "b"]}) == []
    assert schema.errors({"modes": ["a", "a"]}) == ["modes[1]: a is listed twice; allowed: each entry once"]
