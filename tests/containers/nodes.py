"""A node with real containers: containerd and a kubelet beside a real API server, on this machine, as root.

Its network is a bridge that only this machine reaches, and its cgroups are below one of their own. What a node leaves
behind ends with it: containers, mounts, cgroups, the bridge. Tried with kubelet 1.36.3, containerd 2.4 and Debian's
runc 1.1.5 and CNI plugins 1.1.1, on cgroup v1 without CAP_SYS_RESOURCE, 2026-11-28.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from tests.kube.api_servers import ApiServer, free_port, run_program, write_private
from tests.kube.deployed import TEAM
from training_platform.resources.notebooks import HUB_NAMESPACE
from training_platform.views.inputs import at

Json = dict[str, Any]
NODE: Final = "gke-a100-0"
PROGRAMS: Final = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet")
BRIDGE: Final = "tp-pods"
ADDRESS: Final = "10.251.0.1"
PLUGINS: Final = ("/usr/lib/cni", "/opt/cni/bin")
CGROUPS: Final = Path("/sys/fs/cgroup")
IMAGE: Final = "registry.example.com/train:1"
USER_IMAGE: Final = "registry.example.com/user:1"
"""The same, with USER 1000."""
PAUSE: Final = "localhost/pause:1"
SECONDS: Final = 60.0
NETWORK: Final = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": BRIDGE,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": "10.251.0.0/16", "rangeStart": "10.251.1.1"}]],
                "routes": [{"dst": "0.0.0.0/0", "gw": ADDRESS}],
            },
        }
    ],
}


def python_image() -> Path:
    """Return the archive of an image with Python; skips the test where none is named."""
    image = os.environ.get("TRAINING_PLATFORM_CONTAINERS_IMAGE")
    if image is None:
        pytest.skip("no archive of an image with Python is named by TRAINING_PLATFORM_CONTAINERS_IMAGE")
    return Path(image)


def examples_python() -> str:
    """Return the Python that has the examples' libraries; skips the test where none is named."""
    named = os.environ.get("TRAINING_PLATFORM_EXAMPLES_PYTHON")
    if named is None:
        pytest.skip("no Python with the examples' libraries is named by TRAINING_PLATFORM_EXAMPLES_PYTHON")
    return named


@contextmanager
def libraries(folder: Path) -> Iterator[None]:
    """Bind the examples' libraries to a folder while the block runs."""
    show = [examples_python(), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = subprocess.run(show, check=True, capture_output=True, text=True).stdout.strip()
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "--bind", "-o", "ro", packages, str(folder))
    try:
        yield
    finally:
        _run("umount", "--lazy", str(folder))


class NodeFiles(NamedTuple):
    """Folders of a node: its programs, its data, and their logs."""

    programs: Path
    data: Path
    logs: Path


@contextmanager
def bridge() -> Iterator[None]:
    """Give this machine the network of pods while the block runs, unless another block has done so."""
    if Path("/sys/class/net", BRIDGE).exists():
        yield
        return
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    try:
        _run("ip", "address", "add", f"{ADDRESS}/16", "dev", BRIDGE)
        _run("ip", "link", "set", BRIDGE, "up")
        yield
    finally:
        _run("ip", "link", "delete", BRIDGE)


@contextmanager
def node(server: ApiServer, name: str, image: Path, *, programs: Path, logs: Path) -> Iterator[Path]:
    """Run a node while the block runs, with an image under the name that jobs use; yields its kubelet's folder."""
    with ExitStack() as stack:
        # The path of a socket has 107 characters; a disk of its own kind, since /run and /tmp may be memory.
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="node-", dir="/var/tmp")))
        files = NodeFiles(programs, data, logs)
        logs.mkdir(parents=True)
        stack.callback(_clean, files)
        stack.enter_context(_containerd(files))
        _import(files, image)
        stack.enter_context(_kubelet(files, server, name))
        stack.callback(_end_containers, files)
        yield data / "kubelet"


@contextmanager
def _containerd(files: NodeFiles) -> Iterator[None]:
    (files.data / "network").mkdir()
    (files.data / "network" / "pods.conflist").write_text(json.dumps(NETWORK))
    config = files.data / "containerd.toml"
    plugins = next(folder for folder in PLUGINS if Path(folder, "bridge").exists())
    config.write_text(f"""\
version = 3
root = "{files.data}/containerd"
state = "{files.data}/state"
[grpc]
  address = "{files.data}/containerd.sock"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{PAUSE}"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{files.data}/network"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
""")
    path = ("env", f"PATH={files.programs}:/usr/sbin:/usr/bin:/sbin:/bin")  # of the shim and runc
    with closing(run_program(files.programs / "containerd", {"config": config}, files.logs, path)):
        _until(lambda: _ctr(files, "version", check=False).returncode == 0)
        yield


def _import(files: NodeFiles, image: Path) -> None:
    """Import an archive of ``docker save``, the same image with a user, and as what keeps a pod's network."""
    archive = files.data / "images.tar"
    with tarfile.open(image) as source, tarfile.open(archive, "w") as target:
        (row,) = json.load(_file(source, "manifest.json"))
        config = json.load(_file(source, row["Config"]))
        variants: dict[str, tuple[str, Json]] = {
            "user.json": (USER_IMAGE, {"User": "1000"}),
            "pause.json": (PAUSE, {"Entrypoint": ["python3", "-c", "import signal; signal.pause()"]}),
        }
        rows = [{**row, "RepoTags": [IMAGE]}]
        rows += [{**row, "Config": file, "RepoTags": [name]} for file, (name, _) in variants.items()]
        for member in source:
            if member.name != "manifest.json":
                target.addfile(member, source.extractfile(member))
        texts: dict[str, Any] = {"manifest.json": rows}
        for file, (_, settings) in variants.items():
            texts[file] = {**config, "config": {**config.get("config", {}), **settings}}
        for name, content in texts.items():
            text = json.dumps(content).encode()
            about = tarfile.TarInfo(name)
            about.size = len(text)
            target.addfile(about, io.BytesIO(text))
    _ctr(files, "-n", "k8s.io", "images", "import", str(archive))
    archive.unlink()


