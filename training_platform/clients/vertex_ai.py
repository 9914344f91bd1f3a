"""Custom jobs of Vertex AI in one region, by the discovery client (extra ``jobs``), which imports in a moment.

Credentials are application default credentials, as ``gcloud auth application-default login`` makes them. Nothing is
imported before a command asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]
INSTALL = "pip install 'training-platform[jobs]', or with the checkout's own pins: make setup"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LOG_IN = "Log in with gcloud auth application-default login."
_PAGE = 100


class VertexError(Exception):
    """Vertex AI cannot be asked, or refuses; the message is one sentence. ``status`` is HTTP's, None without."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class VertexJobs:
    """The custom jobs of a project in a region; ``endpoint`` is for a local cloud, which wants no credentials."""

    def __init__(self, project: str, region: str, endpoint: str | None = None) -> None:
        self.parent = f"projects/{project}/locations/{region}"
        self._service = _service(endpoint or f"https://{region}-aiplatform.googleapis.com")
        self._jobs = self._service.projects().locations().customJobs()

    def create(self, body: Mapping[str, Any], collection: str = "customJobs") -> Json:
        """Create a job, tuning job or pipeline, never tried twice: the answer that is lost may be of one that is there.

        Raises VertexError.
        """
        jobs = getattr(self._service.projects().locations(), collection)()
        return self._send(jobs.create(parent=self.parent, body=dict(body)), retries=0)

    def get(self, name: str) -> Json:
        """Return a job by its full name. Raises VertexError."""
        return self._send(self._jobs.get(name=name))

    def jobs(self, query: str) -> Iterator[Json]:
        """Yield the jobs that a filter takes, in pages. Raises VertexError."""
        request = self._jobs.list(parent=self.parent, filter=query, pageSize=_PAGE)
        while request is not None:
            page = self._send(request)
            yield from page.get("customJobs") or ()
            request = self._jobs.list_next(request, page)

    def cancel(self, name: str) -> None:
        """Ask a job to stop; it does so when it can. Raises VertexError."""
        self._send(self._jobs.cancel(name=name, body={}))

    def _send(self, request: Any, retries: int = 2) -> Json:
        with _sentences(self.parent), closing(self._service):
            found: Json = request.execute(num_retries=retries)
            return found


def _service(endpoint: str) -> Any:
    try:
        import google.auth  # noqa: PLC0415 # of the extra
        from googleapiclient.discovery import build  # type: ignore[import-untyped] # noqa: PLC0415 # of the extra
    except ModuleNotFoundError as error:
        raise VertexError(f"Jobs on Vertex AI need Google's API client: {INSTALL}.") from error
    # The client would ask the metadata server for certificates that nobody set up.
    os.environ.setdefault("GOOGLE_API_USE_CLIENT_CERTIFICATE", "false")
    options = {"api_endpoint": endpoint}
    if urlsplit(endpoint).hostname in _LOOPBACK:
        from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415 # of the extra

        credentials: Any = AnonymousCredentials()
    else:
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 # of the extra

        try:
            credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
        except GoogleAuthError as error:
            raise VertexError(f"There are no credentials: {_line(error)}. {_LOG_IN}") from error
    return build(
        "aiplatform",
        "v1",
        credentials=credentials,
        client_options=options,
        static_discovery=True,
        cache_discovery=False,
    )


@contextmanager
def _sentences(parent: str) -> Iterator[None]:
    """Turn what the client raises into one sentence."""
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 # of the extra
    from googleapiclient.errors import (  # type: ignore[import-untyped] # noqa: PLC0415 # of the extra
        Error,
        HttpError,
    )
    from httplib2 import HttpLib2Error  # type: ignore[import-untyped] # noqa: PLC0415 # of the extra

    try:
        yield
    except HttpError as error:
        status = int(error.resp.status)
        if status == 401:
            raise VertexError(
                f"Vertex AI does not know you: the credentials have expired. {_LOG_IN}", status
            ) from error
        verb = "does not let you" if status == 403 else f"refuses ({status})"
        raise VertexError(f"Vertex AI {verb} in {parent}: {' '.join(str(error.reason).split())}", status) from error
    except GoogleAuthError as error:
        raise VertexError(f"The credentials do not work: {_line(error)}. {_LOG_IN}") from error
    except (HttpLib2Error, OSError) as error:
        raise VertexError(f"Vertex AI in {parent} cannot be reached: {_line(error)}.") from error
    except Error as error:
        raise VertexError(f"Vertex AI in {parent} does not answer as its document says: {_line(error)}.") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
