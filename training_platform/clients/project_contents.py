"""What stands in a project, by the lists of its APIs (extra ``jobs``): bodies by type of resource and path.

A path is that of the resource below its API's version, ``projects/P/locations/L/clusters/C``, as import ids have it; a
bucket's is its name. Nothing is written, and nothing read but what lists show.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from training_platform.catalog.locations import region_of
from training_platform.clients.google_api import GoogleApi, GoogleError, Json
from training_platform.clients.kubernetes_api import ClusterApi
from training_platform.resources import register

ENABLED_APIS: Final = "enabled APIs"
POLICY: Final = "IAM policy"
_DISABLED = ("is disabled", "has not been used")  # as Google words it, beside 403
_JOBS = re.compile(r"-(jobs|[0-9a-f]{6})@")  # ends the ids of accounts that jobs of teams run as; cut ones in a hash


class _Api(NamedTuple):
    """An API: the client's name and version of it, what people call it, and where its methods' paths begin."""

    name: str
    version: str
    title: str
    host: str
    path: str = ""


class Listing(NamedTuple):
    """How a type is listed: the method's place in the client, its arguments, the field of the answer, and the path.

    The path names fields of a body, and what the list was asked for: the project, a region, a zone of Cloud DNS.
    """

    type: str
    api: str
    method: str
    arguments: Mapping[str, str]
    items: str
    path: str


_DASHBOARDS: Final = "dashboards"  # in another version of the API than what else is of Cloud Monitoring
_APIS: Final = {_DASHBOARDS: _Api("monitoring", "v1", "Cloud Monitoring", "monitoring.googleapis.com")} | {
    each.name: each
    for each in (
        _Api("artifactregistry", "v1", "Artifact Registry", "artifactregistry.googleapis.com"),
        _Api("aiplatform", "v1beta1", "Vertex AI", "{region}-aiplatform.googleapis.com"),
        _Api("cloudresourcemanager", "v1", "Resource Manager", "cloudresourcemanager.googleapis.com"),
        _Api("compute", "beta", "Compute Engine", "compute.googleapis.com", "compute/beta/"),
        _Api("container", "v1beta1", "GKE", "container.googleapis.com"),
        _Api("dns", "v1beta2", "Cloud DNS", "dns.googleapis.com"),
        _Api("file", "v1beta1", "Filestore", "file.googleapis.com"),
        _Api("iam", "v1", "IAM", "iam.googleapis.com"),
        _Api("monitoring", "v3", "Cloud Monitoring", "monitoring.googleapis.com"),
        _Api("secretmanager", "v1", "Secret Manager", "secretmanager.googleapis.com"),
        _Api("serviceusage", "v1", "Service Usage", "serviceusage.googleapis.com"),
        _Api("storage", "v1", "Cloud Storage", "storage.googleapis.com", "storage/v1/"),
    )
}
_PARENT, _PROJECT = {"parent": "projects/{project}"}, {"project": "{project}"}
_ANYWHERE, _REGIONAL = {"parent": "projects/{project}/locations/-"}, {"parent": "projects/{project}/locations/{region}"}
_NAME = {"name": "projects/{project}"}
_NAMED, _LINKED = "{name}", "{selfLink}"
_LISTINGS: Final = (
    Listing(
        register.CLUSTER, "container", "projects.locations.clusters.list", _ANYWHERE, "clusters",
        "projects/{project}/locations/{location}/clusters/{name}",
    ),
    Listing(register.NETWORK, "compute", "networks.list", _PROJECT, "items", _LINKED),
    Listing(register.SUBNETWORK, "compute", "subnetworks.aggregatedList", _PROJECT, "subnetworks", _LINKED),
    Listing(register.ROUTER, "compute", "routers.aggregatedList", _PROJECT, "routers", _LINKED),
    Listing(register.FIREWALL, "compute", "firewalls.list", _PROJECT, "items", _LINKED),
    Listing(register.ADDRESS, "compute", "addresses.aggregatedList", _PROJECT, "addresses", _LINKED),
    Listing(register.GLOBAL_ADDRESS, "compute", "globalAddresses.list", _PROJECT, "items", _LINKED),
    Listing(
        register.RESOURCE_POLICY, "compute", "resourcePolicies.aggregatedList", _PROJECT, "resourcePolicies", _LINKED
    ),
    Listing(register.FILESTORE, "file", "projects.locations.instances.list", _ANYWHERE, "instances", _NAMED),
    Listing(register.BUCKET, "storage", "buckets.list", _PROJECT, "items", _NAMED),
    Listing(register.SERVICE_ACCOUNT, "iam", "projects.serviceAccounts.list", _NAME, "accounts", _NAMED),
    Listing(register.CUSTOM_ROLE, "iam", "projects.roles.list", _PARENT, "roles", _NAMED),
    Listing(register.ALERT_POLICY, "monitoring", "projects.alertPolicies.list", _NAME, "alertPolicies", _NAMED),
    Listing(
        register.NOTIFICATION_CHANNEL, "monitoring", "projects.notificationChannels.list", _NAME,
        "notificationChannels", _NAMED,
    ),
    Listing(register.DASHBOARD, _DASHBOARDS, "projects.dashboards.list", _PARENT, "dashboards", _NAMED),
    Listing(
        register.MANAGED_ZONE, "dns", "managedZones.list", _PROJECT, "managedZones",
        "projects/{project}/managedZones/{name}",
    ),
    Listing(
        register.NETWORK_ATTACHMENT, "compute", "networkAttachments.aggregatedList", _PROJECT, "networkAttachments",
        _LINKED,
    ),
    Listing(register.SECRET, "secretmanager", "projects.secrets.list", _PARENT, "secrets", _NAMED),
    Listing(ENABLED_APIS, "serviceusage", "services.list", _PARENT, "services", _NAMED),
)  # fmt: skip
_IN_REGIONS: Final = (
    Listing(
        register.REPOSITORY, "artifactregistry", "projects.locations.repositories.list", _REGIONAL, "repositories",
        _NAMED,
    ),
    Listing(
        register.PERSISTENT_RESOURCE, "aiplatform", "projects.locations.persistentResources.list", _REGIONAL,
        "persistentResources", _NAMED,
    ),
    Listing(
        register.METADATA_STORE, "aiplatform", "projects.locations.metadataStores.list", _REGIONAL, "metadataStores",
        _NAMED,
    ),
    Listing(
        register.TENSORBOARD, "aiplatform", "projects.locations.tensorboards.list", _REGIONAL, "tensorboards", _NAMED
    ),
)  # fmt: skip
_RECORDS: Final = Listing(
    register.RECORD_SET, "dns", "resourceRecordSets.list", {**_PROJECT, "managedZone": "{zone}"}, "rrsets",
    "projects/{project}/managedZones/{zone}/rrsets/{name}/{type}",
)  # fmt: skip
NEEDED: Final = frozenset({register.CLUSTER, register.NETWORK})
"""Types without whose list nothing can be said of a project."""


@dataclass(frozen=True)
class Contents:
    """Bodies by type and path; ``unread`` says of each list that could not be had why, by type.

    ``clusters`` are those that can be asked for objects, by path.
    """

    project: str
    bodies: dict[str, dict[str, Json]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    clusters: Mapping[str, ClusterApi] = field(default_factory=dict)

    def of(self, kind: str) -> Mapping[str, Json]:
        """Return what there is of a type, by path."""
        return self.bodies.get(kind, {})

    def without(self, leave: Callable[[str], bool]) -> Contents:
        """Return the contents without what a function takes by its path."""
        kept = {kind: {p: b for p, b in rows.items() if not leave(p)} for kind, rows in self.bodies.items()}
        return replace(self, bodies=kept)


class _Reader(GoogleApi):
    """One API of a project; ``at`` is where a local cloud is."""

    def __init__(self, api: _Api, project: str, region: str, at: str | None) -> None:
        base = f"{at.rstrip('/')}/{api.name}/" if at else f"https://{api.host.format(region=region)}/"
        root = base + api.path.removeprefix(f"{api.name}/") if at else base + api.path
        where = f"projects/{project}" + (f"/locations/{region}" if region else "")
        super().__init__(api.name, api.version, root, title=api.title, where=where)
        logging.getLogger("googleapiclient.http").setLevel(logging.ERROR)  # an API that is off is no news

    def items(self, listing: Listing, arguments: Mapping[str, str]) -> Iterator[Json]:
        """Yield what a list has, page after page. Raises GoogleError."""
        *collections, method = listing.method.split(".")
        place: Any = self._service
        for name in collections:
            place = getattr(place, name)()
        more = {"filter": "state:ENABLED"} if listing.type == ENABLED_APIS else {}
        request = getattr(place, method)(**arguments, **more)
        while request is not None:
            page = self._send(request)
            yield from _items(page, listing)
            following = getattr(place, f"{method}_next", None)
            request = following(request, page) if following else None

    def policy(self, project: str) -> Json:
        """Return the project's IAM policy. Raises GoogleError."""
        return self._send(self._service.projects().getIamPolicy(resource=project, body={}))

    def account_policy(self, account: str) -> Json:
        """Return the IAM policy of a service account by its full name. Raises GoogleError."""
        return self._send(self._service.projects().serviceAccounts().getIamPolicy(resource=account))


