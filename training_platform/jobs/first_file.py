"""The first file of a job, as text, and what it can choose from."""

from __future__ import annotations

from collections.abc import Collection

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.model.team import VertexBootDisk
from training_platform.config.pools import Flavor

DEFAULT_DISK = VertexBootDisk().type


def head(environment: str, image: str) -> str:
    """Return what stands before the targets."""
    return (
        "# yaml-language-server: $schema=../job.schema.json\n"
        f"environment: {environment}\nimage: {image}\ncommand: [python, -m, train]\n"
    )


def on_gke(cluster: str, flavor: Flavor) -> str:
    """Return a target on one flavor: one slice, or one VM."""
    count = "slices" if flavor.accelerator.kind == "tpu" else "nodes"
    return f"gke:\n  cluster: {cluster}\n  flavor: {flavor.name}\n  {count}: 1\n"


def on_vertex(region: str, machine_type: str) -> str:
    """Return a target on Vertex AI: one VM, or a TPU's smallest slice."""
    machine = MACHINE_TYPES[machine_type]
    boots = DEFAULT_DISK in machine.boot_disk_types
    return "".join(
        (
            f"vertex:\n  region: {region}\n  machine_type: {machine_type}\n",
            f"  topology: {machine.single_host}\n" if machine.single_host else "",
            "" if boots else f"  boot_disk: {{type: {machine.boot_disk_types[0]}}}\n",
        )
    )


def vertex_machines(like: Flavor | None = None) -> list[str]:
    """Return the machine types with accelerators that Vertex AI trains on and that a first job can take.

    Those with TPUs or GPUs as a flavor has come first: a job has one image for both of its targets.
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
    return sorted(names, key=lambda name: like is not None and MACHINE_TYPES[name].kind != like.accelerator.kind)


def vertex_regions(machine_type: str, near: Collection[str] = ()) -> list[str]:
    """Return the regions in which Vertex AI trains on a machine type, first those of the locations that are near."""
    accelerator = MACHINE_TYPES[machine_type].accelerator
    support = accelerator.vertex if accelerator else None
    regions = support.regions if support else ()
    return sorted(regions, key=lambda region: not any(place.startswith(region) for place in near))
