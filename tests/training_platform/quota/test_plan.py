"""Requests for larger limits: those that are needed, and findings about those in stack files."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent, indent

import pytest

from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import ProjectLedger, project_ledgers
from training_platform.quota.ledger_findings import quota_findings
from training_platform.quota.needed_requests import ProjectRequests, needed_requests, request_lines
from training_platform.quota.requests import request_findings, requested
from training_platform.quota.snapshot import Snapshots

Build = Callable[..., Workspace]
Limits = Callable[[str], Snapshots]
POOLS = """
node_pools:
  h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 4}
  eval: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 2}
"""
UNLIMITED = "".join(
    f"      {name}: [{{limit: -1}}]\n"
    for name in (
        "INSTANCES-per-project-region",
        "IN-USE-ADDRESSES-per-project-region",
        "CPUS-per-project-region",
        "CPUS-ALL-REGIONS-per-project",
        "NETWORKS-per-project",
        "SUBNETWORKS-per-project",
        "ROUTERS-per-project",
        "FIREWALLS-per-project",
        "SSD-TOTAL-GB-per-project-region",
        "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region",
    )
)
LISTED = (
    "    compute.googleapis.com:\n"
    + UNLIMITED
    + """\
      GPUS-ALL-REGIONS-per-project: [{limit: %(all)d}]
      GPUS-PER-GPU-FAMILY-per-project-region:
        - {limit: %(here)d, region: us-central1, gpu_family: NVIDIA_H100}
        - {limit: %(there)d, region: us-east4, gpu_family: NVIDIA_H100}
      PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region: [{limit: 0}]
"""
)
NEEDS = (4 + 2) * 8


def plans(workspace: Workspace, snapshots: Snapshots) -> list[ProjectRequests]:
    ledgers = project_ledgers(workspace_demand(workspace), snapshots, requested(workspace))
    return needed_requests(ledgers.values(), workspace)


def plan(workspace: Workspace, limits: Limits, **numbers: int) -> ProjectRequests:
    (project_requests,) = plans(workspace, limits(LISTED % {"all": NEEDS, "here": NEEDS, "there": 0, **numbers}))
    return project_requests


def test_nothing_is_asked_for_where_all_fits(build: Build, limits: Limits) -> None:
    project_requests = plan(build(dev=POOLS), limits)

    assert (project_requests.needed, project_requests.waiting, project_requests.unknown) == ((), (), ())
    assert request_lines(project_requests) == []


@pytest.mark.parametrize(("there", "named"), [(32, True), (31, False)])
def test_a_region_is_named_where_the_largest_holder_would_fit_today(
    build: Build, limits: Limits, there: int, named: bool
) -> None:
    (need,) = plan(build(dev=POOLS), limits, here=0, there=there).needed

    expected = f"dev/h100: a cluster in another region, zone us-east4-a, us-east4-b, us-east4-c ({there} GPUs left)"
    assert need.instead == ((expected,) if named else ())


@pytest.mark.parametrize(("there", "named"), [(4 * 8, True), (4 * 8 - 1, False)])
def test_a_pool_in_every_zone_fits_in_one_zone_elsewhere_with_a_third_of_its_vms(
    build: Build, limits: Limits, there: int, named: bool
) -> None:
    pools = "node_pools: {h100: {machine_type: a3-highgpu-8g, max_nodes: 4}}"

    needed = plan(build(dev=pools), limits, here=0, there=there, all=3 * 4 * 8).needed

    assert any("us-east4" in way for need in needed for way in need.instead) is named


def test_a_contact_that_nobody_named_is_left_for_a_person_to_fill_in(build: Build, limits: Limits) -> None:
    lines = request_lines(plan(build(dev=POOLS), limits, all=0))

    assert '    contact: ""  # whom Google may contact' in lines


H100 = "GPUS-PER-GPU-FAMILY-per-project-region"
REQUESTING_POOLS = "node_pools: {h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 4}}"
REQUEST_NEEDS = 4 * 8
REQUEST_LIMITS = """
    compute.googleapis.com:
      GPUS-PER-GPU-FAMILY-per-project-region: [{limit: %d, region: us-central1, gpu_family: NVIDIA_H100}]
      CPUS-per-project-region: [{limit: 100, region: us-west4}]
      SNAPSHOTS-per-project: [{limit: -1}]
