"""Bounds that APIs say in prose: of each input a value at its bound, and one beyond it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.training_platform.rules.documents.test_rules import found, of

ADDRESS = "serviceAccount:own@example-train.iam.gserviceaccount.com"


def _mounted_key(mode: int) -> dict[str, Any]:
    """Return a template of Cloud Run that mounts a secret's value as a file of a mode."""
    items = [{"path": "key", "version": "1", "mode": mode}]
    return {"volumes": [{"name": "keys", "secret": {"secret": "keys", "items": items}}]}


BOUNDS: list[tuple[str, str, Any, Any]] = [
    ("artifactregistry/repository:Repository", "repositoryId", "all-images", "All_Images"),
    ("billing/budget:Budget", "displayName", "a" * 60, "a" * 61),
    ("certificatemanager/certificate:Certificate", "managed", {"domains": ["a.example.com"]}, {"domain": ["a"]}),
    ("certificatemanager/dnsAuthorization:DnsAuthorization", "domain", "hub.example.com", "*.example.com"),
    ("cloudscheduler/job:Job", "retryConfig", {"retryCount": 5}, {"retryCount": 6}),
    ("cloudscheduler/job:Job", "attemptDeadline", "1800s", "1801s"),
    ("cloudscheduler/job:Job", "timeZone", "Europe/Berlin", "CEST"),
    ("compute/autoscaler:Autoscaler", "autoscalingPolicy", {"minReplicas": 2, "maxReplicas": 2},
     {"minReplicas": 3, "maxReplicas": 2}),
    ("compute/backendService:BackendService", "logConfig", {"sampleRate": 1}, {"sampleRate": 1.1}),
    ("compute/healthCheck:HealthCheck", "timeoutSec", 5, 6),
    ("compute/instanceGroupManager:InstanceGroupManager", "autoHealingPolicies",
     {"healthCheck": "a", "initialDelaySec": 3600}, {"healthCheck": "a", "initialDelaySec": 3601}),
    ("compute/instance:Instance", "scheduling", {"provisioningModel": "SPOT", "automaticRestart": False},
     {"provisioningModel": "SPOT", "automaticRestart": True}),
    ("compute/instance:Instance", "scheduling", {"preemptible": True, "onHostMaintenance": "TERMINATE"},
     {"preemptible": True, "onHostMaintenance": "MIGRATE"}),
    ("compute/instance:Instance", "scheduling", {"hostErrorTimeoutSeconds": 120}, {"hostErrorTimeoutSeconds": 100}),
    ("compute/resourcePolicy:ResourcePolicy", "snapshotSchedulePolicy",
     {"schedule": {"dailySchedule": {"daysInCycle": 1, "startTime": "04:00"}}},
     {"schedule": {"dailySchedule": {"daysInCycle": 1, "startTime": "04:30"}}}),
    ("compute/healthCheck:HealthCheck", "unhealthyThreshold", 10, 11),
    ("compute/healthCheck:HealthCheck", "tcpHealthCheck", {"port": 65535}, {"port": 65536}),
    ("container/cluster:Cluster", "minMasterVersion", "1.34.1-gke.3084001", "1.34.x"),
    ("dns/recordSet:RecordSet", "ttl", 0, -1),
    ("filestore/instance:Instance", "networks", [{"network": "a", "modes": ["MODE_IPV4"]}],
     [{"network": name, "modes": ["MODE_IPV4"]} for name in ("a", "b")]),
    ("kms/cryptoKey:CryptoKey", "keyRing", "projects/a/locations/b/keyRings/c", "c"),
    ("monitoring/alertPolicy:AlertPolicy", "notificationChannels", ["projects/a/notificationChannels/1"], ["people"]),
    ("pubsub/subscription:Subscription", "deadLetterPolicy", {"deadLetterTopic": "projects/a/topics/b"},
     {"deadLetterTopic": "b"}),
    ("pubsub/subscription:Subscription", "pushConfig", {"pushEndpoint": "https://a.example.com"},
     {"pushEndpoint": "http://a.example.com"}),
    ("storage/bucket:Bucket", "lifecycleRules", [{"action": {"type": "Delete"}, "condition": {"age": 1}}],
     [{"action": {"type": "Delete"}, "condition": {}}]),
    ("storage/bucket:Bucket", "name", "own-goog-le", "goog-own"),
    ("storage/bucket:Bucket", "name", "own.g00g1e", "own-g00gle"),
    ("storage/bucket:Bucket", "name", "10.0.0.256", "10.0.0.255"),
    ("storage/bucket:Bucket", "storageClass", "NEARLINE", "FROZEN"),
    ("dns/managedZone:ManagedZone", "dnsName", "example.com.", "example.com"),
    ("dns/managedZone:ManagedZone", "dnsName", ".", ".."),
    ("cloudrunv2/service:Service", "template", _mounted_key(0), _mounted_key(-1)),
    ("cloudrunv2/service:Service", "template", _mounted_key(0o777), _mounted_key(0o1000)),
    ("dns/recordSet:RecordSet", "name", "hub.example.com.", "hub.example.com"),
    ("iam/workloadIdentityPool:WorkloadIdentityPool", "workloadIdentityPoolId", "builds", "gcp-builds"),
    ("iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider", "attributeMapping",
     {"google.subject": "assertion.sub"}, {"attribute.a": "assertion.b"}),
    ("kms/cryptoKeyIAMBinding:CryptoKeyIAMBinding", "members", [ADDRESS], ["own@example.com"]),
    ("logging/projectSink:ProjectSink", "destination", "pubsub.googleapis.com/a/b", "projects/a/topics/b"),
    ("monitoring/slo:Slo", "goal", 0.9999, 1),
    ("monitoring/uptimeCheckConfig:UptimeCheckConfig", "period", "60s", "45s"),
    ("parallelstore/instance:Instance", "capacityGib", "16000", "14000"),
    ("pubsub/topicIAMMember:TopicIAMMember", "role", "projects/a/roles/own", "publisher"),
    ("secretmanager/secret:Secret", "secretId", "own_token-1", "own.token"),
    ("storage/bucket:Bucket", "customPlacementConfig", {"dataLocations": ["US-EAST1", "US-WEST1"]},
     {"dataLocations": ["US-EAST1"]}),
    ("vertex/aiIndexEndpoint:AiIndexEndpoint", "displayName", "a" * 128, "a" * 129),
    ("vertex/aiIndexEndpointDeployedIndex:AiIndexEndpointDeployedIndex", "deployedIndexId", "own_index", "own-index"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "path", "right", "wrong"), BOUNDS, ids=[f"{place}-{each[0]}" for place, each in enumerate(BOUNDS)]
)
def test_a_value_at_its_bound_is_taken_and_one_beyond_is_not(kind: str, path: str, right: Any, wrong: Any) -> None:
    def at(value: Any) -> list[str]:
        rows = found(f"gcp:{kind}", **of(f"gcp:{kind}", path, value))
        return [each.rule for each in rows if re.split(r"[.\[]", each.path or "")[0] == path]

    assert at(right) == []
    assert at(wrong) != []


