"""A job and a pool of each machine that ``upstream.md`` compares, and their fields in the words of that table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from tests.support.stack_files import workspace_of
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import region_of
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.resolve import parse_job
from training_platform.resources.launcher import PLAN_VARIABLE

POOLS: Mapping[str, Mapping[str, Any]] = {
    "a2-highgpu-1g": {"max_nodes": 1},
    "a3-highgpu-8g": {"min_nodes": 2, "max_nodes": 2},
    "a3-megagpu-8g": {"min_nodes": 2, "max_nodes": 2},
    "a3-ultragpu-8g": {"min_nodes": 2, "max_nodes": 2},
    "a4-highgpu-8g": {"min_nodes": 2, "max_nodes": 2},
    "a4x-highgpu-4g": {"min_nodes": 2, "max_nodes": 2},
    "a4x-maxgpu-4g-metal": {"min_nodes": 2, "max_nodes": 2},
    "g2-standard-96": {"max_nodes": 1},
    "g4-standard-96": {"max_nodes": 1},
    "ct4p-hightpu-4t": {"topology": "2x2x4", "slices": 2, "min_slices": 2},
    "ct5lp-hightpu-8t": {"topology": "2x4"},
    "ct5p-hightpu-4t": {"topology": "2x2x4", "slices": 2, "min_slices": 2},
    "ct6e-standard-4t": {"topology": "4x4"},
    "tpu7x-standard-4t": {"topology": "2x2x2"},
}


class Rendered(NamedTuple):
    """The Job of a set and its pod."""

    job: dict[str, Any]
    pod: dict[str, Any]
    annotations: dict[str, str]

    @property
    def container(self) -> dict[str, Any]:
        """The container that trains."""
        (container,) = self.pod["containers"]
        assert isinstance(container, dict)
        return container

    def volume(self, name: str) -> dict[str, Any] | None:
        """Return a volume by its name."""
        return next((row for row in self.pod.get("volumes", ()) if row["name"] == name), None)


@cache
def workspace() -> Workspace:
    """Return an environment with a cluster and a pool for each machine, and a team that has all of it."""
    clusters: dict[str, Any] = {}
    shares: dict[str, Any] = {}
    for number, (name, pool) in enumerate(POOLS.items()):
        machine = MACHINE_TYPES[name]
        zone, *_ = machine.zones or [f"{region}-a" for region in (*machine.regions, "us-central1")]
        capacity = {} if "on-demand" in machine.capacities else {"capacity": "reservation", "reservation": "own"}
        clusters[name.lower()] = {
            "location": region_of(zone),
            "subnet": {
                "nodes": f"10.{number}.0.0/20", "pods": f"10.{100 + number}.0.0/16", "services": f"10.{number}.16.0/20",
            },
            "node_pools": {"pool": {"machine_type": name, "zone": zone, **capacity, **pool}},
        }  # fmt: skip
    environment = {"project": "example-lab", "production": False, "clusters": clusters}
    alone = workspace_of({"lab": {"environment": environment}})
    for name in clusters:
        shares[name] = {flavor: {"nominal_quota": 64} for flavor in alone.flavors("lab", name)}
    team = {"environment": "lab", "name": "vision", "members": ["group:vision@example.com"], "shares": shares}
    return workspace_of({"lab": {"environment": environment}, "lab-vision": {"team": team}})


@cache
def rendered(machine: str) -> Rendered:
    """Return what a job over two VMs, or one slice or two, renders to on a machine."""
    ((flavor, resolved_flavor),) = workspace().flavors("lab", machine).items()
    pool = resolved_flavor.pools[0]
    count = f"slices: {pool.spec.slices}" if pool.spec.topology else f"nodes: {pool.spec.max_nodes}"
    head = "environment: lab\nimage: example:1\ncommand: [python, train.py]\n"
    text = f"{head}gke: {{cluster: {machine}, flavor: {flavor}, {count}}}\n"
    job, findings = parse_job(parse_source(text, "jobs/vision/train.yaml"), workspace())
    assert job is not None, findings
    (replicated,) = jobset(job)["spec"]["replicatedJobs"]
    spec = replicated["template"]["spec"]
    annotations: dict[str, str] = {}
    for place in (jobset(job), replicated["template"], spec["template"]):
        annotations |= place.get("metadata", {}).get("annotations", {})
    return Rendered(spec, spec["template"]["spec"], annotations)


def _variable(name: str) -> Callable[[Rendered], str]:
    def value(output: Rendered) -> str:
        return next((str(row.get("value")) for row in output.container["env"] if row["name"] == name), "none")

    return value


def _shared_memory(output: Rendered) -> str:
    volume = output.volume("shared-memory")
    return str(volume["emptyDir"].get("sizeLimit", "no limit")) if volume else "none"


def _script(output: Rendered) -> str:
    return "read by the launcher" if '"script"' in _variable(PLAN_VARIABLE)(output) else "none"


def _daemon(output: Rendered) -> str:
    return "sidecar" if output.pod.get("initContainers") else "none"


def _claims(output: Rendered) -> str:
    return ", ".join(row["resourceClaimTemplateName"] for row in output.pod.get("resourceClaims", ())) or "none"


def _networks(output: Rendered) -> str:
    return str(output.annotations.get("networking.gke.io/interfaces", "").count("interfaceName"))


FIELDS: Mapping[str, Callable[[Rendered], str]] = {
    "accelerators": lambda output: next(
        value for name, value in output.container["resources"]["limits"].items() if "/" in name
    ),
    "accelerator label": lambda output: next(
        value for name, value in output.pod["nodeSelector"].items() if name.endswith("-accelerator")
    ),
    "topology label": lambda output: output.pod["nodeSelector"].get("cloud.google.com/gke-tpu-topology", "none"),
    "/dev/shm": _shared_memory,  # noqa: S108 # the pod's own
    "host network": lambda output: str(output.pod.get("hostNetwork", False)).lower(),
    "capabilities": lambda output: ", ".join(
        output.container.get("securityContext", {}).get("capabilities", {}).get("add", [])
    )
    or "none",
    "interfaces": _networks,
    "claims": _claims,
    "folders of the node": lambda output: ", ".join(
        sorted(row["hostPath"]["path"] for row in output.pod.get("volumes", ()) if "hostPath" in row)
    )
    or "none",
    "daemon": _daemon,
    "LD_LIBRARY_PATH": _variable("LD_LIBRARY_PATH"),
    "script of gIB": _script,
    "restart policy": lambda output: output.pod["restartPolicy"],
    "backoff limit": lambda output: str(output.job["backoffLimit"]),
    "pods of a Job": lambda output: str(output.job["parallelism"]),
    "grace seconds": lambda output: str(output.pod["terminationGracePeriodSeconds"]),
    "tolerations": lambda output: ", ".join(sorted(row["key"] for row in output.pod["tolerations"])) or "none",
    "ports": lambda output: ", ".join(str(row["containerPort"]) for row in output.container.get("ports", ())) or "none",
    "placement": lambda output: next(
        (f"{name.rpartition('/')[2]} {value.rpartition('/')[2]}" for name, value in output.annotations.items()
         if "topology" in name), "none"
    ),
}  # fmt: skip


def value(machine: str, field: str) -> str:
    """Return a field of the table as it is here."""
    return FIELDS[field](rendered(machine))
