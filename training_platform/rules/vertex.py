"""Rules about Vertex AI persistent resources."""

from __future__ import annotations

import re
from collections.abc import Iterator

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.attachments import vertex_counts, vertex_gpu
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.refused_values import unlisted_region
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.section import enumeration
from training_platform.views.vertex import PersistentPoolView

_DOCS = "Vertex AI docs, configure compute, read 2026-08-22"
_ATTACHMENT = re.compile(r"projects/[^/]+/regions/(?P<region>[^/]+)/networkAttachments/[^/]+\Z")
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?\Z")


@rule("vertex-machine-type", ruleset="vertex", source=_DOCS)
def vertex_machine_type(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find a machine type that persistent resources do not support, such as TPUs, or that is not in the catalogue."""
    offered = {name: machine for name, machine in MACHINE_TYPES.items() if machine.vertex and machine.kind != "tpu"}
    name = pool.machine_type
    machine = pool.machine
    if name is None:
        yield finding(pool, "machine_type", "is not written", allowed=enumeration(offered))
    elif machine is not None and machine.kind == "tpu":
        allowed = "a machine type without TPUs; only a job on Vertex AI without a persistent resource can have TPUs"
        yield finding(
            pool, "machine_type", f"{name!r} has TPUs, which persistent resources do not support", allowed=allowed
        )
    elif name not in offered:
        problem = "is not in the catalogue" if machine is None else "is not supported by persistent resources"
        message = f"{name!r} {problem}"
        yield finding(pool, "machine_type", message, allowed=enumeration(offered), nearest=find_nearest(name, offered))


@rule("vertex-accelerator", ruleset="vertex", source=f"{_DOCS}; accelerator_type.proto")
def vertex_accelerator(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find GPUs other than the machine type's own. Vertex AI requires both type and count."""
    machine = MACHINE_TYPES.get(pool.machine_type or "")
    kind = pool.accelerator_type
    count = pool.accelerator_count
    if machine is None or machine.kind == "tpu":
        return
    if machine.kind == "cpu" and kind is not None:
        gpu = vertex_gpu(kind)
        number = count or 0
        counts = vertex_counts(machine, gpu) if gpu else ()
        # GPUs outside the catalogue are only known to need N1 machines.
        if number not in counts and (gpu is not None or not machine.name.startswith("n1-")):
            message = f"{machine.name} does not support {number} of {kind}"
            near = min(counts, key=lambda fitting: abs(fitting - number), default=None)
            field = "accelerator_count" if counts else "accelerator_type"
            yield finding(pool, field, message, allowed=", ".join(map(str, counts)) or "none", nearest=near)
        return
    support = machine.accelerator.vertex if machine.accelerator else None
    bundled = support.accelerator_type if support else None
    pair = f"{machine.chips} of {bundled}" if bundled else "none"
    if kind != bundled:
        message = f"{machine.name} has {pair}, but {kind or 'no accelerator'} is requested"
        yield finding(pool, "accelerator_type", message, allowed=pair, nearest=bundled)
    elif bundled is not None and count != machine.chips:
        message = f"{machine.name} has {pair}, but {count or 0} are requested"
        yield finding(pool, "accelerator_count", message, allowed=pair, nearest=machine.chips)


@rule("vertex-region", ruleset="vertex", severity="warning", source="Vertex AI docs, locations, read 2026-08-22")
def vertex_region(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find a region for which Vertex AI does not list the accelerator, as a warning, because lists become outdated."""
    if wrong := unlisted_region(pool.machine, pool.region):
        yield finding(pool, "region", **wrong._asdict())


@rule(
    "persistent-replicas",
    ruleset="vertex",
    source="persistent_resource.proto (googleapis f8291d2); terraform-provider-google-beta 93c65b2",
)
def persistent_replicas(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find replica counts below 1, a minimum that is not below the maximum, or an initial count outside this range."""
    count = pool.replica_count
    minimum = pool.min_replicas
    maximum = pool.max_replicas
    if count is not None and count < 1:
        yield finding(pool, "replica_count", f"is {count}", allowed="at least 1", nearest=1)
    if minimum is None and maximum is None:
        return
    if minimum is None or maximum is None:
        field = "max_replicas" if minimum is None else "min_replicas"
        yield finding(pool, field, "autoscaling needs both a minimum and a maximum", allowed="both")
        return
    if minimum < 1:
        yield finding(pool, "min_replicas", f"the minimum is {minimum}", allowed="at least 1", nearest=1)
    if minimum >= maximum:
        message = f"the maximum, {maximum}, is not above the minimum, {minimum}"
        yield finding(pool, "max_replicas", message, allowed=f"at least {minimum + 1}", nearest=minimum + 1)
    elif count is not None and not minimum <= count <= maximum:
        nearest = min(max(count, minimum), maximum)
        yield finding(pool, "replica_count", f"is {count}", allowed=f"{minimum} to {maximum}", nearest=nearest)


@rule(
    "persistent-resource-name",
    ruleset="vertex",
    source="persistent_resource.proto (googleapis f8291d2); terraform-provider-google-beta 93c65b2",
)
def persistent_resource_name(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find an id that Vertex AI does not allow."""
    if pool.resource_id is not None and not _NAME.match(pool.resource_id):
        allowed = "at most 63 lower-case letters, digits and dashes, starting with a letter and not ending with a dash"
        yield finding(pool, "resource_id", f"Vertex AI refuses the id {pool.resource_id!r}", allowed=allowed)


@rule(
    "persistent-network",
    ruleset="vertex",
    source="Vertex AI docs, set up a Private Service Connect interface, read 2026-08-22",
)
def persistent_network(pool: PersistentPoolView) -> Iterator[Draft]:
    """Find a network attachment in another region."""
    attachment = _ATTACHMENT.search(pool.network_attachment or "")
    if attachment and attachment["region"] != pool.region:
        message = f"is in {attachment['region']}, but the persistent resource is in {pool.region}"
        yield finding(pool, "network_attachment", message, allowed=f"one in {pool.region}")
