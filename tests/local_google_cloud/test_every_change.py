"""Every change in place that a stack file can make: the local cloud has the method that the provider calls.

Which inputs change in place is worked out from the table of all fields, so a field that changes another one fails here
until its request stands below. That the provider sends these requests is what the walk under the engine shows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.local_google_cloud.client import Client, Json
from tests.local_google_cloud.one_of_each import (
    ADDRESS,
    AMOUNT,
    CLUSTER,
    DISK,
    FIREWALL,
    HOMES,
    IMAGES,
    PLAN,
    POOL,
    PREFERENCE,
    RANGE,
    RECORD,
    REGION,
    RULE,
    SCRATCH,
    SECRET,
    VAULT,
    WANTED,
    ZONE_OF_APIS,
    one_of_each,
)
from tests.stacks import every_field as reach
from tests.stacks.field_changes import KINDS, REASONS, Kind, errors
from training_platform.checks.comparison.changes import resource_changes
from training_platform.checks.outcome import OPTIONS
from training_platform.config.reading.finding import dotted
from training_platform.resources import resource_types

REPOSITORIES = "gcp:artifactregistry/repository:Repository"
BUCKETS = "gcp:storage/bucket:Bucket"
CLUSTERS = "gcp:container/cluster:Cluster"
POOLS = "gcp:container/nodePool:NodePool"
LUSTRES = "gcp:lustre/instance:Instance"
INSTANCES = "gcp:filestore/instance:Instance"
BOARDS = "gcp:vertex/aiTensorboard:AiTensorboard"
ADDRESSES = "gcp:compute/address:Address"
FIREWALLS = "gcp:compute/firewall:Firewall"
DISKS = "gcp:compute/disk:Disk"
RANGES = "gcp:compute/globalAddress:GlobalAddress"
VAULTS = "gcp:backupdisasterrecovery/backupVault:BackupVault"
PLANS = "gcp:backupdisasterrecovery/backupPlan:BackupPlan"
NATS = "gcp:compute/routerNat:RouterNat"
POLICIES = "gcp:monitoring/alertPolicy:AlertPolicy"
CHANNELS = "gcp:monitoring/notificationChannel:NotificationChannel"
BUDGETS = "gcp:billing/budget:Budget"
SECRETS = "gcp:secretmanager/secret:Secret"
BUCKET = "storage/v1/b/example-lab-data"
LABELS = {"team": "two"}
LAB_CHANNEL = "(the channel of the lab)"  # its name is random
DASHBOARDS = "gcp:monitoring/dashboard:Dashboard"
PREFERENCES = "gcp:cloudquota/sQuotaPreference:SQuotaPreference"
ZONES = "gcp:dns/managedZone:ManagedZone"
RECORDS = "gcp:dns/recordSet:RecordSet"


class Sent(NamedTuple):
    """A request of the provider, and fields that the resource then has; ``read`` is its path if not the request's."""

    verb: str
    path: str
    body: Json
    holds: Json
    mask: str = ""
    read: str = ""


def update(field: str, value: Any, holds: Json, **more: Any) -> Sent:
    """Return an update of the cluster by one of its ``desired`` fields."""
    return Sent("PUT", CLUSTER, {"update": {f"desired{field}": value, **more}}, holds)


def pool(body: Json, holds: Json) -> Sent:
    return Sent("PUT", POOL, body, holds)


def patched(path: str, body: Json) -> Sent:
    return Sent("PATCH", path, body, body)


def masked(path: str, body: Json) -> Sent:
    return Sent("PATCH", path, body, body, ",".join(body))


def labelled(path: str) -> Sent:
    return Sent("POST", f"{path}/setLabels", {"labels": LABELS}, {"labels": LABELS}, read=path)


def preference(changed: Json) -> Sent:
    return Sent("PATCH", PREFERENCE, {**WANTED, **changed}, changed)


