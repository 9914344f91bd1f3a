"""One-sentence errors for servers that cannot be reached or that refuse a request."""

from __future__ import annotations

from training_platform.config.reading.finding import UserError


class ApiError(UserError):
    """Raised if a server cannot be reached or refuses a request. The message is one sentence.

    ``status`` is the HTTP status, or None without a response. ``reason`` is the server's message.
    """

    def __init__(self, message: str, status: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


def cause(error: BaseException) -> str:
    """Return the reason why a request failed, in one line. A refused connection gives only the system's message."""
    root = error
    while root.__context__ is not None:
        root = root.__context__
    return " ".join(str(root if isinstance(root, OSError) else error).split())[:300].rstrip(".") or type(error).__name__
