"""The model of scenario files: named faults, in a section for each kind of fault."""

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
    """An invalid scenario; the message has every finding, with file, line and column."""


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file. Raises ScenarioError."""
    try:
        return _validated(read_source(path, str(path)))
    except UnreadableError as error:
        raise ScenarioError(str(error)) from error


def parse_scenario(text: str, file: str) -> Scenario:
    """Parse a scenario, YAML or JSON; errors call it ``file``. Raises ScenarioError."""
    try:
        return _validated(parse_source(text, file))
    except UnreadableError as error:
        raise ScenarioError(str(error)) from error


def _validated(source: Source) -> Scenario:
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
"""A string in which ``*`` matches anything, including slashes, and ``?`` one character."""


class Fault(Section):
    """The fields of every fault: its project, its time and its count; times are seconds of the server's clock.

    Without ``project``, it hits every project. The first ``skip`` matching requests or operations pass, the next
    ``times`` are hit, and all others pass.
    """

    project: ProjectId | None = None
    from_seconds: float = Field(default=0, ge=0, description="Since the fault was added.")
    for_seconds: float | None = Field(default=None, gt=0, description="Default: until it is cleared.")
    skip: int = Field(default=0, ge=0)
    times: int | None = Field(default=None, ge=1)


class Stockout(Fault):
    """A zone, or each zone of a region, has no VMs of a machine type left.

    The operation that requests them fails ``after_seconds`` (half an hour at Google). GKE leaves the pool in an error
    state and keeps trying: once the fault is over, the pool recovers. If it is over before ``after_seconds``, the
    operation succeeds (inferred). Pools on a reservation and pools that start without VMs are not hit. Other sources:
    terraform-provider-google pull 10121 and no. 3304, read 2026-11-21.
    """

    machine_type: MachineTypeName
    location: Location
    after_seconds: float = Field(default=0, ge=0)


class OperationFault(Fault):
    """A fault of operations, by kind of resource, action and the resource's name."""

    kind: Annotated[str, OneOf("kind of resource with operations", _KINDS)]
    action: Literal["create", "update", "delete"] | None = None
    name: Pattern = "*"


class FailedOperation(OperationFault):
    """An operation that ends with an error, at a share of its time.

    A create or delete leaves a cluster, pool, instance or persistent resource in its error state; a create of any other
    kind leaves nothing. An update of a pool leaves it running with an error (inferred).
    """

    at: float = Field(default=0.5, ge=0, le=1)  # readable: the field of users' files
    message: str = Field(default="Internal error.", min_length=1)


class SpotPreemption(Fault):
    """The spot VMs of a Vertex AI training job are preempted, ``times`` times; ``name`` is the job's display name.

    A job that may restart its workers waits for VMs again; any other job fails.
    """

    machine_type: MachineTypeName | None = None
    location: Location | None = None
    name: Pattern = "*"


class RequestFault(Fault):
    """A fault injected into requests. ``path`` is below the service and begins with the version: ``v1/projects/*``."""

    service: Annotated[str, OneOf("service of the local cloud", _SERVICES)] | None = None
    verb: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None
    path: Pattern = "*"


class Burst(RequestFault):
    """Requests that are refused unserved: an expired token (401), too many requests (429), no service (503)."""

    code: Literal[401, 429, 503]


class LostResponse(RequestFault):
    """A change that takes effect, but whose response is lost: the client sees its connection closed.

    Reads and refused requests are answered.
    """


class Scenario(Section):
    """A scenario file. Names are unique across sections."""

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
                raise PydanticCustomError("twice", f"is also a fault of {seen[name]}", context)
            seen[name] = section
        return self

    def faults(self) -> Iterator[tuple[str, str, Fault]]:
        """Yield section, name and fault in the order of the sections."""
        for section in type(self).model_fields:
            for name, fault in getattr(self, section).items():
                yield section, name, fault
