"""What members of a team could try, each refused by a real API server; and the samples' jobs, which are let in."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.kube.conftest import JOBS_ON_GKE, administrator
from tests.kube.server import JOB_CONTROLLER, JOBSET_CONTROLLER, KUEUE, MEMBER, Json, Server
from tests.plans import PlannedStack
from training_platform.catalog import IMAGES
from training_platform.config.pools import SYSTEM_TAINT
from training_platform.resources.admission import API_VERSION, pod_images
from training_platform.resources.gpu_direct import access

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

Render = Callable[[str], Json]
GPU_JOB, TPU_JOB = "jobs/vision/finetune.yaml", "jobs/nlp/pretrain.yaml"
PODSET = {"kueue.x-k8s.io/podset": "slice"}
QUEUED = {"kueue.x-k8s.io/queue-name": "vision"}
CONTROLLER = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "name": "finetune",
    "uid": "1",
    "controller": True,
}
GPU = {"limits": {"nvidia.com/gpu": "1"}}
TPU = {"limits": {"google.com/tpu": "4"}}
TCPXO = access("TCPXO", IMAGES)


def pod_of(manifest: Json, **labels: str) -> Json:
    """Return the first pod of a JobSet as the Job controller makes it, of a job that Kueue has admitted."""
    (replicated,) = manifest["spec"]["replicatedJobs"]
    template = copy.deepcopy(replicated["template"]["spec"]["template"])
    about = {"name": "p", "namespace": manifest["metadata"]["namespace"], "labels": {**PODSET, **labels}}
    about["annotations"] = template.get("metadata", {}).get("annotations", {})
    spec = template["spec"]
    index = {"name": "JOB_COMPLETION_INDEX", "value": "0"}
    for each in (*spec["containers"], *spec.get("initContainers", [])):
        each.setdefault("env", []).append(index)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


def plain(namespace: str = "nlp", **spec: Any) -> Json:
    container = {"name": "a", "image": "example.com/a:1", **spec.pop("container", {})}
    about = {"name": "p", "namespace": namespace, "labels": spec.pop("labels", {})}
    about["annotations"] = spec.pop("annotations", {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"containers": [container], **spec}}


def job(labels: Json | None = None, *, suspend: bool = True, **metadata: Any) -> Json:
    """Return a Job as it is once Kueue's webhook has seen it, unless said otherwise."""
    about = {"name": "j", "namespace": "vision", "labels": QUEUED if labels is None else labels, **metadata}
    template = {"spec": {"containers": [{"name": "a", "image": "example.com/a:1"}], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": {"suspend": suspend, "template": template},
    }  # fmt: skip


@pytest.mark.parametrize("file", JOBS_ON_GKE)
def test_every_sample_and_example_is_let_in_with_its_pods(server: Server, rendered: Render, file: str) -> None:
    held = rendered(file)
    assert server.ask("Pod", pod_of(held), JOB_CONTROLLER) == ""
    held["spec"]["suspend"] = True  # as Kueue's webhook leaves it
    member = MEMBER | {"Impersonate-Group": f"{held['metadata']['namespace']}@example.com"}
    assert server.ask("JobSet", held, member) == ""


def test_a_pod_with_the_daemon_of_tcpxo_is_let_in_as_it_is_rendered(server: Server) -> None:
    assert server.ask("Pod", mega(), JOB_CONTROLLER) == ""
    of_a_class = mega(nodeSelector={"cloud.google.com/compute-class": "best"})
    assert server.ask("Pod", of_a_class, JOB_CONTROLLER) == ""


def mega(**spoiled: Any) -> Json:
    """Return a pod on A3 Mega; fields of its daemon by name, others of the pod's spec."""
    daemon = {**TCPXO.daemons[0], **{key: spoiled.pop(key) for key in list(spoiled) if key in TCPXO.daemons[0]}}
    training = {"volumeMounts": [*TCPXO.mounts, *spoiled.pop("mounts", [])], "resources": GPU}
    spoiled.setdefault("nodeSelector", {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"})
    return plain(
        "vision", container=training, initContainers=[daemon], volumes=list(TCPXO.volumes), labels=PODSET,
        annotations={**TCPXO.annotations, **spoiled.pop("devices", {})}, **spoiled,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        ({"image": "example.com/own:1"}, "folders of the node"),
        ({"command": ["/bin/sh"]}, "folders of the node"),
        (
            {"env": [*TCPXO.daemons[0]["env"], {"name": "LD_PRELOAD", "value": "/own/own.so"}]},
            "folders of the node",
        ),
        ({"shareProcessNamespace": True}, "folders of the node"),
        ({"startupProbe": {"exec": {"command": ["sh", "-c", "own"]}}}, "folders of the node"),
        ({"mounts": [{"name": "sys", "mountPath": "/host"}]}, "folders of the node"),
        ({"mounts": [{"name": "libraries", "mountPath": "/host"}]}, "folders of the node"),
        ({"devices": {"devices.gke.io/container.a": "- path: /dev/sda\n"}}, "devices of the node"),
        ({"devices": {"devices.gke.io/container.tcpxo-daemon": "- path: /dev/sda\n"}}, "devices of the node"),
        ({"devices": {"devices.gke.io/pod": "- path: /dev/sda\n"}}, "devices of the node"),
        ({"nodeSelector": {}}, "devices of the node"),
        ({"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}}, "devices of the node"),
        ({"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}, "devices of the node"),
    ],
)
def test_the_daemons_rights_are_no_other_containers(server: Server, spoiled: Json, why: str) -> None:
    assert why in server.ask("Pod", mega(**spoiled), JOB_CONTROLLER)


def test_a_daemon_is_let_in_only_where_the_team_has_its_flavors(server: Server) -> None:
    pod = mega()
    pod["metadata"]["namespace"] = "nlp"

    assert server.ask("Pod", pod, JOB_CONTROLLER) != ""


ESCAPES: dict[str, Json] = {
    "privileged": {"container": {"securityContext": {"privileged": True}}},
    "capability": {"container": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}},
    "host network": {"hostNetwork": True},
    "host processes": {"hostPID": True},
    "host memory": {"hostIPC": True},
    "host port": {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}},
    "root of the node": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
    "socket of the runtime": {"volumes": [{"name": "v", "hostPath": {"path": "/run/containerd"}}]},
    "no seccomp": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "no AppArmor": {"container": {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}},
    "SELinux": {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}},
    "sysctl": {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
    "other hosts": {"container": {"livenessProbe": {"httpGet": {"host": "169.254.169.254", "port": 80}}}},
}


@pytest.mark.parametrize(
    ("gate", "let_in"), [("kueue.x-k8s.io/admission", True), ("example.com/own", False), (None, False)]
)
def test_a_pod_with_accelerators_of_no_job_is_let_in_at_kueues_gate_alone(
    server: Server, gate: str | None, let_in: bool
) -> None:
    gates = {"schedulingGates": [{"name": gate}]} if gate else {}
    pod = plain("nlp", container={"resources": TPU}, **gates)

    refusal = server.ask("Pod", pod, JOB_CONTROLLER)

    assert (refusal == "") is let_in, refusal


@pytest.mark.parametrize("namespace", ["vision", "nlp"])
@pytest.mark.parametrize("escape", ESCAPES)
def test_a_pod_does_not_get_out_to_its_node(server: Server, namespace: str, escape: str) -> None:
    refusal = server.ask("Pod", plain(namespace, **ESCAPES[escape]), JOB_CONTROLLER)

    assert "ValidatingAdmissionPolicy" in refusal or "PodSecurity" in refusal


def test_pod_security_itself_refuses_where_a_team_needs_nothing_beyond_it(server: Server) -> None:
    assert 'violates PodSecurity "baseline' in server.ask("Pod", plain("nlp", hostPID=True), JOB_CONTROLLER)
    assert "PodSecurity" not in server.ask("Pod", plain("vision", hostPID=True), JOB_CONTROLLER)


@pytest.mark.parametrize("namespace", ["vision", "nlp"])
@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        ({"volumes": [{"name": "v", "nfs": {"server": "10.0.0.2", "path": "/homes"}}]}, "a volume is one of"),
        ({"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": "disk"}}]}, "a volume is one of"),
        ({"volumes": [{"name": "v", "csi": {"driver": "nfs.csi.k8s.io"}}]}, "Cloud Storage FUSE"),
        ({"serviceAccountName": "kueue-controller-manager"}, "run as training or default"),
        ({"priorityClassName": "system-node-critical"}, "no priority above 1000"),
        ({"nodeName": "gpu-node"}, "not by nodeName"),
        ({"container": {"resources": GPU}}, "a job that Kueue admitted"),
        ({"initContainers": [{"name": "i", "image": "i", "resources": GPU}]}, "a job that Kueue admitted"),
        ({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}, "does not tolerate their nodes"),
        ({"tolerations": [{"operator": "Exists"}]}, "does not tolerate their nodes"),
        ({"tolerations": [{"key": SYSTEM_TAINT[0], "operator": "Exists"}]}, "nor those of the system"),
        (
            {"container": {"resources": {"limits": {"nvidia.com/gpu": "0"}}}, "tolerations": [{"operator": "Exists"}]},
            "does not tolerate their nodes",
        ),
    ],
)
def test_a_pod_takes_nothing_that_is_not_its_teams(server: Server, namespace: str, spoiled: Json, why: str) -> None:
    assert why in server.ask("Pod", plain(namespace, **copy.deepcopy(spoiled)), JOB_CONTROLLER)