def test_a_machine_with_gpus_is_not_moved() -> None:
    def severities(policy: str) -> list[str]:
        rows = found("gcp:compute/instance:Instance", guestAccelerators=[{"type": "nvidia-l4", "count": 1}],
                     scheduling={"onHostMaintenance": policy})  # fmt: skip
        return [each.severity for each in rows if "onHostMaintenance" in (each.path or "")]

    assert (severities("TERMINATE"), severities("MIGRATE")) == ([], ["error"])


@pytest.mark.parametrize(("stored", "severities"), [("STANDARD", []), ("NEARLINE", ["warning"])])
def test_a_class_of_storage_beside_autoclass_is_a_warning(stored: str, severities: list[str]) -> None:
    rows = found("gcp:storage/bucket:Bucket", location="us-central1", storageClass=stored, autoclass={"enabled": True})

    assert [each.severity for each in rows if each.path == "storageClass"] == severities


@pytest.mark.parametrize(("kind", "count"), [("CNAME", 1), ("A", 0), (None, 0)])
def test_another_name_stands_for_one(kind: str | None, count: int) -> None:
    rows = found("gcp:dns/recordSet:RecordSet", name="a.example.com.", managedZone="own", type=kind, rrdatas=["a", "b"])

    assert len([each for each in rows if each.path == "rrdatas"]) == count


@pytest.mark.parametrize(("purpose", "count"), [("REGIONAL_MANAGED_PROXY", 1), ("PRIVATE", 0), (None, 0)])
def test_a_subnet_of_proxies_has_a_role(purpose: str | None, count: int) -> None:
    rows = found("gcp:compute/subnetwork:Subnetwork", network="a", ipCidrRange="10.0.0.0/23", purpose=purpose)

    assert len([each for each in rows if each.path == "role"]) == count


@pytest.mark.parametrize(("address", "count"), [("10.0.0.5", 0), ("hub.example.com.", 1)])
def test_a_record_of_addresses_has_addresses(address: str, count: int) -> None:
    rows = found("gcp:dns/recordSet:RecordSet", name="a.example.com.", managedZone="own", type="A", rrdatas=[address])

    assert len([each for each in rows if each.path == "rrdatas[0]"]) == count
