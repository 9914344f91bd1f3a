"""The admission policies for teams' pods: on which nodes they run, and what they can access on a node.

Pods must meet the baseline of the Pod Security Standards, except for what GPUDirect needs if a team has it. Pod
Security has no exceptions for individual paths, so a namespace with GPUDirect cannot enforce baseline.

Sources: Kubernetes docs, Pod Security Standards, baseline, read 2026-11, each policy tried on API server 1.36.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.expansion import CLASS_LABEL, SYSTEM_TAINT
from training_platform.resources.admission_policy import (
    JOB_KEY,
    PODSET_LABEL,
    Bounds,
    ExclusiveNodes,
    Policy,
    literal,
)
from training_platform.resources.gpu_direct import DEVICES_ANNOTATION, NodeAccess, access
from training_platform.resources.scope import MANAGED_BY, SERVICE_ACCOUNT

# And tcpx, tcpxo, rdma or host-network: what a team's namespace may use beyond baseline.
ALLOW_LABEL = f"{MANAGED_BY}/allow-"
HOST_NETWORK = "host-network"
# What the namespace of a team has whose pods need a filter of system calls.
CONFINED_LABEL = f"{MANAGED_BY}/confined"
CONFINED = {"seccompProfile": {"type": "RuntimeDefault"}, "allowPrivilegeEscalation": False}
"""The security context that containers need in a confined namespace. GKE sets it for all Autopilot pods."""
# Holds a pod back until Kueue has counted it and removes the gate; members of teams may not change pods.
POD_GATE = "kueue.x-k8s.io/admission"
# A ClusterPodMonitoring selects pods by labels in all namespaces, and its collector sends them the controller's token.
NAME_LABEL = "app.kubernetes.io/name"
SCRAPED = ("jobset", "kueue")
ACCELERATORS = ("google.com/tpu", "nvidia.com/gpu")
_JOB_PRIORITY = "jobset.sigs.k8s.io/priority"
GPU_DIRECT_KINDS = ("RDMA", "TCPX", "TCPXO")
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
_CONFINED_ONLY = "pods of this team must have the seccomp profile RuntimeDefault and allowPrivilegeEscalation: false"
_ONLY_DEVICES_OF_DAEMONS = "only the platform's daemon of GPUDirect may use devices of the node"
_POD = [("", "v1", ["pods"], ["CREATE"]), ("", "v1", ["pods/ephemeralcontainers"], ["UPDATE"])]
_GPU_LABEL = "cloud.google.com/gke-accelerator"
_SELECTOR = "object.spec.?nodeSelector.orValue({})"
# Any of these could change a container's program, or send input to it; the API server fills in none of them.
_UNSET = ("envFrom", "lifecycle", "livenessProbe", "readinessProbe", "stdin", "tty", "volumeDevices", "workingDir")
_LISTS = ("containers", "initContainers", "ephemeralContainers")
_SECURITY = "c.?securityContext"
_CONTAINERS = " + ".join(f"object.spec.?{name}.orValue([])" for name in _LISTS)


def accelerator_pods(bounds: Bounds) -> Policy:
    """Return the policy on placement, priority and grace period of pods, mainly of pods that request chips.

    A cluster may give every pod a default priority class, so the priority value is checked and not the name.
    """
    highest = max([0, *bounds.priorities.values()])
    jobsets_term = f"{_IS_JOBSETS_TERM} && {_on_exclusive_nodes(bounds.exclusive)}"
    return Policy(
        name="training-platform-accelerator-pods",
        rules=[("", "v1", ["pods"], ["CREATE"])],
        variables={"asks": _ASKS},
        validations={
            "a pod that requests TPUs or GPUs has to belong to a job that Kueue admitted, or be gated by Kueue": (
                f"!variables.asks || {literal(PODSET_LABEL)} in object.metadata.?labels.orValue({{}}) || "
                f"object.spec.?schedulingGates.orValue([]).exists(g, g.name == {literal(POD_GATE)})"
            ),
            **_placement(jobsets_term),
            f"pods of teams must not have a priority above {highest}": f"object.spec.?priority.orValue(0) <= {highest}",
            f"a pod must end within {bounds.grace_seconds} seconds: shorten terminationGracePeriodSeconds": (
                f"object.spec.?terminationGracePeriodSeconds.orValue(0) <= {bounds.grace_seconds}"
            ),
        },
    )


_ASKS = (
    "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, "
    f"{literal(ACCELERATORS)}.exists(k, [c.?resources.?limits.orValue({{}}), c.?resources.?requests.orValue({{}})]"
    ".exists(r, k in r && quantity(string(r[k])).isGreaterThan(quantity('0')))))"
)


def _placement(other_namespaces: str = "false") -> dict[str, str]:
    """Return the validations on the placement of a pod.

    ``other_namespaces`` is a CEL expression that says whether a pod affinity term ``t`` may name other namespaces.
    """
    terms = (
        "(a.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]) + "
        "a.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).map(p, p.podAffinityTerm))"
    )
    return {
        "a pod that requests no TPU or GPU may tolerate neither their taints nor the taint of system nodes": (
            "variables.asks || !object.spec.?tolerations.orValue([]).exists(t, "
            f"t.?key.orValue('') == '' || t.key in {literal([*ACCELERATORS, SYSTEM_TAINT[0]])})"
        ),
        "nodeName may not be set: the scheduler places pods": "object.spec.?nodeName.orValue('') == ''",
        "affinity may name only pods of the pod's own namespace, except JobSet's: leave out namespaceSelector": (
            f"[object.spec.?affinity.?podAffinity, object.spec.?affinity.?podAntiAffinity].all(a, {terms}.all(t, "
            f"t.?namespaces.orValue([]).size() == 0 && (!has(t.namespaceSelector) || ({other_namespaces}))))"
        ),
        f"the label {NAME_LABEL} of pods must not name a controller, whose metrics are read with a token": (
            f"!(object.metadata.?labels[?{literal(NAME_LABEL)}].orValue('') in {literal(SCRAPED)})"
        ),
    }


# CEL that is true if JobSet has set an affinity term ``t``. Affinity to pods of another namespace would show whether
# these exist, and anti-affinity would keep them off free nodes. For its exclusive-topology, JobSet's webhook adds both,
# with these labels only. Source: kubernetes-sigs/jobset v0.12.0, pkg/webhooks/pod_webhook.go, setExclusiveAffinities,
# read 2026-11-28.
_IS_JOBSETS_TERM = (
    "t.?labelSelector.?matchLabels.orValue({}).size() == 0 && "
    "t.?labelSelector.?matchExpressions.orValue([]).all(e, "
    f"(e.key == {literal(JOB_KEY)} && e.?values.orValue([]).all(v, "
    f"v == object.metadata.?labels[?{literal(JOB_KEY)}].orValue(''))) || "
    f"(e.key == {literal(_JOB_PRIORITY)} && e.?values.orValue([]) == [string(object.spec.?priority.orValue(0))]))"
)


def _on_exclusive_nodes(nodes: Sequence[ExclusiveNodes]) -> str:
    """Return CEL that is true if a pod anti-affinity term ``t`` applies only to nodes that JobSet reserves for one job.

    Such nodes are a whole slice or VM.
    """
    alternatives = []
    for labels, topology_key in nodes:
        conditions = [f"t.topologyKey == {literal(topology_key)}"]
        for key, value in labels.items():
            conditions.append(f"{_SELECTOR}[?{literal(key)}].orValue('') == {literal(value)}")
        alternatives.append(f"({' && '.join(conditions)})")
    return f"({' || '.join(alternatives) or 'false'})"


def allowed(exception: str) -> str:
    """Return CEL that is true if the namespace has an exception from the baseline, such as ``host-network``."""
    return f"{literal(ALLOW_LABEL + exception.lower())} in namespaceObject.metadata.labels"


def pod_volumes() -> Policy:
    """Return the policy on volumes and service accounts of pods.

    It forbids volumes that name their own server, and service accounts other than the team's.
    """
    return Policy(
        name="training-platform-pod-volumes",
        rules=_POD,
        variables={
            "volumes": "object.spec.?volumes.orValue([])",
        },
        validations={
            f"a volume must be one of {', '.join(VOLUMES)}: others, such as nfs, give access to files outside the "
            f"team's "
            f"claims": (f"variables.volumes.all(v, {' || '.join(f'has(v.{kind})' for kind in VOLUMES)})"),
            "the only allowed CSI driver of a volume is Cloud Storage FUSE": (
                "variables.volumes.all(v, !has(v.csi) || v.csi.driver == 'gcsfuse.csi.storage.gke.io')"
            ),
            f"pods of a team must run as {SERVICE_ACCOUNT} or default": (
                f"object.spec.?serviceAccountName.orValue('default') in {literal([SERVICE_ACCOUNT, 'default'])}"
            ),
        },
    )


def pod_images(sources: Sequence[str], images: Mapping[str, str]) -> Policy:
    """Return the policy on the sources of images: only prefixes in ``sources`` and the daemons' images are allowed."""
    daemon_images = [daemon["image"] for kind in GPU_DIRECT_KINDS for daemon in access(kind, images).daemons]

    def is_allowed(image: str) -> str:
        return f"({literal(sources)}.exists(s, {image}.startsWith(s)) || {image} in {literal(daemon_images)})"

    return Policy(
        name="training-platform-pod-images",
        rules=_POD,
        validations={
            f"an image must come from {', '.join(sources)}": (
                f"({_CONTAINERS}).all(c, {is_allowed('c.image')}) && "
                "object.spec.?volumes.orValue([]).all(v, !has(v.image) || "
                f"{is_allowed('v.image.reference')})"
            ),
        },
    )


