"""Teams with shares, and their ClusterQueues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_platform.config.expansion import Flavor
from training_platform.config.model.queues import Share
from training_platform.config.model.team import Team
from training_platform.resources import kueue


def cluster_queue(
    name: str, shares: Mapping[str, Share], flavors: Mapping[str, Flavor], **fields: object
) -> dict[str, Any]:
    """Return the ClusterQueue of a team with these shares in the cluster ``main``."""
    return kueue.cluster_queue(team_of(name, {"main": dict(shares)}, **fields), "main", flavors)


def team_of(name: str, shares: Mapping[str, Mapping[str, Share]], **fields: object) -> Team:
    """Return a team with these shares by cluster; ``fields`` are those of its stack file."""
    whole = {"environment": "prod", "name": name, "members": ("group:a@example.com",), "shares": shares, **fields}
    return Team.model_validate(whole)
