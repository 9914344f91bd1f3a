"""A local cloud with one resource of every kind, for tests that change each of them."""

from __future__ import annotations

from tests.local_google_cloud.client import INSTANCE, LOCATION, PROJECT, ZONE, Client, Json

REGION = f"compute/v1/projects/{PROJECT}/regions/us-central1"
DISK = f"compute/v1/projects/{PROJECT}/zones/us-central1-a/disks/data"
RANGE = f"compute/v1/projects/{PROJECT}/global/addresses/range"
VAULT = f"backupdr/v1/{LOCATION}/backupVaults/vault"
PLAN = f"backupdr/v1/{LOCATION}/backupPlans/plan"
RULE = {
    "ruleId": "daily",
    "backupRetentionDays": 7,
    "standardSchedule": {"recurrenceType": "DAILY", "timeZone": "UTC"},
}
SECRET = f"secretmanager/v1/projects/{PROJECT}/secrets/token"
ADDRESS = f"{REGION}/addresses/nat"
FIREWALL = f"compute/v1/projects/{PROJECT}/global/firewalls/allow"
IMAGES = f"artifactregistry/v1/{LOCATION}/repositories/images"
CLUSTER = f"container/v1/{LOCATION}/clusters/one"
POOL = f"{CLUSTER}/nodePools/gpus"
HOMES = f"file/v1/{ZONE}/instances/homes"
SCRATCH = f"lustre/v1/{ZONE}/instances/scratch"
ACCOUNT = "billingbudgets/v1/billingAccounts/012345-6789AB-CDEF01"
MONITORING = f"monitoring/v3/projects/{PROJECT}"
PREFERENCE = f"cloudquotas/v1/projects/{PROJECT}/locations/global/quotaPreferences/cpus"
WANTED = {
    "service": "compute.googleapis.com",
    "quotaId": "CPUS-per-project-region",
    "quotaConfig": {"preferredValue": "96"},
}
ZONE_OF_APIS = f"dns/v1beta2/projects/{PROJECT}/managedZones/apis"
RECORD = {"name": "*.googleapis.com.", "type": "CNAME", "ttl": 300, "rrdatas": ["private.googleapis.com."]}
FAST = {
    "network": f"projects/{PROJECT}/global/networks/net",
    "filesystem": "lustre",
    "perUnitStorageThroughput": "1000",
}
AMOUNT = {"specifiedAmount": {"currencyCode": "USD", "units": "200"}}


def one_of_each(ask: Client) -> dict[str, str]:
    """Create one resource of every kind, and return the paths of those with generated ids, by a word for each."""
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
    ask.done("POST", HOMES.rpartition("/")[0], INSTANCE, instanceId="homes")
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
