"""Views of networks, and of who may do what: read from plans, and as far as a rule compares them with clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from training_platform.config.reading.finding import Path
from training_platform.rules.views.view import Settings


@dataclass(frozen=True, kw_only=True)
class Network(Settings):
    """A VPC; ``profile`` is the name of a network profile, which makes it one of RDMA."""

    project: str
    network: str | None
    mtu: int | None
    profile: str | None


@dataclass(frozen=True, kw_only=True)
class Subnet(Settings):
    """A subnet: its primary range, and its secondary ranges by name. ``network`` names the VPC."""

    PATHS: ClassVar[dict[str, Path]] = {"cidr": ("subnet", "nodes"), "ranges": ("subnet",)}

    project: str
    region: str
    subnetwork: str | None
    network: str | None
    cidr: str | None
    ranges: dict[str, str]

    def path(self, name: str) -> Path:
        """Return where a range stands in the stack file, ``pods`` and ``services`` by their names."""
        if self.origin[-1:] == ("gpu_networks",):
            return (*self.origin, "range")
        return (*self.origin, "subnet", name) if name in ("pods", "services") else super().path(name)


@dataclass(frozen=True, kw_only=True)
class Firewall(Settings):
    """A firewall rule; ``ports`` are those of TCP that it lets in, ``0-65535`` for all, none where it denies."""

    network: str | None
    ports: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Account(Settings):
    """A service account."""

    project: str
    email: str


@dataclass(frozen=True, kw_only=True)
class RoleGrant(Settings):
    """A role of one or more members in a project; ``account`` names the service account where it is one."""

    project: str
    role: str
    account: str | None


@dataclass(frozen=True, kw_only=True)
class StorageClass(Settings):
    """A StorageClass of Kubernetes."""

    class_name: str | None
    provisioner: str
    parameters: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class VolumeClaim(Settings):
    """A PersistentVolumeClaim; ``class_name`` is None where the cluster's default class is meant."""

    class_name: str | None
