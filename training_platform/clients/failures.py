"""Failures of servers that cannot be reached, or that refuse a request, as one sentence."""

from __future__ import annotations

from training_platform.config.reading.finding import UserError


class ApiError(UserError):
    """A server cannot be reached, or refuses a request; the message is one sentence.

    ``status`` is HTTP's, None without an answer; ``reason`` is what the server says.
    """

    def __init__(self, message: str, status: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


def cause(error: BaseException) -> str:
    """Return why a request failed, in one line; for a refused connection, only the system's message."""
    root = error
    while root.__context__ is not None:
        root = root.__context__
    return " ".join(str(root if isinstance(root, OSError) else error).split())[:300].rstrip(".") or type(error).__name__
