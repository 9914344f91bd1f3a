"""Model servers of a team's file: what they become, and what is found of them, each value at its boundary."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.support import stack_files
from tests.support.plans import PlannedStack, composed, planned_stack
from tests.support.stack_files import workspace_of
from training_platform.catalog import IMAGES
from training_platform.config.reading.declaration import located
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace
from training_platform.quota.ledger import capacity_ledger
from training_platform.quota.overview import of_servers
from training_platform.resources.kueue import configuration, priorities
from training_platform.resources.metrics_adapter import let_pods_act, metrics_account, metrics_adapter
from training_platform.resources.plan import Component, Resource
from training_platform.resources.pod_admission import CONFINED
from training_platform.resources.scope import Scope, team_scope
from training_platform.resources.serving import (
    OPERATOR,
    autoscaler,
    chips_of,
    deployment,
    gated_chips,
    leader_worker_set,
    pod_monitoring,
    server_labels,
    service,
    set_annotations,
)
from training_platform.resources.tenancy import resource_quota
from training_platform.rules.workloads import serving_findings

Json = dict[str, Any]
ENVIRONMENT: Json = yaml.safe_load("""
project: example-dev
production: false
clusters:
  main:
    location: us-central1-a
    serving: true
    subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
    node_pools:
      h100: {machine_type: a3-highgpu-8g, max_nodes: 4}
      queued: {machine_type: a3-highgpu-8g, capacity: queued-provisioning, max_nodes: 4, max_run_hours: 24}
      host: {machine_type: ct5lp-hightpu-8t, topology: 2x4, slices: 4}
      slice: {machine_type: ct5lp-hightpu-4t, topology: 4x4, slices: 2}
  other:
    location: us-central1-a
    subnet: {nodes: 10.2.0.0/20, pods: 10.65.0.0/16, services: 10.3.0.0/20}
    node_pools: {h100: {machine_type: a3-highgpu-8g, max_nodes: 4}}
