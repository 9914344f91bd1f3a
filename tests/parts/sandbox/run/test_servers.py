"""The servers of a run: settings, the place of Kubernetes objects, and the nodes of the local cloud's pools."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.places import ORGANISATION
from training_platform.cli.main import app
from training_platform.config.model.stack import PROJECT
from training_platform.parts.sandbox.cloud.endpoints import endpoints
from training_platform.parts.sandbox.cloud.state.store import Record, Store
from training_platform.parts.sandbox.files import BrokenFile
from training_platform.parts.sandbox.kubernetes.nodes import MOST_NODES
from training_platform.parts.sandbox.kubernetes.object_store import ObjectStore
from training_platform.parts.sandbox.run.engine import (
    engine_environment,
    protected,
    variable,
    without_personal_settings,
)
from training_platform.parts.sandbox.run.folder import CannotRun, SandboxFolder, is_alive
from training_platform.parts.sandbox.run.reports import RunFailed
from training_platform.parts.sandbox.run.servers import (
    Servers,
    announced,
    api_server_programs,
    cluster_nodes,
    parse_durations,
    poll_interval,
    served,
    settings_lines,
)
from training_platform.parts.sandbox.run.session import read_stacks
from training_platform.parts.sandbox.run.status import kubernetes_notes


def test_durations_are_by_kind_and_the_later_wins() -> None:
    assert parse_durations(["*=1", "container.clusters=6", "*=2"]) == {"*": 2.0, "container.clusters": 6.0}
    assert parse_durations(["real"])["container.clusters"] == 360
    assert parse_durations(["real/100"])["container.clusters"] == 360 / 100
    assert parse_durations([]) == {}


@pytest.mark.parametrize("setting", ["container.clusters", "*=soon", "*=-1", "real/x", "real/0"])
def test_an_invalid_duration_is_refused(setting: str) -> None:
    with pytest.raises(CannotRun, match="write a kind and seconds"):
        parse_durations([setting])


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        ({}, "50ms"),
        ({"*": 0.0}, "50ms"),
        ({"a": 10.0, "b": 5.0}, "100ms"),
        ({"a": 360.0}, "7200ms"),
        ({"a": 3600.0}, "10000ms"),
    ],
)
def test_polling_takes_a_fiftieth_of_the_shortest_operation(durations: dict[str, float], expected: str) -> None:
    assert poll_interval(durations) == expected


def test_endpoints_reach_the_provider_by_the_variables_that_it_reads() -> None:
    assert variable("gcp:vertexAiCustomEndpoint") == "GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT"
    assert variable("gcp:resourceManagerV3CustomEndpoint") == "GOOGLE_RESOURCE_MANAGER_V3_CUSTOM_ENDPOINT"
    assert variable("gcp:iamBetaCustomEndpoint") == "GOOGLE_IAM_BETA_CUSTOM_ENDPOINT"


def test_the_engine_sees_only_the_sandbox(tmp_path: Path) -> None:
    folder = SandboxFolder(ORGANISATION, tmp_path)

    variables = engine_environment(folder, tmp_path / "checkout", Servers(1234, 5678, {}), endpoints(1234))

    assert variables["PULUMI_BACKEND_URL"] == (tmp_path / "state").as_uri()
    assert variables["PULUMI_HOME"] == str(tmp_path / "home")
    assert variables["PULUMI_DEBUG_PROVIDERS"] == "kubernetes:5678"
    assert variables["GOOGLE_CONTAINER_CUSTOM_ENDPOINT"].startswith("http://127.0.0.1:1234/container/")
    assert variables["KUBECONFIG"] == str(tmp_path / "no-clusters")
    assert variables["HTTPS_PROXY"] == "http://127.0.0.1:9"


def test_the_token_of_a_run_names_the_member_whose_rights_count(folder: SandboxFolder, tmp_path: Path) -> None:
    def token(**options: str) -> str:
        return engine_environment(folder, tmp_path, Servers(1, 2, {}), {}, **options)["GOOGLE_OAUTH_ACCESS_TOKEN"]

    assert token() == "dummy"
    assert token(member="serviceAccount:deploy@p.example.com") == "as:serviceAccount:deploy@p.example.com"


def test_a_persons_accounts_are_hidden_while_the_engine_runs_and_back_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("PULUMI_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "KUBECONFIG", "https_proxy")
    for name in (*names, "LANG"):
        monkeypatch.setenv(name, "mine")

    with without_personal_settings():
        assert not set(names) & os.environ.keys()
        assert os.environ["LANG"] == "mine"

    assert {os.environ[name] for name in names} == {"mine"}


def test_protection_is_pulumis_or_the_apis() -> None:
    resources: list[dict[str, Any]] = [
        {"urn": "u::p::t::bucket", "protect": True},
        {"urn": "u::p::t::cluster", "outputs": {"deletionProtection": True}},
        {"urn": "u::p::t::share", "outputs": {"deletionProtectionEnabled": True}},
        {"urn": "u::p::t::pool", "outputs": {"deletionProtection": False}},
        {"urn": "u::p::t::stack"},
        {"urn": "u::p::t::read", "external": True, "outputs": {"deletionProtection": True}},
        {"urn": "u::p::t::kept", "retainOnDelete": True, "outputs": {"deletionProtectionEnabled": True}},
    ]

    assert protected(resources) == ["bucket", "cluster", "share"]


@pytest.mark.parametrize("content", ["[]", '{"pid": 1}', '"x"'])
def test_an_announcement_that_names_no_servers_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "server.json").write_text(content)

    with pytest.raises(BrokenFile, match="does not name the servers"):
        served(SandboxFolder(ORGANISATION, tmp_path))


def test_a_running_server_is_found_and_one_that_was_killed_is_not(tmp_path: Path) -> None:
    folder = SandboxFolder(ORGANISATION, tmp_path)
    servers = Servers(1234, 5678, {"*": 1.0})

    with announced(folder, servers):
        assert served(folder) == servers
        file = tmp_path / "server.json"
        file.write_text(file.read_text().replace(str(os.getpid()), "4194304"))  # above the largest id that Linux gives
        assert served(folder) is None
    assert not file.exists()


def test_another_process_with_the_id_of_a_killed_server_is_no_server(tmp_path: Path) -> None:
    folder = SandboxFolder(ORGANISATION, tmp_path)

    with announced(folder, Servers(1234, 5678, {})):
        file = tmp_path / "server.json"
        content = json.loads(file.read_text())
        file.write_text(json.dumps({**content, "pid": 1}))  # another one, which runs

        assert served(folder) is None
    assert is_alive(os.getpid())


def test_serve_prints_what_a_stack_file_needs() -> None:
    lines = list(settings_lines(Servers(1234, 5678, {"*": 5.0}), endpoints(1234)))

    assert "  gcp:containerCustomEndpoint: http://127.0.0.1:1234/container/v1beta1/" in lines
    assert "  gcp:pollInterval: 100ms" in lines
    assert "  gcp:batching: " + '{"sendAfter":"500ms"}' in lines  # the provider's own 3 s add up to 9 for an API
    assert any("PULUMI_DEBUG_PROVIDERS=kubernetes:5678" in line for line in lines)


def test_a_name_that_is_no_stack_is_refused_with_the_nearest() -> None:
    with pytest.raises(CannotRun, match=r"'prd' is not a stack\. Allowed: dev, prod, .*Nearest: 'prod'"):
        read_stacks(ORGANISATION, ["prd"])


def test_a_rejected_stack_file_fails_with_its_findings_before_anything_runs(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    (stacks / "Pulumi.dev.yaml").write_text("config:\n  training-platform:environment: {projet: p}\n")

    with pytest.raises(RunFailed, match="projet"):
        read_stacks(tmp_path, ["dev"])


def test_status_of_a_sandbox_that_was_never_used(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["sandbox", "status", "--root", str(ORGANISATION), "--workspace", str(tmp_path)])

    assert result.exit_code == 0
    assert "stacks: none" in result.output
    assert "quota" not in result.output


def test_outside_a_repository_a_command_ends_with_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["sandbox", "up", "dev", "--root", str(tmp_path)])

    assert result.exit_code == 2
    assert "is not a training-platform repository" in result.output


CLUSTER = "projects/p/locations/l/clusters/dev-a"
PROVIDER = "urn:pulumi:dev::training-platform::pulumi:providers:kubernetes::a"


@pytest.fixture
def folder(tmp_path: Path) -> SandboxFolder:
    (tmp_path / "sandbox").mkdir()
    return SandboxFolder(ORGANISATION, tmp_path / "sandbox")


@pytest.fixture
def binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the variable names, with programs that never run."""
    folder = tmp_path / "kube"
    folder.mkdir()
    for name in ("etcd", "kube-apiserver"):
        (folder / name).touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    return folder


