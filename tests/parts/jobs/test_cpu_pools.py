"""Jobs without TPUs or GPUs, on a cluster's ``cpu_pools``; ``tests/kube/test_jobs_admitted.py`` has one in a queue."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.parts.jobs.lab import Read, Take, container, pod
from tests.support.lab import ENVIRONMENT, TODAY, VISION, write_lab
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.gke.gke_job import on_gke
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.job_checks import judge
from training_platform.parts.jobs.job_cost import job_cost
from training_platform.parts.jobs.resolve import ResolvedJob, parse_job

POOLS = "cpu_pools: {general: {machine_type: n2-standard-16, max_nodes: 4}, one: {machine_type: n2-standard-2}}"
LAB = ENVIRONMENT.replace(
    "        node_pools:\n          h100:", f"        {POOLS}\n        node_pools:\n          h100:"
)
HEAD = "environment: lab\nimage: registry.example.com/a:1\ncommand: [a]\n"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that reads a job of team vision; a keyword such as ``lab_vision`` replaces that stack."""
    roots = (tmp_path / str(number) for number in count())

    def read(gke: str, fields: str = "", **files: str) -> tuple[ResolvedJob | None, list[Finding]]:
        workspace = read_workspace(write_lab(next(roots), **{"lab": LAB, **files}))
        return parse_job(parse_source(f"{HEAD}{fields}gke: {gke}\n", "jobs/vision/prepare.yaml"), workspace)

    return read


@pytest.fixture
def take(read: Read) -> Take:
    """Return a function that reads a valid job."""

    def take(gke: str, fields: str = "", **files: str) -> ResolvedJob:
        job, findings = read(gke, fields, **files)
        assert job is not None, [str(finding) for finding in findings]
        return job

    return take


@pytest.mark.parametrize(
    ("gke", "fields", "cpus", "memory"),
    [
        ("{cluster: gpus, pool: general, nodes: 2}", "", 14, "52Gi"),
        ("{cluster: gpus, pool: one, nodes: 2}", "", 1, "5Gi"),
        ("{cluster: gpus, pool: general, nodes: 2}", "cpu: 4\n", 4, "13Gi"),
        ("{cluster: gpus, pool: general, nodes: 2}", "cpu: 4\nmemory_gib: 30\n", 4, "30Gi"),
    ],
    ids=["a VM each", "a small VM each", "a part", "a part with its own memory"],
)
def test_a_pod_gets_a_vm_of_the_pool_to_itself_unless_it_says_its_cpus(
    take: Take, *, gke: str, fields: str, cpus: int, memory: str
) -> None:
    job = take(gke, fields)

    resources = container(job)["resources"]
    assert (resources["requests"]["cpu"], resources["limits"]["memory"]) == (str(cpus), memory)
    assert "cpu" not in resources["limits"]
    assert not any("/" in name for amounts in resources.values() for name in amounts)  # of no accelerator
    assert on_gke(job).demand == 2 * cpus
    assert judge(job, "gke", TODAY).findings == ()


def test_the_smallest_part_of_a_vm_has_limits_too(read: Read, take: Take) -> None:
    lean = LAB.replace("n2-standard-16", "n1-highcpu-16")
    gke = "{cluster: gpus, pool: general, nodes: 1}"
    local = "cpu: 1\noutput: checkpoints\nlocal_checkpoints: {size_gib: 1, medium: memory}\n"

    limits = container(take(gke, "cpu: 1\n", lab=lean))["resources"]["limits"]
    assert limits["memory"] == "1Gi"  # of 10 GiB a sixteenth is less
    job, _ = read(gke, local, lab=lean)
    assert job
    assert "less than 1," in str(judge(job, "gke", TODAY).findings)


def test_it_goes_to_its_pool_and_waits_in_the_queue_of_its_team(take: Take) -> None:
    job = take("{cluster: gpus, pool: general, nodes: 2, priority: null}")
    body = jobset(job)

    assert pod(job)["nodeSelector"] == {"cloud.google.com/gke-nodepool": "general"}
    assert pod(job)["tolerations"] == []
    assert body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "vision"
    variables = {row["name"]: row.get("value") for row in container(job)["env"]}
    assert (variables["NUM_NODES"], variables["WORLD_SIZE"], variables["ACCELERATORS_PER_NODE"]) == ("2", "2", "0")
    note, parts, _ = judge(job, "gke", TODAY).notes
    assert note.startswith(
        "requests 28 vCPUs of pool general in gpus (2 pods), which use no queue quota; team vision may"
    )
    assert "/dev/shm" not in parts  # noqa: S108 # the pod's own
    assert parts.endswith("; 14 vCPUs")


