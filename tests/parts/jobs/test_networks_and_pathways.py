"""Jobs over several VMs whose pools have GPUDirect: network cards, the daemon, and NCCL's settings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.parts.jobs.lab import Lab, Take, container, insert, pod, template, without_nodes
from tests.support.lab import ENVIRONMENT, VISION, write_lab
from training_platform.catalog import IMAGES, MACHINE_TYPES
from training_platform.config.reading.declaration import located
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.jobs.gke.gke_job import on_gke
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.gke.pathways import VERSIONS, images, pathways_findings
from training_platform.parts.jobs.gke.pods import NOT_MOVED
from training_platform.parts.jobs.gke.rules import gke_findings
from training_platform.parts.jobs.resolve import ResolvedJob

Job = Callable[..., ResolvedJob]
POOLS = """\
          mega: {machine_type: a3-megagpu-8g, zone: us-central1-b, max_nodes: 4}
          ultra: {machine_type: a3-ultragpu-8g, zone: us-central1-b, capacity: spot, max_nodes: 4}
          grace: {machine_type: a4x-highgpu-4g, zone: us-central1-a, capacity: reservation, reservation: gb,
                  max_nodes: 18}
          near: {machine_type: a4-highgpu-8g, zone: us-central1-b, capacity: spot, max_nodes: 2}
          far: {machine_type: a4-highgpu-8g, zone: us-central1-c, capacity: spot, max_nodes: 5}
          shared:
            {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 4,
             sharing: {strategy: time-sharing, max_clients: 2}}
          without: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: flex-start, max_nodes: 4,
                    gpu_direct: false}
"""
SHARES = """\
        h100-mega: {nominal_quota: 32}
        h200-spot: {nominal_quota: 32}
        gb200-reservation: {nominal_quota: 72}
        b200-spot: {nominal_quota: 56}
        h100-time-sharing-2: {nominal_quota: 64}
        h100-flex-start: {nominal_quota: 32}