@pytest.mark.parametrize(
    ("mount", "let_in"),
    [
        ({"subPath": "vision/datasets"}, True),
        ({}, False),
        ({"subPath": "nlp/corpora"}, False),
        ({"subPath": "vision"}, False),
        ({"subPath": "vision-old/datasets"}, False),
        ({"subPathExpr": "vision/$(A)"}, False),
    ],
)
def test_a_team_mounts_its_own_folder_of_a_share_that_others_mount(server: Server, mount: Json, let_in: bool) -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "datasets"}}
    mounted = {"volumeMounts": [{"name": "v", "mountPath": "/data", **mount}]}
    refusal = server.ask("Pod", plain("vision", container=mounted, volumes=[volume]), JOB_CONTROLLER)

    assert ("in the team's folder" in refusal) is not let_in


@pytest.mark.parametrize("namespace", ["vision", "nlp"])
@pytest.mark.parametrize(
    "harmless",
    [
        {},
        {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "persistentVolumeClaim": {"claimName": "data"}}]},
        {"volumes": [{"name": "v", "csi": {"driver": "gcsfuse.csi.storage.gke.io"}}], "serviceAccountName": "training"},
        {"container": {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}},
        {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]},
        {"container": {"resources": "own"}, "labels": PODSET, "tolerations": [{"operator": "Exists"}]},
    ],
)
def test_an_ordinary_pod_is_let_in(server: Server, namespace: str, harmless: Json) -> None:
    if harmless.get("container") == {"resources": "own"}:  # of what the team's quota has
        harmless = {**harmless, "container": {"resources": GPU if namespace == "vision" else TPU}}
    assert server.ask("Pod", plain(namespace, **copy.deepcopy(harmless)), JOB_CONTROLLER) == ""


