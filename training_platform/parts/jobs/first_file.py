"""The text of a new job file, and the choices for its fields."""

from __future__ import annotations

from collections.abc import Collection

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.expansion import Flavor
from training_platform.config.model.team import VertexBootDisk
from training_platform.quota.charges import quota_key
from training_platform.quota.snapshot import Snapshot

DEFAULT_DISK = VertexBootDisk().type


def head(environment: str, image: str) -> str:
    """Return the lines of a job file that come before its targets."""
    return (
        "# yaml-language-server: $schema=../job.schema.json\n"
        f"environment: {environment}\nimage: {image}\ncommand: [python, -m, train]\n"
    )


def on_gke(cluster: str, flavor: Flavor) -> str:
    """Return the lines of a GKE target with one slice or one VM of a flavor."""
    count = "slices" if flavor.accelerator.kind == "tpu" else "nodes"
    return f"gke:\n  cluster: {cluster}\n  flavor: {flavor.name}\n  {count}: 1\n"


def on_vertex(region: str, machine_type: str) -> str:
    """Return the lines of a Vertex AI target with one VM, or with the smallest slice of a TPU."""
    machine = MACHINE_TYPES[machine_type]
    boots = DEFAULT_DISK in machine.boot_disk_types
    return "".join(
        (
            f"vertex:\n  region: {region}\n  machine_type: {machine_type}\n",
            f"  topology: {machine.single_host}\n" if machine.single_host else "",
            "" if boots else f"  boot_disk: {{type: {machine.boot_disk_types[0]}}}\n",
        )
    )


def vertex_machines(like: Flavor | None = None, limits: Snapshot | None = None) -> list[str]:
    """Return the machine types with accelerators on Vertex AI that suit a first job.

    Machine types of the flavor's kind (TPU or GPU) are first, since a job has one image for both targets. Among these,
    machine types with quota for a VM in some region are first.
    """
    names = [
        name
        for name, machine in MACHINE_TYPES.items()
        if machine.vertex
        and machine.accelerator is not None
        and (machine.kind != "tpu" or machine.single_host)
        and "on-demand" in machine.capacities
        and vertex_regions(name)
    ]
    other = {name: like is not None and MACHINE_TYPES[name].kind != like.accelerator.kind for name in names}
    return sorted(names, key=lambda name: (other[name], not _granted(name, limits)))


def granted_kinds(limits: Snapshot | None) -> set[str]:
    """Return the kinds of accelerators, ``tpu`` and ``gpu``, with quota for a VM on Vertex AI."""
    return {MACHINE_TYPES[name].kind for name in vertex_machines() if _granted(name, limits)}


def _granted(machine_type: str, limits: Snapshot | None) -> set[str]:
    """Return the regions with quota for an on-demand VM on Vertex AI, or all regions if no limit is known."""
    machine = MACHINE_TYPES[machine_type]
    regions = vertex_regions(machine_type)
    support = machine.accelerator.vertex if machine.accelerator else None
    quota = support.quotas.get("on-demand") if support else None
    if limits is None or limits.placeholder:
        return set(regions)
    keys = {region: quota_key(limits.project, quota, region) for region in regions} if quota else {}
    return {region for region, key in keys.items() if (limits.limit(key) or 0) >= machine.chips}


def vertex_regions(machine_type: str, near: Collection[str] = (), limits: Snapshot | None = None) -> list[str]:
    """Return the regions in which Vertex AI trains on a machine type: those with quota first, then nearby ones."""
    accelerator = MACHINE_TYPES[machine_type].accelerator
    support = accelerator.vertex if accelerator else None
    regions = support.regions if support else ()
    granted = _granted(machine_type, limits) if limits else regions
    return sorted(
        regions, key=lambda region: (region not in granted, not any(place.startswith(region) for place in near))
    )
