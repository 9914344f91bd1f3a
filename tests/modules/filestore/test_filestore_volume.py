from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from modules.volumes import FilestoreVolume, FilestoreVolumeArgs
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model.storage import FilestoreSpec
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.scope import Scope

VOLUME = "kubernetes:core/v1:PersistentVolume"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
NAMESPACE = "kubernetes:core/v1:Namespace"
NAME = "directory-datasets-us-central1"
LABELS = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}
SCOPE = Scope(environment="prod", team="vision", project="example-train-prod", labels=LABELS, deletion_protection=True)


def deploy(*, ip: str | None = "10.9.0.2", size_gib: int = 4096, **fields: Any) -> Plan:
    spec = FilestoreSpec(**{"location": "us-central1", "tier": "REGIONAL", "capacity_gib": 10240, **fields})

    def program() -> None:
        provider = kubernetes.Provider("us-central1-kubernetes", kubeconfig="{}")
        options = pulumi.ResourceOptions(provider=provider)
        namespace = kubernetes.core.v1.Namespace(
            "share", metadata=kubernetes.meta.v1.ObjectMetaArgs(name="vision"), opts=options
        )
        args = FilestoreVolumeArgs(
            scope=SCOPE,
            key="datasets",
            spec=spec,
            ip=ip or namespace.id,
            namespace=namespace.metadata.apply(lambda made: made.name or ""),
            claim="datasets",
            size_gib=size_gib,
        )
        made = FilestoreVolume(NAME, args, pulumi.ResourceOptions(providers=[provider]))
        pulumi.export("claim", made.claim)

    return record(program, project="training-platform", stack_name="prod-vision")


def test_the_volume_is_the_instances_share() -> None:
    volume = deploy().one(VOLUME, f"{NAME}-volume").inputs

    assert volume["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "4096Gi"},
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "claimRef": {"namespace": "vision", "name": "datasets"},
        "csi": {
            "driver": "filestore.csi.storage.gke.io",
            "volumeHandle": "modeInstance/us-central1/prod-datasets/share",
            "volumeAttributes": {"ip": "10.9.0.2", "volume": "share", "fileProtocol": "NFS_V3"},
        },
    }


def test_the_claim_takes_that_volume_and_no_other() -> None:
    plan = deploy()
    claim = plan.one(CLAIM, f"{NAME}-claim").inputs

    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "4096Gi"}},
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "volumeName": "vision.datasets",
    }
    assert claim["metadata"]["namespace"] == "vision"
    assert claim["metadata"]["name"] == "datasets"
    assert plan.outputs == {"claim": "datasets"}


def test_volume_and_claim_name_each_other() -> None:
    plan = deploy()
    volume, claim = plan.one(VOLUME).inputs, plan.one(CLAIM).inputs
    reference = {key: claim["metadata"][key] for key in ("namespace", "name")}

    assert volume["spec"]["claimRef"] == reference
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]


@pytest.mark.parametrize(
    ("fields", "handle", "attributes"),
    [
        ({"share": "vol1"}, "modeInstance/us-central1/prod-datasets/vol1", {"volume": "vol1"}),
        ({"location": "us-central1-a"}, "modeInstance/us-central1-a/prod-datasets/share", {}),
        ({"protocol": "NFS_V4_1"}, "modeInstance/us-central1/prod-datasets/share", {"fileProtocol": "NFS_V4_1"}),
    ],
)
def test_the_instances_fields_reach_the_driver(fields: dict[str, Any], handle: str, attributes: dict[str, str]) -> None:
    csi = deploy(**fields).one(VOLUME).inputs["spec"]["csi"]

    assert csi["volumeHandle"] == handle
    assert csi["volumeAttributes"].items() >= attributes.items()


def test_an_address_that_only_a_deployment_tells_leaves_the_rest_known() -> None:
    spec = deploy(ip=None).one(VOLUME).inputs["spec"]

    assert spec["csi"]["volumeAttributes"]["ip"] is UNKNOWN
    assert spec["csi"]["volumeHandle"] == "modeInstance/us-central1/prod-datasets/share"


def test_another_size_makes_volume_and_claim_anew_since_kubernetes_resizes_neither() -> None:
    plan = deploy(size_gib=1)
    volume, claim = plan.one(VOLUME), plan.one(CLAIM)

    assert (volume.inputs["spec"]["capacity"], volume.options["replaceOnChanges"]) == (
        {"storage": "1Gi"},
        ["spec.capacity"],
    )
    assert (claim.inputs["spec"]["resources"], claim.options["replaceOnChanges"]) == (
        {"requests": {"storage": "1Gi"}},
        ["spec.resources"],
    )
    assert volume.options["deleteBeforeReplace"] is True
    assert claim.options["deleteBeforeReplace"] is True


def test_the_claim_follows_its_volume_and_both_follow_the_namespace() -> None:
    plan = deploy()

    assert (NAMESPACE, "share") in plan.one(VOLUME).options["dependsOn"]
    assert (VOLUME, f"{NAME}-volume") in plan.one(CLAIM).options["dependsOn"]
    assert (NAMESPACE, "share") in plan.one(CLAIM).options["dependsOn"]


def test_every_object_says_whose_it_is_and_is_made_through_the_clusters_provider() -> None:
    plan = deploy()
    objects = [plan.one(VOLUME), plan.one(CLAIM)]

    for planned in objects:
        assert planned.inputs["metadata"]["labels"] == {**LABELS, "app.kubernetes.io/managed-by": "training-platform"}
        assert planned.options["provider"] == "us-central1-kubernetes"
        assert planned.parent == ("training-platform:filestore:FilestoreVolume", NAME)
    assert {resource.type for resource in plan.resources if resource.custom} - {NAMESPACE} == {
        VOLUME,
        CLAIM,
        "pulumi:providers:kubernetes",
    }
