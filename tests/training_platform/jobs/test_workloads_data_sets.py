"""Jobs mount data sets under one name on both targets, and hear of what lies elsewhere."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.training_platform.jobs.conftest import Read, Take
from training_platform.config.names import data_variable
from training_platform.jobs.container import mount_variables
from training_platform.jobs.gke.pods import gke_target, volumes
from training_platform.jobs.gke.rules import gke_findings
from training_platform.jobs.rules import data_set_findings, disk_findings
from training_platform.jobs.vertex.pools import references, vertex_target, worker_pools

JOB = """
mounts: [{name: data, source: {data_set: SET}}]
command: [python, train.py]
gke: {cluster: gpus, flavor: h100, nodes: 1}
vertex: {region: us-central1, machine_type: a2-highgpu-1g, boot_disk: {type: pd-ssd}}
"""
PLACES = {"images": "/gcs/example-images/food101", "files": "/mnt/nfs/data", "fast": "/mnt/lustre/data"}


def findings(take: Take, data_set: str, region: str = "us-central1", *, vertex: bool = False) -> list[Any]:
    return list(data_set_findings(take(JOB.replace("SET", data_set)), region, vertex=vertex))


@pytest.mark.parametrize("data_set", [*PLACES, "disk"])
def test_a_pod_mounts_the_claim_of_the_data_set_and_reads_it_only(take: Take, data_set: str) -> None:
    found = volumes(take(JOB.replace("SET", data_set)), 1)
    mine = data_set == "files"  # team vision fills it

    expected: dict[str, Any] = {"claimName": f"data-set.{data_set}", **({} if mine else {"readOnly": True})}
    assert found.volumes[0]["persistentVolumeClaim"] == expected
    assert found.mounts[0].get("readOnly", False) is not mine
    assert ("gke-gcsfuse/volumes" in found.annotations) is (data_set == "images")


@pytest.mark.parametrize(("data_set", "path"), PLACES.items())
def test_one_variable_says_where_it_is_on_both_targets(take: Take, data_set: str, path: str) -> None:
    job = take(JOB.replace("SET", data_set))

    assert mount_variables(job)["MOUNT_DATA"] == path
    assert mount_variables(job)[data_variable(data_set)] == path  # as in notebooks
    assert volumes(job, 1).mounts[0]["mountPath"] == path


def test_vertex_ai_is_given_addresses_of_file_shares_and_lustre(take: Take) -> None:
    (files,) = worker_pools(job := take(JOB.replace("SET", "files")), vertex_target(job))
    (fast,) = worker_pools(job := take(JOB.replace("SET", "fast")), vertex_target(job))

    assert (files["nfsMounts"][0]["path"], files["nfsMounts"][0]["mountPoint"]) == ("/share/food101", "data")
    assert fast["lustreMounts"] == [
        {
            "instanceIp": "10.90.0.2", "volumeHandle": "example-lab/us-central1-a/one", "filesystem": "lustre",
            "mountPoint": "data",
        }
    ]  # fmt: skip


def test_the_address_of_the_environment_s_own_lustre_is_left_to_the_submission(take: Take) -> None:
    (own,) = worker_pools(job := take(JOB.replace("SET", "own")), vertex_target(job))

    assert own["lustreMounts"] == [
        {
            "instanceIp": "{lustre:example-lab/us-central1-a/lab-scratch}", "filesystem": "own",
            "volumeHandle": "example-lab/us-central1-a/lab-scratch", "mountPoint": "data",
        }
    ]  # fmt: skip
    assert {each.kind for each in references(own)} == {"lustre"}


@pytest.mark.parametrize("data_set", ["images", "files", "disk", "fast"])
def test_what_lies_beside_the_job_is_mounted_without_a_word(take: Take, data_set: str) -> None:
    assert findings(take, data_set) == []


def test_a_bucket_of_another_region_is_a_warning_that_names_what_each_pass_sends(take: Take) -> None:
    (found,) = findings(take, "far")

    assert (found.rule, found.severity, found.path) == (
        "job-data-set-region", "warning", "mounts[0].source.data_set",
    )  # fmt: skip
    assert "each pass over it sends 5 GiB between regions" in found.message
    assert found.position is not None


@pytest.mark.parametrize("data_set", ["files", "disk", "fast"])
def test_a_volume_of_another_region_is_an_error_that_names_what_is_near(take: Take, data_set: str) -> None:
    (found,) = findings(take, data_set, region="europe-west4")

    assert (found.severity, found.allowed) == ("error", "far")


@pytest.mark.parametrize(
    ("data_set", "zones", "errors"),
    [
        ("disk", {"us-central1-a"}, 0),
        ("disk", {"us-central1-b", "us-central1-a"}, 0),
        ("disk", {"us-central1-b", None}, 0),  # GKE chooses the zone
        ("disk", {"us-central1-b", "us-central1-c"}, 1),
        ("files", {"us-central1-b"}, 0),
        ("images", {"us-central1-b"}, 0),
    ],
)
def test_a_disk_in_another_zone_than_the_machines_is_found(
    take: Take, data_set: str, zones: set[str | None], errors: int
) -> None:
    found = list(disk_findings(take(JOB.replace("SET", data_set)), zones))

    assert len(found) == errors
    for each in found:
        assert each.path == "mounts[0].source.data_set"
        assert "is on a disk in us-central1-a, and the job's VMs are in us-central1-b, us-central1-c" in each.message


def test_the_rules_of_gke_look_at_the_zones_of_the_flavor(take: Take) -> None:
    job = take(JOB.replace("SET", "disk").replace("vertex:", "x-vertex:").partition("x-vertex")[0])
    _, flavor = gke_target(job)

    assert {pool.zone for pool in flavor.pools} == {"us-central1-a"}
    assert [each for each in gke_findings(job) if each.rule == "job-data-set"] == []
    data = job.environment.data_sets["disk"]
    assert data.hyperdisk_ml is not None
    moved = data.model_copy(update={"hyperdisk_ml": data.hyperdisk_ml.model_copy(update={"zone": "us-central1-b"})})
    home = job.environment.model_copy(update={"data_sets": {**job.environment.data_sets, "disk": moved}})
    far = dataclasses.replace(job, environment=home)
    assert [each.path for each in gke_findings(far) if each.rule == "job-data-set"] == ["mounts[0].source.data_set"]


def test_vertex_ai_mounts_no_hyperdisk(take: Take) -> None:
    (found,) = findings(take, "disk", vertex=True)

    assert "which Vertex AI does not mount" in found.message


def test_a_disk_that_is_being_filled_is_its_writer_s_alone(take: Take) -> None:
    (found,) = findings(take, "empty")

    assert "still being filled by team nlp" in found.message


def test_a_data_set_of_other_teams_is_not_known_to_this_one(read: Read) -> None:
    job, (found,) = read(JOB.replace("SET", "theirs"))

    assert job is None
    assert "'theirs' is not a data set for members of team vision" in found.message
    assert "images" in (found.allowed or "")