def pod_baseline(images: Mapping[str, str]) -> Policy:
    """Return the policy that enforces Pod Security's baseline; ``images`` are the daemons' images by catalogue name."""
    accesses = {kind: access(kind, images) for kind in GPU_DIRECT_KINDS}
    host_paths = []
    for kind, node_access in accesses.items():
        host_paths.append(f"({allowed(kind)} ? {literal(sorted(set(node_access.host_paths)))} : [])")
    return Policy(
        name="training-platform-pod-baseline",
        rules=_POD,
        variables={
            "containers": _CONTAINERS,
            "hostPaths": " + ".join(host_paths),
            "gpuDirect": " || ".join(allowed(kind) for kind in GPU_DIRECT_KINDS),
            "volumes": "object.spec.?volumes.orValue([])",
            # A daemon starts before the training: as the only container of a pod, it would take every command.
            "others": (
                "object.spec.containers + object.spec.?ephemeralContainers.orValue([]) + "
                f"object.spec.?initContainers.orValue([]).filter(c, !({_any_daemon(accesses)}))"
            ),
        },
        validations={
            "hostNetwork, hostPID and hostIPC may not be set": (
                f"(!object.spec.?hostNetwork.orValue(false) || {allowed(HOST_NETWORK)}) && "
                "!object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)"
            ),
            "a hostPath volume may only be a folder of the team's GPUDirect, without a type": (
                # Only without a type: others create a missing folder or file, before the node's installer does.
                "variables.volumes.all(v, !has(v.hostPath) || "
                "(v.hostPath.path in variables.hostPaths && v.hostPath.?type.orValue('') == ''))"
            ),
            "only the daemon of GPUDirect may mount folders of the node's kernel; others must mount its software "
            "read-only": (
                # The folders are one list in another, so that each mount is compared with them and no other volume.
                "[variables.volumes.filter(v, has(v.hostPath))].all(n, "
                "variables.others.all(c, c.?volumeMounts.orValue([]).all(m, "
                "!n.exists(v, v.name == m.name && (v.hostPath.path in ['/sys', '/proc/sys'] || "
                "(v.hostPath.path.startsWith('/home/kubernetes/bin') && !m.?readOnly.orValue(false)))))))"
            ),
            _ONLY_DEVICES_OF_DAEMONS: _devices(accesses),
            "a container may not be privileged": (
                f"variables.containers.all(c, !{_SECURITY}.?privileged.orValue(false))"
            ),
            "a container may add only capabilities of Pod Security's baseline": (
                f"variables.others.all(c, {_SECURITY}.?capabilities.?add.orValue([]).all(k, "
                f"k in {literal(BASELINE_CAPABILITIES)} || (k == 'IPC_LOCK' && variables.gpuDirect)))"
            ),
            "hostPort may not be set": (
                f"{allowed(HOST_NETWORK)} || variables.containers.all(c, "
                "c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))"
            ),
            **_profiles(),
            _CONFINED_ONLY: (
                f"!({literal(CONFINED_LABEL)} in namespaceObject.metadata.labels) || variables.others.all(c, "
                f"{_SECURITY}.?seccompProfile.?type.orValue("
                "object.spec.?securityContext.?seccompProfile.?type.orValue('')) in ['RuntimeDefault', 'Localhost'] && "
                f"!{_SECURITY}.?allowPrivilegeEscalation.orValue(true))"
            ),
        },
    )


