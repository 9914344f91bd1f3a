"""A Pathways job: one program, on a VM without accelerators, that controls all slices.

The program's pod also runs the resource manager, which manages the slices, and the proxy, which JAX connects to. The
JobSet is the same that google/pathways-job (c0cc759, internal/controller) creates from a PathwaysJob, read 2026-11-22,
except for parts that teams' namespaces refuse: it mounts nothing of the VM, and uses the host's network only if the job
requests it. None of this was tested in a real cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from training_platform.catalog import IMAGES, MACHINE_TYPES
from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.config.expansion import HEADS_NAME, HEADS_TAINT
from training_platform.config.model.node_pool import POOL_LABEL
from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.container import ON_GKE, container, output_uri
from training_platform.parts.jobs.gke.gke_job import GkeJob
from training_platform.parts.jobs.gke.pod_sizes import resources
from training_platform.parts.jobs.gke.pods import (
    CONTAINER,
    bare_pod,
    job_spec,
    placement,
    platform_variables,
    pod_template,
    program_security,
    program_spec,
    pulled_image,
    volume_group,
)
from training_platform.parts.jobs.gke.volumes import volumes
from training_platform.parts.jobs.job_rules import gke_rule
from training_platform.parts.jobs.rendezvous import rendezvous
from training_platform.resources.kueue import resource_flavor

HEAD: Final = "head"  # the replicated job with the program
_PROXY = 29000  # port
_ALONE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}
_TEXTS: Json = table(__file__, "pathways.yaml")
VERSIONS: Final[Mapping[str, str]] = _TEXTS["versions"]
"""The names that Pathways uses for TPUs, keyed by machine type."""
OWN_LIMITS: Final = tuple(_TEXTS[name]["resources"]["limits"] for name in ("manager", "proxy"))
"""The CPUs and GB of memory that the manager and the proxy use on the head's VM."""


def images(job: GkeJob) -> dict[str, str]:
    """Return the image of the resource manager and the workers, and that of the proxy, keyed by catalogue name."""
    every = {**IMAGES, **job.environment.node_images}
    return {name: every[name] for name in ("node-pathways", "node-pathways-proxy")}


