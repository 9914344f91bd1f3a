"""The ValidatingAdmissionPolicies of a cluster, as plain data: jobs wait in queues, and pods reach what they may.

Policies hold in namespaces with a team's label and refuse more than roles do; nothing here grants anything. Kubernetes
evaluates them itself, so there is no webhook that could be down.

A Job or JobSet that a person makes is one that Kueue holds. Kueue's webhook labels and suspends such jobs before these
policies see them. It leaves alone an object whose controller is a job of Kueue's, which upstream calls out of scope,
and a job that was started by hand.

Pods are held to Pod Security's baseline, less what GPUDirect needs where a team has it: Pod Security knows no
exceptions by path, so a namespace with GPUDirect cannot enforce baseline.

Sources: Kubernetes docs, validating admission policy (stable since 1.30) and Pod Security Standards, baseline, read
2026-11, each policy tried on API server 1.36.3; kubernetes-sigs/kueue v0.19.2, pkg/controller/jobframework
(defaults.go, reconciler.go), read 2026-11-22.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.pools import CLASS_LABEL, SYSTEM_TAINT
from training_platform.resources.gpu_direct import DEVICES_ANNOTATION, NodeAccess, access
from training_platform.resources.kueue import PRIORITY_LABEL, QUEUE_LABEL, RUN_LABEL
from training_platform.resources.scope import MANAGED_BY, SERVICE_ACCOUNT, TEAM_LABEL

API_VERSION = "admissionregistration.k8s.io/v1"
ALLOW_LABEL = (
    f"{MANAGED_BY}/allow-"  # and tcpx, tcpxo, rdma or host-network: what a team's namespace may, beside baseline
)
HOST_NETWORK = "host-network"
# On a namespace: the seconds that its jobs may run at most, by Kueue's label on them.
MAX_RUN_SECONDS = f"{MANAGED_BY}/max-run-seconds"
# Whose controllers make a job's parts: Kubernetes' own, Kueue's, JobSet's, and those of operators. No team can have a
# namespace of these names; a service account of any other, another team's as well, is trusted no more than members are.
CONTROLLERS = ("kube-system", "kueue-system", "jobset-system", "kuberay-system", "kubeflow-system", "lws-system")
_ACCOUNTS = [f"system:serviceaccount:{namespace}:" for namespace in CONTROLLERS]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A policy's name and spec; ``validations`` are message and CEL, all of which have to be true."""

    name: str
    rules: Sequence[tuple[str, str, Sequence[str], Sequence[str]]]  # group, version, resources, operations
    validations: Mapping[str, str]
    variables: Mapping[str, str] | None = None
    conditions: Sequence[Mapping[str, str]] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The spec of a ValidatingAdmissionPolicy; what cannot be evaluated is refused."""
        rules = [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "resources": list(resources),
                "operations": list(operations),
            }
            for group, version, resources, operations in self.rules
        ]
        return {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]},
                "resourceRules": rules,
            },
            **({"matchConditions": [dict(each) for each in self.conditions]} if self.conditions else {}),
            **(
                {"variables": [{"name": k, "expression": v} for k, v in self.variables.items()]}
                if self.variables
                else {}
            ),
            "validations": [{"expression": cel, "message": message} for message, cel in self.validations.items()],
        }

    @property
    def binding(self) -> dict[str, Any]:
        """The spec of its ValidatingAdmissionPolicyBinding."""
        return {"policyName": self.name, "validationActions": ["Deny", "Audit"]}


def literal(value: str | Sequence[str]) -> str:
    """Return a text or a list of texts as CEL, whose strings take JSON's escapes."""
    return json.dumps(value if isinstance(value, str) else list(value))


def allowed(what: str) -> str:
    """Return CEL that is true where the namespace may use something beside baseline."""
    return f"{literal(ALLOW_LABEL + what.lower())} in namespaceObject.metadata.labels"


