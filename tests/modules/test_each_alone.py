"""Components that stack files compose, each constructed by itself in another program, as docs/components.md has it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from modules.controllers import JobSet, JobSetArgs, Kueue, KueueArgs, Operator, OperatorArgs
from modules.gke import ExistingCluster, ExistingClusterArgs, WorkloadPolicies
from modules.gpu_direct import GpuDirect, GpuDirectArgs
from modules.jupyterhub import TeamNotebooks, TeamNotebooksArgs
from modules.launch_agent import LaunchAgent, LaunchAgentArgs
from modules.monitoring import Dashboards
from modules.network import GpuNetworks, GpuNetworksArgs
from modules.queues import ComputeClasses, ComputeClassesArgs, Flavors, FlavorsArgs, TeamQueues, TeamQueuesArgs
from modules.serving import ModelServer, ModelServerArgs
from modules.storage import LustreInstance, LustreInstanceArgs
from modules.tenancy import Admission, AdmissionArgs, TeamNamespace, TeamNamespaceArgs
from modules.vertex import MetadataStore, VertexAttachment, VertexAttachmentArgs, Workbench, WorkbenchArgs
from modules.volumes import DataDisk, DataVolume, DataVolumeArgs, FilestoreClass, FilestoreVolume, FilestoreVolumeArgs
from tests.places import ROOT
from training_platform.checks.planning.recorder import record
from training_platform.config.gpu_fabric import gpu_fabrics
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import FilestoreSpec, HyperdiskData, LustreSpec
from training_platform.config.model.team import Team, WorkbenchSpec
from training_platform.config.model.workloads import LaunchSpec, Notebooks, ServerSpec
from training_platform.config.pools import cluster_pools, flavors
from training_platform.resources.admission import Bounds
from training_platform.resources.environment_outputs import SubnetOutputs
from training_platform.resources.filestore import storage_class
from training_platform.resources.monitoring import platform_dashboard
from training_platform.resources.node_pools import workload_policies
from training_platform.resources.scope import Scope

SCOPE = Scope(
    environment="dev",
    team=None,
    project="example-train-dev",
    labels={"environment": "dev"},
    deletion_protection=True,
)
CLUSTER: dict[str, Any] = {
    "location": "us-central1",
    "subnet": {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"},
    "compute_classes": {"any": {"priorities": [{"machine_type": "g2-standard-8"}]}},
    "node_pools": {
        "h100": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 2},
        "gb200": {"machine_type": "a4x-highgpu-4g", "zone": "us-central1-a", "max_nodes": 18},
    },
}
SPEC = ClusterSpec.model_validate(CLUSTER, strict=False)
ENVIRONMENT = Environment.model_validate(
    {
        "project": "example-train-dev",
        "production": False,
        "clusters": {"main": CLUSTER},
        "data_sets": {"images": {"hyperdisk_ml": {"zone": "us-central1-a", "size_gib": 100, "filled": True}}},
    },
    strict=False,
)
TEAM = Team.model_validate(
    {
        "environment": "dev",
        "name": "vision",
        "members": ["group:vision@example.com"],
        "shares": {"main": {"h100": {"nominal_quota": 8}}},
    },
    strict=False,
)
FILESTORE = FilestoreSpec(location="us-central1-a", capacity_gib=1024)
FABRIC = next(iter(gpu_fabrics("main", SPEC).values()))
NAMES = dict.fromkeys([each.name for each in FABRIC.vpcs] + [nic.name for vpc in FABRIC.vpcs for nic in vpc.nics], "n")
Options = pulumi.ResourceOptions
CLOUD: dict[str, Callable[[Options], object]] = {
    "DataDisk": lambda opts: DataDisk("disk", "images", HyperdiskData(zone="us-central1-a", size_gib=100), SCOPE, opts),
    "Dashboards": lambda opts: Dashboards("dashboard", platform_dashboard(ENVIRONMENT, SCOPE), opts),
    "ExistingCluster": lambda opts: ExistingCluster(
        "theirs", ExistingClusterArgs(scope=SCOPE, location="us-central1", cluster="shared"), opts
    ),
    "GpuNetworks": lambda opts: GpuNetworks("nics", GpuNetworksArgs(scope=SCOPE, cluster="main", fabric=FABRIC), opts),
    "LustreInstance": lambda opts: LustreInstance(
        "scratch",
        LustreInstanceArgs(
            scope=SCOPE, key="scratch", spec=LustreSpec(location="us-central1-a", capacity_gib=18000), network="n",
            services=[],
        ),
        opts,
    ),
    "MetadataStore": lambda opts: MetadataStore("metadata", "us-central1", SCOPE, opts),
    "VertexAttachment": lambda opts: VertexAttachment(
        "attachment",
        VertexAttachmentArgs(scope=SCOPE, region="us-central1", addresses="10.30.0.0/24", network="n"),
        opts,
    ),
    "Workbench": lambda opts: Workbench(
        "ada",
        WorkbenchArgs(
            scope=SCOPE, key="ada", account=[],
            spec=WorkbenchSpec(zone="us-central1-a", machine_type="g2-standard-8", owner="ada@example.com"),
            near=pulumi.Output.from_input(SubnetOutputs(network="n", subnet="s")),
        ),
        opts,
    ),
    "WorkloadPolicies": lambda opts: WorkloadPolicies(
        "policies", dict(workload_policies(SCOPE, "main", "us-central1", cluster_pools("main", SPEC))), opts
    ),
}  # fmt: skip
IN_CLUSTER: dict[str, Callable[[Options], object]] = {
    "Admission": lambda opts: Admission("admission", AdmissionArgs(scope=SCOPE, images={}, bounds=Bounds()), opts),
    "ComputeClasses": lambda opts: ComputeClasses(
        "classes",
        ComputeClassesArgs(scope=SCOPE, cluster_name="main", cluster=SPEC, service_account="nodes@example.com"),
        opts,
    ),
    "DataVolume": lambda opts: DataVolume(
        "images",
        DataVolumeArgs(
            scope=SCOPE, home=SCOPE, environment=ENVIRONMENT, key="images", mode="ReadOnlyMany", namespace="vision",
            address=None,
        ),
        opts,
    ),
    "FilestoreClass": lambda opts: FilestoreClass("class", storage_class("class", SCOPE, "ZONAL", "n"), opts),
    "FilestoreVolume": lambda opts: FilestoreVolume(
        "homes",
        FilestoreVolumeArgs(
            scope=SCOPE, key="homes", spec=FILESTORE, ip="10.0.0.2", namespace="vision", claim="homes", size_gib=100
        ),
        opts,
    ),
    "Flavors": lambda opts: Flavors(
        "flavors", FlavorsArgs(scope=SCOPE, cluster_name="main", cluster=SPEC, priorities={"high": 1}, cohorts={}), opts
    ),
    "GpuDirect": lambda opts: GpuDirect(
        "direct", GpuDirectArgs(scope=SCOPE, fabric=FABRIC, networks=NAMES, subnetworks=NAMES, images={}), opts
    ),
    "JobSet": lambda opts: JobSet("jobset", JobSetArgs(), opts),
    "Kueue": lambda opts: Kueue("kueue", KueueArgs(scope=SCOPE, cluster_name="main", cluster=SPEC), opts),
    "LaunchAgent": lambda opts: LaunchAgent(
        "launch",
        LaunchAgentArgs(
            scope=SCOPE, team="vision", spec=LaunchSpec(entity="example", queues=("gpus",)), namespace="vision"
        ),
        opts,
    ),
    "ModelServer": lambda opts: ModelServer(
        "chat",
        ModelServerArgs(
            scope=SCOPE,
            key="chat",
            team="vision",
            spec=ServerSpec(flavor="h100", image="us-docker.pkg.dev/example/images/vllm:1"),
            flavor=flavors("main", SPEC)["h100"],
            namespace="vision",
        ),
        opts,
    ),
    "Operator": lambda opts: Operator("ray", OperatorArgs(operator="ray"), opts),
    "TeamNamespace": lambda opts: TeamNamespace(
        "vision",
        TeamNamespaceArgs(scope=SCOPE, team="vision", members=TEAM.members, google_service_account="jobs@example.com"),
        opts,
    ),
    "TeamNotebooks": lambda opts: TeamNotebooks(
        "notebooks",
        TeamNotebooksArgs(
            scope=SCOPE, filestore=FILESTORE, ip="10.0.0.2", namespace="vision", closed=True,
            notebooks=Notebooks(filestore="homes", oauth_client_id="id", allowed_domain="example.com"),
        ),
        opts,
    ),
    "TeamQueues": lambda opts: TeamQueues(
        "queues",
        TeamQueuesArgs(scope=SCOPE, team=TEAM, cluster="main", flavors=flavors("main", SPEC), namespace="vision"),
        opts,
    ),
}  # fmt: skip
COMPOSED = {"EnvironmentCluster", "TeamCluster"}
"""What an environment and a team make of the others for a cluster: with all that a stack file says."""


def components() -> set[str]:
    """Return the classes of components in modules/."""
    return {
        each.name
        for path in (ROOT / "modules").rglob("*.py")
        for each in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(each, ast.ClassDef) and any("ComponentResource" in ast.unparse(base) for base in each.bases)
    }


@pytest.mark.parametrize("component", IN_CLUSTER)
def test_a_component_of_a_cluster_puts_all_of_it_where_the_callers_provider_goes(component: str) -> None:
    def program() -> None:
        IN_CLUSTER[component](Options(provider=kubernetes.Provider("theirs", kubeconfig="{}")))

    plan = record(program, project="other", stack_name="dev")

    objects = [each for each in plan.resources if each.type.startswith("kubernetes:")]
    assert objects
    assert {each.options["provider"] for each in objects} == {"theirs"}


@pytest.mark.parametrize("component", CLOUD)
def test_a_component_of_google_cloud_needs_no_stack_file_and_no_cluster(component: str) -> None:
    plan = record(partial(CLOUD[component], Options()), project="other", stack_name="dev")

    assert [each for each in plan.resources if each.custom or component == "ExistingCluster"]  # which is read alone
    assert not [each for each in plan.resources if "kubernetes" in each.type]


def test_every_component_is_constructed_by_a_test() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "modules").rglob("test_*.py")]
    missing = {name for name in components() if not any(re.search(rf"\b{name}\(", text) for text in texts)}

    assert missing == COMPOSED


def test_the_page_of_components_has_every_component_of_a_cluster() -> None:
    page = (ROOT / "docs" / "components.md").read_text(encoding="utf-8")

    assert [name for name in sorted({*components()} - COMPOSED) if f"`{name}`" not in page] == []
