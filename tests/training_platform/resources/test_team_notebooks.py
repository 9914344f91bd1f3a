"""Notebooks of teams: profiles, what a namespace has for them, and what is found, each value at its boundary."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.support import stack_files
from tests.support.plans import planned_stack
from tests.support.stack_files import workspace_of
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.workloads import Notebooks
from training_platform.config.names import CACHES
from training_platform.config.reading.declaration import located
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace
from training_platform.quota.ledger import capacity_ledger
from training_platform.quota.ledger_findings import capacity_findings
from training_platform.resources.data_sets import notebook_data_sets, team_data_sets
from training_platform.resources.jupyterhub import hub_secret, hub_values
from training_platform.resources.kueue import priorities
from training_platform.resources.notebooks import (
    TEAM_HOMES,
    network_policy,
    team_profiles,
    waiting_chips,
)
from training_platform.resources.scope import environment_scope
from training_platform.rules.workloads import notebook_findings

Json = dict[str, Any]
ENVIRONMENT: Json = yaml.safe_load("""
project: example-dev
production: false
filestore:
  homes: {location: us-central1-a, tier: ZONAL, capacity_gib: 1024}
data_sets:
  files: {filestore: {instance: other, path: a}}
  images: {bucket: {name: example-images, location: us-central1}}
  foreign: {teams: [nlp], bucket: {name: example-nlp, location: us-central1}}
  weights: {hyperdisk_ml: {zone: us-central1-a, size_gib: 100, filled: true}}
  elsewhere: {hyperdisk_ml: {zone: us-central1-b, size_gib: 100, filled: true}}
  filling: {hyperdisk_ml: {zone: us-central1-a, size_gib: 100}, writer: vision}
  far: {lustre: {instance: one, location: europe-west4-a, address: 10.90.0.2, filesystem: lustre}}
clusters:
  main:
    location: us-central1-a
    subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
    node_pools:
      h100: {machine_type: a3-highgpu-8g, max_nodes: 4}
      desks: {machine_type: a3-highgpu-8g, max_nodes: 1}
      queued: {machine_type: a3-highgpu-8g, capacity: queued-provisioning, max_nodes: 4, max_run_hours: 24}
      slices: {machine_type: ct5lp-hightpu-4t, topology: 4x4, slices: 2}
      host: {machine_type: ct5lp-hightpu-8t, topology: 2x4, slices: 4}
