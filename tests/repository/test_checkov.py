"""What docs/checkov.yaml answers is so: in the plan of the organisation, and where an option is on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
import yaml

from tests.stacks.every_field import planned
from tests.stacks.keyed import FULL, FULL_TEAM
from tests.support.places import ORGANISATION, ROOT
from tests.support.plans import planned_stacks
from training_platform.config.workspace import read_workspace
from training_platform.resources import resource_types
from training_platform.resources.stack_plan import plannable
from training_platform.resources.stack_resource import StackResource

ROWS: Mapping[str, Mapping[str, str]] = yaml.safe_load((ROOT / "docs/checkov.yaml").read_text(encoding="utf-8"))[
    "checks"
]
DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
AGENT_ROLES = ("roles/container.serviceAgent", "roles/aiplatform.serviceAgent")
Passes = Callable[[Any], bool]


def at(inputs: Any, path: str) -> Any:
    for key in path.split("."):
        inputs = inputs.get(key) if isinstance(inputs, Mapping) else None
    return inputs


def containers(inputs: Any) -> list[Any]:
    pod = inputs["spec"]["template"]["spec"]
    return [*pod.get("initContainers", ()), *pod["containers"]]


def written(path: str) -> Passes:
    return lambda inputs: bool(at(inputs, path))


def each_container(path: str) -> Passes:
    return lambda inputs: all(at(container, path) for container in containers(inputs))


def no_container(path: str) -> Passes:
    return lambda inputs: not any(at(container, path) for container in containers(inputs))


def pod_says(field: str, value: Any) -> Passes:
    return lambda inputs: inputs["spec"]["template"]["spec"].get(field) == value


CHECKS: Mapping[str, tuple[str, Passes]] = {
    "CKV2_GCP_18": (resource_types.NETWORK, lambda _inputs: False),  # a graph of ids that are not known before
    "CKV2_GCP_26": (resource_types.TENSORBOARD, written("encryptionSpec.kmsKeyName")),
    "CKV_GCP_9": (resource_types.NODE_POOL, written("management.autoRepair")),
    "CKV_GCP_12": (resource_types.CLUSTER, lambda inputs: bool(at(inputs, "networkPolicy.enabled"))),
    "CKV_GCP_13": (resource_types.CLUSTER, lambda inputs: at(inputs, "masterAuth.clientCertificateConfig") is not None),
    "CKV_GCP_20": (resource_types.CLUSTER, written("masterAuthorizedNetworksConfig")),
    "CKV_GCP_26": (resource_types.SUBNETWORK, written("logConfig")),
    "CKV_GCP_49": (resource_types.IAM_MEMBER, lambda inputs: inputs["role"] not in AGENT_ROLES),
    "CKV_GCP_61": (resource_types.CLUSTER, written("enableIntranodeVisibility")),
    "CKV_GCP_62": (resource_types.BUCKET, written("logging.logBucket")),
    "CKV_GCP_66": (resource_types.CLUSTER, written("binaryAuthorization.evaluationMode")),
    "CKV_GCP_69": (resource_types.CLUSTER, written("nodeConfig.workloadMetadataConfig")),
    "CKV_GCP_74": (resource_types.SUBNETWORK, written("privateIpGoogleAccess")),
    "CKV_GCP_78": (resource_types.BUCKET, written("versioning.enabled")),
    "CKV_GCP_84": (resource_types.REPOSITORY, written("kmsKeyName")),
    "CKV_K8S_8": (DAEMON_SET, each_container("livenessProbe")),
    "CKV_K8S_9": (DAEMON_SET, each_container("readinessProbe")),
    "CKV_K8S_10": (DAEMON_SET, each_container("resources.requests.cpu")),
    "CKV_K8S_11": (DAEMON_SET, each_container("resources.limits.cpu")),
    "CKV_K8S_12": (DAEMON_SET, each_container("resources.requests.memory")),
    "CKV_K8S_13": (DAEMON_SET, each_container("resources.limits.memory")),
    "CKV_K8S_15": (DAEMON_SET, each_container("imagePullPolicy")),
    "CKV_K8S_16": (DAEMON_SET, no_container("securityContext.privileged")),
    "CKV_K8S_17": (DAEMON_SET, pod_says("hostPID", None)),
    "CKV_K8S_19": (DAEMON_SET, pod_says("hostNetwork", None)),
    "CKV_K8S_20": (DAEMON_SET, no_container("securityContext.privileged")),
    "CKV_K8S_22": (DAEMON_SET, each_container("securityContext.readOnlyRootFilesystem")),
    "CKV_K8S_23": (DAEMON_SET, each_container("securityContext.runAsNonRoot")),
    "CKV_K8S_28": (DAEMON_SET, each_container("securityContext.capabilities")),
    "CKV_K8S_29": (DAEMON_SET, pod_says("securityContext", {})),
    "CKV_K8S_30": (DAEMON_SET, each_container("securityContext")),
    "CKV_K8S_31": (DAEMON_SET, each_container("securityContext.seccompProfile")),
    "CKV_K8S_37": (DAEMON_SET, each_container("securityContext.capabilities")),
    "CKV_K8S_38": (DAEMON_SET, pod_says("automountServiceAccountToken", False)),
    "CKV_K8S_40": (DAEMON_SET, each_container("securityContext.runAsUser")),
    "CKV_K8S_43": (
        DAEMON_SET,
        lambda inputs: all("@sha256:" in container["image"] for container in containers(inputs)),
    ),
}


def failing(check: str, resources: Iterable[StackResource]) -> tuple[int, list[str]]:
    """Return how many resources a check is about, and the names of those that fail it."""
    kind, passes = CHECKS[check]
    about = [resource for resource in resources if resource.type == kind]
    return len(about), [resource.name for resource in about if not passes(resource.inputs)]


@pytest.fixture(scope="module")
def default() -> list[StackResource]:
    workspace = read_workspace(ORGANISATION)
    plans = planned_stacks(workspace, plannable(workspace, workspace.stacks))
    return [resource for _, plan in plans for resource in plan.resources]


@pytest.fixture(scope="module")
def full() -> list[StackResource]:
    return [resource for stack in ("env", "team") for resource in planned(FULL, FULL_TEAM, stack).resources]


def test_every_row_has_a_check_of_ours_and_a_reason() -> None:
    assert set(ROWS) == set(CHECKS)
    for row in ROWS.values():
        assert len(row["reason"].split()) > 4
        assert ("where" in row) is (row["state"] == "option")


@pytest.mark.parametrize("check", [name for name, row in ROWS.items() if row["state"] == "done"])
def test_what_is_done_fails_nowhere(check: str, default: list[StackResource]) -> None:
    about, failed = failing(check, default)

    assert about
    assert failed == []


@pytest.mark.parametrize("check", [name for name, row in ROWS.items() if row["state"] == "option"])
def test_an_option_passes_where_it_is_on_and_only_there(
    check: str, default: list[StackResource], full: list[StackResource]
) -> None:
    about, failed = failing(check, full)

    assert about
    assert failed == []
    assert failing(check, default)[1]


@pytest.mark.parametrize("check", [name for name, row in ROWS.items() if row["state"] == "exempt"])
def test_an_exemption_is_of_something_that_still_fails(check: str, default: list[StackResource]) -> None:
    assert failing(check, default)[1]


def test_only_images_without_a_known_digest_have_none(default: list[StackResource]) -> None:
    sets = [resource for resource in default if resource.type == DAEMON_SET]
    tagged = {
        container["image"]
        for daemon_set in sets
        for container in containers(daemon_set.inputs)
        if "@sha256:" not in container["image"]
    }

    assert tagged
    assert {image.partition("/")[2].partition("/")[0] for image in tagged} == {"gce-ai-infra"}
