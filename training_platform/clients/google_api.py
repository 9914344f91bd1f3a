"""A client of Google's REST APIs, based on google-auth's session. Error messages are one sentence.

It uses application default credentials, as created by ``gcloud auth application-default login``. A local cloud gets no
credentials. Instead, ``GOOGLE_OAUTH_ACCESS_TOKEN=as:user:ada@example.com`` names the member as whom to act, and
``GOOGLE_CLOUD_QUOTA_PROJECT`` names the quota project. The gcp provider reads the same variables. Dependencies are
imported only when a command needs them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from warnings import catch_warnings, simplefilter

from training_platform.catalog.types import Json
from training_platform.clients.failures import ApiError, cause
from training_platform.config.reading.finding import UserError, install

if TYPE_CHECKING:
    from requests import Response, Session

LOG_IN: Final = "Log in with gcloud auth application-default login."
RETRIES: Final = 4  # with waits of 0, 2, 4 and 8 seconds
BUSY: Final = (429, 500, 502, 503, 504)
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_SECONDS = 60


def checked_endpoint(endpoint: str | None) -> str | None:
    """Return an endpoint that is encrypted or on this machine. The latter gets no credentials. Raises UserError."""
    parts = urlsplit(endpoint or "https://googleapis.com/")
    if (parts.scheme == "http" and parts.hostname in LOOPBACK) or (parts.scheme == "https" and parts.hostname):
        return endpoint
    raise UserError(f"--endpoint {endpoint}: write https://HOST/, or http://127.0.0.1:PORT/ for a local server.")


_LOCAL_CLOUD = re.compile(r"http://[^/]+/[a-z]+/v")  # a version of an API at an address of local_endpoint


def local_endpoint(local_cloud: str | None, service: str) -> str | None:
    """Return the address of a service in a local cloud, or None without a local cloud, to use Google's own address."""
    return f"{local_cloud.rstrip('/')}/{service}/" if local_cloud else None


class GoogleError(ApiError):
    """Raised if a Google API cannot be reached or refuses a request."""


class NoCredentialsError(GoogleError):
    """Raised if there are no application default credentials."""


class GoogleApi:
    """Calls to one version of an API. Error messages contain its title, and the project or location (``where``).

    ``endpoint`` is for a local cloud, or for an API with another host. ``extra`` is the extra that installs
    google-auth. Requests to a busy server are repeated, but a POST only if all calls are ``read_only``: the first
    request may have created a job although its response was lost. ``account`` is a service account to impersonate.
    """

    def __init__(
        self,
        api: str,
        version: str,
        endpoint: str | None,
        *,
        title: str,
        where: str,
        read_only: bool = False,
        extra: str = "jobs",
        account: str | None = None,
    ) -> None:
        self._api = api
        self._title = title
        self._where = where
        endpoint = endpoint or f"https://{api}.googleapis.com/"
        self._base = f"{endpoint.rstrip('/')}/{version}/"
        self._session = _session(endpoint, title, extra, read_only=read_only, account=account)

    def call(self, method: str, path: str, body: Json | None = None, **query: str | int) -> Json:
        """Send a request and return the response. ``path`` is relative to the API's version. Raises GoogleError."""
        response = self._send(method, path, params=query, json=body)
        answer: Any = None
        with suppress(ValueError):  # a body that is not JSON
            answer = response.json()
        if not isinstance(answer, dict):
            raise GoogleError(f"{self._title} in {self._where} answers with something other than a JSON object.")
        return answer

    def pages(self, path: str, body: Json | None = None, **query: str | int) -> Iterator[Json]:
        """Yield the pages of a list. The method is POST if there is a body, otherwise GET. Raises GoogleError."""
        method = "GET" if body is None else "POST"
        while True:
            page = self.call(method, path, body, **query)
            yield page
            token = str(page.get("nextPageToken") or "")
            if not token:
                return
            if body is None:
                query["pageToken"] = token
            else:
                body = {**body, "pageToken": token}

    def upload(self, path: str, content: bytes, kind: str, **query: str | int) -> None:
        """Send bytes of a media type by POST. Raises GoogleError."""
        self._send("POST", path, params=query, data=content, headers={"Content-Type": kind})

    def _send(self, method: str, path: str, **options: Any) -> Response:
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 # the extra brings it
        from requests.exceptions import RequestException  # noqa: PLC0415 # the extra brings it

        try:
            answer = self._session.request(method, self._base + path, timeout=_SECONDS, **options)
        except GoogleAuthError as error:
            raise GoogleError(f"The credentials do not work: {cause(error)}. {LOG_IN}") from error
        except RequestException as error:
            sentence = f"{self._title} in {self._where} cannot be reached: {cause(error)}."
            if _LOCAL_CLOUD.match(self._base):
                sentence += " No local cloud is running: training-platform sandbox up starts one."
            raise GoogleError(sentence) from error
        if answer.status_code >= 400:
            raise self.refusal(answer)
        return answer

    def refusal(self, answer: Response) -> GoogleError:
        """Return the error for a refused request, with advice on how to fix it."""
        status = answer.status_code
        reason = answer.text
        with suppress(ValueError, KeyError, TypeError):
            reason = str(answer.json()["error"]["message"])
        reason = " ".join(reason.split())[:300]
        if any(detail.get("reason") == "SERVICE_DISABLED" for detail in _details(answer)):
            enable = f"gcloud services enable {self._api}.googleapis.com"
            if _LOCAL_CLOUD.match(self._base):
                enable = "deploy the team's stack there first with training-platform sandbox up STACK"
            message = f"{self._title} is not enabled for the credentials' project: {enable}. Its error: {reason}"
        elif status == 401:
            message = f"{self._title} rejected your credentials; they may have expired. {LOG_IN}"
        else:
            verb = "denies access" if status == 403 else f"rejects the request ({status})"
            message = f"{self._title} {verb} in {self._where}: {reason}"
        return GoogleError(message, status, reason)