SHARES = {"fileShares": [{"name": "a", "capacityGb": "2048"}]}
SCALING = {"enabled": True, "maxNodeCount": 3, "locationPolicy": "ANY"}
NAT = {
    "name": "all",
    "natIpAllocateOption": "MANUAL_ONLY",
    "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
}
ADDONS = {"lustreCsiDriverConfig": {"enabled": True}}
ENFORCED = {"evaluationMode": "PROJECT_SINGLETON_POLICY_ENFORCE"}
LOGGING = {"logBucket": "example-lab-logs", "logObjectPrefix": "data"}
LIMITS = {"enableNodeAutoprovisioning": True, "resourceLimits": [{"resourceType": "cpu", "maximum": "64"}]}
WINDOW = {"window": {"recurringWindow": {"recurrence": "FREQ=DAILY"}}}
CONDITIONS = [{"displayName": "d", "conditionThreshold": {"filter": "y"}}]
SYSCTLS = {"sysctls": {"net.core.somaxconn": "4096"}}
TAINTS = [{"key": "team", "value": "two", "effect": "NO_EXECUTE"}]
FILTER = {"projects": ["projects/123"], "labels": {"team": ["two"]}}
REQUESTS: dict[tuple[str, str], Sent] = {
    (DASHBOARDS, "dashboardJson"): patched("dashboard", {"displayName": "two"}),
    (PREFERENCES, "contactEmail"): preference({"contactEmail": "ops@example.com"}),
    (PREFERENCES, "justification"): preference({"justification": "A second team."}),
    (PREFERENCES, "quotaConfig"): preference({"quotaConfig": {"preferredValue": "128"}}),
    (BUDGETS, "amount"): masked("budget", {"amount": AMOUNT}),
    (BUDGETS, "budgetFilter"): masked("budget", {"budgetFilter": FILTER}),
    (BUDGETS, "displayName"): masked("budget", {"displayName": "two"}),
    (BUDGETS, "thresholdRules"): masked("budget", {"thresholdRules": [{"thresholdPercent": 0.7}]}),
    (BUDGETS, "allUpdatesRule"): masked("budget", {"notificationsRule": {"disableDefaultIamRecipients": True}}),
    (CHANNELS, "displayName"): masked("channel", {"displayName": "two"}),
    (REPOSITORIES, "cleanupPolicies"): masked(IMAGES, {"cleanupPolicies": {"keep": {"id": "keep", "action": "KEEP"}}}),
    (REPOSITORIES, "labels"): masked(IMAGES, {"labels": LABELS}),
    (ADDRESSES, "labels"): labelled(ADDRESS),
    (DISKS, "size"): Sent("POST", f"{DISK}/resize", {"sizeGb": "200"}, {"sizeGb": "200"}, read=DISK),
    (DISKS, "accessMode"): patched(DISK, {"accessMode": "READ_ONLY_MANY"}),
    (DISKS, "provisionedThroughput"): patched(DISK, {"provisionedThroughput": "2400"}),
    (DISKS, "labels"): labelled(DISK),
    (RANGES, "labels"): labelled(RANGE),
    (VAULTS, "backupMinimumEnforcedRetentionDuration"): masked(
        VAULT, {"backupMinimumEnforcedRetentionDuration": "259200s"}
    ),
    (SECRETS, "labels"): masked(SECRET, {"labels": LABELS}),
    (VAULTS, "labels"): masked(VAULT, {"labels": LABELS}),
    (PLANS, "backupRules"): masked(PLAN, {"backupRules": [{**RULE, "backupRetentionDays": 9}]}),
    (FIREWALLS, "sourceRanges"): patched(FIREWALL, {"sourceRanges": ["10.2.0.0/20"]}),
    (NATS, "natIps"): Sent(
        "PATCH", f"{REGION}/routers/out", {"nats": [{**NAT, "natIps": [f"{REGION}/addresses/nat"]}]}, {}
    ),
    (CLUSTERS, "addonsConfig"): update("AddonsConfig", ADDONS, {"addonsConfig": ADDONS}),
    (CLUSTERS, "managedMachineLearningDiagnosticsConfig"): update(
        "ManagedMachineLearningDiagnosticsConfig",
        {"enabled": True},
        {"managedMachineLearningDiagnosticsConfig": {"enabled": True}},
    ),
    (CLUSTERS, "authenticatorGroupsConfig"): update(
        "AuthenticatorGroupsConfig", {"enabled": True}, {"authenticatorGroupsConfig": {"enabled": True}}
    ),
    (CLUSTERS, "gatewayApiConfig"): update(
        "GatewayApiConfig",
        {"channel": "CHANNEL_STANDARD"},
        {"networkConfig": {"gatewayApiConfig": {"channel": "CHANNEL_STANDARD"}}},
    ),
    (CLUSTERS, "binaryAuthorization"): update("BinaryAuthorization", ENFORCED, {"binaryAuthorization": ENFORCED}),
    (CLUSTERS, "enableIntranodeVisibility"): update(
        "IntraNodeVisibilityConfig", {"enabled": True}, {"networkConfig": {"enableIntraNodeVisibility": True}}
    ),
    (CLUSTERS, "clusterAutoscaling"): update("ClusterAutoscaling", LIMITS, {"autoscaling": LIMITS}),
    (CLUSTERS, "maintenancePolicy"): Sent(
        "POST",
        f"{CLUSTER}:setMaintenancePolicy",
        {"maintenancePolicy": WINDOW},
        {"maintenancePolicy": WINDOW},
        read=CLUSTER,
    ),
    (CLUSTERS, "minMasterVersion"): update("MasterVersion", "1.34", {}),
    (CLUSTERS, "releaseChannel"): update(
        "ReleaseChannel", {"channel": "STABLE"}, {"releaseChannel": {"channel": "STABLE"}}
    ),
    (CLUSTERS, "resourceLabels"): Sent(
        "POST", f"{CLUSTER}:setResourceLabels", {"resourceLabels": LABELS}, {"resourceLabels": LABELS}, read=CLUSTER
    ),
    (POOLS, "autoscaling"): Sent(
        "PUT",
        CLUSTER,
        {"update": {"desiredNodePoolId": "gpus", "desiredNodePoolAutoscaling": SCALING}},
        {"autoscaling": SCALING},
        read=POOL,
    ),
    (POOLS, "management"): Sent(
        "POST",
        f"{POOL}:setManagement",
        {"management": {"autoUpgrade": True}},
        {"management": {"autoUpgrade": True}},
        read=POOL,
    ),
    (POOLS, "nodeConfig.bootDisk"): pool({"bootDisk": {"sizeGb": "200"}}, {"config": {"bootDisk": {"sizeGb": "200"}}}),
    (POOLS, "nodeConfig.labels"): pool({"labels": {"labels": LABELS}}, {"config": {"labels": LABELS}}),
    (POOLS, "nodeConfig.linuxNodeConfig"): pool({"linuxNodeConfig": SYSCTLS}, {"config": {"linuxNodeConfig": SYSCTLS}}),
    (POOLS, "nodeConfig.machineType"): pool(
        {"machineType": "g2-standard-16"}, {"config": {"machineType": "g2-standard-16"}}
    ),
    (POOLS, "nodeConfig.resourceLabels"): pool(
        {"resourceLabels": {"labels": LABELS}}, {"config": {"resourceLabels": LABELS}}
    ),
    (POOLS, "nodeConfig.taints"): pool({"taints": {"taints": TAINTS}}, {"config": {"taints": TAINTS}}),
    (POOLS, "nodeLocations"): pool({"locations": ["us-central1-b"]}, {"locations": ["us-central1-b"]}),
    (POOLS, "upgradeSettings"): pool({"upgradeSettings": {"maxSurge": 2}}, {"upgradeSettings": {"maxSurge": 2}}),
    (INSTANCES, "deletionProtectionEnabled"): masked(HOMES, {"deletionProtectionEnabled": True}),
    (INSTANCES, "deletionProtectionReason"): masked(HOMES, {"deletionProtectionReason": "homes"}),
    (INSTANCES, "fileShares"): masked(HOMES, SHARES),
    (INSTANCES, "performanceConfig"): masked(HOMES, {"performanceConfig": {"fixedIops": {"maxIops": "5000"}}}),
    (INSTANCES, "description"): masked(HOMES, {"description": "Home directories"}),
    (INSTANCES, "labels"): masked(HOMES, {"labels": LABELS}),
    (LUSTRES, "accessRulesOptions"): masked(SCRATCH, {"accessRulesOptions": {"defaultSquashMode": "ROOT_SQUASH"}}),
    (LUSTRES, "capacityGib"): masked(SCRATCH, {"capacityGib": "18000"}),
    (LUSTRES, "labels"): masked(SCRATCH, {"labels": LABELS}),
    (POLICIES, "conditions"): masked("policy", {"conditions": CONDITIONS}),
    (POLICIES, "notificationChannels"): masked("policy", {"notificationChannels": [LAB_CHANNEL]}),
    (POLICIES, "userLabels"): masked("policy", {"userLabels": LABELS}),
    (CHANNELS, "userLabels"): masked("channel", {"userLabels": LABELS}),
    (BUCKETS, "labels"): patched(BUCKET, {"labels": LABELS}),
    (BUCKETS, "logging"): patched(BUCKET, {"logging": LOGGING}),
    (BUCKETS, "lifecycleRules"): Sent("PATCH", BUCKET, {"lifecycle": {"rule": []}}, {}),
    (BUCKETS, "storageClass"): patched(BUCKET, {"storageClass": "NEARLINE"}),
    (BUCKETS, "versioning"): patched(BUCKET, {"versioning": {"enabled": True}}),
    (ZONES, "labels"): patched(ZONE_OF_APIS, {"labels": LABELS}),
    (RECORDS, "rrdatas"): Sent(
        "POST",
        f"{ZONE_OF_APIS}/changes",
        {"deletions": [RECORD], "additions": [{**RECORD, "rrdatas": ["restricted.googleapis.com."]}]},
        {"rrsets": [{**RECORD, "kind": "dns#resourceRecordSet", "rrdatas": ["restricted.googleapis.com."]}]},
        read=f"{ZONE_OF_APIS}/rrsets",
    ),
    (BOARDS, "description"): masked("board", {"description": "runs of two"}),
    (BOARDS, "displayName"): masked("board", {"displayName": "two"}),
    (BOARDS, "labels"): masked("board", {"labels": LABELS}),
}
# It looks at the first two and sends nothing, and sends the third as a parameter, which nobody keeps.
PROVIDERS_OWN = {
    (CLUSTERS, "deletionProtection"),
    (VAULTS, "forceDelete"),
    (PREFERENCES, "ignoreSafetyChecks"),
    (POOLS, "bestEffortProvisioning"),  # no plugin that was read has it, so nobody knows its request
}


