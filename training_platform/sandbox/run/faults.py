"""A run's use of the control API: a scenario's faults brought to the local cloud, and what is to be gone from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from training_platform.sandbox.cloud.faults.scenario import ScenarioError, read_scenario
from training_platform.sandbox.run.engine.protection import ENABLED
from training_platform.sandbox.run.folder import Folder
from training_platform.sandbox.run.problems import CannotRun
from training_platform.sandbox.run.servers import served

_SHOWN: Final = 3  # of what a fault hit; all of it is in the server's list
_DIRECT: Final = build_opener(ProxyHandler({}))  # a proxy of the environment would not find this machine
_SECONDS: Final = 30


class Faults:
    """The faults of a server, through its control API."""

    def __init__(self, port: int) -> None:
        self._port = port

    def listed(self) -> list[dict[str, Any]]:
        """Return every fault with the number of times that it hit, and the last ones of these."""
        found: list[dict[str, Any]] = self._ask("GET")
        return found

    def add(self, path: Path) -> list[str]:
        """Add a scenario file's faults and return their names. Raises CannotRun where it cannot be played."""
        check_scenario(path)
        added: list[str] = self._ask("POST", f"?file={quote(str(path))}", path.read_bytes())["added"]
        return added

    def clear(self, names: Sequence[str]) -> None:
        """Remove faults, all of them where none is named. Raises CannotRun for a name that does not exist."""
        for name in [f"/{quote(each)}" for each in names] or [""]:
            self._ask("DELETE", name)

    def _ask(self, verb: str, below: str = "", body: bytes | None = None) -> Any:
        return _control(self._port, verb, f"faults{below}", body)


def remove(port: int, name: str) -> None:
    """Remove a resource from the local cloud with all that belongs to it, whatever it says of itself."""
    _control(port, "DELETE", f"resources/{quote(name)}")


def unprotect(port: int, name: str) -> None:
    """Let the local cloud delete a Filestore instance, by its full name."""
    path = f"file/v1beta1/{quote(name)}?updateMask={ENABLED}"
    _ask(port, "PATCH", path, json.dumps({ENABLED: False}).encode(), "application/json")


def _control(port: int, verb: str, path: str, body: bytes | None = None) -> Any:
    return _ask(port, verb, f"_sandbox/{path}", body)


def _ask(port: int, verb: str, path: str, body: bytes | None, content: str = "application/yaml") -> Any:
    url, headers = f"http://127.0.0.1:{port}/{path}", {"Content-Type": content}
    try:
        with _DIRECT.open(Request(url, body, headers, method=verb), timeout=_SECONDS) as answer:
            return json.load(answer)
    except HTTPError as error:
        said = json.load(error)["error"]
        message = said["message"] if isinstance(said, dict) else said
        raise CannotRun(f"{message}.".replace("..", ".")) from error


def check_scenario(path: Path) -> None:
    """Read a scenario file. Raises CannotRun with all that is wrong in it, each with file, line and column."""
    try:
        read_scenario(path)
    except ScenarioError as error:
        raise CannotRun(f"the scenario cannot be played:\n{error}") from error


def served_faults(folder: Folder) -> Faults:
    """Return the faults of the server that ``sandbox serve`` runs. Raises CannotRun where it does not."""
    servers = served(folder)
    if servers is None:
        raise CannotRun(
            "no server is running: faults live as long as one does. Run `training-platform sandbox serve`, or give "
            "the file to a run, as --scenario."
        )
    return Faults(servers.cloud)


@contextmanager
def playing(port: int, scenario: Path | None) -> Iterator[None]:
    """Have a scenario's faults on a server for as long as the block runs."""
    if scenario is None:
        yield
        return
    faults = Faults(port)
    names = faults.add(scenario)
    try:
        yield
    finally:
        there = {each["name"] for each in faults.listed()}
        left = [name for name in names if name in there]  # somebody may have cleared some meanwhile
        if left:
            faults.clear(left)


def fault_lines(faults: Sequence[Mapping[str, Any]], before: Mapping[str, int]) -> Iterator[str]:
    """Yield what each fault hit since it had hit as often as ``before`` says, and which hit nothing."""
    idle = []
    for each in faults:
        hits = each["fired"] - before.get(each["name"], 0)
        about = f"{each['name']} ({each['section'].replace('_', ' ')})"
        if not hits:
            idle.append(about)
            continue
        events = [event["what"] for event in each["events"]][-hits:]
        more = f" and {hits - _SHOWN} more" if hits > _SHOWN else ""
        yield f"Fault {about} hit {hits}: {', '.join(events[:_SHOWN])}{more}."
    if idle:
        yield f"Hit nothing: {', '.join(idle)}."