""")
SHARES = {
    "main": {
        name: {"nominal_quota": 16} for name in ("h100", "h100-queued-provisioning", "tpu-v5e-2x4", "tpu-v5e-4x4")
    },
    "other": {"h100": {"nominal_quota": 8}},
}
SERVER = {"flavor": "h100", "image": "example.com/vllm:1", "max_replicas": 2}


def workspace(servers: Json, environment: Json | None = None, cluster: str = "main", **team: Any) -> Workspace:
    section = stack_files.team("dev", **{"shares": SHARES, **team})
    return workspace_of(
        {
            "dev": {"environment": {**ENVIRONMENT, **(environment or {})}},
            "dev-vision": {"team": {**section, "serving": {cluster: servers}}},
        }
    )


def shape(server: Json, **team: Any) -> list[Finding]:
    """Return what the model and the references of a server say."""
    return list(workspace({"chat": {**SERVER, **server}}, **team).stacks["dev-vision"].findings)


def found(server: Json, environment: Json | None = None, **team: Any) -> list[Finding]:
    loaded = workspace({"chat": {**SERVER, **server}}, environment, **team)
    assert not loaded.stacks["dev-vision"].findings
    return located(serving_findings(loaded))


def test_a_server_within_its_share_is_no_finding() -> None:
    assert found({}) == []


def test_one_replica_more_than_the_share_holds_is_found() -> None:
    (finding,) = found({"max_replicas": 3})

    assert (finding.rule, finding.path) == ("serving-over-share", "serving.main.chat.max_replicas")
    assert f"can request {3 * 8} nvidia.com/gpu (chat {3 * 8}), but the team's share is 16" in finding.message
    assert finding.nearest == "2"


def test_servers_of_one_share_are_counted_together() -> None:
    servers = {"one": SERVER, "two": {**SERVER, "chips": 1, "max_replicas": 1}}

    over = located(serving_findings(workspace(servers)))

    assert [(finding.path, finding.allowed) for finding in over] == [
        ("serving.main.one.max_replicas", "at most 1 in addition to the others"),
        ("serving.main.two.max_replicas", "a larger share"),
    ]
    assert list(serving_findings(workspace({"one": {**SERVER, "max_replicas": 1}, "two": servers["two"]}))) == []


@pytest.mark.parametrize(
    ("server", "path", "message"),
    [
        (
            {"flavor": "tpu-v5e-4x4", "max_replicas": 1},
            "flavor",
            "tpu-v5e-4x4 has 4 VMs, but its cluster does not have the operator",
        ),
        (
            {"vms": 2, "max_replicas": 1},
            "flavor",
            "h100 has 2 VMs, but its cluster does not have the operator leader-worker-set",
        ),
        ({"flavor": "tpu-v5e-4x4", "vms": 2, "max_replicas": 1}, "vms", "is 2, but a slice of tpu-v5e-4x4 has 4"),
        ({"worker_command": ["ray"]}, "worker_command", "has no effect: a replica on h100 has only one VM"),
        ({"flavor": "tpu-v5e-2x4", "vms": 2}, "vms", "is 2, but a slice of tpu-v5e-2x4 has 1"),
        ({"flavor": "h100-queued-provisioning"}, "flavor", "are created for one job"),
        ({"chips": 9, "max_replicas": 1}, "chips", "is 9, but a VM of h100 has 8"),
        (
            {"flavor": "tpu-v5e-2x4", "chips": 4},
            "chips",
            "is 4, but a VM of tpu-v5e-2x4 has 8, and a pod has to use all of them",
        ),
    ],
)
def test_a_flavor_that_holds_no_such_pod_is_found(server: Json, path: str, message: str) -> None:
    (finding,) = found(server)

    assert (finding.rule, finding.path) == ("serving-fits", f"serving.main.chat.{path}")
    assert message in finding.message


SEVERAL = {
    "clusters": {**ENVIRONMENT["clusters"], "main": {**ENVIRONMENT["clusters"]["main"], "operators": [OPERATOR]}}
}


@pytest.mark.parametrize(
    ("server", "size", "chips"), [({"flavor": "tpu-v5e-4x4"}, 4, 4), ({"vms": 2, "worker_command": ["ray"]}, 2, 8)]
)
def test_a_replica_of_several_vms_is_a_group_that_takes_them_whole(server: Json, size: int, chips: int) -> None:
    assert found({**server, "max_replicas": 1}, SEVERAL) == []
    (over,) = found({**server, "max_replicas": 2}, SEVERAL)
    assert (over.rule, over.nearest) == ("serving-over-share", "1")
    assert f"can request {2 * size * chips} " in over.message
    chat, flavor, scope = made(server, SEVERAL)

    group = leader_worker_set("chat", chat, flavor, scope)["leaderWorkerTemplate"]

    assert group["size"] == size
    (leader,), (worker,) = (group[f"{role}Template"]["spec"]["containers"] for role in ("leader", "worker"))
    assert leader["resources"] == worker["resources"]
    assert [*worker["resources"]["limits"].values()] == [str(chips)]
    assert [("readinessProbe" in container) for container in (leader, worker)] == [True, False]
    assert worker.get("command", []) == server.get("worker_command", [])
    # The Service, the scrape and the autoscaler ask the pod that answers alone.
    selector = service("chat", chat)["selector"]
    assert selector.items() <= group["leaderTemplate"]["metadata"]["labels"].items()
    assert "labels" not in group["workerTemplate"].get("metadata", {})
    assert autoscaler("chat", chat, flavor)["scaleTargetRef"]["kind"] == "LeaderWorkerSet"


def test_a_pod_of_several_takes_all_gpus_of_its_vm() -> None:
    (finding,) = found({"vms": 2, "chips": 4, "max_replicas": 1}, SEVERAL)

    assert (finding.path, finding.nearest) == ("serving.main.chat.chips", "8")


@pytest.mark.parametrize("aware", [True, False])
def test_a_pod_of_one_vm_asks_for_any_place_where_kueue_places_pods(aware: bool) -> None:
    """Kueue gives it no flavor with a topology else, in a queue that has one without."""
    main = ENVIRONMENT["clusters"]["main"]
    pools = {"h100": {"machine_type": "a3-highgpu-8g", "max_nodes": 4, "topology_aware": aware}}
    shares = {"main": {"h100": {"nominal_quota": 16}}}
    chat, flavor, scope = made({}, {"clusters": {"main": {**main, "node_pools": pools}}}, shares=shares)

    placed = deployment("chat", chat, flavor, scope)["template"]["metadata"].get("annotations", {})

    assert placed == ({"kueue.x-k8s.io/podset-unconstrained-topology": "true"} if aware else {})


@pytest.mark.parametrize("aware", [True, False])
def test_a_group_has_a_slice_for_itself_by_its_controller_or_by_kueue(aware: bool) -> None:
    pool = {
        "machine_type": "ct5lp-hightpu-4t",
        "topology": "4x4",
        "slices": 2,
        "min_slices": 2,
        "topology_aware": aware,
    }
    main = {**SEVERAL["clusters"]["main"], "node_pools": {"slice": pool}}
    shares = {"main": {"tpu-v5e-4x4": {"nominal_quota": 16}}}
    chat, flavor, scope = made({"flavor": "tpu-v5e-4x4"}, {"clusters": {"main": main}}, shares=shares)

    group = leader_worker_set("chat", chat, flavor, scope)["leaderWorkerTemplate"]

    exclusive = set_annotations(flavor).get("leaderworkerset.sigs.k8s.io/exclusive-topology")
    required = [
        group[f"{role}Template"]
        .get("metadata", {})
        .get("annotations", {})
        .get("kueue.x-k8s.io/podset-required-topology")
        for role in ("leader", "worker")
    ]
    node_pool = "cloud.google.com/gke-nodepool"
    assert (exclusive, required) == ((None, [node_pool] * 2) if aware else (node_pool, [None] * 2))


def test_an_image_from_elsewhere_is_found() -> None:
    assert found({}, {"image_sources": ["example.com/"]}) == []
    assert [finding.path for finding in found({}, {"image_sources": ["example.org/"]})] == ["serving.main.chat.image"]


def test_training_that_does_not_yield_is_a_warning() -> None:
    (never,) = found({}, preemption={"within_queue": "Never"})
    (low,) = found({"priority": "normal"})

    assert [(finding.severity, finding.path) for finding in (never, low)] == [
        ("warning", "preemption.within_queue"),
        ("warning", "serving.main.chat.priority"),
    ]
    assert "normal is below high, serving" in low.message


@pytest.mark.parametrize(
    ("server", "path", "nearest"),
    [
        ({"flavor": "h10"}, "serving.main.chat.flavor", "h100"),
        ({"secrets": {"TOKEN": "hugging"}, "command": ["a"]}, "serving.main.chat.secrets.TOKEN", None),
        ({"priority": "hihg"}, "serving.main.chat.priority", "high"),
        ({"min_replicas": 3}, "serving.main.chat.min_replicas", "2"),
        ({"secrets": {"TOKEN": "hugging-face"}}, "serving.main.chat", None),
        ({"server": "vlm"}, "serving.main.chat.server", "vllm"),
        ({"metric": "queue"}, "serving.main.chat", None),
        ({"env": {"A": "1"}, "secrets": {"A": "hugging-face"}, "command": ["a"]}, "serving.main.chat.secrets.A", None),
    ],
)
def test_what_a_server_cannot_be_is_found_at_its_field(server: Json, path: str, nearest: str | None) -> None:
    (finding,) = shape(server, secrets=["hugging-face"])

    assert finding.path.startswith(path)
    if nearest:
        assert finding.nearest == nearest


@pytest.mark.parametrize(
    ("cluster", "message"), [("mian", "is not a cluster"), ("other", "is not set up for model servers")]
)
def test_a_cluster_without_model_servers_is_found(cluster: str, message: str) -> None:
    (finding,) = workspace({"chat": SERVER}, cluster=cluster).stacks["dev-vision"].findings

    assert (finding.path, finding.nearest) == (f"serving.{cluster}", "main")
    assert message in finding.message


def made(server: Json, environment: Json | None = None, **team: Any) -> tuple[Any, Any, Any]:
    stacks = workspace({"chat": {**SERVER, **server}}, environment, **team)
    assert not stacks.stacks["dev-vision"].findings
    ((_, spec, home),) = stacks.teams()
    chat = spec.serving["main"]["chat"]
    return chat, stacks.flavors("dev", "main")[chat.flavor], team_scope(spec, home)


def test_a_pod_takes_a_vm_of_its_flavor_and_waits_in_the_teams_queue_above_training() -> None:
    server, flavor, scope = made({})

    spec = deployment("chat", server, flavor, scope)["template"]["spec"]

    assert spec["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert spec["nodeSelector"]["training-platform/flavor"] == "h100"
    assert server_labels("vision", server) == {
        "kueue.x-k8s.io/queue-name": "vision",
        "kueue.x-k8s.io/priority-class": "serving",
    }
    home = workspace({}).stacks["dev"].environment
    assert home is not None
    values = priorities(home)
    assert values["serving"] > max(value for name, value in values.items() if name != "serving")


@pytest.mark.parametrize(("chips", "shared"), [(1, False), (2, True)])
def test_a_pod_of_several_chips_has_memory_that_its_processes_share(chips: int, shared: bool) -> None:
    pod = deployment("chat", *made({"chips": chips}))["template"]["spec"]

    assert ("volumes" in pod, "volumeMounts" in pod["containers"][0]) == (shared, shared)


@pytest.mark.parametrize(("confined", "context"), [(True, CONFINED), (False, None)])
def test_each_pod_of_a_confined_teams_server_has_a_filter_of_system_calls(confined: bool, context: Json | None) -> None:
    server, flavor, scope = made({})
    group = leader_worker_set("chat", server, flavor, scope, confined=confined)["leaderWorkerTemplate"]
    templates = [group["leaderTemplate"], group["workerTemplate"]]
    templates.append(deployment("chat", server, flavor, scope, confined=confined)["template"])

    contexts = [template["spec"]["containers"][0].get("securityContext") for template in templates]
    assert contexts == [context] * 3


def test_an_update_asks_for_no_pod_more_than_the_share_is_counted_for() -> None:
    assert deployment("chat", *made({}))["strategy"]["rollingUpdate"]["maxSurge"] == 0


def test_a_secret_is_fetched_by_the_launcher_and_is_nowhere_in_the_pod() -> None:
    secrets = {"secrets": {"TOKEN": "hugging-face:2"}, "command": ["vllm", "serve"], "args": ["--a"]}

    (container,) = deployment("chat", *made(secrets, secrets=["hugging-face"]))["template"]["spec"]["containers"]

    assert container["command"][:2] == ["python3", "-c"]
    assert container["args"] == ["vllm", "serve", "--a"]
    (orders,) = [variable["value"] for variable in container["env"] if variable["name"] == "TRAINING_LAUNCH"]
    secret = "projects/example-dev/secrets/dev-vision-hugging-face/versions/2"  # a name
    assert json.loads(orders) == {"secrets": {"TOKEN": secret}}


def test_the_autoscaler_asks_for_the_servers_queue_as_the_adapter_calls_it() -> None:
    server, flavor, _ = made({})

    spec = autoscaler("chat", server, flavor)

    (metric,) = spec["metrics"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 2)
    assert metric["pods"]["metric"]["name"] == "prometheus.googleapis.com|vllm:num_requests_waiting|gauge"
    assert metric["pods"]["target"] == {"type": "AverageValue", "averageValue": "5"}


@pytest.mark.parametrize(("server", "port"), [({}, 8000), ({"port": 9000}, 9000), ({"server": "sglang"}, 30000)])
def test_a_server_answers_is_probed_and_scraped_on_one_port(server: Json, port: int) -> None:
    chat, flavor, scope = made(server)

    (container,) = deployment("chat", chat, flavor, scope)["template"]["spec"]["containers"]

    assert container["ports"] == [{"name": "serve", "containerPort": port}]
    assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": "serve"}
    assert service("chat", chat)["ports"][0]["port"] == port
    assert pod_monitoring("chat")["endpoints"][0]["port"] == "serve"


def test_pods_that_wait_beside_running_training_fit_into_the_namespaces_quota() -> None:
    stacks = workspace({"chat": SERVER})
    ((_, team, _),) = stacks.teams()
    flavors = stacks.flavors("dev", "main")
    shares = team.shares["main"]
    waiting = gated_chips(team, "main", flavors)

    assert waiting == {"h100": 2 * chips_of(team.serving["main"]["chat"], flavors["h100"])}
    before = resource_quota(shares, flavors)
    after = resource_quota(shares, flavors, waiting)
    gpus = "requests.nvidia.com/gpu"
    assert int(after[gpus]) - int(before[gpus]) == 2 * 8


def test_kueue_queues_pods_only_where_something_needs_it() -> None:
    without, with_pods = (set(configuration([], pods=pods)["integrations"]["frameworks"]) for pods in (False, True))

    assert with_pods - without == {"pod", "deployment", "leaderworkerset.x-k8s.io/leaderworkerset"}


def test_the_capacity_ledger_says_what_servers_can_have_of_a_share() -> None:
    stacks = workspace({"one": SERVER, "two": {**SERVER, "chips": 2, "max_replicas": 3}})
    line = next(line for line in capacity_ledger(stacks) if line.cluster == "main" and line.flavor.name == "h100")
    (share,) = line.shares

    assert of_servers(line, share, stacks) == 2 * 8 + 3 * 2
    other = next(line for line in capacity_ledger(stacks) if line.cluster == "other")
    assert of_servers(other, other.shares[0], stacks) == 0


GCP = "gcp:projects/iAMMember:IAMMember"


@pytest.fixture
def adapter(scope: Scope) -> PlannedStack:
    def compose(into: Component) -> None:
        cluster = into.add(Resource(type="gcp:container/cluster:Cluster", name="main", inputs={}))
        account = metrics_account(into, scope)
        let_pods_act(into, account, scope, [cluster])
        metrics_adapter(into, scope, account.output("email"))

    return composed(compose)


def test_the_adapters_account_views_metrics_and_no_more(adapter: PlannedStack) -> None:
    roles = [resource.inputs["role"] for resource in adapter.resources if resource.type == GCP]
    (workload,) = [
        resource for resource in adapter.resources if resource.type == "gcp:serviceaccount/iAMMember:IAMMember"
    ]

    assert roles == ["roles/monitoring.viewer"]
    assert workload.inputs["role"] == "roles/iam.workloadIdentityUser"
    member = str(workload.inputs["member"])
    assert member.endswith("[custom-metrics/custom-metrics-stackdriver-adapter]")


def test_autoscalers_ask_the_adapter_in_both_versions(adapter: PlannedStack) -> None:
    services = {
        api_service.inputs["metadata"]["name"]: api_service.inputs["spec"]
        for api_service in of_kind(adapter, "APIService")
    }

    assert set(services) == {"v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"}
    (service,) = of_kind(adapter, "Service")
    for spec in services.values():
        assert spec["service"] == {key: service.inputs["metadata"][key] for key in ("name", "namespace")}


def test_its_pods_are_those_that_its_service_reaches_and_run_the_catalogues_image(adapter: PlannedStack) -> None:
    (pods,) = of_kind(adapter, "Deployment")
    (service,) = of_kind(adapter, "Service")
    template = pods.inputs["spec"]["template"]

    assert service.inputs["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert template["spec"]["containers"][0]["image"] == IMAGES["metrics-adapter"]
    assert "--use-new-resource-model=true" in template["spec"]["containers"][0]["command"]


def of_kind(plan: PlannedStack, kind: str) -> list[Any]:
    return [resource for resource in plan.resources if resource.inputs.get("kind") == kind]


@pytest.mark.parametrize(("vms", "role"), [(1, "deployment"), (2, "groups")])
def test_a_replica_of_two_vms_is_planned_as_a_group(vms: int, role: str) -> None:
    server = {**SERVER, "vms": vms, "max_replicas": 1}
    servers = workspace({"chat": server}, SEVERAL)

    names = [resource.name for resource in planned_stack(servers.stacks["dev-vision"], servers).resources]

    assert [name for name in names if name.endswith(("-deployment", "-groups"))] == [f"serving-main-chat-{role}"]