def read_contents(project: str, regions: Iterable[str] = (), local_cloud: str | None = None) -> Contents:
    """Read a project. Vertex AI and images are asked for in ``regions`` and in those where anything else stands.

    An API that is not enabled has nothing. Raises GoogleError where clusters or networks cannot be listed.
    """
    contents = Contents(project)
    for listing in _LISTINGS:
        _read(contents, listing, local_cloud)
    for path in contents.of(register.MANAGED_ZONE):
        _read(contents, _RECORDS, local_cloud, zone=path.rpartition("/")[2])
    _read_policies(contents, local_cloud)
    for region in sorted({*regions, *_regions(contents)}):
        for listing in _IN_REGIONS:
            _read(contents, listing, local_cloud, region=region)
    return contents


def _read(contents: Contents, listing: Listing, local_cloud: str | None, *, region: str = "", zone: str = "") -> None:
    asked = {"project": contents.project, "region": region, "zone": zone}
    arguments = {key: value.format(**asked) for key, value in listing.arguments.items()}
    rows = contents.bodies.setdefault(listing.type, {})
    try:
        for body in _Reader(_APIS[listing.api], contents.project, region, local_cloud).items(listing, arguments):
            path = _START.sub("", listing.path.format_map({**body, **asked}))
            path = _NUMBER.sub(f"projects/{contents.project}/", path)
            rows[path] = body
            if listing.type == register.CLUSTER:
                pools = contents.bodies.setdefault(register.NODE_POOL, {})
                pools |= {f"{path}/nodePools/{pool['name']}": pool for pool in body.get("nodePools") or ()}
    except GoogleError as error:
        _refused(contents, listing.type, error)


