"""The disks and volumes of data sets, for a team that fills them and one that reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.every_field import ENVIRONMENT, TEAM, planned
from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack, composed, planned_stack
from tests.support.stack_files import workspace_of
from training_platform.catalog import FILESTORE_TIERS
from training_platform.catalog.prices import HOURS_OF_MONTH, PriceBook
from training_platform.checks.cost import stack_cost
from training_platform.checks.reports.json_report import file_document
from training_platform.checks.reports.sections import file_section
from training_platform.config.data_sets import access_mode, with_own_data
from training_platform.config.model.cluster import SubnetSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import DataSetSpec, FileClassSpec, FilestoreSpec, TeamDataSpec
from training_platform.config.model.team import Team
from training_platform.config.workspace import read_workspace
from training_platform.quota.demand import stack_demand
from training_platform.quota.ledger import file_ledger
from training_platform.resources.filestore import claim_limits, most_gib, storage_class, tier_class
from training_platform.resources.kubernetes_objects import kubernetes_object
from training_platform.resources.plan import Component
from training_platform.resources.resource_types import BUCKET_MEMBER, CLUSTER, DISK, RELEASE
from training_platform.resources.scope import Scope
from training_platform.resources.volumes import JOB, filestore_volume

VOLUME = "kubernetes:core/v1:PersistentVolume"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
NAMESPACE = "kubernetes:core/v1:Namespace"
NAME = "directory-datasets-us-central1"
LABELS = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}
SCOPE = Scope(environment="prod", team="vision", project="example-train-prod", labels=LABELS, deletion_protection=True)


def deploy(*, ip: str | None = "10.9.0.2", size_gib: int = 4096, folder: str = "", **fields: Any) -> PlannedStack:
    spec = FilestoreSpec(**{"location": "us-central1", "tier": "REGIONAL", "capacity_gib": 10240, **fields})

    def compose(into: Component) -> None:
        namespace = into.add(kubernetes_object(NAMESPACE, "share", SCOPE, "vision", {}))
        filestore_volume(
            into,
            SCOPE,
            spec,
            address=ip or namespace.output("id"),
            namespace=namespace.output("metadata", "name"),
            claim="datasets",
            size_gib=size_gib,
            folder=folder,
        )

    return composed(compose, NAME)


def test_the_volume_is_the_instances_share() -> None:
    volume = deploy().one(VOLUME, f"{NAME}-volume").inputs

    assert volume["metadata"]["name"] == "vision.datasets"
    assert volume["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "4096Gi"},
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "claimRef": {"namespace": "vision", "name": "datasets"},
        "nfs": {"server": "10.9.0.2", "path": "/share"},
        "mountOptions": ["nfsvers=3"],
    }


def test_each_team_on_an_instance_has_a_volume_of_its_folder_which_a_job_makes() -> None:
    workspace = read_workspace(ORGANISATION)
    directories = {"vision": "datasets", "nlp": "corpora"}
    plans = {team: planned_stack(workspace.stacks[f"prod-{team}"], workspace) for team in directories}
    volumes = {
        team: plans[team].one(VOLUME, f"directory-{claim}-us-central1-volume").inputs["spec"]
        for team, claim in directories.items()
    }

    for team, spec in volumes.items():
        assert spec["nfs"]["path"] == f"/share/{team}"
        job = plans[team].one(JOB, "share-us-central1-datasets-folder-job")
        pod = job.inputs["spec"]["template"]["spec"]
        assert job.inputs["metadata"]["namespace"] == "default"
        assert pod["containers"][0]["command"] == [
            "install", "-d", "-m", "2775", "-g", "100", f"/share/{team}", f"/share/{team}/{directories[team]}",
        ]  # fmt: skip
        assert pod["volumes"][0]["nfs"]["path"] == "/share"
    assert all("csi" not in spec for spec in volumes.values())


def test_another_size_makes_volume_and_claim_anew_since_kubernetes_resizes_neither() -> None:
    plan = deploy(size_gib=1)
    volume = plan.one(VOLUME)
    claim = plan.one(CLAIM)

    assert (volume.inputs["spec"]["capacity"], volume.options["replaceOnChanges"]) == (
        {"storage": "1Gi"},
        ["spec"],
    )
    assert (claim.inputs["spec"]["resources"], claim.options["replaceOnChanges"]) == (
        {"requests": {"storage": "1Gi"}},
        ["spec"],
    )
    assert volume.options["deleteBeforeReplace"] is True
    assert claim.options["deleteBeforeReplace"] is True


def test_the_claim_follows_its_volume_and_both_follow_the_namespace() -> None:
    plan = deploy()

    assert (NAMESPACE, "share") in plan.one(VOLUME).options["dependsOn"]
    assert (VOLUME, f"{NAME}-volume") in plan.one(CLAIM).options["dependsOn"]
    assert (NAMESPACE, "share") in plan.one(CLAIM).options["dependsOn"]


VOLUME_DATA = "kubernetes:core/v1:PersistentVolume"
CLAIM_DATA = "kubernetes:core/v1:PersistentVolumeClaim"
BUCKET = {"name": "example-images", "location": "us-central1"}
DISK_OF = {"zone": "us-central1-a", "size_gib": 500}


def environment(**data_set: Any) -> dict[str, Any]:
    return {**ENVIRONMENT, "data_sets": {"images": data_set}}


def volume(**data_set: Any) -> dict[str, Any]:
    plan = planned(environment(**data_set), TEAM, "team")
    spec: dict[str, Any] = plan.one(VOLUME_DATA, "data-images-c-volume").inputs["spec"]
    claim = plan.one(CLAIM_DATA, "data-images-c-claim").inputs
    assert claim["metadata"]["name"] == spec["claimRef"]["name"] == "data-set.images"
    assert claim["spec"]["accessModes"] == spec["accessModes"]
    return spec


def test_a_bucket_is_a_volume_of_its_folder() -> None:
    spec = volume(bucket={**BUCKET, "path": "food101", "file_cache_gib": 100})

    assert spec["csi"] == {
        "driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": "example-images",
        "volumeAttributes": {"fileCacheCapacity": "100Gi", "fileCacheForRangeRead": "true"},
    }  # fmt: skip
    assert "only-dir:food101" in spec["mountOptions"]
    assert spec["accessModes"] == ["ReadOnlyMany"]
    assert spec["storageClassName"] == ""
    assert "nodeAffinity" not in spec


def test_a_profile_is_a_class_of_gke() -> None:
    assert volume(bucket={**BUCKET, "profile": "checkpointing"})["storageClassName"] == "gcsfusecsi-checkpointing"


def test_a_folder_of_filestore_is_mounted_without_the_rest_of_its_share() -> None:
    spec = volume(filestore={"instance": "e", "path": "food101"})

    assert spec["nfs"]["path"] == "/share/food101"
    assert "csi" not in spec


def test_a_disk_that_is_filled_is_read_by_many_and_written_by_nobody() -> None:
    spec = volume(hyperdisk_ml={**DISK_OF, "filled": True}, writer="team")

    assert spec["accessModes"] == ["ReadOnlyMany"]
    assert spec["capacity"] == {"storage": "500Gi"}
    assert spec["csi"]["volumeHandle"] == "projects/example-reach/zones/us-central1-a/disks/env-data-images"
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "topology.gke.io/zone", "operator": "In", "values": ["us-central1-a"]}]


def test_a_disk_is_filled_by_its_writer_alone() -> None:
    data = DataSetSpec.model_validate({"hyperdisk_ml": DISK_OF, "writer": "team"})

    assert (access_mode(data, "team"), access_mode(data, "others")) == ("ReadWriteOnce", None)
    disk = planned(environment(hyperdisk_ml=DISK_OF, writer="team"), TEAM, "env").one(DISK).inputs
    assert (disk["type"], disk["size"], disk["accessMode"]) == ("hyperdisk-ml", 500, "READ_WRITE_SINGLE")


def test_lustre_is_mounted_by_its_driver_which_the_cluster_then_has() -> None:
    data = {"instance": "one", "location": "us-central1-a", "address": "10.90.0.2", "filesystem": "lustre"}

    assert volume(lustre=data)["csi"] == {
        "driver": "lustre.csi.storage.gke.io", "volumeHandle": "example-reach/us-central1-a/one",
        "volumeAttributes": {"ip": "10.90.0.2", "filesystem": "lustre"},
    }  # fmt: skip
    for has_driver, section in ((True, environment(lustre=data)), (False, environment(bucket=BUCKET))):
        addons = planned(section, TEAM, "env").one(CLUSTER).inputs["addonsConfig"]
        assert ("lustreCsiDriverConfig" in addons) is has_driver


@pytest.mark.parametrize(("writer", "role"), [("team", "objectUser"), (None, "objectViewer")])
def test_the_team_s_account_reads_the_bucket_and_writes_where_it_fills_it(writer: str | None, role: str) -> None:
    plan = planned(environment(bucket=BUCKET, writer=writer), TEAM, "team")

    assert plan.one(BUCKET_MEMBER, "data-images-access").inputs["role"] == f"roles/storage.{role}"


def test_a_team_that_does_not_read_it_gets_nothing_of_it() -> None:
    plan = planned(environment(bucket=BUCKET, teams=["others"]), TEAM, "team")

    assert [resource.name for resource in plan.resources if resource.name.startswith("data-images")] == []


def test_notebooks_mount_what_all_teams_read_and_no_bucket() -> None:
    sets = {
        "files": {"filestore": {"instance": "e", "path": "a"}, "writer": "team"},
        "theirs": {"filestore": {"instance": "e", "path": "b"}, "teams": ["team"]},
        "bucket": {"bucket": BUCKET},
        "empty": {"hyperdisk_ml": DISK_OF, "writer": "team"},
    }
    plan = planned({**ENVIRONMENT, "data_sets": sets}, TEAM, "env")

    volumes = [
        resource.name
        for resource in plan.resources
        if resource.type == VOLUME_DATA and resource.name.startswith("data-")
    ]
    assert volumes == ["data-files-c-notebooks-volume"]
    assert plan.one(VOLUME_DATA, volumes[0]).inputs["spec"]["accessModes"] == ["ReadOnlyMany"]
    storage = plan.one(RELEASE, "c-notebooks-release").inputs["values"]["singleuser"]["storage"]
    claim = {"claimName": "data-set.files", "readOnly": True}
    assert storage["extraVolumes"][1:] == [{"name": "data-set-files", "persistentVolumeClaim": claim}]
    assert storage["extraVolumeMounts"][1:] == [
        {"name": "data-set-files", "mountPath": "/data/files", "readOnly": True}
    ]


OWN = {"own": {"bucket": {"name": "example-own", "location": "us-central1", "path": "crops"}, "writable": True}}


def test_no_other_team_sees_it() -> None:
    environment = Environment.model_validate(ENVIRONMENT, strict=False)
    team = Team.model_validate(TEAM, strict=False)
    owning = team.model_copy(update={"data_sets": {"own": TeamDataSpec.model_validate(OWN["own"], strict=False)}})
    seen = with_own_data(owning, environment)

    assert seen.data_sets["own"].readable_by(team.name)
    assert not seen.data_sets["own"].readable_by("others")
    assert with_own_data(team.model_copy(update={"data_sets": {}}), environment) is environment


CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"
LABELS_CLASS = {"cost-center": "ml", "managed-by": "training-platform", "environment": "prod"}
SUBNET = SubnetSpec(nodes="10.0.0.0/20", pods="10.1.0.0/16", services="10.2.0.0/20")


def deploy_class(tier: str = "ZONAL", *, protected: bool = True) -> PlannedStack:
    scope = Scope(
        environment="prod", team=None, project="example-train-prod", labels=LABELS_CLASS, deletion_protection=protected
    )

    declared = storage_class("us-central1-filestore", scope, tier, "prod")
    return composed(lambda into: into.add(declared))


def test_claims_make_instances_in_the_platforms_own_network() -> None:
    plan = deploy_class()

    assert plan.one(CLASS, "us-central1-filestore-class").inputs == {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "filestore-zonal",
            "labels": {**LABELS_CLASS, "app.kubernetes.io/managed-by": "training-platform"},
        },
        "provisioner": "filestore.csi.storage.gke.io",
        "parameters": {
            "tier": "zonal",
            "network": "prod",
            "labels": "environment=prod,managed-by=training-platform",  # another parameter replaces the class
        },
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
        "reclaimPolicy": "Retain",
    }


def test_without_deletion_protection_a_deleted_claim_takes_its_instance_along() -> None:
    assert deploy_class(protected=False).one(CLASS).inputs["reclaimPolicy"] == "Delete"


def test_no_two_tiers_share_a_class() -> None:
    assert len({tier_class(tier) for tier in FILESTORE_TIERS}) == len(FILESTORE_TIERS)


def test_what_kubernetes_will_not_change_makes_the_class_anew() -> None:
    options = deploy_class().one(CLASS).options

    assert options["replaceOnChanges"] == ["reclaimPolicy"]
    assert options["deleteBeforeReplace"] is True


SHARED = {"tier": "ENTERPRISE", "multishare": True, "largest_share_gib": 256, "teams": {"team": 2048}}
CLUSTER_class = {**ENVIRONMENT["clusters"]["c"], "storage_classes": {"shared": SHARED, "plain": {"tier": "ZONAL"}}}
DECLARED = {**ENVIRONMENT, "clusters": {"c": CLUSTER_class}}


def test_claims_of_a_declared_class_share_instances_of_its_own() -> None:
    plan = planned(DECLARED, TEAM, "env")
    shared = plan.one(CLASS, "c-files-shared-class").inputs

    assert shared["metadata"]["name"] == "files-shared"
    assert {name: shared["parameters"][name] for name in ("tier", "multishare", "max-volume-size")} == {
        "tier": "enterprise", "multishare": "true", "max-volume-size": "256Gi",
    }  # fmt: skip
    assert shared["parameters"]["instance-storageclass-label"] == "files-shared"
    assert "multishare" not in plan.one(CLASS, "c-files-plain-class").inputs["parameters"]


def test_a_team_claims_of_a_class_what_it_is_given_and_else_nothing() -> None:
    quota = planned(DECLARED, TEAM, "team").one("kubernetes:core/v1:ResourceQuota", "share-c-tenancy-resource-quota")
    hard = quota.inputs["spec"]["hard"]

    assert hard["files-shared.storageclass.storage.k8s.io/requests.storage"] == "2048Gi"
    assert hard["files-shared.storageclass.storage.k8s.io/persistentvolumeclaims"] == str(2048 // 10)
    assert hard["files-plain.storageclass.storage.k8s.io/requests.storage"] == "0Gi"
    assert hard["files-plain.storageclass.storage.k8s.io/persistentvolumeclaims"] == "0"


@pytest.mark.parametrize(
    ("section", "maximum", "claims"),
    [
        ({"tier": "ZONAL"}, 0, "0"),
        ({"tier": "ZONAL", "teams": {"team": 100}}, 1024, "1"),  # one instance, as large as the smallest
        ({"tier": "ZONAL", "teams": {"team": 2500, "other": 1024}}, 2560 + 1024, "2"),  # in steps of 256
        ({"tier": "BASIC_HDD", "teams": {"team": 2500}}, 2500, "2"),
        (
            {"tier": "ENTERPRISE", "multishare": True, "teams": {"team": 300, "other": 300}},
            1024,
            "3",
        ),  # on one instance
        ({"tier": "ENTERPRISE", "multishare": True, "teams": {"team": 1300}}, 1536, "13"),
    ],
)
def test_a_class_comes_to_what_its_teams_may_claim_of_it(section: dict[str, object], maximum: int, claims: str) -> None:
    spec = FileClassSpec.model_validate(section, strict=False)

    assert most_gib(spec) == maximum
    assert claim_limits({"x": spec}, "team")["files-x.storageclass.storage.k8s.io/persistentvolumeclaims"] == claims


def test_what_teams_may_claim_of_a_class_is_charged_to_the_quota_of_its_tier() -> None:
    workspace = workspace_of({"env": {"environment": DECLARED}})
    charges = stack_demand(workspace.stacks["env"], workspace)

    (charge,) = [charge for charge in charges if charge.holder.label == "shared"]
    assert (str(charge.key), charge.amount) == ("EnterpriseStorageGibPerRegion in us-central1", 2048)
    assert charge.holder.field == ("clusters", "c", "storage_classes", "shared", "teams")


def test_the_ledger_of_files_has_a_line_for_all_that_teams_may_claim() -> None:
    lines = {line.instance: line for line in file_ledger(workspace_of({"env": {"environment": DECLARED}}))}
    shared = lines["claims of files-shared in c"]
    plain = lines["claims of files-plain in c"]

    assert (shared.capacity, shared.promised, shared.over) == (2048, 2048, False)
    assert file_section([shared]).rows[0].cells[1:4] == ("2,048", "2,048", "0")
    assert file_section([plain]).rows[0].cells[1:4] == ("0", "0", "0")
    assert file_document(plain)["capacity_gib"] == 0
    assert {name for name in lines if name.startswith("claims of ")} == {shared.instance, plain.instance}


def test_claims_cost_nothing_at_the_least_and_all_that_teams_may_claim_at_the_most() -> None:
    book = PriceBook(services={"filestore-ENTERPRISE": {"us-central1": 0.5}})
    cost, without = (
        stack_cost(Environment.model_validate(section, strict=False), book) for section in (DECLARED, ENVIRONMENT)
    )

    assert cost.minimum == without.minimum
    assert cost.maximum - without.maximum == pytest.approx((2048 - 1024) * 0.5 / HOURS_OF_MONTH)


def test_a_largest_share_without_shares_is_refused() -> None:
    with pytest.raises(ValueError, match="largest_share_gib needs multishare"):
        FileClassSpec.model_validate({"tier": "ENTERPRISE", "largest_share_gib": 128})
