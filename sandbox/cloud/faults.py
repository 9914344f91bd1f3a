"""What goes wrong on purpose: asked before each request and after its effect. Empty, it changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sandbox.cloud.errors import ApiError

Fault = Callable[[str, str, str], Awaitable[ApiError | None]]  # verb, service, path


class Faults:
    """Faults in order; the first that answers is what the client gets. One may also wait, and answer nothing."""

    def __init__(self) -> None:
        self.before_effect: list[Fault] = []
        self.after_effect: list[Fault] = []

    async def before(self, verb: str, service: str, path: str) -> ApiError | None:
        """Return the error that a request gets instead of being served."""
        return await _first(self.before_effect, verb, service, path)

    async def after(self, verb: str, service: str, path: str) -> ApiError | None:
        """Return the error that a client sees though its request was served."""
        return await _first(self.after_effect, verb, service, path)

    def clear(self) -> None:
        """Forget every fault."""
        self.before_effect.clear()
        self.after_effect.clear()


async def _first(faults: list[Fault], verb: str, service: str, path: str) -> ApiError | None:
    for fault in faults:
        error = await fault(verb, service, path)
        if error is not None:
            return error
    return None
