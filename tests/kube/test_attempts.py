"""The attacks of a member of a team, by what each would gain: the request, and the policy that has to refuse it.

Each is tried on a real API server: those in the list of `training-platform verify`, which asks the same of a project,
and those that need pods or jobs to be there. Team vision tries, and team nlp is in the same cluster. Attacks that want
Kueue's or an operator's controllers at work are in test_admitted_jobs.py and test_operators.py, against the same
policies. Nodes enforce NetworkPolicies, and none are here: the API server takes them, and which connections they let
through is tested in tests/training_platform/resources/network.
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from tests.kube.conftest import administrator
from tests.kube.server import JOB_CONTROLLER, JOBSET_CONTROLLER, MEMBER, Json, Server
from tests.kube.test_admission import (
    CONTROLLER,
    ESCAPES,
    GPU,
    PODSET,
    QUEUED,
    job,
    mega,
    plain,
    templated,
)
from tests.places import ROOT
from training_platform.parts.verify.tenancy import EVERY_DAY, Write, rights, writes

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

ROLES, QUOTA = "roles", "quota"
JOBS, DELETIONS, OBJECTS, PLACES, VOLUMES, BASELINE = (
    f"training-platform-{name}"
    for name in ("queued-jobs", "deletions", "objects", "accelerator-pods", "pod-volumes", "pod-baseline")
)
YEAR = 31_536_000
UNQUEUED: Json = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}}
NOTEBOOK = {"Impersonate-User": "system:serviceaccount:jupyterhub:default"}
PLACES_OF = {"own": "vision", "other": "nlp"}
RIGHTS = rights()
OTHERS: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "datasets"}}]}


class Attempt(NamedTuple):
    """One way to try, what stops it, and the attempt: what it returns is the refusal, empty where it succeeds.

    ``stopped_by`` is a policy's name, or what else refuses; ``says`` is of the refusal.
    """

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


def pod(way: str, says: str, stopped_by: str, **spec: Any) -> Attempt:
    """Try a pod in the team's own namespace, made by a Job."""

    def attempt(server: Server) -> str:
        return server.ask("Pod", plain("vision", **copy.deepcopy(spec)), JOB_CONTROLLER)

    return Attempt(way, stopped_by, attempt, says)


def member(way: str, kind: str, obj: Json, says: str, stopped_by: str) -> Attempt:
    """Try an object as a member."""
    return Attempt(way, stopped_by, lambda server: server.ask(kind, copy.deepcopy(obj), MEMBER), says)


def on(way: str, obj: Json, what: Callable[[Server], str], says: str, stopped_by: str) -> Attempt:
    """Try something with an object that controllers made, and that is there meanwhile."""

    def attempt(server: Server) -> str:
        held = copy.deepcopy(obj)
        assert server.ask(held["kind"], held, JOBSET_CONTROLLER, keep=True) == ""
        try:
            return what(server)
        finally:
            server.delete(held["kind"], held)

    return Attempt(way, stopped_by, attempt, says)


def changed(way: str, obj: Json, patch: Json, says: str, stopped_by: str = JOBS) -> Attempt:
    """Try to change a job."""
    return on(way, obj, lambda server: server.change(obj["kind"], obj, patch, MEMBER), says, stopped_by)


def deleted(way: str, obj: Json, options: Json) -> Attempt:
    """Try to delete a job."""
    what = "deleted with its pods"
    return on(way, obj, lambda server: server.end(obj["kind"], obj, options, MEMBER), what, DELETIONS)


def ending_in_a_year(server: Server) -> str:
    """A pod without a node would be gone at once, whatever the request says."""
    held = named(plain("vision"), "b6")
    server.place(held, "a")
    return server.end("Pod", held, {"gracePeriodSeconds": YEAR}, MEMBER)


def sized(name: str, *, suspend: bool = False, **metadata: Any) -> Json:
    """Return a Job without pods."""
    made = job(name=name, suspend=suspend, **metadata)
    made["spec"]["parallelism"] = 0
    return made


def jobset(name: str, **spec: Any) -> Json:
    template = templated(spec=spec)["spec"]["template"]
    jobs = [{"name": "a", "replicas": 1, "template": {"spec": {"template": template}}}]
    about = {"name": name, "namespace": "vision", "labels": QUEUED}
    body = {"suspend": True, "replicatedJobs": jobs}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": about, "spec": body}


def named(body: Json, name: str) -> Json:
    return {**body, "metadata": {**body["metadata"], "name": name}}


def claim(**metadata: Any) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    about = {"name": "c", "namespace": "vision", **metadata}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}


def mounted(**mount: str) -> Json:
    return {"volumeMounts": [{"name": "v", "mountPath": "/data", **mount}]}


