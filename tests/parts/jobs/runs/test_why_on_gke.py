"""Why a run waits, from objects in the API server's form; test_runs_on_gke.py has real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from local_google_cloud.api import serve
from tests.local_google_cloud.client import PROJECT, Client
from tests.parts.jobs.lab import Lab, Take
from tests.support.lab import TODAY
from training_platform.clients.google_api import GoogleError, NoCredentialsError
from training_platform.clients.google_services import node_pools
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.gke.gke_job import on_gke
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.runs.on_gke import gke_run, with_wait, words
from training_platform.parts.jobs.runs.state import Run
from training_platform.parts.jobs.runs.why_on_gke import Seen, vm_sentences, why
from training_platform.parts.sandbox.google_rules import judged_cloud

Json = dict[str, Any]
JOBSET: Json = {
    "metadata": {"name": "train-bcdfg", "namespace": "vision", "uid": "1"}, "spec": {"replicatedJobs": []},
}  # fmt: skip
QUEUE: Json = {"status": {"conditions": [{"type": "Active", "status": "True"}]}}


def workload(*conditions: Json, **status: Any) -> Json:
    return {
        "metadata": {"name": "jobset-train", "uid": "2"},
        "spec": {},
        "status": {"conditions": list(conditions), **status},
    }


def condition(kind: str, status: bool, message: str = "", reason: str = "") -> Json:
    return {
        "type": kind, "status": str(status), "message": message, "reason": reason,
        "lastTransitionTime": "2026-11-22T01:00:00Z",
    }  # fmt: skip


def explanation(**seen: Any) -> list[str]:
    everything = Seen(**{"jobset": JOBSET, "queue": QUEUE, "queue_name": "vision", **seen})
    return list(why(gke_run(everything.jobset, everything.workload, "gpus"), everything))


def host(name: str, labels: Json | None = None, *, gpus: int = 8, taints: list[Json] | None = None) -> Json:
    room = {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": str(gpus)}}
    status = {**room, "conditions": [condition("Ready", True)]}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"taints": taints or []}, "status": status}


def test_coming_maintenance_and_faults_of_hosts_are_reported() -> None:
    maintained = {"cloud.google.com/scheduled-maintenance-time": "1733083200"}
    terminated = [{"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}]
    nodes = [
        host("well"), host("a", maintained), host("b", maintained), host("c", gpus=7),
        host("d", {**maintained, "cloud.google.com/active-node-maintenance": "ONGOING"}, taints=terminated),
        host("e", {"cloud.google.com/fault-behavior": "XID"}),
    ]  # fmt: skip
    down = host("f")
    down["status"]["conditions"] = [condition("Ready", False, "Kubelet stopped.")]

    coming, *lines = [line for line in explanation(nodes=[*nodes, down]) if line.startswith("Node ")]

    assert coming.startswith("Node a (and 1 more) stops for host maintenance at 2024-12-01 20:00 UTC")
    assert lines == [
        "Node c offers 7 of 8 nvidia.com/gpu: its device plugin considers the others faulty.",
        "Node d is under host maintenance now.",
        "Node d is about to be terminated by Google Cloud.",
        "Node e was reported to Google as faulty (XID).",
        'Node f is not ready: "Kubelet stopped"; its pods start elsewhere once GKE repairs it, or its VM is deleted.',
    ]


def test_a_queue_that_was_deleted_is_the_cause() -> None:
    (line,) = explanation(queue=None)

    assert line.startswith("The queue vision of train-bcdfg does not exist in namespace vision of gpus: it was deleted")


def test_a_failed_run_says_how_its_pods_ended_and_their_last_lines() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled", "message": "a\nstep 1\nstep 2\nstep 3\n"}
    pod = {"metadata": {"name": "p"}, "status": {"containerStatuses": [{"state": {"terminated": ended}}]}}
    jobset = {**JOBSET, "status": {"conditions": [condition("Failed", True, "no restarts left")]}}

    assert explanation(jobset=jobset, pods=[pod])[1:] == [
        "Pod p ended with exit code 137 (OOMKilled).",
        'Its log ends with: "step 1 / step 2 / step 3".',
    ]


def test_a_run_that_needs_one_domain_says_which_and_of_how_many_vms() -> None:
    annotations = {"kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gce-topology-subblock"}
    pods = {"metadata": {"annotations": annotations}, "spec": {"containers": []}}
    jobset = {**JOBSET, "spec": {"replicatedJobs": [{"template": {"spec": {"template": pods}}}]}}

    lines = explanation(
        jobset=jobset, workload=workload(condition("QuotaReserved", False, "no place")), flavor="h100-reservation",
        resource="nvidia.com/gpu", demand=24, unit=8, quota=32, reachable=32,
    )  # fmt: skip

    assert "Its placement is required: it waits until one subblock of h100-reservation has room for all 3 VMs." in lines


def test_a_held_queue_is_reported_before_the_quota() -> None:
    held = {"status": {"conditions": [condition("Active", False, "ClusterQueue vision is stopped.")]}}

    lines = explanation(queue=held, workload=workload(condition("QuotaReserved", False, "the queue is inactive")))

    assert lines[1:3] == [
        'The queue vision admits nothing now: "ClusterQueue vision is stopped".',
        'Kueue reports: "the queue is inactive".',
    ]


def test_the_explanation_says_how_much_would_start_now() -> None:
    reserved = [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "total": "16"}]}]
    queue = {"status": {**QUEUE["status"], "flavorsReservation": reserved}}

    lines = explanation(
        queue=queue, workload=workload(condition("QuotaReserved", False)), pending=[], flavor="h100",
        resource="nvidia.com/gpu", demand=32, unit=8, quota=32, reachable=40,
    )  # fmt: skip

    assert "The team's own share has room now for a run of 16 nvidia.com/gpu." in lines


def test_more_than_the_team_reaches_never_starts() -> None:
    lines = explanation(
        workload=workload(condition("QuotaReserved", False)), pending=[], flavor="h100", resource="nvidia.com/gpu",
        demand=48, unit=8, quota=32, reachable=40,
    )  # fmt: skip

    assert "It can never start: it requests 48, and the team can use at most 40." in lines


def test_its_place_in_the_queue_counts_others_as_a_total() -> None:
    pending = [
        {"metadata": {"name": "jobset-other"}, "positionInClusterQueue": 0},
        {"metadata": {"name": "jobset-train"}, "positionInClusterQueue": 3},
    ]

    lines = explanation(workload=workload(condition("QuotaReserved", False)), pending=pending)

    assert lines[-1] == "Runs before it: 1 of the team and 2 more of the ClusterQueue."


def test_queued_provisioning_is_followed_into_its_request() -> None:
    admitted = workload(
        condition("QuotaReserved", True),
        admissionChecks=[{"name": "dws-h100", "state": "Pending", "message": "waiting"}],
    )
    request = {
        "metadata": {"name": "train-1"},
        "status": {"conditions": [condition("Accepted", True, "accepted"), condition("Provisioned", False, "Waiting")]},
    }

    assert explanation(workload=admitted, requests=[request])[1:3] == [
        'Admission check dws-h100 is Pending: "waiting".',
        'ProvisioningRequest train-1 is Accepted: "accepted".',
    ]


def test_a_run_that_was_sent_back_without_vms_says_how_often_and_when_it_is_asked_again() -> None:
    waiting = workload(
        condition("QuotaReserved", False),
        admissionChecks=[{"name": "dws-h100", "state": "Pending", "retryCount": 4}],
        requeueState={"requeueAt": "2026-11-22T10:00:00Z"},
    )

    lines = explanation(workload=waiting)

    assert (
        "Check dws-h100 has sent it back 4 times, the next time at 2026-11-22T10:00:00Z: no VMs were available."
        in lines
    )


def test_once_is_not_one_times() -> None:
    check = {"name": "dws-h100", "state": "Pending", "retryCount": 1}
    lines = explanation(workload=workload(condition("QuotaReserved", False), admissionChecks=[check]))

    assert "Check dws-h100 has sent it back once: no VMs were available." in lines


def test_the_event_of_a_failure_is_not_said_after_the_failure() -> None:
    jobset = {**JOBSET, "status": {"conditions": [condition("Failed", True, "no restarts left")]}}
    row = {
        "type": "Warning",
        "reason": "FailedJobs",
        "message": "no restarts left",
        "involvedObject": {"kind": "JobSet"},
    }

    assert explanation(jobset=jobset, events=[row]) == ['train-bcdfg has failed after 0 restarts: "no restarts left".']


def test_a_pod_says_why_it_was_evicted_long_after_its_events_are_gone() -> None:
    gone = {
        "metadata": {"name": "train-slice-0-0"},
        "status": {"phase": "Failed", "reason": "Evicted", "message": "Pod ephemeral local storage usage exceeds 9Gi."},
    }
    run = Run(
        name="train", job="train", team="vision", target="gke", place="gpus", identity="train", state="failed",
        created="2026-11-22T01:00:00Z", restarts=1,
    )  # fmt: skip

    lines = list(why(run, Seen(jobset={}, pods=[gone])))

    assert lines[0].startswith("train has failed after 1 restart: ")
    assert lines[1] == 'Pod train-slice-0-0 failed with Evicted: "Pod ephemeral local storage usage exceeds 9Gi".'


def test_a_deactivated_workload_is_reported_with_the_way_to_requeue_it() -> None:
    aside = workload(condition("Evicted", True, "took too long", "DeactivatedDueToRequeuingLimitExceeded"))
    aside["spec"]["active"] = False

    (line,) = explanation(workload=aside)

    assert line.startswith('Kueue has deactivated train-bcdfg and does not queue it again: "took too long"')


def test_pods_without_a_node_are_counted_by_the_schedulers_reason() -> None:
    pods = [
        {
            "metadata": {"name": f"train-{index}"},
            "status": {
                "phase": "Pending",
                "conditions": [condition("PodScheduled", False, "0/8 nodes are available.")],
            },
        }
        for index in range(2)
    ]
    admitted = workload(condition("QuotaReserved", True), condition("Admitted", True), condition("PodsReady", False))

    assert explanation(workload=admitted, pods=pods) == [
        "train-bcdfg is admitted, and 2 of 2 pods wait.",
        '2 of them: "0/8 nodes are available".',
    ]


def test_pods_of_a_node_that_does_not_answer_do_not_wait() -> None:
    pod = {"metadata": {"name": "train-0"}, "status": {"phase": "Running", "conditions": [condition("Ready", False)]}}

    (line,) = explanation(workload=ADMITTED, pods=[pod])

    assert line == "train-bcdfg is admitted, and not all of its pods are ready."


def waiting_pod(name: str, message: str) -> Json:
    conditions = [condition("PodScheduled", False, message)]
    return {"metadata": {"name": name}, "status": {"phase": "Pending", "conditions": conditions}}


def event(kind: str, reason: str, message: str, name: str = "train-0", hour: int = 1) -> Json:
    about = {"kind": "Pod", "name": name}
    return {
        "type": kind, "reason": reason, "message": message, "involvedObject": about,
        "lastTimestamp": f"2026-11-22T{hour:02}:00:00Z",
    }  # fmt: skip


ADMITTED = workload(condition("QuotaReserved", True), condition("Admitted", True), condition("PodsReady", False))


SCHEDULER = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
FULL = event("Normal", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")
GROWS = event("Normal", "TriggeredScaleUp", "pod triggered scale-up: [{group 3->4 (max: 4)}]")


@pytest.mark.parametrize(
    ("message", "events", "explained"),
    [(SCHEDULER, [FULL], True), (SCHEDULER, [GROWS, FULL], False), ("0/4 nodes: 4 had taints.", [FULL], False)],
)
def test_a_run_that_no_single_vm_has_room_for_learns_how_kueue_counts(
    message: str, events: list[Json], explained: bool
) -> None:
    seen = {"flavor": "a100-40", "resource": "nvidia.com/gpu", "unit": 8, "pods": [waiting_pod("train-0", message)]}

    lines = explanation(workload=ADMITTED, events=events, **seen)

    sentence = "No VM has 8 nvidia.com/gpu free, and no VM is added. Kueue counts a100-40 for all VMs"
    assert [line.startswith(sentence) for line in lines].count(True) == explained


def test_the_first_pod_of_a_slice_is_what_the_others_wait_for() -> None:
    message = 'Error creating: admission webhook "vpod.kb.io" denied the request: follower pod node selector not set'

    lines = explanation(workload=ADMITTED, events=[event("Warning", "FailedCreate", message)])

    assert "once the slice's first pod has a node" in lines[1]


@pytest.mark.parametrize(("pods", "stuck"), [([], True), ([waiting_pod("train-0", "")], False)])
def test_a_stopped_run_that_keeps_its_quota_without_pods_is_to_be_cancelled(pods: list[Json], stuck: bool) -> None:
    evicted = condition("Evicted", True, "Exceeded the PodsReady timeout", "PodsReadyTimeout")
    workload_of_it = workload(condition("QuotaReserved", True), condition("Admitted", True), evicted)

    first, *other_lines = explanation(workload=workload_of_it, pods=pods)

    assert first == "Kueue is stopping train-bcdfg; the run keeps its quota until its pods have ended."
    assert any("job cancel train-bcdfg releases the quota" in line for line in other_lines) == stuck
    assert 'was stopped (PodsReadyTimeout): "Exceeded the PodsReady timeout".' in other_lines[-1]


def pending_pod(init: Json | None, main: Json) -> Json:
    statuses = {"initContainerStatuses": [{"state": {"waiting": init}}] if init else []}
    statuses["containerStatuses"] = [{"state": {"waiting": main}}]
    return {"metadata": {"name": "p"}, "status": {"phase": "Pending", **statuses}}


STARTS = pending_pod(None, {"reason": "ContainerCreating"})
PULLS = pending_pod(None, {"reason": "ErrImagePull", "message": "not found"})


@pytest.mark.parametrize(
    ("pods", "reason", "message"),
    [
        ([], "", "pods are not ready"),
        ([STARTS], "ContainerCreating", "pods are not ready"),
        ([STARTS, PULLS], "ErrImagePull", "not found"),
        (
            [pending_pod({"reason": "ImagePullBackOff", "message": "denied"}, {"reason": "PodInitializing"})],
            "ImagePullBackOff", "denied",
        ),
    ],
)  # fmt: skip
def test_a_starting_run_says_what_its_containers_wait_for(pods: list[Json], reason: str, message: str) -> None:
    admitted = workload(condition("Admitted", True), condition("PodsReady", False, "pods are not ready"))
    run = with_wait(gke_run(JOBSET, admitted, "gpus"), pods)

    assert (run.state, run.waiting_reason, run.reason) == ("starting", reason, message)


def test_a_run_that_is_not_starting_waits_for_no_container() -> None:
    run = gke_run(JOBSET, workload(condition("Admitted", True), condition("PodsReady", True)), "gpus")

    assert with_wait(run, [PULLS]) == run


@pytest.mark.parametrize(
    ("ready", "state"), [([], "starting"), ([{"name": "slice", "ready": 1}], "running"),
                         ([{"name": "slice", "ready": 0, "succeeded": 1}], "running")],
)  # fmt: skip
def test_before_kueue_says_whether_pods_are_ready_jobset_does(ready: list[Json], state: str) -> None:
    roles = [{"name": "slice", "template": {"spec": {"template": {"spec": {"containers": []}}}}}]
    jobset = {**JOBSET, "spec": {"replicatedJobs": roles}, "status": {"replicatedJobsStatus": ready}}

    assert gke_run(jobset, workload(condition("Admitted", True)), "gpus").state == state


def test_the_autoscalers_last_event_is_quoted_although_it_is_no_warning() -> None:
    events = [
        event("Normal", "TriggeredScaleUp", "pod triggered scale-up: [{group 0->2 (max: 8)}]"),
        event("Normal", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", hour=3),
        event("Normal", "NotTriggerScaleUp", "an older word", hour=2),
        event("Normal", "Scheduled", "Successfully assigned"),
    ]

    assert explanation(workload=ADMITTED, events=events)[1:] == [
        'The autoscaler reports: "pod triggered scale-up: [{group 0->2 (max: 8)}]".',
        'The autoscaler reports: "pod didn\'t trigger scale-up: 1 max node group size reached".',
    ]


def test_one_message_about_several_pods_is_quoted_once() -> None:
    pods = [waiting_pod(f"train-{index}", "0/8 nodes are available.") for index in range(2)]
    events = [
        event("Warning", "FailedScheduling", "0/8 nodes are available.", name=f"train-{index}") for index in (0, 1)
    ]
    events += [event("Warning", "FailedMount", "no such claim", name=f"train-{index}") for index in (0, 1)]

    assert explanation(workload=ADMITTED, pods=pods, events=events)[1:] == [
        '2 of them: "0/8 nodes are available".',
        'Event on Pod train-0 and 1 more: "no such claim".',
    ]


def test_earlier_waiting_runs_are_named_if_the_queue_cannot_be_read() -> None:
    ahead = [gke_run({**JOBSET, "metadata": {**JOBSET["metadata"], "name": "train-first"}}, None, "gpus")]
    behind = workload(condition("QuotaReserved", False))

    assert explanation(workload=behind, ahead=ahead)[-2:] == [
        "Waiting runs of the team that were submitted earlier: train-first.",
        "Its place in the queue is not shown: Kueue's visibility API is off, or you have no right to read it.",
    ]
    assert "were submitted earlier" not in " ".join(explanation(workload=behind, ahead=ahead, pending=[]))


GPUS = "gke: {cluster: gpus, flavor: h100, nodes: 2}"
SLICES = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2}"
POOL = "Pool h100 has at most 8 VMs of a3-highgpu-8g in us-central1-a, on-demand"
LIMIT = """
  compute.googleapis.com:
    GPUS-PER-GPU-FAMILY-per-project-region:
      - {limit: 16, region: us-central1, gpu_family: NVIDIA_H100}
