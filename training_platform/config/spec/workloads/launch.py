"""An agent of W&B Launch, which starts what people put into a team's queues in Weights & Biases."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from training_platform.config.reading.section import Section, unique
from training_platform.config.reading.texts import Image, form

AGENT_BEGINNING = "wandb-"  # of the namespaces of agents, and the team's name
Entity = Annotated[str, form(r"[A-Za-z0-9][\w.-]*", "an entity of W&B", "the name of a team or user there")]
QueueNames = Annotated[tuple[str, ...], AfterValidator(unique), Field(min_length=1)]
Address = Annotated[str, form(r"https://[\w.-]+(:\d+)?(/\S*)?", "an address of a W&B server", "https://HOST")]


class LaunchSpec(Section):
    """An agent of W&B Launch beside a team's namespace, in which its jobs wait in the team's queue."""

    entity: Entity = Field(description="Team or user of W&B that the queues belong to.", examples=["example-vision"])
    queues: QueueNames = Field(description="Queues of W&B Launch that it takes jobs from.", examples=[["gpus"]])
    max_jobs: int = Field(default=10, ge=1, description="Most jobs at a time, those that wait for quota among them.")
    base_url: Address = Field(default="https://api.wandb.ai", description="Address of the W&B server.")
    image: Image | None = Field(
        default=None,
        description="Container image of the agent, such as one of a mirror; default: the catalogue's.",
        examples=["us-docker.pkg.dev/example-train/images/launch-agent:0.17.3"],
    )
