"""What a server that cannot be asked, or that refuses, is to the command that asked it: one sentence."""

from __future__ import annotations

from training_platform.config.reading.finding import UserError


class ApiError(UserError):
    """A server that cannot be asked, or that refuses; the message is one sentence.

    ``status`` is HTTP's, None without an answer; ``reason`` is what the server says.
    """

    def __init__(self, message: str, status: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


def cause(error: BaseException) -> str:
    """Return why a request failed, on one line: only the system's words if it refused a connection."""
    root = error
    while root.__context__ is not None:
        root = root.__context__
    return " ".join(str(root if isinstance(root, OSError) else error).split())[:300].rstrip(".") or type(error).__name__
