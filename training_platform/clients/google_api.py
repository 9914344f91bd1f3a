"""A Google API by the discovery client (extra ``jobs``), which imports in a moment; failures are one sentence.

Credentials are application default credentials, as ``gcloud auth application-default login`` makes them. A local cloud
wants none. Nothing is imported before a command asks for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit
from warnings import catch_warnings, simplefilter

from training_platform.catalog.api_documents import own_document
from training_platform.config.reading.finding import UserError, install

Json = dict[str, Any]
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LOG_IN = "Log in with gcloud auth application-default login."


class GoogleError(UserError):
    """An API cannot be asked, or refuses; the message is one sentence. ``status`` is HTTP's, None without."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class GoogleApi:
    """One version of an API. ``title`` is what messages call it, ``where`` the part of it that is asked.

    ``endpoint`` is for a local cloud, or for an API whose host is called otherwise.
    """

    def __init__(self, api: str, version: str, endpoint: str | None, *, title: str, where: str) -> None:
        self._title, self._where = title, where
        self.endpoint = endpoint or f"https://{api}.googleapis.com/"
        self.service = _service(api, version, self.endpoint, title)

    def send(self, request: Any, retries: int = 2) -> Json:
        """Send a request. Raises GoogleError."""
        with _sentences(self._title, self._where), closing(self.service):
            found: Json = request.execute(num_retries=retries)
            return found

    def _pages(self, collection: Any, method: str, **arguments: Any) -> Iterator[Json]:
        """Yield the pages of a list. Raises GoogleError."""
        request = getattr(collection, method)(**arguments)
        while request is not None:
            page = self.send(request)
            yield page
            following = getattr(collection, f"{method}_next", None)
            request = following(request, page) if following else None

    def _post(self, url: str, content: bytes, kind: str) -> tuple[int, str]:
        """Post bytes, and return the status with the beginning of what is said. Raises GoogleError."""
        with _sentences(self._title, self._where), closing(self.service):
            answer, body = self.service._http.request(url, "POST", body=content, headers={"Content-Type": kind})  # noqa: SLF001 # the client's own, with credentials; it uploads to Google alone
            return int(answer.status), _words(body.decode(errors="replace"))


def _words(body: str) -> str:
    """Return the message of an error, or the beginning of an answer that is none."""
    with suppress(ValueError, KeyError, TypeError):
        body = json.loads(body)["error"]["message"]
    return " ".join(str(body).split())[:300]


def _service(api: str, version: str, endpoint: str, title: str) -> Any:
    try:
        with catch_warnings():
            simplefilter("ignore", FutureWarning)  # it announces the end of a Python years before
            import google.auth  # noqa: PLC0415 # of the extra
            from googleapiclient.discovery import build, build_from_document  # type: ignore[import-untyped] # noqa: PLC0415 # of the extra
    except ModuleNotFoundError as error:
        raise GoogleError(f"{title} needs Google's API client: {install('jobs')}.") from error
    # The client would ask the metadata server for certificates that nobody set up.
    os.environ.setdefault("GOOGLE_API_USE_CLIENT_CERTIFICATE", "false")
    if urlsplit(endpoint).hostname in _LOOPBACK:
        from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415 # of the extra

        credentials: Any = AnonymousCredentials()
    else:
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 # of the extra

        try:
            credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
        except GoogleAuthError as error:
            raise GoogleError(f"There are no credentials: {_line(error)}. {_LOG_IN}") from error
    options = {"credentials": credentials, "client_options": {"api_endpoint": endpoint}}
    if document := own_document(api, version):
        return build_from_document(document, **options)
    return build(
        api,
        version,
        static_discovery=True,
        cache_discovery=False,
        **options,
    )


@contextmanager
def _sentences(title: str, where: str) -> Iterator[None]:
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
            raise GoogleError(f"{title} does not know you: the credentials have expired. {_LOG_IN}", status) from error
        verb = "does not let you" if status == 403 else f"refuses ({status})"
        raise GoogleError(f"{title} {verb} in {where}: {' '.join(str(error.reason).split())}", status) from error
    except GoogleAuthError as error:
        raise GoogleError(f"The credentials do not work: {_line(error)}. {_LOG_IN}") from error
    except (HttpLib2Error, OSError) as error:
        raise GoogleError(f"{title} in {where} cannot be reached: {_line(error)}.") from error
    except Error as error:
        raise GoogleError(f"{title} in {where} does not answer as its document says: {_line(error)}.") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
