"""Scenario files: faults by name in a section for each way in which things go wrong, and the reading of such a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from training_platform.config.reading.rejection import RULE, rejections
from training_platform.config.reading.section import Location, MachineTypeName, Name, OneOf, ProjectId, Section
from training_platform.config.reading.source import Source, UnreadableError, parse_source, read_source
from training_platform.parts.sandbox.cloud.requests import discovery
from training_platform.parts.sandbox.cloud.services.service_table import SERVICES


class ScenarioError(Exception):
    """A scenario that cannot be played; the message has every finding, each with file, line and column."""


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file. Raises ScenarioError."""
    try:
        return _scenario(read_source(path, str(path)))
    except UnreadableError as error:
        raise ScenarioError(str(error)) from error


def parse_scenario(text: str, file: str) -> Scenario:
    """Return the scenario in a text, YAML or JSON; ``file`` is what errors call it. Raises ScenarioError."""
    try:
        return _scenario(parse_source(text, file))
    except UnreadableError as error:
        raise ScenarioError(str(error)) from error


def _scenario(source: Source) -> Scenario:
    findings = list(source.findings)
    try:
        scenario = Scenario.model_validate(source.value)
    except ValidationError as error:
        findings += rejections(error, Scenario, source, (), "")
    else:
        if not findings and not any(scenario.faults()):
            findings.append(source.finding(RULE, (), "has no fault", allowed=", ".join(Scenario.model_fields)))
    if findings:
        raise ScenarioError("\n".join(str(finding) for finding in findings))
    return scenario


_SERVICES = frozenset({*discovery.SERVICES, "cloudquotas"})
_KINDS = frozenset(
    f"{service.name}.{kind.collection}" for service in SERVICES.values() for kind in service.kinds if kind.style
)
Pattern = Annotated[str, Field(min_length=1)]
"""A text in which ``*`` matches anything, slashes too, and ``?`` one character."""


class Fault(Section):
    """The fields of every fault: whom it hits, how often and when; times are seconds of the server's clock.

    Without ``project`` it hits every project. Of the requests or operations that fit, the first ``skip`` pass, and
    after ``times`` of them all others do.
    """

    project: ProjectId | None = None
    from_seconds: float = Field(default=0, ge=0, description="Since the fault was added.")
    for_seconds: float | None = Field(default=None, gt=0, description="Without it: until it is cleared.")
    skip: int = Field(default=0, ge=0)
    times: int | None = Field(default=None, ge=1)


class Stockout(Fault):
    """A zone, or each zone of a region, has no VMs of a machine type left.

    The operation that asks for them fails ``after_seconds`` (half an hour at Google). GKE leaves the pool in an error
    state and keeps asking: once the fault is over, the pool is well; before ``after_seconds``, so is the operation.
    Pools on a reservation and those that begin without VMs are not hit. That the operation ends well is inferred; other
    sources: terraform-provider-google pull 10121 and no. 3304, read 2026-11-21.
    """

    machine_type: MachineTypeName
    location: Location
    after_seconds: float = Field(default=0, ge=0)


class OperationFault(Fault):
    """A fault of operations: on which kind of resource, doing what, on resources of which name."""

    kind: Annotated[str, OneOf("kind of resource with operations", _KINDS)]
    action: Literal["create", "update", "delete"] | None = None
    name: Pattern = "*"


class FailedOperation(OperationFault):
    """An operation that ends with an error at a share of its time, its resource left as it then is.

    A create leaves a cluster, pool, instance or persistent resource in its error state, and nothing of a kind that has
    none; a delete leaves it in that state too. An update of a pool leaves it running with an error (inferred).
    """

    at: float = Field(default=0.5, ge=0, le=1)
    message: str = Field(default="Internal error.", min_length=1)


class SpotPreemption(Fault):
    """Spot VMs of a training job of Vertex AI are taken away; ``name`` is the job's display name.

    A job that may restart its workers waits for VMs again, any other one fails. ``times`` says how often.
    """

    machine_type: MachineTypeName | None = None
    location: Location | None = None
    name: Pattern = "*"


class RequestFault(Fault):
    """A fault of requests. ``path`` is the request's below the service, with its version, ``v1/projects/*``."""

    service: Annotated[str, OneOf("service of the local cloud", _SERVICES)] | None = None
    verb: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None
    path: Pattern = "*"


class Burst(RequestFault):
    """Requests that are refused unserved: their token expired (401), too many (429), the service is away (503)."""

    code: Literal[401, 429, 503]


class LostResponse(RequestFault):
    """A change that takes place, and whose answer never arrives: the client sees its connection closed.

    Reads and refusals are answered: nothing took place.
    """


class Scenario(Section):
    """A whole scenario file. A name is that of one fault, whatever its section."""

    stockouts: dict[Name, Stockout] = Field(default_factory=dict)
    failed_operations: dict[Name, FailedOperation] = Field(default_factory=dict)
    preemptions: dict[Name, SpotPreemption] = Field(default_factory=dict)
    bursts: dict[Name, Burst] = Field(default_factory=dict)
    lost_responses: dict[Name, LostResponse] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        seen: dict[str, str] = {}
        for section, name, _ in self.faults():
            if name in seen:
                context = {"at": (section, name), "allowed": "another name", "nearest": None}
                raise PydanticCustomError("twice", f"is a fault of {seen[name]} too", context)
            seen[name] = section
        return self

    def faults(self) -> Iterator[tuple[str, str, Fault]]:
        """Yield section, name and fault, as the file has them."""
        for section in type(self).model_fields:
            for name, fault in getattr(self, section).items():
                yield section, name, fault