# The most pairs of a mount and a volume in the templates of a job: 20 templates of 10 containers with 20 mounts each,
# and 20 volumes. The API server allows an expression a cost of 1,000,000, and refuses twice as many pairs with an error
# about cost if the volumes are folders of the node (seen on 1.36.3, 2026-11-28).
MOST_PAIRS = 80_000
_IS_PATCH = "!object.spec.containers.exists(c, has(c.image))"
"""CEL that is true if a pod template is only a patch. A patch does not show what its runtime's containers request."""

_IN_TEMPLATES = {
    "object.spec.containers": "t.?spec.?containers.orValue([])",
    "object.metadata.annotations[k]": "t.?metadata.?annotations[?k].orValue('')",
    "object.": "t.?",
}
"""Replacements that turn conditions on a pod into conditions on a pod template ``t``, applied in this order.

Parts of a template may be missing.
"""


def template_baseline(images: Mapping[str, str], sources: Sequence[str] = ()) -> tuple[dict[str, str], dict[str, str]]:
    """Return CEL variables, and conditions on a job's pod template ``t``, keyed by message.

    They refuse a job whose pods would be refused. Without them, only the pods would be refused, when the job already
    holds its quota. Devices of the node are checked only on pods, because Kueue adds the labels of their nodes when it
    admits a job.
    """
    baseline = pod_baseline(images)
    variables = {**(baseline.variables or {}), "asks": f"({_IS_PATCH} || {_ASKS})"}
    validations = {**_placement(), **pod_volumes().validations, **baseline.validations}
    del validations[_ONLY_DEVICES_OF_DAEMONS]
    of_whole_containers = {_CONFINED_ONLY: validations[_CONFINED_ONLY]}
    if sources:
        of_whole_containers |= pod_images(sources, images).validations
    for message, cel in of_whole_containers.items():
        validations[message] = cel.replace(".all(c, ", ".filter(c, has(c.image)).all(c, ")  # patches may have none
    # In this order: the daemons among the others are known by their volumes.
    of_template = {name: _on_template(variables.pop(name), {}) for name in ("asks", "containers", "others", "volumes")}
    return variables, {message: _on_template(cel, of_template) for message, cel in validations.items()}


