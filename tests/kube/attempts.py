"""The attacks of a member of a team, by what each would gain: the request, and the policy that has to refuse it.

Team vision tries, and team nlp is in the same cluster. Those in the list of `training-platform verify`, which asks the
same of a project, are among them. Attacks that want Kueue's or an operator's controllers at work are in
test_admitted_jobs.py and test_operators.py, against the same policies.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple, Protocol

from tests.kube.bodies import (
    CONTROLLER,
    GPU,
    PODSET,
    QUEUED,
    TCPX,
    TCPXO,
    TOKEN,
    TPU,
    claim,
    job,
    jobset,
    mega,
    mounted,
    named,
    plain,
    secret,
    sized,
    templated,
    with_daemon,
)
from tests.kube.server import JOB_CONTROLLER, JOBSET_CONTROLLER, MEMBER, Json
from training_platform.config.expansion import SYSTEM_TAINT
from training_platform.parts.verify.tenancy_probes import ProbeCommand, Write, commands, rights, writes
from training_platform.resources.controllers import JOBSET, KUEUE
from training_platform.resources.gpu_direct import NodeAccess
from training_platform.resources.pod_admission import CONFINED

ROLES = "roles"
QUOTA = "quota"
POD_SECURITY = "PodSecurity"
JOBS, DELETIONS, OBJECTS, PLACES, VOLUMES, BASELINE = (
    f"training-platform-{name}"
    for name in (
        "queued-jobs",
        "deletions",
        "objects",
        "accelerator-pods",
        "pod-volumes",
        "pod-baseline",
    )
)
YEAR = 31_536_000
OF_TINY = {**QUEUED, "jobset.sigs.k8s.io/replicatedjob-name": "tiny"}
UNQUEUED: Json = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}}
NOTEBOOK = {"Impersonate-User": "system:serviceaccount:jupyterhub:default"}
PLACES_OF = {"own": "vision", "other": "nlp"}
RIGHTS = rights()


_METADATA_SERVER = {"host": "169.254.169.254", "port": 80}
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
    "unmasked /proc": {"container": {"securityContext": {"procMount": "Unmasked"}}, "hostUsers": False},
    "SELinux": {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}},
    "sysctl": {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
    "other hosts": {"container": {"livenessProbe": {"httpGet": _METADATA_SERVER}}},
    "other hosts at the start": {"container": {"lifecycle": {"postStart": {"httpGet": _METADATA_SERVER}}}},
    "other hosts at the end": {"container": {"lifecycle": {"preStop": {"tcpSocket": _METADATA_SERVER}}}},
}
_FILTERED = {"seccompProfile": {"type": "RuntimeDefault"}}
UNCONFINED: dict[str, Json] = {
    "run without a filter of system calls in a confined team": {
        "container": {"securityContext": {"allowPrivilegeEscalation": False}}
    },
    "gain rights by setuid programs in a confined team": {"securityContext": _FILTERED},
    "run beside a container with a filter in a confined team": {
        "container": {"securityContext": CONFINED},
        "initContainers": [{"name": "own", "image": "example.com/a:1"}],
    },
}
OF_POD_SECURITY = [way for way in ESCAPES if way != "unmasked /proc"]
"""Those that Pod Security `baseline` refuses; an unmasked /proc it allows to pods in a user namespace of their own."""


class Cluster(Protocol):
    """A cluster that attempts run against: a real API server, or only the policies."""

    def ask(self, kind: str, obj: Json, who: dict[str, str] | None = None, *, keep: bool = False) -> str: ...

    def change(self, kind: str, obj: Json, patch: Json, who: dict[str, str]) -> str: ...

    def end(self, kind: str, obj: Json, options: Json, who: dict[str, str]) -> str: ...

    def may(self, verb: str, resource: str, namespace: str, who: dict[str, str]) -> bool: ...

    def run(self, pod: Json, container: str, who: dict[str, str], *, attach: bool = False) -> str: ...

    def delete(self, kind: str, obj: Json) -> None: ...


class Attempt(NamedTuple):
    """One way to try, what stops it, and the attempt: it returns the refusal, or "" if it succeeds.

    ``stopped_by`` is a policy's name, or what else refuses; ``says`` is of the refusal.
    """

    way: str
    stopped_by: str
    attempt: Callable[[Cluster], str]
    says: str = ""


def right(verb: str, resource: str, namespace: str = "nlp", who: Mapping[str, str] = MEMBER) -> Attempt:
    """Try something that takes a right of Kubernetes; without a namespace it is tried in all of them."""

    def attempt(server: Cluster) -> str:
        return "" if server.may(verb, resource, namespace, dict(who)) else "no role grants it"

    place = f"in {namespace}" if namespace else "in all namespaces"
    return Attempt(f"{verb} {resource} {place} as {who['Impersonate-User']}", ROLES, attempt)


def pod(way: str, says: str, stopped_by: str, *, namespace: str = "vision", **spec: Any) -> Attempt:
    """Try a pod of a Job."""

    def attempt(server: Cluster) -> str:
        return server.ask("Pod", plain(namespace, **copy.deepcopy(spec)), JOB_CONTROLLER)

    return Attempt(way, stopped_by, attempt, says)


def member(way: str, kind: str, obj: Json, says: str, stopped_by: str) -> Attempt:
    """Try an object as a member."""
    return Attempt(way, stopped_by, lambda server: server.ask(kind, copy.deepcopy(obj), MEMBER), says)


def on(way: str, obj: Json, attempted: Callable[[Cluster], str], says: str, stopped_by: str) -> Attempt:
    """Try something with an object of controllers, which is deleted afterwards."""

    def attempt(server: Cluster) -> str:
        held = copy.deepcopy(obj)
        assert server.ask(held["kind"], held, JOBSET_CONTROLLER, keep=True) == ""
        try:
            return attempted(server)
        finally:
            server.delete(held["kind"], held)

    return Attempt(way, stopped_by, attempt, says)


def changed(way: str, obj: Json, patch: Json, says: str, stopped_by: str = JOBS) -> Attempt:
    """Try to change a job."""
    return on(way, obj, lambda server: server.change(obj["kind"], obj, patch, MEMBER), says, stopped_by)


def deleted(way: str, obj: Json, options: Json) -> Attempt:
    """Try to delete a job."""
    message = "deleted with its pods"
    return on(way, obj, lambda server: server.end(obj["kind"], obj, options, MEMBER), message, DELETIONS)


def device(path: str) -> Attempt:
    spoiled = mega(devices={"devices.gke.io/container.a": f"- path: {path}\n"})
    return Attempt(
        f"have {path} injected", BASELINE, lambda server: server.ask("Pod", spoiled, JOB_CONTROLLER), "devices"
    )


POSING = [
    pod(
        f"have the token of {controller.name}'s metrics sent, and forge its series",
        "must not name a controller",
        PLACES,
        labels=dict(controller.pod_labels),
    )
    for controller in (KUEUE, JOBSET)
]


def of_the_list(gain: str) -> list[Attempt]:
    """Return what `verify` tries in a project too: the rights and writes of its list that are about a gain."""
    to_it = RIGHTS.get(gain, ())
    return [
        *(
            right(
                access.verb,
                access.resource,
                PLACES_OF.get(access.namespace, access.namespace),
            )
            for access in to_it
        ),
        *(written(write) for write in writes("vision", "vision") if write.gain == gain),
    ]


def written(write: Write) -> Attempt:
    """Try an object of the list, as a member."""
    return member(write.way, write.body["kind"], write.body, write.says[0], write.policy)


def near(affinity: str, strength: str, **other: Any) -> Json:
    """Return the affinity of a pod by one term; ``strength`` is required or preferred."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": QUEUED}, **other}
    weighted = term if strength == "required" else {"weight": 1, "podAffinityTerm": term}
    return {affinity: {f"{strength}DuringSchedulingIgnoredDuringExecution": [weighted]}}


