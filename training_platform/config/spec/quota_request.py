"""Limits: those that an environment requests from Google Cloud, and of money, at which people are told."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from training_platform.config.reading.section import NOTHING, QUOTA_ID, REQUEST_NAME, SERVICE, Email, Section, unique

LEFT_TO_GOOGLE = ("user", "resource")
"""Dimensions that a preference always holds for all values of. Source: pulumi-gcp 10.2.0, SQuotaPreference."""


def _no_foreign_dimension(value: dict[str, str]) -> dict[str, str]:
    if foreign := sorted(set(value) & set(LEFT_TO_GOOGLE)):
        context = {"allowed": "region, zone, and the quota's own, such as gpu_family", "nearest": None}
        raise PydanticCustomError("dimension", f"a limit cannot be requested for one {foreign[0]}", context)
    return value


RequestName = Annotated[str, Field(pattern=REQUEST_NAME)]
"""The key of a request: quota ids are longer than other names of a stack file."""
PLACES = ("region", "zone")


class QuotaRequest(Section):
    """A quota limit to request, as the Cloud Quotas API spells it; ``quota plan`` prints those that are needed.

    Checks count it once Google has granted it and a snapshot shows it. It cannot be withdrawn: if you remove it, Google
    keeps the preference and the limit.
    """

    service: str = Field(pattern=SERVICE, description="Service of the quota.", examples=["compute.googleapis.com"])
    quota_id: str = Field(pattern=QUOTA_ID, description="Quota id.", examples=["CPUS-per-project-region"])
    dimensions: Annotated[dict[str, str], AfterValidator(_no_foreign_dimension)] = Field(
        default=NOTHING,
        description="region or zone, and other dimensions of the quota; none for the whole project.",
        examples=[{"region": "us-central1", "gpu_family": "NVIDIA_H100"}],
    )
    value: int = Field(
        ge=-1, description="The limit to request, in the unit of the quota; -1 is unlimited.", examples=[64]
    )
    justification: str = Field(
        min_length=1, description="Reason, for Google's reviewers.", examples=["Pretraining of the vision models"]
    )
    contact: Email = Field(
        description="E-mail address for questions: an account that may change the quotas of the project."
    )
    ignore_safety_check: Literal["QUOTA_DECREASE_BELOW_USAGE", "QUOTA_DECREASE_PERCENTAGE_TOO_HIGH"] | None = Field(
        default=None,
        description="Safety check to skip for a decrease; default: none, and Google refuses an unsafe decrease.",
    )

    @property
    def place(self) -> str:
        """The zone or region that it is for, empty for the whole project or all places."""
        return self.dimensions.get("zone") or self.dimensions.get("region") or ""

    @property
    def other_dimensions(self) -> tuple[tuple[str, str], ...]:
        """Its dimensions without the place, in order."""
        return tuple(sorted((name, value) for name, value in self.dimensions.items() if name not in PLACES))


class BudgetSpec(Section):
    """A budget of Cloud Billing for what carries a team's or an environment's label; it tells people, no more."""

    a_month: int = Field(ge=1, description="Amount for each calendar month.", examples=[5000])
    currency: str = Field(
        default="USD",
        pattern=r"^[A-Z]{3}$",
        description="Currency of the billing account; others are refused.",
        examples=["EUR"],
    )
    alert_at_percent: Annotated[tuple[Annotated[int, Field(ge=1)], ...], AfterValidator(unique)] = Field(
        default=(50, 90, 100), min_length=1, description="Shares of the amount, in percent, at which people are told."
    )
    emails: Annotated[tuple[Email, ...], AfterValidator(unique)] = Field(
        default=(),
        max_length=5,
        description="Whom it tells, at most 5, beside the account's administrators.",
        examples=[["vision-leads@example.com"]],
    )
