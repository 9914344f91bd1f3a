"""The worker pools of a job on Vertex AI: chief, workers, reducers and evaluator, each at its index in the list.

Source: Vertex AI docs on distributed training and compute configuration, and the CustomJob proto, read 2026-11-21.
64-bit integers are strings in this API's JSON.
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
    ON_VERTEX,
    Launch,
    argv,
    container,
    image,
    launch_variables,
    module,
    named,
    python_index,
    share_folder,
    variables,
)
from training_platform.parts.jobs.job_model import VertexTarget
from training_platform.parts.jobs.rendezvous import HOST, ITS_PORT, NAMES, NODES, RANK, at_run_time, rendezvous
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.source_archive import archive_uri
from training_platform.resources.data_sets import lustre_place
from training_platform.resources.filestore import instance_name
from training_platform.resources.scope import environment_scope
from training_platform.resources.storage import instance_id
from training_platform.resources.vertex import tensorboard_name

ReplicaRole = Literal["chief", "workers", "reducers", "evaluator"]
ROLES: tuple[ReplicaRole, ...] = ("chief", "workers", "reducers", "evaluator")  # by index of workerPoolSpecs


@dataclass(frozen=True, kw_only=True)
class Pool:
    """VMs with one role. ``field`` is the path of their machine type in the job file, relative to ``vertex``."""

    role: ReplicaRole
    vm: VmSpec
    replicas: int
    field: tuple[str, ...] = ("machine_type",)

    @property
    def machine(self) -> MachineType:
        """The machine type's row in the catalogue, including attached GPUs."""
        return self.vm.machine


def vertex_target(job: ResolvedJob) -> VertexTarget:
    """Return the job's target on Vertex AI. Raises ValueError if it has none."""
    if job.spec.vertex is None:
        raise ValueError(f"job {job.name} has no vertex target")
    return job.spec.vertex


def pools(target: VertexTarget) -> list[Pool]:
    """Return a job's pools in order. The first must have exactly one replica, so the other replicas are workers."""
    every = [Pool(role="chief", vm=target, replicas=1)]
    if target.chief:
        every = [Pool(role="chief", vm=target.chief, replicas=1, field=("chief", "machine_type"))]
    if target.replicas > 1:
        every.append(Pool(role="workers", vm=target, replicas=target.replicas - 1))
    if reducers := target.reducers:
        vm = VmSpec(machine_type=reducers.machine_type)
        every.append(Pool(role="reducers", vm=vm, replicas=reducers.replicas, field=("reducers", "machine_type")))
    if target.evaluator:
        every.append(Pool(role="evaluator", vm=target.evaluator, replicas=1, field=("evaluator", "machine_type")))
    return every


def vms(target: VertexTarget) -> int:
    """Return the number of VMs for training: the replicas, or the hosts of a TPU slice."""
    machine = target.machine
    return hosts(machine, target.topology or "") or 1 if machine.kind == "tpu" else target.replicas


def worker_pools(job: ResolvedJob, target: VertexTarget) -> list[dict[str, Any]]:
    """Return ``workerPoolSpecs``. If a role is missing before another one, its entry is an empty object."""
    server = (target.reducers.image if target.reducers else None) or IMAGES["vertex-reduction-server"]
    mounts = {"nfsMounts": _nfs_mounts(job), "lustreMounts": _lustre_mounts(job)}
    specs: dict[ReplicaRole, dict[str, Any]] = {}
    for pool in pools(target):
        program = {"containerSpec": {"imageUri": server}} if pool.role == "reducers" else _program(job, target, pool)
        specs[pool.role] = {
            "machineSpec": _machine_spec(target, pool),
            "diskSpec": {"bootDiskType": target.boot_disk.type, "bootDiskSizeGb": target.boot_disk.size_gb},
            **program,
            **{name: rows for name, rows in mounts.items() if rows},
            "replicaCount": str(pool.replicas),
        }
    last = max(ROLES.index(role) for role in specs)
    return [specs.get(role, {}) for role in ROLES[: last + 1]]


