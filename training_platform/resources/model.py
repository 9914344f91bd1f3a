"""The resources of a stack as its plan would have them, from its file alone: no Pulumi, no program run."""

from __future__ import annotations

from training_platform.config.model.stack import Stack
from training_platform.config.workspace import Workspace, lending
from training_platform.resources.environment import environment_resources
from training_platform.resources.planned import Planned
from training_platform.resources.team import team_resources


def planned_of_model(stack: Stack, workspace: Workspace) -> list[Planned]:
    """Return a stack's resources of the types that rules read; none of them has a parent.

    A file that the model rejects has none, nor has a team whose environment is missing. A value of a deployment is
    ``UNKNOWN``, as in a plan; a test holds both equal, input by input.
    """
    home = workspace.environment_of(stack)
    if home is None or stack.section is None:
        return []
    flavors = {cluster: workspace.flavors(stack.environment_name, cluster) for cluster in home.clusters}
    resources = (
        team_resources(stack.team, home, flavors)
        if stack.team
        else environment_resources(stack.name, lending(workspace, stack.name), flavors)
    )
    return [resource.planned(stack.name) for resource in resources]
