"""Addresses of Managed Lustre instances (extra ``jobs``)."""

from __future__ import annotations

from training_platform.clients.google_api import GoogleApi, GoogleError
from training_platform.resources.storage.lustre import address


class Lustre(GoogleApi):
    """Managed Lustre of a project; ``endpoint`` is for a local cloud."""

    def __init__(self, project: str, endpoint: str | None = None) -> None:
        self._project = project
        url = endpoint or "https://lustre.googleapis.com/"
        super().__init__("lustre", "v1", url, title="Managed Lustre", where=project)

    def address(self, location: str, instance: str) -> str:
        """Return the address by which an instance is mounted. Raises GoogleError."""
        name = f"projects/{self._project}/locations/{location}/instances/{instance}"
        found = self._send(self._service.projects().locations().instances().get(name=name))
        if not found.get("mountPoint"):
            raise GoogleError(f"Managed Lustre instance {instance} in {location} has no address yet; wait for it.")
        return address(found["mountPoint"])
