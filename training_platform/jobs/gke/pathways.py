"""A job of Pathways: one program, on a VM without accelerators, that directs all slices as if they were its own.

Beside the program, in its pod, run the resource manager, which knows the slices, and the proxy, which JAX speaks to.
The JobSet is what google/pathways-job (c0cc759, internal/controller) makes of a PathwaysJob, read 2026-11-22, but for
what teams' namespaces refuse: it mounts nothing of the VM, and is on the host's network only where the job says so.
None of it was seen to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from training_platform.catalog import IMAGES
from training_platform.catalog.reading import table
from training_platform.config.expansion.pools import HEADS_NAME, HEADS_TAINT
from training_platform.jobs.container import container
from training_platform.jobs.gke.layout import gke_target, shape
from training_platform.jobs.gke.pod import (
    CONTAINER,
    bare_pod,
    job_spec,
    placement,
    platform_variables,
    pod_template,
    resources,
)
from training_platform.jobs.gke.volumes import volumes
from training_platform.jobs.outputs import output_uri
from training_platform.jobs.resolve import ResolvedJob
from training_platform.resources.kueue.objects import resource_flavor

Json = dict[str, Any]
HEAD: Final = "head"  # the replicated job with the program
_PROXY = 29000  # port
_ALONE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}
_TEXTS: Json = table(__file__, "pathways.yaml")
VERSIONS: Final[Mapping[str, str]] = _TEXTS["versions"]
"""What Pathways calls the TPUs of a machine type."""
OWN_LIMITS: Final = tuple(_TEXTS[name]["resources"]["limits"] for name in ("manager", "proxy"))
"""CPUs and GB of memory that the manager and the proxy take of the head's VM."""


def images(job: ResolvedJob) -> dict[str, str]:
    """Return the images of the resource manager and the workers, and of the proxy, by name of the catalogue."""
    every = {**IMAGES, **job.environment.node_images}
    return {name: every[name] for name in ("node-pathways", "node-pathways-proxy")}


def head(job: ResolvedJob, slices: int) -> dict[str, Any]:
    """Return the replicated job of the one pod with the job's own program, which has a VM for itself."""
    gke, _ = gke_target(job)
    storage, (key, value) = volumes(job, 1), HEADS_TAINT
    tolerations = [{"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}]
    pod = {
        **bare_pod(gke, {"cloud.google.com/gke-nodepool": HEADS_NAME}, tolerations),
        "initContainers": [_container("manager", job, slices), _container("proxy", job, slices)],
        "containers": [_program(job, storage.mounts)],
        **({"volumes": storage.volumes} if storage.volumes else {}),
    }
    template = {"metadata": {"annotations": dict(_ALONE)}, "spec": job_spec(1, pod_template(storage.annotations, pod))}
    return {"name": HEAD, "replicas": 1, "template": template}


def worker_template(job: ResolvedJob, slices: int, hosts: int) -> dict[str, Any]:
    """Return the Job template of a slice, whose VMs do what the head says."""
    gke, flavor = gke_target(job)
    nodes = resource_flavor(flavor)
    pod = {
        **bare_pod(gke, nodes["nodeLabels"], nodes["tolerations"]),
        "containers": [_container("worker", job, slices)],
        "volumes": [{"name": "shared-tmp", "emptyDir": {}}],
    }
    return {"spec": job_spec(hosts, pod_template(placement(gke, flavor, hosts), pod))}


def _program(job: ResolvedJob, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    proxy = {"JAX_PLATFORMS": "proxy", "JAX_BACKEND_TARGET": f"grpc://{address(job)}:{_PROXY}"}
    variables = {"PATHWAYS_HEAD": address(job), "XCLOUD_ENVIRONMENT": "GCP", **proxy, **platform_variables(job)}
    return {
        "name": CONTAINER,
        **container(job, "image", variables),
        "resources": resources(job, {}),
        **({"volumeMounts": mounts} if mounts else {}),
    }


def _container(name: str, job: ResolvedJob, slices: int) -> Json:
    """Return the ``manager``, the ``proxy`` or the ``worker``."""
    _, flavor = gke_target(job)
    pool = shape(flavor)
    filled: Json = _filled(
        _TEXTS[name],
        {
            **images(job),
            "job": job.name,
            "address": address(job),
            "scratch": f"{output_uri(job)}/pathways",
            "slices": slices,
            "instance": f"{VERSIONS.get(pool.machine.name)}:{flavor.topology}",
            "resource": flavor.accelerator.resource,
            "chips": pool.machine.chips,
        },
    )
    return filled


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        return {_filled(key, values): _filled(each, values) for key, each in part.items()}
    if isinstance(part, list):
        return [_filled(each, values) for each in part]
    return part.format_map(values) if isinstance(part, str) else part


def address(job: ResolvedJob) -> str:
    """Return the name by which all pods reach the head."""
    return f"{job.name}-{HEAD}-0-0.{job.name}"
