"""Limits that an environment asks Google Cloud for, reviewed in a pull request like everything else."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from training_platform.config.reading.section import QUOTA_ID, REQUEST_NAME, SERVICE, Email, Section

LEFT_TO_GOOGLE = ("user", "resource")
"""Dimensions that a preference always holds for all values of. Source: pulumi-gcp 10.2.0, SQuotaPreference."""


def _no_foreign_dimension(value: dict[str, str]) -> dict[str, str]:
    if foreign := sorted(set(value) & set(LEFT_TO_GOOGLE)):
        context = {"allowed": "region, zone, and the quota's own, such as gpu_family", "nearest": None}
        raise PydanticCustomError("dimension", f"{foreign[0]!r} cannot be asked for by value", context)
    return value


RequestName = Annotated[str, Field(pattern=REQUEST_NAME)]
"""The key of a request: quota ids are longer than other names of a stack file."""
PLACES = ("region", "zone")


class QuotaRequest(Section):
    """A limit to ask for, as the Cloud Quotas API spells it; ``quota plan`` prints those that are needed.

    It counts as a limit only once Google has granted it and a snapshot shows it. It cannot be taken back: without it
    Google keeps the preference, and the limit stays.
    """

    service: str = Field(pattern=SERVICE, description="Such as compute.googleapis.com.")
    quota_id: str = Field(pattern=QUOTA_ID, description="Such as CPUS-per-project-region.")
    dimensions: Annotated[dict[str, str], AfterValidator(_no_foreign_dimension)] = Field(
        default={}, description="region or zone, and others that the quota has; none for the whole project."
    )
    value: int = Field(ge=-1, description="The limit to have, in the quota's own unit; -1 is unlimited.")
    justification: str = Field(min_length=1, description="Why; Google's reviewers read it.")
    contact: Email = Field(description="Whom Google asks; an account that may change the project's quotas.")
    ignore_safety_check: Literal["QUOTA_DECREASE_BELOW_USAGE", "QUOTA_DECREASE_PERCENTAGE_TOO_HIGH"] | None = Field(
        default=None, description="The check that a decrease may fail; without it Google refuses such a decrease."
    )

    @property
    def place(self) -> str:
        """The zone or region that it is for, empty for the whole project or all places."""
        return self.dimensions.get("zone") or self.dimensions.get("region") or ""

    @property
    def other_dimensions(self) -> tuple[tuple[str, str], ...]:
        """Its dimensions without the place, in order."""
        return tuple(sorted((name, value) for name, value in self.dimensions.items() if name not in PLACES))