def _keeping_away() -> Iterator[Attempt]:
    """Yield affinity to, and away from, the pods of another team."""
    foreign_selectors: tuple[dict[str, Any], ...] = ({"namespaces": ["nlp"]}, {"namespaceSelector": {}})
    for affinity, strength, other in product(
        ("podAffinity", "podAntiAffinity"), ("required", "preferred"), foreign_selectors
    ):
        way = f"keep another team's pods away, by {strength} {affinity} with {' and '.join(other)}"
        says = "affinity may name only pods of the pod's own namespace"
        yield pod(way, says, PLACES, affinity=near(affinity, strength, **other))


def in_namespace(body: Json, namespace: str) -> Json:
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


READING = [
    *of_the_list("read another team's data"),
    pod(
        "mount its Filestore instance by address",
        "a volume must be one of",
        VOLUMES,
        volumes=[{"name": "v", "nfs": {"server": "10.0.0.2", "path": "/"}}],
    ),
    pod(
        "mount its disk by name",
        "a volume must be one of",
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
    pod("act as the nodes' account, by their network", "hostNetwork, hostPID", BASELINE, hostNetwork=True),
]
STARVING = [
    *of_the_list("starve another team"),
    member("start a Job past its queue", "Job", job(labels={}), "Kueue does not manage", JOBS),
    member("start a Job that waits", "Job", job(suspend=False), "Kueue does not manage", JOBS),
    changed(
        "start a Job that waits, by a change",
        sized("a1", suspend=True),
        {"spec": {"suspend": False}},
        "only Kueue may start",
    ),
    changed("take a Job out of its queue", sized("a2"), UNQUEUED, "only Kueue may start"),
    changed("enlarge a Job that runs", sized("a3"), {"spec": {"parallelism": 8}}, "keeps its size"),
    changed(
        "enlarge a JobSet that runs",
        {**jobset("a3"), "spec": {**jobset("a3")["spec"], "suspend": False}},
        {"spec": {"replicatedJobs": [{**jobset("a3")["spec"]["replicatedJobs"][0], "replicas": 2}]}},
        "keeps its size",
    ),
    changed(
        "enlarge a part of an admitted job",
        sized("a4", ownerReferences=[CONTROLLER], finalizers=["example.com/kept"]),
        {"spec": {"parallelism": 8}},
        "only its controller may change",  # readable: deployed as it is
    ),
    changed(
        "make a Job a part of an admitted one",
        sized("a5"),
        {"metadata": {"ownerReferences": [CONTROLLER]}},
        "must have no controller",
    ),
    pod("take GPUs without quota", "a job that Kueue admitted", PLACES, container={"resources": GPU}),
    pod("sit on nodes with GPUs", "may tolerate neither", PLACES, tolerations=[{"operator": "Exists"}]),
    *(
        pod(
            f"tolerate {row.get('key', 'everything')}",
            "may tolerate neither",
            PLACES,
            tolerations=[{**row, "operator": "Exists"}],
        )
        for row in ({"key": "nvidia.com/gpu"}, {"key": "google.com/tpu"}, {"key": SYSTEM_TAINT[0]})
    ),
    pod(
        "tolerate everything for no GPUs",
        "may tolerate neither",
        PLACES,
        container={"resources": {"limits": {"nvidia.com/gpu": "0"}}},
        tolerations=[{"operator": "Exists"}],
    ),
    pod("take TPUs without quota", "a job that Kueue admitted", PLACES, container={"resources": TPU}),
    pod(
        "take GPUs without quota before the training",
        "a job that Kueue admitted",
        PLACES,
        initContainers=[{"name": "i", "image": "i", "resources": GPU}],
    ),
    pod(
        "take GPUs at a gate of its own",
        "a job that Kueue admitted",
        PLACES,
        container={"resources": GPU},
        schedulingGates=[{"name": "example.com/own"}],
    ),
    *_keeping_away(),
    pod("choose a node", "the scheduler places pods", PLACES, nodeName="gpu-node"),
    pod(
        "choose a node, as a part of an admitted job",
        "the scheduler places pods",
        PLACES,
        labels=PODSET,
        nodeName="gpu-node",
    ),
    pod(
        "sit on nodes with GPUs, as a part of an admitted job without any",
        "may tolerate neither",
        PLACES,
        labels=PODSET,
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
    ),
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
    *(
        changed(
            f"change the {field} of a part of an admitted job, by which JobSet counts it",
            sized(f"b6-{field}", labels=OF_TINY, ownerReferences=[CONTROLLER], finalizers=["example.com/kept"]),
            {"metadata": {field: value}},
            "only its controller may change",  # readable: deployed as it is
        )
        for field, value in (
            ("labels", {**OF_TINY, "jobset.sigs.k8s.io/replicatedjob-name": "big"}),
            ("annotations", {"jobset.sigs.k8s.io/restart-attempt": "7"}),
            ("finalizers", []),
        )
    ),
    changed(
        "hold a Job that runs by a finalizer of claims, before deleting it",
        sized("b8"),
        {"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}},
        "only controllers may add",
        OBJECTS,
    ),
    member(
        "end 901 seconds after eviction, in a Job", "Job", templated(spec={"terminationGracePeriodSeconds": 901}),
        "within 900 seconds", JOBS,
    ),
    member(
        "end 901 seconds after eviction, in a JobSet", "JobSet", jobset("b7", terminationGracePeriodSeconds=901),
        "within 900 seconds", JOBS,
    ),
    *(
        pod(
            f"end a pod a year after eviction{way}",
            "end within 900",
            PLACES,
            labels=labels,
            terminationGracePeriodSeconds=YEAR,
        )
        for way, labels in (("", {}), (", as a part of an admitted job", PODSET))
    ),
]  # fmt: skip
OUTRANKING = [
    *of_the_list("outrank another team's pods"),
    member(
        "run as system-node-critical, by the class of pods in a JobSet",
        "JobSet",
        jobset("c1", priorityClassName="system-node-critical"),
        "only these priority classes",
        JOBS,
    ),
    *(
        pod(
            f"preempt pods of the system{way}",
            "not have a priority above 1000",
            PLACES,
            labels=labels,
            priorityClassName="system-cluster-critical",
        )
        for way, labels in (("", {}), (", as a part of an admitted job", PODSET))
    ),
]
KERNEL = "folders of the node"
DEVICES = "devices of the node"


def daemon(way: str, says: str = KERNEL, **spoiled: Any) -> Attempt:
    """Try a pod on A3 Mega whose daemon, or what is beside it, is not as rendered."""
    return Attempt(
        way, BASELINE, lambda server: server.ask("Pod", copy.deepcopy(mega(**spoiled)), JOB_CONTROLLER), says
    )


def alone(node: NodeAccess, gpu: str) -> Json:
    """Return a pod whose only container is the daemon, which takes every command that names none."""
    pod = copy.deepcopy(with_daemon(node, gpu))
    pod["spec"]["containers"] = [
        {key: value for key, value in container.items() if key != "restartPolicy"}
        for container in pod["spec"].pop("initContainers")
    ]
    return pod


def other_daemon(way: str, body: Json) -> Attempt:
    return Attempt(way, BASELINE, lambda server: server.ask("Pod", copy.deepcopy(body), JOB_CONTROLLER), KERNEL)


def command(tried: ProbeCommand, who: dict[str, str], *, part: str) -> Attempt:
    """Try a command of the list in a pod that has a daemon, or to attach to it."""

    def run(server: Cluster) -> str:
        return server.run(named(mega(), "b7"), tried.container, who, attach=part == "attach")

    return on(f"{part}: {tried.way}", named(mega(), "b7"), run, tried.says[0], tried.policy)


def spoiled_mounts(**change: str) -> list[Json]:
    """Return the mounts of TCPX's daemon, whose folder of sockets is an emptyDir of the pod."""
    *other_mounts, sockets = TCPX.daemons[0]["volumeMounts"]
    return [*other_mounts, {**sockets, **change}]


EMPTY_DIRS = [{"name": volume["name"], "emptyDir": {}} for volume in TCPXO.volumes]
_ENV = TCPXO.daemons[0]["env"]
_OF_TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"
_RIGHTS = {"capabilities": {"add": ["NET_ADMIN", "NET_BIND_SERVICE", "SYS_ADMIN"]}}
_PROBE = {"exec": {"command": ["sh", "-c", "own"]}}
_GPUS = "cloud.google.com/gke-accelerator"
DAEMONS = [
    other_daemon("be only the daemon of TCPXO", alone(TCPXO, "nvidia-h100-mega-80gb")),
    other_daemon("be only the daemon of TCPX", alone(TCPX, "nvidia-h100-80gb")),
    *(command(stated, MEMBER, part="exec") for stated in commands()),
    # Members may not attach at all, so who may do anything tries that.
    *(command(stated, {}, part="attach") for stated in commands()),
    daemon("run another image as the daemon", image="example.com/own:1"),
    daemon("run another program as the daemon", command=["/bin/sh"]),
    daemon("give the daemon arguments", args=["own"]),
    daemon("load a library into the daemon", env=[*_ENV, {"name": "LD_PRELOAD", "value": "/own/own.so"}]),
    daemon(
        "load a library by a variable's source",
        env=[{"name": "LD_LIBRARY_PATH", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}, *_ENV[1:]],
    ),
    daemon("give the daemon all variables of a ConfigMap", envFrom=[{"configMapRef": {"name": "a"}}]),
    daemon("see the daemon's processes", shareProcessNamespace=True),
    daemon("start the daemon by a probe", startupProbe=_PROBE),
    daemon("check the daemon by a program", livenessProbe=_PROBE),
    daemon("ask the daemon by a program", readinessProbe=_PROBE),
    daemon("run a program at the daemon's start", lifecycle={"postStart": _PROBE}),
    daemon("run the daemon elsewhere", workingDir="/own"),
    daemon("speak to the daemon", stdin=True),
    daemon("give the daemon a capability more", securityContext=_RIGHTS),
    daemon("mount the node's kernel beside the daemon", mounts=[{"name": "sys", "mountPath": "/host"}]),
    daemon("mount the node's software for writing", mounts=[{"name": "libraries", "mountPath": "/host"}]),
    daemon("give the daemon folders of the pod's own", DEVICES, volumes=EMPTY_DIRS),
    daemon(
        "name the daemon's devices for the training",
        DEVICES,
        devices={"devices.gke.io/container.a": "- path: /dev/sda\n"},
    ),
    daemon(
        "give the daemon another device",
        DEVICES,
        devices={"devices.gke.io/container.tcpxo-daemon": "- path: /dev/sda\n"},
    ),
    daemon("give the pod a device", DEVICES, devices={"devices.gke.io/pod": "- path: /dev/sda\n"}),
    *(
        daemon(f"have the daemon's devices on {gpu or 'any node'}", DEVICES, nodeSelector={_GPUS: gpu} if gpu else {})
        for gpu in ("", "nvidia-h100-80gb", "nvidia-l4")
    ),
    *(
        other_daemon(f"mount {way} over the daemon's files", with_daemon(TCPX, "nvidia-h100-80gb", volumeMounts=mounts))
        for way, mounts in (
            (
                "the node's kernel, as a token,",
                [*TCPX.daemons[0]["volumeMounts"], {"name": "sys", "mountPath": _OF_TOKENS}],
            ),
            ("the pod's folder by a subPath", spoiled_mounts(mountPath="/", subPath="run/tcpx")),
            ("the pod's folder by a subPathExpr", spoiled_mounts(mountPath="/run/", subPathExpr="tcpx")),
            ("the pod's folder", spoiled_mounts(mountPath="/tcpgpudmarxd")),
            ("a part of the pod's folder", spoiled_mounts(subPath="own")),
        )
    ),
    Attempt(
        "run the daemon in another team's namespace",
        POD_SECURITY,
        lambda server: server.ask("Pod", in_namespace(mega(), "nlp"), JOB_CONTROLLER),
        "",
    ),
    pod(
        "make a folder of the node a file",
        "may only be a folder of the team's GPUDirect",
        BASELINE,
        volumes=[{"name": "v", "hostPath": {**TCPXO.volumes[0]["hostPath"], "type": "FileOrCreate"}}],
    ),
    pod(
        "mount a folder of the node above an allowed one",
        "may only be a folder of the team's GPUDirect",
        BASELINE,
        volumes=[{"name": "v", "hostPath": {"path": "/home/kubernetes/bin"}}],
    ),
    pod(
        "mount a folder of the node below an allowed one",
        "may only be a folder of the team's GPUDirect",
        BASELINE,
        volumes=[{"name": "v", "hostPath": {"path": "/proc/sys/kernel"}}],
    ),
]


def _in_templates() -> Iterator[Attempt]:
    """Yield jobs whose pods would be refused."""
    privileged = {"name": "a", "image": "example.com/a:1", "securityContext": {"privileged": True}}
    spoiled: dict[str, dict[str, Any]] = {
        "hostNetwork, hostPID and hostIPC may not be set": {"hostPID": True},
        "a hostPath volume may only be": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
        "pods of a team must run as training or default": {"serviceAccountName": "other"},
        "a container may not be privileged": {"containers": [privileged]},
        "nodeName may not be set": {"nodeName": "a-node"},
        "may tolerate neither": {"tolerations": [{"operator": "Exists"}]},
        "affinity may name only pods of the pod's own namespace": {
            "affinity": near("podAffinity", "required", namespaceSelector={})
        },
    }
    for says, spec in spoiled.items():
        yield member(f"{next(iter(spec))} in a Job", "Job", templated(spec=spec), says, JOBS)
        yield member(f"{next(iter(spec))} in a JobSet", "JobSet", jobset("d1", **spec), says, JOBS)


ESCAPING = [
    *of_the_list("escape to a node"),
    *(pod(way, "", BASELINE, **spec) for way, spec in ESCAPES.items()),
    *(pod(f"{way}, in nlp", POD_SECURITY, POD_SECURITY, namespace="nlp", **ESCAPES[way]) for way in OF_POD_SECURITY),
    pod("unmasked /proc, in nlp", "has to be Default", BASELINE, namespace="nlp", **ESCAPES["unmasked /proc"]),
    *(pod(way, "this team", BASELINE, namespace="confined", **spec) for way, spec in UNCONFINED.items()),
    Attempt(
        "run a Job without a filter of system calls in a confined team",
        JOBS,
        lambda server: server.ask("Job", in_namespace(job(), "confined")),
        "this team must have the seccomp profile RuntimeDefault",
    ),
    *_in_templates(),
    *(device(path) for path in ("/dev/sda", "/dev/kvm", "/dev/nvidia0")),
    *DAEMONS,
]
NOTEBOOKS = [
    *of_the_list("take a reserved machine by means of a notebook"),
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
    "block the deletion of the namespace": of_the_list("block the deletion of the namespace"),
    "pose as a controller, which policies do not restrict": [
        *of_the_list("pose as a controller, which policies do not restrict"),
        *POSING,
    ],
    "escape to a node": ESCAPING,
    "take a reserved machine by means of a notebook": NOTEBOOKS,
    "see more of another team's jobs than totals": of_the_list("see more of another team's jobs than totals"),
}
ATTEMPTS = [(gain, attempt) for gain, attempts in GAINS.items() for attempt in attempts]


class Accepted(NamedTuple):
    """What members and controllers do every day, which no policy may refuse."""

    way: str
    kind: str
    body: Json
    who: dict[str, str]


def _ordinary() -> Iterator[Accepted]:
    for namespace, chips in (("vision", GPU), ("nlp", TPU)):
        ordinary: dict[str, Json] = {
            "a plain pod": {},
            "a pod with volumes": {
                "volumes": [
                    {"name": "v", "emptyDir": {}},
                    {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "o", "projected": {"sources": []}},
                ]
            },
            "a pod with a bucket": {
                "volumes": [{"name": "v", "csi": {"driver": "gcsfuse.csi.storage.gke.io"}}],
                "serviceAccountName": "training",
            },
            "a pod with CPUs": {"container": {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}},
            "a pod that waits for its node": {
                "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]
            },
            "a pod of an admitted job": {
                "container": {"resources": chips}, "labels": PODSET, "tolerations": [{"operator": "Exists"}],
            },
            "a pod that Kueue holds": {
                "container": {"resources": chips}, "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
            },
            "a pod that ends in 900 seconds": {"terminationGracePeriodSeconds": 900},
            "a pod with a profile": {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
            "a pod with its own sysctl": {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_wmem", "value": ""}]}},
            "a pod with capabilities": {"container": {"securityContext": {"capabilities": {"add": ["CHOWN"]}}}},
            "a pod beside others of its team": {"affinity": near("podAffinity", "required")},
            "a pod apart from others of its team": {"affinity": near("podAntiAffinity", "preferred")},
            "a pod with a port and a probe": {
                "container": {"ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}}}
            },
        }  # fmt: skip
        for way, spec in ordinary.items():
            yield Accepted(f"{way} in {namespace}", "Pod", plain(namespace, **copy.deepcopy(spec)), JOB_CONTROLLER)


PART = {"name": "j", "namespace": "vision", "ownerReferences": [CONTROLLER]}
MANAGER = {"Impersonate-User": "system:kube-controller-manager", "Impersonate-Group": "system:masters"}
OF_A_CLASS = {"cloud.google.com/compute-class": "best"}
CLAIMED: list[Json] = [{"name": "v", "persistentVolumeClaim": {"claimName": "datasets"}}]
IN_FOLDER = plain("vision", container=mounted(subPath="datasets"), volumes=CLAIMED)
ACCEPTED = [
    Accepted(
        "a pod of a confined team", "Pod", plain("confined", container={"securityContext": CONFINED}), JOB_CONTROLLER
    ),
    Accepted(
        "a pod of a confined team whose filter is the pod's",
        "Pod",
        plain(
            "confined", securityContext=_FILTERED, container={"securityContext": {"allowPrivilegeEscalation": False}}
        ),
        JOB_CONTROLLER,
    ),
    *_ordinary(),
    Accepted("a pod with the daemon of TCPXO", "Pod", mega(), JOB_CONTROLLER),
    Accepted("a pod with the daemon of TCPX", "Pod", with_daemon(TCPX, "nvidia-h100-80gb"), JOB_CONTROLLER),
    Accepted("a pod with the daemon, of a compute class", "Pod", mega(nodeSelector=OF_A_CLASS), JOB_CONTROLLER),
    Accepted("a pod with the team's folder", "Pod", IN_FOLDER, JOB_CONTROLLER),
    Accepted("a Job", "Job", job(), MEMBER),
    Accepted("a Job that ends in 900 seconds", "Job", templated(spec={"terminationGracePeriodSeconds": 900}), MEMBER),
    Accepted("a Job of a class", "Job", templated(spec={"priorityClassName": "high"}), MEMBER),
    Accepted("a Job of a priority", "Job", job(labels={**QUEUED, "kueue.x-k8s.io/priority-class": "high"}), MEMBER),
    Accepted("a JobSet", "JobSet", jobset("a"), MEMBER),
    Accepted(
        "a part of an admitted JobSet",
        "Job",
        {**templated(metadata={"labels": PODSET}), "metadata": PART},
        JOBSET_CONTROLLER,
    ),
    Accepted("a Secret", "Secret", secret(type="Opaque"), MEMBER),
    Accepted("a token, by a controller", "Secret", TOKEN, MANAGER),
    Accepted("a claim", "PersistentVolumeClaim", claim(), MEMBER),
    Accepted(
        "a claim as it is seen",
        "PersistentVolumeClaim",
        claim(finalizers=["kubernetes.io/pvc-protection"]),
        MEMBER,
    ),
]
