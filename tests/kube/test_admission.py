"""What members of a team could try, each refused by a real API server; and the samples' jobs, which are let in."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.kube.bodies import CONTROLLER, GPU_JOB, PODSET, TCPX, job, mega, plain, pod_of
from tests.kube.conftest import JOBS_ON_GKE, administrator
from tests.kube.server import JOB_CONTROLLER, JOBSET_CONTROLLER, KUEUE, MEMBER, Json, Server
from tests.support.plans import PlannedStack
from training_platform.catalog import IMAGES
from training_platform.resources.admission import claims
from training_platform.resources.admission_policy import API_VERSION, Policy
from training_platform.resources.pod_admission import pod_images

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

Render = Callable[[str], Json]


@pytest.mark.parametrize("file", JOBS_ON_GKE)
def test_every_sample_and_example_is_let_in_with_its_pods(server: Server, rendered: Render, file: str) -> None:
    held = rendered(file)
    assert server.ask("Pod", pod_of(held), JOB_CONTROLLER) == ""
    held["spec"]["suspend"] = True  # as Kueue's webhook leaves it
    member = MEMBER | {"Impersonate-Group": f"{held['metadata']['namespace']}@example.com"}
    assert server.ask("JobSet", held, member) == ""


@pytest.mark.parametrize("source", [{"emptyDir": {}}, {"hostPath": {"path": TCPX.host_paths[0]}}], ids=["own", "node"])
@pytest.mark.parametrize(("jobs", "refused"), [(1, False), (20, False), (21, True), (40, True)])
def test_a_jobset_too_large_to_be_judged_is_refused_for_that(
    server: Server, rendered: Render, source: Json, jobs: int, refused: bool
) -> None:
    """20 replicated jobs of 10 containers, 20 mounts and 20 volumes are judged within the API server's limits."""
    held = rendered(GPU_JOB)
    held["spec"]["suspend"] = True
    (first,) = held["spec"]["replicatedJobs"]
    names = [f"v{number}" for number in range(20)]
    mounts = [{"name": name, "mountPath": f"/{name}", "readOnly": True} for name in names]
    pod = first["template"]["spec"]["template"]["spec"]
    del pod["initContainers"], pod["tolerations"]  # of TPUs or GPUs, which these containers do not request
    pod["volumes"] = [{"name": name, **source} for name in names]
    pod["containers"] = [{"name": f"c{n}", "image": "example.com/a:1", "volumeMounts": mounts} for n in range(10)]
    held["spec"]["replicatedJobs"] = [{**copy.deepcopy(first), "name": f"job{number}"} for number in range(jobs)]

    answer = server.ask("JobSet", held, MEMBER)

    assert ("the job is too large to check" in answer) == refused
    assert refused or answer == ""