@pytest.fixture
def from_repositories(server: Server) -> Iterator[None]:
    """Hold images to ``example.com/`` in the namespaces of teams, for one test."""
    policy = pod_images(["example.com/"], IMAGES)
    kinds = {"ValidatingAdmissionPolicy": policy.spec, "ValidatingAdmissionPolicyBinding": policy.binding}
    made: list[Json] = [
        {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": policy.name}, "spec": spec}
        for kind, spec in kinds.items()
    ]
    for each in made:
        assert server.ask(each["kind"], each, keep=True) == ""
    other = plain(container={"image": "docker.io/a:1"})
    deadline = time.monotonic() + 30
    while "an image comes from example.com/" not in server.ask("Pod", other, JOB_CONTROLLER):
        assert time.monotonic() < deadline, "the image is still let in"
        time.sleep(0.2)
    yield
    for each in reversed(made):
        server.delete(each["kind"], each)
    while server.ask("Pod", other, JOB_CONTROLLER):
        time.sleep(0.2)


@pytest.mark.usefixtures("from_repositories")
def test_images_come_from_the_environments_repositories_where_it_says_so(server: Server) -> None:
    for refused in (
        {"container": {"image": "example.com.evil.org/a:1"}},
        {"container": {"image": "a"}},
        {"initContainers": [{"name": "i", "image": "docker.io/a:1"}]},
        {"volumes": [{"name": "v", "image": {"reference": "docker.io/a:1"}}]},
    ):
        assert "an image comes from" in server.ask("Pod", plain(**copy.deepcopy(refused)), JOB_CONTROLLER), refused
    assert server.ask("Pod", plain(), JOB_CONTROLLER) == ""
    assert server.ask("Pod", mega(), JOB_CONTROLLER) == ""  # with the daemon of GPUDirect, whose image is Google's


def test_members_make_no_pods_themselves(server: Server) -> None:
    assert "forbidden" in server.ask("Pod", plain("vision"), MEMBER)


def test_a_member_queues_jobs_which_controllers_make_into_more(server: Server, rendered: Render) -> None:
    held = rendered(GPU_JOB)
    held["spec"]["suspend"] = True
    assert server.ask("Job", job(), MEMBER) == ""
    assert server.ask("JobSet", held, MEMBER) == ""
    assert "Kueue does not hold" in server.ask("JobSet", rendered(GPU_JOB), MEMBER)

    child = job(labels={}, ownerReferences=[CONTROLLER], suspend=False)
    child["spec"]["template"]["metadata"] = {"labels": PODSET}
    assert server.ask("Job", child, JOBSET_CONTROLLER) == ""


def test_a_part_of_an_admitted_job_grows_by_its_controller_alone(server: Server) -> None:
    """Kueue has counted the JobSet: what a member adds to a Job of it nobody would count."""
    part = job(labels={}, ownerReferences=[CONTROLLER], suspend=False)
    # Its owner is made up, so the garbage collector deletes it: it stays as long as it has a finalizer.
    part["metadata"] |= {"name": "part", "finalizers": ["example.com/kept"]}
    part["spec"] |= {"completionMode": "Indexed", "parallelism": 2, "completions": 2}
    assert server.ask("Job", part, JOBSET_CONTROLLER, keep=True) == ""
    more = {"spec": {"parallelism": 3, "completions": 3}}

    assert "changed by its controller alone" in server.change("Job", part, more, MEMBER)
    assert server.change("Job", part, more, JOBSET_CONTROLLER) == ""
    assert server.change("Job", part, {"metadata": {"annotations": {"note": "mine"}}}, MEMBER) == ""
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

        assert "Kueue does not hold" in server.ask("Job", job(labels={}, suspend=False), who)
        assert "has no controller" in server.ask("Job", job(ownerReferences=[CONTROLLER]), who)
        assert server.ask("Job", job(), who) == ""


def test_a_job_that_waits_is_started_by_kueue_alone(server: Server) -> None:
    waiting = job()
    assert server.ask("Job", waiting, MEMBER, keep=True) == ""
    start = {"spec": {"suspend": False}}

    assert "only Kueue starts a job" in server.change("Job", waiting, start, MEMBER)
    assert server.change("Job", waiting, start, KUEUE) == ""
    unqueued = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}}
    assert "only Kueue starts a job" in server.change("Job", waiting, unqueued, MEMBER)
    adopted = {"metadata": {"ownerReferences": [CONTROLLER]}}
    assert "has no controller" in server.change("Job", waiting, adopted, MEMBER)
    assert server.change("Job", waiting, {"metadata": {"annotations": {"note": "mine"}}}, MEMBER) == ""
    server.delete("Job", waiting)


