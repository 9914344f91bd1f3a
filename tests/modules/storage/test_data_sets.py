"""The disks and volumes of data sets, for a team that fills them and one that reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.test_reach import ENVIRONMENT, TEAM, planned
from training_platform.config.data_sets import access_mode, with_own_data
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import DataSetSpec, TeamDataSpec
from training_platform.config.model.team import Team
from training_platform.resources.register import BUCKET_MEMBER, CLUSTER, DISK, RELEASE

VOLUME, CLAIM = "kubernetes:core/v1:PersistentVolume", "kubernetes:core/v1:PersistentVolumeClaim"
BUCKET = {"name": "example-images", "location": "us-central1"}
DISK_OF = {"zone": "us-central1-a", "size_gib": 500}


def environment(**data_set: Any) -> dict[str, Any]:
    return {**ENVIRONMENT, "data_sets": {"images": data_set}}


def volume(**data_set: Any) -> dict[str, Any]:
    plan = planned(environment(**data_set), TEAM, "team")
    found: dict[str, Any] = plan.one(VOLUME, "data-images-c-volume").inputs["spec"]
    claim = plan.one(CLAIM, "data-images-c-claim").inputs
    assert claim["metadata"]["name"] == found["claimRef"]["name"] == "data-set.images"
    assert claim["spec"]["accessModes"] == found["accessModes"]
    return found


def test_a_bucket_is_a_volume_of_its_folder() -> None:
    found = volume(bucket={**BUCKET, "path": "food101", "file_cache_gib": 100})

    assert found["csi"] == {
        "driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": "example-images",
        "volumeAttributes": {"fileCacheCapacity": "100Gi", "fileCacheForRangeRead": "true"},
    }  # fmt: skip
    assert "only-dir:food101" in found["mountOptions"]
    assert found["accessModes"] == ["ReadOnlyMany"]
    assert found["storageClassName"] == ""
    assert "nodeAffinity" not in found


def test_a_profile_is_a_class_of_gke() -> None:
    assert volume(bucket={**BUCKET, "profile": "checkpointing"})["storageClassName"] == "gcsfusecsi-checkpointing"


def test_a_folder_of_filestore_is_mounted_without_the_rest_of_its_share() -> None:
    found = volume(filestore={"instance": "e", "path": "food101"})

    assert found["nfs"]["path"] == "/share/food101"
    assert "csi" not in found


def test_a_disk_that_is_filled_is_read_by_many_and_written_by_nobody() -> None:
    found = volume(hyperdisk_ml={**DISK_OF, "filled": True}, writer="team")

    assert found["accessModes"] == ["ReadOnlyMany"]
    assert found["capacity"] == {"storage": "500Gi"}
    assert found["csi"]["volumeHandle"] == "projects/example-reach/zones/us-central1-a/disks/env-data-images"
    (term,) = found["nodeAffinity"]["required"]["nodeSelectorTerms"]
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
    for wanted, section in ((True, environment(lustre=data)), (False, environment(bucket=BUCKET))):
        addons = planned(section, TEAM, "env").one(CLUSTER).inputs["addonsConfig"]
        assert ("lustreCsiDriverConfig" in addons) is wanted


@pytest.mark.parametrize(("writer", "role"), [("team", "objectUser"), (None, "objectViewer")])
def test_the_team_s_account_reads_the_bucket_and_writes_where_it_fills_it(writer: str | None, role: str) -> None:
    plan = planned(environment(bucket=BUCKET, writer=writer), TEAM, "team")

    assert plan.one(BUCKET_MEMBER, "data-images-access").inputs["role"] == f"roles/storage.{role}"


def test_a_team_that_does_not_read_it_gets_nothing_of_it() -> None:
    plan = planned(environment(bucket=BUCKET, teams=["others"]), TEAM, "team")

    assert [each.name for each in plan.resources if each.name.startswith("data-images")] == []


def test_notebooks_mount_what_all_teams_read_and_no_bucket() -> None:
    sets = {
        "files": {"filestore": {"instance": "e", "path": "a"}, "writer": "team"},
        "theirs": {"filestore": {"instance": "e", "path": "b"}, "teams": ["team"]},
        "bucket": {"bucket": BUCKET},
        "empty": {"hyperdisk_ml": DISK_OF, "writer": "team"},
    }
    plan = planned({**ENVIRONMENT, "data_sets": sets}, TEAM, "env")

    volumes = [each.name for each in plan.resources if each.type == VOLUME and each.name.startswith("data-")]
    assert volumes == ["data-files-c-notebooks-volume"]
    assert plan.one(VOLUME, volumes[0]).inputs["spec"]["accessModes"] == ["ReadOnlyMany"]
    storage = plan.one(RELEASE, "c-notebooks-release").inputs["values"]["singleuser"]["storage"]
    claim = {"claimName": "data-set.files", "readOnly": True}
    assert storage["extraVolumes"] == [{"name": "data-set-files", "persistentVolumeClaim": claim}]
    assert storage["extraVolumeMounts"] == [{"name": "data-set-files", "mountPath": "/data/files", "readOnly": True}]


def test_a_volume_of_another_region_is_not_mounted_but_a_bucket_is() -> None:
    far = planned(environment(hyperdisk_ml={**DISK_OF, "zone": "us-west4-a", "filled": True}), TEAM, "team")
    bucket = planned(environment(bucket={**BUCKET, "location": "us-west4"}), TEAM, "team")

    assert [each.name for each in far.resources if each.type == VOLUME and "images" in each.name] == []
    assert bucket.one(VOLUME, "data-images-c-volume")


OWN = {"own": {"bucket": {"name": "example-own", "location": "us-central1", "path": "crops"}, "writable": True}}


def test_a_team_mounts_a_data_set_of_its_own_and_writes_where_it_says_so() -> None:
    plan = planned({**ENVIRONMENT, "data_sets": {}}, {**TEAM, "data_sets": OWN}, "team")
    spec = plan.one(VOLUME, "data-own-c-volume").inputs["spec"]

    assert (spec["csi"]["volumeHandle"], spec["accessModes"]) == ("example-own", ["ReadWriteMany"])
    grant = plan.one(BUCKET_MEMBER, "data-own-access").inputs
    assert (grant["bucket"], grant["role"]) == ("example-own", "roles/storage.objectUser")


def test_no_other_team_sees_it() -> None:
    environment, team = Environment.model_validate(ENVIRONMENT, strict=False), Team.model_validate(TEAM, strict=False)
    owning = team.model_copy(update={"data_sets": {"own": TeamDataSpec.model_validate(OWN["own"], strict=False)}})
    seen = with_own_data(owning, environment)

    assert seen.data_sets["own"].readable_by(team.name)
    assert not seen.data_sets["own"].readable_by("others")
    assert with_own_data(team.model_copy(update={"data_sets": {}}), environment) is environment
