"""A training cluster in plain pulumi-gcp, with mistakes that otherwise only a deployment tells one of."""

from __future__ import annotations

from pulumi_gcp import container, projects, serviceaccount, storage

PROJECT = "example-plain"
LABELS = {"environment": "dev", "team": "vision"}
SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]

account = serviceaccount.Account("nodes", project=PROJECT, account_id="example-nodes")
for role in ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader"):
    member = account.email.apply(lambda email: f"serviceAccount:{email}")
    projects.IAMMember(role.rpartition("/")[2], project=PROJECT, role=role, member=member)

cluster = container.Cluster(
    "train",
    project=PROJECT,
    location="us-central1",
    remove_default_node_pool=True,
    initial_node_count=1,
    networking_mode="VPC_NATIVE",
    private_cluster_config=container.ClusterPrivateClusterConfigArgs(
        enable_private_nodes=True, enable_private_endpoint=True
    ),
    deletion_protection=False,
    resource_labels=LABELS,
    node_config=container.ClusterNodeConfigArgs(
        oauth_scopes=SCOPES, resource_labels=LABELS, service_account=account.email
    ),
)


def pool(
    name: str, zone: str, nodes: range, node: container.NodePoolNodeConfigArgs, topology: str | None = None
) -> None:
    """Make a node pool that scales between both ends of ``nodes``; ``topology`` is the shape of its one TPU slice."""
    shape = container.NodePoolPlacementPolicyArgs(type="COMPACT", tpu_topology=topology) if topology else None
    container.NodePool(
        name,
        project=PROJECT,
        location="us-central1",
        node_locations=[zone],
        cluster=cluster.name,
        autoscaling=container.NodePoolAutoscalingArgs(
            min_node_count=nodes.start, max_node_count=nodes.stop, location_policy="ANY"
        ),
        network_config=container.NodePoolNetworkConfigArgs(enable_private_nodes=True),
        upgrade_settings=container.NodePoolUpgradeSettingsArgs(max_surge=0, max_unavailable=1),
        placement_policy=shape,
        node_config=node,
    )


def gpu_node(machine_type: str, gpu: str, ssds: int, *, spot: bool) -> container.NodePoolNodeConfigArgs:
    """Return the settings of a VM with 8 GPUs."""
    no_reservation = container.NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="NO_RESERVATION")
    return container.NodePoolNodeConfigArgs(
        machine_type=machine_type,
        spot=spot,
        reservation_affinity=no_reservation if spot else None,
        guest_accelerators=[container.NodePoolNodeConfigGuestAcceleratorArgs(type=gpu, count=8)],
        ephemeral_storage_local_ssd_config=container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs(
            local_ssd_count=ssds
        ),
        disk_type="pd-ssd",
        disk_size_gb=200,
        oauth_scopes=SCOPES,
        resource_labels=LABELS,
        service_account=account.email,
    )


def plain_node(machine_type: str) -> container.NodePoolNodeConfigArgs:
    """Return the settings of a VM that needs no others."""
    return container.NodePoolNodeConfigArgs(
        machine_type=machine_type, oauth_scopes=SCOPES, resource_labels=LABELS, service_account=account.email
    )


pool("system", "us-central1-a", range(2, 4), plain_node("e2-standard-4"))
# 9 VMs of 8 GPUs are 72, of which quotas/example-plain.yaml has 64.
pool("h100", "us-central1-a", range(9), gpu_node("a3-highgpu-8g", "nvidia-h100-80gb", 16, spot=False))
# a4 machines boot from Hyperdisk alone.
pool("b200", "us-central1-b", range(1), gpu_node("a4-highgpu-8g", "nvidia-b200", 32, spot=True))
# No slice of v5e has this shape.
pool("v5e", "us-central1-a", range(5), plain_node("ct5lp-hightpu-4t"), topology="4x5")

# Nobody could tell whose it is on the bill.
storage.Bucket("data", project=PROJECT, location="US-CENTRAL1", uniform_bucket_level_access=True)