def templated(**fields: Json) -> Json:
    """Return a Job with fields of its pods' template: ``metadata``, ``spec``."""
    made = job()
    for field, value in fields.items():
        made["spec"]["template"].setdefault(field, {}).update(value)
    return made


@pytest.mark.parametrize(
    "attempt",
    [
        templated(spec={"terminationGracePeriodSeconds": 900}),
        templated(spec={"priorityClassName": "high"}),
        job(labels={**QUEUED, "kueue.x-k8s.io/priority-class": "high"}),
    ],
)
def test_a_members_job_has_the_environments_time_and_priorities(server: Server, attempt: Json) -> None:
    assert server.ask("Job", attempt, MEMBER) == ""


@pytest.mark.parametrize(("seconds", "let_in"), [(900, True), (901, False), (31_536_000, False)])
def test_a_pod_ends_within_the_environments_time(server: Server, seconds: int, let_in: bool) -> None:
    refusal = server.ask("Pod", plain("nlp", terminationGracePeriodSeconds=seconds), JOB_CONTROLLER)

    assert (refusal == "") is let_in
    assert let_in or "a pod ends within 900 seconds" in refusal


@pytest.mark.parametrize(("value", "let_in"), [(1000, True), (1001, False)])
def test_a_pods_priority_is_at_most_the_environments_highest(server: Server, value: int, let_in: bool) -> None:
    given = {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": f"of-{value}"}, "value": value,
    }  # fmt: skip
    assert server.ask("PriorityClass", given, keep=True) == ""
    pod = plain("nlp", priorityClassName=f"of-{value}")
    deadline = time.monotonic() + 10
    while "no PriorityClass" in (refusal := server.ask("Pod", pod, JOB_CONTROLLER)):
        assert time.monotonic() < deadline
        time.sleep(0.1)

    assert (refusal == "") is let_in
    assert let_in or "no priority above 1000" in refusal
    server.delete("PriorityClass", given)


