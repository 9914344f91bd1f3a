"""The ValidatingAdmissionPolicies of a cluster, as plain data: jobs wait in queues, and pods reach what they may.

Policies apply in namespaces with a team's label. They refuse what roles allow, and grant nothing. Kubernetes evaluates
them itself, so no webhook can be down.

Kueue has to hold each Job or JobSet that a person creates. Kueue's webhook labels and suspends such jobs before these
policies see them. It skips an object whose controller is a job of Kueue's, which upstream calls out of scope, and a job
that was started by hand.

Pods are held to Pod Security's baseline, except for what GPUDirect needs if a team has it: Pod Security knows no
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
from training_platform.config.expansion import CLASS_LABEL, SYSTEM_TAINT
from training_platform.resources.gpu_direct import DEVICES_ANNOTATION, NodeAccess, access
from training_platform.resources.kueue import PRIORITY_LABEL, QUEUE_LABEL, RUN_LABEL
from training_platform.resources.scope import MANAGED_BY, SERVICE_ACCOUNT, TEAM_LABEL

API_VERSION = "admissionregistration.k8s.io/v1"
ALLOW_LABEL = (
    f"{MANAGED_BY}/allow-"  # and tcpx, tcpxo, rdma or host-network: what a team's namespace may use beyond baseline
)
HOST_NETWORK = "host-network"
# On a namespace: the most seconds that its jobs may run, by Kueue's label on them.
MAX_RUN_SECONDS = f"{MANAGED_BY}/max-run-seconds"
# Namespaces of the controllers that create a job's parts: Kubernetes' own, Kueue's, JobSet's and operators'. No team
# can have a namespace of these names. A service account of any other namespace is trusted no more than members are.
CONTROLLERS = ("kube-system", "kueue-system", "jobset-system", "kuberay-system", "kubeflow-system", "lws-system")
_ACCOUNTS = [f"system:serviceaccount:{namespace}:" for namespace in CONTROLLERS]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A policy's name and spec; ``validations`` maps each message to CEL that has to be true."""

    name: str
    rules: Sequence[tuple[str, str, Sequence[str], Sequence[str]]]  # group, version, resources, operations
    validations: Mapping[str, str]
    variables: Mapping[str, str] | None = None
    conditions: Sequence[Mapping[str, str]] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The spec of a ValidatingAdmissionPolicy, which refuses a request that it cannot evaluate."""
        rules = [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "resources": list(resources),
                "operations": list(operations),
            }
            for group, version, resources, operations in self.rules
        ]
        spec: dict[str, Any] = {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]},
                "resourceRules": rules,
            },
        }
        if self.conditions:
            spec["matchConditions"] = [dict(condition) for condition in self.conditions]
        if self.variables:
            spec["variables"] = [{"name": name, "expression": cel} for name, cel in self.variables.items()]
        spec["validations"] = [{"expression": cel, "message": message} for message, cel in self.validations.items()]
        return spec

    @property
    def binding(self) -> dict[str, Any]:
        """The spec of its ValidatingAdmissionPolicyBinding."""
        return {"policyName": self.name, "validationActions": ["Deny", "Audit"]}


def literal(value: str | Sequence[str]) -> str:
    """Return a string or a list of strings as CEL, which takes JSON's escapes."""
    return json.dumps(value if isinstance(value, str) else list(value))


def allowed(exception: str) -> str:
    """Return CEL that is true if the namespace has an exception from baseline, such as ``host-network``."""
    return f"{literal(ALLOW_LABEL + exception.lower())} in namespaceObject.metadata.labels"


# The rules for people apply to everybody but the accounts above, and the one user of Kubernetes' own controllers if
# these do not each have an account in kube-system. Other users called system: do nothing in teams' namespaces that the
# rules refuse: kubelets and the scheduler delete pods, and the scheduler annotates claims. So a member that took a
# node's identity, by a pod on the node's network, gains nothing here, nor would somebody without an identity
# (system:anonymous). A member cannot become one of the exempt: roles grant no impersonation, no certificate, and no
# token outside of the team's pods; a Secret with a token is refused; GKE knows people and Google accounts by their
# addresses. tests/kube/test_attempts.py tries these. Source: Kubernetes docs, RBAC, default roles of controllers, and
# kube-controller-manager's --use-service-account-credentials, read 2026-11-23; which of both GKE has is (unverified).
FROM_PEOPLE = {
    "name": "not-by-a-controller",
    "expression": (
        "request.userInfo.username != 'system:kube-controller-manager' && "
        f"!{literal(_ACCOUNTS)}.exists(a, request.userInfo.username.startsWith(a))"
    ),
}