def _beside(**namespaces: object) -> Json:
    """Return the affinity to pods of a name in other namespaces."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}, **namespaces}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        (({"hostPID": True}, {}), "hostNetwork, hostPID and hostIPC may not be set"),
        (({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, {}), "a hostPath volume may only be"),
        (({"serviceAccountName": "other"}, {}), "pods of a team must run as training or default"),
        (({}, {"securityContext": {"privileged": True}}), "a container may not be privileged"),
        (({}, {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}), "may add only capabilities of Pod"),
        (({"nodeName": "a-node"}, {}), "nodeName may not be set"),
        (({"tolerations": [{"operator": "Exists"}]}, {"resources": {}}), "may tolerate neither"),
        (({"affinity": _beside(namespaces=["nlp"])}, {}), "affinity may name only pods of the pod's own namespace"),
        (({"affinity": _beside(namespaceSelector={})}, {}), "affinity may name only pods of the pod's own namespace"),
    ],
    ids=["host", "host path", "account", "privileged", "capability", "node", "tolerations", "namespace", "namespaces"],
)
@pytest.mark.parametrize("kind", ["JobSet", "Job"])
def test_a_job_whose_pods_would_be_refused_is_refused(
    server: Server, rendered: Render, kind: str, spoiled: tuple[Json, Json], why: str
) -> None:
    pod, container = spoiled
    pod = dict(pod)
    volumes = pod.pop("volumes", [])
    held = rendered(GPU_JOB)
    held["spec"]["suspend"] = True
    template = held["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    if kind == "Job":
        labels = held["metadata"]["labels"]
        held = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j", "namespace": "vision", "labels": labels},
            "spec": {"suspend": True, "template": template},
        }
    assert server.ask(kind, held, MEMBER) == ""
    template["spec"].update(pod)
    template["spec"]["volumes"].extend(volumes)
    template["spec"]["containers"][0].update(container)

    assert why in server.ask(kind, held, MEMBER)


def test_pod_security_itself_refuses_where_a_team_needs_nothing_beyond_it(server: Server) -> None:
    assert 'violates PodSecurity "baseline' in server.ask("Pod", plain("nlp", hostPID=True), JOB_CONTROLLER)
    assert "PodSecurity" not in server.ask("Pod", plain("vision", hostPID=True), JOB_CONTROLLER)


@contextmanager
def added(server: Server, policy: Policy, kind: str, refused: Json, who: dict[str, str]) -> Iterator[None]:
    """Add a policy, and wait until it refuses somebody's object of a kind; afterwards until nothing does."""
    kinds = {"ValidatingAdmissionPolicy": policy.spec, "ValidatingAdmissionPolicyBinding": policy.binding}
    bodies: list[Json] = [
        {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": policy.name}, "spec": spec}
        for kind, spec in kinds.items()
    ]
    for body in bodies:
        assert server.ask(body["kind"], body, keep=True) == ""
    deadline = time.monotonic() + 30
    while policy.name not in server.ask(kind, refused, who):
        assert time.monotonic() < deadline, "the object is still let in"
        time.sleep(0.2)
    yield
    for body in reversed(bodies):
        server.delete(body["kind"], body)
    while server.ask(kind, refused, who):
        time.sleep(0.2)


@pytest.fixture
def from_repositories(server: Server) -> Iterator[None]:
    """Hold images to ``example.com/`` in the namespaces of teams, for one test."""
    other = plain(container={"image": "docker.io/a:1"})
    with added(server, pod_images(["example.com/"], IMAGES), "Pod", other, JOB_CONTROLLER):
        yield


@pytest.mark.usefixtures("from_repositories")
def test_images_come_from_the_environments_repositories_where_it_says_so(server: Server) -> None:
    for refused in (
        {"container": {"image": "example.com.evil.org/a:1"}},
        {"container": {"image": "a"}},
        {"initContainers": [{"name": "i", "image": "docker.io/a:1"}]},
        {"volumes": [{"name": "v", "image": {"reference": "docker.io/a:1"}}]},
    ):
        assert "an image must come from" in server.ask("Pod", plain(**copy.deepcopy(refused)), JOB_CONTROLLER), refused
    assert server.ask("Pod", plain(), JOB_CONTROLLER) == ""
    assert server.ask("Pod", mega(), JOB_CONTROLLER) == ""  # with the daemon of GPUDirect, whose image is Google's


EXACTLY = {"deviceClassName": "mrdma.google.com", "allocationMode": "ExactCount", "count": 8}
EVERY = {"deviceClassName": "mrdma.google.com", "allocationMode": "All"}


def claim_template(request: Json) -> Json:
    """Return a template of claims with one request."""
    about = {"name": "cards", "namespace": "vision"}
    spec = {"devices": {"requests": [{"name": "devices", **request}]}}
    return {"apiVersion": "resource.k8s.io/v1", "metadata": about, "spec": {"spec": spec}}


@pytest.fixture
def network_devices(server: Server) -> Iterator[None]:
    """Let pods of teams claim network devices, for one test."""
    with added(server, claims(), "ResourceClaimTemplate", claim_template({"exactly": EVERY}), {}):
        yield


@pytest.mark.usefixtures("network_devices")
def test_claims_are_for_network_devices_by_an_exact_count(server: Server) -> None:
    exact = "a claim must have allocationMode ExactCount and the count of its VM's devices"
    network = "a claim must request exactly one of the classes mrdma.google.com, netdev.google.com"
    assert server.ask("ResourceClaimTemplate", claim_template({"exactly": EXACTLY})) == ""
    assert "cannot create resource" in server.ask("ResourceClaimTemplate", claim_template({"exactly": EXACTLY}), MEMBER)
    for request, sentence in (
        ({"exactly": EVERY}, exact),
        ({"exactly": {**EXACTLY, "deviceClassName": "gpu.nvidia.com"}}, network),
        ({"firstAvailable": [{"name": "one", **EXACTLY}]}, network),
    ):
        template = claim_template(request)
        claim = {**template, "spec": template["spec"]["spec"]}
        assert sentence in server.ask("ResourceClaimTemplate", template), request
        assert sentence in server.ask("ResourceClaim", claim), request


def test_members_make_no_pods_themselves(server: Server) -> None:
    assert "forbidden" in server.ask("Pod", plain("vision"), MEMBER)


def test_a_member_queues_jobs_which_controllers_make_into_more(server: Server, rendered: Render) -> None:
    held = rendered(GPU_JOB)
    held["spec"]["suspend"] = True
    assert server.ask("Job", job(), MEMBER) == ""
    assert server.ask("JobSet", held, MEMBER) == ""
    assert "Kueue does not manage" in server.ask("JobSet", rendered(GPU_JOB), MEMBER)

    child = job(labels={}, ownerReferences=[CONTROLLER], suspend=False)
    child["spec"]["template"]["metadata"] = {"labels": PODSET}
    assert server.ask("Job", child, JOBSET_CONTROLLER) == ""


def test_a_part_of_an_admitted_job_grows_by_its_controller_alone(server: Server) -> None:
    """Kueue has counted the JobSet, and would not count what a member adds to one of its Jobs."""
    part = job(labels={}, ownerReferences=[CONTROLLER], suspend=False)
    # Its owner is made up, so the garbage collector deletes it: it stays as long as it has a finalizer.
    part["metadata"] |= {"name": "part", "finalizers": ["example.com/kept"]}
    part["spec"] |= {"completionMode": "Indexed", "parallelism": 2, "completions": 2}
    assert server.ask("Job", part, JOBSET_CONTROLLER, keep=True) == ""
    more = {"spec": {"parallelism": 3, "completions": 3}}

    assert "only its controller may change" in server.change("Job", part, more, MEMBER)  # readable: deployed as it is
    assert server.change("Job", part, more, JOBSET_CONTROLLER) == ""
    note = {"metadata": {"annotations": {"note": "mine"}}}
    assert "only its controller may change" in server.change("Job", part, note, MEMBER)  # readable: deployed as it is
    server.delete("Job", part)


def wait_for_rights(server: Server, who: dict[str, str]) -> None:
    """The API server reads a new binding a moment after it has taken it."""
    deadline = time.monotonic() + 10
    while "cannot create resource" in server.ask("Job", job(), who):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_an_account_of_another_namespace_is_no_controller(server: Server) -> None:
    for account in ("nlp:training", "tools:workflows"):
        assert server.ask("ClusterRoleBinding", administrator(account), keep=True) == ""
        who = {"Impersonate-User": f"system:serviceaccount:{account}"}
        wait_for_rights(server, who)

        assert "Kueue does not manage" in server.ask("Job", job(labels={}, suspend=False), who)
        assert "must have no controller" in server.ask("Job", job(ownerReferences=[CONTROLLER]), who)
        assert server.ask("Job", job(), who) == ""


def test_a_job_that_waits_is_started_by_kueue_alone(server: Server) -> None:
    waiting = job()
    assert server.ask("Job", waiting, MEMBER, keep=True) == ""
    start = {"spec": {"suspend": False}}

    assert "only Kueue may start a job" in server.change("Job", waiting, start, MEMBER)
    assert server.change("Job", waiting, start, KUEUE) == ""
    unqueued = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}}
    assert "only Kueue may start a job" in server.change("Job", waiting, unqueued, MEMBER)
    adopted = {"metadata": {"ownerReferences": [CONTROLLER]}}
    assert "must have no controller" in server.change("Job", waiting, adopted, MEMBER)
    assert server.change("Job", waiting, {"metadata": {"annotations": {"note": "mine"}}}, MEMBER) == ""
    server.delete("Job", waiting)