# Who is held to the rules for people: everybody but the accounts above, and the one user of Kubernetes' own controllers
# where they do not each have an account in kube-system. Other users called system: do nothing in teams' namespaces that
# the rules refuse: kubelets delete pods at once, the scheduler deletes those that it preempts and annotates claims, and
# both drain by evictions, which are another resource. So a member that came by a node's identity, by a pod on the
# node's network, gains nothing here, nor would somebody without an identity (system:anonymous). A member becomes none
# of the exempt: roles grant no impersonation, no certificate, and no token outside of the team's pods; a Secret with a
# token is refused; GKE knows people and Google accounts by their addresses. tests/kube/test_attempts.py tries these.
# Source: Kubernetes docs, RBAC, default roles of controllers, and kube-controller-manager's
# --use-service-account-credentials, read 2026-11-23; which of both GKE has is (unverified).
FROM_PEOPLE = {
    "name": "not-by-a-controller",
    "expression": (
        "request.userInfo.username != 'system:kube-controller-manager' && "
        f"!{literal(_ACCOUNTS)}.exists(a, request.userInfo.username.startsWith(a))"
    ),
}


class Bounds(NamedTuple):
    """How long pods of teams may take to end, and the values of the environment's priorities by name."""

    grace_seconds: int = 900
    priorities: Mapping[str, int] = {}


PODSET_LABEL = "kueue.x-k8s.io/podset"  # Kueue puts it on the pods of a job that it admits
# Holds a pod back until Kueue has counted it and lets it go; nobody else of a team may change pods.
POD_GATE = "kueue.x-k8s.io/admission"
ACCELERATORS = ("google.com/tpu", "nvidia.com/gpu")

_PODS = "r.template.spec.template"
_CREATED = "request.operation == 'CREATE'"
_OWNERS = "{}.metadata.?ownerReferences.orValue([])"
_CONTROLLED = f"{_OWNERS}.exists(o, o.?controller.orValue(false))"


class JobKind(NamedTuple):
    """A kind of job that an operator runs, by its API.

    ``templates`` is CEL that is true where ``{1}`` is true of the template ``t`` of some pods of ``{0}``; ``sizes`` are
    CEL for the fields of ``{0}`` that Kueue counts pods by, but for those that nobody can change. A kind that is not
    ``queued`` is what jobs refer to. ``refuses`` are further messages and CEL, which has to be true.
    """

    group: str
    version: str
    resource: str
    templates: str
    sizes: Sequence[str] = ()
    suspends: bool = True
    queued: bool = True
    refuses: Mapping[str, str] = {}


def templates_in(lists: str) -> str:
    """Return ``templates`` of a kind from CEL for the list of all templates of ``{0}``."""
    return f"({lists}).exists(t, {{1}})"


_SIZES = ("{0}.spec.?parallelism", "{0}.spec.?completions")  # of Jobs; JobSet refuses to change its own
_WRITTEN = ("CREATE", "UPDATE")


def queued_jobs(bounds: Bounds) -> Policy:
    """Return the policy on Jobs and JobSets that people make or change."""
    pods = f"(has({{0}}.spec.template) ? [{{0}}.spec.template] : {{0}}.spec.replicatedJobs.map(r, {_PODS}))"
    return Policy(
        name="training-platform-queued-jobs",
        rules=[
            ("batch", "v1", ["jobs"], _WRITTEN),
            ("jobset.x-k8s.io", "v1alpha2", ["jobsets"], _WRITTEN),
        ],
        conditions=[FROM_PEOPLE],
        validations={**_held(_SIZES), **_templates(templates_in(pods), bounds)},
    )


def queued_operator_jobs(kinds: Sequence[JobKind], bounds: Bounds) -> tuple[Policy, ...]:
    """Return a policy for each kind of job that an operator runs, as people make or change them."""
    return tuple(
        Policy(
            name=f"training-platform-queued-{kind.resource}",
            rules=[(kind.group, kind.version, [kind.resource], _WRITTEN)],
            conditions=[FROM_PEOPLE],
            validations={
                **(_held(kind.sizes, suspends=kind.suspends) if kind.queued else {}),
                **_templates(kind.templates, bounds),
                **kind.refuses,
            },
        )
        for kind in kinds
    )


