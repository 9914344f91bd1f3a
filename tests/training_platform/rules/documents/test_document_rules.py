"""Whole objects against their documents: each kind of constraint at its boundary, in both families of providers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.training_platform.rules.documents.whole_objects import DOCUMENTS, JOB, NETWORK, POOL, found, of
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import evaluate, program, views_of_plan

QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
REFERENCE = {"group": "networking.gke.io", "kind": "GKENetworkParamSet", "name": "rdma-0"}
CLUSTER = "gcp:container/cluster:Cluster"
SERVICE = "kubernetes:core/v1:Service"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
PODS: dict[str, Any] = {
    "selector": {"matchLabels": {"app": "a"}},
    "template": {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "a", "image": "registry.example.com/a"}]},
    },
}


WINDOW = {"startTime": "2026-01-03T06:00:00Z", "recurrence": "FREQ=DAILY"}
FLAVORS = [{"name": "a", "resources": [{"name": "cpu", "nominalQuota": "1"}]}]
TEMPLATE = "spec.template.spec"


CASES = [
    (POOL, "nodeConfig.spot", "type", [True, "true", None, UNKNOWN], ["yes", 1.5, {}]),
    (POOL, "nodeConfig.diskSizeGb", "type", [100, 100.0, "100"], [100.5, "large", [100]]),
    (POOL, "nodeConfig.taints", "type", [[], UNKNOWN], ["nvidia.com/gpu", 5]),
    (POOL, "nodeConfig.labels", "type", [{"a": "b"}, {"a": UNKNOWN}], ["a=b", ["a"], {"a": {"b": "c"}}]),
    (POOL, "nodeConfig", "type", [[{"spot": True}]], ["large", [{"spot": "yes"}]]),
    (POOL, "upgradeSettings.strategy", "enum", ["SURGE", "BLUE_GREEN", "", UNKNOWN], ["SURGEE", "surge"]),
    (POOL, "nodeConfig.taints.0", "enum", [{"key": "a", "value": "b", "effect": "NO_SCHEDULE"}],
     [{"key": "a", "value": "b", "effect": "NoSchedule"}]),
    (POOL, "nodeCount", "range", [0, 2**31 - 1], [2**31, -(2**31) - 1]),
    (POOL, "nodeConfig.maxRunDuration", "format", ["29s", "3600.5s"], ["29", "1h", ""]),
    (POOL, "nodeConfig.taints.0", "required", [{"key": "a", "value": UNKNOWN, "effect": "NO_SCHEDULE"}],
     [{"key": "a", "effect": "NO_SCHEDULE"}, {"key": "a", "value": None, "effect": "NO_SCHEDULE"}]),
    (POOL, "nodeConfig.machinetype", "unknown-field", [None], ["a2-highgpu-8g"]),
    (POOL, "__defaults", "unknown-field", [["name"]], []),
    (QUEUE, "spec.queueingStrategy", "enum", ["StrictFIFO"], ["FIFO", "strictFIFO", ""]),
    (QUEUE, "spec.cohortName", "type", ["all", UNKNOWN], [5, True]),
    (QUEUE, "spec.cohortName", "format", ["all.of-it"], ["All", "a b"]),
    (QUEUE, "spec.cohortName", "range", ["a" * 253], ["a" * 254]),
    (QUEUE, "spec.fairSharing.weight", "type", ["1", 1, 2.0], [True, 1.5]),
    (QUEUE, "spec.fairSharing.weight", "format", ["1.5", "500m"], ["half"]),
    (QUEUE, "spec.resourceGroups", "range", [[]], [[{"coveredResources": [], "flavors": FLAVORS}]]),
    (QUEUE, "spec.cohort", "unknown-field", [None], ["all"]),
    (QUEUE, "spec.admissionChecks", "unknown-field", [None], [["requests"]]),
    ("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor", "spec.nodeLabels", "range",
     [{f"example.com/{n}": "a" for n in range(8)}], [{f"example.com/{n}": "a" for n in range(9)}]),
    (QUEUE, "status", "unknown-field", [{"whatever": 1}], []),
    (JOB, "spec.backoffLimit", "type", [6, 6.0], ["6", 6.5, True]),
    (JOB, "spec.backoffLimit", "range", [2**31 - 1], [2**31]),
    (JOB, "spec.activeDeadlineSeconds", "range", [2**63 - 1], [2**63]),
    (JOB, "spec.suspend", "type", [True], ["true", 1]),
    (JOB, f"{TEMPLATE}.restartPolicy", "enum", ["Never"], ["never", "No"]),
    (JOB, f"{TEMPLATE}.containers.0.resources", "format", [{"limits": {"cpu": "500m", "memory": 5, "a.com/x": "1e3"}}],
     [{"limits": {"cpu": "2 cores"}}, {"limits": {"memory": "16GiB"}}]),
    (JOB, f"{TEMPLATE}.containers.0.env", "type", [[{"name": "A", "value": "1"}]], [[{"name": "A", "value": 1}]]),
    (JOB, f"{TEMPLATE}.containers.0.env", "range", [[{"name": "A"}, {"name": "B"}]], [[{"name": "A"}] * 2]),
    (JOB, f"{TEMPLATE}.containers", "required", [[{"name": "a", "image": "b"}]], [[{"image": "b"}]]),
    (JOB, f"{TEMPLATE}.nodeselector", "unknown-field", [None], [{"a": "b"}]),
    (JOB, "metadata.labels", "type", [{"a": "b"}], [{"a": 5}, ["a"]]),
    (JOB, "metadata.creationTimestamp", "format", ["2026-01-03T06:00:00Z"], ["yesterday", "2026-01-03"]),
    (POOL, "nodeConfig.advancedMachineFeatures.threadsPerCore", "range", [1, 2, "2", UNKNOWN], [3, 0]),
    (POOL, "nodeConfig.kubeletConfig.containerLogMaxSize", "range", ["10Mi", "500Mi", UNKNOWN], ["9Mi", "1Gi", "5m"]),
    (POOL, "nodeConfig.kubeletConfig.cpuCfsQuotaPeriod", "range", ["1ms", "1s", "0.5s"], ["2s", "1m", "100us"]),
    (POOL, "nodeConfig.kubeletConfig", "range",
     [{"imageGcLowThresholdPercent": 79, "imageGcHighThresholdPercent": 80}, {"imageGcLowThresholdPercent": 80},
      {"imageGcLowThresholdPercent": UNKNOWN, "imageGcHighThresholdPercent": 80}],
     [{"imageGcLowThresholdPercent": 80, "imageGcHighThresholdPercent": 80}]),
    (DEPLOYMENT, "spec", "range", [{**PODS, "minReadySeconds": 599}, {**PODS, "progressDeadlineSeconds": UNKNOWN,
                                                                     "minReadySeconds": 600}],
     [{**PODS, "minReadySeconds": 600}, {**PODS, "minReadySeconds": 5, "progressDeadlineSeconds": 5}]),
    (CLUSTER, "loggingConfig.enableComponents", "required",
     [[], ["SYSTEM_COMPONENTS", "WORKLOADS"], ["WORKLOADS", UNKNOWN]], [["WORKLOADS"]]),
    (CLUSTER, "privateClusterConfig.masterIpv4CidrBlock", "format", ["172.16.0.0/28", UNKNOWN], ["172.16.0.0/27"]),
    (CLUSTER, "nodePools.0", "required", [{"namePrefix": "a-"}], [{"name": "a", "namePrefix": "a-"}]),
    (CLUSTER, "maintenancePolicy", "range",
     [{"recurringWindow": {**WINDOW, "endTime": "2026-01-03T08:00:00+01:00"}}],
     [{"recurringWindow": {**WINDOW, "endTime": "2026-01-03T07:00:00+01:00"}}]),
    (CLUSTER, "databaseEncryption", "required", [{"state": "DECRYPTED"}, {"state": "ENCRYPTED", "keyName": UNKNOWN}],
     [{"state": "ENCRYPTED"}, {"state": "ENCRYPTED", "keyName": ""}]),
    (SERVICE, "spec", "required", [{"type": "ExternalName", "externalName": "a.example.com"}, {"clusterIP": "None"}],
     [{"type": "ExternalName"}, {"type": "ClusterIP"}]),
    (SERVICE, "spec", "range", [{"type": "NodePort", "ports": [{"port": 1}]}],
     [{"type": "NodePort", "ports": [{"port": 1}], "clusterIP": "None"}]),
    ("kubernetes:networking.k8s.io/v1:NetworkPolicy", "spec", "required",
     [{"podSelector": {}, "egress": [{"to": [{"namespaceSelector": {}, "podSelector": {}}]}]}],
     [{"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}]}]),
    ("kubernetes:networking.k8s.io/v1:NetworkPolicy", "spec", "range",
     [{"podSelector": {}, "egress": [{"ports": [{"port": 80, "endPort": 80}]}]}],
     [{"podSelector": {}, "egress": [{"ports": [{"port": 81, "endPort": 80}]}]}]),
    (JOB, f"{TEMPLATE}.containers", "range",
     [[{"name": "a", "image": "b", "securityContext": {"privileged": True, "allowPrivilegeEscalation": True}}]],
     [[{"name": "a", "image": "b", "securityContext": {"privileged": True, "allowPrivilegeEscalation": False}}]]),
    ("kubernetes:core/v1:ResourceQuota", "spec.scopes", "range", [["BestEffort", "Terminating"]],
     [["BestEffort", "NotBestEffort"]]),
    ("kubernetes:monitoring.googleapis.com/v1:PodMonitoring", "spec", "range",
     [{"selector": {}, "endpoints": [{"port": "a", "interval": "1m30s", "timeout": "90s"}]}],
     [{"selector": {}, "endpoints": [{"port": "a", "interval": "30s", "timeout": "31s"}]}]),
    (NETWORK, "spec", "required", [{"type": "Device"}], [{"parametersRef": REFERENCE}]),
    (NETWORK, "spec.subnet", "unknown-field", [None], ["a"]),
    (JOB, f"{TEMPLATE}.containers.0.resources.limits", "format", [{"cpu": "1", "nvidia.com/gpu": "1"}], [{"gpu": "1"}]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "path", "rule", "right", "wrong"),
    CASES,
    ids=[f"{case[0].rpartition(':')[2]}-{case[2]}-{case[1]}" for case in CASES],
)
def test_a_value_is_refused_by_its_document_and_one_beside_it_is_taken(
    kind: str, path: str, rule: str, right: list[Any], wrong: list[Any]
) -> None:
    for value in right:
        assert found(kind, **of(kind, path, value)) == [], value
    for value in wrong:
        (finding,) = found(kind, **of(kind, path, value))
        assert (finding.rule, finding.severity) == (f"document-{rule}", "error"), value
        assert re.sub(r"\[\d+\]", "", finding.path).startswith(path.replace(".0", "")), value
        assert finding.resource == f"{kind} thing"
        assert finding.allowed


def test_lustre_has_a_throughput_or_is_of_the_dynamic_tier() -> None:
    lustre = {
        "instanceId": "a",
        "location": "us-central1-a",
        "filesystem": "a",
        "network": "projects/example-train/global/networks/n",
        "capacityGib": "118000",
    }

    def refused(**inputs: Any) -> list[str]:
        return [finding.path for finding in found("gcp:lustre/instance:Instance", **lustre, **inputs)]

    assert refused(dynamicTierOptions={"mode": "DEFAULT_CACHE"}) == []
    assert refused(perUnitStorageThroughput="1000") == []
    assert refused() == ["perUnitStorageThroughput"]


def test_a_workbench_has_one_interface() -> None:
    def refused(count: int) -> list[str]:
        setup = {"networkInterfaces": [{"nicType": "GVNIC"}] * count}
        return [
            finding.path
            for finding in found("gcp:workbench/instance:Instance", location="us-central1-a", gceSetup=setup)
        ]

    assert refused(1) == []
    assert refused(2) == ["gceSetup.networkInterfaces"]


def test_every_kind_of_constraint_is_tried() -> None:
    assert {f"document-{case[2]}" for case in CASES} == {
        "document-type", "document-enum", "document-unknown-field", "document-required", "document-range",
        "document-format",
    }  # fmt: skip


def test_what_may_be_newer_than_the_documents_is_a_warning() -> None:
    enum, name = found(POOL, cluster="main", placementPolicy={"type": "SPREAD"}, weather="fair")

    assert [(finding.rule, finding.severity, finding.path) for finding in (enum, name)] == [
        ("document-enum", "warning", "placementPolicy.type"),
        ("document-unknown-field", "warning", "weather"),
    ]
    assert name.message == "the object has no weather in the documents of this version, so this input is not checked"


def test_a_finding_names_the_input_as_the_program_writes_it_and_the_nearest_value() -> None:
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    (finding,) = found(POOL, cluster="main", nodeConfig={"taints": [{**taint, "effect": "NO_SCHEDULE"}, taint]})

    assert str(finding) == (
        "dev: nodeConfig.taints[1].effect: effect does not take 'NoSchedule'\n"
        "  Allowed: NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE. Nearest: NO_SCHEDULE"
    )


def test_a_finding_says_which_inputs_make_another_one_required() -> None:
    (finding,) = found(SERVICE, spec={"type": "ClusterIP"})

    assert finding.message == "ports is not set, and type is ClusterIP and clusterIP is not written"


def test_two_values_that_are_wrong_alike_are_both_found() -> None:
    assert [
        finding.path for finding in found(POOL, cluster="main", nodeConfig={"spot": "yes", "flexStart": "yes"})
    ] == [
        "nodeConfig.spot",
        "nodeConfig.flexStart",
    ]


def test_a_secret_value_is_not_repeated() -> None:
    (finding,) = found("kubernetes:core/v1:Secret", data={"key": "pass word"})

    assert "pass word" not in str(finding)


def test_a_kind_without_a_document_is_counted_as_not_judged() -> None:
    newer = [
        StackResource(stack="dev", type=QUEUE.replace("v1beta2", "v1"), name=name, inputs={}) for name in ("a", "b")
    ]
    other = StackResource(stack="dev", type="kubernetes:example.com/v1:Thing", name="c", inputs={})
    whole = program(views_of_plan([*newer, other]), stack="dev", environment="dev", team=None, production=False)

    assert [(finding.rule, finding.severity, finding.unjudged) for finding in evaluate(whole, DOCUMENTS)] == [
        ("document-missing", "note", "object of kueue.x-k8s.io"),
        ("document-missing", "note", "object of kueue.x-k8s.io"),
        ("document-missing", "note", "object of example.com"),
    ]


def test_a_key_with_dots_is_named_whole() -> None:
    (row,) = found("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor", spec={"nodeLabels": {"example.com/pool": "?"}})

    assert row.message.startswith("example.com/pool is '?'")


def test_a_kind_of_a_group_that_is_published_in_part_is_not_called_newer() -> None:
    (unjudged,) = found("kubernetes:networking.gke.io/v1:ManagedCertificate", spec={"domains": []})

    assert (unjudged.allowed, unjudged.unjudged) == (None, "object of networking.gke.io")
    assert found(NETWORK, spec={"type": "L4"})


RULE = {"name": "a", "network": "n", "allows": [{"protocol": "tcp"}]}
BUCKET = {"name": "own-data", "location": "us-central1"}
DISK = {"name": "a", "zone": "us-central1-a"}
KEY = {"name": "a", "keyRing": "projects/a/locations/b/keyRings/c"}
NAT = {"name": "out", "router": "r", "region": "us-central1", "enableDynamicPortAllocation": True,
       "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"}  # fmt: skip
TOGETHER: list[tuple[str, dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("compute/firewall:Firewall", RULE,
     [{"sourceRanges": ["10.0.0.0/8"]}, {"sourceTags": ["a"]}, {"direction": "EGRESS"}, {"direction": UNKNOWN},
      {"sourceRanges": UNKNOWN}],
     [{}, {"direction": "INGRESS", "sourceRanges": []}]),
    ("storage/bucket:Bucket", BUCKET,
     [{"softDeletePolicy": {"retentionDurationSeconds": 0}}, {"softDeletePolicy": {"retentionDurationSeconds": 604800}},
      {"hierarchicalNamespace": {"enabled": True}, "uniformBucketLevelAccess": True},
      {"hierarchicalNamespace": {"enabled": False}}, {"hierarchicalNamespace": {"enabled": UNKNOWN}},
      {"name": "a.b-c.example.com"}, {"name": UNKNOWN}, {"name": "own_data"}],
     [{"softDeletePolicy": {"retentionDurationSeconds": 604799}}, {"hierarchicalNamespace": {"enabled": True}},
      {"hierarchicalNamespace": {"enabled": True}, "uniformBucketLevelAccess": False},
      {"name": "a..example.com"}, {"name": "a.-b.com"}, {"name": "a" * 64}, {"name": "Own"}]),
    ("compute/disk:Disk", DISK,
     [{"type": "hyperdisk-balanced", "provisionedIops": 5000, "provisionedThroughput": 200}, {"type": "pd-ssd"},
      {"type": "pd-extreme", "provisionedIops": 10000}, {"type": UNKNOWN, "provisionedIops": 5000}],
     [{"type": "pd-ssd", "provisionedIops": 5000}, {"type": "hyperdisk-extreme", "provisionedThroughput": 200},
      {"type": "pd-balanced", "accessMode": "READ_WRITE_MANY"}, {"physicalBlockSizeBytes": 8192}]),
    ("kms/cryptoKey:CryptoKey", KEY,
     [{"purpose": "ASYMMETRIC_SIGN", "versionTemplate": {"algorithm": "EC_SIGN_P256_SHA256"}},
      {"purpose": "MAC", "versionTemplate": {"algorithm": UNKNOWN}},
      {"versionTemplate": {"algorithm": "GOOGLE_SYMMETRIC_ENCRYPTION"}}],
     [{"purpose": "MAC", "versionTemplate": {"algorithm": "EC_SIGN_P256_SHA256"}},
      {"versionTemplate": {"algorithm": "HMAC_SHA256"}}]),
    ("compute/routerNat:RouterNat", NAT,
     [{"minPortsPerVm": 32, "maxPortsPerVm": 65536}, {"enableDynamicPortAllocation": False, "minPortsPerVm": 100},
      {"enableDynamicPortAllocation": UNKNOWN, "minPortsPerVm": 100}],
     [{"minPortsPerVm": 100}, {"maxPortsPerVm": 100}, {"minPortsPerVm": 16}]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "base", "right", "wrong"), TOGETHER, ids=[case[0] for case in TOGETHER])
def test_inputs_of_one_resource_go_together(
    kind: str, base: dict[str, Any], right: list[dict[str, Any]], wrong: list[dict[str, Any]]
) -> None:
    for inputs in right:
        assert found(f"gcp:{kind}", **{**base, **inputs}) == [], inputs
    for inputs in wrong:
        errors = [finding for finding in found(f"gcp:{kind}", **{**base, **inputs}) if finding.severity == "error"]
        assert len(errors) == 1, (inputs, errors)
        assert errors[0].allowed


def test_pools_without_an_id_are_not_alike_and_those_of_one_id_are() -> None:
    machine = {"machineSpec": {"machineType": "n1-standard-8"}, "replicaCount": "1"}
    base = {"name": "a", "location": "us-central1"}
    kind = "gcp:vertex/aiPersistentResource:AiPersistentResource"

    assert found(kind, **base, resourcePools=[machine, machine]) == []
    (twice,) = found(kind, **base, resourcePools=[{**machine, "id": "one"}, {**machine, "id": "one"}])
    assert (twice.rule, twice.path) == ("document-range", "resourcePools[1]")


def _scaled(amount: Any) -> dict[str, Any]:
    """Return the spec of an autoscaler by an amount of a metric for each pod."""
    pods = {"metric": {"name": "a"}, "target": {"type": "AverageValue", "averageValue": amount}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    return {"maxReplicas": 2.0, "scaleTargetRef": target, "metrics": [{"type": "Pods", "pods": pods}]}


KUBERNETES: list[tuple[str, str, list[Any], list[Any]]] = [
    (QUEUE, "spec.resourceGroups", [[{"coveredResources": ["memory"], "flavors": [
        {"name": "a", "resources": [{"name": "memory", "nominalQuota": quota}]}]}] for quota in (2.0**41, "2Ti")],
     [[{"coveredResources": ["memory"], "flavors": [
         {"name": "a", "resources": [{"name": "memory", "nominalQuota": "2TB"}]}]}]]),
    ("kubernetes:monitoring.googleapis.com/v1:PodMonitoring", "spec",
     [{"selector": {"matchLabels": {"app": "train|eval"}}, "endpoints": [{"port": "http", "interval": "30s"}]}],
     [{"selector": {"matchLabels": {"app": "train"}}, "endpoints": [{"port": 0.0, "interval": "30s"}]}]),
    ("kubernetes:policy/v1:PodDisruptionBudget", "spec",
     [{"selector": {"matchLabels": {"app": "train"}}}], [{"selector": {"matchLabels": {"app": "train|eval"}}}]),
    (SERVICE, "spec", [{"ports": [{"name": "a", "port": 1.0}, {"name": "b", "port": 2.0}]}],
     [{"ports": [{"name": "a", "port": 1.0}, {"name": "a", "port": 2.0}]}]),
    ("kubernetes:rbac.authorization.k8s.io/v1:RoleBinding", "subjects",
     [[{"kind": "User", "name": "Ada Lovelace"}], [{"kind": "ServiceAccount", "name": "train"}]],
     [[{"kind": "ServiceAccount", "name": "Train Job"}]]),
    ("kubernetes:autoscaling/v2:HorizontalPodAutoscaler", "spec",
     [_scaled(scale) for scale in ("500m", "1m", "1", 2.0)],
     [_scaled("0")]),
    ("kubernetes:core/v1:Secret", "data", [{"key": "YWJj\nZGVm\n"}], [{"key": "not base64"}]),
    ("kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet", "spec",
     [{"replicas": 0.0, "leaderWorkerTemplate": {"size": 1.0, "workerTemplate": {"spec": {"containers": [
         {"name": "a", "image": "b"}]}}}}],
     [{"replicas": 0.0, "leaderWorkerTemplate": {"size": 1.0, "workerTemplate": {"spec": {"containers": [
         {"name": "A", "image": "b"}]}}}}]),
]  # fmt: skip
ROLE: dict[str, Any] = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "train"}}


@pytest.mark.parametrize(("kind", "path", "right", "wrong"), KUBERNETES, ids=[case[0] for case in KUBERNETES])
def test_objects_are_judged_as_their_server_does(kind: str, path: str, right: list[Any], wrong: list[Any]) -> None:
    base: dict[str, Any] = ROLE if kind.endswith("RoleBinding") else {}

    assert [finding for value in right for finding in found(kind, **{**base, **of(kind, path, value)})] == []
    for value in wrong:
        (problem,) = found(kind, **{**base, **of(kind, path, value)})
        assert problem.severity == "error"
        assert problem.allowed


ADDRESS = "gcp:compute/address:Address"
INSTANCE = "gcp:compute/instance:Instance"


@pytest.mark.parametrize(
    ("kind", "path", "severity", "message"),
    [
        (ADDRESS, "networkTier", "error", "networkTier does not take 'QUUX'"),  # the SDK's docs have the same list
        (POOL, "nodeConfig.taints.0.effect", "error", "effect does not take 'QUUX'"),  # those of its cluster have
        (INSTANCE, "reservationAffinity.type", "warning",
         "type is not known to take 'QUUX': pulumi-gcp 9.35 refuses this value; the pinned version was not read"),
        (POOL, "placementPolicy.type", "warning", "type is not known to take 'QUUX'"),
    ],
)  # fmt: skip
def test_an_unknown_value_is_an_error_in_lists_of_the_pinned_provider_alone(
    kind: str, path: str, severity: str, message: str
) -> None:
    findings = [finding for finding in found(kind, **of(kind, path, "QUUX")) if finding.rule == "document-enum"]

    assert [(finding.severity, finding.message) for finding in findings] == [(severity, message)]


@pytest.mark.parametrize(
    ("kind", "path", "value", "wrong"),
    [
        # Names at the end of links, where the provider compares those; of other projects' inputs it compares the texts.
        ("gcp:projects/iAMMember:IAMMember", "project", "projects/example-train", False),
        ("gcp:projects/iAMMember:IAMMember", "project", "projects/Not Valid!", True),
        ("gcp:projects/service:Service", "project", "projects/example-train", False),
        (ADDRESS, "project", "projects/example-train", True),
        ("gcp:compute/routerNat:RouterNat", "nat64Subnetworks.0.name", "projects/p/regions/r/subnetworks/nodes", False),
        # Upper and lower case, where the provider takes both for one value.
        ("gcp:artifactregistry/repository:Repository", "format", "docker", False),
        ("gcp:artifactregistry/repository:Repository", "format", "dockers", True),
        ("gcp:dns/managedZone:ManagedZone", "visibility", "PRIVATE", True),  # it compares so, and refuses before that
    ],
)
def test_a_text_that_the_provider_takes_for_a_right_one_is_right(
    kind: str, path: str, value: str, *, wrong: bool
) -> None:
    input_path = re.sub(r"[.](\d+)", r"[\1]", path)

    assert [finding.severity for finding in found(kind, **of(kind, path, value)) if finding.path == input_path] == [
        "error"
    ] * wrong
