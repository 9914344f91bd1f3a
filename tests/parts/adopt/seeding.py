"""A local cloud filled with a stack's plan by requests to its APIs, without an engine or a provider."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from local_google_cloud.api import serve
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.resources import resource_types
from training_platform.resources.api_fields import Leaf, body_of, leaves
from training_platform.resources.stack_resource import UNKNOWN, StackResource

Json = dict[str, Any]
SUFFIX = "0a1b2c3"  # as Pulumi puts behind names that a program leaves to it


class Seeded:
    """A local cloud and its resources."""

    def __init__(self, *projects: str) -> None:
        self.cloud = judged_cloud(projects)
        self._paths: dict[tuple[str, str], str] = {}

    def ask(self, verb: str, path: str, body: Json | None = None, **query: str) -> Json:
        service, _, service_path = path.partition("/")
        code, answer = self.cloud.handle(service, verb, service_path, list(query.items()), body)
        assert code == 200, (path, answer)
        return answer

    def spoil(self, name: str, change: Callable[[Json], object]) -> None:
        """Change a stored resource directly, even if its API would refuse the change."""
        record = self.cloud.store.get(name)
        assert record is not None
        change(record.body)
        self.cloud.store.put(record)

    def put(self, resources: Iterable[StackResource]) -> None:
        """Create the planned resources in order, except for types without a request here."""
        for planned in resources:
            if planned.type in _CREATES:
                name = str(planned.inputs.get("name", f"{planned.name}-{SUFFIX}"))
                body = body_of(self._known(planned))
                if planned.type not in _UNNAMED:
                    body["name"] = name
                _CREATES[planned.type](self, planned, body, name)

    def _known(self, planned: StackResource) -> Iterator[Leaf]:
        """Yield a resource's values, with those of its sources filled in."""
        for leaf in leaves(planned.type, planned.inputs):
            sources = planned.inputs_from.get(leaf.name.partition(".")[0].partition("[")[0], ())
            paths = [self._paths[source] for source in sources if source in self._paths]
            value = _told(leaf, paths)
            if value is not UNKNOWN and value != [UNKNOWN]:  # a service agent's number, say
                yield leaf._replace(value=value)

    def path(self, planned: StackResource, path: str) -> str:
        self._paths[planned.key] = path
        return path


def _told(leaf: Leaf, paths: list[str]) -> Any:
    """Return a value as it is once its sources exist: an account's address, the network of a card by its number."""
    last = leaf.name.rpartition(".")[2].partition("[")[0]
    fitting = [path for path in paths if f"/{last}s/" in path] or paths
    number = int(match[1]) if (match := re.search(r"\[([0-9]+)\]", leaf.name)) else 0
    address: Any = fitting[min(number, len(fitting) - 1)] if fitting else UNKNOWN
    if address is not UNKNOWN and "/serviceAccounts/" in address:
        address = address.rpartition("/")[2]
    if leaf.value is UNKNOWN:
        return address
    if isinstance(leaf.value, list) and UNKNOWN in leaf.value:
        return [address] if len(leaf.value) == 1 else fitting
    return leaf.value


@contextmanager
def served(seeded: Seeded) -> Iterator[str]:
    """Serve a local cloud while the block runs; yields its address."""
    with serve(seeded.cloud, 0) as port:
        yield f"http://127.0.0.1:{port}"


