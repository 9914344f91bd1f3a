"""Faults of requests: those that are turned away unserved, and those whose answer is lost.

Messages: quoted in googleapis/google-api-php-client no. 1391 (401) and GoogleCloudPlatform/python-docs-samples no.
3482 (429), read 2026-11-21; that of 503, and the reasons, general knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from training_platform.sandbox.cloud.faults.active import Faults
from training_platform.sandbox.cloud.faults.spec import Burst, ExpiredToken, LostResponse, RequestFault
from training_platform.sandbox.cloud.requests.errors import ApiError, error_info
from training_platform.sandbox.cloud.state.projects import number


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request before anybody looked into it; ``project`` is empty where it names none that is known."""

    verb: str
    service: str
    path: str
    project: str

    def __str__(self) -> str:
        """Return it as the record of a fault has it."""
        return f"{self.verb} /{self.service}/{self.path}"

    def fits(self, fault: RequestFault) -> bool:
        """Whether a fault is meant for it."""
        return (
            fault.service in (None, self.service)
            and fault.verb in (None, self.verb)
            and fnmatchcase(self.path, fault.path)
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a client gets of a fault; without ``error`` its connection is closed unanswered."""

    error: ApiError | None
    headers: dict[str, str] = field(default_factory=dict)


def before_effect(faults: Faults, asked: Asked) -> Answer | None:
    """Return what a request gets instead of being served; None where it is served."""
    if faults.first(ExpiredToken, asked.project, str(asked), asked.fits):
        challenge = 'Bearer realm="https://accounts.google.com/", error="invalid_token"'
        return Answer(error=_expired(asked), headers={"WWW-Authenticate": challenge})
    burst = faults.first(Burst, asked.project, str(asked), asked.fits)
    if burst is None:
        return None
    wait = burst[1].retry_after_seconds
    error = _too_many(asked) if burst[1].code == 429 else unavailable()
    return Answer(error=error, headers={} if wait is None else {"Retry-After": str(wait)})


def after_effect(faults: Faults, asked: Asked) -> Answer | None:
    """Return what a client gets though its request took effect; None where it gets its answer."""
    lost = None if asked.verb == "GET" else faults.first(LostResponse, asked.project, str(asked), asked.fits)
    if lost is None:
        return None
    return Answer(error=None if lost[1].client_sees == "closed" else unavailable())


def unavailable() -> ApiError:
    """A service that is away for a moment."""
    return ApiError(503, "The service is currently unavailable.")


def _expired(asked: Asked) -> ApiError:
    message = (
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
        "authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
    )
    details = error_info("ACCESS_TOKEN_EXPIRED", {"service": f"{asked.service}.googleapis.com"})
    return ApiError(401, message, details=(details,))


def _too_many(asked: Asked) -> ApiError:
    kind = "Read" if asked.verb == "GET" else "Write"
    service = f"{asked.service}.googleapis.com"
    consumer = number(asked.project) if asked.project else "0"
    message = (
        f"Quota exceeded for quota metric '{kind} requests' and limit '{kind} requests per minute' of service "
        f"'{service}' for consumer 'project_number:{consumer}'."
    )
    details = error_info("RATE_LIMIT_EXCEEDED", {"service": service, "consumer": f"projects/{consumer}"})
    return ApiError(429, message, details=(details,))
