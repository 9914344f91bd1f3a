"""Provisioning models, and the reservation that provides VMs.

A future reservation, including one in calendar mode, is used like a specific reservation, which appears at its start.
``starts`` and ``ends`` are its times. Google creates a future reservation on request, so a stack uses it but does not
create it. Source: GKE docs, TPUs with future reservation in calendar mode, read 2026-11-21; GKE cluster-autoscaler
7d25050.
"""

import re
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from training_platform.catalog.types import ChargedCapacity
from training_platform.config.reading.section import (
    RESERVATION_NAME,
    RESERVATION_OR_ANY,
    Consistent,
    Problem,
    ProjectId,
)

Capacity = Literal["on-demand", "spot", "flex-start", "queued-provisioning", "reservation"]

ANY = "*"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def charged_as(capacity: Capacity) -> ChargedCapacity:
    """Return the provisioning model whose quota is charged. Queued provisioning uses the quota of flex-start."""
    return "flex-start" if capacity == "queued-provisioning" else capacity


def _day(value: str) -> str:
    context = {"allowed": "a day such as 2026-12-01", "nearest": None}
    refusal = PydanticCustomError("day", f"{value!r} is not a day".replace("{", "{{"), context)
    if not _DAY.fullmatch(value):
        raise refusal
    try:
        date.fromisoformat(value)
    except ValueError as error:
        raise refusal from error
    return value


Day = Annotated[str, AfterValidator(_day)]
ReservationName = Annotated[str, Field(pattern=RESERVATION_NAME, examples=["h100-pool"])]


class ReservationSpec(Consistent):
    """The reservation that provides VMs: only its name, ``any`` for every open reservation that matches, or fields.

    With ``any``, VMs that match no reservation are on-demand VMs and are charged as such.
    """

    name: Annotated[str, Field(pattern=RESERVATION_OR_ANY)] = Field(
        description='Name of the reservation; "*" means any open reservation that matches.', examples=["h100-pool"]
    )
    project: ProjectId | None = Field(
        default=None, description="Project that shares the reservation; default: the project of the environment."
    )
    block: ReservationName | None = Field(
        default=None, description="Reservation block; the node pool then needs a zone."
    )
    sub_block: ReservationName | None = Field(default=None, description="Reservation sub-block of the block.")
    chips: int | None = Field(
        default=None,
        ge=1,
        description="Chips or GPUs of the whole reservation, for all pools and environments; only one pool needs to "
        "state it.",
        examples=[64],
    )
    starts: Day | None = Field(
        default=None,
        description="First day of a future reservation, which has no VMs before that day.",
        examples=["2026-12-01"],
    )
    ends: Day | None = Field(
        default=None,
        description="Last day of a future reservation; after that day Google stops the VMs.",
        examples=["2027-02-28"],
    )

    def conflicts(self) -> Iterator[Problem]:
        """Yield a problem for each combination of fields that is not allowed."""
        of_one = sorted({"project", "block", "sub_block", "chips", "starts", "ends"} & self.model_fields_set)
        if self.any and of_one:
            yield Problem(
                ("name",),
                f"'any' means any open reservation, so it does not support {', '.join(of_one)}",
                allowed="only any, or a name",
                nearest="any",
            )
        if self.sub_block and not self.block:
            yield Problem(("sub_block",), "needs `block`, which contains the sub-block", allowed="block and sub_block")
        if self.starts and self.ends and self.ends < self.starts:
            yield Problem(
                ("ends",), f"{self.ends} is before starts", allowed=f"{self.starts} or later", nearest=self.starts
            )

    @property
    def any(self) -> bool:
        """Whether any open reservation may be used."""
        return self.name == ANY

    @property
    def affinity(self) -> str:
        """The reservation affinity in GKE's form."""
        return "ANY_RESERVATION" if self.any else "SPECIFIC_RESERVATION"

    @property
    def path(self) -> str | None:
        """The reservation in GKE's form, ``[projects/P/reservations/]R[/reservationBlocks/B...]``; None for any."""
        if self.any:
            return None
        return (
            (f"projects/{self.project}/reservations/" if self.project else "")
            + self.name
            + (f"/reservationBlocks/{self.block}" if self.block else "")
            + (f"/reservationSubBlocks/{self.sub_block}" if self.sub_block else "")
        )


_FULL_NAME = re.compile(
    r"(projects/(?P<project>[^/]+)/(zones/[^/]+/)?reservations/)?(?P<name>[^/]+)"
    r"(/reservationBlocks/(?P<block>[^/]+)(/reservationSubBlocks/(?P<sub_block>[^/]+))?)?"
)


def _reservation(value: Any) -> Any:
    """Return the fields of a reservation. If the value is a string, it is the reservation's name."""
    if not isinstance(value, str):
        return value
    full = _FULL_NAME.fullmatch(value) if "/" in value else None
    if full:
        keys = ("name", "project", "block", "sub_block")
        fields = ", ".join(f"{key}: {full[key]}" for key in keys if full[key])
        context = {"allowed": "its name, or its name with project, block and sub_block", "nearest": f"{{{fields}}}"}
        raise PydanticCustomError("malformed", f"{value!r} is a full resource name", context)
    return {"name": ANY if value == "any" else value}


ReservationRef = Annotated[
    ReservationSpec,
    BeforeValidator(
        _reservation,
        json_schema_input_type=ReservationName | ReservationSpec,
    ),
]


def reservation_conflicts(capacity: Capacity, reservation: ReservationSpec | None) -> Iterator[Problem]:
    """Yield a problem if another provisioning model has a reservation, or if reserved VMs have none."""
    if capacity == "reservation" and reservation is None:
        yield Problem(
            ("capacity",),
            "is reservation, but the field `reservation` is missing",
            allowed="the additional field reservation: NAME",
        )
    if capacity != "reservation" and reservation is not None:
        message = f"capacity {capacity} does not use a reservation"
        allowed = "capacity: reservation, or no reservation"
        yield Problem(("reservation",), message, allowed=allowed, nearest="capacity: reservation")
