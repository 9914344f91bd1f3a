"""Limits as the Cloud Quotas API tells them, over REST: see docs/decisions/ for why not by Google's client library.

Needs the extra ``quota`` and application default credentials. Nothing is imported before a command asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from training_platform.config.reading.finding import UserError, install

if TYPE_CHECKING:
    from requests import Response, Session

ENDPOINT = "https://cloudquotas.googleapis.com/"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SECONDS = 60
_RETRIES = 4  # with waits of 1, 2, 4 and 8 seconds
_BUSY = (429, 500, 502, 503, 504)
_PAGE = 1000
_MOST_PAGES = 1000  # of one service: an end to a server that never stops
_WHOLE = re.compile(r"-?[0-9]{1,18}")


class Row(NamedTuple):
    """One limit; ``dimensions`` are those of the API, without a place where it holds for all places not listed."""

    dimensions: Mapping[str, str]
    limit: int


class QuotaInfo(NamedTuple):
    """One quota id of a service; ``dimensions`` are the names of all that it has, ``rows`` its limits."""

    quota_id: str
    dimensions: tuple[str, ...]
    rows: tuple[Row, ...]


class CloudQuotas:
    """The API's listings. ``session`` carries the credentials; ``endpoint`` ends in a slash."""

    def __init__(self, session: Session, endpoint: str = ENDPOINT) -> None:
        self._session = session
        self._endpoint = endpoint

    def quotas(self, project: str, service: str) -> Iterator[QuotaInfo]:
        """Yield every quota of a project's service that limits an amount, not a rate. Raises UserError."""
        path = f"v1/projects/{project}/locations/global/services/{service}/quotaInfos"
        token = ""
        for _ in range(_MOST_PAGES):
            page = self._get(path, project, token)
            for info in _list(page, "quotaInfos"):
                # A quota that is refreshed counts calls per minute or day; others count what a project has.
                if not info.get("refreshInterval") and info.get("containerType", "PROJECT") == "PROJECT":
                    yield _quota_info(info, path)
            token = str(page.get("nextPageToken") or "")
            if not token:
                return
        raise UserError(f"{self._endpoint}{path} has no last page.")

    def _get(self, path: str, project: str, token: str) -> Mapping[str, Any]:
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 # of the extra
        from requests.exceptions import RequestException  # noqa: PLC0415 # of the extra

        parameters: dict[str, str | int] = {"pageSize": _PAGE, **({"pageToken": token} if token else {})}
        try:
            answer = self._session.get(self._endpoint + path, params=parameters, timeout=_SECONDS)
        except GoogleAuthError as error:
            raise UserError(f"The credentials do not work: {_line(error)}. {LOG_IN}") from error
        except RequestException as error:
            raise UserError(f"{self._endpoint} does not answer: {_line(error)}.") from error
        if answer.status_code != 200:
            raise UserError(_refusal(answer, project))
        try:
            body = answer.json()
        except ValueError as error:
            raise UserError(f"{self._endpoint}{path} answers with something other than JSON.") from error
        if not isinstance(body, dict):
            raise UserError(f"{self._endpoint}{path} answers with something other than an object.")
        return body


LOG_IN = "Log in with: gcloud auth application-default login"


def open_session(endpoint: str = ENDPOINT) -> Session:
    """Return a session with application default credentials that repeats what a busy server refused.

    A plain ``http://`` endpoint has to be on this machine, and is shown no credentials. Raises UserError.
    """
    _check_endpoint(endpoint)
    try:
        from google.auth import default  # noqa: PLC0415 # of the extra
        from google.auth.exceptions import DefaultCredentialsError  # noqa: PLC0415
        from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415
        from requests import Session  # noqa: PLC0415
        from requests.adapters import HTTPAdapter  # noqa: PLC0415
        from urllib3.util import Retry  # noqa: PLC0415
    except ImportError as error:
        raise UserError(f"quota pull needs the extra `quota`: {install('quota')}") from error
    session: Session
    if endpoint.startswith("http://"):
        session = Session()
        session.trust_env = False  # no proxy, and no password of a .netrc
    else:
        try:
            credentials, _ = default(scopes=[_SCOPE])
        except DefaultCredentialsError as error:
            raise UserError(f"There are no application default credentials. {LOG_IN}") from error
        session = AuthorizedSession(credentials)
    retry = Retry(total=_RETRIES, backoff_factor=1, status_forcelist=_BUSY, raise_on_status=False)
    session.mount(endpoint, HTTPAdapter(max_retries=retry))
    return session


def _check_endpoint(endpoint: str) -> None:
    parts = urlsplit(endpoint)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise UserError(f"--endpoint {endpoint}: write https://HOST/, or http://127.0.0.1:PORT/ for a local server.")


def _quota_info(info: Mapping[str, Any], path: str) -> QuotaInfo:
    quota_id = info.get("quotaId")
    if not isinstance(quota_id, str) or not quota_id:
        raise UserError(f"{path} lists a quota without an id.")
    rows = []
    for each in _list(info, "dimensionsInfos"):
        value = str((each.get("details") or {}).get("value", "0"))  # the API leaves 0 out
        dimensions = each.get("dimensions") or {}
        if not _WHOLE.fullmatch(value) or int(value) < -1 or not isinstance(dimensions, dict):
            raise UserError(f"{path} says {value!r} of {quota_id}, which is not a limit.")
        rows.append(Row({str(name): str(text) for name, text in dimensions.items()}, int(value)))
    return QuotaInfo(quota_id, tuple(str(name) for name in info.get("dimensions") or ()), tuple(rows))


def _list(body: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = body.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise UserError(f"The answer's {key} are not a list of objects.")
    return value


def _refusal(answer: Response, project: str) -> str:
    """Return what an error of the API means, and what to do about it; its own words at the end."""
    said, reasons = _error(answer)
    if "SERVICE_DISABLED" in reasons:
        return (
            f"The Cloud Quotas API is not enabled for {project} or the credentials' project: "
            f"gcloud services enable cloudquotas.googleapis.com --project {project}. {said}"
        )
    if answer.status_code == 401:
        return f"The credentials are not accepted. {LOG_IN}. {said}"
    if answer.status_code == 403:
        return f"The credentials may not read the quotas of {project}; roles/cloudquotas.viewer may. {said}"
    if answer.status_code == 404:
        return f"Cloud Quotas knows no project {project}, or not this service of it. {said}"
    if answer.status_code in _BUSY:
        return f"Cloud Quotas is busy (HTTP {answer.status_code}) after {_RETRIES} repetitions; try later. {said}"
    return f"Cloud Quotas refuses the listing for {project} (HTTP {answer.status_code}). {said}"


def _error(answer: Response) -> tuple[str, set[str]]:
    try:
        error = answer.json()["error"]
        reasons = {str(each.get("reason")) for each in error.get("details", ()) if isinstance(each, dict)}
        return f"It says: {' '.join(str(error['message']).split())}", reasons
    except (ValueError, KeyError, TypeError, AttributeError):
        return "It says nothing that can be read.", set()


def _line(error: Exception) -> str:
    """Return what went wrong on one line: of what the system said, where the error comes of that, its words alone."""
    root: BaseException = error
    while root.__context__ is not None:
        root = root.__context__
    return " ".join(str(root if isinstance(root, OSError) else error).split()).rstrip(".")[:300]
