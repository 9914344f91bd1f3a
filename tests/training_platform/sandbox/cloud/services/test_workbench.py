"""Workbench instances in the local cloud."""

from __future__ import annotations

import pytest

from tests.training_platform.sandbox.cloud.conftest import PROJECT, ZONE, Client

BENCH = f"notebooks/v2/{ZONE}/instances/bench"
LARGER = {"gceSetup": {"machineType": "n2-standard-16"}}


@pytest.fixture
def bench(ask: Client) -> Client:
    ask.enable(PROJECT, "notebooks")
    setup = {"machineType": "n2-standard-8", "bootDisk": {"diskSizeGb": "150"}, "dataDisks": [{"diskSizeGb": "100"}]}
    body = {"gceSetup": setup, "enableDeletionProtection": True}
    ask.done("POST", BENCH.rpartition("/")[0], body, instanceId="bench")
    return ask


def test_a_machine_type_changes_once_the_instance_is_stopped(bench: Client) -> None:
    asked = bench("PATCH", BENCH, LARGER, updateMask="gce_setup.machine_type")
    assert (asked.code, "once it is STOPPED" in asked.message) == (400, True)

    bench.done("POST", f"{BENCH}:stop", {})
    assert bench.done("GET", BENCH)["state"] == "STOPPED"
    bench.done("PATCH", BENCH, LARGER, updateMask="gce_setup.machine_type")
    bench.done("POST", f"{BENCH}:start", {})
    found = bench.done("GET", BENCH)
    assert (found["state"], found["gceSetup"]["machineType"]) == ("ACTIVE", "n2-standard-16")


def test_a_disk_only_grows(bench: Client) -> None:
    bench.done("POST", f"{BENCH}:resizeDisk", {"bootDisk": {"diskSizeGb": "151"}})
    assert bench.done("GET", BENCH)["gceSetup"]["bootDisk"]["diskSizeGb"] == "151"
    asked = bench("POST", f"{BENCH}:resizeDisk", {"dataDisk": {"diskSizeGb": "99"}})
    assert (asked.code, "made smaller" in asked.message) == (400, True)


def test_a_protected_instance_is_deleted_only_once_it_is_not(bench: Client) -> None:
    assert bench("DELETE", BENCH).code == 400
    bench.done("PATCH", BENCH, {"enableDeletionProtection": False}, updateMask="enable_deletion_protection")
    bench.done("DELETE", BENCH)
    assert bench("GET", BENCH).code == 404


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "dataDisk.diskSizeGb"),
        ({"bootDisk": {}}, "bootDisk.diskSizeGb"),
        ({"dataDisk": {"diskSizeGb": "9"}}, "no dataDisk"),
    ],
)
def test_a_disk_that_is_not_there_or_has_no_size_is_refused(
    body: dict[str, dict[str, str]], message: str, ask: Client
) -> None:
    ask.enable(PROJECT, "notebooks")
    ask.done("POST", BENCH.rpartition("/")[0], {"gceSetup": {"machineType": "n2-standard-8"}}, instanceId="bench")

    asked = ask("POST", f"{BENCH}:resizeDisk", body)

    assert (asked.code, message in asked.message) == (400, True)
