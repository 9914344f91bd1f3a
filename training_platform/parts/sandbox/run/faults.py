"""The local cloud's control API in a run: a scenario's faults, and resources to delete or unprotect."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from training_platform.parts.sandbox.cloud.faults.scenario import ScenarioError, read_scenario
from training_platform.parts.sandbox.run.engine import ENABLED
from training_platform.parts.sandbox.run.folder import CannotRun

_MOST_EVENTS: Final = 3  # of a fault in a line; the server's list has all
_SECONDS: Final = 30


class FaultControl:
    """The faults of a server, through its control API."""

    def __init__(self, port: int) -> None:
        self._port = port

    def listed(self) -> list[dict[str, Any]]:
        """Return every fault with the number of its hits, and the last hits."""
        faults: list[dict[str, Any]] = _ask(self._port, "GET", "_sandbox/faults")
        return faults

    def add(self, path: Path) -> list[str]:
        """Add a scenario file's faults and return their names. Raises CannotRun for an invalid scenario."""
        check_scenario(path)
        response = _ask(self._port, "POST", f"_sandbox/faults?file={quote(str(path))}", path.read_bytes())
        return list(response["added"])

    def clear(self, names: Sequence[str]) -> None:
        """Remove faults. Raises CannotRun for a name that does not exist."""
        for name in names:
            _ask(self._port, "DELETE", f"_sandbox/faults/{quote(name)}")


def check_scenario(path: Path) -> None:
    """Raise CannotRun with every finding in a scenario file, with file, line and column."""
    try:
        read_scenario(path)
    except ScenarioError as error:
        raise CannotRun(f"the scenario is invalid:\n{error}") from error


@contextmanager
def playing(port: int, scenario: Path | None) -> Iterator[None]:
    """Add a scenario's faults to a server while the block runs."""
    if scenario is None:
        yield
        return
    faults = FaultControl(port)
    names = faults.add(scenario)
    try:
        yield
    finally:
        present = {fault["name"] for fault in faults.listed()}
        left = [name for name in names if name in present]  # others may have been cleared inside the block
        if left:
            faults.clear(left)


def fault_lines(faults: Sequence[Mapping[str, Any]], before: Mapping[str, int]) -> Iterator[str]:
    """Yield what each fault has hit since the counts in ``before``, and the faults that hit nothing."""
    idle = []
    for fault in faults:
        hits = fault["fired"] - before.get(fault["name"], 0)
        title = f"{fault['name']} ({fault['section'].replace('_', ' ')})"
        if not hits:
            idle.append(title)
            continue
        events = [event["what"] for event in fault["events"]][-hits:]
        rest = f" and {hits - _MOST_EVENTS} more" if hits > _MOST_EVENTS else ""
        yield f"Fault {title} hit {hits}: {', '.join(events[:_MOST_EVENTS])}{rest}."
    if idle:
        yield f"Faults that hit nothing: {', '.join(idle)}."


def remove(port: int, name: str) -> None:
    """Delete a resource and everything below it from the local cloud, even if the API would refuse that."""
    _ask(port, "DELETE", f"_sandbox/resources/{quote(name)}")


def unprotect(port: int, name: str) -> None:
    """Remove the deletion protection of a Filestore instance, by its full name."""
    path = f"file/v1beta1/{quote(name)}?updateMask={ENABLED}"
    _ask(port, "PATCH", path, json.dumps({ENABLED: False}).encode(), "application/json")


def _ask(port: int, verb: str, path: str, body: bytes | None = None, content: str = "application/yaml") -> Any:
    # A proxy could not reach this machine.
    with httpx.Client(trust_env=False, timeout=_SECONDS, headers={"Content-Type": content}) as client:
        try:
            response = client.request(verb, f"http://127.0.0.1:{port}/{path}", content=body)
        except httpx.TransportError as error:
            raise CannotRun(f"the local cloud on port {port} does not answer: {error}.") from error
    if response.is_success:
        return response.json()
    refusal = response.json()["error"]
    message = refusal["message"] if isinstance(refusal, dict) else refusal
    raise CannotRun(f"{message}.".replace("..", "."))