class ExclusiveNodes(NamedTuple):
    """Nodes with some labels; JobSet gives all nodes with the same value of one more label to one Job."""

    labels: Mapping[str, str]
    topology_key: str


class Bounds(NamedTuple):
    """The longest grace period of teams' pods, the environment's priorities, and nodes that jobs do not share."""

    grace_seconds: int = 900
    priorities: Mapping[str, int] = {}
    exclusive: Sequence[ExclusiveNodes] = ()


PODSET_LABEL = "kueue.x-k8s.io/podset"  # Kueue puts it on the pods of a job that it admits
# Holds a pod back until Kueue has counted it and removes the gate; members of teams may not change pods.
POD_GATE = "kueue.x-k8s.io/admission"
# A ClusterPodMonitoring selects pods by labels in all namespaces, and its collector sends them the controller's token.
NAME_LABEL = "app.kubernetes.io/name"
SCRAPED = ("jobset", "kueue")
ACCELERATORS = ("google.com/tpu", "nvidia.com/gpu")
JOB_KEY = "jobset.sigs.k8s.io/job-key"  # JobSet puts it on the pods of each of its Jobs
_JOB_PRIORITY = "jobset.sigs.k8s.io/priority"

_PODS = "r.template.spec.template"
_CREATED = "request.operation == 'CREATE'"
_OWNERS = "{}.metadata.?ownerReferences.orValue([])"
_CONTROLLED = f"{_OWNERS}.exists(o, o.?controller.orValue(false))"


