"""Vertex AI in one region: custom jobs, hyperparameter tuning jobs, training pipelines, persistent resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from training_platform.clients.google_api import GoogleApi, GoogleError, Json

CUSTOM_JOBS: Final = "customJobs"
TUNING_JOBS: Final = "hyperparameterTuningJobs"
PIPELINES: Final = "trainingPipelines"
COLLECTIONS: Final = (CUSTOM_JOBS, TUNING_JOBS, PIPELINES)
_PAGE = 100


class _VertexAi(GoogleApi):
    """Vertex AI of a project in a region; ``endpoint`` is for a local cloud."""

    def __init__(self, project: str, region: str, endpoint: str | None = None) -> None:
        self.parent = f"projects/{project}/locations/{region}"
        at = endpoint or f"https://{region}-aiplatform.googleapis.com"
        super().__init__("aiplatform", "v1", at, title="Vertex AI", where=self.parent)


class VertexJobs(_VertexAi):
    """The training jobs of a project in a region."""

    def create(self, body: Mapping[str, Any], collection: str = CUSTOM_JOBS) -> Json:
        """Create a job; never tried twice, since an answer that is lost may be of a job that is there. GoogleError."""
        return self.send(self._jobs(collection).create(parent=self.parent, body=dict(body)), retries=0)

    def get(self, name: str) -> Json:
        """Return a job by its full name. Raises GoogleError."""
        return self.send(self._jobs(_collection(name)).get(name=name))

    def jobs(self, query: str) -> Iterator[Json]:
        """Yield the jobs that a filter takes, of every kind, in pages. Raises GoogleError."""
        for collection in COLLECTIONS:
            jobs = self._jobs(collection)
            for page in self._pages(jobs, "list", parent=self.parent, filter=query, pageSize=_PAGE):
                yield from page.get(collection) or ()

    def cancel(self, name: str) -> None:
        """Ask a job to stop; it does so when it can. Raises GoogleError."""
        self.send(self._jobs(_collection(name)).cancel(name=name, body={}))

    def tensorboard(self, title: str) -> str:
        """Return the full name of the TensorBoard that has a display name. Raises GoogleError."""
        boards = self.service.projects().locations().tensorboards()
        found = self.send(boards.list(parent=self.parent, filter=f'displayName="{title}"'))
        for board in found.get("tensorboards") or ():
            if board.get("displayName") == title:
                return str(board["name"])
        raise GoogleError(f"There is no TensorBoard {title} in {self.parent}: deploy the team's stack first.")

    def _jobs(self, collection: str) -> Any:
        return getattr(self.service.projects().locations(), collection)()


class PersistentResources(_VertexAi):
    """The persistent resources of a project in a region."""

    def get(self, resource_id: str) -> Json:
        """Return a resource by its id. Raises GoogleError."""
        return self.send(self._resources().get(name=f"{self.parent}/persistentResources/{resource_id}"))

    def reboot(self, resource_id: str) -> str:
        """Ask for a restart of its VMs, and return the operation's name. Raises GoogleError."""
        name = f"{self.parent}/persistentResources/{resource_id}"
        return str(self.send(self._resources().reboot(name=name, body={}), retries=0)["name"])

    def _resources(self) -> Any:
        return self.service.projects().locations().persistentResources()


def _collection(name: str) -> str:
    """Return the kind of a job by its name, ``projects/P/locations/L/customJobs/N``."""
    return name.split("/")[-2]
