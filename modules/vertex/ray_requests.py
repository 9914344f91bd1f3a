"""Persistent resources that run Ray, by Vertex AI's REST: what the program's own provider of them calls.

It needs ``google-auth`` and ``requests`` (extra ``deploy``), since whoever deploys has no other client of Google's.
Credentials are an access token, else application default credentials; nothing is imported before a deployment asks.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from requests import Response, Session

Json = dict[str, Any]
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_CALL_SECONDS: Final = 60
_MOST_SECONDS: Final = 3600  # of one operation: GPU machines take longer than the released provider's 20 minutes
_POLL_SECONDS: Final = 10.0
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}
_ON_ITS_WAY: Final = ("PROVISIONING", "UPDATING", "REBOOTING")
_PROJECT: Final = re.compile(r"^projects/[^/]+/")  # by id or by number, as the API likes


class RayClusterError(Exception):
    """Vertex AI refuses something, or what it began did not end well; the message is one sentence."""


class _MissingError(RayClusterError):
    """There is no such resource."""


class _TakenError(RayClusterError):
    """There is one of that name."""


class _FailedError(RayClusterError):
    """What Vertex AI began did not end well."""


class Settings(NamedTuple):
    """What the gcp provider's settings say: ``endpoint`` None is the region's own, ``token`` None the person's."""

    endpoint: str | None = None
    token: str | None = None
    poll_seconds: float = _POLL_SECONDS


def settings(config: Callable[[str], Any]) -> Settings:
    """Return what a stack's configuration says, else the environment, by the released provider's names.

    Its ``gcp:credentials`` and impersonation are not looked at.
    """
    return Settings(
        endpoint=config("gcp:vertexAiCustomEndpoint") or os.environ.get("GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT"),
        token=config("gcp:accessToken") or os.environ.get("GOOGLE_OAUTH_ACCESS_TOKEN"),
        poll_seconds=_seconds(config("gcp:pollInterval") or ""),
    )


