"""Error responses to requests, in the two formats of Google's APIs.

Most APIs return ``{"error": {"code", "message", "status", "details"}}``. Compute Engine and Cloud Storage use an older
format with a list of ``errors``, each with a ``reason``. Source: google.rpc.Status and the error pages of both APIs'
references, general knowledge. The values of ``reason`` are the ones that the gcp provider checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from training_platform.catalog.types import Json

_STATUS: Final[Mapping[int, tuple[str, str]]] = {  # HTTP code: status, reason of the older form
    400: ("INVALID_ARGUMENT", "invalid"),
    401: ("UNAUTHENTICATED", "authError"),
    403: ("PERMISSION_DENIED", "forbidden"),
    404: ("NOT_FOUND", "notFound"),
    405: ("UNIMPLEMENTED", "httpMethodNotAllowed"),
    409: ("ALREADY_EXISTS", "alreadyExists"),
    412: ("FAILED_PRECONDITION", "conditionNotMet"),
    413: ("INVALID_ARGUMENT", "uploadTooLarge"),
    415: ("INVALID_ARGUMENT", "unsupportedMediaType"),
    429: ("RESOURCE_EXHAUSTED", "rateLimitExceeded"),
    500: ("INTERNAL", "backendError"),
    501: ("UNIMPLEMENTED", "notImplemented"),
    503: ("UNAVAILABLE", "backendError"),
}
OLDER_FORM: Final = frozenset({"compute", "storage"})
_TYPE = "type.googleapis.com/google.rpc."


class Refusal(Exception):
    """Raised for a refused request: the HTTP code, Google's status, the message, and the reason in the older format."""

    def __init__(
        self, code: int, message: str, *, status: str = "", reason: str = "", details: tuple[Json, ...] = ()
    ) -> None:
        super().__init__(message)
        default_status, default_reason = _STATUS.get(code, ("UNKNOWN", "unknown"))
        self.code = code
        self.message = message
        self.status = status or default_status
        self.reason = reason or default_reason
        self.details = details

    def body(self, service: str) -> Json:
        """Return the response body in the format of a service's API."""
        error: Json = {"code": self.code, "message": self.message}
        if service in OLDER_FORM:
            error["errors"] = [{"message": self.message, "domain": "global", "reason": self.reason}]
            if service == "storage":
                return {"error": error}
        error["status"] = self.status
        if self.details:
            error["details"] = list(self.details)
        return {"error": error}


def not_found(name: str) -> Refusal:
    """Return the refusal for a resource that does not exist."""
    return Refusal(404, f"Resource '{name}' was not found")


def already_exists(name: str) -> Refusal:
    """Return the refusal for a name that exists already."""
    return Refusal(409, f"Resource '{name}' already exists")


def invalid(message: str, *, field: str = "") -> Refusal:
    """Return the refusal for a value that the API does not allow. ``field`` is its name as in the request."""
    return bad_request([(field, message)]) if field else Refusal(400, message)


def required(body: Json, field: str, path: str) -> Any:
    """Return a required field of the message at ``path``. Raises Refusal if it is missing."""
    if not body.get(field):
        raise Refusal(400, f"Invalid value for field '{path}.{field}': ''. A value is required.", reason="required")
    return body[field]


def bad_request(violations: list[tuple[str, str]]) -> Refusal:
    """Return the refusal for invalid values. Each violation is a pair of a field and what is wrong with it."""
    fields = [{"field": field, "description": message} for field, message in violations]
    details = ({"@type": f"{_TYPE}BadRequest", "fieldViolations": fields},)
    return Refusal(400, "\n".join(message for _, message in violations), details=details)


def failed_precondition(message: str) -> Refusal:
    """Return the refusal for a resource whose state forbids the request: it has children, or it is protected."""
    return Refusal(400, message, status="FAILED_PRECONDITION", reason="failedPrecondition")


def in_use(name: str, user: str) -> Refusal:
    """Return the refusal for a resource that another one uses, with Compute Engine's message."""
    message = f"The resource '{name}' is already being used by '{user}'"
    return Refusal(400, message, status="FAILED_PRECONDITION", reason="resourceInUseByAnotherResource")


def conflict(message: str, *, code: int = 409) -> Refusal:
    """Return the refusal for a stale etag or fingerprint, or for an operation in progress."""
    return Refusal(code, message, status="ABORTED" if code == 409 else "FAILED_PRECONDITION", reason="conditionNotMet")


def unimplemented(method: str) -> Refusal:
    """Return the refusal for a method that is in a discovery document but that the local cloud does not implement."""
    return Refusal(501, f"{method} is not implemented by the local cloud")


def error_info(reason: str, metadata: Mapping[str, str], domain: str = "googleapis.com") -> Json:
    """Return the error detail by which clients distinguish errors that have the same code."""
    return {"@type": f"{_TYPE}ErrorInfo", "reason": reason, "domain": domain, "metadata": dict(metadata)}


def service_disabled(service: str, project: str, number: str) -> Refusal:
    """Return the refusal for a call to an API that the project has not enabled."""
    details = (error_info("SERVICE_DISABLED", {"service": service, "consumer": f"projects/{number}"}),)
    message = f"{service} has not been used in project {project} before or it is disabled. Enable it, then retry."
    return Refusal(403, message, reason="accessNotConfigured", details=details)
