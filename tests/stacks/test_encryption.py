"""Keys of an environment: everything that it and its teams keep is under the key of its region."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.every_field import changed, planned
from tests.stacks.keyed import CENTRAL, ENVIRONMENT, FIELDS, TEAM, WEST, below
from tests.support.stack_files import workspace_of
from training_platform.resources import resource_types
from training_platform.resources.resource_types import forces_replacement
from training_platform.resources.stack_resource import UNKNOWN

MEMBER = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"


def keys(environment: dict[str, Any], stack: str) -> dict[str, Any]:
    plan = planned(environment, TEAM, stack)
    return {
        resource.name: below(resource.inputs, FIELDS[resource.type])
        for resource in plan.resources
        if resource.type in FIELDS
    }


def findings(environment: dict[str, Any], team: dict[str, Any]) -> list[tuple[str, str | None]]:
    checked = workspace_of({"env": {"environment": environment}, "env-vision": {"team": team}})
    return [(finding.path or "", finding.nearest) for stack in checked.stacks.values() for finding in stack.findings]


def test_all_that_an_environment_keeps_is_under_the_key_of_its_region() -> None:
    assert keys(ENVIRONMENT, "env") == {
        "c-cluster": CENTRAL,
        "c-system-pool": CENTRAL,
        "c-gpu-pool": CENTRAL,
        "c-slices-0-pool": CENTRAL,
        "c-slices-1-pool": CENTRAL,
        "filestore-homes-instance": CENTRAL,
        "images-repository": WEST,
    }


def test_all_that_a_team_keeps_is_under_the_key_of_its_region() -> None:
    assert set(keys(ENVIRONMENT, "team").values()) == {WEST, CENTRAL}
    assert None not in keys(ENVIRONMENT, "team").values()


def test_without_keys_nothing_names_one() -> None:
    plain = changed(ENVIRONMENT, ("encryption",), None)

    for stack in ("env", "team"):
        assert set(keys(plain, stack).values()) == {None}
        assert "cryptoKey" not in repr(planned(plain, TEAM, stack).resources)


def test_disks_and_instances_that_gke_makes_by_itself_are_under_the_key() -> None:
    plan = planned(ENVIRONMENT, TEAM, "env")
    scaling = plan.one(resource_types.CLUSTER).inputs["clusterAutoscaling"]

    assert scaling["autoProvisioningDefaults"]["bootDiskKmsKey"] == CENTRAL
    assert (
        plan.one(resource_types.COMPUTE_CLASS).inputs["spec"]["priorities"][0]["storage"]["bootDiskKMSKey"] == CENTRAL
    )
    parameters = [storage_class.inputs["parameters"] for storage_class in plan.of(resource_types.STORAGE_CLASS)]
    assert [row["instance-encryption-kms-key"] for row in parameters] == [CENTRAL]


def test_every_account_that_uses_a_key_may_and_what_it_encrypts_waits_for_that() -> None:
    environment = planned(ENVIRONMENT, TEAM, "env")
    team = planned(ENVIRONMENT, TEAM, "team")
    agents = ("cloud-filer", "compute-system", "container-engine-robot", "gcp-sa-artifactregistry")
    grants = {grant.name: grant for grant in environment.of(MEMBER)}

    assert set(grants) == {f"agents-{agent}-key-{region}" for agent in agents for region in ("us-central1", "us-west4")}
    grant = grants["agents-compute-system-key-us-central1"]
    assert grant.inputs == {
        "cryptoKeyId": CENTRAL, "role": "roles/cloudkms.cryptoKeyEncrypterDecrypter", "member": UNKNOWN,
    }  # fmt: skip
    assert grant.options["retainOnDelete"] is True
    after = environment.one(resource_types.NODE_POOL, "c-gpu-pool").options["dependsOn"]
    assert {(MEMBER, name) for name in grants if "-compute-" in name or "-robot-" in name} <= set(after)
    assert {grant.name.split("-key-")[0] for grant in team.of(MEMBER)} == {
        "agents-gcp-sa-aiplatform", "agents-gs-project-accounts",
    }  # fmt: skip
    bucket = team.one(resource_types.BUCKET).options["dependsOn"]
    assert (MEMBER, "agents-gs-project-accounts-key-us-west4") in bucket


def test_the_disk_of_a_data_set_waits_until_compute_engine_may_use_its_key() -> None:
    disk = {"weights": {"hyperdisk_ml": {"zone": "us-central1-a", "size_gib": 100}}}
    plan = planned(changed(ENVIRONMENT, ("data_sets",), disk), TEAM, "env")

    data_disk = plan.one(resource_types.DISK)

    assert data_disk.inputs["diskEncryptionKey"]["kmsKeySelfLink"] == CENTRAL
    assert (MEMBER, "agents-compute-system-key-us-central1") in data_disk.options["dependsOn"]


def test_a_team_without_buckets_asks_nothing_for_the_account_of_cloud_storage() -> None:
    plan = planned(ENVIRONMENT, changed(TEAM, ("buckets",), {}), "team")

    assert not [grant for grant in plan.of(MEMBER) if "gs-project-accounts" in grant.name]


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("images", "location"), "us-east5", "images.location"),
        (("filestore", "homes", "location"), "us-east5-a", "filestore.homes.location"),
        (("clusters", "c", "location"), "us-east5-a", "clusters.c.location"),
    ],
)
def test_a_region_of_an_environment_without_a_key_is_found_at_its_line(
    path: tuple[str, ...], value: str, field: str
) -> None:
    assert [finding_path for finding_path, _ in findings(changed(ENVIRONMENT, path, value), TEAM)] == [field]


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("buckets", "data", "location"), "us-east5", "buckets.data.location"),
        (("vertex", "tensorboards"), ["us-west4", "us-east5"], "vertex.tensorboards[1]"),
        (
            ("vertex", "persistent_resources", "tuning", "region"),
            "us-east5",
            "vertex.persistent_resources.tuning.region",
        ),
    ],
)
def test_a_region_of_a_team_without_a_key_is_found_at_its_line(path: tuple[str, ...], value: Any, field: str) -> None:
    assert findings(ENVIRONMENT, TEAM) == []
    assert findings(ENVIRONMENT, changed(TEAM, path, value)) == [(field, "us-central1")]


@pytest.mark.parametrize(
    ("keys", "nearest"),
    [
        ([], None),
        ([CENTRAL, CENTRAL.replace("data", "more")], None),
        ([CENTRAL.replace("us-central1", "us-central11")], "us-central1"),
        ([CENTRAL.replace("us-central1", "global")], None),
        ([f"{CENTRAL}/cryptoKeyVersions/1"], None),
        (["data"], None),
    ],
)
def test_what_is_not_one_key_of_a_region_is_refused(keys: list[str], nearest: str | None) -> None:
    key_findings = findings(changed(ENVIRONMENT, ("encryption", "keys"), keys), TEAM)

    assert key_findings
    assert all(path.startswith("encryption.keys") for path, _ in key_findings)
    assert nearest is None or nearest in {nearest_region for _, nearest_region in key_findings}


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_the_table_of_replacements_knows_what_a_key_replaces(kind: str) -> None:
    """A key that is added later changes a bucket and a cluster's Secrets in place, and replaces all others."""
    path = ".".join(FIELDS[kind])

    assert forces_replacement(kind, path, FIELDS[kind][0]) is (
        kind not in (resource_types.BUCKET, resource_types.CLUSTER)
    )