class JobKind(NamedTuple):
    """A kind of job that an operator runs, by its API.

    ``templates`` is CEL that is true if ``{1}`` is true of the template ``t`` of some pods of ``{0}``. ``sizes`` are
    CEL for the fields of ``{0}`` by which Kueue counts pods, except those that nobody can change. A kind that is not
    ``queued`` is one that jobs refer to. ``refuses`` maps further messages to CEL that has to be true.
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
    """Return the ``templates`` of a kind from CEL for the list of all templates of ``{0}``."""
    return f"({lists}).exists(t, {{1}})"


_SIZES = ("{0}.spec.?parallelism", "{0}.spec.?completions")  # of Jobs; JobSet refuses to change its own
_WRITTEN = ("CREATE", "UPDATE")


def queued_jobs(bounds: Bounds) -> Policy:
    """Return the policy on Jobs and JobSets that people create or change."""
    pods = f"(has({{0}}.spec.template) ? [{{0}}.spec.template] : {{0}}.spec.replicatedJobs.map(r, {_PODS}))"
    return Policy(
        name="training-platform-queued-jobs",
        rules=[
            ("batch", "v1", ["jobs"], _WRITTEN),
            ("jobset.x-k8s.io", "v1alpha2", ["jobsets"], _WRITTEN),
        ],
        conditions=[FROM_PEOPLE],
        validations={**_queue_validations(_SIZES), **_template_validations(templates_in(pods), bounds)},
    )


def queued_operator_jobs(kinds: Sequence[JobKind], bounds: Bounds) -> tuple[Policy, ...]:
    """Return a policy on each kind of job that an operator runs, for jobs that people create or change."""
    queued = []
    for kind in kinds:
        in_queue = _queue_validations(kind.sizes, suspends=kind.suspends) if kind.queued else {}
        policy = Policy(
            name=f"training-platform-queued-{kind.resource}",
            rules=[(kind.group, kind.version, [kind.resource], _WRITTEN)],
            conditions=[FROM_PEOPLE],
            validations={**in_queue, **_template_validations(kind.templates, bounds), **kind.refuses},
        )
        queued.append(policy)
    return tuple(queued)


def _queue_validations(sizes: Sequence[str], *, suspends: bool = True) -> dict[str, str]:
    """Return the validations that hold a job in its queue; ``sizes`` are those of a JobKind.

    If a kind cannot be suspended, Kueue gates its pods, one by one, while it has a queue. Kueue compares the job that
    it admitted and not the parts that controllers create for the job, so nobody else changes those: JobSet finds the
    parts that succeeded by their labels, and Kueue counts these no longer. It suspends a job of another size than it
    admitted, but only after the job's controller has created another pod.
    """
    fields = ("spec", "metadata.?labels", "metadata.?annotations", "metadata.?finalizers")
    same_part = " && ".join(f"object.{field} == oldObject.{field}" for field in fields)
    queued = _queued("object")
    suspended = _suspended("object")
    if suspends:
        same_size = " && ".join(f"{size.format('object')} == {size.format('oldObject')}" for size in sizes) or "true"
        held = {
            "a job that runs keeps its size: suspend it first, and Kueue counts it again": (
                f"{_CREATED} || {suspended} || {_suspended('oldObject')} || ({same_size})"
            ),
            "Kueue does not hold this job: it has no queue, or is not suspended": (
                f"!({_CREATED}) || ({suspended} && {queued})"
            ),
            "only Kueue starts a job, and only in its queue": (
                f"{_CREATED} || (({suspended} || !{_suspended('oldObject')}) && (!{_queued('oldObject')} || {queued}))"
            ),
        }
    else:
        held = {"Kueue does not hold this job: it has no queue": queued}
    return {
        "a job that a person makes has no controller: it would pass for a part of an admitted one": (
            f"{_CREATED} ? !{_CONTROLLED.format('object')} : "
            f"{_OWNERS.format('object')} == {_OWNERS.format('oldObject')}"
        ),
        "a part of an admitted job is changed by its controller alone": (  # readable: deployed as it is
            f"{_CREATED} || !{_CONTROLLED.format('oldObject')} || ({same_part})"
        ),
        **held,
        f"{RUN_LABEL} is missing, or above the namespace's limit of a run": (
            f"{_RUN_LIMIT} == '' || ({_RUN}.matches('^[1-9][0-9]{{0,8}}$') && int({_RUN}) <= int({_RUN_LIMIT}))"
        ),
    }


_RUN_LIMIT = f"namespaceObject.metadata.?annotations[?{literal(MAX_RUN_SECONDS)}].orValue('')"
_RUN = f"object.metadata.?labels[?{literal(RUN_LABEL)}].orValue('')"


def _template_validations(templates: str, bounds: Bounds) -> dict[str, str]:
    """Return the validations on templates: no mark of admission, and no pod that outlasts or outranks others.

    ``templates`` are those of a JobKind. Kueue takes a job's priority from its label, or from the class of its pods.
    """
    names = ["", *bounds.priorities]

    def no_template(condition: str) -> str:
        return f"!({templates.format('object', condition)})"

    return {
        f"the label {PODSET_LABEL} on pods is Kueue's to set": _set_by_controllers(PODSET_LABEL, templates),
        f"the label {JOB_KEY} on pods is JobSet's to set": _set_by_controllers(JOB_KEY, templates),
        f"pods end within {bounds.grace_seconds} seconds: shorten terminationGracePeriodSeconds": no_template(
            f"t.?spec.?terminationGracePeriodSeconds.orValue(0) > {bounds.grace_seconds}"
        ),
        f"a job names no priority class but {', '.join(bounds.priorities) or 'none'}": (
            f"object.metadata.?labels[?{literal(PRIORITY_LABEL)}].orValue('') in {literal(names)} && "
            + no_template(f"!(t.?spec.?priorityClassName.orValue('') in {literal(names)})")
        ),
        "pods have no finalizers but those of controllers: they would hold the namespace": no_template(
            "t.?metadata.?finalizers.orValue([]).size() > 0"
        ),
    }


def _set_by_controllers(label: str, templates: str) -> str:
    mark = f"{literal(label)} in t.?metadata.?labels.orValue({{}})"
    marked_before = templates.format("oldObject", mark)
    return f"!({templates.format('object', mark)}) || ({_CREATED} ? false : ({marked_before}))"


def _suspended(which: str) -> str:
    return f"{which}.spec.?suspend.orValue(false)"


def _queued(which: str) -> str:
    return f"({literal(QUEUE_LABEL)} in {which}.metadata.?labels.orValue({{}}))"


def objects(kinds: Sequence[JobKind]) -> Policy:
    """Return the policy on objects that people create: no finalizers, which hold namespaces, and no lasting token."""
    before = f"{_CREATED} ? [] : {_FINALIZERS.format('oldObject')}"
    # The API server adds it to each claim, before policies see the claim, and removes it from no other kind.
    of_claims = "f == 'kubernetes.io/pvc-protection' && request.resource.resource == 'persistentvolumeclaims'"
    return Policy(
        name="training-platform-objects",
        rules=[
            *((group, version, resources, _WRITTEN) for group, version, resources in _job_resources(kinds)),
            ("", "v1", ["configmaps", "secrets", "persistentvolumeclaims"], _WRITTEN),
        ],
        conditions=[FROM_PEOPLE],
        validations={
            "only controllers add finalizers: one that nobody removes holds the object and its namespace": (
                f"{_FINALIZERS.format('object')}.all(f, ({of_claims}) || f in ({before}))"
            ),
            _NO_ACCOUNT_KEY: "object.?type.orValue('') != 'kubernetes.io/service-account-token'",
        },
    )


_NO_ACCOUNT_KEY = (
    "a Secret is no token of a service account: it would be valid for as long as it is there"  # readable: deployed
)


def deletions(kinds: Sequence[JobKind]) -> Policy:
    """Return the policy on deleting jobs: Kueue stops counting a job that is gone, whatever its pods do.

    A Job of batch/v1 leaves its pods behind unless the request says otherwise, as kubectl's does; other kinds do only
    if the request or a finalizer says so. Pods by themselves are deleted by no member: roles grant it to none.
    """
    orphan = f"request.resource.resource == 'jobs' || 'orphan' in {_FINALIZERS.format('oldObject')}"
    return Policy(
        name="training-platform-deletions",
        rules=[(group, version, resources, ["DELETE"]) for group, version, resources in _job_resources(kinds)],
        conditions=[FROM_PEOPLE],
        validations={
            "a job is deleted with its pods: propagationPolicy is Background or Foreground": (
                "request.options.?propagationPolicy.orValue("
                f"request.options.?orphanDependents.orValue({orphan}) ? 'Orphan' : '') != 'Orphan'"
            ),
        },
    )


_FINALIZERS = "{}.metadata.?finalizers.orValue([])"


def _job_resources(kinds: Sequence[JobKind]) -> list[tuple[str, str, list[str]]]:
    return [
        ("batch", "v1", ["jobs"]),
        ("jobset.x-k8s.io", "v1alpha2", ["jobsets"]),
        *((kind.group, kind.version, [kind.resource]) for kind in kinds),
    ]


def accelerator_pods(bounds: Bounds) -> Policy:
    """Return the policy on where pods are placed, those that request chips above all, on priority and grace period.

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
            "affinity is to pods of the own namespace, except JobSet's for a slice: leave out namespaceSelector": (
                f"[object.spec.?affinity.?podAffinity, object.spec.?affinity.?podAntiAffinity].all(a, {_TERMS}.all(t, "
                "t.?namespaces.orValue([]).size() == 0 && "
                f"(!has(t.namespaceSelector) || ({_JOBSETS_TERM} && {_on_exclusive_nodes(bounds.exclusive)}))))"
            ),
            f"the label {NAME_LABEL} of pods is not that of a controller: its metrics are read with a token": (
                f"!(object.metadata.?labels[?{literal(NAME_LABEL)}].orValue('') in {literal(SCRAPED)})"
            ),
            f"pods of teams have no priority above {highest}": f"object.spec.?priority.orValue(0) <= {highest}",
            f"a pod ends within {bounds.grace_seconds} seconds: shorten terminationGracePeriodSeconds": (
                f"object.spec.?terminationGracePeriodSeconds.orValue(0) <= {bounds.grace_seconds}"
            ),
        },
    )