def head(job: GkeJob) -> dict[str, Any]:
    """Return the replicated job with the one pod that runs the job's own program. The pod has its own VM."""
    storage = volumes(job, chips=0)
    key, value = HEADS_TAINT
    tolerations = [{"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}]
    pod = {
        **bare_pod(job, {POOL_LABEL: HEADS_NAME}, tolerations),
        "initContainers": [_container("manager", job), _container("proxy", job)],
        "containers": [_program(job, storage.mounts)],
    }
    if storage.volumes:
        pod["volumes"] = storage.volumes
    if group := volume_group(job):
        pod["securityContext"] = group
    spec = program_spec(job, 1, pod_template(storage.annotations, pod))
    template = {"metadata": {"annotations": dict(_ALONE)}, "spec": spec}
    return {"name": HEAD, "replicas": 1, "template": template}


def worker_template(job: GkeJob) -> dict[str, Any]:
    """Return the Job template of a slice, whose VMs the head controls."""
    nodes = resource_flavor(job.flavor)
    pod = {
        **bare_pod(job, nodes["nodeLabels"], nodes["tolerations"]),
        "containers": [_container("worker", job)],
        "volumes": [{"name": "shared-tmp", "emptyDir": {}}],
    }
    return {"spec": job_spec(job.hosts, pod_template(placement(job), pod))}


def _program(job: GkeJob, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    proxy = {"JAX_PLATFORMS": "proxy", "JAX_BACKEND_TARGET": f"grpc://{address(job)}:{_PROXY}"}
    variables = {"PATHWAYS_HEAD": address(job), "XCLOUD_ENVIRONMENT": "GCP", **proxy, **platform_variables(job)}
    variables |= rendezvous(job, tpu=True, chips=0, nodes="1", rank="0", names="localhost", host="localhost")
    body = {
        "name": CONTAINER,
        **container(job, ON_GKE, variables),
        "image": pulled_image(job),
        "resources": resources(job, {}),
    }
    if mounts:
        body["volumeMounts"] = mounts
    if security := program_security(job):
        body["securityContext"] = security
    return body


def _container(name: str, job: GkeJob) -> Json:
    """Return the container named ``manager``, ``proxy`` or ``worker``."""
    pool = job.pool
    filled: Json = _filled(
        _TEXTS[name],
        {
            **images(job),
            "job": job.name,
            "address": address(job),
            "scratch": f"{output_uri(job)}/pathways",
            "slices": job.slices,
            "instance": f"{VERSIONS.get(pool.machine.name)}:{job.flavor.topology}",
            "resource": job.flavor.accelerator.resource,
            "chips": pool.machine.chips,
        },
    )
    if security := program_security(job):
        filled["securityContext"] = security
    return filled


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        return {_filled(key, values): _filled(inner, values) for key, inner in part.items()}
    if isinstance(part, list):
        return [_filled(inner, values) for inner in part]
    return part.format_map(values) if isinstance(part, str) else part


def address(job: GkeJob) -> str:
    """Return the host name of the head."""
    return f"{job.name}-{HEAD}-0-0.{job.name}"


JOB_PATHWAYS = gke_rule(
    "job-pathways",
    "Find a Pathways job without a pool for its head or storage for its state, or with slices that it cannot control.",
)


JOB_IMAGE_SOURCE = gke_rule(
    "job-image-source",
    "Find an image that the cluster's admission policy refuses because of its registry.",
)


def pathways_findings(job: GkeJob) -> Iterator[Draft]:
    """Find a Pathways job without a VM for its head, without a bucket for its state, or with unsuitable slices."""
    if not job.gke.pathways:
        return
    machine = job.pool.machine.name
    flavors = job.workspace.flavors(job.spec.environment, job.gke.cluster)
    if machine not in VERSIONS:
        yield finding(
            job,
            ("gke", "pathways"),
            f"Pathways does not support {machine}, the machine type of {job.flavor.name}",
            rule=JOB_PATHWAYS,
            allowed=f"false, or a flavor of {enumeration(VERSIONS)}",
            nearest="false",
        )
    elif job.flavor.by_request:
        message = f"queued provisioning of {job.flavor.name} requests VMs for one pod set, but a Pathways job has two"
        yield finding(
            job, ("gke", "flavor"), message, rule=JOB_PATHWAYS, allowed="a flavor without queued provisioning"
        )
    elif job.flavor.topology_levels and all(flavors[name].topology_levels for name in job.team.shares[job.gke.cluster]):
        # Seen with Kueue 0.19.2: "failed to assign flavors to pod set head: no TAS flavor assigned".
        flavor = f"every flavor of the team's queue has a topology, as {job.flavor.name} does"
        message = f"{flavor}, and the head requests no topology"
        allowed = "a flavor of pools without topology_aware, or an additional share of such a flavor"
        yield finding(job, ("gke", "flavor"), message, rule=JOB_PATHWAYS, allowed=allowed)
    if not job.spec.output:
        message = "is missing: Pathways stores its state below the run's output"
        yield finding(job, ("output",), message, rule=JOB_PATHWAYS, allowed="a bucket of the team")
    sources = job.environment.image_sources
    for name, image in images(job).items():
        if sources and not image.startswith(sources):
            message = f"{name} is {image}, which image_sources of {job.spec.environment} do not allow"
            allowed = f"node_images: {{{name}: ...}} in the environment's stack, below {enumeration(sources)}"
            yield finding(job, ("gke", "pathways"), message, rule=JOB_IMAGE_SOURCE, allowed=allowed)
    yield from _head(job)


def _head(job: GkeJob) -> Iterator[Draft]:
    """Find a cluster that has no VMs for heads, and a program that needs more of such a VM than Pathways leaves."""
    pool = job.cluster.pathways
    if pool is None:
        clusters_with_heads = [name for name, spec in job.environment.clusters.items() if spec.pathways]
        message = f"cluster {job.gke.cluster} has no pool for heads of Pathways jobs"
        allowed = enumeration(clusters_with_heads) or f"pathways: {{}} of the cluster in {job.spec.environment}"
        yield finding(job, ("gke", "pathways"), message, rule=JOB_PATHWAYS, allowed=allowed, nearest="false")
        return
    machine = MACHINE_TYPES[pool.machine_type]
    cpus, memory = (sum(int(limits[name].removesuffix("G")) for limits in OWN_LIMITS) for name in ("cpu", "memory"))
    for field, requested, available in (
        ("cpu", job.spec.cpu or 0, machine.vcpus - cpus),
        ("memory_gib", job.spec.memory_gib or 0, int(machine.memory_gb) - memory),
    ):
        if requested >= available:
            message = (
                f"is {requested}, but the head's {pool.machine_type} has {available} left next to Pathways' own "
                "containers"
            )
            yield finding(
                job,
                (field,),
                message,
                rule=JOB_PATHWAYS,
                allowed=f"less than {available}",
                nearest=max(1, int(available) - 1),
            )