@pytest.mark.parametrize(("value", "let_in"), [(1000, True), (1001, False)])
def test_a_pods_priority_is_at_most_the_environments_highest(server: Server, value: int, let_in: bool) -> None:
    priority_class = {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": f"of-{value}"}, "value": value,
    }  # fmt: skip
    assert server.ask("PriorityClass", priority_class, keep=True) == ""
    pod = plain("nlp", priorityClassName=f"of-{value}")
    deadline = time.monotonic() + 10
    while "no PriorityClass" in (refusal := server.ask("Pod", pod, JOB_CONTROLLER)):
        assert time.monotonic() < deadline
        time.sleep(0.1)

    assert (refusal == "") is let_in
    assert let_in or "not have a priority above 1000" in refusal
    server.delete("PriorityClass", priority_class)


def test_a_finalizer_that_is_there_may_stay_or_go(server: Server) -> None:
    """An administrator frees an object of a controller that is gone."""
    kept = job(name="kept", finalizers=["example.com/kept"])
    assert server.ask("Job", kept, JOBSET_CONTROLLER, keep=True) == ""

    assert server.change("Job", kept, {"metadata": {"annotations": {"note": "mine"}}}, MEMBER) == ""
    more = {"metadata": {"finalizers": ["example.com/kept", "example.com/own"]}}
    assert "only controllers may add finalizers" in server.change("Job", kept, more, MEMBER)
    assert server.change("Job", kept, {"metadata": {"finalizers": []}}, MEMBER) == ""
    server.delete("Job", kept)


