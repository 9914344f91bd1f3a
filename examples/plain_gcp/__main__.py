"""A training cluster in plain pulumi-gcp, with mistakes that only a deployment would show."""

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
    name: str,
    zone: str,
    node: container.NodePoolNodeConfigArgs,
    *,
    min_nodes: int,
    max_nodes: int,
    topology: str | None = None,
) -> None:
    """Create a node pool of ``min_nodes`` to ``max_nodes`` VMs; ``topology`` is the shape of its one TPU slice."""
    shape = None
    if topology is not None:
        shape = container.NodePoolPlacementPolicyArgs(type="COMPACT", tpu_topology=topology)
    container.NodePool(
        name,
        project=PROJECT,
        location="us-central1",
        node_locations=[zone],
        cluster=cluster.name,
        autoscaling=container.NodePoolAutoscalingArgs(
            min_node_count=min_nodes, max_node_count=max_nodes, location_policy="ANY"
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
    """Return the settings of a VM without accelerators to configure."""
    return container.NodePoolNodeConfigArgs(
        machine_type=machine_type, oauth_scopes=SCOPES, resource_labels=LABELS, service_account=account.email
    )


pool("system", "us-central1-a", plain_node("e2-standard-4"), min_nodes=2, max_nodes=4)
# 9 VMs with 8 GPUs each are 72; quotas/example-plain.yaml allows 64.
pool("h100", "us-central1-a", gpu_node("a3-highgpu-8g", "nvidia-h100-80gb", 16, spot=False), min_nodes=0, max_nodes=9)
# a4 machines boot only from Hyperdisk.
pool("b200", "us-central1-b", gpu_node("a4-highgpu-8g", "nvidia-b200", 32, spot=True), min_nodes=0, max_nodes=1)
# No slice of v5e has this shape.
pool("v5e", "us-central1-a", plain_node("ct5lp-hightpu-4t"), min_nodes=0, max_nodes=5, topology="4x5")

# Without labels nobody can tell on the bill whose bucket this is.
storage.Bucket("data", project=PROJECT, location="US-CENTRAL1", uniform_bucket_level_access=True)
