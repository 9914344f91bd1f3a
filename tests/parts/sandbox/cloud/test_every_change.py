"""Every change in place that a stack file can ask for: the local cloud has the method by which the provider sends it.

Which inputs change in place is worked out from the table of all fields, so a field that changes another one fails here
until its request stands below. That the provider sends these requests is what the walk under the engine shows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.parts.sandbox.cloud.conftest import LOCATION, PROJECT, ZONE, Client, Json
from tests.stacks import every_field as reach
from tests.stacks.field_changes import KINDS, REASONS, Kind, Round, errors, side_by_side
from training_platform.checks.comparison.changes import resource_changes
from training_platform.config.reading.finding import dotted
from training_platform.resources import resource_types

REGION = f"compute/v1/projects/{PROJECT}/regions/us-central1"
REPOSITORIES, BUCKETS = "gcp:artifactregistry/repository:Repository", "gcp:storage/bucket:Bucket"
CLUSTERS, POOLS = "gcp:container/cluster:Cluster", "gcp:container/nodePool:NodePool"
LUSTRES = "gcp:lustre/instance:Instance"
INSTANCES, BOARDS = "gcp:filestore/instance:Instance", "gcp:vertex/aiTensorboard:AiTensorboard"
ADDRESSES, FIREWALLS = "gcp:compute/address:Address", "gcp:compute/firewall:Firewall"
DISKS, RANGES = "gcp:compute/disk:Disk", "gcp:compute/globalAddress:GlobalAddress"
DISK = f"compute/v1/projects/{PROJECT}/zones/us-central1-a/disks/data"
RANGE = f"compute/v1/projects/{PROJECT}/global/addresses/range"
VAULTS = "gcp:backupdisasterrecovery/backupVault:BackupVault"
PLANS = "gcp:backupdisasterrecovery/backupPlan:BackupPlan"
VAULT = f"backupdr/v1/{LOCATION}/backupVaults/vault"
PLAN = f"backupdr/v1/{LOCATION}/backupPlans/plan"
RULE = {
    "ruleId": "daily",
    "backupRetentionDays": 7,
    "standardSchedule": {"recurrenceType": "DAILY", "timeZone": "UTC"},
}
NATS, POLICIES = "gcp:compute/routerNat:RouterNat", "gcp:monitoring/alertPolicy:AlertPolicy"
CHANNELS = "gcp:monitoring/notificationChannel:NotificationChannel"
BUDGETS, SECRETS = "gcp:billing/budget:Budget", "gcp:secretmanager/secret:Secret"
SECRET = f"secretmanager/v1/projects/{PROJECT}/secrets/token"
ADDRESS = f"{REGION}/addresses/nat"
FIREWALL = f"compute/v1/projects/{PROJECT}/global/firewalls/allow"
IMAGES = f"artifactregistry/v1/{LOCATION}/repositories/images"
CLUSTER = f"container/v1/{LOCATION}/clusters/one"
POOL = f"{CLUSTER}/nodePools/gpus"
HOMES = f"file/v1/{ZONE}/instances/homes"
SCRATCH = f"lustre/v1/{ZONE}/instances/scratch"
BUCKET = "storage/v1/b/example-lab-data"
ACCOUNT = "billingbudgets/v1/billingAccounts/012345-6789AB-CDEF01"
MONITORING = f"monitoring/v3/projects/{PROJECT}"
LABELS = {"team": "two"}
DASHBOARDS, PREFERENCES = "gcp:monitoring/dashboard:Dashboard", "gcp:cloudquota/sQuotaPreference:SQuotaPreference"
PREFERENCE = f"cloudquotas/v1/projects/{PROJECT}/locations/global/quotaPreferences/cpus"
WANTED = {
    "service": "compute.googleapis.com",
    "quotaId": "CPUS-per-project-region",
    "quotaConfig": {"preferredValue": "96"},
}
ZONES, RECORDS = "gcp:dns/managedZone:ManagedZone", "gcp:dns/recordSet:RecordSet"
ZONE_OF_APIS = f"dns/v1beta2/projects/{PROJECT}/managedZones/apis"
RECORD = {"name": "*.googleapis.com.", "type": "CNAME", "ttl": 300, "rrdatas": ["private.googleapis.com."]}


class Sent(NamedTuple):
    """A request of the provider, and what is then held: by what it was sent to, unless ``read`` says otherwise."""

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


def masked(path: str, body: Json) -> Sent:
    return Sent("PATCH", path, body, body, ",".join(body))


def preference(changed: Json) -> Sent:
    return Sent("PATCH", PREFERENCE, {**WANTED, **changed}, changed)


FAST = {
    "network": f"projects/{PROJECT}/global/networks/net",
    "filesystem": "lustre",
    "perUnitStorageThroughput": "1000",
}
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
AMOUNT = {"specifiedAmount": {"currencyCode": "USD", "units": "200"}}
FILTER = {"projects": ["projects/123"], "labels": {"team": ["two"]}}
REQUESTS: dict[tuple[str, str], Sent] = {
    (DASHBOARDS, "dashboardJson"): Sent("PATCH", "dashboard", {"displayName": "two"}, {"displayName": "two"}),
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
    (ADDRESSES, "labels"): Sent(
        "POST",
        f"{REGION}/addresses/nat/setLabels",
        {"labels": LABELS},
        {"labels": LABELS},
        read=f"{REGION}/addresses/nat",
    ),
    (DISKS, "size"): Sent("POST", f"{DISK}/resize", {"sizeGb": "200"}, {"sizeGb": "200"}, read=DISK),
    (DISKS, "accessMode"): Sent("PATCH", DISK, {"accessMode": "READ_ONLY_MANY"}, {"accessMode": "READ_ONLY_MANY"}),
    (DISKS, "provisionedThroughput"): Sent(
        "PATCH", DISK, {"provisionedThroughput": "2400"}, {"provisionedThroughput": "2400"}
    ),
    (DISKS, "labels"): Sent("POST", f"{DISK}/setLabels", {"labels": LABELS}, {"labels": LABELS}, read=DISK),
    (RANGES, "labels"): Sent("POST", f"{RANGE}/setLabels", {"labels": LABELS}, {"labels": LABELS}, read=RANGE),
    (VAULTS, "backupMinimumEnforcedRetentionDuration"): masked(
        VAULT, {"backupMinimumEnforcedRetentionDuration": "259200s"}
    ),
    (SECRETS, "labels"): masked(SECRET, {"labels": LABELS}),
    (VAULTS, "labels"): masked(VAULT, {"labels": LABELS}),
    (PLANS, "backupRules"): masked(PLAN, {"backupRules": [{**RULE, "backupRetentionDays": 9}]}),
    (FIREWALLS, "sourceRanges"): Sent(
        "PATCH", FIREWALL, {"sourceRanges": ["10.2.0.0/20"]}, {"sourceRanges": ["10.2.0.0/20"]}
    ),
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
    (INSTANCES, "labels"): masked(HOMES, {"labels": LABELS}),
    (LUSTRES, "accessRulesOptions"): masked(SCRATCH, {"accessRulesOptions": {"defaultSquashMode": "ROOT_SQUASH"}}),
    (LUSTRES, "capacityGib"): masked(SCRATCH, {"capacityGib": "18000"}),
    (LUSTRES, "labels"): masked(SCRATCH, {"labels": LABELS}),
    (POLICIES, "conditions"): masked("policy", {"conditions": CONDITIONS}),
    (POLICIES, "userLabels"): masked("policy", {"userLabels": LABELS}),
    (CHANNELS, "userLabels"): masked("channel", {"userLabels": LABELS}),
    (BUCKETS, "labels"): Sent("PATCH", BUCKET, {"labels": LABELS}, {"labels": LABELS}),
    (BUCKETS, "logging"): Sent("PATCH", BUCKET, {"logging": LOGGING}, {"logging": LOGGING}),
    (BUCKETS, "lifecycleRules"): Sent("PATCH", BUCKET, {"lifecycle": {"rule": []}}, {}),
    (BUCKETS, "storageClass"): Sent("PATCH", BUCKET, {"storageClass": "NEARLINE"}, {"storageClass": "NEARLINE"}),
    (BUCKETS, "versioning"): Sent(
        "PATCH", BUCKET, {"versioning": {"enabled": True}}, {"versioning": {"enabled": True}}
    ),
    (ZONES, "labels"): Sent("PATCH", ZONE_OF_APIS, {"labels": LABELS}, {"labels": LABELS}, read=ZONE_OF_APIS),
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
}


@pytest.fixture
def lab(ask: Client) -> dict[str, str]:
    """One resource of every kind; the paths of those whose ids the API makes, by a word for each."""
    ask.network()
    ask.done("POST", f"{REGION}/addresses", {"name": "nat"})
    ask.done("POST", RANGE.rpartition("/")[0], {"name": "range"})
    disk = {"name": "data", "sizeGb": "100", "type": f"{DISK.rpartition('/disks')[0]}/diskTypes/hyperdisk-ml"}
    ask.done("POST", DISK.rpartition("/")[0], disk)
    ask.enable(PROJECT, "backupdr", "dns", "secretmanager")
    ask.done("POST", SECRET.rpartition("/")[0], {"replication": {"automatic": {}}}, secretId="token")
    ask.done("POST", ZONE_OF_APIS.rpartition("/")[0], {"name": "apis", "dnsName": "googleapis.com."})
    ask.done("POST", f"{ZONE_OF_APIS}/changes", {"additions": [RECORD]})
    kept_for = {"backupMinimumEnforcedRetentionDuration": "172800s"}
    ask.done("POST", VAULT.rpartition("/")[0], kept_for, backupVaultId="vault")
    plan = {
        "backupVault": VAULT.removeprefix("backupdr/v1/"),
        "resourceType": "file.googleapis.com/Instance",
        "backupRules": [RULE],
    }
    ask.done("POST", PLAN.rpartition("/")[0], plan, backupPlanId="plan")
    ask.done("POST", f"{REGION}/routers", {"name": "out", "network": "global/networks/net"})
    allow = {"name": "allow", "network": "global/networks/net", "allowed": [{"IPProtocol": "tcp"}]}
    ask.done("POST", FIREWALL.rpartition("/")[0], allow)
    ask.done("POST", IMAGES.rpartition("/")[0], {"format": "DOCKER"}, repositoryId="images")
    homes = {"tier": "ZONAL", "fileShares": [{"name": "a", "capacityGb": "1024"}], "networks": [{"network": "net"}]}
    ask.done("POST", HOMES.rpartition("/")[0], homes, instanceId="homes")
    ask.private_services()
    ask.done("POST", SCRATCH.rpartition("/")[0], {**FAST, "capacityGib": "9000"}, instanceId="scratch")
    ask.done("POST", "storage/v1/b", {"name": "example-lab-data", "location": "us-central1"}, project=PROJECT)
    ask.cluster()
    gpus = {
        "name": "gpus",
        "config": {
            "machineType": "g2-standard-12",
            "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}],
        },
        "locations": ["us-central1-a"],
        "autoscaling": {"enabled": True, "maxNodeCount": 1},
    }
    ask.done("POST", POOL.rpartition("/")[0], {"nodePool": gpus})
    ask.done("POST", PREFERENCE.rpartition("/")[0], WANTED, quotaPreferenceId="cpus")
    dashboards = f"monitoring/v1/projects/{PROJECT}/dashboards"
    dashboard = ask.done("POST", dashboards, {"displayName": "one"})
    board = ask.done("POST", f"aiplatform/v1/{LOCATION}/tensorboards", {"displayName": "runs"})
    channel = {"type": "email", "labels": {"email_address": "ops@example.com"}}
    slow = [{"displayName": "c", "conditionThreshold": {"filter": "x"}}]
    budget: Json = {"amount": AMOUNT, "budgetFilter": {}}
    policy = {"displayName": "slow", "combiner": "OR", "conditions": slow}
    return {
        "board": f"aiplatform/v1/{board['response']['name']}",
        "budget": f"billingbudgets/v1/{ask.done('POST', f'{ACCOUNT}/budgets', budget)['name']}",
        "dashboard": f"monitoring/v1/{dashboard['name']}",
        "channel": f"monitoring/v3/{ask.done('POST', f'{MONITORING}/notificationChannels', channel)['name']}",
        "policy": f"monitoring/v3/{ask.done('POST', f'{MONITORING}/alertPolicies', policy)['name']}",
    }


def changes(kind: Kind) -> list[tuple[Any, Any]]:
    return sorted(kind.changes().items(), key=str)


PATHS = [(kind, path) for kind in KINDS for path, _ in changes(kind)]


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, Any], list[str]]:
    """Return the changes that ``check`` refuses, with its errors.

    Changes of other fields are applied together; where ``check`` refuses them, each half is tried by itself. So a
    change that is refused alone but taken beside another, whose field it needs, counts as taken.
    """
    folder = tmp_path_factory.mktemp("changes")

    def of(kind: Kind, edits: list[tuple[str, Any]]) -> dict[tuple[str, Any], list[str]]:
        section = Round({path: kind.changes()[path] for _, path in edits}).applied(kind.section)
        half, found = len(edits) // 2, errors(folder, kind, section)
        if found and half:
            return of(kind, edits[:half]) | of(kind, edits[half:])
        return {edits[0]: found} if found else {}

    found: dict[tuple[str, Any], list[str]] = {}
    for kind in KINDS:
        for together in side_by_side([(kind.stack, path) for path, _ in changes(kind)]):
            found |= of(kind, together)
    return found


@pytest.mark.parametrize(("kind", "path"), PATHS, ids=[f"{kind.stack}-{dotted(path)}" for kind, path in PATHS])
def test_check_accepts_it(kind: Kind, path: Any, refused: dict[tuple[str, Any], list[str]]) -> None:
    assert refused.get((kind.stack, path)) is None


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
    """Return type and input of all that changes in place, of what Google has."""
    found = set()
    for kind in KINDS:
        before = kind.planned(kind.section)
        for path, new in kind.changes().items():
            for each in resource_changes(before, kind.planned(reach.changed(kind.section, path, new))):
                if each.kind == "changed" and each.type.startswith("gcp:"):
                    found |= {(each.type, resource_types.general_path(one.path)) for one in each.inputs}
    return found


def part(path: str) -> str:
    """Return the part of an input that one request changes: of a pool's nodes each field, of others the whole."""
    top, _, below = path.partition("[")[0].partition(".")
    return f"{top}.{below.partition('.')[0]}" if top == "nodeConfig" else top