def local_identity() -> dict[str, str]:
    """Return the headers that name the caller to a local cloud, or none if the environment names no member."""
    token = os.environ.get("GOOGLE_OAUTH_ACCESS_TOKEN", "")
    if not token.startswith("as:"):  # a real token is only for Google
        return {}
    headers = {"Authorization": f"Bearer {token}"}
    if quota_project := os.environ.get("GOOGLE_CLOUD_QUOTA_PROJECT"):
        headers["X-Goog-User-Project"] = quota_project
    return headers


def _details(answer: Response) -> list[Json]:
    """Return the details in an error response, as far as they can be read."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        return [detail for detail in answer.json()["error"].get("details", ()) if isinstance(detail, dict)]
    return []


def access_token() -> str:
    """Return an access token for the application default credentials. Raises GoogleError.

    Use it for servers that ``GoogleApi`` does not support.
    """
    auth = _auth()
    from google.auth.transport.requests import Request  # noqa: PLC0415 # the extra brings it

    with _credentials_or_refused():
        credentials = auth.default(scopes=[_SCOPE])[0]
        credentials.refresh(Request())
    return str(credentials.token)


def _auth() -> Any:
    """Import ``google.auth`` without its warnings about old Python versions, and return it. Raises ImportError."""
    with catch_warnings():
        simplefilter("ignore", FutureWarning)
        import google.auth  # noqa: PLC0415 # the extra brings it
    return google.auth


@contextmanager
def _credentials_or_refused() -> Iterator[None]:
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 # the extra brings it

    try:
        yield
    except GoogleAuthError as error:
        raise NoCredentialsError(f"There are no credentials: {cause(error)}. {LOG_IN}") from error


def _session(endpoint: str, title: str, extra: str, *, read_only: bool, account: str | None) -> Session:
    try:
        auth = _auth()
        from google.auth import impersonated_credentials  # noqa: PLC0415 # the extra brings it
        from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415 # the extra brings it
        from requests import Session  # noqa: PLC0415 # the extra brings it
        from requests.adapters import HTTPAdapter  # noqa: PLC0415 # the extra brings it
        from urllib3.util import Retry  # noqa: PLC0415 # the extra brings it
    except ImportError as error:
        raise GoogleError(f"{title} needs the extra `{extra}`: {install(extra)}.") from error
    session: Session
    if urlsplit(endpoint).hostname in LOOPBACK:
        session = Session()
        session.trust_env = False  # no proxy, and no password of a .netrc
        session.headers.update(
            {"Authorization": f"Bearer as:serviceAccount:{account}"} if account else local_identity()
        )
    else:
        with _credentials_or_refused():
            credentials = auth.default(scopes=[_SCOPE])[0]
            if account:
                credentials = impersonated_credentials.Credentials(credentials, account, [_SCOPE])
            session = AuthorizedSession(credentials)
    methods = None if read_only else Retry.DEFAULT_ALLOWED_METHODS
    retry = Retry(
        RETRIES, connect=1, backoff_factor=1, status_forcelist=BUSY, allowed_methods=methods, raise_on_status=False
    )
    session.mount(endpoint, HTTPAdapter(max_retries=retry))
    return session
