"""Policies on what a pod reaches: Pod Security's baseline once more, less what GPUDirect needs where a team has it.

Pod Security knows no exceptions by path, so a namespace with GPUDirect cannot enforce baseline; these hold in all.
Source: Kubernetes docs, Pod Security Standards, baseline, read 2026-11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.pools import CLASS_LABEL
from training_platform.resources.admission.policy import (
    HOST_NETWORK,
    SHARED_CLAIMS,
    Policy,
    allowed,
    literal,
)
from training_platform.resources.cloud_names import SERVICE_ACCOUNT
from training_platform.resources.gpu_access import DEVICES_ANNOTATION, Access, access
from training_platform.resources.scope import TEAM_LABEL

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
            "claims": f"namespaceObject.metadata.?annotations[?{literal(SHARED_CLAIMS)}].orValue('').split(',')",
            "shared": (
                "variables.volumes.filter(v, v.?persistentVolumeClaim.?claimName.orValue('-') in variables.claims)"
            ),
            "folder": f"namespaceObject.metadata.labels[{literal(TEAM_LABEL)}] + '/'",
        },
        validations={
            "a volume on a share of several teams is mounted with a subPath in the team's folder, <team>/": (
                f"({_CONTAINERS}).all(c, c.?volumeMounts.orValue([]).all(m, "
                "!variables.shared.exists(v, v.name == m.name) || "
                "(m.?subPath.orValue('').startsWith(variables.folder) && !has(m.subPathExpr))))"
            ),
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
            "others": f"variables.containers.filter(c, !({_daemons(seen)}))",
        },
        validations={
            "a pod shares no network, processes or memory with its node": (
                f"(!object.spec.?hostNetwork.orValue(false) || {allowed(HOST_NETWORK)}) && "
                "!object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)"
            ),
            "a pod mounts no folder of its node but those of the team's GPUDirect": (
                "variables.volumes.all(v, !has(v.hostPath) || v.hostPath.path in variables.hostPaths)"
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
    """Return the policy on commands in running pods: none in a daemon, which sees its node's kernel."""
    daemons = [daemon["name"] for kind in KINDS for daemon in access(kind, _NO_IMAGES).daemons]
    return Policy(
        name="training-platform-daemon-exec",
        rules=[("", "v1", ["pods/exec", "pods/attach"], ["CONNECT"])],
        validations={
            "nobody runs a command in the daemon of GPUDirect": (
                f"!(object.?container.orValue('') in {literal(daemons)})"
            ),
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
_OWN_ENV = f"c.?env.orValue([]).filter(e, e.name != '{_INDEX}').map(e, e.name + '=' + e.?value.orValue(''))"
_OWN_MOUNTS = (
    f"c.?volumeMounts.orValue([]).filter(m, m.mountPath != '{_TOKENS}')"
    ".map(m, m.name + ':' + m.mountPath + m.?subPath.orValue('') + m.?subPathExpr.orValue(''))"
)


def _daemons(seen: Mapping[str, Access]) -> str:
    """Return CEL that is true of a container ``c`` that is a daemon, exactly as it is rendered, where it may be."""
    return " || ".join(
        f"({allowed(kind)} && {_is_daemon(daemon, each.volumes)})"
        for kind, each in seen.items()
        for daemon in each.daemons
    )


def _is_daemon(daemon: Mapping[str, Any], volumes: tuple[dict[str, Any], ...]) -> str:
    """Compare all by which a container's program could be another: its code, its files, and what runs beside it."""
    env = [f"{each['name']}={each['value']}" for each in daemon["env"]]
    mounts = [f"{each['name']}:{each['mountPath']}" for each in daemon["volumeMounts"]]
    capabilities = daemon["securityContext"]["capabilities"]["add"]
    probe = daemon.get("startupProbe", {}).get("exec", {}).get("command", [])
    parts = [
        f"c.name == {literal(daemon['name'])}",
        f"c.image == {literal(daemon['image'])}",
        f"c.?command.orValue([]) == {literal(daemon['command'])}",
        f"c.?args.orValue([]) == {literal(daemon.get('args', []))}",
        f"{_OWN_ENV} == {literal(env)}",
        "c.?envFrom.orValue([]).size() == 0",
        f"{_OWN_MOUNTS} == {literal(mounts)}",
        f"c.?securityContext.?capabilities.?add.orValue([]) == {literal(capabilities)}",
        f"c.?startupProbe.?exec.?command.orValue([]) == {literal(probe)}",
        *(f"!has(c.{each})" for each in ("lifecycle", "livenessProbe", "readinessProbe")),
        "!object.spec.?shareProcessNamespace.orValue(false)",
        *(f"variables.volumes.exists(v, v.name == {literal(each['name'])} && {_is(each)})" for each in volumes),
    ]
    return " && ".join(parts)


def _is(volume: Mapping[str, Any]) -> str:
    if "hostPath" in volume:
        return f"has(v.hostPath) && v.hostPath.path == {literal(volume['hostPath']['path'])}"
    return "has(v.emptyDir)"


def _devices(seen: Mapping[str, Access]) -> str:
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