def keep_an_object(folder: SandboxFolder) -> None:
    ObjectStore(folder.kubernetes).ensure_namespace(CLUSTER, "vision")


def keep_a_state(folder: SandboxFolder) -> None:
    state = folder.state / ".pulumi" / "stacks" / PROJECT
    state.mkdir(parents=True)
    resources = [
        {"urn": PROVIDER, "type": "pulumi:providers:kubernetes", "inputs": {"clusterIdentifier": CLUSTER}},
        {"urn": "u::p::t::ns", "type": "kubernetes:core/v1:Namespace", "inputs": {}},
        {"urn": "u::p::t::r", "type": "kubernetes:helm.sh/v3:Release", "inputs": {"name": "kueue"}},
    ]
    (state / "dev.json").write_text(json.dumps({"checkpoint": {"latest": {"resources": resources}}}))


def notes(folder: SandboxFolder) -> str:
    return "\n".join(kubernetes_notes(folder, "dev", ()))


def test_unless_told_otherwise_the_stand_in_keeps_objects(folder: SandboxFolder, binaries: Path) -> None:
    assert api_server_programs(folder, requested=False) is None


def test_api_servers_need_both_programs_in_the_named_folder(
    folder: SandboxFolder, binaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api_server_programs(folder, requested=True) == binaries

    (binaries / "etcd").unlink()
    with pytest.raises(CannotRun, match="needs etcd in the folder that KUBEBUILDER_ASSETS names"):
        api_server_programs(folder, requested=True)
    monkeypatch.delenv("KUBEBUILDER_ASSETS")
    with pytest.raises(CannotRun, match="needs etcd and kube-apiserver"):
        api_server_programs(folder, requested=True)


def test_a_sandbox_with_api_servers_keeps_them(folder: SandboxFolder, binaries: Path) -> None:
    folder.api_servers.mkdir()

    assert api_server_programs(folder, requested=False) == binaries


def test_objects_of_one_sandbox_are_not_in_two_places(folder: SandboxFolder, binaries: Path) -> None:
    keep_an_object(folder)

    with pytest.raises(CannotRun, match="in a file: use another --workspace"):
        api_server_programs(folder, requested=True)


def test_a_summary_says_how_many_objects_went_where_and_what_was_left_out(folder: SandboxFolder) -> None:
    keep_a_state(folder)

    assert "A stand-in for the kubernetes provider keeps 1 Kubernetes object in 1 cluster." in notes(folder)
    assert "Not rendered: the charts of 1 Helm release: 1 kueue." in notes(folder)
    folder.api_servers.mkdir()
    assert (
        "Applied to a real API server for each cluster: 1 Kubernetes object in 1 cluster; no controllers run: their "
        "programs, or their definitions in --crds, are missing."
    ) in notes(folder)
    assert "Not rendered: the charts of 1 Helm release: 1 kueue." in notes(folder)


def test_a_summary_names_the_controllers_that_run_beside_api_servers(folder: SandboxFolder) -> None:
    keep_a_state(folder)
    folder.api_servers.mkdir()

    notes = "\n".join(kubernetes_notes(folder, "dev", (), ("kueue", "jobset")))

    assert (
        "1 Kubernetes object in 1 cluster; controllers of kueue and jobset run in clusters with their charts." in notes
    )


CLUSTER_OF_NODES = "projects/example-lab/locations/us-central1/clusters/main"
L4: dict[str, Any] = {
    "machineType": "g2-standard-8",
    "labels": {"training-platform/flavor": "l4"},
    "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}],
}


def nodes_of(config: dict[str, Any], *, count: int = 1, cluster: str = CLUSTER_OF_NODES, **body: Any) -> dict[str, Any]:
    """Return the nodes of ``CLUSTER_OF_NODES`` if a cluster has one pool that started with ``count`` VMs."""
    whole = {"status": "RUNNING", "locations": ["us-central1-a"], "config": config, **body}
    store = Store()
    name = f"container/{cluster}/nodePools/pool"
    store.put(Record(name=name, project="example-lab", body=whole, meta={"nodes": count}))
    return cluster_nodes(store, CLUSTER_OF_NODES)


def only(config: dict[str, Any], **body: Any) -> dict[str, Any]:
    (node,) = nodes_of(config, **body).values()
    return dict(node)


def taints(node: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(taint["key"], taint["value"], taint["effect"]) for taint in node["spec"]["taints"]}


def test_a_gpu_vm_has_its_labels_its_taint_and_its_room() -> None:
    node = only(L4)

    assert re.fullmatch("gke-main-pool-[0-9a-f]{8}-0", node["metadata"]["name"])
    assert (
        node["metadata"]["labels"].items()
        >= {
            "training-platform/flavor": "l4",
            "cloud.google.com/gke-accelerator": "nvidia-l4",
            "cloud.google.com/gke-nodepool": "pool",
            "node.kubernetes.io/instance-type": "g2-standard-8",
            "topology.kubernetes.io/region": "us-central1",
            "topology.kubernetes.io/zone": "us-central1-a",
        }.items()
    )
    assert taints(node) == {("nvidia.com/gpu", "present", "NoSchedule")}
    room = node["status"]["allocatable"]
    assert (room["nvidia.com/gpu"], room["cpu"], room["memory"]) == ("1", "8", "32Gi")
    assert node["status"]["conditions"][0] == {"type": "Ready", "status": "True", "reason": "KubeletReady"}


@pytest.mark.parametrize(
    "change", [{"locations": ["us-central1-b"]}, {"config": {**L4, "machineType": "g2-standard-16"}}]
)
def test_a_pool_in_another_zone_or_of_another_machine_has_other_vms(change: dict[str, Any]) -> None:
    before = nodes_of(L4).keys()

    assert nodes_of({**L4, "labels": {}}).keys() == before
    assert before.isdisjoint(nodes_of(**{"config": L4, **change}))


def test_a_host_of_a_slice_has_its_chips_and_the_topology_of_the_whole() -> None:
    slices = nodes_of({"machineType": "ct5lp-hightpu-4t"}, count=2, placementPolicy={"tpuTopology": "2x4"})

    assert len(slices) == 2
    for node in slices.values():
        labels = node["metadata"]["labels"]
        assert labels["cloud.google.com/gke-tpu-accelerator"] == "tpu-v5-lite-podslice"
        assert labels["cloud.google.com/gke-tpu-topology"] == "2x4"
        assert node["status"]["allocatable"]["google.com/tpu"] == "4"
        assert taints(node) == {("google.com/tpu", "present", "NoSchedule")}


def test_shared_and_partitioned_gpus_are_as_many_as_pods_can_take() -> None:
    gpu = {
        "acceleratorType": "nvidia-tesla-a100", "acceleratorCount": "1", "gpuPartitionSize": "1g.5gb",
        "gpuSharingConfig": {"maxSharedClientsPerGpu": "2"},
    }  # fmt: skip
    node = only({"machineType": "a2-highgpu-1g", "accelerators": [gpu]})

    assert node["status"]["allocatable"]["nvidia.com/gpu"] == str(7 * 2)


@pytest.mark.parametrize(
    ("config", "body", "label"),
    [
        ({"spot": True}, {}, "gke-spot"),
        ({"flexStart": True}, {}, "gke-flex-start"),
        ({}, {"queuedProvisioning": {"enabled": True}}, "gke-queued"),
    ],
)
def test_the_way_to_get_vms_is_a_label(config: dict[str, Any], body: dict[str, Any], label: str) -> None:
    labels = only({**L4, **config}, **body)["metadata"]["labels"]

    ways = {name for name in labels if name.rpartition("/")[2] in {"gke-spot", "gke-flex-start", "gke-queued"}}
    assert ways == {f"cloud.google.com/{label}"}


def test_a_node_has_its_pools_taints_and_that_of_queued_vms() -> None:
    pool_taints = [{"key": "team", "value": "vision", "effect": "NO_EXECUTE"}]
    node = only({**L4, "taints": pool_taints}, queuedProvisioning={"enabled": True})

    assert taints(node) == {
        ("team", "vision", "NoExecute"), ("nvidia.com/gpu", "present", "NoSchedule"),
        ("cloud.google.com/gke-queued", "true", "NoSchedule"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("count", "autoscaling", "expected"),
    [
        (0, {}, 0),
        (3, {}, 3),
        (1, {"enabled": True, "minNodeCount": 2}, 4),  # in each of two zones
        (5, {"enabled": True, "minNodeCount": 2}, 5),
        (1, {"enabled": True, "totalMinNodeCount": 3}, 3),
        (1, {"enabled": False, "minNodeCount": 2}, 1),
        (MOST_NODES + 1, {}, MOST_NODES),
    ],
)
def test_there_is_a_node_for_each_vm_up_to_a_bound(count: int, autoscaling: dict[str, Any], expected: int) -> None:
    zones = ["us-central1-a", "us-central1-b"]

    assert len(nodes_of(L4, count=count, autoscaling=autoscaling, locations=zones)) == expected


def test_vms_are_spread_over_the_zones() -> None:
    spread = nodes_of(L4, count=2, locations=["us-central1-a", "us-central1-b"]).values()

    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in spread]
    assert zones == ["us-central1-a", "us-central1-b"]


@pytest.mark.parametrize("status", ["PROVISIONING", "ERROR", "STOPPING"])
def test_a_pool_that_is_not_up_has_no_nodes(status: str) -> None:
    assert nodes_of(L4, status=status) == {}


def test_another_clusters_pools_are_not_this_ones() -> None:
    assert nodes_of(L4, cluster=f"{CLUSTER_OF_NODES}-2") == {}
