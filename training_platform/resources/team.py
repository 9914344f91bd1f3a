"""The resources of a team stack that rules look at, as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.names import declared_name
from training_platform.config.pools import Flavor
from training_platform.resources.declared import Declared, ModelPlan
from training_platform.resources.monitoring import budget_resources, stack_budget
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.queues import queue_object
from training_platform.resources.scope import team_scope
from training_platform.resources.storage import team_bucket, team_secret
from training_platform.resources.vertex import persistent_resource, tensorboard, workbench


def team_resources(team: Team, environment: Environment, flavors: Mapping[str, Mapping[str, Flavor]]) -> list[Declared]:
    """Return the resources of a team; ``flavors`` are those of its environment's clusters, by cluster and name."""
    scope, plan = team_scope(team, environment), ModelPlan()
    for key, bucket in team.buckets.items():
        plan(team_bucket(key, bucket, scope))
    if budget := stack_budget(team.budget, environment):
        budget_resources(*budget, scope, plan)
    for key in team.secrets:
        plan(team_secret(key, scope))
    for cluster in team.shares:
        plan(queue_object(f"{declared_name('shares', cluster)}-queues", team, cluster, flavors[cluster], scope))
    for key, resource in team.vertex.persistent_resources.items():
        plan(persistent_resource(key, resource, scope))
    for region in team.vertex.tensorboards:
        plan(tensorboard(region, scope))
    for key, instance in team.vertex.workbench.items():
        plan(workbench(key, instance, scope, UNKNOWN, UNKNOWN))
    return plan.resources
