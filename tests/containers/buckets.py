"""A stand-in for Cloud Storage FUSE's driver on a node: a bucket is a folder of this machine, bound where pods want it.

Like Google's it takes the group of a pod from the kubelet, which may then write to the folder. It speaks CSI's part of
a node and the kubelet's registration of plugins, by gRPC, in the few messages that a volume of a pod takes.
Source: CSI 1.11, csi.proto, and k8s.io/kubelet pluginregistration v1, api.proto, read 2026-11-28.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Final

import grpc  # type: ignore[import-untyped]

from training_platform.parts.jobs.gke.volumes import FUSE_DRIVER

Message = dict[int, list[bytes]]
Reply = Mapping[int, str | bytes]
_BYTES: Final = 2  # the wire type of strings and messages
_TARGET_PATH: Final = {"publish": 4, "unpublish": 2}
_CONTEXT: Final = 8
_CAPABILITY: Final = 5
_MOUNT: Final = 2  # of the capability
_OPTIONS: Final = 2  # of the mount
_GROUP: Final = 3
_VOLUME: Final = 1
_TAKES_GROUP: Final[Reply] = {1: b"\x0a\x02\x08\x06"}  # one capability: rpc {type: VOLUME_MOUNT_GROUP}
BUCKET: Final = "example-lab-lab-vision-checkpoints"
MOUNTS: Final = [{"name": "state", "source": {"bucket": "checkpoints"}}]
DRIVER: Final = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": FUSE_DRIVER},
    "spec": {"attachRequired": False, "podInfoOnMount": True, "volumeLifecycleModes": ["Persistent", "Ephemeral"]},
}


class Buckets:
    """The driver of one node; ``folder`` has a folder for each bucket. ``unmounts`` is cleared to hold unmounting."""

    def __init__(self, node: str, folder: Path) -> None:
        self._node = node
        self.folder = folder
        self.unmounts = Event()
        self.unmounts.set()

    @contextmanager
    def served(self, kubelet: Path) -> Iterator[None]:
        """Answer the node's kubelet, whose root folder is ``kubelet``, while the block runs."""
        socket = kubelet / "plugins" / FUSE_DRIVER / "csi.sock"
        driver = _server(socket, {
            "csi.v1.Identity": {
                "GetPluginInfo": lambda _: {1: FUSE_DRIVER, 2: "0"},
                "GetPluginCapabilities": lambda _: {},
                "Probe": lambda _: {},
            },
            "csi.v1.Node": {
                "NodeGetInfo": lambda _: {1: self._node},
                "NodeGetCapabilities": lambda _: _TAKES_GROUP,
                "NodePublishVolume": self._publish,
                "NodeUnpublishVolume": self._unpublish,
            },
        })  # fmt: skip
        info = {1: "CSIPlugin", 2: FUSE_DRIVER, 3: str(socket), 4: "1.0.0"}
        registration = {"GetInfo": lambda _: info, "NotifyRegistrationStatus": lambda _: {}}
        path = kubelet / "plugins_registry" / f"{FUSE_DRIVER}-reg.sock"
        registrar = _server(path, {"pluginregistration.Registration": registration})
        try:
            yield
        finally:
            self.unmounts.set()
            for server in (registrar, driver):
                server.stop(None).wait()

    def _publish(self, request: Message) -> Reply:
        entries = map(_read, request.get(_CONTEXT, []))
        attributes = {entry[1][0].decode(): entry[2][0].decode() for entry in entries}
        (capability,) = map(_read, request[_CAPABILITY])
        (mount,) = map(_read, capability[_MOUNT])
        options = [option.decode() for option in mount.get(_OPTIONS, ())]
        # Of a volume with a claim, the handle names the bucket.
        source = self.folder / attributes.get("bucketName", request[_VOLUME][0].decode())
        for option in options:
            if option.startswith("only-dir:"):
                source /= option.removeprefix("only-dir:")
        target = Path(request[_TARGET_PATH["publish"]][0].decode())
        for folder in (source, target):
            folder.mkdir(parents=True, exist_ok=True)
        if group := mount.get(_GROUP):
            os.chown(source, 0, int(group[0]))
            source.chmod(0o775)
        subprocess.run(["mount", "--rbind", source, target], check=True)
        return {}

    def _unpublish(self, request: Message) -> Reply:
        self.unmounts.wait()
        target = Path(request[_TARGET_PATH["unpublish"]][0].decode())
        if target.exists():
            subprocess.run(["umount", "--lazy", target], check=False)
            target.rmdir()
        return {}


def _server(socket: Path, services: Mapping[str, Mapping[str, Callable[[Message], Reply]]]) -> Any:
    """Return a started server of methods by service."""
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    for service, methods in services.items():
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                lambda request, _context, method=method: _written(method(_read(request)))
            )
            for name, method in methods.items()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    socket.parent.mkdir(parents=True, exist_ok=True)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    return server


def _read(message: bytes) -> Message:
    """Return the strings and messages of a message by field number; numbers are left out."""
    fields: Message = {}
    position = 0

    def number() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        key = number()
        length = number()
        if key & 7 == _BYTES:
            fields.setdefault(key >> 3, []).append(message[position : position + length])
            position += length
    return fields


def _written(fields: Reply) -> bytes:
    """Return a message of strings and messages shorter than 128 bytes."""
    texts = [(number, text.encode() if isinstance(text, str) else text) for number, text in fields.items()]
    assert all(len(text) < 0x80 for _, text in texts)
    return b"".join(bytes((number << 3 | _BYTES, len(text))) + text for number, text in texts)
