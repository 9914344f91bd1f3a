"""A network, a cluster with H100 GPUs, files for homes, the cluster's software, a team, and machines on Vertex AI."""

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes

from training_platform.config.model.cluster import ClusterSpec, SubnetSpec
from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.team import PersistentResourceSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.modules.components import (
    ControllerMonitoring,
    FilestoreInstance,
    GkeCluster,
    JobSet,
    JupyterHub,
    Kueue,
    Network,
    NodePools,
    PersistentResource,
    TeamNamespace,
)
from training_platform.resources.scope import program_scope

scope = program_scope("example-train-dev", "dev", labels={"cost-center": "research"})
spec = ClusterSpec(
    location="us-central1",
    subnet=SubnetSpec(nodes="10.10.0.0/20", pods="10.64.0.0/16", services="10.10.16.0/20"),
    node_pools={"h100": NodePoolSpec(machine_type="a3-highgpu-8g", zone="us-central1-a", max_nodes=4)},
)

network = Network("shared", scope=scope, regions=["us-central1"])
cluster = GkeCluster("main", scope=scope, spec=spec, network=network.network_id)
pools = NodePools("main", scope=scope, spec=spec, cluster=cluster.cluster_name, service_account=cluster.service_account)
homes = FilestoreInstance(
    "homes",
    scope=scope,
    spec=FilestoreSpec(location="us-central1-a", capacity_gib=1024),
    network=network.network_id,
)


def inside(*waits_for: pulumi.Resource) -> pulumi.ResourceOptions:
    """Return options of what is in the cluster."""
    return pulumi.ResourceOptions(provider=cluster.provider, depends_on=[pools, *waits_for])


jobset = JobSet("jobset", inside())
kueue = Kueue("kueue", inside(jobset), scope=scope, cluster="main", spec=spec)
ControllerMonitoring("kueue-metrics", inside(kueue), scope=scope, controller="kueue")
hub = JupyterHub(
    "notebooks",
    inside(),
    scope=scope,
    cluster="main",
    spec=spec,
    notebooks=Notebooks(
        filestore="homes", oauth_client_id="notebooks.apps.example.com", allowed_domain="example.com", pools=("h100",)
    ),
    home_claim="homes",
)
volume = kubernetes.core.v1.PersistentVolume(
    "homes",
    metadata={"name": "homes"},
    spec={
        "capacity": {"storage": "1Ti"},
        "access_modes": ["ReadWriteMany"],
        "nfs": {"server": homes.ip, "path": "/share"},
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

jobs = gcp.serviceaccount.Account("vision-jobs", project=scope.project, account_id="dev-vision-jobs")
vision = TeamNamespace(
    "vision",
    inside(),
    scope=program_scope("example-train-dev", "dev", "vision"),
    team="vision",
    members=["group:vision@example.com"],
    google_service_account=jobs.email,
    quota={"requests.nvidia.com/gpu": "16"},
)
machines = PersistentResource(
    "tuning",
    scope=program_scope("example-train-dev", "dev", "vision"),
    spec=PersistentResourceSpec(region="us-central1", machine_type="a2-highgpu-8g", replicas=1),
)

pulumi.export("endpoint", cluster.endpoint)
pulumi.export("homes", homes.ip)
pulumi.export("namespace", vision.namespace)
pulumi.export("machines", machines.resource_id)