"""
REQUEST = """\
service: compute.googleapis.com
quota_id: GPUS-PER-GPU-FAMILY-per-project-region
dimensions: {region: us-central1, gpu_family: NVIDIA_H100}
value: 64
justification: More.
contact: a@example.com
"""
OTHER = "{service: compute.googleapis.com, justification: More., contact: a@example.com, "


def with_requests(build: Build, **texts: str) -> Workspace:
    """Return the workspace of one environment, with requests by key."""
    body = "".join(f"    {name}:\n{indent(dedent(text), '      ')}\n" for name, text in texts.items())
    stack = build(dev=REQUESTING_POOLS).stacks["dev"]
    text = f"""\
config:
  training-platform:environment:
    project: example-train
    clusters:
      main:
        location: us-central1
        subnet: {{nodes: 10.10.0.0/20, pods: 10.64.0.0/16, services: 10.10.16.0/20}}
        {REQUESTING_POOLS}
    quota_requests:
{indent(body, "  ")}"""
    stack = parse_stack("dev", parse_source(text, "stacks/Pulumi.dev.yaml"))
    assert not stack.findings, [str(finding) for finding in stack.findings]
    return Workspace(build(dev=REQUESTING_POOLS).root, {"dev": stack})


def ledgers_of(workspace: Workspace, snapshots: Snapshots) -> list[ProjectLedger]:
    return list(project_ledgers(workspace_demand(workspace), snapshots, requested(workspace)).values())


def found(build: Build, snapshots: Snapshots, **texts: str) -> list[Finding]:
    workspace = with_requests(build, **texts)
    return request_findings(ledgers_of(workspace, snapshots), workspace)


def test_a_request_for_what_the_stacks_need_is_no_finding(build: Build, limits: Limits) -> None:
    assert found(build, limits(REQUEST_LIMITS % 16), h100=REQUEST.replace("64", str(REQUEST_NEEDS))) == []


def test_a_request_below_what_the_stacks_need_is_found_at_its_value(build: Build, limits: Limits) -> None:
    (finding,) = found(build, limits(REQUEST_LIMITS % 16), h100=REQUEST.replace("64", str(REQUEST_NEEDS - 1)))

    assert (finding.rule, finding.severity, finding.path) == ("quota-request", "error", "quota_requests.h100.value")
    assert finding.message == "requests 31 GPUs, but the stacks need 32"
    assert (finding.allowed, finding.nearest) == ("at least 32", "32")
    assert finding.file == "stacks/Pulumi.dev.yaml"
    assert finding.position is not None
    assert finding.position.line == 14


def test_a_quota_id_that_nobody_knows_is_found_with_the_nearest(build: Build, limits: Limits) -> None:
    (finding,) = found(build, limits(REQUEST_LIMITS % 64), h100=REQUEST.replace("GPU-FAMILY", "GPUS-FAMILY"))

    assert finding.path == "quota_requests.h100.quota_id"
    assert finding.nearest == H100


def test_the_nearest_quota_id_is_one_of_the_same_service(build: Build, limits: Limits) -> None:
    text = OTHER + "quota_id: EnterpriseStorageGibPerRegion, value: -1}"
    (finding,) = found(build, limits(REQUEST_LIMITS % 64), more=text)

    assert finding.nearest != "EnterpriseStorageGibPerRegion"  # of Filestore


@pytest.mark.parametrize(
    ("quota_id", "allowed"),
    [
        (H100, "gpu_family, region"),
        ("GPUS-ALL-REGIONS-per-project", "none: the quota is counted for the whole project"),
    ],
)
def test_a_dimension_too_many_is_told_which_there_are(
    build: Build, limits: Limits, quota_id: str, allowed: str
) -> None:
    text = OTHER + f"quota_id: {quota_id}, value: -1, dimensions: {{zone: us-central1-a}}}}"

    assert found(build, limits(REQUEST_LIMITS % 64), more=text)[0].allowed == allowed


def test_a_quota_id_that_the_snapshot_alone_knows_is_taken(build: Build, limits: Limits) -> None:
    assert found(build, limits(REQUEST_LIMITS % 64), more=OTHER + "quota_id: SNAPSHOTS-per-project, value: -1}") == []


@pytest.mark.parametrize(
    ("dimensions", "path", "message", "severity"),
    [
        ("{gpu_family: NVIDIA_H100}", "dimensions", "has no region", "error"),
        ("{region: us-central1}", "dimensions", "has no gpu_family", "error"),
        ("{region: us-central1, gpu_famly: NVIDIA_H100}", "dimensions.gpu_famly", "is not a dimension", "error"),
        ("{zone: us-central1-a, gpu_family: NVIDIA_H100}", "dimensions.zone", "is not a dimension", "error"),
        ("{region: us-central1, gpu_family: NVIDIA_H10}", "dimensions.gpu_family", "is not a gpu_family", "warning"),
    ],
)
def test_dimensions_that_the_quota_has_not_are_found(  # noqa: PLR0917
    build: Build, limits: Limits, dimensions: str, path: str, message: str, severity: str
) -> None:
    text = REQUEST.replace("{region: us-central1, gpu_family: NVIDIA_H100}", dimensions)

    first = found(build, limits(REQUEST_LIMITS % 64), h100=text)[0]

    assert message in first.message
    assert (first.path, first.severity) == (f"quota_requests.h100.{path}", severity)


def test_two_requests_for_one_limit_are_found_at_the_second(build: Build, limits: Limits) -> None:
    (finding,) = found(build, limits(REQUEST_LIMITS % 64), h100=REQUEST, again=REQUEST)

    assert finding.path == "quota_requests.again"
    assert "requests the same limit as h100" in finding.message


@pytest.mark.parametrize(
    ("value", "check", "nearest"),
    [
        (90, "", []),
        (89, "", ["90"]),
        (89, ", ignore_safety_check: QUOTA_DECREASE_PERCENTAGE_TOO_HIGH", []),
        (89, ", ignore_safety_check: QUOTA_DECREASE_BELOW_USAGE", ["90"]),
    ],
)
def test_a_decrease_by_more_than_a_tenth_has_to_be_meant(
    build: Build, limits: Limits, value: int, check: str, nearest: list[str]
) -> None:
    fields = f"quota_id: CPUS-per-project-region, dimensions: {{region: us-west4}}, value: {value}{check}}}"

    assert [finding.nearest for finding in found(build, limits(REQUEST_LIMITS % 64), less=OTHER + fields)] == nearest


def test_the_end_of_an_unlimited_quota_is_a_decrease(build: Build, limits: Limits) -> None:
    (finding,) = found(build, limits(REQUEST_LIMITS % 64), less=OTHER + "quota_id: SNAPSHOTS-per-project, value: 1000}")

    assert finding.nearest == "-1"
    assert "lowers the limit of unlimited" in finding.message


def test_without_a_snapshot_a_request_is_held_against_demand_alone(build: Build) -> None:
    assert found(build, Snapshots(), h100=REQUEST) == []
    assert len(found(build, Snapshots(), h100=REQUEST.replace("64", "31"))) == 1


def test_what_is_requested_is_no_limit_and_is_said(build: Build, limits: Limits) -> None:
    workspace = with_requests(build, h100=REQUEST)
    ledgers = ledgers_of(workspace, limits(REQUEST_LIMITS % 16))
    line = next(line for line in ledgers[0].lines if line.key.quota_id == H100)

    assert (line.limit, line.requested, line.open_request, line.over) == (16, 64, 64, True)
    (finding,) = [finding for finding in quota_findings(ledgers, workspace) if finding.rule == "quota-exceeded"]
    assert finding.message.endswith("; 64 requested, which counts only once it is granted")


@pytest.mark.parametrize(("limit", "pending"), [(63, 64), (64, None), (65, None)])
def test_a_request_that_was_granted_waits_no_more(
    build: Build, limits: Limits, limit: int, pending: float | None
) -> None:
    ledgers = ledgers_of(with_requests(build, h100=REQUEST), limits(REQUEST_LIMITS % limit))
    line = next(line for line in ledgers[0].lines if line.key.quota_id == H100)

    assert line.open_request == pending
