"""Addresses of Filestore instances (extra ``jobs``)."""

from __future__ import annotations

from training_platform.clients.google_api import GoogleApi, GoogleError


class Filestore(GoogleApi):
    """Filestore of a project; ``endpoint`` is for a local cloud."""

    def __init__(self, project: str, endpoint: str | None = None) -> None:
        self._project = project
        super().__init__("file", "v1", endpoint or "https://file.googleapis.com/", title="Filestore", where=project)

    def address(self, location: str, instance: str) -> str:
        """Return the address by which an instance is mounted. Raises GoogleError."""
        name = f"projects/{self._project}/locations/{location}/instances/{instance}"
        found = self._send(self._service.projects().locations().instances().get(name=name))
        for network in found.get("networks") or ():
            for address in network.get("ipAddresses") or ():
                return str(address)
        raise GoogleError(f"Filestore instance {instance} in {location} has no address yet; wait until it is ready.")
