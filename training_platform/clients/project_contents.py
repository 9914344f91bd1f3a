"""Reads the resources of a project from the lists of its APIs (extra ``adopt``): bodies keyed by type and path.

The path of a resource is relative to its API's version, as in import ids: ``projects/P/locations/L/clusters/C``. The
path of a bucket is its name. Only lists are read, and nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, NamedTuple

from training_platform.catalog.locations import MULTI_REGIONS, region_of
from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.clients.google_api import GoogleApi, GoogleError, local_endpoint
from training_platform.clients.kubernetes_api import ClusterApi
from training_platform.resources import resource_types

ENABLED_APIS: Final = "enabled APIs"
POLICY: Final = "IAM policy"
_TABLE: Json = table(__file__, "listings.yaml")
_START = re.compile(r"^https?://.+?/(?=projects/)")  # of a link
_NUMBER = re.compile(r"^projects/[0-9]+/")  # some APIs name a project by its number
_DISABLED = ("is disabled", "has not been used")  # Google's wording, beside 403
_JOBS = re.compile(r"-(jobs|[0-9a-f]{6})@")  # the end of the ids of teams' job accounts; shortened ids end in a hash


class Listing(NamedTuple):
    """How to list a type: its API, the list's path after the version, the response's field, and a resource's path."""

    type: str
    api: str
    list: str
    items: str
    path: str = "{name}"


_ENABLED = Listing(ENABLED_APIS, **_TABLE["enabled"])
NEEDED: Final = frozenset({resource_types.CLUSTER, resource_types.NETWORK})
"""The types whose lists have to be readable."""


@dataclass(frozen=True)
class Contents:
    """Bodies keyed by type and path. ``unread`` gives the reason for each list that cannot be read, keyed by type.

    ``clusters`` contains the clusters whose API can be reached, keyed by path.
    """

    project: str
    bodies: dict[str, dict[str, Json]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    clusters: Mapping[str, ClusterApi] = field(default_factory=dict)

    def of(self, kind: str) -> Mapping[str, Json]:
        """Return the bodies of a type, keyed by path."""
        return self.bodies.get(kind, {})

    def without(self, leave: Callable[[str], bool]) -> Contents:
        """Return the contents without those paths for which ``leave`` returns True."""
        kept = {kind: {p: b for p, b in rows.items() if not leave(p)} for kind, rows in self.bodies.items()}
        return replace(self, bodies=kept)


def read_contents(project: str, regions: Iterable[str] = (), local_cloud: str | None = None) -> Contents:
    """Read a project. Vertex AI and images are read in ``regions`` and in the regions of all other resources.

    An API that is not enabled has no resources. Raises GoogleError if clusters or networks cannot be listed.
    """
    contents = Contents(project)
    for listing in (*_listings("project"), _ENABLED):
        _read(contents, listing, local_cloud)
    for listing, path in product(_listings("zone"), contents.of(resource_types.MANAGED_ZONE)):
        _read(contents, listing, local_cloud, zone=path.rpartition("/")[2])
    _read_policies(contents, local_cloud)
    located = (
        path
        for kind in (resource_types.CLUSTER, resource_types.SUBNETWORK, resource_types.FILESTORE)
        for path in contents.of(kind)
    )
    used_regions = {*regions, *(region_of(path.split("/")[3]) for path in located)}
    for region, listing in product(sorted(used_regions), _listings("region")):
        _read(contents, listing, local_cloud, region=region)
    for location, listing in product(sorted(used_regions | MULTI_REGIONS.keys()), _listings("location")):
        _read(contents, listing, local_cloud, region=location)
    return contents


def project_api(
    name: str,
    project: str,
    region: str,
    local_cloud: str | None,
    *,
    read_only: bool = True,
    account: str | None = None,
) -> GoogleApi:
    """Return one API of a project. A local cloud has one host for all APIs; Google has a host for each API."""
    row = _TABLE["apis"][name]
    service = row.get("name", name)
    version = row["version"]
    endpoint = local_endpoint(local_cloud, service)
    if endpoint:
        version = version.removeprefix(f"{service}/")
    else:
        endpoint = f"https://{row.get('host', f'{service}.googleapis.com').format(region=region)}/"
    where = f"projects/{project}" + (f"/locations/{region}" if region else "")
    return GoogleApi(service, version, endpoint, title=row["title"], where=where, read_only=read_only, account=account)


def _listings(per: str) -> list[Listing]:
    """Return the lists to read once for each ``project``, ``zone``, ``region`` or ``location``."""
    rows = resource_types.RESOURCE_TYPES.items()
    return [Listing(token, **row.listed) for token, row in rows if row.listed and row.listed_per == per]


def _read(contents: Contents, listing: Listing, local_cloud: str | None, *, region: str = "", zone: str = "") -> None:
    scope = {"project": contents.project, "region": region, "zone": zone}
    rows = contents.bodies.setdefault(listing.type, {})
    try:
        api = project_api(listing.api, contents.project, region, local_cloud)
        pages = api.pages(listing.list.format(**scope))
        if listing.list.startswith("projects/{project}/aggregated/"):
            pages = (place for page in pages for place in (page.get("items") or {}).values())
        for body in (body for page in pages for body in page.get(listing.items) or ()):
            path = _START.sub("", listing.path.format_map({**body, **scope}))
            path = _NUMBER.sub(f"projects/{contents.project}/", path)
            rows[path] = body
            if listing.type == resource_types.CLUSTER:
                pools = contents.bodies.setdefault(resource_types.NODE_POOL, {})
                pools |= {f"{path}/nodePools/{pool['name']}": pool for pool in body.get("nodePools") or ()}
    except GoogleError as error:
        _refused(contents, listing.type, error)


def _read_policies(contents: Contents, local_cloud: str | None) -> None:
    """Read the IAM grants on the project and on the service accounts of jobs."""
    policies = contents.bodies.setdefault(POLICY, {})
    jobs = [path for path in contents.of(resource_types.SERVICE_ACCOUNT) if _JOBS.search(path)]
    try:
        projects = project_api("cloudresourcemanager", contents.project, "", local_cloud)
        policies[contents.project] = projects.call("POST", f"projects/{contents.project}:getIamPolicy", {})
        accounts = project_api("iam", contents.project, "", local_cloud)
        policies |= {account: accounts.call("POST", f"{account}:getIamPolicy", {}) for account in jobs}
    except GoogleError as error:
        _refused(contents, POLICY, error)


def _refused(contents: Contents, kind: str, error: GoogleError) -> None:
    if error.status == 403 and any(words in str(error) for words in _DISABLED):
        return
    if kind in NEEDED or error.status is None:
        raise error
    contents.unread[kind] = str(error)
