"""Ray clusters of Vertex AI, which the released provider cannot make: a dynamic provider of our own.

The state keeps no code of it: only where its class is, which the plugin imports from the checkout. So this module and
the class keep their names as long as a stack has a Ray cluster; a test holds them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pulumi
from pulumi import dynamic

from modules.vertex.ray_requests import RayClusterError, RayClusters, settings
from training_platform.resources.declared import wire
from training_platform.resources.planned import PROVIDER_CODE
from training_platform.resources.vertex.ray_cluster import RAY_COMPUTED

Json = dict[str, Any]
_PLACE = ("project", "location", "name")  # they stand in a request's path
_POOLS = "resourcePools"


class RayProvider(dynamic.ResourceProvider):
    """Creates, reads, resizes and deletes persistent resources that run Ray; another change replaces them."""

    serialize_as_secret_always = False  # the place of a class is no secret

    def configure(self, req: dynamic.ConfigureRequest) -> None:
        """Take the stack's settings of the gcp provider."""
        self._clusters = RayClusters(settings(req.config.get))

    def diff(self, _id: str, _olds: Json, _news: Json) -> dynamic.DiffResult:
        """Return whether something changes, and which inputs replace the resource."""
        old, new = _declared(_olds), _declared(_news)
        changed = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
        resized = _POOLS in changed and _sizeless(old) == _sizeless(new)
        replaces = [key for key in changed if not (key == _POOLS and resized)]
        return dynamic.DiffResult(changes=bool(changed), replaces=replaces, delete_before_replace=True)

    def create(self, props: Json) -> dynamic.CreateResult:
        """Create a resource, or take the same one that is there."""
        name = "projects/{project}/locations/{location}/persistentResources/{name}".format_map(props)
        body = {key: value for key, value in _declared(props).items() if key not in _PLACE}
        with _in_one_sentence():
            return dynamic.CreateResult(name, _state(props, self._clusters.create(name, body)))

    def read(self, id_: str, props: Json) -> dynamic.ReadResult:
        """Read how many VMs its pools have: the API changes nothing else of it."""
        with _in_one_sentence():
            found = self._clusters.get(id_)
        if found is None:
            return dynamic.ReadResult("", {})
        inputs = {**_declared(props), _POOLS: _sized(props[_POOLS], found[_POOLS])}
        return dynamic.ReadResult(id_, _state(inputs, found), inputs)

    def update(self, _id: str, _olds: Json, _news: Json) -> dynamic.UpdateResult:
        """Change how many VMs its pools have."""
        with _in_one_sentence():
            return dynamic.UpdateResult(_state(_news, self._clusters.resize(_id, _news[_POOLS])))

    def delete(self, _id: str, _props: Json) -> None:
        """Delete it, and wait until its name is free."""
        with _in_one_sentence():
            self._clusters.delete(_id)


class RayCluster(dynamic.Resource, module="vertex", name="RayCluster"):
    """A persistent resource that runs Ray; inputs are the API's fields as Python spells them."""

    def __init__(self, resource_name: str, opts: pulumi.ResourceOptions | None = None, **inputs: Any) -> None:
        super().__init__(RayProvider(), resource_name, wire(inputs), opts)


def _declared(props: Json) -> Json:
    return {key: value for key, value in props.items() if key not in (*RAY_COMPUTED, PROVIDER_CODE)}


def _state(props: Json, found: Json) -> Json:
    return _declared(props) | {key: found[key] for key in RAY_COMPUTED if key in found}


def _sizeless(props: Json) -> list[Json]:
    pools = props.get(_POOLS, [])
    return [{key: value for key, value in pool.items() if key != "replicaCount"} for pool in pools]


def _sized(declared: list[Json], found: list[Json]) -> list[Json]:
    """Return pools with the sizes that they have, but for those of the autoscaler."""
    sizes = {pool["id"]: pool.get("replicaCount", "0") for pool in found}
    return [
        {**pool, "replicaCount": sizes.get(pool["id"], "0")} if "replicaCount" in pool else pool for pool in declared
    ]


@contextmanager
def _in_one_sentence() -> Iterator[None]:
    """Keep what Vertex AI refuses to a sentence: the plugin would print where in this program it was raised."""
    try:
        yield
    except RayClusterError as error:
        sys.tracebacklimit = 0
        raise RayClusterError(str(error)) from None