def test_it_costs_its_machines_on_demand(take: Take) -> None:
    whole = job_cost(take("{cluster: gpus, pool: general, nodes: 2}"), "gke")
    part = job_cost(take("{cluster: gpus, pool: general, nodes: 2}", "cpu: 4\n"), "gke")

    assert whole.an_hour.keys() == {"on-demand"}
    assert [(row.machine_type, row.vms) for row in whole.machines] == [("n2-standard-16", 2)]
    assert part.an_hour["on-demand"].maximum == pytest.approx(whole.an_hour["on-demand"].maximum * 4 / 16)
    assert part.part == ", 4 of 16 vCPUs each"


@pytest.mark.parametrize(
    ("gke", "fields", "path", "allowed"),
    [
        ("{cluster: gpus, pool: genral, nodes: 1}", "", "gke.pool", "general, one"),
        ("{cluster: gpus, pool: general}", "", "gke", "nodes"),
        ("{cluster: gpus, nodes: 1}", "", "gke", "flavor, or pool"),
        ("{cluster: gpus, pool: general, flavor: h100, nodes: 1}", "", "gke", "flavor, or pool"),
        ("{cluster: gpus, pool: general, nodes: 1, gpus: 1}", "", "gke.gpus", "none"),
        ("{cluster: gpus, pool: general, nodes: 1, slices: 1}", "", "gke.slices", "none"),
        ("{cluster: gpus, pool: general, nodes: 1, pathways: true}", "", "gke.pathways", "none"),
        ("{cluster: gpus, pool: general, nodes: 1, placement: {level: host}}", "", "gke.placement", "none"),
        ("{cluster: gpus, pool: general, nodes: 5}", "", "gke.nodes", "at most 4"),
        ("{cluster: gpus, pool: general, nodes: 17}", "cpu: 4\n", "gke.nodes", "at most 16"),
        ("{cluster: gpus, pool: general, nodes: 9}", "cpu: 6\n", "gke.nodes", "at most 8"),
        ("{cluster: gpus, pool: general, nodes: 1}", "cpu: 16\n", "cpu", "less than 16"),
        ("{cluster: gpus, pool: general, nodes: 1}", "memory_gib: 64\n", "memory_gib", "less than 64"),
    ],
)
def test_a_demand_that_its_pool_cannot_meet_is_a_finding_at_its_line(
    read: Read, *, gke: str, fields: str, path: str, allowed: str
) -> None:
    job, findings = read(gke, fields)
    (finding,) = findings or judge(job, "gke", TODAY).findings if job else findings

    assert (finding.path, finding.severity) == (path, "error")
    assert allowed in (finding.allowed or "")
    assert finding.position is not None


def test_as_many_pods_as_fit_have_no_findings(take: Take) -> None:
    for gke, fields in (
        ("{cluster: gpus, pool: general, nodes: 4}", ""),
        ("{cluster: gpus, pool: general, nodes: 16}", "cpu: 4\n"),
        ("{cluster: gpus, pool: general, nodes: 1}", "cpu: 15\nmemory_gib: 63\n"),
    ):
        assert judge(take(gke, fields), "gke", TODAY).findings == ()


def test_a_team_may_request_no_more_vcpus_than_its_namespace_has(take: Take) -> None:
    many = LAB.replace("max_nodes: 4}", "max_nodes: 1000}", 1)
    (finding,) = judge(take("{cluster: gpus, pool: general, nodes: 134}", lab=many), "gke", TODAY).findings

    assert (finding.rule, finding.path, finding.nearest) == ("job-fits-share", "gke.nodes", "133")
    assert "team vision may request 1,872 vCPUs in gpus" in finding.message
    assert judge(take("{cluster: gpus, pool: general, nodes: 133}", lab=many), "gke", TODAY).findings == ()


def test_a_queue_with_only_topologies_would_never_admit_it(take: Take) -> None:
    mega = "          mega: {machine_type: a3-megagpu-8g, zone: us-central1-a, max_nodes: 8, topology_aware: true}\n"
    lab = LAB.replace("          small:", f"{mega}          small:")
    other_shares = "        h100: {nominal_quota: 32, borrowing_limit: 8}\n        a100-40: {nominal_quota: 16}\n"
    alone = "        h100-mega: {nominal_quota: 8}\n"
    for shares, rules in ((alone, ["job-pool-queue"]), (alone + other_shares, [])):
        team = VISION.replace(other_shares, shares)
        job = take("{cluster: gpus, pool: general, nodes: 1}", lab=lab, lab_vision=team)
        assert [finding.rule for finding in judge(job, "gke", TODAY).findings] == rules
