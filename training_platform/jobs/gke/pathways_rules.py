"""What a job of Pathways cannot be."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.expansion.flavors import Flavor
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import enumeration
from training_platform.jobs.gke.layout import gke_target, shape
from training_platform.jobs.gke.pathways import OWN_LIMITS, VERSIONS, images
from training_platform.jobs.resolve import ResolvedJob

RULE = "job-pathways"


def pathways_findings(job: ResolvedJob) -> Iterator[Finding]:
    """Find a job of Pathways that has no place for its head, or for its state, or slices that it cannot direct."""
    gke, flavor = gke_target(job)
    if not gke.pathways:
        return
    machine = shape(flavor).machine.name
    if machine not in VERSIONS:
        yield job.finding(
            ("gke", "pathways"), f"Pathways does not direct VMs like {machine}, which {flavor.name} has", rule=RULE,
            allowed=f"false, or a flavor of {enumeration(VERSIONS)}", nearest="false",
        )  # fmt: skip
    elif flavor.by_request:
        message = f"queued provisioning of {flavor.name} requests VMs for one pod set, and a Pathways job has two"
        yield job.finding(("gke", "flavor"), message, rule=RULE, allowed="a flavor without queued provisioning")
    elif flavor.topology_levels and all(each.topology_levels for each in _flavors_of_the_queue(job)):
        # Seen with Kueue 0.19.2: "failed to assign flavors to pod set head: no TAS flavor assigned".
        message = f"every flavor of the team's queue has a topology, as {flavor.name} does, and the head asks for none"
        allowed = "a flavor of pools without topology_aware, or a share of such a one beside it"
        yield job.finding(("gke", "flavor"), message, rule=RULE, allowed=allowed)
    if not job.spec.output:
        message = "is missing: Pathways stores its state below the run's output"
        yield job.finding(("output",), message, rule=RULE, allowed="a bucket of the team")
    yield from _images(job)
    yield from _head(job)


def _flavors_of_the_queue(job: ResolvedJob) -> list[Flavor]:
    gke, _ = gke_target(job)
    every = job.workspace.flavors(job.spec.environment, gke.cluster)
    return [every[name] for name in job.team.shares[gke.cluster]]


def _images(job: ResolvedJob) -> Iterator[Finding]:
    sources = job.environment.image_sources
    for name, image in images(job).items():
        if sources and not image.startswith(sources):
            message = f"{name} is {image}, which image_sources of {job.spec.environment} do not allow"
            allowed = f"node_images: {{{name}: ...}} in the environment's stack, below {enumeration(sources)}"
            yield job.finding(("gke", "pathways"), message, rule="job-image-source", allowed=allowed)


def _head(job: ResolvedJob) -> Iterator[Finding]:
    """Find a cluster without VMs for heads, and a program that asks for more than they have beside Pathways' own."""
    gke, _ = gke_target(job)
    pool = job.environment.clusters[gke.cluster].pathways
    if pool is None:
        others = [name for name, spec in job.environment.clusters.items() if spec.pathways]
        message = f"cluster {gke.cluster} has no pool for heads of Pathways jobs"
        allowed = enumeration(others) or f"pathways: {{}} of the cluster in {job.spec.environment}"
        yield job.finding(("gke", "pathways"), message, rule=RULE, allowed=allowed, nearest="false")
        return
    machine = MACHINE_TYPES[pool.machine_type]
    cpus, memory = (sum(int(each[name].removesuffix("G")) for each in OWN_LIMITS) for name in ("cpu", "memory"))
    for field, asked, has in (
        ("cpu", job.spec.cpu or 0, machine.vcpus - cpus),
        ("memory_gib", job.spec.memory_gib or 0, int(machine.memory_gb) - memory),
    ):
        if asked >= has:
            message = f"is {asked}, and the head's {pool.machine_type} has {has} left beside Pathways' own containers"
            yield job.finding((field,), message, rule=RULE, allowed=f"less than {has}", nearest=max(1, int(has) - 1))
