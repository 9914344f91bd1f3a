"""The quota of a job's team in its cluster: for the job's flavor, including borrowed quota, and for vCPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from training_platform.config.lent_quota import lending
from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import Share
from training_platform.parts.jobs.gke.gke_job import GkeJob


def reach(job: GkeJob) -> tuple[int, float]:
    """Return the team's nominal quota of the job's flavor, and the maximum that it can have, in chips or GPUs.

    A team borrows quota that others lend, up to its borrowing limit. Without this limit, the maximum is ``inf`` if some
    stack files are unreadable, since they may belong to other teams.
    """
    share = job.team.shares[job.gke.cluster][job.flavor.name]
    lending_environment = lending(job.workspace, job.team.environment)
    lent: float = sum(map(_lent, _other_shares(job, lending_environment)))
    if job.workspace.uncounted:
        lent = math.inf
    borrowed = lent if share.borrowing_limit is None else min(lent, share.borrowing_limit)
    return share.nominal_quota, share.nominal_quota + borrowed


def larger_share(job: GkeJob, needed: int) -> str:
    """Return which value to raise for the needed chips: the team's quota, its borrowing limit, or the pools."""
    path = ("shares", job.gke.cluster, job.flavor.name)
    share = job.team.shares[job.gke.cluster][job.flavor.name]
    other_shares = list(_other_shares(job, job.environment))
    if needed <= job.flavor.queue_chips - sum(other.nominal_quota for other in other_shares):
        return f"nominal_quota: {needed} at {job.stack.place(path)}"
    if needed <= share.nominal_quota + sum(map(_lent, other_shares)):
        return f"borrowing_limit: {needed - share.nominal_quota} at {job.stack.place(path)}"
    return f"larger pools of {job.flavor.name} ({', '.join(pool.name for pool in job.flavor.pools)})"


def _other_shares(job: GkeJob, environment: Environment) -> Iterator[Share]:
    """Yield the shares that other teams and the environment's cohorts have of the job's flavor."""
    shares_by_holder = [cohort.shares for cohort in environment.cohorts.values()]
    for _, team, _ in job.workspace.teams():
        if team.environment == job.team.environment and team.name != job.team.name:
            shares_by_holder.append(team.shares)
    for shares in shares_by_holder:
        share = shares.get(job.gke.cluster, {}).get(job.flavor.name)
        if share is not None:
            yield share


def _lent(share: Share) -> int:
    if share.lending_limit is None:
        return share.nominal_quota
    return min(share.lending_limit, share.nominal_quota)


def cpu_quota(job: GkeJob) -> int:
    """Return the total vCPUs that the team's pods may request in the job's cluster."""
    from training_platform.resources.tenancy import resource_quota  # noqa: PLC0415 # few jobs need it

    flavors = job.workspace.flavors(job.team.environment, job.gke.cluster)
    shares = {name: share for name, share in job.team.shares[job.gke.cluster].items() if name in flavors}
    return int(resource_quota(shares, flavors)["requests.cpu"])