def _compute(place: str, collection: str) -> Callable[[Seeded, StackResource, Json, str], None]:
    def create(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
        where = place.format_map(planned.inputs)
        path = seeded.path(planned, f"projects/{planned.inputs['project']}/{where}/{collection}/{name}")
        body.pop("region", None)
        if "logConfig" in body:
            body["logConfig"]["enable"] = True
        seeded.ask("POST", f"compute/beta/{path.rpartition('/')[0]}", body)

    return create


def _nat(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    sources = planned.inputs_from["router"]
    router = next(seeded._paths[source] for source in sources if source in seeded._paths)
    seeded.ask("PATCH", f"compute/beta/{router}", {"nats": [body]})


def _cluster(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    parent = f"projects/{planned.inputs['project']}/locations/{planned.inputs['location']}"
    path = seeded.path(planned, f"{parent}/clusters/{name}")
    body["autoscaling"] = {key: value for key, value in body["autoscaling"].items() if key != "enabled"} | {
        "enableNodeAutoprovisioning": body["autoscaling"].get("enableNodeAutoprovisioning", False)
    }
    body["ipAllocationPolicy"]["useIpAliases"] = True
    seeded.ask("POST", f"container/v1beta1/{parent}/clusters", {"cluster": body})
    seeded.ask("DELETE", f"container/v1beta1/{path}/nodePools/default-pool")


def _pool(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    where = f"projects/{planned.inputs['project']}/locations/{planned.inputs['location']}"
    cluster = str(planned.inputs["cluster"]).rpartition("/")[2]
    body["autoscaling"]["enabled"] = True
    if planned.inputs.get("nodeLocations") is None:
        body.pop("locations", None)
    path = seeded.path(planned, f"{where}/clusters/{cluster}/nodePools/{name}")
    seeded.ask("POST", f"container/v1beta1/{path.rpartition('/')[0]}", {"nodePool": body})


def _located(service: str, collection: str, id_in: str) -> Callable[[Seeded, StackResource, Json, str], None]:
    def create(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
        place = planned.inputs.get("location") or planned.inputs.get("region")
        parent = f"projects/{planned.inputs['project']}/locations/{place}/{collection}"
        name = str(planned.inputs.get(id_in, name))
        body.pop("name", None)
        seeded.path(planned, f"{parent}/{name}")
        query = {id_in: name} if id_in else {}
        seeded.ask("POST", f"{service}/{parent}", body, **query)

    return create


def _bucket(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    seeded.path(planned, name)
    seeded.ask("POST", "storage/v1/b", body, project=planned.inputs["project"])


def _account(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    project = planned.inputs["project"]
    account = planned.inputs["accountId"]
    seeded.path(planned, f"projects/{project}/serviceAccounts/{account}@{project}.iam.gserviceaccount.com")
    seeded.ask("POST", f"iam/v1/projects/{project}/serviceAccounts", {"accountId": account, "serviceAccount": body})


def _monitoring(collection: str) -> Callable[[Seeded, StackResource, Json, str], None]:
    def create(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
        created = seeded.ask("POST", f"monitoring/v3/projects/{planned.inputs['project']}/{collection}", body)
        seeded.path(planned, created["name"])

    return create


def _service(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    project = planned.inputs["project"]
    api = planned.inputs["service"]
    seeded.ask("POST", f"serviceusage/v1/projects/{project}/services/{api}:enable", {})


def _member(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    """Give a member a role, unless the member is unknown; service agents are left out."""
    project = planned.inputs["project"]
    member = planned.inputs["member"]
    if member is UNKNOWN:
        sources = [seeded._paths[source] for source in planned.inputs_from["member"] if source in seeded._paths]
        if not sources:
            return
        member = f"serviceAccount:{sources[0].rpartition('/')[2]}"
    policy = seeded.ask("POST", f"cloudresourcemanager/v1/projects/{project}:getIamPolicy", {})
    role = planned.inputs["role"]
    role = seeded._paths[planned.inputs_from["role"][0]] if role is UNKNOWN else role
    policy.setdefault("bindings", []).append({"role": role, "members": [member]})
    seeded.ask("POST", f"cloudresourcemanager/v1/projects/{project}:setIamPolicy", {"policy": policy})


def _account_member(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    """Let a member act as an account."""
    sources = [seeded._paths[source] for source in planned.inputs_from["serviceAccountId"] if source in seeded._paths]
    policy = seeded.ask("POST", f"iam/v1/{sources[0]}:getIamPolicy", {})
    policy.setdefault("bindings", []).append({"role": planned.inputs["role"], "members": [planned.inputs["member"]]})
    seeded.ask("POST", f"iam/v1/{sources[0]}:setIamPolicy", {"policy": policy})


def _secret(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    body.pop("name", None)
    parent = f"projects/{planned.inputs['project']}/secrets"
    seeded.ask("POST", f"secretmanager/v1/{parent}", body, secretId=planned.inputs["secretId"])
    seeded.path(planned, f"{parent}/{planned.inputs['secretId']}")


def _zone(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    parent = f"projects/{planned.inputs['project']}/managedZones"
    seeded.ask("POST", f"dns/v1beta2/{parent}", body)
    seeded.path(planned, f"{parent}/{name}")


def _record(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    zone = f"projects/{planned.inputs['project']}/managedZones/{planned.inputs['managedZone']}"
    seeded.ask("POST", f"dns/v1beta2/{zone}/changes", {"additions": [body]})


def _board(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    project = planned.inputs["project"]
    seeded.ask("POST", f"monitoring/v1/projects/{project}/dashboards", json.loads(planned.inputs["dashboardJson"]))


def _role(seeded: Seeded, planned: StackResource, body: Json, name: str) -> None:
    body.pop("name", None)
    parent = f"projects/{planned.inputs['project']}/roles"
    identity = planned.inputs["roleId"]
    seeded.ask("POST", f"iam/v1/{parent}", {"roleId": identity, "role": body})
    seeded.path(planned, f"{parent}/{identity}")


_UNNAMED = {
    resource_types.ALERT_POLICY,
    resource_types.NOTIFICATION_CHANNEL,
    resource_types.SERVICE_ACCOUNT,
    resource_types.TENSORBOARD,
}
_CREATES: Mapping[str, Callable[[Seeded, StackResource, Json, str], None]] = {
    resource_types.SERVICE: _service,
    resource_types.IAM_MEMBER: _member,
    resource_types.SERVICE_ACCOUNT_MEMBER: _account_member,
    resource_types.SECRET: _secret,
    resource_types.DASHBOARD: _board,
    resource_types.MANAGED_ZONE: _zone,
    resource_types.RECORD_SET: _record,
    resource_types.NETWORK_ATTACHMENT: _compute("regions/{region}", "networkAttachments"),
    resource_types.CUSTOM_ROLE: _role,
    resource_types.NETWORK: _compute("global", "networks"),
    resource_types.SUBNETWORK: _compute("regions/{region}", "subnetworks"),
    resource_types.ROUTER: _compute("regions/{region}", "routers"),
    resource_types.ADDRESS: _compute("regions/{region}", "addresses"),
    resource_types.GLOBAL_ADDRESS: _compute("global", "addresses"),
    resource_types.RESOURCE_POLICY: _compute("regions/{region}", "resourcePolicies"),
    resource_types.FIREWALL: _compute("global", "firewalls"),
    resource_types.ROUTER_NAT: _nat,
    resource_types.CLUSTER: _cluster,
    resource_types.NODE_POOL: _pool,
    resource_types.FILESTORE: _located("file/v1beta1", "instances", "instanceId"),
    resource_types.REPOSITORY: _located("artifactregistry/v1", "repositories", "repositoryId"),
    resource_types.PERSISTENT_RESOURCE: _located("aiplatform/v1beta1", "persistentResources", "persistentResourceId"),
    resource_types.TENSORBOARD: _located("aiplatform/v1beta1", "tensorboards", ""),
    resource_types.BUCKET: _bucket,
    resource_types.SERVICE_ACCOUNT: _account,
    resource_types.ALERT_POLICY: _monitoring("alertPolicies"),
    resource_types.NOTIFICATION_CHANNEL: _monitoring("notificationChannels"),
}