"""
GPUS = "        subnet: {nodes: 10.11.0.0/20,"  # of the cluster with GPUs
TPUS = "        subnet: {nodes: 10.10.0.0/20,"
SIDECARS = {"h100": "tcpx-daemon", "h100-mega": "tcpxo-daemon"}
RIGHTS = {"h100": ["NET_ADMIN"], "h100-mega": ["NET_ADMIN", "NET_BIND_SERVICE"]}


@pytest.fixture
def root(new_lab: Lab) -> Path:
    root = new_lab()
    insert(root / "stacks" / "Pulumi.lab.yaml", "          h100:", POOLS)
    insert(root / "stacks" / "Pulumi.lab.yaml", GPUS, "        accelerator_networks: multi-network\n")
    insert(root / "stacks" / "Pulumi.lab-vision.yaml", "        h100:", SHARES)
    return root


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return read_workspace(root)


@pytest.fixture
def job(take: Take, workspace: Workspace) -> Job:
    def taken(flavor: str, nodes: int = 2, target_fields: str = "", head: str = "") -> ResolvedJob:
        target = f"gke: {{cluster: gpus, flavor: {flavor}, nodes: {nodes}{target_fields}}}"
        return take(f"{head}{target}", workspace=workspace)

    return taken


def variables(job: ResolvedJob) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in without_nodes(container(job))}


def mounts(part: dict[str, Any]) -> dict[str, str]:
    return {mount["name"]: mount["mountPath"] for mount in part["volumeMounts"]}


def interfaces(job: ResolvedJob) -> dict[str, str]:
    annotations = template(job)["metadata"]["annotations"]
    assert annotations["networking.gke.io/default-interface"] == "eth0"
    listed = json.loads(annotations["networking.gke.io/interfaces"])
    return {interface["interfaceName"]: interface["network"] for interface in listed}


@pytest.mark.parametrize(
    ("flavor", "first", "networks"),
    [
        ("h100", 1, ["tcpx-1", "tcpx-2", "tcpx-3", "tcpx-4"]),
        ("h200-spot", 2, [f"rdma-us-central1-b-{number}" for number in (0, 1, 2, 3, 4, 5, 6, 7)]),
    ],
)
def test_a_pod_has_every_card_that_joins_gpus_beside_its_own_network(
    job: Job, flavor: str, first: int, networks: list[str]
) -> None:
    cards = {f"eth{first + number}": name for number, name in enumerate(networks)}

    assert interfaces(job(flavor)) == {"eth0": "default", **cards}
    assert "hostNetwork" not in pod(job(flavor))


@pytest.mark.parametrize("flavor", ["h100", "h100-mega"])
def test_the_daemon_starts_before_the_training_and_ends_with_it(job: Job, flavor: str) -> None:
    (daemon,) = pod(job(flavor))["initContainers"]

    assert (daemon["name"], daemon["restartPolicy"]) == (SIDECARS[flavor], "Always")
    assert daemon["image"] == IMAGES[f"node-{SIDECARS[flavor]}"]
    assert daemon["securityContext"] == {"capabilities": {"add": RIGHTS[flavor]}}
    assert "resources" not in daemon


@pytest.mark.parametrize(("flavor", "last"), [("h100", "/dev/nvidia-uvm"), ("h100-mega", "/dev/dmabuf_import_helper")])
def test_the_daemon_is_given_the_gpus_by_name_and_nobody_is_privileged(job: Job, flavor: str, last: str) -> None:
    pod_template = template(job(flavor))
    devices = yaml.safe_load(pod_template["metadata"]["annotations"][f"devices.gke.io/container.{SIDECARS[flavor]}"])

    assert [device["path"] for device in devices][:8] == [f"/dev/nvidia{number}" for number in range(8)]
    assert devices[-1] == {"path": last}
    assert "privileged" not in str(pod_template)


@pytest.mark.parametrize("flavor", ["h100", "h100-mega", "h200-spot"])
def test_training_reads_the_software_of_its_node_and_never_writes_it(job: Job, flavor: str) -> None:
    paths = {volume["name"]: volume.get("hostPath", {}).get("path", "") for volume in pod(job(flavor))["volumes"]}
    shared = [mount for mount in container(job(flavor))["volumeMounts"] if paths[mount["name"]].startswith("/home/")]

    assert shared != []
    assert all(mount["readOnly"] for mount in shared)


def test_training_waits_until_the_daemon_of_tcpxo_is_ready(job: Job) -> None:
    (daemon,) = pod(job("h100-mega"))["initContainers"]
    (ready,) = (variable["value"] for variable in daemon["env"] if variable["name"] == "HEALTH_CHECK_LOG_FILE")

    assert daemon["startupProbe"]["exec"]["command"] == ["cat", ready]


def test_the_sockets_of_tcpx_are_where_its_plugin_looks(job: Job) -> None:
    (daemon,) = pod(job("h100"))["initContainers"]
    place = variables(job("h100"))["NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX"]

    assert mounts(container(job("h100")))["tcpx-sockets"] == mounts(daemon)["tcpx-sockets"] == place
    assert daemon["args"][daemon["args"].index("--uds_path") + 1] == place


def test_gib_is_where_its_installer_puts_it(job: Job) -> None:
    assert mounts(container(job("h200-spot")))["gib"] == "/usr/local/gib"
    assert variables(job("h200-spot"))["NCCL_NET"] == "gIB"


@pytest.mark.parametrize(("command", "count"), [("", 1), ("command: [python, train.py]\n", 0)])
def test_a_job_whose_launcher_cannot_read_gibs_script_is_found(
    take: Take, workspace: Workspace, command: str, count: int
) -> None:
    findings = gke_findings(take(f"{command}gke: {{cluster: gpus, flavor: h200-spot, nodes: 2}}", workspace=workspace))

    assert [row.path for row in findings if row.rule == "job-flavor-networks"] == ["command"] * count


@pytest.mark.parametrize(
    ("flavor", "variable", "cards"),
    [
        ("h100", "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME", "eth1,eth2,eth3,eth4"),
        ("h100-mega", "NCCL_FASTRAK_IFNAME", "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8"),
    ],
)
def test_nccl_sends_data_over_the_cards_and_control_over_the_pods_own_network(
    job: Job, flavor: str, variable: str, cards: str
) -> None:
    assert variables(job(flavor))[variable] == cards
    assert variables(job(flavor))["NCCL_SOCKET_IFNAME"] == "eth0"


CONFINED = {"seccompProfile": {"type": "RuntimeDefault"}, "allowPrivilegeEscalation": False}


def test_every_container_of_a_pathways_job_is_confined(take: Take) -> None:
    roles = jobset(take(JOB))["spec"]["replicatedJobs"]
    pods = [role["template"]["spec"]["template"]["spec"] for role in roles]
    containers = [container for pod in pods for container in (*pod["containers"], *pod.get("initContainers", ()))]

    assert len(containers) == 4
    assert all(CONFINED.items() <= container["securityContext"].items() for container in containers)


def test_an_unconfined_program_keeps_its_system_calls_and_setuid_programs(take: Take) -> None:
    target = "gke: {cluster: gpus, flavor: h100, nodes: 1, unconfined: true}"

    assert "securityContext" not in container(take(target))


@pytest.mark.parametrize("target_fields", ["", "pathways: true, "])
def test_a_job_with_mounts_has_the_group_that_may_write_to_them(take: Take, target_fields: str) -> None:
    target = f"gke: {{cluster: tpus, flavor: tpu-v5e-4x8, {target_fields}slices: 1}}\noutput: checkpoints\ncommand: [a]"
    mounts = "mounts: [{name: data, source: {bucket: checkpoints}}]\n"
    with_mounts, without = (jobset(take(text))["spec"]["replicatedJobs"][0] for text in (mounts + target, target))
    pods = [role["template"]["spec"]["template"]["spec"] for role in (with_mounts, without)]

    assert [spec.get("securityContext", {}).get("fsGroup") for spec in pods] == [100, None]


def test_a_variable_of_the_file_wins_over_the_platforms(job: Job) -> None:
    environment = variables(job("h100-mega", head="env: {NCCL_BUFFSIZE: '1', OWN: x}\n"))

    assert (environment["NCCL_BUFFSIZE"], environment["OWN"]) == ("1", "x")
    assert environment["NCCL_NVLSTREE_MAX_CHUNKSIZE"] == "131072"


def test_the_environment_names_another_place_of_the_daemons_image(take: Take, root: Path) -> None:
    images = "    node_images: {node-tcpx-daemon: mirror.example.com/tcpx:1}\n"
    insert(root / "stacks" / "Pulumi.lab.yaml", "    clusters:", images)
    text = "gke: {cluster: gpus, flavor: h100, nodes: 2}"

    (daemon,) = template(take(text, workspace=read_workspace(root)))["spec"]["initContainers"]

    assert daemon["image"] == "mirror.example.com/tcpx:1"


@pytest.mark.parametrize(
    ("flavor", "nodes"),
    [("h100", 1), ("h100-time-sharing-2", 2), ("h100-flex-start", 2), ("a100-40", 2)],
    ids=["one VM", "shared GPUs", "gpu_direct: false", "machine without"],
)
def test_a_job_without_networks_between_gpus_gets_no_daemon_or_card(job: Job, flavor: str, nodes: int) -> None:
    resolved = job(flavor, nodes)

    assert template(resolved)["metadata"]["annotations"] == NOT_MOVED
    assert "initContainers" not in pod(resolved)
    assert container(resolved)["securityContext"] == CONFINED
    assert [volume["name"] for volume in pod(resolved)["volumes"]] == ["shared-memory"]
    assert without_nodes(container(resolved)) == []


def test_pods_name_the_networks_in_which_most_vms_of_their_flavor_are(job: Job) -> None:
    assert interfaces(job("b200-spot"))["eth2"] == "rdma-us-central1-c-0"

    (warning,) = [finding for finding in gke_findings(job("b200-spot")) if finding.path == "gke.flavor"]
    assert (warning.severity, warning.rule) == ("warning", "job-flavor-networks")
    assert "run only in pools far, not in near" in warning.message


@pytest.mark.parametrize(
    ("nodes", "rules"), [(5, {"job-flavor-networks"}), (6, {"job-flavor-networks", "job-fits-pools"})]
)
def test_a_job_fits_the_pools_in_its_networks(job: Job, nodes: int, rules: set[str]) -> None:
    assert {finding.rule for finding in gke_findings(job("b200-spot", nodes))} == rules


@pytest.mark.parametrize(
    ("nodes", "nearest"), [(5, []), (6, ["5"]), (8, ["5"]), (9, [])], ids=["one zone", "more", "all", "too many"]
)
def test_a_job_over_zones_is_a_warning_where_its_networks_are_regional(
    take: Take, root: Path, nodes: int, nearest: list[str]
) -> None:
    pools = """\
          left: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: spot, max_nodes: 5}
          right: {machine_type: a3-highgpu-8g, zone: us-central1-c, capacity: spot, max_nodes: 3}
