"""A network, a cluster with H100 GPUs, files for homes, the cluster's software, a team, and machines on Vertex AI."""

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes

from training_platform.modules import (
    FilestoreInstance,
    GkeCluster,
    JobSet,
    JupyterHub,
    Kueue,
    Network,
    NodePools,
    NodePoolSpec,
    PersistentResource,
    Place,
    Prometheus,
    ResourceFlavors,
    TeamBucket,
    TeamNamespace,
    TeamPlace,
    TeamQueues,
)

PROJECT = "example-train-dev"
LOCATION = "us-central1"
MEMBERS = ["group:vision@example.com"]
place = Place(project=PROJECT, environment="dev", labels={"cost-center": "research"})
vision = TeamPlace(project=PROJECT, environment="dev", team="vision", labels={"cost-center": "research"})
pools: dict[str, NodePoolSpec] = {"h100": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 4}}

network = Network("shared", {"place": place, "regions": [LOCATION]})
cluster = GkeCluster(
    "main",
    {
        "place": place,
        "location": LOCATION,
        "network": network.network_id,
        "subnet": {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"},
        "node_pools": pools,
    },
)
homes = FilestoreInstance(
    "homes", {"place": place, "location": "us-central1-a", "capacity_gib": 1024, "network": network.network_id}
)
# Pools in a cluster that somebody else creates, with an account of their own for its nodes.
NodePools(
    "batch",
    {
        "place": place,
        "cluster": "dev-batch",
        "service_account": "batch-nodes@example-train-dev.iam.gserviceaccount.com",
        "location": LOCATION,
        "node_pools": {"l4": {"machine_type": "g2-standard-12", "zone": "us-central1-a", "max_nodes": 8}},
    },
)


def inside(*waits_for: pulumi.Resource) -> pulumi.ResourceOptions:
    """Return options of what is in the cluster."""
    return pulumi.ResourceOptions(provider=cluster.provider, depends_on=[cluster, *waits_for])


jobset = JobSet("jobset", {}, inside())
kueue = Kueue("kueue", {"place": place, "cluster": "main", "location": LOCATION, "node_pools": pools}, inside(jobset))
Prometheus("kueue-metrics", {"place": place, "controller": "kueue"}, inside(kueue))
flavors = ResourceFlavors(
    "flavors", {"place": place, "cluster": "main", "location": LOCATION, "node_pools": pools}, inside(kueue)
)

jobs = gcp.serviceaccount.Account("vision-jobs", project=PROJECT, account_id="dev-vision-jobs")
namespace = TeamNamespace(
    "vision",
    {
        "place": vision,
        "members": MEMBERS,
        "google_service_account": jobs.email,
        "quota": {"requests.nvidia.com/gpu": "16"},
    },
    inside(),
)
queues = TeamQueues(
    "vision-queues",
    {
        "place": vision,
        "cluster": "main",
        "location": LOCATION,
        "node_pools": pools,
        "namespace": namespace.namespace,
        "shares": {"h100": {"nominal_quota": 16}},
    },
    inside(flavors),
)
checkpoints = TeamBucket(
    "checkpoints", {"place": vision, "location": LOCATION, "members": MEMBERS, "jobs": jobs.email, "versioning": True}
)
machines = PersistentResource(
    "tuning", {"place": vision, "region": LOCATION, "machine_type": "a2-highgpu-8g", "replicas": 1}
)

hub = JupyterHub(
    "notebooks",
    {
        "place": place,
        "cluster": "main",
        "location": LOCATION,
        "node_pools": pools,
        "notebooks": {
            "filestore": "homes",
            "oauth_client_id": "notebooks.apps.example.com",
            "allowed_domain": "example.com",
            "pools": ["h100"],
        },
        "home_claim": "homes",
    },
    inside(),
)
volume = kubernetes.core.v1.PersistentVolume(
    "homes",
    metadata={"name": "homes"},
    spec={
        "capacity": {"storage": "1Ti"},
        "access_modes": ["ReadWriteMany"],
        "nfs": {"server": homes.address, "path": "/share"},
        "storage_class_name": "",
    },
    opts=inside(),
)
kubernetes.core.v1.PersistentVolumeClaim(
    "homes",
    metadata={"name": "homes", "namespace": hub.namespace},
    spec={
        "access_modes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Ti"}},
        "storage_class_name": "",
        "volume_name": volume.metadata.name,
    },
    opts=inside(),
)

pulumi.export("endpoint", cluster.endpoint)
pulumi.export("pools", cluster.pool_names)
pulumi.export("homes", homes.address)
pulumi.export("queues", queues.queues)
pulumi.export("bucket", checkpoints.bucket_name)
pulumi.export("machines", machines.resource_id)
