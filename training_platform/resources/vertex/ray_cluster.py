"""Ray on the machines that Vertex AI keeps for a team: a persistent resource of which the API makes a Ray cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from training_platform.config.model.team import PersistentResourceSpec, RaySpec
from training_platform.resources.cloud_names import jobs_account_email
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import RAY_CLUSTER
from training_platform.resources.scope import Scope

# The Python of Google's images of Ray, by Ray's version, and the places that have the images. Sources: vertex_ray of
# python-aiplatform (0e1efc3), and Vertex AI docs, prebuilt containers, read 2026-11-22.
_PYTHON: Final = {"2.33": "310", "2.42": "310", "2.47": "311"}
_PLACES: Final = ("us", "europe", "asia")
# Where the class of the provider is, as a state keeps it: what dill makes of an instance, the same in every run.
RAY_PROVIDER: Final = "gASVMQAAAAAAAACMGm1vZHVsZXMudmVydGV4LnJheV9jbHVzdGVylIwLUmF5UHJvdmlkZXKUk5QpgZQu"
RAY_COMPUTED: Final = ("resourceRuntime",)  # where Ray's head and its dashboard are
GOOGLES_IMAGE: Final = re.compile(r"[a-z]+-docker\.pkg\.dev/vertex-ai/training/ray-[cg]pu\.(\d+-\d+)\.py\d+:latest")


def ray_cluster(
    name: str, inputs: Mapping[str, Any], spec: PersistentResourceSpec, ray: RaySpec, scope: Scope
) -> Declared:
    """Return a Ray cluster; ``inputs`` are those of a persistent resource, which the API has under the same names."""
    runtime = {
        # Ray has no accounts of jobs: it needs one for all (ServiceAccountSpec of the API's document, read 2026-11-22).
        "service_account_spec": {"enable_custom_service_account": True, "service_account": jobs_account_email(scope)},
        "ray_spec": {
            "head_node_resource_pool_id": ray.head_pool,
            "resource_pool_images": {
                pool: ray.image or _image(ray.version, spec.region, each.machine.kind)
                for pool, each in spec.pools.items()
            },
            "ray_metric_spec": {"disabled": not ray.metrics},
            "ray_logs_spec": {"disabled": not ray.logs},
        },
    }
    return Declared(
        type=RAY_CLUSTER,
        name=name,
        inputs={
            **inputs,
            "resource_pools": [_unsized(pool) for pool in inputs["resource_pools"]],
            "resource_runtime_spec": runtime,
        },
        # A replacement ends what runs on it, and its machines may not be available again.
        options=Options(protect=scope.deletion_protection and spec.deletion_protection, delete_before_replace=True),
    )


def _image(version: str, region: str, kind: str) -> str:
    place = region.partition("-")[0]
    image = f"ray-{'gpu' if kind == 'gpu' else 'cpu'}.{version.replace('.', '-')}.py{_PYTHON[version]}"
    return f"{place if place in _PLACES else 'us'}-docker.pkg.dev/vertex-ai/training/{image}:latest"


def _unsized(pool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a pool without its number of VMs, where the autoscaler says it."""
    return {**pool, "replica_count": None} if pool["autoscaling_spec"] else pool
