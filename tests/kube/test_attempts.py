"""What a member could try against other teams, by what it would gain: each attempt on a real API server.

Team vision tries, and team nlp is in the same cluster. Nodes enforce NetworkPolicies, and none are here: the API server
takes them, and which connections they let through is tested in tests/training_platform/resources/network.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from tests.kube.server import JOB_CONTROLLER, MEMBER, Json, Server
from tests.kube.test_admission import CONTROLLER, ESCAPES, GPU, PODSET, QUEUED, job, mega, plain
from tests.places import ROOT

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

ROLES, ADMISSION, QUOTA, SECURITY = "roles", "policies", "quota", "Pod Security"
NOTEBOOK = {"Impersonate-User": "system:serviceaccount:jupyterhub:default"}
OTHERS: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "datasets"}}]}


class Attempt(NamedTuple):
    """One way to try, what stops it, and the attempt: what it returns is the refusal, empty where it succeeds."""

    way: str
    stopped_by: str
    attempt: Callable[[Server], str]
    says: str = ""


def right(verb: str, resource: str, namespace: str = "nlp", who: Mapping[str, str] = MEMBER) -> Attempt:
    """Try something that takes a right of Kubernetes; without a namespace it is tried in all of them."""

    def attempt(server: Server) -> str:
        return "" if server.may(verb, resource, namespace, dict(who)) else "no role grants it"

    place = f"in {namespace}" if namespace else "in all namespaces"
    return Attempt(f"{verb} {resource} {place} as {who['Impersonate-User']}", ROLES, attempt)


def pod(way: str, says: str, stopped_by: str = ADMISSION, **spec: Any) -> Attempt:
    """Try a pod in the team's own namespace, made by a Job."""

    def attempt(server: Server) -> str:
        return server.ask("Pod", plain("vision", **copy.deepcopy(spec)), JOB_CONTROLLER)

    return Attempt(way, stopped_by, attempt, says)


def member(way: str, kind: str, obj: Json, says: str, stopped_by: str = ADMISSION) -> Attempt:
    """Try an object as a member."""
    return Attempt(way, stopped_by, lambda server: server.ask(kind, copy.deepcopy(obj), MEMBER), says)


def mounted(**mount: str) -> Json:
    return {"volumeMounts": [{"name": "v", "mountPath": "/data", **mount}]}


def device(path: str) -> Attempt:
    spoiled = mega(devices={"devices.gke.io/container.a": f"- path: {path}\n"})
    return Attempt(
        f"have {path} injected", ADMISSION, lambda server: server.ask("Pod", spoiled, JOB_CONTROLLER), "devices"
    )


READING = [
    *(
        right(verb, resource)
        for verb, resource in (
            ("get", "secrets"),
            ("list", "secrets"),
            ("get", "configmaps"),
            ("get", "persistentvolumeclaims"),
            ("get", "pods/log"),
            ("create", "pods/exec"),
            ("get", "pods/exec"),
            ("create", "pods/portforward"),
        )
    ),
    right("create", "persistentvolumes", ""),
    right("update", "persistentvolumes", ""),
    right("get", "nodes/proxy", ""),
    right("update", "networkpolicies.networking.k8s.io", "vision"),
    right("update", "namespaces", "vision"),
    pod(
        "mount its folder of a shared Filestore instance",
        "in the team's folder",
        container=mounted(subPath="nlp/corpora"),
        **OTHERS,
    ),
    pod("mount the root of a shared Filestore instance", "in the team's folder", container=mounted(), **OTHERS),
    pod(
        "mount its Filestore instance by address",
        "a volume is one of",
        volumes=[{"name": "v", "nfs": {"server": "10.0.0.2", "path": "/"}}],
    ),
    pod(
        "mount its disk by name", "a volume is one of", volumes=[{"name": "v", "gcePersistentDisk": {"pdName": "nlp"}}]
    ),
    pod(
        "mount a share by a driver", "Cloud Storage FUSE", volumes=[{"name": "v", "csi": {"driver": "nfs.csi.k8s.io"}}]
    ),
]
ACCOUNT = [
    right("create", "serviceaccounts/token"),
    right("create", "serviceaccounts/token", "vision"),
    right("update", "serviceaccounts", "vision"),  # whose annotation names the Google account
    right("create", "serviceaccounts", "vision"),
    right("impersonate", "serviceaccounts"),
    right("create", "rolebindings.rbac.authorization.k8s.io", "vision"),
    right("escalate", "roles.rbac.authorization.k8s.io", "vision"),
    right("create", "jobs.batch"),
    right("create", "pods"),
    pod("run under an account that is not the team's", "run as training or default", serviceAccountName="nlp"),
    pod("act as the nodes' account, by their network", "shares no network", hostNetwork=True),
]
STARVING = [
    right("update", "resourcequotas", "vision"),
    right("delete", "limitranges", "vision"),
    right("create", "localqueues.kueue.x-k8s.io", "vision"),
    right("update", "clusterqueues.kueue.x-k8s.io", ""),
    right("update", "workloads.kueue.x-k8s.io", "vision"),  # its priority, and whether it is admitted
    right("delete", "workloads.kueue.x-k8s.io"),
    right("delete", "jobs.batch"),
    right("delete", "pods"),
    right("patch", "pods", "vision"),  # which would take Kueue's gate away
    right("create", "priorityclasses.scheduling.k8s.io", ""),
    right("create", "services", "vision"),
    member("start a Job past its queue", "Job", job(labels={}), "Kueue does not hold"),
    member("start a Job that waits", "Job", job(suspend=False), "Kueue does not hold"),
    member("pose as a part of an admitted job", "Job", job(ownerReferences=[CONTROLLER]), "has no controller"),
    pod("take GPUs without quota", "a job that Kueue admitted", container={"resources": GPU}),
    pod("sit on nodes with GPUs", "does not tolerate their nodes", tolerations=[{"operator": "Exists"}]),
    pod("preempt pods of the system", "no priority above 1000", priorityClassName="system-cluster-critical"),
    pod("choose a node", "not by nodeName", nodeName="gpu-node"),
    pod("take all CPUs", "exceeded quota", QUOTA, container={"resources": {"requests": {"cpu": "100k"}}}),
    pod("take all memory", "exceeded quota", QUOTA, container={"resources": {"requests": {"memory": "1Pi"}}}),
    pod(
        "take more GPUs than the team can have, as a part of an admitted job",
        "exceeded quota",
        QUOTA,
        labels=PODSET,
        container={"resources": {"limits": {"nvidia.com/gpu": "10k"}}},
    ),
]
ESCAPING = [
    right("create", "pods/ephemeralcontainers", "vision"),
    right("update", "pods", "vision"),
    right("create", "daemonsets.apps", "vision"),
    right("update", "nodes", ""),
    right("delete", "validatingadmissionpolicies.admissionregistration.k8s.io", ""),
    *(pod(way, "ValidatingAdmissionPolicy", **spec) for way, spec in ESCAPES.items()),
    *(device(path) for path in ("/dev/sda", "/dev/kvm", "/dev/nvidia0")),
]
NOTEBOOKS = [
    right("create", "pods", "jupyterhub"),
    right("create", "pods/exec", "jupyterhub"),
    right("create", "pods", "jupyterhub", NOTEBOOK),
    right("create", "jobs.batch", "vision", NOTEBOOK),
    right("update", "configmaps", "jupyterhub", NOTEBOOK),  # profiles are the hub's settings
    right("get", "secrets", "jupyterhub", NOTEBOOK),
    pod("start one by hand on a reserved machine", "a job that Kueue admitted", container={"resources": GPU}),
]
WATCHING = [
    *(
        right(verb, resource, namespace)
        for namespace in ("nlp", "")
        for verb in ("get", "list", "watch")
        for resource in ("pods", "events", "jobs.batch", "jobsets.jobset.x-k8s.io", "workloads.kueue.x-k8s.io")
    ),
    right("list", "localqueues.visibility.kueue.x-k8s.io/pendingworkloads"),
    right("list", "clusterqueues.visibility.kueue.x-k8s.io/pendingworkloads", ""),
    right("list", "provisioningrequests.autoscaling.x-k8s.io"),
    right("list", "namespaces", ""),
]
GAINS: dict[str, list[Attempt]] = {
    "read another team's data": READING,
    "use another team's account": ACCOUNT,
    "starve another team": STARVING,
    "escape to a node": ESCAPING,
    "take a reserved machine from a notebook": NOTEBOOKS,
    "see another team's jobs beyond totals": WATCHING,
}
EACH = [(gain, each) for gain, attempts in GAINS.items() for each in attempts]


