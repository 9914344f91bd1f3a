"""Services of Google Cloud of which jobs ask one thing each (extra ``jobs``); ``endpoint`` is for a local cloud."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from training_platform.clients.google_api import GoogleApi, GoogleError, Json
from training_platform.resources.gke.control_plane import cluster_identifier
from training_platform.resources.storage import lustre

_PAGE = 1000  # entries of a log
_THERE = 412  # the object is there: its precondition was that it is not


class CloudLogging(GoogleApi):
    """The log of a project: lines of containers, and events of clusters."""

    def __init__(self, project: str, endpoint: str | None = None) -> None:
        self._project = f"projects/{project}"
        super().__init__("logging", "v2", endpoint, title="Cloud Logging", where=self._project)

    def entries(self, query: str) -> Iterator[Json]:
        """Yield the entries that a filter takes, oldest first, in pages. Raises GoogleError."""
        body = {
            "resourceNames": [self._project], "filter": query, "orderBy": "timestamp asc", "pageSize": _PAGE,
        }  # fmt: skip
        for page in self._pages(self.service.entries(), "list", body=body):
            yield from page.get("entries") or ()


class CloudStorage(GoogleApi):
    """Objects of Cloud Storage, written once."""

    def __init__(self, endpoint: str | None = None) -> None:
        super().__init__("storage", "v1", endpoint, title="Cloud Storage", where="its buckets")

    def put(self, uri: str, content: bytes, kind: str = "application/gzip") -> None:
        """Write ``gs://bucket/object`` unless it is there, since its name says its content. Raises GoogleError."""
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        url = f"{self.endpoint}upload/storage/v1/b/{bucket}/o?uploadType=media&ifGenerationMatch=0&name={quote(name)}"
        status, said = self._post(url, content, kind)
        if status not in (200, _THERE):
            raise GoogleError(f"Cloud Storage does not take {uri} ({status}): {said}", status)


def node_pools(project: str, location: str, cluster: str, endpoint: str | None = None) -> dict[str, Json]:
    """Return every node pool of a cluster by its name, as GKE has it. Raises GoogleError."""
    parent = cluster_identifier(project, location, cluster)
    api = GoogleApi("container", "v1", endpoint, title="GKE", where=parent)
    found = api.send(api.service.projects().locations().clusters().nodePools().list(parent=parent))
    return {str(pool["name"]): pool for pool in found.get("nodePools") or ()}


def filestore_address(project: str, location: str, instance: str, endpoint: str | None = None) -> str:
    """Return the address by which an instance of Filestore is mounted. Raises GoogleError."""
    found = _instance(GoogleApi("file", "v1", endpoint, title="Filestore", where=project), project, location, instance)
    for network in found.get("networks") or ():
        for address in network.get("ipAddresses") or ():
            return str(address)
    raise GoogleError(f"Filestore instance {instance} in {location} has no address yet; wait until it is ready.")


def lustre_address(project: str, location: str, instance: str, endpoint: str | None = None) -> str:
    """Return the address by which an instance of Managed Lustre is mounted. Raises GoogleError."""
    api = GoogleApi("lustre", "v1", endpoint, title="Managed Lustre", where=project)
    found = _instance(api, project, location, instance)
    if not found.get("mountPoint"):
        raise GoogleError(f"Managed Lustre instance {instance} in {location} has no address yet; wait for it.")
    return lustre.address(found["mountPoint"])


def _instance(api: GoogleApi, project: str, location: str, instance: str) -> Json:
    name = f"projects/{project}/locations/{location}/instances/{instance}"
    return api.send(api.service.projects().locations().instances().get(name=name))