def _held(sizes: Sequence[str], *, suspends: bool = True) -> dict[str, str]:
    """Return what holds a job in its queue; ``sizes`` are those of a JobKind.

    A kind that cannot be suspended has its pods gated by Kueue, one by one, while it has a queue. Kueue looks at the
    job that it admitted and not at the parts that controllers make of it, so nobody else changes those. It suspends a
    job of another size than it admitted, but only after the job's controller has created a pod more.
    """
    queued, suspended = _queued("object"), _suspended("object")
    same = " && ".join(f"{size.format('object')} == {size.format('oldObject')}" for size in sizes) or "true"
    started = {
        "a job that runs keeps its size: suspend it first, and Kueue counts it again": (
            f"{_CREATED} || {suspended} || {_suspended('oldObject')} || ({same})"
        ),
        "Kueue does not hold this job: it has no queue, or is not suspended": (
            f"!({_CREATED}) || ({suspended} && {queued})"
        ),
        "only Kueue starts a job, and only in its queue": (
            f"{_CREATED} || (({suspended} || !{_suspended('oldObject')}) && (!{_queued('oldObject')} || {queued}))"
        ),
    }
    return {
        "a job that a person makes has no controller: it would pass for a part of an admitted one": (
            f"{_CREATED} ? !{_CONTROLLED.format('object')} : "
            f"{_OWNERS.format('object')} == {_OWNERS.format('oldObject')}"
        ),
        "a part of an admitted job is changed by its controller alone": (
            f"{_CREATED} || !{_CONTROLLED.format('oldObject')} || object.spec == oldObject.spec"
        ),
        **(started if suspends else {"Kueue does not hold this job: it has no queue": queued}),
        f"{RUN_LABEL} is missing, or above the namespace's limit of a run": (
            f"{_RUN_LIMIT} == '' || ({_RUN}.matches('^[1-9][0-9]{{0,8}}$') && int({_RUN}) <= int({_RUN_LIMIT}))"
        ),
    }


_RUN_LIMIT = f"namespaceObject.metadata.?annotations[?{literal(MAX_RUN_SECONDS)}].orValue('')"
_RUN = f"object.metadata.?labels[?{literal(RUN_LABEL)}].orValue('')"


def _templates(templates: str, bounds: Bounds) -> dict[str, str]:
    """Return what refuses pods that say themselves to have been admitted, and those that outlast or outrank others.

    ``templates`` are those of a JobKind. Kueue takes a job's priority from its label, or from the class of its pods.
    """
    mark = f"{literal(PODSET_LABEL)} in t.?metadata.?labels.orValue({{}})"
    marked, before = (templates.format(which, mark) for which in ("object", "oldObject"))
    names = ["", *bounds.priorities]

    def no(template: str) -> str:
        return f"!({templates.format('object', template)})"

    return {
        f"the label {PODSET_LABEL} on pods is Kueue's to set": f"!({marked}) || ({_CREATED} ? false : ({before}))",
        f"pods end within {bounds.grace_seconds} seconds: shorten terminationGracePeriodSeconds": no(
            f"t.?spec.?terminationGracePeriodSeconds.orValue(0) > {bounds.grace_seconds}"
        ),
        f"a job names no priority class but {', '.join(bounds.priorities) or 'none'}": (
            f"object.metadata.?labels[?{literal(PRIORITY_LABEL)}].orValue('') in {literal(names)} && "
            + no(f"!(t.?spec.?priorityClassName.orValue('') in {literal(names)})")
        ),
        "pods have no finalizers but those of controllers: they would hold the namespace": no(
            "t.?metadata.?finalizers.orValue([]).size() > 0"
        ),
    }


def _suspended(which: str) -> str:
    return f"{which}.spec.?suspend.orValue(false)"


def _queued(which: str) -> str:
    return f"({literal(QUEUE_LABEL)} in {which}.metadata.?labels.orValue({{}}))"


def objects(kinds: Sequence[JobKind]) -> Policy:
    """Return the policy on what people keep in a namespace: nothing that holds it, and no lasting token."""
    before = f"{_CREATED} ? [] : {_FINALIZERS.format('oldObject')}"
    return Policy(
        name="training-platform-objects",
        rules=[
            *((group, version, resources, _WRITTEN) for group, version, resources in _jobs(kinds)),
            ("", "v1", ["configmaps", "secrets", "persistentvolumeclaims"], _WRITTEN),
        ],
        conditions=[FROM_PEOPLE],
        validations={
            "only controllers add finalizers: one that nobody removes holds the object and its namespace": (
                f"{_FINALIZERS.format('object')}.all(f, f == 'kubernetes.io/pvc-protection' || f in ({before}))"
            ),
            "a Secret is no token of a service account: it would be valid for as long as it is there": (
                "object.?type.orValue('') != 'kubernetes.io/service-account-token'"
            ),
        },
    )