"""
OTHER_LIMIT = """
  compute.googleapis.com:
    INSTANCES-per-project-region:
      - {limit: 200, region: us-central1}
"""


def sentences(job: ResolvedJob, states: Mapping[str, Json]) -> list[str]:
    return list(vm_sentences(on_gke(job), lambda: states, TODAY))


def test_a_healthy_pool_is_reported_with_its_maximum(take: Take) -> None:
    assert sentences(take(GPUS), {"h100": {"status": "RUNNING"}}) == [f"{POOL}."]


def test_queued_vms_are_said_to_come_from_one_zone(take: Take, new_lab: Lab) -> None:
    root = new_lab()
    queued = "machine_type: a3-highgpu-8g, capacity: queued-provisioning"
    for file, line, before in (
        ("lab", f"          near: {{{queued}, zone: us-central1-a, max_nodes: 5}}", "          h100: {"),
        ("lab", f"          far: {{{queued}, zone: us-central1-c, max_nodes: 3}}", "          h100: {"),
        ("lab-vision", "        h100-queued-provisioning: {nominal_quota: 16}", "        h100: {nominal_quota: 32"),
    ):
        path = root / "stacks" / f"Pulumi.{file}.yaml"
        path.write_text(path.read_text().replace(before, f"{line}\n{before}", 1))
    text = "gke: {cluster: gpus, flavor: h100-queued-provisioning, nodes: 2, max_run_hours: 1}"

    answer = sentences(take(text, workspace=read_workspace(root)), {})

    assert "Queued VMs come from one zone of one of these pools: a run gets at most 5." in answer
    assert not any("Queued" in sentence for sentence in sentences(take(GPUS), {}))


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"status": "ERROR", "statusMessage": "No quota."}, 'Node pool h100 is ERROR: "No quota".'),
        ({"status": "PROVISIONING"}, "Node pool h100 is PROVISIONING."),
        (
            {"status": "RUNNING", "conditions": [{"code": "GCE_STOCKOUT", "message": "out of\n a3"}]},
            'Node pool h100 has the condition GCE_STOCKOUT: "out of a3".',
        ),
        (
            {"conditions": [{"canonicalCode": "UNAVAILABLE", "code": "UNKNOWN"}]},
            "Node pool h100 has the condition UNAVAILABLE.",
        ),
    ],
)
def test_gkes_message_about_a_pool_is_quoted(take: Take, state: Json, sentence: str) -> None:
    assert sentences(take(GPUS), {"h100": state})[1:] == [sentence]


def test_slices_with_the_same_trouble_are_one_sentence(take: Take) -> None:
    job = take(SLICES)
    well: dict[str, Json] = {"slices-0": {}, "slices-1": {}}

    first, *other_sentences = sentences(job, {**well, "slices-2": {"status": "ERROR"}, "slices-3": {"status": "ERROR"}})

    assert first.startswith("Pool slices has at most 32 VMs of ct5lp-hightpu-4t in us-west4-a, on-demand")
    assert other_sentences == ["Node pool slices-2 (and 1 more) is ERROR."]
    assert sentences(job, well)[1:] == ["Node pool slices-2 (and 1 more) does not exist."]


def test_unreadable_node_pools_give_one_sentence(take: Take) -> None:
    def refused() -> dict[str, Json]:
        raise GoogleError("GKE denies access in projects/p: no.")

    assert list(vm_sentences(on_gke(take(GPUS)), refused, TODAY))[1:] == [
        "GKE does not list the node pools: GKE denies access in projects/p: no."
    ]


def test_without_credentials_the_answer_is_what_the_cluster_and_files_say(take: Take) -> None:
    def refused() -> dict[str, Json]:
        raise NoCredentialsError("There are no credentials: none.")

    assert list(vm_sentences(on_gke(take(GPUS)), refused, TODAY)) == [f"{POOL}."]


QUOTA = "GPUS-PER-GPU-FAMILY-per-project-region (NVIDIA_H100) in us-central1"


@pytest.mark.parametrize(
    ("limits", "quota_note"),
    [(LIMIT, f"; quota {QUOTA}: limit 16 as of 2026-11-01"), (OTHER_LIMIT, "")],
)
def test_the_quota_of_a_pools_accelerators_is_reported_with_the_day_of_its_snapshot(
    take: Take, new_lab: Lab, limits: str, quota_note: str
) -> None:
    root = new_lab()
    file = root / "stacks" / "quotas" / "example-lab.yaml"
    file.write_text(file.read_text().rstrip() + limits)

    job = take(GPUS, workspace=read_workspace(root))

    assert sentences(job, {"h100": {}}) == [f"{POOL}{quota_note}."]


def test_node_pools_are_read_by_the_client_that_asks_gke() -> None:
    client = Client(judged_cloud([PROJECT]))
    client.enable(PROJECT, "compute", "container")
    client.network()
    client.cluster("lab-gpus")

    with serve(client.cloud) as port:
        pools = node_pools(PROJECT, "us-central1", "lab-gpus", f"http://127.0.0.1:{port}/container/")

    assert {name: pool["status"] for name, pool in pools.items()} == {"default-pool": "RUNNING"}


def test_a_reservation_without_a_total_holds_nothing() -> None:
    reserved = [{"name": "h100", "resources": [{"name": "nvidia.com/gpu"}]}]
    queue = {"status": {**QUEUE["status"], "flavorsReservation": reserved}}

    lines = explanation(
        queue=queue, workload=workload(condition("QuotaReserved", False)), pending=[], flavor="h100",
        resource="nvidia.com/gpu", demand=32, unit=8, quota=32, reachable=40,
    )  # fmt: skip

    assert any("uses 0 of its 32" in line for line in lines)


def test_the_accelerators_of_a_run_are_those_of_all_its_pods() -> None:
    def role(replicas: int | None, parallelism: int, *limits: Json) -> Json:
        containers = [{"resources": {"limits": limit}} for limit in limits]
        job = {"parallelism": parallelism, "template": {"spec": {"containers": containers}}}
        return {"name": "a", "replicas": replicas, "template": {"spec": job}}

    roles = [role(2, 3, {"nvidia.com/gpu": "8"}, {"cpu": "1"}), role(None, 4, {"google.com/tpu": "4"})]
    jobset = {**JOBSET, "spec": {**JOBSET["spec"], "replicatedJobs": roles}}

    assert gke_run(jobset, None, "gpus").accelerators == 2 * 3 * 8 + 4 * 4


@pytest.mark.parametrize(
    ("row", "text"),
    [({"message": "no room", "reason": "Pending"}, "no room"), ({"reason": "Pending"}, "Pending"), ({}, "")],
)
def test_of_a_condition_its_message_is_said_and_without_one_its_reason(row: dict[str, str], text: str) -> None:
    pod = {"status": {"conditions": [{"type": "Ready", **row}]}}

    assert words(pod, "Ready") == text
    assert words(pod, "Scheduled") == ""
