"""What stands in a project, by the lists of its APIs (extra ``jobs``): bodies by type of resource and path.

A path is that of the resource below its API's version, ``projects/P/locations/L/clusters/C``, as import ids have it; a
bucket's is its name. Nothing is written, and nothing read but what lists show.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final, NamedTuple

from training_platform.catalog.locations import region_of
from training_platform.catalog.reading import table
from training_platform.clients.google_api import GoogleApi, GoogleError, Json
from training_platform.clients.kubernetes_api import ClusterApi
from training_platform.resources import register

ENABLED_APIS: Final = "enabled APIs"
POLICY: Final = "IAM policy"
_TABLE: Json = table(__file__, "listings.yaml")
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
    """How a type is listed: the method's place in the client, its arguments, the field of the answer, and the path."""

    type: str
    api: str
    method: str
    arguments: Mapping[str, str]
    items: str
    path: str = "{name}"


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
        place: Any = self.service
        for name in collections:
            place = getattr(place, name)()
        more = {"filter": "state:ENABLED"} if listing.type == ENABLED_APIS else {}
        for page in self._pages(place, method, **arguments, **more):
            yield from _items(page, listing)

    def policy(self, project: str) -> Json:
        """Return the project's IAM policy. Raises GoogleError."""
        return self.send(self.service.projects().getIamPolicy(resource=project, body={}))

    def account_policy(self, account: str) -> Json:
        """Return the IAM policy of a service account by its full name. Raises GoogleError."""
        return self.send(self.service.projects().serviceAccounts().getIamPolicy(resource=account))


def read_contents(project: str, regions: Iterable[str] = (), local_cloud: str | None = None) -> Contents:
    """Read a project. Vertex AI and images are asked for in ``regions`` and in those where anything else stands.

    An API that is not enabled has nothing. Raises GoogleError where clusters or networks cannot be listed.
    """
    contents = Contents(project)
    for listing in _listings("project"):
        _read(contents, listing, local_cloud)
    for listing, path in product(_listings("zones"), contents.of(register.MANAGED_ZONE)):
        _read(contents, listing, local_cloud, zone=path.rpartition("/")[2])
    _read_policies(contents, local_cloud)
    for region in sorted({*regions, *_regions(contents)}):
        for listing in _listings("regions"):
            _read(contents, listing, local_cloud, region=region)
    return contents


def _api(name: str) -> _Api:
    return _Api(**_TABLE["apis"][name])


def _listings(asked_for: str) -> list[Listing]:
    """Return the lists that are asked for once in a ``project``, or once for each of its ``zones`` or ``regions``."""
    return [Listing(token, **row) for token, row in _TABLE[asked_for].items()]


def _read(contents: Contents, listing: Listing, local_cloud: str | None, *, region: str = "", zone: str = "") -> None:
    asked = {"project": contents.project, "region": region, "zone": zone}
    arguments = {key: value.format(**asked) for key, value in listing.arguments.items()}
    rows = contents.bodies.setdefault(listing.type, {})
    try:
        for body in _Reader(_api(listing.api), contents.project, region, local_cloud).items(listing, arguments):
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
        found = _Reader(_api("cloudresourcemanager"), contents.project, "", local_cloud).policy(contents.project)
        policies[contents.project] = found
        accounts = _Reader(_api("iam"), contents.project, "", local_cloud)
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