@pytest.fixture
def lab(ask: Client) -> dict[str, str]:
    """One resource of every kind."""
    return one_of_each(ask)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.stack)
def test_every_field_is_changed_or_has_a_reason(kind: Kind) -> None:
    def fields(paths: Any) -> set[Any]:
        return {step for path in paths for step in reach.steps(kind.model, path)}

    missing = fields(kind.table) - fields(kind.changes()) - fields(set(REASONS) & set(kind.table))
    assert not missing, f"no change that Google Cloud takes, and no reason why there is none: {missing}"


def test_a_reason_is_of_a_field_that_check_refuses_or_that_nothing_is_sent_for(tmp_path: Any) -> None:
    assert REASONS.keys() <= {path for kind in KINDS for path in kind.table}
    for kind in KINDS:
        for path in set(REASONS) & set(kind.table):
            section = reach.changed(kind.section, path, kind.table[path])
            if "check refuses it" in REASONS[path]:
                assert errors(tmp_path, kind, section), dotted(path)


def in_place() -> set[tuple[str, str]]:
    """Return the type and input path of each change that Google Cloud makes in place."""
    changed_inputs: set[tuple[str, str]] = set()
    for kind in KINDS:
        before = kind.planned(kind.section)
        for field, new in kind.changes().items():
            for change in resource_changes(before, kind.planned(reach.changed(kind.section, field, new))):
                if change.kind == "changed" and change.type.startswith("gcp:"):
                    paths = [resource_types.general_path(difference.path) for difference in change.inputs]
                    changed_inputs |= {(change.type, path) for path in paths if path not in OPTIONS}
    return changed_inputs


