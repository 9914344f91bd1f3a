"""Refusals of requests, in the two forms of Google's APIs.

Most APIs answer ``{"error": {"code", "message", "status", "details"}}``. Compute Engine and Cloud Storage use an older
form with a list of ``errors``, each with a ``reason``. Source: google.rpc.Status and the error pages of both
APIs' references, general knowledge; the reasons are those that the gcp provider checks.
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
    """A refusal: the HTTP code, Google's status, the message, and the older form's reason."""

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
        """Return the body in the form of a service's API."""
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
    """A resource that does not exist."""
    return Refusal(404, f"Resource '{name}' was not found")


def already_exists(name: str) -> Refusal:
    """A name that is taken."""
    return Refusal(409, f"Resource '{name}' already exists")


def invalid(message: str, *, field: str = "") -> Refusal:
    """A value that the API does not allow, with the field as the request spells it."""
    return bad_request([(field, message)]) if field else Refusal(400, message)


def required(body: Json, field: str, path: str) -> Any:
    """Return a required field of the message at ``path``. Raises Refusal if it is missing."""
    if not body.get(field):
        raise Refusal(400, f"Invalid value for field '{path}.{field}': ''. A value is required.", reason="required")
    return body[field]


def bad_request(violations: list[tuple[str, str]]) -> Refusal:
    """Invalid values, each with its field and the reason."""
    fields = [{"field": field, "description": message} for field, message in violations]
    details = ({"@type": f"{_TYPE}BadRequest", "fieldViolations": fields},)
    return Refusal(400, "\n".join(message for _, message in violations), details=details)


def failed_precondition(message: str) -> Refusal:
    """A state that forbids the request: a remaining child, a protected resource."""
    return Refusal(400, message, status="FAILED_PRECONDITION", reason="failedPrecondition")


def in_use(name: str, user: str) -> Refusal:
    """A resource in use by another, in Compute Engine's words."""
    message = f"The resource '{name}' is already being used by '{user}'"
    return Refusal(400, message, status="FAILED_PRECONDITION", reason="resourceInUseByAnotherResource")


def conflict(message: str, *, code: int = 409) -> Refusal:
    """A stale etag or fingerprint, or an operation in progress."""
    return Refusal(code, message, status="ABORTED" if code == 409 else "FAILED_PRECONDITION", reason="conditionNotMet")


def unimplemented(method: str) -> Refusal:
    """A method of the document that the local cloud does not implement."""
    return Refusal(501, f"{method} is not implemented by the local cloud")


def error_info(reason: str, metadata: Mapping[str, str], domain: str = "googleapis.com") -> Json:
    """Return the detail that distinguishes errors with the same code."""
    return {"@type": f"{_TYPE}ErrorInfo", "reason": reason, "domain": domain, "metadata": dict(metadata)}


def service_disabled(service: str, project: str, number: str) -> Refusal:
    """A call to an API that the project has not enabled."""
    details = (error_info("SERVICE_DISABLED", {"service": service, "consumer": f"projects/{number}"}),)
    message = f"{service} has not been used in project {project} before or it is disabled. Enable it, then retry."
    return Refusal(403, message, reason="accessNotConfigured", details=details)