_TERMS = (
    "(a.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]) + "
    "a.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).map(p, p.podAffinityTerm))"
)
# Affinity to pods of another namespace would show whether these exist; anti-affinity would keep them off free nodes.
# For JobSet's exclusive-topology its webhook adds both, with these labels alone. Source: kubernetes-sigs/jobset
# v0.12.0, pkg/webhooks/pod_webhook.go, setExclusiveAffinities, read 2026-11-28.
_JOBSETS_TERM = (
    "t.?labelSelector.?matchLabels.orValue({}).size() == 0 && "
    "t.?labelSelector.?matchExpressions.orValue([]).all(e, "
    f"(e.key == {literal(JOB_KEY)} && e.?values.orValue([]).all(v, "
    f"v == object.metadata.?labels[?{literal(JOB_KEY)}].orValue(''))) || "
    f"(e.key == {literal(_JOB_PRIORITY)} && e.?values.orValue([]) == [string(object.spec.?priority.orValue(0))]))"
)


def _on_exclusive_nodes(nodes: Sequence[ExclusiveNodes]) -> str:
    """Return CEL that is true if a term ``t`` keeps other jobs away only where a whole slice or VM is one job's."""
    places = []
    for labels, topology_key in nodes:
        selected = [f"{_SELECTOR}[?{literal(key)}].orValue('') == {literal(value)}" for key, value in labels.items()]
        places.append(f"({' && '.join([f't.topologyKey == {literal(topology_key)}', *selected])})")
    return f"({' || '.join(places) or 'false'})"


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
_CONTAINERS = " + ".join(f"object.spec.?{name}.orValue([])" for name in _LISTS)


