"""What model servers of a team refer to: cluster, flavor, secrets and priority, some of them of its environment."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.rejection import RULE
from training_platform.config.reading.section import enumeration
from training_platform.config.spec.environment import Environment
from training_platform.config.spec.stack import Stack
from training_platform.config.spec.team import Team
from training_platform.config.spec.workloads.serving import SERVING_PRIORITY, ServerSpec


def server_references(stack: Stack, team: Team, home: Environment) -> Iterator[Finding]:
    """Find what servers name and is not there, and clusters whose Kueue does not count pods."""
    for cluster, servers in team.serving.items():
        path: Path = ("serving", cluster)
        if cluster not in team.shares or cluster not in home.clusters:
            yield stack.dangling(path, cluster, "cluster that the team has a share of", team.shares)
            continue
        if not home.clusters[cluster].serving:
            message = f"{cluster} of {team.environment} is not set up for model servers"
            others = [each for each, spec in home.clusters.items() if spec.serving and each in team.shares]
            allowed = enumeration(others) or f"a cluster with serving: true in {team.environment}"
            yield stack.finding(RULE, path, message, allowed=allowed, nearest=min(others, default=None))
        for name, server in servers.items():
            for where, value, what, names in _references(cluster, server, team, home):
                if value not in names:
                    yield stack.dangling((*path, name, *where), value, what, names)


def _references(
    cluster: str, server: ServerSpec, team: Team, home: Environment
) -> Iterator[tuple[Path, str, str, Collection[str]]]:
    """Yield field, value, what it should be, and all that there are."""
    what = f"flavor that the team has a share of in {cluster}"
    yield ("flavor",), server.flavor, what, team.shares[cluster]
    for variable, secret in server.secrets.items():
        yield ("secrets", variable), secret.partition(":")[0], "secret of the team", team.secrets
    yield ("priority",), server.priority, f"priority of {team.environment}", {SERVING_PRIORITY, *home.priorities}
