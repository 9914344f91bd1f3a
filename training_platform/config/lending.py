"""What no team was promised of an environment's flavors, and an environment that lends it to all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from training_platform.config.spec.environment import Environment
from training_platform.config.spec.queues import ROOT_COHORT, CohortSpec, Share
from training_platform.config.workspace import Workspace

Amounts = dict[str, dict[str, int]]  # chips or GPUs by cluster and flavor


def unpromised(workspace: Workspace, name: str) -> Amounts:
    """Return what neither a team nor a cohort of an environment was promised, in whole slices."""
    environment = _environment(workspace, name)
    promised = Counter[tuple[str, str]]()
    for shares in _promises(workspace, name):
        promised.update({(cluster, flavor): each.nominal_quota for cluster, flavor, each in _flat(shares)})
    left: Amounts = {}
    for cluster in environment.clusters if environment else ():
        for flavor in workspace.flavors(name, cluster).values():
            if whole := flavor.in_whole_slices(flavor.queue_chips - promised[cluster, flavor.name]):
                left.setdefault(cluster, {})[flavor.name] = whole
    return left


def lending(workspace: Workspace, name: str) -> Environment:
    """Return an environment as it is deployed: the cohort over all others has what is lent, beside quota of its own."""
    environment = workspace.stacks[name].environment
    assert environment is not None  # asked of environments
    if not environment.lend_unpromised:
        return environment
    above = environment.cohorts.get(ROOT_COHORT, CohortSpec())
    shares = {cluster: dict(own) for cluster, own in above.shares.items()}
    for cluster, lent in unpromised(workspace, name).items():
        own = shares.setdefault(cluster, {})
        for flavor, amount in lent.items():
            before = own.get(flavor, Share(nominal_quota=0))
            own[flavor] = before.model_copy(update={"nominal_quota": before.nominal_quota + amount})
    cohorts = {**environment.cohorts, ROOT_COHORT: above.model_copy(update={"shares": shares})}
    return environment.model_copy(update={"cohorts": cohorts})


def _environment(workspace: Workspace, name: str) -> Environment | None:
    stack = workspace.stacks.get(name)
    return stack.environment if stack else None


def _promises(workspace: Workspace, name: str) -> Iterator[Mapping[str, Mapping[str, Share]]]:
    environment = _environment(workspace, name)
    yield from (cohort.shares for cohort in environment.cohorts.values()) if environment else ()
    yield from (team.shares for _, team, _ in workspace.teams() if team.environment == name)


def _flat(shares: Mapping[str, Mapping[str, Share]]) -> Iterator[tuple[str, str, Share]]:
    for cluster, flavors in shares.items():
        for flavor, share in flavors.items():
            yield cluster, flavor, share