def secret(**fields: Any) -> Json:
    about = {"name": "s", "namespace": "vision", **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, **fields}


TOKEN = secret(
    type="kubernetes.io/service-account-token",
    metadata={"annotations": {"kubernetes.io/service-account.name": "training"}},
)


def test_a_controller_keeps_tokens_and_a_member_other_secrets(server: Server) -> None:
    assert server.ask("Secret", secret(type="Opaque"), MEMBER) == ""
    manager = {"Impersonate-User": "system:kube-controller-manager", "Impersonate-Group": "system:masters"}
    assert server.ask("Secret", TOKEN, manager) == ""


def test_a_finalizer_that_is_there_may_stay_or_go(server: Server) -> None:
    """An administrator frees an object of a controller that is gone."""
    kept = job(name="kept", finalizers=["example.com/kept"])
    assert server.ask("Job", kept, JOBSET_CONTROLLER, keep=True) == ""

    assert server.change("Job", kept, {"metadata": {"annotations": {"note": "mine"}}}, MEMBER) == ""
    more = {"metadata": {"finalizers": ["example.com/kept", "example.com/own"]}}
    assert "only controllers add finalizers" in server.change("Job", kept, more, MEMBER)
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


def test_nobody_runs_commands_in_a_daemon(server: Server) -> None:
    pod = mega()
    assert server.ask("Pod", pod, JOB_CONTROLLER, keep=True) == ""

    assert "nobody runs a command in the daemon" in server.run(pod, "tcpxo-daemon", MEMBER)
    assert "nobody runs a command" not in server.run(pod, "a", MEMBER)  # it has no node to run on here
    server.delete("Pod", pod)


def test_a_pod_that_names_no_cpu_is_counted_as_nothing(server: Server) -> None:
    pod = plain("vision")
    assert server.ask("Pod", pod, JOB_CONTROLLER, keep=True) == ""
    server.delete("Pod", pod)


def test_a_pod_over_the_quota_is_refused(server: Server, plans: dict[str, PlannedStack]) -> None:
    (quota,) = (
        each.inputs["spec"]["hard"]
        for each in plans["prod-nlp"].resources
        if each.inputs.get("kind") == "ResourceQuota" and each.name.startswith("share-us-west4")
    )
    chips = int(quota["requests.google.com/tpu"])
    assert chips > 0

    for asked, refused in ((chips, False), (chips + 1, True)):
        pod = plain(container={"resources": {"limits": {"google.com/tpu": str(asked)}}}, labels=PODSET)
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
