"""A cluster's inputs: private, reached by name, watched, and never replaced by what GKE answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pulumi
import pytest
from pulumi_gcp import container

from modules.gke import GkeCluster, GkeClusterArgs, NodeServiceAccount, NodeServiceAccountArgs, dns_endpoint
from training_platform.checks.planning.recorder import Plan
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.node_pool import SystemPoolSpec
from training_platform.resources.planned import UNKNOWN, Planned
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
CLUSTER = "gcp:container/cluster:Cluster"
MEMBER = "gcp:projects/iAMMember:IAMMember"
RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"}


def cluster(scope: Scope, **fields: Any) -> GkeCluster:
    spec = ClusterSpec.model_validate({"location": "us-central2-b", "subnet": RANGES, **fields})
    nodes = NodeServiceAccount("nodes", NodeServiceAccountArgs(scope=scope))
    args = GkeClusterArgs(scope=scope, spec=spec, network="vpc", subnetwork="subnet", service_account=nodes)
    return GkeCluster("tpu", args)


@pytest.fixture
def planned(scope: Scope, deploy: Deploy) -> Planned:
    return deploy(lambda: cluster(scope)).one(CLUSTER, "tpu-cluster")


def test_a_cluster_is_named_after_its_environment_and_key(planned: Planned) -> None:
    assert planned.inputs["name"] == "prod-tpu"
    assert planned.inputs["project"] == "example-train-prod"
    assert planned.inputs["resourceLabels"] == {"environment": "prod", "managed-by": "training-platform"}


def test_nodes_have_no_public_address_and_the_control_plane_has_no_address_at_all(planned: Planned) -> None:
    assert planned.inputs["privateClusterConfig"] == {"enablePrivateNodes": True}
    assert planned.inputs["controlPlaneEndpointsConfig"] == {
        "dnsEndpointConfig": {"allowExternalTraffic": True},
        "ipEndpointsConfig": {"enabled": False},
    }
    assert "masterAuthorizedNetworksConfig" not in planned.inputs


def test_pods_and_services_take_the_ranges_of_the_subnet(planned: Planned) -> None:
    assert planned.inputs["network"] == "vpc"
    assert planned.inputs["subnetwork"] == "subnet"
    assert planned.inputs["networkingMode"] == "VPC_NATIVE"
    assert planned.inputs["ipAllocationPolicy"] == {
        "clusterSecondaryRangeName": "pods",
        "servicesSecondaryRangeName": "services",
    }


def test_what_only_a_new_cluster_can_have_is_there_from_the_start(planned: Planned) -> None:
    assert planned.inputs["datapathProvider"] == "ADVANCED_DATAPATH"
    assert planned.inputs["enableMultiNetworking"] is True
    assert "networkPolicy" not in planned.inputs  # Dataplane V2 and Calico exclude each other


def test_pods_act_under_accounts_of_the_clusters_project(planned: Planned) -> None:
    assert planned.inputs["workloadIdentityConfig"] == {"workloadPool": "example-train-prod.svc.id.goog"}


@pytest.mark.parametrize("location", ["us-central2-b", "us-west4"])
def test_a_cluster_is_where_the_stack_file_says_and_lists_no_zones(location: str, scope: Scope, deploy: Deploy) -> None:
    inputs = deploy(lambda: cluster(scope, location=location)).one(CLUSTER).inputs

    assert inputs["location"] == location
    assert "nodeLocations" not in inputs


def test_the_release_channel_and_the_lowest_version_reach_gke(scope: Scope, deploy: Deploy) -> None:
    inputs = deploy(lambda: cluster(scope, release_channel="RAPID", version="1.33")).one(CLUSTER).inputs

    assert inputs["releaseChannel"] == {"channel": "RAPID"}
    assert inputs["minMasterVersion"] == "1.33"


def test_without_a_version_gke_picks_it(planned: Planned) -> None:
    assert planned.inputs.keys().isdisjoint({"minMasterVersion", "nodeVersion"})


def test_metrics_cover_system_workloads_gpus_and_jobsets(planned: Planned) -> None:
    monitoring = planned.inputs["monitoringConfig"]

    assert {"SYSTEM_COMPONENTS", "POD", "KUBELET", "CADVISOR", "DCGM", "JOBSET"} <= set(monitoring["enableComponents"])
    assert "WORKLOADS" not in monitoring["enableComponents"]  # GKE took it away in 1.24
    assert monitoring["managedPrometheus"] == {"enabled": True}
    assert planned.inputs["loggingConfig"] == {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}
    assert planned.inputs["costManagementConfig"] == {"enabled": True}


def test_buckets_filestore_and_disks_can_be_mounted_and_images_stream(planned: Planned) -> None:
    assert planned.inputs["addonsConfig"] == {
        "gcsFuseCsiDriverConfig": {"enabled": True},
        "gcpFilestoreCsiDriverConfig": {"enabled": True},
        "gcePersistentDiskCsiDriverConfig": {"enabled": True},
    }
    assert planned.inputs["nodePoolDefaults"] == {"nodeConfigDefaults": {"gcfsConfig": {"enabled": True}}}


def test_nodes_are_shielded_and_resources_scaled_upwards(planned: Planned) -> None:
    assert planned.inputs["enableShieldedNodes"] is True
    assert planned.inputs["verticalPodAutoscaling"] == {"enabled": True}
    assert planned.inputs["securityPostureConfig"] == {"mode": "BASIC"}


def test_the_throw_away_pool_is_of_the_system_pool_s_machine_whose_quota_it_uses(planned: Planned) -> None:
    assert planned.inputs["removeDefaultNodePool"] is True
    assert planned.inputs["initialNodeCount"] == 1
    assert planned.inputs["skipNodePoolRefresh"] is True
    assert "nodePools" not in planned.inputs
    node = planned.inputs["nodeConfig"]
    assert node["machineType"] == SystemPoolSpec().machine_type
    assert node["bootDisk"] == {"sizeGb": 30, "diskType": "pd-balanced"}
    assert node["serviceAccount"] is UNKNOWN
    assert node["oauthScopes"] == ["https://www.googleapis.com/auth/cloud-platform"]


def test_what_gke_answers_for_the_removed_pool_replaces_nothing(planned: Planned) -> None:
    assert planned.options["ignoreChanges"] == ["initialNodeCount", "nodeConfig"]
    assert planned.options["deleteBeforeReplace"] is True


def test_the_first_nodes_wait_for_their_roles(planned: Planned) -> None:
    waits = planned.options["dependsOn"]

    assert (MEMBER, "nodes-container.defaultNodeServiceAccount") in waits
    assert (MEMBER, "nodes-artifactregistry.reader") in waits


@pytest.mark.parametrize("protected", [True, False])
def test_deletion_protection_is_google_clouds_and_pulumis(protected: bool, scope: Scope, deploy: Deploy) -> None:
    mine = dataclasses.replace(scope, deletion_protection=protected)
    planned = deploy(lambda: cluster(mine)).one(CLUSTER)

    assert planned.inputs["deletionProtection"] is protected
    assert planned.options.get("protect", False) is protected


def test_upgrades_have_weekend_days_and_the_48_hours_in_32_days_that_gke_asks_for(planned: Planned) -> None:
    window = planned.inputs["maintenancePolicy"]["recurringWindow"]
    start, end = (datetime.fromisoformat(window[key]) for key in ("startTime", "endTime"))

    assert start.strftime("%A") == "Saturday"
    assert window["recurrence"] == "FREQ=WEEKLY;BYDAY=SA,SU"
    assert (end - start).total_seconds() / 3600 * 2 * 4 >= 48


def test_the_endpoint_is_unknown_until_the_cluster_is_there(scope: Scope, deploy: Deploy) -> None:
    def program() -> None:
        made = cluster(scope)
        pulumi.export("endpoint", made.endpoint)
        pulumi.export("id", made.cluster_id)
        pulumi.export("name", made.cluster_name)

    assert deploy(program).outputs == {"endpoint": UNKNOWN, "id": UNKNOWN, "name": "prod-tpu"}


def test_the_endpoint_is_the_host_name_that_gke_answers() -> None:
    assert dns_endpoint(endpoints("gke-0123.us-central2.gke.goog")) == "gke-0123.us-central2.gke.goog"


@pytest.mark.parametrize("host", [None, ""])
def test_an_answer_without_a_host_name_is_refused(host: str | None) -> None:
    with pytest.raises(ValueError, match="no DNS-based control-plane endpoint"):
        dns_endpoint(endpoints(host))
    with pytest.raises(ValueError, match="no DNS-based control-plane endpoint"):
        dns_endpoint(container.outputs.ClusterControlPlaneEndpointsConfig())


def endpoints(host: str | None) -> container.outputs.ClusterControlPlaneEndpointsConfig:
    dns = container.outputs.ClusterControlPlaneEndpointsConfigDnsEndpointConfig(endpoint=host)
    return container.outputs.ClusterControlPlaneEndpointsConfig(dns_endpoint_config=dns)