def pairs_in_template() -> str:
    """Return the CEL expression for the pairs of a mount and a volume in a template ``t``."""
    lists = [f"t.?spec.?{name}.orValue([]).map(c, c.?volumeMounts.orValue([]).size())" for name in _LISTS]
    return f"({' + '.join(lists)}).sum() * t.?spec.?volumes.orValue([]).size()"


def _on_template(cel: str, parts: Mapping[str, str]) -> str:
    for name, part in parts.items():
        cel = cel.replace(f"variables.{name}", f"({part})")
    for of_pod, of_template in _IN_TEMPLATES.items():
        cel = cel.replace(of_pod, of_template)
    return cel


def daemon_exec(images: Mapping[str, str]) -> Policy:
    """Return the policy on running commands in pods. It forbids them in daemons, which can access their node's kernel.

    If a pod has only one container, the API server fills in its name after admission. A request therefore has to name a
    container, as kubectl does. Source: kubernetes v1.36.3, pkg/registry/core/pod/strategy.go, validateContainer, read
    2026-11-24.
    """
    daemon_names = [daemon["name"] for kind in GPU_DIRECT_KINDS for daemon in access(kind, images).daemons]
    container = "object.?container.orValue('')"
    return Policy(
        name="training-platform-daemon-exec",
        rules=[("", "v1", ["pods/exec", "pods/attach"], ["CONNECT"])],
        validations={
            "nobody may run a command in the daemon of GPUDirect": f"!({container} in {literal(daemon_names)})",
            "a command must name its container, as kubectl exec and attach do": f"{container} != ''",
        },
    )


def _any_daemon(accesses: Mapping[str, NodeAccess]) -> str:
    """Return CEL that is true if a container ``c`` equals a daemon that we render and that its namespace may have."""
    return " || ".join(
        f"({allowed(kind)} && {_is_daemon(daemon, node_access.volumes)})"
        for kind, node_access in accesses.items()
        for daemon in node_access.daemons
    )


