"""StorageClasses of Filestore that a stack file declares, and how much of each a team may claim."""

from __future__ import annotations

from collections.abc import Mapping

from training_platform.config.spec.storage import FileClassSpec


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


def claim_limits(classes: Mapping[str, FileClassSpec], team: str) -> dict[str, str]:
    """Return what a team may claim of each class in all, as the ``hard`` part of a ResourceQuota has it."""
    return {
        f"{kubernetes_class(key)}.storageclass.storage.k8s.io/requests.storage": f"{spec.teams.get(team, 0)}Gi"
        for key, spec in classes.items()
    }
