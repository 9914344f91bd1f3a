"""Node pools of GKE clusters, as GKE has them (extra ``jobs``)."""

from __future__ import annotations

from training_platform.clients.google_api import GoogleApi, Json
from training_platform.resources.gke.control_plane import cluster_identifier


class NodePools(GoogleApi):
    """The node pools of one cluster; ``endpoint`` is for a local cloud."""

    def __init__(self, project: str, location: str, cluster: str, endpoint: str | None = None) -> None:
        self._cluster = cluster_identifier(project, location, cluster)
        at = endpoint or "https://container.googleapis.com"
        super().__init__("container", "v1", at, title="GKE", where=self._cluster)

    def states(self) -> dict[str, Json]:
        """Return every node pool by its name. Raises GoogleError."""
        pools = self._service.projects().locations().clusters().nodePools()
        return {str(pool["name"]): pool for pool in self._send(pools.list(parent=self._cluster)).get("nodePools") or ()}