"""
    insert(root / "stacks" / "Pulumi.lab.yaml", "          h100:", pools)
    insert(root / "stacks" / "Pulumi.lab-vision.yaml", "        h100:", "        h100-spot: {nominal_quota: 64}\n")

    job = take(f"gke: {{cluster: gpus, flavor: h100-spot, nodes: {nodes}}}", workspace=read_workspace(root))

    warnings = [finding for finding in gke_findings(job) if finding.rule == "job-flavor-networks"]
    assert [warning.nearest for warning in warnings] == nearest
    for warning in warnings:
        assert (warning.severity, warning.path) == ("warning", "gke.nodes")
        assert "5 in us-central1-a and 3 in us-central1-c: traffic between GPUs would cross zones" in warning.message


def test_pools_that_gke_makes_have_no_networks(take: Take, root: Path) -> None:
    classes = """\
        auto_provisioning: {cpu: 2000, memory_gb: 20000, accelerators: {nvidia-h100-80gb: 800}, zones: [us-central1-a]}
        compute_classes:
          best: {priorities: [{node_pools: [classed]}, {machine_type: a3-highgpu-8g, capacity: flex-start}]}
"""
    classed = "          classed: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 2}\n"
    insert(root / "stacks" / "Pulumi.lab.yaml", "          h100:", classed)
    insert(root / "stacks" / "Pulumi.lab.yaml", GPUS, classes)
    insert(root / "stacks" / "Pulumi.lab-vision.yaml", "        h100:", "        class-best: {nominal_quota: 24}\n")
    two, three = (
        take(f"gke: {{cluster: gpus, flavor: class-best, nodes: {nodes}}}", workspace=read_workspace(root))
        for nodes in (2, 3)
    )

    assert interfaces(two)["eth1"] == "tcpx-1"
    assert [finding.rule for finding in gke_findings(two)] == ["job-flavor-networks"]
    assert [finding.rule for finding in gke_findings(three)] == ["job-fits-pools", "job-flavor-networks"]


def claims(resolved: ResolvedJob) -> tuple[list[Any], list[Any]]:
    """Return the claims of a job's pods, and those of the container that trains."""
    return pod(resolved).get("resourceClaims", []), container(resolved)["resources"].get("claims", [])


