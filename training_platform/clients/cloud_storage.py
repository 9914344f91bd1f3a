"""Objects of Cloud Storage, written once (extra ``jobs``)."""

from __future__ import annotations

from urllib.parse import quote

from training_platform.clients.google_api import GoogleApi, GoogleError

_ENDPOINT = "https://storage.googleapis.com/"
_THERE = 412  # the object is there: its precondition was that it is not


class CloudStorage(GoogleApi):
    """Cloud Storage; ``endpoint`` is for a local cloud."""

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint or _ENDPOINT
        super().__init__("storage", "v1", self._endpoint, title="Cloud Storage", where="its buckets")

    def put(self, uri: str, content: bytes, kind: str = "application/gzip") -> None:
        """Write ``gs://bucket/object`` unless it is there, since its name says its content. Raises GoogleError."""
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        url = f"{self._endpoint}upload/storage/v1/b/{bucket}/o?uploadType=media&ifGenerationMatch=0&name={quote(name)}"
        status, said = self._post(url, content, kind)
        if status not in (200, _THERE):
            raise GoogleError(f"Cloud Storage does not take {uri} ({status}): {said}", status)
