"""The faults of a server, and which requests and operations they hit.

Faults are not in the server's file: a restart clears them, but not the damage that they did. Messages:
quoted in googleapis/google-api-php-client no. 1391 (401) and GoogleCloudPlatform/python-docs-samples no. 3482 (429),
read 2026-11-21; 503 and the reasons, general knowledge.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeVar

from training_platform.catalog.types import Json
from training_platform.parts.sandbox.cloud.faults.scenario import (
    Burst,
    Fault,
    LostResponse,
    RequestFault,
    Scenario,
)
from training_platform.parts.sandbox.cloud.requests.errors import Refusal, error_info
from training_platform.parts.sandbox.cloud.state.long_running import Clock, stamp
from training_platform.parts.sandbox.cloud.state.quota_use import number

_NO_CREDENTIALS = (
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
    "authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
)
_KEPT_EVENTS = 100  # of each fault; ``fired`` counts all of them

Some = TypeVar("Some", bound=Fault)


class NameTaken(Exception):
    """A fault with that name exists."""


@dataclass(kw_only=True)
class ActiveFault:
    """A fault, the time when it was added, how many requests or operations matched, and which it hit."""

    section: str
    name: str
    fault: Fault
    added: float
    matched: int = 0
    fired: int = 0
    events: deque[Json] = field(default_factory=lambda: deque(maxlen=_KEPT_EVENTS))

    def in_force(self, now: float) -> bool:
        """Whether it can hit now."""
        return self.added + self.fault.from_seconds <= now and not self.past(now)

    def past(self, now: float) -> bool:
        """Whether its time is over."""
        seconds = self.fault.for_seconds
        return seconds is not None and now >= self.added + self.fault.from_seconds + seconds

    def hits(self) -> bool:
        """Count a matching request or operation, and return whether it is hit."""
        self.matched += 1
        return self.matched > self.fault.skip and (self.fault.times is None or self.fired < self.fault.times)


class ActiveFaults:
    """Faults by name, in the order in which they were added."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._active: dict[str, ActiveFault] = {}

    def add(self, scenario: Scenario) -> list[str]:
        """Add every fault of a scenario and return their names. Raises NameTaken, and then adds none."""
        now = self._clock.now()
        new = {
            name: ActiveFault(section=section, name=name, fault=fault, added=now)
            for section, name, fault in scenario.faults()
        }
        taken = [name for name in new if name in self._active]
        if taken:
            raise NameTaken(f"these faults exist: {', '.join(taken)}; clear them first")
        self._active |= new
        return list(new)

    def names(self) -> list[str]:
        """Return the names of all faults."""
        return list(self._active)

    def clear(self, name: str) -> None:
        """Remove a fault. Raises KeyError for an unknown name."""
        del self._active[name]

    def clear_all(self) -> None:
        """Remove every fault."""
        self._active = {}

    def over(self, name: str, moment: float) -> bool:
        """Whether a fault is cleared, or has passed by a moment."""
        active = self._active.get(name)
        return active is None or active.past(moment)

    def first(
        self, kind: type[Some], project: str, subject: str, matches: Callable[[Some], bool]
    ) -> tuple[str, Some] | None:
        """Return name and fault of the first of a kind that hits ``subject``, and record that."""
        now = self._clock.now()
        for active in self._active.values():
            fault = active.fault
            if not isinstance(fault, kind) or fault.project not in (None, project) or not active.in_force(now):
                continue
            if matches(fault) and active.hits():
                active.fired += 1
                active.events.append({"time": stamp(now), "what": subject})
                return active.name, fault
        return None

    def shown(self) -> list[Json]:
        """Return every fault as the control API shows it."""
        now = self._clock.now()
        return [
            {
                "name": active.name,
                "section": active.section,
                "under_way": active.in_force(now),
                "fired": active.fired,
                "events": list(active.events),
                "fault": active.fault.model_dump(exclude_unset=True),
            }
            for active in self._active.values()
        ]


@dataclass(frozen=True, kw_only=True)
class IncomingRequest:
    """A request that is not validated yet; ``project`` is "" if it names no known project."""

    verb: str
    service: str
    path: str
    project: str

    def __str__(self) -> str:
        """Return it as the events of a fault show it."""
        return f"{self.verb} /{self.service}/{self.path}"

    def matches(self, fault: RequestFault) -> bool:
        """Whether a fault applies to it."""
        return (
            fault.service in (None, self.service)
            and fault.verb in (None, self.verb)
            and fnmatchcase(self.path, fault.path)
        )


def refusal_unserved(faults: ActiveFaults, request: IncomingRequest) -> Refusal | None:
    """Return the refusal of a request that a fault leaves unserved, if any."""
    hit = faults.first(Burst, request.project, str(request), request.matches)
    if hit is None:
        return None
    _, burst = hit
    if burst.code == 503:
        return unavailable()
    service = f"{request.service}.googleapis.com"
    if burst.code == 401:
        expired = error_info("ACCESS_TOKEN_EXPIRED", {"service": service})
        return Refusal(401, _NO_CREDENTIALS, details=(expired,))
    kind = "Read" if request.verb == "GET" else "Write"
    consumer = number(request.project) if request.project else "0"
    message = (
        f"Quota exceeded for quota metric '{kind} requests' and limit '{kind} requests per minute' of service "
        f"'{service}' for consumer 'project_number:{consumer}'."
    )
    details = error_info("RATE_LIMIT_EXCEEDED", {"service": service, "consumer": f"projects/{consumer}"})
    return Refusal(429, message, details=(details,))


def loses_answer(faults: ActiveFaults, request: IncomingRequest) -> bool:
    """Whether a fault loses the response to a change that took effect."""
    if request.verb == "GET":
        return False
    return faults.first(LostResponse, request.project, str(request), request.matches) is not None


def unavailable() -> Refusal:
    """A service that is briefly unavailable."""
    return Refusal(503, "The service is currently unavailable.")