def pod_volumes() -> Policy:
    """Return the policy on volumes and accounts: no volume that names its own server, and only the team's account."""
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
    """Return the policy on the sources of images: ``sources`` are prefixes; the daemons' own images pass as well."""
    daemons = [daemon["image"] for kind in KINDS for daemon in access(kind, images).daemons]
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
    """Return the policy that repeats baseline; ``images`` are those of the daemons, by their names in the catalogue."""
    kinds = {kind: access(kind, images) for kind in KINDS}
    host_paths = []
    for kind, node_access in kinds.items():
        host_paths.append(f"({allowed(kind)} ? {literal(sorted(set(node_access.host_paths)))} : [])")
    security = "c.?securityContext.?{}"
    return Policy(
        name="training-platform-pod-baseline",
        rules=_POD,
        variables={
            "containers": _CONTAINERS,
            "hostPaths": " + ".join(host_paths),
            "gpuDirect": " || ".join(allowed(kind) for kind in KINDS),
            "volumes": "object.spec.?volumes.orValue([])",
            # A daemon starts before the training: as the only container of a pod, it would take every command.
            "others": (
                "object.spec.containers + object.spec.?ephemeralContainers.orValue([]) + "
                f"object.spec.?initContainers.orValue([]).filter(c, !({_any_daemon(kinds)}))"
            ),
        },
        validations={
            "a pod shares no network, processes or memory with its node": (
                f"(!object.spec.?hostNetwork.orValue(false) || {allowed(HOST_NETWORK)}) && "
                "!object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)"
            ),
            "a pod mounts no folder of its node but those of the team's GPUDirect": (
                # Only without a type: others create a missing folder or file, before the node's installer does.
                "variables.volumes.all(v, !has(v.hostPath) || "
                "(v.hostPath.path in variables.hostPaths && v.hostPath.?type.orValue('') == ''))"
            ),
            "folders of the node's kernel are for the daemon of GPUDirect, those of its software for reading": (
                f"variables.others.all(c, c.?volumeMounts.orValue([]).all(m, {_MOUNTS}))"
            ),
            "devices of the node are for the daemon of GPUDirect as the platform renders it": _devices(kinds),
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
    """Return the policy on commands in running pods: none in a daemon, since it sees its node's kernel.

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
_TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"  # and this, a projected volume, to every container
_OWN_ENV = f"c.?env.orValue([]).filter(e, e.name != '{_INDEX}').map(e, [e.name, e.?value.orValue('')])"
_MOUNTED = "c.?volumeMounts.orValue([])"
_PROJECTED = "variables.volumes.exists(v, v.name == m.name && has(v.projected))"
_OWN_MOUNTS = f"{_MOUNTED}.filter(m, m.mountPath != '{_TOKENS}' || !{_PROJECTED}).map(m, [m.name, m.mountPath])"
# Any of these could change a container's program, or send input to it; the API server fills in none of them.
_UNSET = ("envFrom", "lifecycle", "livenessProbe", "readinessProbe", "stdin", "tty", "volumeDevices", "workingDir")


def _any_daemon(kinds: Mapping[str, NodeAccess]) -> str:
    """Return CEL that is true if a container ``c`` is a daemon, exactly as rendered, that its namespace may have."""
    return " || ".join(
        f"({allowed(kind)} && {_is_daemon(daemon, node_access.volumes)})"
        for kind, node_access in kinds.items()
        for daemon in node_access.daemons
    )


def _is_daemon(daemon: Mapping[str, Any], volumes: tuple[dict[str, Any], ...]) -> str:
    """Return CEL that compares all that could change a container's program: its code, its files, its neighbours."""
    env = [[variable["name"], variable["value"]] for variable in daemon["env"]]
    mounts = [[mount["name"], mount["mountPath"]] for mount in daemon["volumeMounts"]]
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
        *(_has_volume(volume) for volume in volumes),
    ]
    return " && ".join(parts)


def _has_volume(volume: Mapping[str, Any]) -> str:
    return f"variables.volumes.exists(v, v.name == {literal(volume['name'])} && {_same_source(volume)})"


def _same_source(volume: Mapping[str, Any]) -> str:
    """Return CEL that is true if a volume ``v`` has the folder or the type of a daemon's."""
    if "hostPath" in volume:
        return f"has(v.hostPath) && v.hostPath.path == {literal(volume['hostPath']['path'])}"
    return "has(v.emptyDir)"


def _devices(kinds: Mapping[str, NodeAccess]) -> str:
    """Return CEL that is true if annotations request only the rendered devices: others of the node would be injected.

    They may do so only on nodes whose GPUs have that kind of GPUDirect, or of a compute class, whose pools may have
    different GPUs; and only for the daemon's own image.
    """
    names = []
    rendered = []
    for kind, node_access in kinds.items():
        for key, devices in node_access.annotations.items():
            names.append(key.removeprefix(DEVICES_ANNOTATION))
            rendered.append(
                f"(k == {literal(key)} && {allowed(kind)} && object.metadata.annotations[k] == {literal(devices)} && "
                f"({literal(CLASS_LABEL)} in {_SELECTOR} || {_SELECTOR}[?{literal(_GPU_LABEL)}].orValue('') in "
                f"{literal(_gpus(kind))}))"
            )
    fits = " || ".join(rendered)
    return (
        f"object.metadata.?annotations.orValue({{}}).all(k, !k.startsWith('devices.gke.io/') || {fits}) && "
        f"variables.others.all(c, !(c.name in {literal(names)}))"
    )


def _gpus(kind: str) -> list[str]:
    """Return the GPUs of machines with a kind of GPUDirect, as GKE labels their nodes."""
    labels = {
        machine.accelerator.gke_label
        for machine in MACHINE_TYPES.values()
        if machine.gpudirect == kind and machine.accelerator
    }
    return sorted(labels)


def _profiles(security: str) -> dict[str, str]:
    """Return baseline's validations on the kernel's profiles: none weaker than the runtime's own."""
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
        "probes and hooks ask the container and no other host": (
            "variables.containers.all(c, [c.?livenessProbe, c.?readinessProbe, c.?startupProbe, "
            "c.?lifecycle.?postStart, c.?lifecycle.?preStop].all(p, "
            "p.?httpGet.?host.orValue('') == '' && p.?tcpSocket.?host.orValue('') == ''))"
        ),
    }


def policies(
    images: Mapping[str, str], bounds: Bounds, sources: Sequence[str] = (), kinds: Sequence[JobKind] = ()
) -> tuple[Policy, ...]:
    """Return every policy; ``images`` are those of the daemons, by their names in the catalogue.

    ``sources`` are prefixes of pods' images; without any, images come from anywhere. ``kinds`` are operators' jobs.
    """
    all_policies = [
        queued_jobs(bounds),
        objects(kinds),
        deletions(kinds),
        accelerator_pods(bounds),
        pod_volumes(),
        pod_baseline(images),
        daemon_exec(),
        *queued_operator_jobs(kinds, bounds),
    ]
    if sources:
        all_policies.append(pod_images(sources, images))
    return tuple(all_policies)
