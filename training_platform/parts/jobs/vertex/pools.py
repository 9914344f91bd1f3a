"""The worker pools of a job on Vertex AI: chief, workers, reducers and evaluator, each at its place in the list.

Source: Vertex AI docs on distributed training and compute configuration, and the CustomJob proto, read 2026-11-21.
Whole numbers of 64 bits are texts in this API's JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

from training_platform.catalog import IMAGES
from training_platform.catalog.attachments import of_vertex
from training_platform.catalog.prices import Cost, machines_cost
from training_platform.catalog.topologies import hosts
from training_platform.catalog.types import MachineType
from training_platform.config.model.node_pool import VmSpec
from training_platform.config.model.team import PersistentResourceSpec
from training_platform.parts.jobs.container import (
    Launch,
    argv,
    container,
    image,
    launch_variables,
    module,
    named,
    package_uri,
    share_folder,
    variables,
)
from training_platform.parts.jobs.model import VertexTarget
from training_platform.parts.jobs.rendezvous import HOST, ITS_PORT, NAMES, NODES, RANK, at_run_time, rendezvous
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.resources.data_sets import lustre_place
from training_platform.resources.filestore import instance_name
from training_platform.resources.scope import environment_scope
from training_platform.resources.storage import instance_id
from training_platform.resources.vertex import tensorboard_name

Role = Literal["chief", "workers", "reducers", "evaluator"]
ROLES: tuple[Role, ...] = ("chief", "workers", "reducers", "evaluator")  # by their place in the list


@dataclass(frozen=True, kw_only=True)
class Pool:
    """VMs of one role; ``field`` is the part of the job file that says their machine type."""

    role: Role
    vm: VmSpec
    replicas: int
    field: tuple[str, ...] = ("machine_type",)

    @property
    def machine(self) -> MachineType:
        """The machine type's row in the catalogue, with the GPUs that are attached to it."""
        return self.vm.machine


def vertex_target(job: ResolvedJob) -> VertexTarget:
    """Return where the job runs on Vertex AI. Raises ValueError for a job without a Vertex target."""
    if job.spec.vertex is None:
        raise ValueError(f"job {job.name} has no vertex target")
    return job.spec.vertex


def pools(target: VertexTarget) -> list[Pool]:
    """Return the pools that a job has, in order: the first takes exactly one replica, so the others are workers."""
    chief, workers, reducers, evaluator = target.chief, target.replicas - 1, target.reducers, target.evaluator
    every = [Pool(role="chief", vm=chief or target, replicas=1, field=(*(("chief",) if chief else ()), "machine_type"))]
    if workers:
        every.append(Pool(role="workers", vm=target, replicas=workers))
    if reducers:
        vm = VmSpec(machine_type=reducers.machine_type)
        every.append(Pool(role="reducers", vm=vm, replicas=reducers.replicas, field=("reducers", "machine_type")))
    if evaluator:
        every.append(Pool(role="evaluator", vm=evaluator, replicas=1, field=("evaluator", "machine_type")))
    return every


def vms(target: VertexTarget) -> int:
    """Return the VMs that train: the replicas, or the hosts of a TPU's slice."""
    machine = target.machine
    return hosts(machine, target.topology or "") or 1 if machine.kind == "tpu" else target.replicas


def worker_pools(job: ResolvedJob, target: VertexTarget) -> list[dict[str, Any]]:
    """Return ``workerPoolSpecs``; a role that the job lacks before one that it has is an empty place."""
    server = (target.reducers.image if target.reducers else None) or IMAGES["vertex-reduction-server"]
    mounts = {"nfsMounts": _nfs_mounts(job), "lustreMounts": _lustre_mounts(job)}
    specs = {
        pool.role: {
            "machineSpec": _machine_spec(target, pool),
            "diskSpec": {"bootDiskType": target.boot_disk.type, "bootDiskSizeGb": target.boot_disk.size_gb},
            **({"containerSpec": {"imageUri": server}} if pool.role == "reducers" else _program(job, target, pool)),
            **{name: rows for name, rows in mounts.items() if rows},
            "replicaCount": str(pool.replicas),
        }
        for pool in pools(target)
    }
    last = max(ROLES.index(role) for role in specs)
    return [specs.get(role, {}) for role in ROLES[: last + 1]]


