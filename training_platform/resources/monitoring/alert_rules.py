"""What Cloud Monitoring watches, as typed data; the rules themselves are in ``data/alerts.yaml``. No Pulumi."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Literal

from pydantic import Field, TypeAdapter

from training_platform.catalog.reading import read_file
from training_platform.config.reading.section import Section

Source = Literal["system", "kueue", "jobset", "jobset-controller", "pod", "dcgm", "filestore", "quota"]
"""A source of series, which ``data/metrics.yaml`` says the metrics of."""
UNTRIED = "The threshold is a first guess that no live data has confirmed."
_FILE = Path(__file__).parent / "data" / "alerts.yaml"


class AlertRule(Section):
    """A PromQL expression that is true of what somebody has to look at.

    ``expr`` names clusters as ``${clusters}``, or as ``${cluster}`` where ``each_cluster`` is set, and their project as
    ``${project}``. ``for_seconds`` says how long it has to be true. ``needs`` is the source of its series, ``source``
    ours for what they mean.
    """

    title: str = Field(min_length=1, max_length=100)
    severity: Literal["CRITICAL", "ERROR", "WARNING"]
    needs: Source
    each_cluster: bool = False
    for_seconds: int = Field(ge=0, multiple_of=30)
    expr: str = Field(min_length=1)
    meaning: str = Field(min_length=1)
    action: str = Field(min_length=1)
    source: str = Field(min_length=1)

    def query(self, clusters: Sequence[str], project: str) -> str:
        """Return the expression for clusters by their names in GKE, of which there is at least one."""
        template = Template(self.expr)
        if not self.each_cluster:
            return template.substitute(clusters="|".join(clusters), project=project)
        return " or ".join(template.substitute(cluster=cluster) for cluster in clusters)

    @property
    def documentation(self) -> str:
        """What the person who is told reads, as Markdown."""
        return f"{self.meaning}\n\n**What to do:** {self.action}\n\n{UNTRIED}"


@cache
def alert_rules() -> Mapping[str, AlertRule]:
    """Return every rule by its name, read once. Raises pydantic.ValidationError where a rule is not as it should be."""
    return TypeAdapter(dict[str, AlertRule]).validate_python(read_file(_FILE)["rules"])