@pytest.mark.timeout(300)  # plans an environment or a team anew for each of its fields
def test_every_input_that_changes_in_place_has_its_request() -> None:
    found = {(kind, part(path)) for kind, path in in_place()}

    assert found == REQUESTS.keys() | PROVIDERS_OWN


@pytest.mark.parametrize(
    "changed", REQUESTS, ids=lambda changed: f"{changed[0].removeprefix('gcp:').replace('/', '.')}.{changed[1]}"
)
def test_the_local_cloud_takes_the_change_and_keeps_it(
    changed: tuple[str, str], ask: Client, lab: dict[str, str]
) -> None:
    sent = REQUESTS[changed]
    path = lab.get(sent.path, sent.path)

    ask.done(sent.verb, path, sent.body, **({"updateMask": sent.mask} if sent.mask else {}))

    held = ask.done("GET", sent.read or path)
    assert kept(sent.holds, held) == sent.holds


def kept(wanted: Any, held: Any) -> Any:
    """Return what is held, as far as it is wanted: services fill in more."""
    if isinstance(wanted, dict) and isinstance(held, dict):
        return {key: kept(value, held.get(key)) for key, value in wanted.items()}
    if isinstance(wanted, list) and isinstance(held, list) and len(wanted) == len(held):
        return [kept(*both) for both in zip(wanted, held, strict=True)]
    return held