def deletions(kinds: Sequence[JobKind], bounds: Bounds) -> Policy:
    """Return the policy on deleting jobs and pods: Kueue stops counting a job that is gone, whatever its pods do.

    A Job of batch/v1 leaves its pods behind unless the request says otherwise, as kubectl does; other kinds leave them
    where the request or a finalizer says so.
    """
    orphan = f"request.resource.resource == 'jobs' || 'orphan' in {_FINALIZERS.format('oldObject')}"
    return Policy(
        name="training-platform-deletions",
        rules=[
            *((group, version, resources, ["DELETE"]) for group, version, resources in _jobs(kinds)),
            ("", "v1", ["pods"], ["DELETE"]),
        ],
        conditions=[FROM_PEOPLE],
        validations={
            "a job is deleted with its pods: propagationPolicy is Background or Foreground": (
                "request.options.?propagationPolicy.orValue("
                f"request.options.?orphanDependents.orValue({orphan}) ? 'Orphan' : '') != 'Orphan'"
            ),
            f"pods end within {bounds.grace_seconds} seconds: shorten gracePeriodSeconds": (
                f"request.options.?gracePeriodSeconds.orValue(0) <= {bounds.grace_seconds}"
            ),
        },
    )


_FINALIZERS = "{}.metadata.?finalizers.orValue([])"


def _jobs(kinds: Sequence[JobKind]) -> list[tuple[str, str, list[str]]]:
    return [
        ("batch", "v1", ["jobs"]),
        ("jobset.x-k8s.io", "v1alpha2", ["jobsets"]),
        *((kind.group, kind.version, [kind.resource]) for kind in kinds),
    ]


def accelerator_pods(bounds: Bounds) -> Policy:
    """Return the policy on pods that ask for chips, or would run on nodes that have them; it bounds priority and end.

    A cluster may give every pod a priority class by default, so the value counts and not the name.
    """
    highest = max([0, *bounds.priorities.values()])
    return Policy(
        name="training-platform-accelerator-pods",
        rules=[("", "v1", ["pods"], ["CREATE"])],
        variables={
            "asks": (
                "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, "
                f"{literal(ACCELERATORS)}.exists(k, [c.?resources.?limits.orValue({{}}), "
                "c.?resources.?requests.orValue({})].exists(r, "
                "k in r && quantity(string(r[k])).isGreaterThan(quantity('0')))))"
            ),
        },
        validations={
            "a pod that asks for TPUs or GPUs belongs to a job that Kueue admitted, or is held back by Kueue": (
                f"!variables.asks || {literal(PODSET_LABEL)} in object.metadata.?labels.orValue({{}}) || "
                f"object.spec.?schedulingGates.orValue([]).exists(g, g.name == {literal(POD_GATE)})"
            ),
            "a pod that asks for no TPU or GPU does not tolerate their nodes, nor those of the system": (
                "variables.asks || !object.spec.?tolerations.orValue([]).exists(t, "
                f"t.?key.orValue('') == '' || t.key in {literal([*ACCELERATORS, SYSTEM_TAINT[0]])})"
            ),
            "a pod is placed by the scheduler, not by nodeName": "object.spec.?nodeName.orValue('') == ''",
            f"pods of teams have no priority above {highest}": f"object.spec.?priority.orValue(0) <= {highest}",
            f"a pod ends within {bounds.grace_seconds} seconds: shorten terminationGracePeriodSeconds": (
                f"object.spec.?terminationGracePeriodSeconds.orValue(0) <= {bounds.grace_seconds}"
            ),
        },
    )


KINDS = ("RDMA", "TCPX", "TCPXO")
VOLUMES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "hostPath", "image", "persistentVolumeClaim",
    "projected", "secret",
)  # fmt: skip
BASELINE_CAPABILITIES = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip
SYSCTLS = (
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
)  # fmt: skip
_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_POD = [("", "v1", ["pods"], ["CREATE"]), ("", "v1", ["pods/ephemeralcontainers"], ["UPDATE"])]
_LISTS = ("containers", "initContainers", "ephemeralContainers")
_CONTAINERS = " + ".join(f"object.spec.?{each}.orValue([])" for each in _LISTS)


