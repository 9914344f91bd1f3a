"""Adopting a deployed stack gives a file with the same plan as the stack's own."""

from __future__ import annotations

from inspect import getsource
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from tests.parts.adopt.seeding import Seeded
from tests.parts.adopt.stacks import (
    PROJECT,
    STACK,
    Repository,
    adopted,
    contents_of,
    differing,
    in_cloud,
    planned,
    small_plan,
    standing,
)
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.team import BucketSpec, PersistentResourceSpec, Team
from training_platform.parts.adopt import cluster_objects
from training_platform.parts.adopt.sections import clusters, environment, node_pools, teams
from training_platform.resources.resource_types import TENSORBOARD

pytestmark = pytest.mark.timeout(300)  # each plans a whole environment twice
WIDE = """\
config:
  training-platform:environment:
    project: example-lab
    production: false
    deletion_protection: false
    labels: {cost-center: lab}
    nat_addresses: 2
    google_apis: restricted
    dashboards: false
    network_attachments: {us-central1: 10.30.0.0/24}
    private_services_range: 10.99.0.0/24
    google_groups_domain: example.com
    admins: [group:platform@example.com, user:ada@example.com]
    alerts: {enabled: false}
    images: {location: us-central1, keep_versions: 5}
    filestore:
      data:
        location: us-central1
        tier: REGIONAL
        capacity_gib: 10240
        share: data
        protocol: NFS_V4_1
        reserved_range: 10.12.32.0/26
        iops: 20000
        exports:
          - {ranges: [10.12.0.0/20], squash: root, anonymous_id: 1000}
          - {ranges: [10.13.0.0/20], access: read-only}
      own: {location: us-central1-a, capacity_gib: 1024, team: vision, connection: private-service-access}
    clusters:
      main:
        location: us-central1
        release_channel: RAPID
        autoscaling_profile: BALANCED
        binary_authorization: true
        intranode_visibility: true
        fqdn_policies: true
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        gpu_networks: {range: 172.16.0.0/16}
        maintenance:
          start: "2026-02-07T02:00:00Z"
          end: "2026-02-07T14:00:00Z"
          recurrence: FREQ=WEEKLY;BYDAY=SA
          upgrade_freeze: false
          exclusions:
            launch: {start: "2026-12-01T00:00:00Z", end: "2026-12-20T00:00:00Z", scope: no-minor-upgrades}
        system_pool: {machine_type: e2-standard-8, min_nodes: 3, max_nodes: 9, boot_disk: {type: pd-ssd, size_gb: 150}}
        cpu_pools: {general: {machine_type: n2-standard-16, min_nodes: 1, max_nodes: 4}}
        pathways: {machine_type: n2d-standard-64, max_nodes: 3}
        auto_provisioning:
          cpu: 500
          memory_gb: 4000
          accelerators: {nvidia-l4: 8}
          zones: [us-central1-a]
          boot_disk: {type: pd-balanced, size_gb: 150}
          image_type: UBUNTU_CONTAINERD
          max_surge: 2
        node_pools:
          t4:
            machine_type: n1-standard-8
            zone: us-central1-a
            accelerator: t4
            accelerator_count: 2
            max_nodes: 3
            driver: latest
            sharing: {max_clients: 4}
            taints: {team: {value: vision, effect: NO_EXECUTE}}
            labels: {team: vision}
            max_pods: 64
            provider_inputs:
              node_config:
                linux_node_config:
                  sysctls: {net.core.somaxconn: "4096"}
                  hugepages_config: {hugepage_size2m: 1024}
          mig:
            machine_type: a2-highgpu-1g
            zone: us-central1-a
            min_nodes: 1
            max_nodes: 3
            partition: 1g.5gb
            capacity: reservation
            reservation:
              {name: shared, project: example-shared, block: block-1, starts: "2026-12-01", ends: "2027-01-31"}
            upgrades: {strategy: blue-green, soak_minutes: 30, auto_repair: false}
          anywhere: {machine_type: a2-highgpu-1g, max_nodes: 2, capacity: reservation, reservation: any}
          plain:
            machine_type: a3-highgpu-8g
            zone: us-central1-a
            gpu_direct: false
            capacity: queued-provisioning
            max_run_hours: 24
            boot_disk: {type: pd-balanced, size_gb: 300}
            local_ssd: {use: block}
            preload_images: [projects/example-lab/global/images/torch]
          mega: {machine_type: a3-megagpu-8g, zone: us-central1-b, capacity: spot, compact: true}
      west:
        location: us-west4-a
        subnet: {nodes: 10.13.0.0/20, pods: 10.67.0.0/16, services: 10.13.16.0/20}
        node_pools:
          slices: {machine_type: ct5lp-hightpu-4t, topology: 4x4, slices: 3, min_slices: 1}
          hosts: {machine_type: ct5lp-hightpu-8t, topology: 2x4, slices: 5, min_slices: 2, upgrades: {max_surge: 1}}
"""


def test_every_option_that_an_api_returns_is_adopted(repository: Repository) -> None:
    root = repository({"lab": WIDE})
    original = planned(root, "lab")
    adopted_stack = adopted(standing(original), repository({}), "lab")

    assert (adopted_stack.left_out, adopted_stack.changes, adopted_stack.unsaid) == ({}, {}, {})
    assert list(differing(in_cloud(original), in_cloud(adopted_stack.resources))) == []
    written, described = (
        yaml.safe_load(text)["config"]["training-platform:environment"] for text in (adopted_stack.text, WIDE)
    )
    assert written.keys() - {"alerts"} == described.keys() - {"alerts"}
    for cluster in described["clusters"]:
        assert written["clusters"][cluster]["node_pools"].keys() == described["clusters"][cluster]["node_pools"].keys()


