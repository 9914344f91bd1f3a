"""StorageClasses of Filestore: what a team may claim of those that a stack file declares, and nothing of all others.

A claim below the smallest of its tier is made as large as that, so the number of claims is limited beside their GiB.
Even so, claims that are too small can take up to twice what is counted. Source: Filestore CSI driver 2edb466
(2026-06-24).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from training_platform.catalog import FILESTORE_TIERS
from training_platform.config.data_sets import reaches
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import FileClassSpec

MOST, LOCATION = "training-platform/most-gib", "training-platform/location"  # annotations, for who counts a plan
# Those that GKE puts into every cluster.
GKE_CLASSES = ("standard-rwx", "premium-rwx", "zonal-rwx", "enterprise-rwx", "enterprise-multishare-rwx")
_SHARE_GIB, _SMALL_SHARE_GIB = 100, 10  # the smallest claim on a share, without and with a largest one


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