def pod_volumes() -> Policy:
    """Return the policy on volumes and accounts: no storage that names its server itself, and nobody else's account."""
    return Policy(
        name="training-platform-pod-volumes",
        rules=_POD,
        variables={
            "volumes": "object.spec.?volumes.orValue([])",
        },
        validations={
            f"a volume is one of {', '.join(VOLUMES)}: others, such as nfs, reach what no claim of the team holds": (
                f"variables.volumes.all(v, {' || '.join(f'has(v.{kind})' for kind in VOLUMES)})"
            ),
            "a volume of a driver is Cloud Storage FUSE's": (
                "variables.volumes.all(v, !has(v.csi) || v.csi.driver == 'gcsfuse.csi.storage.gke.io')"
            ),
            f"pods of a team run as {SERVICE_ACCOUNT} or default": (
                f"object.spec.?serviceAccountName.orValue('default') in {literal([SERVICE_ACCOUNT, 'default'])}"
            ),
        },
    )


def pod_images(sources: Sequence[str], images: Mapping[str, str]) -> Policy:
    """Return the policy on where images come from: ``sources`` are beginnings; the daemons have their own."""
    daemons = [each["image"] for kind in KINDS for each in access(kind, images).daemons]
    allowed_here = f"({literal(sources)}.exists(s, {{0}}.startsWith(s)) || {{0}} in {literal(daemons)})"
    return Policy(
        name="training-platform-pod-images",
        rules=_POD,
        validations={
            f"an image comes from {', '.join(sources)}": (
                f"({_CONTAINERS}).all(c, {allowed_here.format('c.image')}) && "
                "object.spec.?volumes.orValue([]).all(v, !has(v.image) || "
                f"{allowed_here.format('v.image.reference')})"
            ),
        },
    )


def pod_baseline(images: Mapping[str, str]) -> Policy:
    """Return the policy that says baseline again; ``images`` are those of the daemons, by names of the catalogue."""
    seen = {kind: access(kind, images) for kind in KINDS}
    security = "c.?securityContext.?{}"
    return Policy(
        name="training-platform-pod-baseline",
        rules=_POD,
        variables={
            "containers": _CONTAINERS,
            "hostPaths": " + ".join(
                f"({allowed(kind)} ? {literal(sorted(set(each.host_paths)))} : [])" for kind, each in seen.items()
            ),
            "gpuDirect": " || ".join(allowed(kind) for kind in KINDS),
            "volumes": "object.spec.?volumes.orValue([])",
            # A daemon starts before the training: one that is all of a pod's containers would take every command.
            "others": (
                "object.spec.containers + object.spec.?ephemeralContainers.orValue([]) + "
                f"object.spec.?initContainers.orValue([]).filter(c, !({_daemons(seen)}))"
            ),
        },
        validations={
            "a pod shares no network, processes or memory with its node": (
                f"(!object.spec.?hostNetwork.orValue(false) || {allowed(HOST_NETWORK)}) && "
                "!object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)"
            ),
            "a pod mounts no folder of its node but those of the team's GPUDirect": (
                # Of no type: others make a folder or file that is missing, before the node's installer does.
                "variables.volumes.all(v, !has(v.hostPath) || "
                "(v.hostPath.path in variables.hostPaths && v.hostPath.?type.orValue('') == ''))"
            ),
            "folders of the node's kernel are for the daemon of GPUDirect, those of its software for reading": (
                f"variables.others.all(c, c.?volumeMounts.orValue([]).all(m, {_MOUNTS}))"
            ),
            "devices of the node are for the daemon of GPUDirect as the platform renders it": _devices(seen),
            "a container is not privileged": (
                f"variables.containers.all(c, !{security.format('privileged')}.orValue(false))"
            ),
            "a container adds no capability beyond baseline": (
                f"variables.others.all(c, {security.format('capabilities')}.?add.orValue([]).all(k, "
                f"k in {literal(BASELINE_CAPABILITIES)} || (k == 'IPC_LOCK' && variables.gpuDirect)))"
            ),
            "a container takes no port of its node": (
                f"{allowed(HOST_NETWORK)} || variables.containers.all(c, "
                "c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))"
            ),
            **_profiles(security),
        },
    )