def device(path: str) -> Attempt:
    spoiled = mega(devices={"devices.gke.io/container.a": f"- path: {path}\n"})
    return Attempt(
        f"have {path} injected", BASELINE, lambda server: server.ask("Pod", spoiled, JOB_CONTROLLER), "devices"
    )


def of_the_list(gain: str) -> list[Attempt]:
    """Return what `verify` tries in a project too: the rights and writes of its list that are about a gain."""
    to_it = RIGHTS.get(gain, ())
    return [
        *(right(one.verb, one.resource, PLACES_OF.get(one.namespace, one.namespace)) for one in to_it),
        *(written(one) for one in writes("vision", "vision") if one.gain == gain),
    ]


def written(write: Write) -> Attempt:
    """Try an object of the list, as a member."""
    return member(write.way, write.body["kind"], write.body, write.says[0], write.by)


READING = [
    *of_the_list("read another team's data"),
    pod(
        "mount its folder of a shared Filestore instance",
        "in the team's folder",
        VOLUMES,
        container=mounted(subPath="nlp/corpora"),
        **OTHERS,
    ),
    pod(
        "mount the root of a shared Filestore instance", "in the team's folder", VOLUMES, container=mounted(), **OTHERS
    ),
    pod(
        "mount its Filestore instance by address",
        "a volume is one of",
        VOLUMES,
        volumes=[{"name": "v", "nfs": {"server": "10.0.0.2", "path": "/"}}],
    ),
    pod(
        "mount its disk by name",
        "a volume is one of",
        VOLUMES,
        volumes=[{"name": "v", "gcePersistentDisk": {"pdName": "nlp"}}],
    ),
    pod(
        "mount a share by a driver",
        "Cloud Storage FUSE",
        VOLUMES,
        volumes=[{"name": "v", "csi": {"driver": "nfs.csi.k8s.io"}}],
    ),
]
ACCOUNT = [
    *of_the_list("use another team's account"),
    pod("run under an account that is not the team's", "run as training or default", VOLUMES, serviceAccountName="nlp"),
    pod("act as the nodes' account, by their network", "shares no network", BASELINE, hostNetwork=True),
]
STARVING = [
    *of_the_list("starve another team"),
    member("start a Job past its queue", "Job", job(labels={}), "Kueue does not hold", JOBS),
    member("start a Job that waits", "Job", job(suspend=False), "Kueue does not hold", JOBS),
    member(
        "start as a part of an admitted job",
        "Job",
        job(ownerReferences=[CONTROLLER], suspend=False),
        "has no controller",
        JOBS,
    ),
    changed(
        "start a Job that waits, by a change",
        sized("a1", suspend=True),
        {"spec": {"suspend": False}},
        "only Kueue starts",
    ),
    changed("take a Job out of its queue", sized("a2"), UNQUEUED, "only Kueue starts"),
    changed("enlarge a Job that runs", sized("a3"), {"spec": {"parallelism": 8}}, "keeps its size"),
    changed(
        "enlarge a part of an admitted job",
        sized("a4", ownerReferences=[CONTROLLER], finalizers=["example.com/kept"]),
        {"spec": {"parallelism": 8}},
        "changed by its controller alone",
    ),
    changed(
        "make a Job a part of an admitted one",
        sized("a5"),
        {"metadata": {"ownerReferences": [CONTROLLER]}},
        "has no controller",
    ),
    pod("take GPUs without quota", "a job that Kueue admitted", PLACES, container={"resources": GPU}),
    pod("sit on nodes with GPUs", "does not tolerate their nodes", PLACES, tolerations=[{"operator": "Exists"}]),
    pod("choose a node", "not by nodeName", PLACES, nodeName="gpu-node"),
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
KEEPING = [
    *of_the_list("keep machines that Kueue no longer counts"),
    deleted("delete a Job as a bare request does", sized("b1"), {}),
    deleted("delete a Job with --cascade=orphan", sized("b2"), {"propagationPolicy": "Orphan"}),
    deleted("delete a Job with orphanDependents", sized("b3"), {"orphanDependents": True}),
    deleted("delete a JobSet with --cascade=orphan", jobset("b4"), {"propagationPolicy": "Orphan"}),
    deleted("delete a JobSet with orphanDependents", jobset("b5"), {"orphanDependents": True}),
    on(
        "delete a pod with --grace-period=31536000",
        named(plain("vision"), "b6"),
        ending_in_a_year,
        "within 900 seconds",
        DELETIONS,
    ),
    *(
        member(f"end {seconds} seconds after eviction, in a {kind}", kind, body, "within 900 seconds", JOBS)
        for seconds in (901, YEAR)
        for kind, body in (
            ("Job", templated(spec={"terminationGracePeriodSeconds": seconds})),
            ("JobSet", jobset("b7", terminationGracePeriodSeconds=seconds)),
        )
    ),
    pod("end a pod a year after eviction", "a pod ends within 900", PLACES, terminationGracePeriodSeconds=YEAR),
]  # fmt: skip
OUTRANKING = [
    *of_the_list("outrank another team's pods"),
    *(
        member(f"run as {name}, by the class of pods in a {kind}", kind, body, "names no priority class", JOBS)
        for name in ("gmp-critical", "system-node-critical")
        for kind, body in (
            ("Job", templated(spec={"priorityClassName": name})),
            ("JobSet", jobset("c1", priorityClassName=name)),
        )
    ),
    pod("preempt pods of the system", "no priority above 1000", PLACES, priorityClassName="system-cluster-critical"),
]
ESCAPING = [
    *of_the_list("escape to a node"),
    *(pod(way, "", BASELINE, **spec) for way, spec in ESCAPES.items()),
    *(device(path) for path in ("/dev/sda", "/dev/kvm", "/dev/nvidia0")),
]
NOTEBOOKS = [
    *of_the_list("take a reserved machine from a notebook"),
    right("create", "pods", "jupyterhub", NOTEBOOK),
    right("create", "jobs.batch", "vision", NOTEBOOK),
    right("update", "configmaps", "jupyterhub", NOTEBOOK),  # profiles are the hub's settings
    right("get", "secrets", "jupyterhub", NOTEBOOK),
    pod("start one by hand on a reserved machine", "a job that Kueue admitted", PLACES, container={"resources": GPU}),
]
GAINS: dict[str, list[Attempt]] = {
    "read another team's data": READING,
    "use another team's account": ACCOUNT,
    "starve another team": STARVING,
    "keep machines that Kueue no longer counts": KEEPING,
    "outrank another team's pods": OUTRANKING,
    **{gain: of_the_list(gain) for gain in ("hold the namespace", "pass for a controller, which policies let through")},
    "escape to a node": ESCAPING,
    "take a reserved machine from a notebook": NOTEBOOKS,
    "see another team's jobs beyond totals": of_the_list("see another team's jobs beyond totals"),
}
EACH = [(gain, each) for gain, attempts in GAINS.items() for each in attempts]


@pytest.mark.parametrize(("gain", "attempt"), EACH, ids=[f"{gain}: {each.way}" for gain, each in EACH])
def test_an_attempt_is_stopped(server: Server, gain: str, attempt: Attempt) -> None:
    refusal = attempt.attempt(server)

    assert refusal, f"to {gain}: {attempt.way}"
    assert attempt.says in refusal
    if attempt.stopped_by.startswith("training-platform-"):
        assert f"ValidatingAdmissionPolicy '{attempt.stopped_by}'" in refusal


@pytest.mark.parametrize(
    "user", ["system:node:a", "system:anonymous", "system:kube-scheduler", "system:serviceaccount:nlp:training"]
)
def test_only_controllers_are_let_through(server: Server, user: str) -> None:
    """Whoever becomes such a user makes no job past its queue; roles are taken out of the way."""
    binding = administrator("nlp:any") | {"subjects": [{"kind": "User", "name": user}]}
    binding["metadata"] = {"name": "any"}
    assert server.ask("ClusterRoleBinding", binding, keep=True) == ""
    try:
        deadline = time.monotonic() + 10
        who = {"Impersonate-User": user}
        while "cannot create resource" in (refusal := server.ask("Job", job(suspend=False), who)):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        server.delete("ClusterRoleBinding", binding)

    assert f"ValidatingAdmissionPolicy '{JOBS}'" in refusal


def test_what_members_do_every_day_is_let_through(server: Server) -> None:
    """Else all of the above would be stopped by what stops everything."""
    for one in RIGHTS[EVERY_DAY]:
        assert server.may(one.verb, one.resource, PLACES_OF[one.namespace], MEMBER), one
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


def test_every_gain_of_the_list_is_tried() -> None:
    assert {*RIGHTS, *(one.gain for one in writes("vision", "vision"))} == {EVERY_DAY, *GAINS}


def test_the_page_names_what_stops_each() -> None:
    page = (ROOT / "docs" / "tenancy.md").read_text(encoding="utf-8")
    table = page.partition("| what a member could gain |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([a-z][^|]+?) \|", table, re.MULTILINE)

    assert rows == list(GAINS)
    refusals = page.partition("| attempt of a member |")[2].partition("\n\n")[0]
    policies = {each.stopped_by for _, each in EACH if each.stopped_by not in (ROLES, QUOTA)}
    assert {name for name in policies if f"`{name}`" not in refusals} == set()
