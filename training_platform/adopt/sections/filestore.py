"""A section of ``filestore`` from what the Filestore API says of an instance."""

from __future__ import annotations

from typing import Any

from training_platform.adopt.sections.values import Inexpressible, Json, at, shortest, whole
from training_platform.config.model.storage import FilestoreSpec


def filestore_section(path: str, body: Json) -> dict[str, Any]:
    """Return an instance's section; ``path`` is its full name. Raises Inexpressible."""
    shares, networks = body.get("fileShares") or [], body.get("networks") or []
    if len(shares) != 1 or len(networks) != 1:
        raise Inexpressible(f"it has {len(shares)} shares and {len(networks)} networks: a stack file has one of each")
    private = at(networks, "connectMode") == "PRIVATE_SERVICE_ACCESS"
    share = shares[0]
    section = {
        "location": path.split("/")[3],
        "tier": body.get("tier"),
        "capacity_gib": whole(share, "capacityGb"),
        "share": share.get("name"),
        "protocol": body.get("protocol"),
        "connection": "private-service-access" if private else None,
        "team": at(body, "labels.team"),
        "exports": [_export(each) for each in share.get("nfsExportOptions") or ()] or None,
        "iops": whole(body, "performanceConfig.fixedIops.maxIops") or None,
        "iops_per_tib": whole(body, "performanceConfig.iopsPerTb.maxIopsPerTb") or None,
        "restore_from": share.get("sourceBackup") or share.get("sourceBackupdrBackup"),
        "deletion_protection": None if body.get("deletionProtectionEnabled") else False,
    }
    return shortest(FilestoreSpec, section)


def _export(body: Json) -> dict[str, Any]:
    squashed = body.get("squashMode") == "ROOT_SQUASH"
    return {
        "ranges": body.get("ipRanges"),
        "access": "read-only" if body.get("accessMode") == "READ_ONLY" else "read-write",
        "squash": "root" if squashed else "none",
        "anonymous_id": (whole(body, "anonUid") or None) if squashed else None,
    }
