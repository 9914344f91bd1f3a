"""What Cloud Logging keeps of a project: lines of containers, and events of clusters."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.clients.google_api import GoogleApi, Json

_PAGE = 1000


class CloudLogging(GoogleApi):
    """The log of a project; ``endpoint`` is for a local cloud."""

    def __init__(self, project: str, endpoint: str | None = None) -> None:
        self._project = f"projects/{project}"
        at = endpoint or "https://logging.googleapis.com"
        super().__init__("logging", "v2", at, title="Cloud Logging", where=self._project)

    def entries(self, query: str) -> Iterator[Json]:
        """Yield the entries that a filter takes, oldest first, in pages. Raises GoogleError."""
        body = {
            "resourceNames": [self._project], "filter": query, "orderBy": "timestamp asc", "pageSize": _PAGE,
        }  # fmt: skip
        entries = self._service.entries()
        while True:
            page = self._send(entries.list(body=body))
            yield from page.get("entries") or ()
            token = page.get("nextPageToken")
            if not token:
                return
            body["pageToken"] = token