@pytest.mark.parametrize(
    ("target", "template_name"),
    [
        ("cluster: gpus, flavor: h200-spot, nodes: 2", "mrdma-8"),
        ("cluster: gpus, flavor: h100-mega, nodes: 2", "netdev-8"),
        ("cluster: gpus, flavor: h200-spot, nodes: 1", None),
        ("cluster: gpus, flavor: h100-flex-start, nodes: 2", None),
        ("cluster: tpus, flavor: tpu-v6e-4x4, slices: 2", "netdev-2"),
        ("cluster: tpus, flavor: tpu-v6e-4x4, slices: 2, host_network: true", None),
    ],
)
def test_pods_of_several_vms_claim_the_devices_of_dranet(
    take: Take, root: Path, target: str, template_name: str | None
) -> None:
    stack = root / "stacks" / "Pulumi.lab.yaml"
    stack.write_text(stack.read_text(encoding="utf-8").replace("multi-network", "dranet"), encoding="utf-8")
    insert(stack, TPUS, "        accelerator_networks: dranet\n")
    slices = "          newer: {machine_type: ct6e-standard-4t, zone: us-west4-a, topology: 4x4, slices: 2}\n"
    insert(stack, "          slices:", slices)
    insert(
        root / "stacks" / "Pulumi.lab-vision.yaml", "        tpu-v5e-4x8:", "        tpu-v6e-4x4: {nominal_quota: 32}\n"
    )
    resolved = take(f"gke: {{{target}}}", workspace=read_workspace(root))

    named, used = claims(resolved)

    assert [row["resourceClaimTemplateName"] for row in named] == ([template_name] if template_name else [])
    assert used == [{"name": row["name"]} for row in named]
    assert "networking.gke.io/interfaces" not in template(resolved)["metadata"]["annotations"]


def test_nccl_takes_the_devices_of_dranet_by_their_names_on_the_node(job: Job, root: Path, take: Take) -> None:
    vpcs = variables(job("h100-mega"))
    stack = root / "stacks" / "Pulumi.lab.yaml"
    stack.write_text(stack.read_text(encoding="utf-8").replace("multi-network", "dranet"), encoding="utf-8")
    target = "gke: {cluster: gpus, flavor: h100-mega, nodes: 2}"

    assert variables(take(target, workspace=read_workspace(root))) == vpcs


