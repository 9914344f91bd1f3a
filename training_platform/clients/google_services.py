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
        at = endpoint or "https://logging.googleapis.com"
        super().__init__("logging", "v2", at, title="Cloud Logging", where=self._project)

    def entries(self, query: str) -> Iterator[Json]:
        """Yield the entries that a filter takes, oldest first, in pages. Raises GoogleError."""
        body = {
            "resourceNames": [self._project], "filter": query, "orderBy": "timestamp asc", "pageSize": _PAGE,
        }  # fmt: skip
        for page in self._pages(self._service.entries(), "list", body=body):
            yield from page.get("entries") or ()


class CloudStorage(GoogleApi):
    """Objects of Cloud Storage, written once."""

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint or "https://storage.googleapis.com/"
        super().__init__("storage", "v1", self._endpoint, title="Cloud Storage", where="its buckets")

    def put(self, uri: str, content: bytes, kind: str = "application/gzip") -> None:
        """Write ``gs://bucket/object`` unless it is there, since its name says its content. Raises GoogleError."""
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        url = f"{self._endpoint}upload/storage/v1/b/{bucket}/o?uploadType=media&ifGenerationMatch=0&name={quote(name)}"
        status, said = self._post(url, content, kind)
        if status not in (200, _THERE):
            raise GoogleError(f"Cloud Storage does not take {uri} ({status}): {said}", status)


class NodePools(GoogleApi):
    """The node pools of one cluster, as GKE has them."""

    def __init__(self, project: str, location: str, cluster: str, endpoint: str | None = None) -> None:
        self._cluster = cluster_identifier(project, location, cluster)
        at = endpoint or "https://container.googleapis.com"
        super().__init__("container", "v1", at, title="GKE", where=self._cluster)

    def states(self) -> dict[str, Json]:
        """Return every node pool by its name. Raises GoogleError."""
        pools = self._service.projects().locations().clusters().nodePools()
        return {str(pool["name"]): pool for pool in self._send(pools.list(parent=self._cluster)).get("nodePools") or ()}


class _FileSystems(GoogleApi):
    """Instances of a project that are mounted by an address; ``api`` is also the name of the host."""

    def __init__(self, api: str, title: str, project: str, endpoint: str | None) -> None:
        self._project = project
        super().__init__(api, "v1", endpoint or f"https://{api}.googleapis.com/", title=title, where=project)

    def _instance(self, location: str, instance: str) -> Json:
        name = f"projects/{self._project}/locations/{location}/instances/{instance}"
        return self._send(self._service.projects().locations().instances().get(name=name))


class Filestore(_FileSystems):
    """Filestore of a project."""

    def __init__(self, project: str, endpoint: str | None = None) -> None:
        super().__init__("file", "Filestore", project, endpoint)

    def address(self, location: str, instance: str) -> str:
        """Return the address by which an instance is mounted. Raises GoogleError."""
        for network in self._instance(location, instance).get("networks") or ():
            for address in network.get("ipAddresses") or ():
                return str(address)
        raise GoogleError(f"Filestore instance {instance} in {location} has no address yet; wait until it is ready.")


class Lustre(_FileSystems):
    """Managed Lustre of a project."""

    def __init__(self, project: str, endpoint: str | None = None) -> None:
        super().__init__("lustre", "Managed Lustre", project, endpoint)

    def address(self, location: str, instance: str) -> str:
        """Return the address by which an instance is mounted. Raises GoogleError."""
        found = self._instance(location, instance)
        if not found.get("mountPoint"):
            raise GoogleError(f"Managed Lustre instance {instance} in {location} has no address yet; wait for it.")
        return lustre.address(found["mountPoint"])