def test_pods_of_finished_jobs_are_counted(server: Server) -> None:
    pod = plain("nlp")
    pod["metadata"]["name"] = "finished"
    assert server.ask("Pod", pod, JOB_CONTROLLER, keep=True) == ""
    (before,) = server.read("ResourceQuota", "nlp")
    server.finish(pod)
    deadline = time.monotonic() + 30
    while (used := server.read("ResourceQuota", "nlp")[0]["status"]["used"])["pods"] == before["status"]["used"][
        "pods"
    ]:
        assert time.monotonic() < deadline, "the quota is not counted"
        time.sleep(0.2)

    assert used["count/pods"] == before["status"]["used"]["count/pods"] == "1"
    server.delete("Pod", pod)


def test_a_pod_that_names_no_cpu_is_counted_as_nothing(server: Server) -> None:
    pod = plain("vision")
    assert server.ask("Pod", pod, JOB_CONTROLLER, keep=True) == ""
    server.delete("Pod", pod)


def test_a_pod_over_the_quota_is_refused(server: Server, plans: dict[str, PlannedStack]) -> None:
    (quota,) = (
        resource.inputs["spec"]["hard"]
        for resource in plans["prod-nlp"].resources
        if resource.inputs.get("kind") == "ResourceQuota" and resource.name.startswith("share-us-west4")
    )
    chips = int(quota["requests.google.com/tpu"])
    assert chips > 0

    for requested, refused in ((chips, False), (chips + 1, True)):
        pod = plain(container={"resources": {"limits": {"google.com/tpu": str(requested)}}}, labels=PODSET)
        refusal = server.ask("Pod", pod, JOB_CONTROLLER)
        assert ("exceeded quota: team, requested: requests.google.com/tpu=" in refusal) is refused, refusal
    much = plain(container={"resources": {"requests": {"cpu": str(int(quota["requests.cpu"]) + 1)}}})
    assert "exceeded quota: team" in server.ask("Pod", much, JOB_CONTROLLER)
    outward = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "nlp"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }  # fmt: skip
    assert "exceeded quota: team, requested: services.loadbalancers=1" in server.ask("Service", outward)


@pytest.mark.parametrize("of_filestore", ["standard-rwx", "enterprise-multishare-rwx"])
def test_a_team_claims_nothing_of_filestore_but_by_the_classes_that_are_counted(
    server: Server, of_filestore: str
) -> None:
    def claim(name: str) -> str:
        spec = {
            "storageClassName": name, "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}},
        }  # fmt: skip
        metadata = {"name": "claim", "namespace": "nlp"}
        return server.ask(
            "PersistentVolumeClaim",
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec},
        )

    assert f"exceeded quota: team, requested: {of_filestore}.storageclass.storage.k8s.io/requests" in claim(
        of_filestore
    )
    assert claim("standard-rwo") == ""
