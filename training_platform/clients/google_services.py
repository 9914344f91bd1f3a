"""The Google services that commands for jobs use. ``endpoint`` is the address of a local cloud, if one is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from training_platform.catalog.types import Json
from training_platform.clients.google_api import GoogleApi, GoogleError
from training_platform.resources import storage
from training_platform.resources.gke import cluster_identifier

CUSTOM_JOBS: Final = "customJobs"
TUNING_JOBS: Final = "hyperparameterTuningJobs"
PIPELINES: Final = "trainingPipelines"
COLLECTIONS: Final = (CUSTOM_JOBS, TUNING_JOBS, PIPELINES)
_PAGE = 100  # jobs
_LOG_PAGE = 1000  # entries
_EXISTS = 412  # the precondition that the object does not exist failed


class VertexJobs(GoogleApi):
    """The training jobs of a project in a region: custom jobs, hyperparameter tuning jobs, training pipelines."""

    def __init__(self, project: str, region: str, endpoint: str | None = None) -> None:
        self.parent = f"projects/{project}/locations/{region}"
        endpoint = endpoint or f"https://{region}-aiplatform.googleapis.com"
        super().__init__("aiplatform", "v1", endpoint, title="Vertex AI", where=self.parent)

    def create(self, body: Mapping[str, Any], collection: str = CUSTOM_JOBS) -> Json:
        """Create a job. Raises GoogleError."""
        return self.call("POST", f"{self.parent}/{collection}", dict(body))

    def get(self, name: str) -> Json:
        """Return a job, given its full name: ``projects/P/locations/L/customJobs/N``. Raises GoogleError."""
        return self.call("GET", name)

    def jobs(self, query: str) -> Iterator[Json]:
        """Yield the jobs of all kinds that match a filter, page by page. Raises GoogleError."""
        for collection in COLLECTIONS:
            for page in self.pages(f"{self.parent}/{collection}", filter=query, pageSize=_PAGE):
                yield from page.get(collection) or ()

    def cancel(self, name: str) -> None:
        """Request that a job stop, which may take a while. Raises GoogleError."""
        self.call("POST", f"{name}:cancel", {})

    def tensorboard(self, title: str) -> str:
        """Return the full name of the TensorBoard that has this display name. Raises GoogleError."""
        listed = self.call("GET", f"{self.parent}/tensorboards", filter=f'displayName="{title}"')
        for board in listed.get("tensorboards") or ():
            if board.get("displayName") == title:
                return str(board["name"])
        raise GoogleError(f"There is no TensorBoard {title} in {self.parent}: deploy the team's stack first.")


class PersistentResources(GoogleApi):
    """The persistent resources of a project in a region."""

    def __init__(self, project: str, region: str, endpoint: str | None = None) -> None:
        parent = f"projects/{project}/locations/{region}"
        self._path = f"{parent}/persistentResources"
        endpoint = endpoint or f"https://{region}-aiplatform.googleapis.com"
        super().__init__("aiplatform", "v1", endpoint, title="Vertex AI", where=parent)

    def get(self, resource_id: str) -> Json:
        """Return a persistent resource, given its id. Raises GoogleError."""
        return self.call("GET", f"{self._path}/{resource_id}")

    def reboot(self, resource_id: str) -> str:
        """Request a restart of the resource's VMs, and return the operation's name. Raises GoogleError."""
        return str(self.call("POST", f"{self._path}/{resource_id}:reboot", {})["name"])


class CloudLogging(GoogleApi):
    """The log of a project, or one of its log views. It contains the output of containers and events of clusters."""

    def __init__(self, source: str, endpoint: str | None = None) -> None:
        """Set the log to read: ``projects/{project}``, or a log view given by its full name."""
        self._source = source
        super().__init__("logging", "v2", endpoint, title="Cloud Logging", where=source, read_only=True)

    def entries(self, query: str) -> Iterator[Json]:
        """Yield the entries that match a filter, oldest first, page by page. Raises GoogleError."""
        body = {
            "resourceNames": [self._source], "filter": query, "orderBy": "timestamp asc", "pageSize": _LOG_PAGE,
        }  # fmt: skip
        for page in self.pages("entries:list", body):
            yield from page.get("entries") or ()

    def last(self, query: str, count: int) -> list[Json]:
        """Return the last ``count`` entries that match a filter, oldest first. Raises GoogleError."""
        body = {
            "resourceNames": [self._source], "filter": query, "orderBy": "timestamp desc", "pageSize": count,
        }  # fmt: skip
        return list(reversed(self.call("POST", "entries:list", body).get("entries") or ()))


def prometheus(project: str, expr: str, time: datetime, endpoint: str | None = None) -> list[Json]:
    """Return the result of a PromQL query at a certain time, from managed Prometheus. Raises GoogleError."""
    api = GoogleApi("monitoring", "v1", endpoint, title="Cloud Monitoring", where=f"project {project}", read_only=True)
    path = f"projects/{project}/location/global/prometheus/api/v1/query"
    answer = api.call("POST", path, {"query": expr, "time": time.isoformat()})
    result = (answer.get("data") or {}).get("result")
    if answer.get("status") != "success" or not isinstance(result, list):
        raise GoogleError(f"Cloud Monitoring in project {project} cannot answer a query: {answer.get('error')}.")
    return [dict(row) for row in result]


class CloudStorage(GoogleApi):
    """Objects of Cloud Storage. An object is never overwritten."""

    def __init__(self, endpoint: str | None = None) -> None:
        super().__init__("storage", "upload/storage/v1", endpoint, title="Cloud Storage", where="its buckets")

    def put(self, uri: str, content: bytes, kind: str = "application/gzip") -> None:
        """Write ``gs://bucket/object`` unless it exists. Raises GoogleError.

        The name must be derived from the content, so that an existing object has the same content.
        """
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        try:
            self.upload(f"b/{bucket}/o", content, kind, uploadType="media", ifGenerationMatch=0, name=name)
        except GoogleError as error:
            if error.status is None:
                raise
            if error.status != _EXISTS:
                message = f"Cloud Storage rejects {uri} ({error.status}): {error.reason}"
                raise GoogleError(message, error.status) from error


def node_pools(project: str, location: str, cluster: str, endpoint: str | None = None) -> dict[str, Json]:
    """Return all node pools of a cluster, keyed by name. Raises GoogleError."""
    parent = cluster_identifier(project, location, cluster)
    listed = GoogleApi("container", "v1", endpoint, title="GKE", where=parent).call("GET", f"{parent}/nodePools")
    return {str(pool["name"]): pool for pool in listed.get("nodePools") or ()}


def filestore_address(project: str, location: str, instance: str, endpoint: str | None = None) -> str:
    """Return the mount address of a Filestore instance. Raises GoogleError."""
    api = GoogleApi("file", "v1", endpoint, title="Filestore", where=project)
    body = api.call("GET", f"projects/{project}/locations/{location}/instances/{instance}")
    for network in body.get("networks") or ():
        for address in network.get("ipAddresses") or ():
            return str(address)
    raise GoogleError(f"Filestore instance {instance} in {location} has no address yet; wait until it is ready.")


def lustre_address(project: str, location: str, instance: str, endpoint: str | None = None) -> str:
    """Return the mount address of a Managed Lustre instance. Raises GoogleError."""
    api = GoogleApi("lustre", "v1", endpoint, title="Managed Lustre", where=project)
    body = api.call("GET", f"projects/{project}/locations/{location}/instances/{instance}")
    if not body.get("mountPoint"):
        raise GoogleError(f"Managed Lustre instance {instance} in {location} has no address yet; wait for it.")
    return storage.lustre_address(body["mountPoint"])