def _file(archive: tarfile.TarFile, name: str) -> Any:
    file = archive.extractfile(name)
    assert file is not None, name
    return file


@contextmanager
def _kubelet(files: NodeFiles, server: ApiServer, name: str) -> Iterator[None]:
    for group in _cgroups(name):
        group.mkdir(exist_ok=True)
    for file in ("cpuset.cpus", "cpuset.mems"):
        (CGROUPS / "cpuset" / name / file).write_text((CGROUPS / "cpuset" / file).read_text())
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{name}",
        "address": ADDRESS,
        "port": free_port(),
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},  # the bridge is this machine's
        "clusterDNS": [ADDRESS],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{files.data}/containerd.sock",
        "enforceNodeAllocatable": ["pods"],
        "evictionHard": {"memory.available": "300Mi", "nodefs.available": "2%"},
        "imageGCHighThresholdPercent": 100,
        "failSwapOn": False,
        "nodeStatusUpdateFrequency": "5s",
        "podLogsDir": str(files.data / "pods"),
    }
    (files.data / "kubelet.yaml").write_text(yaml.safe_dump(config))
    kubeconfig = files.data / "kubeconfig"
    write_private(kubeconfig, server.kubeconfig(account=f"system:node:{name}"))
    flags = {
        "config": files.data / "kubelet.yaml",
        "kubeconfig": kubeconfig,
        "hostname-override": name,
        "node-ip": ADDRESS,
        "root-dir": files.data / "kubelet",
        "cert-dir": files.data / "certificates",
    }
    with closing(run_program(files.programs / "kubelet", flags, files.logs)):
        _until(lambda: _is_ready(server, name))
        yield


def _is_ready(server: ApiServer, name: str) -> bool:
    conditions = at(server.read(f"/api/v1/nodes/{name}"), ("status", "conditions")) or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def outfit(server: ApiServer, name: str, labels: Mapping[str, str], resources: Mapping[str, int]) -> None:
    """Give a node the labels and devices that a machine of GKE has; the kubelet keeps them until it starts again."""
    path = f"/api/v1/nodes/{name}"
    devices = {resource: str(count) for resource, count in resources.items()}
    server.merge(f"{path}/status", {"status": {"capacity": devices, "allocatable": devices}})
    server.merge(path, {"metadata": {"labels": dict(labels)}})


def _cgroups(name: str) -> list[Path]:
    return [file.parent / name for file in CGROUPS.glob("*/cgroup.procs")]


def _end_containers(files: NodeFiles) -> None:
    """End all containers, and so their shims."""
    listed = _ctr(files, "-n", "k8s.io", "tasks", "list", "-q").stdout.split()
    for task in listed:
        _ctr(files, "-n", "k8s.io", "tasks", "delete", "--force", task, check=False)


def _clean(files: NodeFiles) -> None:
    """Unmount what is below the node's folder, before it is deleted, and remove the cgroups of its pods."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted(mounts, reverse=True):
        if mount.startswith(f"{files.data}/"):
            subprocess.run(["umount", "--lazy", mount], check=False)
    for hierarchy in _cgroups(files.logs.name):
        for group in sorted((file.parent for file in hierarchy.rglob("cgroup.procs")), reverse=True):
            with suppress(OSError):  # a container is still ending
                group.rmdir()


def _ctr(files: NodeFiles, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [str(files.programs / "ctr"), "--address", f"{files.data}/containerd.sock", *words]
    return subprocess.run(command, check=check, capture_output=True, text=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _until(holds: Any) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "a program of the node does not answer"
        time.sleep(0.2)


def on_this_machine(folder: Path) -> Callable[[Json], Json]:
    """Return a function that puts a folder in place of Filestore in a planned object."""

    def path(volume: Json) -> Json:
        return {"path": f"{folder}{volume['path']}"}

    def changed(body: Json) -> Json:
        spec = body.get("spec", {})
        name = body["metadata"]["name"]
        if body["kind"] == "PersistentVolume" and "nfs" in spec:
            claim = spec["claimRef"]["name"]
            namespace = HUB_NAMESPACE if claim == "homes" else TEAM
            kept = {key: value for key, value in spec.items() if key not in ("nfs", "mountOptions")}
            spec = {**kept, "hostPath": path(spec["nfs"]), "claimRef": {"namespace": namespace, "name": claim}}
            name = claim
        elif body["kind"] == "PersistentVolumeClaim":
            spec = {**spec, "volumeName": name}
        elif body["kind"] == "Job":
            pod = spec["template"]["spec"]
            (volume,) = pod["volumes"]
            (container,) = pod["containers"]
            volumes = [{"name": volume["name"], "hostPath": path(volume["nfs"])}]
            spec = {"template": {"spec": {**pod, "volumes": volumes, "containers": [{**container, "image": IMAGE}]}}}
        else:
            return body
        return {**body, "metadata": {**body["metadata"], "name": name}, "spec": spec}

    return changed