@pytest.mark.parametrize(("flavor", "nodes", "refused"), [("h100", 2, True), ("h100", 1, False), ("a100-40", 2, False)])
def test_the_network_of_the_vm_has_no_cards_for_pods(
    take: Take, root: Path, flavor: str, nodes: int, refused: bool
) -> None:
    insert(root / "stacks" / "Pulumi.lab-vision.yaml", "    shares:", "    host_network: true\n")
    text = f"gke: {{cluster: gpus, flavor: {flavor}, nodes: {nodes}, host_network: true}}"
    findings = gke_findings(take(text, workspace=read_workspace(root)))

    assert [(finding.rule, finding.path, finding.nearest) for finding in findings] == (
        [("job-host-network", "gke.host_network", "false")] if refused else []
    )


@pytest.mark.parametrize("flavor", ["h100", "a100-40"])
def test_the_network_of_the_vm_is_for_teams_whose_file_says_so(job: Job, flavor: str) -> None:
    (finding,) = gke_findings(job(flavor, 1, ", host_network: true"))

    assert (finding.rule, finding.severity, finding.path) == ("job-host-network", "error", "gke.host_network")
    assert "host_network: true in the team's stack" in str(finding.allowed)


@pytest.mark.parametrize("confined", [True, False])
def test_an_unconfined_program_is_refused_in_a_confined_team(take: Take, root: Path, confined: bool) -> None:
    insert(root / "stacks" / "Pulumi.lab-vision.yaml", "    shares:", f"    confined: {str(confined).lower()}\n")
    text = "gke: {cluster: gpus, flavor: a100-40, nodes: 1, unconfined: true}"
    findings = gke_findings(take(text, workspace=read_workspace(root)))

    assert [(finding.rule, finding.severity, finding.path, finding.nearest) for finding in findings] == (
        [("job-unconfined", "error", "gke.unconfined", "false")] if confined else []
    )


TARGET = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2, pathways: true}"
JOB = f"command: [python, train.py]\noutput: checkpoints\n{TARGET}"
NODE_POOL = "alpha.jobset.sigs.k8s.io/exclusive-topology"


@pytest.fixture
def manifest(take: Take) -> dict[str, Any]:
    return jobset(take(JOB))


def pods(manifest: dict[str, Any]) -> list[Any]:
    return [
        replicated_job["template"]["spec"]["template"]["spec"] for replicated_job in manifest["spec"]["replicatedJobs"]
    ]


def arguments(container: dict[str, Any]) -> dict[str, str]:
    return dict(argument.removeprefix("--").split("=", 1) for argument in container["args"])


def pathways_variables(container: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in container["env"]}


def test_only_the_head_runs_the_program_and_its_end_ends_the_job(manifest: dict[str, Any]) -> None:
    head, workers = pods(manifest)
    spec = manifest["spec"]

    assert [container["args"] for container in head["containers"]] == [["python", "train.py"]]
    assert [container["name"] for container in workers["containers"]] == ["pathways-worker"]
    assert [replicated_job["replicas"] for replicated_job in spec["replicatedJobs"]] == [1, 2]
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["head"]
    assert spec["coordinator"]["replicatedJob"] == "head"


def test_jax_manager_proxy_and_workers_find_each_other(manifest: dict[str, Any]) -> None:
    head, workers = pods(manifest)
    name = manifest["metadata"]["name"]
    address = f"{name}-head-0-0.{name}"  # JobSet's name of the head's pod
    manager, proxy = head["initContainers"]
    (program,) = head["containers"]
    (worker,) = workers["containers"]
    ports = {container["name"]: str(container["ports"][0]["containerPort"]) for container in (manager, proxy, worker)}

    assert pathways_variables(program)["JAX_PLATFORMS"] == "proxy"
    assert "JAX_COORDINATOR_ADDRESS" not in pathways_variables(program)  # only the manager coordinates slices
    assert pathways_variables(program)["JAX_BACKEND_TARGET"] == f"grpc://{address}:{ports['pathways-proxy']}"
    for pathways_container in (proxy, worker):
        assert arguments(pathways_container)["resource_manager_address"] == f"{address}:{ports['pathways-rm']}"
    for pathways_container in (manager, proxy, worker):
        assert arguments(pathways_container)["server_port"] == ports[pathways_container["name"]]
        assert arguments(pathways_container)["gcs_scratch_location"].endswith(f"/{name}/pathways")
    assert arguments(manager)["instance_type"] == "tpuv5e:4x8"
    assert arguments(manager)["instance_count"] == pathways_variables(worker)["MEGASCALE_NUM_SLICES"] == "2"