def daemon_exec() -> Policy:
    """Return the policy on commands in running pods: none in a daemon, which sees its node's kernel.

    The API server fills in the only container of a pod after admission, so a request has to name one, as kubectl does.
    Source: kubernetes v1.36.3, pkg/registry/core/pod/strategy.go, validateContainer, read 2026-11-24.
    """
    daemons = [daemon["name"] for kind in KINDS for daemon in access(kind, _NO_IMAGES).daemons]
    container = "object.?container.orValue('')"
    return Policy(
        name="training-platform-daemon-exec",
        rules=[("", "v1", ["pods/exec", "pods/attach"], ["CONNECT"])],
        validations={
            "nobody runs a command in the daemon of GPUDirect": f"!({container} in {literal(daemons)})",
            "a command names its container, as kubectl exec and attach do": f"{container} != ''",
        },
    )


class _NoImages(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return ""


_NO_IMAGES = _NoImages()
_VOLUME_OF = "variables.volumes.exists(v, v.name == m.name && has(v.hostPath) && {})"
_KERNEL = _VOLUME_OF.format("v.hostPath.path in ['/sys', '/proc/sys']")
_SOFTWARE = _VOLUME_OF.format("v.hostPath.path.startsWith('/home/kubernetes/bin')")
_MOUNTS = f"!{_KERNEL} && (m.?readOnly.orValue(false) || !{_SOFTWARE})"


_GPU_LABEL = "cloud.google.com/gke-accelerator"
_SELECTOR = "object.spec.?nodeSelector.orValue({})"
_INDEX = "JOB_COMPLETION_INDEX"  # Kubernetes gives it to every container of an indexed Job
_TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"  # and this to every container
_OWN_ENV = f"c.?env.orValue([]).filter(e, e.name != '{_INDEX}').map(e, [e.name, e.?value.orValue('')])"
_MOUNTED = "c.?volumeMounts.orValue([])"
_OWN_MOUNTS = f"{_MOUNTED}.filter(m, m.mountPath != '{_TOKENS}').map(m, [m.name, m.mountPath])"
# By any of these a container's program could be another, or be spoken to; the API server fills in none of them.
_UNSET = ("envFrom", "lifecycle", "livenessProbe", "readinessProbe", "stdin", "tty", "volumeDevices", "workingDir")


def _daemons(seen: Mapping[str, NodeAccess]) -> str:
    """Return CEL that is true of a container ``c`` that is a daemon, exactly as it is rendered, where it may be."""
    return " || ".join(
        f"({allowed(kind)} && {_is_daemon(daemon, each.volumes)})"
        for kind, each in seen.items()
        for daemon in each.daemons
    )


def _is_daemon(daemon: Mapping[str, Any], volumes: tuple[dict[str, Any], ...]) -> str:
    """Compare all by which a container's program could be another: its code, its files, and what runs beside it."""
    env = [[each["name"], each["value"]] for each in daemon["env"]]
    mounts = [[each["name"], each["mountPath"]] for each in daemon["volumeMounts"]]
    capabilities = daemon["securityContext"]["capabilities"]["add"]
    probe = daemon.get("startupProbe", {}).get("exec", {}).get("command", [])
    parts = [
        f"c.name == {literal(daemon['name'])}",
        f"c.image == {literal(daemon['image'])}",
        f"c.?restartPolicy.orValue('') == {literal(daemon['restartPolicy'])}",
        f"c.?command.orValue([]) == {literal(daemon['command'])}",
        f"c.?args.orValue([]) == {literal(daemon.get('args', []))}",
        f"{_OWN_ENV} == {json.dumps(env)}",
        f"{_OWN_MOUNTS} == {json.dumps(mounts)}",
        f"{_MOUNTED}.all(m, !has(m.subPath) && !has(m.subPathExpr))",
        f"c.?securityContext.?capabilities.?add.orValue([]) == {literal(capabilities)}",
        f"c.?startupProbe.?exec.?command.orValue([]) == {literal(probe)}",
        *(f"!has(c.{field})" for field in _UNSET),
        "!object.spec.?shareProcessNamespace.orValue(false)",
        *(f"variables.volumes.exists(v, v.name == {literal(each['name'])} && {_is(each)})" for each in volumes),
    ]
    return " && ".join(parts)


def _is(volume: Mapping[str, Any]) -> str:
    if "hostPath" in volume:
        return f"has(v.hostPath) && v.hostPath.path == {literal(volume['hostPath']['path'])}"
    return "has(v.emptyDir)"


def _devices(seen: Mapping[str, NodeAccess]) -> str:
    """Return CEL on annotations: any device of the node would be injected, were they not the rendered ones.

    Only on nodes whose GPUs have that kind of GPUDirect, or of a compute class, whose pools may have different GPUs;
    and only into the daemon's own image.
    """
    ours = {key: (kind, text) for kind, each in seen.items() for key, text in each.annotations.items()}
    fits = " || ".join(
        f"(k == {literal(key)} && {allowed(kind)} && object.metadata.annotations[k] == {literal(text)} && "
        f"({literal(CLASS_LABEL)} in {_SELECTOR} || {_SELECTOR}[?{literal(_GPU_LABEL)}].orValue('') in "
        f"{literal(_gpus(kind))}))"
        for key, (kind, text) in ours.items()
    )
    names = [key.removeprefix(DEVICES_ANNOTATION) for key in ours]
    return (
        f"object.metadata.?annotations.orValue({{}}).all(k, !k.startsWith('devices.gke.io/') || {fits}) && "
        f"variables.others.all(c, !(c.name in {literal(names)}))"
    )


def _gpus(kind: str) -> list[str]:
    """Return the GPUs of machines with a kind of GPUDirect, as GKE labels their nodes."""
    machines = (each for each in MACHINE_TYPES.values() if each.gpudirect == kind and each.accelerator)
    return sorted({each.accelerator.gke_label for each in machines if each.accelerator})


def _profiles(security: str) -> dict[str, str]:
    """Return what baseline says of kernels' profiles: no weaker than the runtime's own."""
    contexts = (
        "([object.spec.?securityContext.orValue({})] + variables.containers.map(c, c.?securityContext.orValue({})))"
    )
    label = "s.?seLinuxOptions"
    return {
        "profiles of seccomp and AppArmor are not taken off": (
            f"{contexts}.all(s, s.?seccompProfile.?type.orValue('') != 'Unconfined' && "
            "s.?appArmorProfile.?type.orValue('') != 'Unconfined') && object.metadata.?annotations.orValue({})"
            ".all(k, !k.startsWith('container.apparmor.security.beta.kubernetes.io/') || "
            "object.metadata.annotations[k] != 'unconfined')"
        ),
        "labels of SELinux are the runtime's": (
            f"{contexts}.all(s, {label}.?type.orValue('') in {literal(_SELINUX_TYPES)} && "
            f"{label}.?user.orValue('') == '' && {label}.?role.orValue('') == '')"
        ),
        "a container sees the masked /proc, and is no process of its node": (
            f"variables.containers.all(c, {security.format('procMount')}.orValue('Default') == 'Default') && "
            f"{contexts}.all(s, !s.?windowsOptions.?hostProcess.orValue(false))"
        ),
        "sysctls are those that a pod has for itself": (
            f"object.spec.?securityContext.?sysctls.orValue([]).all(s, s.name in {literal(SYSCTLS)})"
        ),
        "probes ask the container and no other host": (
            "variables.containers.all(c, [c.?livenessProbe, c.?readinessProbe, c.?startupProbe].all(p, "
            "p.?httpGet.?host.orValue('') == '' && p.?tcpSocket.?host.orValue('') == ''))"
        ),
    }


def policies(
    images: Mapping[str, str], bounds: Bounds, sources: Sequence[str] = (), kinds: Sequence[JobKind] = ()
) -> tuple[Policy, ...]:
    """Return every policy; ``images`` are those of the daemons, by their names in the catalogue.

    ``sources`` are what pods' images begin with; with none, images come from anywhere. ``kinds`` are operators' jobs.
    """
    return (
        queued_jobs(bounds),
        objects(kinds),
        deletions(kinds, bounds),
        accelerator_pods(bounds),
        pod_volumes(),
        pod_baseline(images),
        daemon_exec(),
        *queued_operator_jobs(kinds, bounds),
        *([pod_images(sources, images)] if sources else []),
    )
