"""What stands in the way of a thing with a name of its own, field by field, and how a stack uses it all the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from training_platform.adopt.sections.clusters import cluster_section
from training_platform.adopt.sections.values import Inexpressible, Json, at
from training_platform.clients.project_contents import Contents
from training_platform.resources import register
from training_platform.resources.scope import account_id

_DEFAULT = "default"  # the account and the network of a body that names none


def foreign_cluster(stack: str, path: str, body: Json, pools: Mapping[str, Json], contents: Contents) -> str:
    """Return every field for which a stack has another value than a cluster of another name, and what can be said."""
    fields = [
        *_named(stack, path),
        *_network(stack, str(at(body, "networkConfig.network") or body.get("network") or _DEFAULT)),
        *_accounts(stack, contents.project, pools),
    ]
    try:
        _, reasons = cluster_section(body, pools, contents.of(register.SUBNETWORK))
        fields += [f"nodePools/{name}: {why}" for name, why in reasons.items()]
    except Inexpressible as error:
        fields.append(str(error))
    name = path.rpartition("/")[2]
    use = f"clusters: {{KEY: {{location: {body.get('location')}, existing: {name}}}}}"
    return f"{'; '.join(fields)}. As somebody else's, with pools and queues of the stack in it: {use}"


def foreign_instance(stack: str, path: str, body: Json) -> str:
    """Return every field for which a stack has another value than a Filestore instance of another name."""
    network = str((body.get("networks") or [{}])[0].get("network") or _DEFAULT)
    return "; ".join([*_named(stack, path), *_network(stack, network)])


def foreign_bucket(start: str, name: str, body: Json) -> str:
    """Return what a bucket of no team would have to be called, and how teams read it as it is."""
    location = str(body.get("location", "")).lower()
    use = f"data_sets: {{KEY: {{bucket: {{name: {name}, location: {location}}}}}}}"
    return f"name is {name}, and a team's is {start}TEAM-KEY. For reading it as it is: {use}"


def _named(stack: str, path: str) -> Iterator[str]:
    yield f"name is {path.rpartition('/')[2]}, and a stack's is {stack}-KEY with a key of at most 30 characters"


def _network(stack: str, network: str) -> Iterator[str]:
    short = network.rpartition("/")[2]
    if short != f"{stack}-network":
        use = f"network: {{name: {short}}}"
        yield f"network is {short}, and a stack's own is {stack}-network (for one that is there: {use})"


def _accounts(stack: str, project: str, pools: Mapping[str, Json]) -> Iterator[str]:
    ours = f"{account_id(stack, 'gke-nodes')}@{project}.iam.gserviceaccount.com"
    for name, pool in pools.items():
        account = at(pool, "config.serviceAccount") or _DEFAULT
        if account != ours:
            yield f"nodePools/{name}: config.serviceAccount is {account}, and a stack's is {ours}"