def test_the_head_has_a_vm_of_its_pool_and_each_slice_a_node_pool_for_itself(manifest: dict[str, Any]) -> None:
    head, workers = pods(manifest)
    alone = [
        replicated_job["template"]["metadata"]["annotations"][NODE_POOL]
        for replicated_job in manifest["spec"]["replicatedJobs"]
    ]

    assert alone == ["kubernetes.io/hostname", "cloud.google.com/gke-nodepool"]
    assert NODE_POOL not in manifest["metadata"].get("annotations", {})
    assert head["nodeSelector"] == {"cloud.google.com/gke-nodepool": "cpu-np"}
    assert [toleration["key"] for toleration in head["tolerations"]] == ["training-platform/pathways"]
    assert workers["nodeSelector"]["training-platform/flavor"] == "tpu-v5e-4x8"


def pathways_rows(job: ResolvedJob) -> list[tuple[str, str, str | None]]:
    return [(finding.rule, finding.path, finding.nearest) for finding in located(pathways_findings(on_gke(job)))]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (TARGET, ("job-pathways", "output", None)),
        (f"cpu: 39\n{JOB}", None),
        (f"cpu: 40\n{JOB}", ("job-pathways", "cpu", "39")),  # of 64, 8 and 16 are Pathways' own
        (f"memory_gib: 124\n{JOB}", ("job-pathways", "memory_gib", "123")),  # of 256
        (JOB.replace("tpus, flavor: tpu-v5e-4x8, slices: 2", "gpus, flavor: h100, nodes: 2"), None),
    ],
)
def test_an_impossible_job_of_pathways_is_found_at_its_field(
    take: Take, text: str, right: tuple[str, str, str | None] | None
) -> None:
    rows = pathways_rows(take(text))

    if "h100" in text:
        assert rows == [("job-pathways", "gke.pathways", "false")] * 2  # no TPUs, and no pool for heads
    else:
        assert rows == ([right] if right else [])


@pytest.mark.parametrize(
    ("aware", "alone", "refused"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_slices_that_kueue_places_are_found_in_a_queue_without_other_flavors(
    take: Take, tmp_path: Path, aware: bool, alone: bool, refused: bool
) -> None:
    pool = "slices: 4, min_slices: 4, topology_aware: true}" if aware else "slices: 4, min_slices: 4}"
    other_shares = re.findall(r"^        tpu-v5e-(?!4x8:).*\n", VISION, re.MULTILINE)
    assert len(other_shares) == 3
    vision = VISION
    if alone:
        for line in other_shares:
            vision = vision.replace(line, "")
    root = write_lab(tmp_path, lab=ENVIRONMENT.replace("slices: 4, min_slices: 2}", pool), lab_vision=vision)

    rows = pathways_rows(take(JOB, workspace=read_workspace(root)))

    assert rows == ([("job-pathways", "gke.flavor", None)] if refused else [])


def test_images_from_elsewhere_are_found_unless_the_environment_has_them_from_its_own(
    take: Take, tmp_path: Path
) -> None:
    sources = "    project: example-lab\n    image_sources: [example.com/]\n"
    mirrored = "    node_images: {node-pathways: example.com/server, node-pathways-proxy: example.com/proxy}\n"
    texts = (sources, sources + mirrored)
    jobs = [
        take(
            JOB,
            workspace=read_workspace(
                write_lab(tmp_path / name, lab=ENVIRONMENT.replace("    project: example-lab\n", text))
            ),
        )
        for name, text in zip(("elsewhere", "own"), texts, strict=True)
    ]

    assert [pathways_rows(job) for job in jobs] == [[("job-image-source", "gke.pathways", None)] * 2, []]
    assert {container["image"] for pod in pods(jobset(jobs[1])) for container in pod.get("initContainers", [])} == {
        "example.com/server",
        "example.com/proxy",
    }


def test_both_images_are_of_one_version_of_jax(take: Take) -> None:
    tags = {image.rpartition(":")[2] for image in images(on_gke(take(JOB))).values()}

    assert len(tags) == 1
    assert re.fullmatch(r"jax-\d+\.\d+\.\d+", tags.pop())


def test_all_machine_types_of_tpus_over_several_vms_have_a_name_in_pathways() -> None:
    tpus = {name for name, machine in MACHINE_TYPES.items() if machine.kind == "tpu" and machine.multi_host}

    assert tpus <= VERSIONS.keys()
