"""The worker pools of a job on Vertex AI: chief, workers, reducers and evaluator, each at its place in the list.

Source: Vertex AI docs on distributed training and compute configuration, and the CustomJob proto, read 2026-11-21.
Whole numbers of 64 bits are texts in this API's JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from training_platform.catalog import IMAGES
from training_platform.catalog.topologies import hosts
from training_platform.catalog.types import MachineType
from training_platform.config.spec.node_options import VmSpec
from training_platform.jobs.container import container, named, variables
from training_platform.jobs.launching import argv, image, launch_variables, module
from training_platform.jobs.mounts import share_folder
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.sdist import package_uri
from training_platform.jobs.spec.vertex import VertexTarget
from training_platform.jobs.vertex.deployed import filestore_address, instance_address, lustre_address
from training_platform.resources.scope import environment_scope
from training_platform.resources.storage.data_sets import lustre_place

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
    every = [
        Pool(role="chief", vm=chief, replicas=1, field=("chief", "machine_type"))
        if chief
        else Pool(role="chief", vm=target, replicas=1)
    ]
    if workers:
        every.append(Pool(role="workers", vm=target, replicas=workers))
    if reducers:
        where = ("reducers", "machine_type")
        vm = VmSpec(machine_type=reducers.machine_type)
        every.append(Pool(role="reducers", vm=vm, replicas=reducers.replicas, field=where))
    if evaluator:
        where = ("evaluator", "machine_type")
        every.append(Pool(role="evaluator", vm=evaluator, replicas=1, field=where))
    return every


def vms(target: VertexTarget) -> int:
    """Return the VMs that train: the replicas, or the hosts of a TPU's slice."""
    machine = target.machine
    return hosts(machine, target.topology or "") or 1 if machine.kind == "tpu" else target.replicas


def worker_pools(job: ResolvedJob, target: VertexTarget) -> list[dict[str, Any]]:
    """Return ``workerPoolSpecs``; a role that the job lacks before one that it has is an empty place."""
    specs = {pool.role: _spec(job, target, pool) for pool in pools(target)}
    last = max(ROLES.index(role) for role in specs)
    return [specs.get(role, {}) for role in ROLES[: last + 1]]


def _spec(job: ResolvedJob, target: VertexTarget, pool: Pool) -> dict[str, Any]:
    nfs = _nfs_mounts(job)
    return {
        "machineSpec": _machine_spec(target, pool),
        "diskSpec": {"bootDiskType": target.boot_disk.type, "bootDiskSizeGb": target.boot_disk.size_gb},
        **(_reducer(target) if pool.role == "reducers" else _program(job)),
        **({"nfsMounts": nfs} if nfs else {}),
        **({"lustreMounts": lustre} if (lustre := _lustre_mounts(job)) else {}),
        "replicaCount": str(pool.replicas),
    }


def _reducer(target: VertexTarget) -> dict[str, Any]:
    own = target.reducers.image if target.reducers else None
    return {"containerSpec": {"imageUri": own or IMAGES["vertex-reduction-server"]}}


def _program(job: ResolvedJob) -> dict[str, Any]:
    """Return the container, or the package that one of Vertex AI's prebuilt containers installs and runs by itself.

    Where a launcher has to fetch secrets, or tell somebody, it installs the package too.
    """
    spec, package = job.spec, package_uri(job)
    if package is None or spec.secrets or spec.notify:
        return {"containerSpec": container(job, "imageUri")}
    return {
        "pythonPackageSpec": {
            "executorImageUri": image(job),
            "packageUris": [package],
            "pythonModule": module(job),
            **({"args": list(spec.args)} if spec.args else {}),
            "env": named(variables(job)),
        }
    }


def program_texts(job: ResolvedJob) -> tuple[int, int]:
    """Return how many variables a container has, and how many characters its arguments."""
    _, args = argv(job)
    return len(variables(job) | launch_variables(job)), sum(map(len, args))


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
    return [
        {
            "server": filestore_address(job, directory),
            "path": "/".join(("", share(job, directory), *filter(None, [share_folder(job, directory)]))),
            "mountPoint": mount.name,
        }
        for mount in job.spec.mounts
        if (directory := mount.source.directory)
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


def share(job: ResolvedJob, directory: str) -> str:
    """Return the name of the file share that a team's directory is on."""
    return job.environment.filestore[job.team.directories[directory].filestore].share
