"""A job of Pathways: one program, on a VM without accelerators, that directs all slices as if they were its own.

Beside the program, in its pod, run the resource manager, which knows the slices, and the proxy, which JAX speaks to.
The JobSet is what google/pathways-job (c0cc759, internal/controller) makes of a PathwaysJob, read 2026-11-22, but for
what teams' namespaces refuse: it mounts nothing of the VM, and is on the host's network only where the job says so.
None of it was seen to run.
"""

from __future__ import annotations

from typing import Any, Final

from training_platform.catalog import IMAGES
from training_platform.config.expansion.pools import HEADS_NAME, HEADS_TAINT
from training_platform.jobs.container import container, named
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

HEAD: Final = "head"  # the replicated job with the program
VERSIONS: Final = {
    "ct4p-hightpu-4t": "tpuv4",
    "ct5lp-hightpu-4t": "tpuv5e",
    "ct5lp-hightpu-8t": "tpuv5e1t",
    "ct5p-hightpu-4t": "tpuv5",
    "ct6e-standard-4t": "tpuv6e",
    "ct6e-standard-8t": "tpuv6e1t",
    "tpu7x-standard-4t": "tpu7x",
}
"""What Pathways calls the TPUs of a machine type."""
MANAGER_LIMITS: Final = {"cpu": "8", "memory": "32G"}
PROXY_LIMITS: Final = {"cpu": "16", "memory": "100G"}

_PROXY, _MANAGER, _WORKER = 29000, 29001, 29005  # ports
_WORKER_PORTS = (_WORKER, 29006, 8471, 8080)
_ALONE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}
_TMP = {"name": "shared-tmp", "mountPath": "/tmp"}  # noqa: S108 # the pod's own


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
        "initContainers": [_manager(job, slices), _proxy(job)],
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
        "containers": [_worker(job, slices)],
        "volumes": [{"name": _TMP["name"], "emptyDir": {}}],
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


def _manager(job: ResolvedJob, slices: int) -> dict[str, Any]:
    _, flavor = gke_target(job)
    instance = f"{VERSIONS.get(shape(flavor).machine.name)}:{flavor.topology}"
    args = ["--node_type=resource_manager", f"--instance_count={slices}", f"--instance_type={instance}"]
    variables = {**_names(job, HEAD), "HOST_ADDRESS": address(job), "TPU_SKIP_MDS_QUERY": "true"}
    return {
        **_sidecar("pathways-rm", images(job)["node-pathways"], MANAGER_LIMITS, (_MANAGER, 29002)),
        "args": [f"--server_port={_MANAGER}", _scratch(job), *args],
        "env": named(variables),
    }


def _proxy(job: ResolvedJob) -> dict[str, Any]:
    return {
        **_sidecar("pathways-proxy", images(job)["node-pathways-proxy"], PROXY_LIMITS, (_PROXY,)),
        "args": [f"--server_port={_PROXY}", f"--resource_manager_address={address(job)}:{_MANAGER}", _scratch(job)],
        "env": named({"PATHWAYS_HEAD": address(job)}),
    }


def _sidecar(name: str, image: str, limits: dict[str, str], ports: tuple[int, ...]) -> dict[str, Any]:
    """Return a container that starts before the program and ends after it."""
    return {
        "name": name,
        "image": image,
        "restartPolicy": "Always",
        "ports": [{"containerPort": port} for port in ports],
        "resources": {"limits": dict(limits), "requests": dict(limits)},
    }


def _worker(job: ResolvedJob, slices: int) -> dict[str, Any]:
    _, flavor = gke_target(job)
    chips = {flavor.accelerator.resource: str(shape(flavor).machine.chips)}
    variables = {
        **_names(job, "slice"),
        "PATHWAYS_HEAD": address(job),
        "MEGASCALE_COORDINATOR_ADDRESS": address(job),
        "MEGASCALE_NUM_SLICES": str(slices),
        "XCLOUD_ENVIRONMENT": "GCP",
    }
    number = {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/job-index']"}}
    manager = f"--resource_manager_address={address(job)}:{_MANAGER}"
    return {
        "name": "pathways-worker",
        "image": images(job)["node-pathways"],
        "args": [f"--server_port={_WORKER}", manager, _scratch(job)],
        "env": [*named(variables), {"name": "MEGASCALE_SLICE_ID", "valueFrom": number}],
        "ports": [{"containerPort": port} for port in _WORKER_PORTS],
        "resources": {"limits": chips, "requests": dict(chips)},
        "volumeMounts": [dict(_TMP)],
    }


def address(job: ResolvedJob) -> str:
    """Return the name by which all pods reach the head."""
    return f"{job.name}-{HEAD}-0-0.{job.name}"


def _names(job: ResolvedJob, role: str) -> dict[str, str]:
    return {"JOBSET_NAME": job.name, "REPLICATED_JOB_NAME": role}


def _scratch(job: ResolvedJob) -> str:
    return f"--gcs_scratch_location={output_uri(job)}/pathways"
