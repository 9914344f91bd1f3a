"""Every field of a stack file is read from what stands in a project, or has a reason why it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from training_platform.adopt import sections
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.team import BucketSpec, PersistentResourceSpec, Team

FOLDER = Path(sections.__file__).parent
LEFT: dict[type[BaseModel], dict[str, str]] = {
    NodePoolSpec: {
        "topology_aware": "a Topology in the cluster, by the flavor of its queue",
        "deletion_protection": "Pulumi's, and the provider's own",
    },
    ClusterSpec: {
        "version": "the lowest that was asked for; the API tells what runs",
        "compute_classes": "objects in the cluster",
        "notebooks": "a Helm release in the cluster",
        "serving": "settings of Kueue in the cluster",
        "existing": "whose a cluster is, no API tells: what is called otherwise is left out",
        "software": "Helm releases in the cluster",
        "storage_classes": "objects in the cluster",
        "operators": "Helm releases in the cluster, and add-ons of GKE, which are said where they differ",
        "deletion_protection": "the provider's own",
    },
    FilestoreSpec: {
        "reserved_range": "the API tells one also where it picked it",
        "snapshots": "not read",
        "backups": "not read",
    },
    Environment: {
        "renamed_from": "what a stack was called is in no project",
        "billing_account": "of the billing account, not of the project",
        "budget": "of the billing account, not of the project",
        "quota_requests": "what was asked for is no resource of the project",
        "data_sets": "where data lies, which is only said",
        "charts": "Helm releases in clusters",
        "node_images": "objects in clusters",
        "image_sources": "objects in clusters",
        "egress": "objects in clusters",
        "network": "whose a VPC is, no API tells: a cluster in another is left out",
        "fair_sharing": "settings of Kueue in clusters",
        "lend_unpromised": "worked out from all teams' shares",
        "lustre": "Google's client has no document of its API",
    },
    BucketSpec: {"size_gib": "what it will hold, which is only said"},
    PersistentResourceSpec: {"deletion_protection": "Pulumi's own"},
    Team: {
        "renamed_from": "what a stack was called is in no project",
        "project": "a team's own project is not read",
        "host_network": "objects in clusters",
        "directories": "objects in clusters",
        "egress": "objects in clusters",
        "serving": "objects in clusters",
        "wandb_launch": "Helm releases in clusters",
        "data_sets": "where data lies, which is only said",
        "budget": "of the billing account, not of the project",
    },
}
FILES = {
    NodePoolSpec: ("node_pools",),
    ClusterSpec: ("clusters",),
    FilestoreSpec: ("filestore",),
    Environment: ("environment", "queues"),
    BucketSpec: ("teams",),
    PersistentResourceSpec: ("teams",),
    Team: ("teams", "queues"),
}


@pytest.mark.parametrize("model", FILES, ids=lambda model: model.__name__)
def test_a_field_is_read_or_has_a_reason(model: type[BaseModel]) -> None:
    text = "".join((FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in FILES[model])
    read = {field for field in model.model_fields if f'"{field}"' in text}

    assert set(model.model_fields) - read - set(LEFT[model]) == set(), "read it, or say why not"
    assert set(LEFT[model]) <= set(model.model_fields) - read
