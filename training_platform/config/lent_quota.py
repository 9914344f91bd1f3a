"""Capacity that is promised to no team or cohort, and the environment whose root cohort lends such capacity."""

from __future__ import annotations

from collections import Counter

from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import ROOT_COHORT, CohortSpec, Share
from training_platform.config.workspace import Workspace

Amounts = dict[str, dict[str, int]]
"""Numbers of chips or GPUs, keyed by cluster and flavor."""


def unpromised(workspace: Workspace, name: str) -> Amounts:
    """Return the capacity of an environment that is not promised to any team or cohort, in whole slices."""
    stack = workspace.stacks.get(name)
    environment = stack.environment if stack else None
    if environment is None:
        return {}
    promised = Counter[tuple[str, str]]()
    promises = [cohort.shares for cohort in environment.cohorts.values()]
    promises += [team.shares for _, team, _ in workspace.teams() if team.environment == name]
    for shares in promises:
        for cluster, by_flavor in shares.items():
            promised.update({(cluster, flavor): share.nominal_quota for flavor, share in by_flavor.items()})
    amounts: Amounts = {}
    for cluster in environment.clusters:
        for flavor in workspace.flavors(name, cluster).values():
            if whole := flavor.in_whole_slices(flavor.queue_chips - promised[cluster, flavor.name]):
                amounts.setdefault(cluster, {})[flavor.name] = whole
    return amounts


def lending(workspace: Workspace, name: str) -> Environment:
    """Return an environment as it is deployed: the capacity that it lends is added to the quota of the root cohort."""
    environment = workspace.stacks[name].environment
    assert environment is not None  # asked of environments
    if not environment.lend_unpromised:
        return environment
    above = environment.cohorts.get(ROOT_COHORT, CohortSpec())
    shares = {cluster: dict(by_flavor) for cluster, by_flavor in above.shares.items()}
    for cluster, lent in unpromised(workspace, name).items():
        cluster_shares = shares.setdefault(cluster, {})
        for flavor, amount in lent.items():
            before = cluster_shares.get(flavor, Share(nominal_quota=0))
            cluster_shares[flavor] = before.model_copy(update={"nominal_quota": before.nominal_quota + amount})
    cohorts = {**environment.cohorts, ROOT_COHORT: above.model_copy(update={"shares": shares})}
    return environment.model_copy(update={"cohorts": cohorts})