def node_variables(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> dict[str, Any]:
    """Return the variables by which a job's VMs find each other; of several, CLUSTER_SPEC tells when they start.

    Untried on Vertex AI: that other replicas reach the port which CLUSTER_SPEC names for the first.
    """
    here = partial(rendezvous, job, tpu=machine.kind == "tpu", chips=machine.chips)
    if vms(target) > 1:
        return here(nodes=NODES, rank=RANK, names=NAMES, host=HOST, port=ITS_PORT)
    return here(nodes="1", rank="0", names="localhost", host="localhost")


def _program(job: ResolvedJob, target: VertexTarget, pool: Pool) -> dict[str, Any]:
    """Return the container, or the package that one of Vertex AI's prebuilt containers installs and runs by itself.

    Where a launcher has to fetch secrets, tell somebody, or number the VMs, it installs the package too.
    """
    spec, package, nodes = job.spec, package_uri(job), node_variables(job, target, pool.machine)
    if package is None or spec.command or spec.secrets or spec.notify or at_run_time(nodes):
        return {"containerSpec": container(job, "imageUri", nodes)}
    return {
        "pythonPackageSpec": {
            "executorImageUri": image(job),
            "packageUris": [package],
            "pythonModule": module(job),
            **({"args": list(spec.args)} if spec.args else {}),
            "env": named(nodes | variables(job)),
        }
    }


def program_texts(job: ResolvedJob) -> tuple[int, int]:
    """Return how many variables a container has, and how many characters its arguments."""
    target = vertex_target(job)
    nodes = node_variables(job, target, target.machine)
    launch = Launch(at_run_time(nodes))
    _, args = argv(job, launch)
    known = nodes.keys() - launch.nodes.keys()
    return len(known | variables(job).keys() | launch_variables(job, launch).keys()), sum(map(len, args))


def _machine_spec(target: VertexTarget, pool: Pool) -> dict[str, Any]:
    """Return the machine, with its GPUs spelt out."""
    machine = pool.machine
    spec: dict[str, Any] = {"machineType": machine.name}
    if machine.vertex_gpus:
        spec |= {"acceleratorType": machine.vertex_gpus, "acceleratorCount": machine.chips}
    if target.topology and machine.name == target.machine_type:
        spec["tpuTopology"] = target.topology
    if target.reservation and machine.accelerator:
        spec["reservationAffinity"] = {
            "reservationAffinityType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": [target.reservation],
        }
    return spec


def _nfs_mounts(job: ResolvedJob) -> list[dict[str, str]]:
    """Return the team's directories; their addresses are known once they are deployed, and filled in by a submission.

    Buckets are there without being asked for, below /gcs.
    """

    def path(instance: str, directory: str) -> str:
        share, folder = job.environment.filestore[instance].share, share_folder(job, directory)
        return f"/{share}/{job.team.name}/{folder}" if folder else f"/{share}"

    return [
        {
            "server": instance_address(job, instance),
            "path": path(instance, directory),
            "mountPoint": mount.name,
        }
        for mount in job.spec.mounts
        if (directory := mount.source.directory) and (instance := job.team.directories[directory].filestore)
    ] + [
        {
            "server": instance_address(job, folder.instance),
            "path": f"/{job.environment.filestore[folder.instance].share}/{folder.path}",
            "mountPoint": mount.name,
        }
        for mount in job.spec.mounts
        if (key := mount.source.data_set) and (folder := job.environment.data_sets[key].filestore)
    ]


def _lustre_mounts(job: ResolvedJob) -> list[dict[str, str]]:
    """Return the data sets on Managed Lustre. Source: aiplatform v1, LustreMount, read 2026-08-22."""
    home = environment_scope(job.team.environment, job.environment)
    return [
        {
            "instanceIp": lustre.address or lustre_address(job, lustre.instance),
            **dict(zip(("volumeHandle", "filesystem"), lustre_place(lustre, job.environment, home), strict=True)),
            "mountPoint": mount.name,
        }
        for mount in job.spec.mounts
        if (key := mount.source.data_set) and (lustre := job.environment.data_sets[key].lustre)
    ]


ADVISED = timedelta(days=30)  # after which to make one anew; Vertex AI docs, create a persistent resource, read 2026-08


@dataclass(frozen=True, kw_only=True)
class KeptMachines:
    """The VMs of a persistent resource; ``cost`` is per hour, of the VMs that there are."""

    state: str
    vms: int
    used: int
    age: timedelta
    cost: Cost

    @property
    def idle(self) -> bool:
        """Whether it has VMs and no job uses any."""
        return self.vms > 0 and self.used == 0

    @property
    def old(self) -> bool:
        """Whether it is older than Google advises."""
        return self.age > ADVISED

    def __str__(self) -> str:
        """Return one line."""
        # Disks and Vertex AI's own fee are in no price.
        price = f"at least {self.cost.least:.2f} USD an hour" if self.cost.sums_up else "no price known"
        idle = ", idle" if self.idle else ""
        old = f", made {self.age.days} days ago: make it anew after {ADVISED.days}" if self.old else ""
        return f"{self.state}, {self.used} of {self.vms} VMs in use, {price}{idle}{old}"


def kept_machines(spec: PersistentResourceSpec, body: dict[str, Any], now: datetime) -> KeptMachines:
    """Return what a persistent resource is doing; ``body`` is Vertex AI's answer, whose counts are texts."""
    pools = body.get("resourcePools", ())
    counts = [(int(pool.get("replicaCount", 0)), int(pool.get("usedReplicaCount", 0))) for pool in pools]
    cost = Cost()
    for (vms, _), machine in zip(counts, (pool["machineSpec"] for pool in pools), strict=True):
        name = machine["machineType"]
        row = of_vertex(name, machine.get("acceleratorType"), machine.get("acceleratorCount"))
        cost += (
            machines_cost(row, "on-demand", spec.region, vms, vms)
            if row
            else Cost(unpriced=(name,), machines=(name,), vms=vms, vms_without=vms)
        )
    return KeptMachines(
        state=body.get("state", "STATE_UNSPECIFIED"),
        vms=sum(vms for vms, _ in counts),
        used=sum(used for _, used in counts),
        age=now - datetime.fromisoformat(body["createTime"]),
        cost=cost,
    )


Kind = Literal["filestore", "lustre", "tensorboard"]
_REFERENCE = re.compile(rf"\{{({'|'.join(get_args(Kind))}):([^/}}]+)/([^/}}]+)/([^/}}]+)\}}")


class Deployed(NamedTuple):
    """A thing of Google Cloud: an instance's address, or the full name of a TensorBoard."""

    kind: Kind
    project: str
    location: str
    name: str

    def __str__(self) -> str:
        """Return the text that stands for it."""
        return f"{{{self.kind}:{self.project}/{self.location}/{self.name}}}"


def instance_address(job: ResolvedJob, key: str) -> str:
    """Return what stands for the address of a Filestore instance of the environment."""
    name = instance_name(job.team.environment, key)
    return str(Deployed("filestore", job.environment.project, job.environment.filestore[key].location, name))


def lustre_address(job: ResolvedJob, key: str) -> str:
    """Return what stands for the address of a Managed Lustre instance of the environment."""
    name = instance_id(key, environment_scope(job.team.environment, job.environment))
    return str(Deployed("lustre", job.environment.project, job.environment.lustre[key].location, name))


def tensorboard_reference(job: ResolvedJob, region: str) -> str:
    """Return what stands for the full name of the team's TensorBoard in a region."""
    return str(Deployed("tensorboard", job.scope.project, region, tensorboard_name(region, job.scope)))


def references(body: Any) -> set[Deployed]:
    """Return everything that a body leaves to a submission."""
    if isinstance(body, str):
        return {Deployed(kind, *parts) for kind, *parts in _REFERENCE.findall(body)}
    parts = body.values() if isinstance(body, Mapping) else body if isinstance(body, (list, tuple)) else ()
    return {deployed for part in parts for deployed in references(part)}


def filled(body: Any, look_up: Callable[[Deployed], str]) -> Any:
    """Return a body in which everything is filled in; each thing is looked up once."""
    known = {deployed: look_up(deployed) for deployed in sorted(references(body))}

    def fill(part: Any) -> Any:
        if isinstance(part, str):
            for deployed, value in known.items():
                part = part.replace(str(deployed), value)
            return part
        if isinstance(part, Mapping):
            return {key: fill(value) for key, value in part.items()}
        return [fill(value) for value in part] if isinstance(part, (list, tuple)) else part

    return fill(body)