def _read_policies(contents: Contents, local_cloud: str | None) -> None:
    """Read who may do what in the project, and who may act as the accounts of jobs."""
    policies = contents.bodies.setdefault(POLICY, {})
    jobs = [path for path in contents.of(register.SERVICE_ACCOUNT) if _JOBS.search(path)]
    try:
        found = _Reader(_APIS["cloudresourcemanager"], contents.project, "", local_cloud).policy(contents.project)
        policies[contents.project] = found
        accounts = _Reader(_APIS["iam"], contents.project, "", local_cloud)
        policies |= {account: accounts.account_policy(account) for account in jobs}
    except GoogleError as error:
        _refused(contents, POLICY, error)


def _refused(contents: Contents, kind: str, error: GoogleError) -> None:
    if error.status == 403 and any(words in str(error) for words in _DISABLED):
        return
    if kind in NEEDED or error.status is None:
        raise error
    contents.unread[kind] = str(error)


def _items(page: Json, listing: Listing) -> Iterator[Json]:
    if listing.method.endswith(".aggregatedList"):
        for place in (page.get("items") or {}).values():
            yield from place.get(listing.items) or ()
    else:
        yield from page.get(listing.items) or ()


_START = re.compile(r"^https?://.+?/(?=projects/)")  # of a link
_NUMBER = re.compile(r"^projects/[0-9]+/")  # some APIs name a project by its number


def _regions(contents: Contents) -> set[str]:
    """Return the regions where clusters, subnets and Filestore instances stand."""
    kinds = (register.CLUSTER, register.SUBNETWORK, register.FILESTORE)
    return {region_of(path.split("/")[3]) for kind in kinds for path in contents.of(kind)}