def node_variables(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> dict[str, Any]:
    """Return the variables with which a job's VMs find each other. Several VMs read CLUSTER_SPEC when they start.

    Not tried on Vertex AI: whether other replicas can reach the first replica's port in CLUSTER_SPEC.
    """
    here = partial(rendezvous, job, tpu=machine.kind == "tpu", chips=machine.chips)
    if vms(target) > 1:
        return here(nodes=NODES, rank=RANK, names=NAMES, host=HOST, port=ITS_PORT)
    return here(nodes="1", rank="0", names="localhost", host="localhost")


def _program(job: ResolvedJob, target: VertexTarget, pool: Pool) -> dict[str, Any]:
    """Return the container, or a package for one of Vertex AI's prebuilt containers, which installs and runs it.

    If the launcher has to fetch secrets, send messages or number the VMs, it also installs the package. The same is
    true for a package index, since it is unverified whether the service's own pip reads another index.
    """
    spec = job.spec
    package = archive_uri(job)
    nodes = node_variables(job, target, pool.machine)
    if package is None or python_index(job) or spec.command or spec.secrets or spec.notify or at_run_time(nodes):
        return {"containerSpec": container(job, ON_VERTEX, nodes)}
    package_spec: dict[str, Any] = {
        "executorImageUri": image(job),
        "packageUris": [package],
        "pythonModule": module(job),
    }
    if spec.args:
        package_spec["args"] = list(spec.args)
    package_spec["env"] = named(nodes | variables(job))
    return {"pythonPackageSpec": package_spec}


def program_texts(job: ResolvedJob) -> tuple[int, int]:
    """Return the number of a container's variables, and the total number of characters of its arguments."""
    target = vertex_target(job)
    nodes = node_variables(job, target, target.machine)
    launch = Launch(at_run_time(nodes))
    _, args = argv(job, launch)
    fixed = nodes.keys() - launch.nodes.keys()
    return len(fixed | variables(job).keys() | launch_variables(job, launch).keys()), sum(map(len, args))


def _machine_spec(target: VertexTarget, pool: Pool) -> dict[str, Any]:
    """Return the machine with its GPUs."""
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
    """Return the team's directories, then data sets on Filestore. A submission fills in the servers' addresses.

    Buckets need no mount, since Vertex AI mounts them below /gcs.
    """
    directories = []
    data_sets = []
    for mount in job.spec.mounts:
        if directory := mount.source.directory:
            instance = job.team.directories[directory].filestore
            path = f"/{job.environment.filestore[instance].share}"
            if folder := share_folder(job, directory):
                path += f"/{job.team.name}/{folder}"
            server = instance_address(job, instance)
            directories.append({"server": server, "path": path, "mountPoint": mount.name})
        elif mount.source.data_set and (data := job.environment.data_sets[mount.source.data_set].filestore):
            path = f"/{job.environment.filestore[data.instance].share}/{data.path}"
            server = instance_address(job, data.instance)
            data_sets.append({"server": server, "path": path, "mountPoint": mount.name})
    return directories + data_sets


def _lustre_mounts(job: ResolvedJob) -> list[dict[str, str]]:
    """Return the data sets on Managed Lustre. Source: aiplatform v1, LustreMount, read 2026-08-22."""
    home = environment_scope(job.team.environment, job.environment)
    rows = []
    for mount in job.spec.mounts:
        lustre = job.environment.data_sets[mount.source.data_set].lustre if mount.source.data_set else None
        if lustre:
            volume, file_system = lustre_place(lustre, job.environment, home)
            row = {
                "instanceIp": lustre.address or lustre_address(job, lustre.instance),
                "volumeHandle": volume,
                "filesystem": file_system,
                "mountPoint": mount.name,
            }
            rows.append(row)
    return rows


ADVISED = timedelta(days=30)  # longest age; Source: Vertex AI docs, create a persistent resource, read 2026-08


@dataclass(frozen=True, kw_only=True)
class KeptMachines:
    """The VMs of a persistent resource. ``cost`` is the cost per hour of its current VMs."""

    state: str
    vms: int
    used: int
    age: timedelta
    cost: Cost

    @property
    def idle(self) -> bool:
        """Whether the resource has VMs that no job uses."""
        return self.vms > 0 and self.used == 0

    @property
    def old(self) -> bool:
        """Whether the resource is older than Google recommends."""
        return self.age > ADVISED

    def __str__(self) -> str:
        """Return a line about the persistent resource for people."""
        # Prices include neither disks nor Vertex AI's own fee.
        price = f"at least {self.cost.minimum:.2f} USD an hour" if self.cost.sums_up else "no price known"
        idle = ", idle" if self.idle else ""
        old = f", created {self.age.days} days ago: recreate it after {ADVISED.days} days" if self.old else ""
        return f"{self.state}, {self.used} of {self.vms} VMs in use, {price}{idle}{old}"


def kept_machines(spec: PersistentResourceSpec, body: dict[str, Any], now: datetime) -> KeptMachines:
    """Return the VMs of a persistent resource. ``body`` is Vertex AI's response, in which counts are strings."""
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


DeployedKind = Literal["filestore", "lustre", "tensorboard"]
_REFERENCE = re.compile(rf"\{{({'|'.join(get_args(DeployedKind))}):([^/}}]+)/([^/}}]+)/([^/}}]+)\}}")


class Deployed(NamedTuple):
    """A value that is known only after a deployment: an instance's address, or the full name of a TensorBoard."""

    kind: DeployedKind
    project: str
    location: str
    name: str

    def __str__(self) -> str:
        """Return the placeholder for this value in a body."""
        return f"{{{self.kind}:{self.project}/{self.location}/{self.name}}}"


def instance_address(job: ResolvedJob, key: str) -> str:
    """Return the placeholder for the address of a Filestore instance of the environment."""
    name = instance_name(job.team.environment, key)
    return str(
        Deployed("filestore", job.environment.project, location=job.environment.filestore[key].location, name=name)
    )


def lustre_address(job: ResolvedJob, key: str) -> str:
    """Return the placeholder for the address of a Managed Lustre instance of the environment."""
    name = instance_id(key, environment_scope(job.team.environment, job.environment))
    return str(Deployed("lustre", job.environment.project, location=job.environment.lustre[key].location, name=name))


def tensorboard_reference(job: ResolvedJob, region: str) -> str:
    """Return the placeholder for the full name of the team's TensorBoard in a region."""
    return str(Deployed("tensorboard", job.scope.project, location=region, name=tensorboard_name(region, job.scope)))


def references(body: Any) -> set[Deployed]:
    """Return the placeholders in a body, which a submission fills in."""
    if isinstance(body, str):
        return {Deployed._make(parts) for parts in _REFERENCE.findall(body)}
    if isinstance(body, Mapping):
        body = list(body.values())
    if isinstance(body, (list, tuple)):
        return {deployed for part in body for deployed in references(part)}
    return set()


def filled(body: Any, look_up: Callable[[Deployed], str]) -> Any:
    """Return a body with its placeholders replaced. Each value is looked up once."""
    values = {deployed: look_up(deployed) for deployed in sorted(references(body))}

    def fill(part: Any) -> Any:
        if isinstance(part, str):
            for deployed, value in values.items():
                part = part.replace(str(deployed), value)
            return part
        if isinstance(part, Mapping):
            return {key: fill(value) for key, value in part.items()}
        return [fill(value) for value in part] if isinstance(part, (list, tuple)) else part

    return fill(body)