@pytest.mark.parametrize(("gain", "attempt"), EACH, ids=[f"{gain}: {each.way}" for gain, each in EACH])
def test_an_attempt_is_stopped(server: Server, gain: str, attempt: Attempt) -> None:
    refusal = attempt.attempt(server)

    assert refusal, f"to {gain}: {attempt.way}"
    assert attempt.says in refusal


def test_what_members_do_every_day_is_let_through(server: Server) -> None:
    """Else all of the above would be stopped by what stops everything."""
    for verb, resource in (
        ("create", "jobs.batch"),
        ("create", "jobsets.jobset.x-k8s.io"),
        ("get", "pods/log"),
        ("create", "pods/exec"),
        ("get", "secrets"),
        ("list", "workloads.kueue.x-k8s.io"),
        ("list", "localqueues.visibility.kueue.x-k8s.io/pendingworkloads"),
    ):
        assert server.may(verb, resource, "vision", MEMBER), resource
    assert server.ask("Job", job(labels=QUEUED), MEMBER) == ""
    assert server.ask("Pod", mega(), JOB_CONTROLLER) == ""


def test_a_pod_that_names_no_cpus_gives_way_to_those_that_do(server: Server) -> None:
    """It is counted as nothing by the quota; the kernel gives it what is idle, and it is the first to go."""
    held = plain("vision", labels={"attempt": "best-effort"})
    held["metadata"]["name"] = "idle"
    assert server.ask("Pod", held, JOB_CONTROLLER, keep=True) == ""
    try:
        (found,) = (each for each in server.read("Pod", "vision") if each["metadata"]["name"] == "idle")
        assert found["status"]["qosClass"] == "BestEffort"
    finally:
        server.delete("Pod", held)


def test_a_namespace_is_closed_in_both_directions(server: Server) -> None:
    for namespace in ("vision", "nlp"):
        policies = {each["metadata"]["name"]: each["spec"] for each in server.read("NetworkPolicy", namespace)}

        assert {name: spec["policyTypes"] for name, spec in policies.items()} == {
            "same-namespace": ["Ingress"],
            "egress": ["Egress"],
        }
        assert all(spec["podSelector"] == {} for spec in policies.values())


def test_the_namespace_bounds_objects_pods_cpus_and_memory(server: Server) -> None:
    for namespace in ("vision", "nlp"):
        (quota,) = server.read("ResourceQuota", namespace)

        assert {"pods", "requests.cpu", "requests.memory", "count/jobs.batch", "configmaps", "secrets"} <= quota[
            "spec"
        ]["hard"].keys()


def test_the_page_names_what_stops_each() -> None:
    page = (ROOT / "docs" / "tenancy.md").read_text(encoding="utf-8")
    table = page.partition("| what a member could gain |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([a-z][^|]+?) \|", table, re.MULTILINE)

    assert rows == list(GAINS)