def part(path: str) -> str:
    """Return the part of an input that one request changes: each field of ``nodeConfig``, else the whole input."""
    top, _, below = path.partition("[")[0].partition(".")
    return f"{top}.{below.partition('.')[0]}" if top == "nodeConfig" else top


@pytest.mark.timeout(300)  # plans an environment or a team anew for each of its fields
def test_every_input_that_changes_in_place_has_its_request() -> None:
    changing = {(kind, part(path)) for kind, path in in_place()}

    assert changing == REQUESTS.keys() | PROVIDERS_OWN


@pytest.mark.parametrize(
    "changed", REQUESTS, ids=lambda changed: f"{changed[0].removeprefix('gcp:').replace('/', '.')}.{changed[1]}"
)
def test_the_local_cloud_takes_the_change_and_keeps_it(
    changed: tuple[str, str], ask: Client, lab: dict[str, str]
) -> None:
    channel = lab["channel"].removeprefix("monitoring/v3/")
    sent = REQUESTS[changed]
    if LAB_CHANNEL in str(sent.body):
        named = {"notificationChannels": [channel]}
        sent = sent._replace(body=named, holds=named)
    path = lab.get(sent.path, sent.path)

    query = {"updateMask": sent.mask} if sent.mask else {}
    ask.done(sent.verb, path, sent.body, **query)

    held = ask.done("GET", sent.read or path)
    assert without_filled_fields(sent.holds, held) == sent.holds


def without_filled_fields(expected: Any, held: Any) -> Any:
    """Return what is held without the fields that a service fills in by itself."""
    if isinstance(expected, dict) and isinstance(held, dict):
        return {key: without_filled_fields(value, held.get(key)) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(held, list) and len(expected) == len(held):
        return [without_filled_fields(*both) for both in zip(expected, held, strict=True)]
    return held
