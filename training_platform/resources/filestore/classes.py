"""StorageClasses of Filestore: what a team may claim of those that a stack file declares, and nothing of all others.

A claim below the smallest of its tier is made as large as that, so the number of claims is limited beside their GiB.
Even so, claims that are too small can take up to twice what is counted. Source: Filestore CSI driver 2edb466
(2026-06-24).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from training_platform.catalog import FILESTORE_TIERS
from training_platform.config.data_sets import reaches
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import FileClassSpec
from training_platform.config.names import name_in_cluster
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import STORAGE_CLASS
from training_platform.resources.scope import Scope

MOST, LOCATION = "training-platform/most-gib", "training-platform/location"  # annotations, for who counts a plan
# Those that GKE puts into every cluster.
GKE_CLASSES = ("standard-rwx", "premium-rwx", "zonal-rwx", "enterprise-rwx", "enterprise-multishare-rwx")
PROVISIONER = "filestore.csi.storage.gke.io"
_OPTIONS = Options(
    replace_on_changes=("reclaimPolicy",),  # Kubernetes refuses the change; the provider knows of no such field
    delete_before_replace=True,  # the name is fixed, and taken until the old class is gone; volumes outlive a class
)
_SHARE_GIB, _SMALL_SHARE_GIB = 100, 10  # the smallest claim on a share, without and with a largest one


def storage_class(
    name: str, scope: Scope, tier: str, network: Any, *, location: str | None = None, class_name: str | None = None,
    private: bool = False, shares: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None,
) -> Declared:  # fmt: skip
    """Return a StorageClass of one Filestore tier, called ``filestore-{tier}`` unless it has a name of its own.

    ``name`` is the component's; ``network`` is the VPC's name, without project or path, or its id where it is another
    project's, which instances then join by private service access. ``shares`` are parameters of shares of an instance.
    """
    key = scope.key(location) if location else None
    metadata = {"name": class_name or tier_class(tier), "labels": scope.kubernetes_labels}
    inputs = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {**metadata, "annotations": dict(annotations)} if annotations else metadata,
        "provisioner": PROVISIONER,
        "parameters": {
            "tier": FILESTORE_TIERS[tier].csi_tier,
            "network": network,
            # As the driver takes them. Source: Filestore CSI driver 2edb466 (2026-06-24), ``ConvertLabelsStringToMap``.
            "labels": ",".join(f"{label}={value}" for label, value in sorted(scope.labels.items())),
            **({"connect-mode": "PRIVATE_SERVICE_ACCESS"} if private else {}),
            **({"instance-encryption-kms-key": key} if key else {}),
            **(shares or {}),
        },
        "volumeBindingMode": "WaitForFirstConsumer",  # a zonal instance belongs into the zone of the first pod
        "allowVolumeExpansion": True,
        "reclaimPolicy": "Retain" if scope.deletion_protection else "Delete",
    }
    return Declared(type=STORAGE_CLASS, name=f"{name}-class", inputs=inputs, options=_OPTIONS)


def cluster_classes(
    name: str, cluster: ClusterSpec, scope: Scope, environment: Environment, network: Any
) -> Iterator[tuple[str, Declared]]:
    """Yield the StorageClasses of a cluster, each with its component's name: of tiers, and those of the stack file."""
    of_cluster = partial(
        storage_class,
        scope=scope,
        network=network,
        location=cluster.location,
        private=environment.host_project is not None,
    )
    for tier in class_tiers(environment, cluster):
        component = f"{name}-{tier_class(tier)}"
        yield component, of_cluster(component, tier=tier)
    for key, spec in cluster.storage_classes.items():
        component = name_in_cluster(name, "storage_classes", key)
        yield (
            component,
            of_cluster(
                component,
                tier=spec.tier,
                class_name=kubernetes_class(key),
                shares=share_parameters(key, spec),
                annotations=class_annotations(spec, cluster.location),
            ),
        )


def kubernetes_class(key: str) -> str:
    """Return the name of a class in its clusters; none of GKE's own begins so."""
    return f"files-{key}"


def share_parameters(key: str, spec: FileClassSpec) -> dict[str, str]:
    """Return the parameters by which claims share instances; ``key`` is the class's, whose instances are its own.

    Source: Filestore CSI driver 2edb466 (2026-06-24), ``multishare_controller.go``; GKE docs, Filestore multishares.
    """
    if not spec.multishare:
        return {}
    largest = {"max-volume-size": f"{spec.largest_share_gib}Gi"} if spec.largest_share_gib else {}
    return {"multishare": "true", "instance-storageclass-label": kubernetes_class(key), **largest}


def claim_limits(classes: Mapping[str, FileClassSpec], team: str, others: Iterable[str] = ()) -> dict[str, str]:
    """Return what a team may claim of each class in all, as the ``hard`` part of a ResourceQuota has it.

    ``others`` are the classes of which it may claim nothing, beside those of GKE.
    """
    of_class = "{}.storageclass.storage.k8s.io/{}".format
    limits = {of_class(name, "requests.storage"): "0Gi" for name in (*GKE_CLASSES, *others)}
    for key, spec in classes.items():
        name, gib = kubernetes_class(key), spec.teams.get(team, 0)
        limits[of_class(name, "requests.storage")] = f"{gib}Gi"
        limits[of_class(name, "persistentvolumeclaims")] = str(max(1, gib // _smallest_claim(spec)) if gib else 0)
    return limits


def most_gib(spec: FileClassSpec) -> int:
    """Return the GiB of the instances that claims of all teams make together, in the steps of the tier."""
    smallest, _, step = FILESTORE_TIERS[spec.tier].bands[0]
    wholes = [sum(spec.teams.values())] if spec.multishare else list(spec.teams.values())
    return sum(max(smallest, -(-gib // step) * step) for gib in wholes if gib)


def class_annotations(spec: FileClassSpec, location: str) -> dict[str, str]:
    """Return what a class says of the instances that claims make of it."""
    return {MOST: str(most_gib(spec)), LOCATION: location}


def tier_class(tier: str) -> str:
    """Return the name of a tier's own StorageClass: ``filestore-basic-hdd``."""
    return f"filestore-{tier.lower().replace('_', '-')}"


def class_tiers(environment: Environment, cluster: ClusterSpec) -> tuple[str, ...]:
    """Return the tiers that a cluster gets a class for: those of the environment's instances that its pods mount.

    The platform's own namespaces may claim of these, and teams nothing.
    """
    return tuple(sorted({each.tier for each in environment.filestore.values() if reaches(each, cluster)}))


def _smallest_claim(spec: FileClassSpec) -> int:
    if spec.multishare:
        return _SMALL_SHARE_GIB if spec.largest_share_gib else _SHARE_GIB
    return FILESTORE_TIERS[spec.tier].bands[0].low_gib