""")
ENVIRONMENT["filestore"]["other"] = {**ENVIRONMENT["filestore"]["homes"]}
HUB = {"filestore": "homes", "oauth_client_id": "id", "allowed_domain": "example.com"}
VISION = {"users": ["ada@example.com", "bob@example.com"], "pools": ["h100"]}
QUOTA = "kubernetes:core/v1:ResourceQuota"
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"


def workspace(notebooks: Json, shares: Json | None = None, **environment: Any) -> Workspace:
    home = {**ENVIRONMENT, **environment}
    home["clusters"] = {"main": {**home["clusters"]["main"], "notebooks": {**HUB, **notebooks}}}
    quotas = {"h100": 16, "h100-queued-provisioning": 8, "tpu-v5e-4x4": 16} if shares is None else shares
    return workspace_of(
        {
            "dev": {"environment": home},
            "dev-vision": {"team": stack_files.team("dev", shares=stack_files.shares(**quotas))},
        }
    )


def home_of(loaded: Workspace) -> Environment:
    assert not [str(finding) for stack in loaded.stacks.values() for finding in stack.findings]
    ((_, home),) = loaded.environments()
    return home


def found(notebooks: Json, **environment: Any) -> list[Finding]:
    loaded = workspace(notebooks, **environment)
    home_of(loaded)
    return located(notebook_findings(loaded))


def profile(**notebooks: Any) -> Json:
    home = home_of(workspace({"teams": {"vision": VISION}, **notebooks}))
    cluster = home.clusters["main"]
    assert cluster.notebooks is not None
    data = team_data_sets(home, "main", "vision")
    (only,) = team_profiles("main", cluster, cluster.notebooks, "vision", data)
    return only


def test_a_notebook_of_a_team_is_in_its_namespace_and_queue_below_its_jobs() -> None:
    override = profile()["kubespawner_override"]

    assert (override["namespace"], override["service_account"]) == ("vision", "training")
    assert override["extra_labels"] == {QUEUE: "vision", PRIORITY: "notebooks"}
    values_of = priorities(home_of(workspace({"teams": {"vision": VISION}})))
    assert values_of["notebooks"] < min(0, *(number for name, number in values_of.items() if name != "notebooks"))
    assert "notebooks" not in priorities(home_of(workspace({})))


def test_its_home_is_a_folder_below_the_teams_which_admission_holds_pods_to() -> None:
    override = profile()["kubespawner_override"]
    (owner,) = override["init_containers"]
    home, cache, *_ = override["volume_mounts"]

    assert (home["mountPath"], home["subPath"]) == ("/home/jovyan", "{username}")
    assert owner["volumeMounts"] == [home, cache]
    assert owner["command"][-2:] == [home["mountPath"], cache["mountPath"]]
    assert {"name": "home", "persistentVolumeClaim": {"claimName": TEAM_HOMES}} in override["volumes"]


def test_models_are_kept_once_for_the_team_and_a_users_token_in_the_home() -> None:
    override = profile()["kubespawner_override"]
    (cache,) = [mount for mount in override["volume_mounts"] if mount["mountPath"] == "/cache"]
    variables = override["environment"]

    assert cache == {"name": "home", "mountPath": "/cache", "subPath": ".cache"}
    assert variables["HF_HUB_CACHE"] == "/cache/huggingface/hub"
    assert variables["HF_DATASETS_CACHE"] == "/cache/huggingface/datasets"
    assert variables["HF_HOME"] == "/home/jovyan/.cache/huggingface"


def test_it_mounts_the_data_sets_that_the_team_reads_and_no_others() -> None:
    override = profile()["kubespawner_override"]

    mounted = {mount["mountPath"] for mount in override["volume_mounts"] if mount.get("readOnly")}
    assert mounted == {"/data/files", "/data/images", "/data/weights"}
    claims = [volume.get("persistentVolumeClaim") for volume in override["volumes"]]
    assert {"claimName": "data-set.images", "readOnly": True} in claims
    assert override["extra_annotations"] == {"gke-gcsfuse/volumes": "true"}


@pytest.mark.parametrize("aware", [True, False])
def test_it_asks_for_any_place_of_a_pool_that_kueue_places_pods_on(aware: bool) -> None:
    """Kueue gives it no flavor with a topology else, in a queue that has one without."""
    main = ENVIRONMENT["clusters"]["main"]
    pools = main["node_pools"] | {"h100": {"machine_type": "a3-highgpu-8g", "max_nodes": 4, "topology_aware": aware}}
    notebooks = {**HUB, "teams": {"vision": VISION}}
    text = json.dumps({**main, "node_pools": pools, "notebooks": notebooks})
    cluster = ClusterSpec.model_validate_json(text)
    assert cluster.notebooks is not None

    (only,) = team_profiles("main", cluster, cluster.notebooks, "vision", {})

    annotations = only["kubespawner_override"].get("extra_annotations", {})
    assert annotations == ({"kueue.x-k8s.io/podset-unconstrained-topology": "true"} if aware else {})


@pytest.mark.parametrize("buckets", [False, True])
def test_notebooks_of_everybody_mount_buckets_where_they_have_an_account(buckets: bool) -> None:
    home = home_of(workspace({"buckets": buckets}))
    cluster = home.clusters["main"]
    assert cluster.notebooks is not None
    data = notebook_data_sets(home, "main")
    single = hub_values("main", cluster, cluster.notebooks, "homes", data)["singleuser"]

    assert set(data) == ({"files", "images"} if buckets else {"files"})  # no disk, and nothing of one team
    data_paths = {f"DATA_SET_{name.upper()}" for name in data}
    assert set(single["extraEnv"]) == data_paths | CACHES.keys() | {"JUPYTERHUB_ACTIVITY_INTERVAL"}
    assert single.get("serviceAccountName") == ("notebooks" if buckets else None)
    assert ("extraAnnotations" in single) is buckets


def test_the_hub_hears_of_its_use_within_the_shortest_idle_time() -> None:
    interval = int(profile()["kubespawner_override"]["environment"]["JUPYTERHUB_ACTIVITY_INTERVAL"])
    jitter = 1.1  # jupyterhub 5.5.0, singleuser/extension.py
    (minimum,) = Notebooks.model_fields["idle_minutes"].metadata

    assert interval * jitter < minimum.ge * 60


def test_it_says_when_it_ends() -> None:
    description = profile(idle_minutes=45)["description"]

    assert "ends when jobs of the team need its accelerators or after 45 idle minutes" in description


def test_namespaces_are_opened_between_hub_and_notebooks_and_towards_nothing_else() -> None:
    spec = network_policy(closed=True)

    assert spec["podSelector"] == {"matchLabels": {"component": "singleuser-server"}}
    hub = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "jupyterhub"}}}
    assert spec["ingress"] == [{"from": [hub], "ports": [{"protocol": "TCP", "port": 8888}]}]
    assert spec["egress"] == [{"to": [hub], "ports": [{"protocol": "TCP", "port": 8081}]}]
    assert "Egress" not in network_policy(closed=False)["policyTypes"]


def test_pods_that_wait_have_room_in_the_namespaces_quota() -> None:
    loaded = workspace({"teams": {"vision": VISION}})
    cluster = home_of(loaded).clusters["main"]

    assert waiting_chips("main", cluster, "vision", loaded.flavors("dev", "main")) == {"h100": 2 * 8}
    assert waiting_chips("main", cluster, "nlp", loaded.flavors("dev", "main")) == {}
    gpus = [
        int(planned_stack(row.stacks["dev-vision"], row).one(QUOTA).inputs["spec"]["hard"]["requests.nvidia.com/gpu"])
        for row in (loaded, workspace({}))
    ]
    assert gpus[0] - gpus[1] == 2 * 8


def hub(**notebooks: Any) -> Json:
    home = home_of(workspace(notebooks))
    cluster = home.clusters["main"]
    assert cluster.notebooks is not None
    kept = hub_secret(environment_scope("dev", home), "main", cluster.notebooks)
    return hub_values("main", cluster, cluster.notebooks, "homes", secret=kept)


def test_without_a_host_the_hub_is_reached_by_port_forward() -> None:
    callback = hub()["hub"]["config"]["GoogleOAuthenticator"]["oauth_callback_url"]

    assert callback == "http://localhost:8000/hub/oauth_callback"


def test_the_secret_of_secret_manager_is_read_by_the_hubs_own_account_and_written_nowhere() -> None:
    values = hub(oauth_secret={"secret_manager": True})

    secret = "projects/example-dev/secrets/dev-jupyterhub-oauth/versions/latest"
    assert values["custom"]["oauthSecret"] == secret
    account = values["hub"]["serviceAccount"]["annotations"]["iam.gke.io/gcp-service-account"]
    assert account == "dev-main-hub@example-dev.iam.gserviceaccount.com"
    assert "extraEnv" not in values["hub"]


def test_the_hub_lets_in_notebooks_of_other_namespaces_only_where_teams_have_them() -> None:
    policy = {"interNamespaceAccessLabels": "accept"}

    assert hub(teams={"vision": VISION})["hub"]["networkPolicy"] == policy
    assert "networkPolicy" not in hub()["hub"]


def test_notebooks_of_a_team_with_its_share_are_no_finding() -> None:
    assert found({"teams": {"vision": VISION}}) == []


@pytest.mark.parametrize(
    ("teams", "path", "message"),
    [
        ({"visio": VISION}, "teams.visio", "no stack of a team 'visio'"),
        ({"vision": {**VISION, "pools": ["host"]}}, "teams.vision.pools[0]", "has no share of tpu-v5e-2x4"),
        ({"vision": {**VISION, "pools": ["slices"]}}, "teams.vision.pools[0]", "slices cannot run notebooks"),
        ({"vision": {**VISION, "pools": ["queued"]}}, "teams.vision.pools[0]", "queued cannot run notebooks"),
        ({"vision": {**VISION, "users": ["ada@example.org"]}}, "teams.vision.users[0]", "is not an account of"),
    ],
)
def test_notebooks_that_nobody_could_start_are_found(teams: Json, path: str, message: str) -> None:
    (finding,) = found({"teams": teams})

    assert (finding.rule, finding.path) == ("notebooks-of-teams", f"clusters.main.notebooks.{path}")
    assert message in finding.message


def test_an_image_that_admission_refuses_is_found() -> None:
    sources = ["registry.example.com/"]
    teams = {"vision": VISION}

    assert [finding.path for finding in found({"teams": teams}, image_sources=sources)] == [
        "clusters.main.notebooks.image"
    ]
    assert found({"teams": teams, "image": "registry.example.com/lab:1"}, image_sources=sources) == []
    assert found({}, image_sources=sources) == []


@pytest.mark.parametrize(
    ("teams", "path"),
    [
        ({"vision": {**VISION, "pools": ["h10"]}}, "clusters.main.notebooks.teams.vision.pools[0]"),
        ({"vision": {**VISION, "pools": ["desks"]}}, "clusters.main.notebooks.teams.vision.pools[0]"),
        ({"vision": {**VISION, "users": []}}, "clusters.main.notebooks.teams.vision.users"),
    ],
)
def test_pools_that_are_not_there_or_are_nobodys_are_refused(teams: Json, path: str) -> None:
    (finding,) = workspace({"pools": ["desks"], "teams": teams}).stacks["dev"].findings

    assert finding.path == path


@pytest.mark.parametrize(("promised", "rules"), [(32, []), (40, ["capacity-exceeded", "notebook-pool-promised"])])
def test_a_pool_for_notebooks_without_queue_that_teams_were_promised_is_found(promised: int, rules: list[str]) -> None:
    loaded = workspace({"pools": ["desks"]}, {"h100": promised})
    home_of(loaded)

    over = capacity_findings(capacity_ledger(loaded), loaded)

    assert [finding.rule for finding in over] == rules
    if rules:
        assert over[-1].path == "clusters.main.notebooks.pools[0]"
        assert (
            "teams were promised 40 nvidia.com/gpu, but the pools that notebooks cannot use have 32" in over[-1].message
        )