class RayClusters:
    """Persistent resources by their full names, ``projects/*/locations/*/persistentResources/*``.

    Every method raises RayClusterError.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _session(self) -> Session:
        """Return one session for all requests, so that credentials are looked for once and not at every poll."""
        return _session(self._settings.endpoint, self._settings.token)

    def create(self, name: str, body: Mapping[str, Any]) -> Json:
        """Create one and wait until it runs, or take the same one that is there.

        It is there where a deployment was interrupted meanwhile, or where the stack adopts it. What a failed create
        leaves is deleted, since nobody could use its name again.
        """
        parent, _, key = name.rpartition("/")
        try:
            operation = self._send("POST", name, parent, json=dict(body), params={"persistentResourceId": key})
        except _TakenError as taken:
            if not alike(body, self.get(name)):
                raise RayClusterError(
                    f"{name} exists with other settings: delete it, or choose another key."
                ) from taken
            return self._running(name)
        try:
            self._wait(name, operation)
            return self._running(name)
        except _FailedError:
            self.delete(name)
            raise

    def get(self, name: str) -> Json | None:
        """Return what Vertex AI has; None where it has none."""
        try:
            return self._send("GET", name, name)
        except _MissingError:
            return None

    def resize(self, name: str, pools: list[Json]) -> Json:
        """Change how many VMs the pools have, and wait until they run; the API changes nothing else.

        The mask is as vertex_ray of python-aiplatform has it (commit 0e1efc3, read 2026-11-22).
        """
        mask = {"updateMask": "resourcePools.replicaCount"}
        self._wait(name, self._send("PATCH", name, name, json={"name": name, "resourcePools": pools}, params=mask))
        return self._running(name)

    def delete(self, name: str) -> None:
        """Delete one if it is there, and wait until it is gone, so that its name is free.

        One whose deletion was not over when an earlier deployment stopped waiting is waited for.
        """
        try:
            if (self.get(name) or {}).get("state") == "STOPPING":
                self._until(name, lambda: None if self.get(name) else {"done": True})
            else:
                self._wait(name, self._send("DELETE", name, name))
        except _MissingError:
            return

    def _running(self, name: str) -> Json:
        """Return a resource once it runs."""

        def look() -> Json | None:
            found = self.get(name) or {"state": "gone"}
            if found["state"] in ("RUNNING", *_ON_ITS_WAY):
                return found if found["state"] == "RUNNING" else None
            reason = (found.get("error") or {}).get("message", "Vertex AI does not say why")
            raise _FailedError(f"{name} is {found['state']}: {reason}")

        return self._until(name, look)

    def _wait(self, name: str, operation: Json) -> None:
        def look() -> Json | None:
            found = self._send("GET", name, operation["name"])
            return found if found.get("done") else None

        if error := self._until(name, look).get("error"):
            raise _FailedError(f"{name}: {error.get('message', error)}")

    def _until(self, name: str, look: Callable[[], Json | None]) -> Json:
        """Return what ``look`` returns once it is something; what takes more than an hour is an error."""
        end = time.monotonic() + _MOST_SECONDS
        while time.monotonic() < end:
            if found := look():
                return found
            time.sleep(self._settings.poll_seconds)
        minutes = _MOST_SECONDS // 60
        raise RayClusterError(
            f"Vertex AI is not done with {name} after {minutes} minutes: deploy again to wait for it."
        )

    def _send(self, method: str, name: str, path: str, **options: Any) -> Json:
        """Send a request below the API's version; ``name`` is the resource that it is about."""
        from requests.exceptions import RequestException  # noqa: PLC0415 # of the extra

        endpoint = self._settings.endpoint or f"https://{name.split('/')[3]}-aiplatform.googleapis.com/v1beta1/"
        try:
            answer = self._session.request(method, endpoint + path, timeout=_CALL_SECONDS, **options)
        except RequestException as error:
            raise RayClusterError(f"Vertex AI cannot be reached: {' '.join(str(error).split())[:300]}") from error
        if answer.status_code != 200:
            kind = {404: _MissingError, 409: _TakenError}.get(answer.status_code, RayClusterError)
            raise kind(f"Vertex AI refuses {name} ({answer.status_code}): {_message(answer)}")
        found: Json = answer.json()
        return found


def alike(declared: Any, actual: Any) -> bool:
    """Whether the cloud has what is declared; what it adds does not count, and it leaves out what is 0 or false."""
    if isinstance(declared, Mapping):
        found = actual if isinstance(actual, Mapping) else {}
        return all(alike(value, found.get(key)) for key, value in declared.items())
    if isinstance(declared, list):
        others = actual if isinstance(actual, list) else []
        return len(declared) == len(others) and all(map(alike, declared, others))
    if actual is None:
        return not declared or declared == "0"
    return declared == actual or _PROJECT.sub("", str(declared)) == _PROJECT.sub("", str(actual))


def _session(endpoint: str | None, token: str | None) -> Session:
    """Return a session with credentials; a local cloud is shown none of a person's."""
    from requests import Session  # noqa: PLC0415 # of the extra

    local = urlsplit(endpoint).hostname in _LOOPBACK
    if token is None and not local:
        return _authorized()
    session = Session()
    session.trust_env = not local
    session.headers["Authorization"] = f"Bearer {token or 'none'}"
    return session


def _authorized() -> Session:
    import google.auth  # noqa: PLC0415 # of the extra
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415
    from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415

    try:
        session: Session = AuthorizedSession(google.auth.default(scopes=[_SCOPE])[0])
    except GoogleAuthError as error:
        raise RayClusterError(f"There are no credentials: {error}") from error
    return session


def _message(answer: Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:300]


def _seconds(interval: str) -> float:
    """Return ``gcp:pollInterval``, 200ms or 10s, in seconds; the provider's own choice where it is not said."""
    found = re.fullmatch(r"([0-9.]+)(ms|s|m)", interval)
    return float(found[1]) * _UNITS[found[2]] if found else _POLL_SECONDS
