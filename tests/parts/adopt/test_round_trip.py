"""What a deployed environment is in its project differs from its plan in nothing."""

from __future__ import annotations

import pytest

from tests.parts.adopt.stacks import Repository, adopted, planned, small_plan, standing

pytestmark = pytest.mark.timeout(300)  # each plans a whole environment
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
        binary_authorization: true
        provider_inputs:
          enable_intranode_visibility: true
          cluster_autoscaling:
            autoscaling_profile: BALANCED
            auto_provisioning_defaults: {image_type: UBUNTU_CONTAINERD, upgrade_settings: {max_surge: 2}}
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
            upgrades: {strategy: blue-green, auto_repair: false}
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


def test_every_option_that_an_api_returns_agrees_with_its_plan(repository: Repository) -> None:
    plan = planned(repository({"lab": WIDE}), "lab")

    result = adopted(standing(plan), {"lab": plan})

    stack = result.stacks["lab"]
    assert (stack.changes, stack.unsaid, result.unplanned) == ({}, {}, [])
    assert {resource.type for resource in stack.new if resource.type.startswith("gcp:")} == {
        "gcp:projects/iAMMember:IAMMember",  # of the service agents, which are in no list
        "gcp:projects/serviceIdentity:ServiceIdentity",
        "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
        "gcp:servicenetworking/connection:Connection",  # which these tests do not deploy
    }


def test_a_difference_of_the_project_is_listed_by_field(repository: Repository) -> None:
    plan = small_plan(repository)
    seeded = standing(plan)
    pool = "projects/example-lab/locations/us-central1-a/clusters/lab-main/nodePools/a100"
    scaling = {"enabled": True, "maxNodeCount": 7, "locationPolicy": "ANY"}
    seeded.ask("POST", f"container/v1beta1/{pool}:setAutoscaling", {"autoscaling": scaling})

    stack = adopted(seeded, {"lab": plan}).stacks["lab"]

    assert {path: [str(change) for change in fields] for path, fields in stack.changes.items()} == {
        pool: ["autoscaling.maxNodeCount is 7, planned 4"]
    }
    assert stack.replaced == []