def test_a_file_leaves_out_the_models_defaults(repository: Repository) -> None:
    adopted_stack = adopted(standing(small_plan(repository)), repository({}), "lab")

    written = yaml.safe_load(adopted_stack.text)["config"]["training-platform:environment"]
    assert written == yaml.safe_load(STACK)["config"]["training-platform:environment"] | {"project": PROJECT}


def test_the_file_is_written_from_the_cloud_only(repository: Repository, tmp_path: Path) -> None:
    seeded = standing(small_plan(repository))
    pool = "container/v1beta1/projects/example-lab/locations/us-central1-a/clusters/lab-main/nodePools/a100"
    scaling = {"enabled": True, "maxNodeCount": 7, "locationPolicy": "ANY"}
    seeded.ask("POST", f"{pool}:setAutoscaling", {"autoscaling": scaling})

    adopted_stack = adopted(seeded, repository({}), "lab")

    written = yaml.safe_load(adopted_stack.text)["config"]["training-platform:environment"]
    assert written["clusters"]["main"]["node_pools"]["a100"]["max_nodes"] == 7
    assert adopted_stack.changes == {}


def test_vertex_ai_is_asked_in_the_region_of_a_zone_whose_name_ends_in_several_letters() -> None:
    seeded = Seeded(PROJECT)
    for api in ("aiplatform", "compute", "file"):
        seeded.ask("POST", f"serviceusage/v1/projects/{PROJECT}/services/{api}.googleapis.com:enable", {})
    seeded.ask("POST", f"compute/beta/projects/{PROJECT}/global/networks", {"name": "own"})
    instance = {
        "tier": "BASIC_HDD",
        "fileShares": [{"name": "share", "capacityGb": 1024}],
        "networks": [{"network": "own", "modes": ["MODE_IPV4"]}],
    }
    locations = f"projects/{PROJECT}/locations"
    seeded.ask("POST", f"file/v1beta1/{locations}/us-central1-ai1a/instances", instance, instanceId="homes")
    seeded.ask("POST", f"aiplatform/v1beta1/{locations}/us-central1/tensorboards", {"displayName": "runs"})

    (board,) = contents_of(seeded).of(TENSORBOARD).values()

    assert board["displayName"] == "runs"


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
        "snapshots": "not read",
        "backups": "not read",
    },
    Environment: {
        "vertex_submitters": "accounts of pipelines, by grants of teams' stacks",
        "team_logs_days": "log buckets of teams are not read",
        "nightly_account": "an account of pipelines, which `pipeline-accounts` creates",
        "renamed_from": "what a stack was called is in no project",
        "retired": "the end of a stack is in no project",
        "billing_account": "of the billing account, not of the project",
        "budget": "of the billing account, not of the project",
        "quota_requests": "what was asked for is no resource of the project",
        "data_sets": "where data lies, which is only said",
        "charts": "Helm releases in clusters",
        "node_images": "objects in clusters",
        "image_sources": "objects in clusters",
        "max_grace_seconds": "objects in clusters",
        "max_run_hours": "objects in clusters",
        "egress": "objects in clusters",
        "network": "whose a VPC is, no API tells: a cluster in another is left out",
        "fair_sharing": "settings of Kueue in clusters",
        "lend_unpromised": "worked out from all teams' shares",
        "lustre": "Google's client has no document of its API",
    },
    BucketSpec: {
        "size_gib": "what it will hold, which is only said",
        "members_write": "grants of a bucket are not read",
    },
    PersistentResourceSpec: {"deletion_protection": "Pulumi's own"},
    Team: {
        "renamed_from": "what a stack was called is in no project",
        "retired": "the end of a stack is in no project",
        "project": "a team's own project is not read",
        "host_network": "objects in clusters",
        "writes_metrics": "grants of accounts are not read",
        "max_run_hours": "objects in clusters",
        "monthly_chip_hours": "a budget, which is only said",
        "directories": "objects in clusters",
        "egress": "objects in clusters",
        "serving": "objects in clusters",
        "wandb_launch": "Helm releases in clusters",
        "data_sets": "where data lies, which is only said",
        "budget": "of the billing account, not of the project",
    },
}
QUEUES = getsource(cluster_objects).partition("class Queues")[2]
ENVIRONMENT, _, FILESTORE = getsource(environment).partition("def filestore_section")
TEXTS = {
    NodePoolSpec: getsource(node_pools),
    ClusterSpec: getsource(clusters),
    FilestoreSpec: FILESTORE.partition("def foreign_cluster")[0],
    Environment: ENVIRONMENT + QUEUES,
    BucketSpec: getsource(teams),
    PersistentResourceSpec: getsource(teams),
    Team: getsource(teams) + QUEUES,
}


@pytest.mark.parametrize("model", TEXTS, ids=lambda model: model.__name__)
def test_a_field_is_read_or_has_a_reason(model: type[BaseModel]) -> None:
    read = {field for field in model.model_fields if f'"{field}"' in TEXTS[model]}

    assert set(model.model_fields) - read - set(LEFT[model]) == set(), "read it, or say why not"
    assert set(LEFT[model]) <= set(model.model_fields) - read