def _is_daemon(daemon: Mapping[str, Any], volumes: tuple[dict[str, Any], ...]) -> str:
    """Return CEL that compares a container with a daemon.

    It compares everything that could change the daemon's program: its command and image, its files, and other
    containers.
    """
    env = [[variable["name"], variable["value"]] for variable in daemon["env"]]
    mounts = [[mount["name"], mount["mountPath"]] for mount in daemon["volumeMounts"]]
    index = "JOB_COMPLETION_INDEX"  # Kubernetes gives it to every container of an indexed Job
    own_env = f"c.?env.orValue([]).filter(e, e.name != '{index}').map(e, [e.name, e.?value.orValue('')])"
    all_mounts = "c.?volumeMounts.orValue([])"
    tokens = "/var/run/secrets/kubernetes.io/serviceaccount"  # and this, a projected volume, to every container
    is_projected = "variables.volumes.exists(v, v.name == m.name && has(v.projected))"
    own_mounts = f"{all_mounts}.filter(m, m.mountPath != '{tokens}' || !{is_projected}).map(m, [m.name, m.mountPath])"
    capabilities = daemon["securityContext"]["capabilities"]["add"]
    probe = daemon.get("startupProbe", {}).get("exec", {}).get("command", [])
    parts = [
        f"c.name == {literal(daemon['name'])}",
        f"c.image == {literal(daemon['image'])}",
        f"c.?restartPolicy.orValue('') == {literal(daemon['restartPolicy'])}",
        f"c.?command.orValue([]) == {literal(daemon['command'])}",
        f"c.?args.orValue([]) == {literal(daemon.get('args', []))}",
        f"{own_env} == {json.dumps(env)}",
        f"{own_mounts} == {json.dumps(mounts)}",
        f"{all_mounts}.all(m, !has(m.subPath) && !has(m.subPathExpr))",
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
    """Return CEL that is true if a volume ``v`` has the same folder, or the same type, as a volume of a daemon."""
    if "hostPath" in volume:
        return f"has(v.hostPath) && v.hostPath.path == {literal(volume['hostPath']['path'])}"
    return "has(v.emptyDir)"


def _devices(accesses: Mapping[str, NodeAccess]) -> str:
    """Return CEL that is true if annotations request only devices that we render. Others would be injected as well.

    They may do so only for the daemon's own image, and only on certain nodes. The nodes must have GPUs with that kind
    of GPUDirect, or belong to a compute class, whose pools may have different GPUs.
    """
    names = []
    rendered = []
    for kind, node_access in accesses.items():
        for key, devices in node_access.annotations.items():
            names.append(key.removeprefix(DEVICES_ANNOTATION))
            gpu_of_node = f"{_SELECTOR}[?{literal(_GPU_LABEL)}].orValue('')"
            on_fitting_node = f"{literal(CLASS_LABEL)} in {_SELECTOR} || {gpu_of_node} in {literal(_gpus(kind))}"
            rendered.append(
                f"(k == {literal(key)} && {allowed(kind)} && object.metadata.annotations[k] == {literal(devices)} && "
                f"({on_fitting_node}))"
            )
    is_rendered = " || ".join(rendered)
    return (
        f"object.metadata.?annotations.orValue({{}}).all(k, !k.startsWith('devices.gke.io/') || {is_rendered}) && "
        f"variables.others.all(c, !(c.name in {literal(names)}))"
    )


def _gpus(kind: str) -> list[str]:
    """Return the GPU models of machines with a kind of GPUDirect, as values of GKE's node label."""
    labels = {
        machine.accelerator.gke_label
        for machine in MACHINE_TYPES.values()
        if machine.gpudirect == kind and machine.accelerator
    }
    return sorted(labels)


def _profiles() -> dict[str, str]:
    """Return the baseline's validations on security profiles. None may be weaker than the runtime's default."""
    contexts = (
        "([object.spec.?securityContext.orValue({})] + variables.containers.map(c, c.?securityContext.orValue({})))"
    )
    label = "s.?seLinuxOptions"
    return {
        "profiles of seccomp and AppArmor may not be Unconfined": (
            f"{contexts}.all(s, s.?seccompProfile.?type.orValue('') != 'Unconfined' && "
            "s.?appArmorProfile.?type.orValue('') != 'Unconfined') && object.metadata.?annotations.orValue({})"
            ".all(k, !k.startsWith('container.apparmor.security.beta.kubernetes.io/') || "
            "object.metadata.annotations[k] != 'unconfined')"
        ),
        "SELinux options may have only a type of containers, and no user or role": (
            f"{contexts}.all(s, {label}.?type.orValue('') in {literal(_SELINUX_TYPES)} && "
            f"{label}.?user.orValue('') == '' && {label}.?role.orValue('') == '')"
        ),
        "procMount has to be Default, and hostProcess may not be set": (
            f"variables.containers.all(c, {_SECURITY}.?procMount.orValue('Default') == 'Default') && "
            f"{contexts}.all(s, !s.?windowsOptions.?hostProcess.orValue(false))"
        ),
        "only the safe sysctls of Pod Security's baseline may be set": (
            f"object.spec.?securityContext.?sysctls.orValue([]).all(s, s.name in {literal(SYSCTLS)})"
        ),
        "probes and hooks may not name a host": (
            "variables.containers.all(c, [c.?livenessProbe, c.?readinessProbe, c.?startupProbe, "
            "c.?lifecycle.?postStart, c.?lifecycle.?preStop].all(p, "
            "p.?httpGet.?host.orValue('') == '' && p.?tcpSocket.?host.orValue('') == ''))"
        ),
    }
