"""A client of the local cloud's control API for a run: it sets faults, and deletes or unprotects resources."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

import httpx

from local_google_cloud.api import FaultError, check_fault
from training_platform.parts.sandbox.run.engine import ENABLED
from training_platform.parts.sandbox.run.folder import CannotRun

_MOST_EVENTS: Final = 3  # of a fault in a line; the server's list has all
_SECONDS: Final = 30


class FaultControl:
    """Reads and changes the faults of a server through its control API."""

    def __init__(self, port: int) -> None:
        self._port = port

    def listed(self) -> list[dict[str, Any]]:
        """Return every fault with the number of times that it took effect, and the latest events."""
        faults: list[dict[str, Any]] = _ask(self._port, "GET", "_sandbox/faults")
        return faults

    def add(self, fault: str) -> None:
        """Add a fault. Raises CannotRun if the text is not a valid fault."""
        _ask(self._port, "PUT", f"_sandbox/faults/{quote(fault)}")

    def clear(self, fault: str) -> None:
        """Remove a fault."""
        _ask(self._port, "DELETE", f"_sandbox/faults/{quote(fault)}")


def check_faults(faults: Sequence[str]) -> None:
    """Raise CannotRun for the first text that is not a valid fault."""
    try:
        for fault in faults:
            check_fault(fault)
    except FaultError as error:
        raise CannotRun(f"--fault: {error}") from error


@contextmanager
def injected(port: int, faults: Sequence[str]) -> Iterator[None]:
    """Add faults to a server for the duration of the ``with`` block."""
    control = FaultControl(port)
    for fault in faults:
        control.add(fault)
    try:
        yield
    finally:
        for fault in faults:
            control.clear(fault)


def fault_lines(faults: Sequence[Mapping[str, Any]], before: Mapping[str, int]) -> Iterator[str]:
    """Yield the effects of each fault since the counts in ``before``, and the faults that had no effect."""
    idle = []
    for fault in faults:
        hits = fault["fired"] - before.get(fault["fault"], 0)
        if not hits:
            idle.append(fault["fault"])
            continue
        events = [event["what"] for event in fault["events"]][-hits:]
        more_events = f" and {hits - _MOST_EVENTS} more" if hits > _MOST_EVENTS else ""
        yield f"Fault {fault['fault']} hit {hits}: {', '.join(events[:_MOST_EVENTS])}{more_events}."
    if idle:
        yield f"Faults that hit nothing: {', '.join(idle)}."


def remove(port: int, name: str) -> None:
    """Delete a resource and everything below it from the local cloud, even if the API would refuse to."""
    _ask(port, "DELETE", f"_sandbox/resources/{quote(name)}")


def unprotect(port: int, name: str) -> None:
    """Remove the deletion protection of a Filestore instance, given its full name."""
    path = f"file/v1beta1/{quote(name)}?updateMask={ENABLED}"
    _ask(port, "PATCH", path, json.dumps({ENABLED: False}).encode())


def _ask(port: int, verb: str, path: str, body: bytes | None = None) -> Any:
    # A proxy could not reach this machine.
    with httpx.Client(trust_env=False, timeout=_SECONDS, headers={"Content-Type": "application/json"}) as client:
        try:
            response = client.request(verb, f"http://127.0.0.1:{port}/{path}", content=body)
        except httpx.TransportError as error:
            raise CannotRun(f"the local cloud on port {port} does not answer: {error}.") from error
    if response.is_success:
        return response.json()
    refusal = response.json()["error"]
    message = refusal["message"] if isinstance(refusal, dict) else refusal
    raise CannotRun(f"{message}.".replace("..", "."))
