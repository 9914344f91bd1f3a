"""A cluster of the user's own: which are refused, and what keeps a real one unharmed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.parts.sandbox.run.repositories import without_stacks
from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import ApiKind
from training_platform.config.model.stack import PROJECT
from training_platform.config.workspace import read_workspace
from training_platform.parts.sandbox.run import user_cluster
from training_platform.parts.sandbox.run.folder import CannotRun, SandboxFolder
from training_platform.parts.sandbox.run.redirection import MARK
from training_platform.parts.sandbox.run.user_cluster import (
    MARKER,
    UserCluster,
    chosen_cluster,
    claim,
    cluster_variables,
    created_objects,
    program,
    read_context,
    refuse_objects_without_stack,
    release,
)
from training_platform.resources.plan import Plan
from training_platform.resources.resource_types import NAMESPACE, RELEASE
from training_platform.resources.stack_plan import stack_plan

ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-lab
    production: false
    clusters:
      main:
        location: us-central1-a
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        node_pools:
          l4: {machine_type: g2-standard-8, max_nodes: 4}
"""


def kubeconfig(folder: Path, name: str = "kind-lab", *, user: Any = None, **cluster: Any) -> Path:
    """Write a kubeconfig with one context."""
    config = {
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "other"}}],
        "clusters": [{"name": name, "cluster": {"server": "https://127.0.0.1:6443", **cluster}}],
        "users": [{"name": name, "user": {"token": "t"} if user is None else user}],
        "current-context": name,
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "server",
    [
        "https://127.0.0.1:6443", "https://localhost:6443", "https://[::1]:6443", "https://0.0.0.0:40000",
        "https://192.168.49.2:8443", "https://10.0.0.1", "https://172.31.255.255", "https://[fd00::1]:6443",
    ],
)  # fmt: skip
def test_a_cluster_on_this_machine_or_in_a_private_network_is_taken(server: str, tmp_path: Path) -> None:
    config = read_context(kubeconfig(tmp_path, server=server), "kind-lab")

    assert config["clusters"][0]["cluster"]["server"] == server
    assert config["contexts"] == [{"name": "kind-lab", "context": {"cluster": "kind-lab", "user": "kind-lab"}}]


@pytest.mark.parametrize(
    "server",
    [
        "https://34.1.2.3", "https://203.0.113.4:6443", "https://172.32.0.1", "https://169.254.1.1", "https://100.64.0.1",
        "https://gke-1a2b.us-central1.gke.goog", "https://127.0.0.1.example.com", "https://[::ffff:34.1.2.3]",
        "https://127.0.0.1@34.1.2.3", "http://127.0.0.1:8080", "",
    ],
)  # fmt: skip
def test_every_other_server_is_refused(server: str, tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="neither on this machine nor a private address"):
        read_context(kubeconfig(tmp_path, server=server), "kind-lab")


@pytest.mark.parametrize("user", [{"exec": {"command": "gke-gcloud-auth-plugin"}}, {"auth-provider": {"name": "gcp"}}])
def test_a_user_who_logs_in_by_a_program_is_refused(user: Json, tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=f"its kubeconfig has {next(iter(user))}"):
        read_context(kubeconfig(tmp_path, user=user), "kind-lab")


def test_a_server_behind_a_proxy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="its kubeconfig has proxy-url"):
        read_context(kubeconfig(tmp_path, **{"proxy-url": "https://proxy.example.com"}), "kind-lab")


def test_a_context_of_gke_is_refused_whatever_its_server(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="it is a cluster of GKE"):
        read_context(kubeconfig(tmp_path, "gke_p_us-central1_c"), "gke_p_us-central1_c")


def test_a_context_is_named_and_never_guessed(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path)
    folder = SandboxFolder(tmp_path, tmp_path / "sandbox")

    with pytest.raises(CannotRun, match=r"Allowed: kind-lab\. Nearest: kind-lab"):
        read_context(file, "kind-lad")
    for options in ((file, None), (None, "kind-lab")):
        with pytest.raises(CannotRun, match="must be set together"):
            chosen_cluster(folder, *options)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a",
        "contexts: []",
        "{",
        "contexts: [a]\nclusters: []\nusers: []",
        "contexts: [{name: a, context: b}]\nclusters: []\nusers: []",
    ],
)
def test_a_file_that_is_no_kubeconfig_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(text)

    with pytest.raises(CannotRun, match="kubeconfig"):
        read_context(tmp_path / "kubeconfig", "a")


def test_files_of_certificates_are_found_from_another_folder(tmp_path: Path) -> None:
    user = {"client-certificate": "client.crt", "client-key": "/keys/client.key"}
    config = read_context(kubeconfig(tmp_path, user=user, **{"certificate-authority": "ca.crt"}), "kind-lab")

    assert config["clusters"][0]["cluster"]["certificate-authority"] == str(tmp_path / "ca.crt")
    assert config["users"][0]["user"] == {
        "client-certificate": str(tmp_path / "client.crt"),
        "client-key": "/keys/client.key",
    }


# The choice


@pytest.fixture
def folder(tmp_path: Path) -> SandboxFolder:
    return SandboxFolder(tmp_path, tmp_path / "sandbox")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Callable[[SandboxFolder, Path], UserCluster]:
    """Return a function that lets a sandbox keep the cluster of a kubeconfig."""
    monkeypatch.setattr(user_cluster, "connect", lambda *_, **__: StubApi())

    def keep_cluster(folder: SandboxFolder, file: Path) -> UserCluster:
        chosen = chosen_cluster(folder, file, "kind-lab")
        assert chosen is not None
        claim(chosen, folder, [], mark=True)
        return chosen

    return keep_cluster


Kept = Callable[[SandboxFolder, Path], UserCluster]


def test_a_sandbox_keeps_its_cluster_and_no_other_one(folder: SandboxFolder, tmp_path: Path, kept: Kept) -> None:
    file = kubeconfig(tmp_path)
    chosen = kept(folder, file)

    assert chosen_cluster(folder, None, None) == chosen == chosen_cluster(folder, file, "kind-lab")
    with pytest.raises(CannotRun, match="this sandbox uses context kind-lab"):
        chosen_cluster(folder, file, "kind-other")
    assert (folder.path / "cluster-kubeconfig.json").stat().st_mode & 0o077 == 0


def test_a_cluster_that_was_refused_is_not_kept(folder: SandboxFolder, tmp_path: Path, kept: Kept) -> None:
    chosen_cluster(folder, kubeconfig(tmp_path), "kind-lab")

    assert chosen_cluster(folder, None, None) is None


def test_a_cluster_that_became_another_kind_of_cluster_is_refused_later(
    folder: SandboxFolder, tmp_path: Path, kept: Kept
) -> None:
    kept(folder, kubeconfig(tmp_path))
    kubeconfig(tmp_path, server="https://34.1.2.3")

    with pytest.raises(CannotRun, match="neither on this machine"):
        chosen_cluster(folder, None, None)


def test_a_sandbox_with_objects_in_the_substitute_moves_into_no_cluster(folder: SandboxFolder, tmp_path: Path) -> None:
    keep(folder)

    with pytest.raises(CannotRun, match="has stacks without a cluster"):
        chosen_cluster(folder, kubeconfig(tmp_path), "kind-lab")


# The cluster


class StubApi:
    """A cluster of objects by plural, namespace and name, which records what is created and deleted."""

    def __init__(self, *objects: tuple[str, str, str, str | None], kueue: bool = False) -> None:
        self.objects = {row[:3]: self._object(row[3]) for row in objects}
        self.kueue = kueue

    @staticmethod
    def _object(mark: str | None) -> Json:
        return {"metadata": {"labels": {MARK: mark}} if mark else {}}

    def get(self, kind: ApiKind, namespace: str, name: str) -> Json | None:
        return self.objects.get((kind.plural, namespace, name))

    def kinds(self, version: str) -> dict[str, tuple[ApiKind, bool]]:
        if version.startswith("kueue"):
            return {"ClusterQueue": (ApiKind(f"apis/{version}", "clusterqueues"), False)} if self.kueue else {}
        return {"Namespace": (ApiKind("api/v1", "namespaces"), False)}

    def create(self, kind: ApiKind, namespace: str, obj: Json, *, dry_run: bool) -> None:
        assert not dry_run
        self.objects[kind.plural, namespace, obj["metadata"]["name"]] = obj

    def delete(self, kind: ApiKind, namespace: str, name: str) -> bool:
        return self.objects.pop((kind.plural, namespace, name), None) is not None


def keep(folder: SandboxFolder, *names: str, type_: str = NAMESPACE) -> None:
    """Write a state with resources of a type."""
    state = folder.state / ".pulumi" / "stacks" / PROJECT
    state.mkdir(parents=True, exist_ok=True)
    resources = [{"urn": f"u::{name}", "type": type_, "id": name, "custom": True} for name in names]
    (state / "lab.json").write_text(json.dumps({"checkpoint": {"latest": {"resources": resources}}}))


Claim = Callable[..., StubApi]


@pytest.fixture
def claimed(folder: SandboxFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Claim:
    """Return a function that claims a stub of a cluster for a sandbox with the mark ``ours``."""
    root = tmp_path / "repository"
    without_stacks(root)
    (root / "stacks" / "Pulumi.lab.yaml").write_text(ENVIRONMENT)
    workspace = read_workspace(root)
    plan = stack_plan(workspace.stacks["lab"], workspace)
    assert plan is not None
    cluster = UserCluster(tmp_path / "kubeconfig", "kind-lab", "ours", {})
    folder.prepare()

    def run(api: StubApi, *, mark: bool = True, plans: list[Plan] | None = None) -> StubApi:
        monkeypatch.setattr(user_cluster, "connect", lambda *_, **__: api)
        claim(cluster, folder, [plan] if plans is None else plans, mark=mark)
        return api

    return run


def test_an_empty_cluster_gets_the_mark(claimed: Claim) -> None:
    api = claimed(StubApi())

    assert api.objects["configmaps", "default", MARKER]["metadata"]["labels"] == {MARK: "ours"}


def test_a_preview_marks_nothing(claimed: Claim) -> None:
    assert claimed(StubApi(), mark=False).objects == {}


def test_a_cluster_with_kueue_and_without_the_mark_is_refused(claimed: Claim) -> None:
    with pytest.raises(CannotRun, match="has Kueue, which this sandbox did not install"):
        claimed(StubApi(kueue=True))


@pytest.mark.parametrize("namespace", ["kueue-system", "jobset-system"])
def test_a_cluster_with_a_namespace_of_the_plan_and_without_the_mark_is_refused(namespace: str, claimed: Claim) -> None:
    api = StubApi(("namespaces", "", namespace, None))

    with pytest.raises(CannotRun, match=f"already has namespace {namespace}, which a stack would create"):
        claimed(api)
    assert ("configmaps", "default", MARKER) not in api.objects


def test_a_cluster_with_other_namespaces_is_taken(claimed: Claim) -> None:
    claimed(StubApi(("namespaces", "", "my-own", None)))


def test_with_the_mark_kueue_and_its_namespaces_are_the_sandboxs(claimed: Claim) -> None:
    marker = ("configmaps", "default", MARKER, "ours")

    claimed(StubApi(marker, ("namespaces", "", "kueue-system", None), kueue=True))


def test_a_cluster_with_the_mark_of_another_sandbox_is_refused(claimed: Claim) -> None:
    with pytest.raises(CannotRun, match="belongs to another sandbox"):
        claimed(StubApi(("configmaps", "default", MARKER, "theirs")))


def test_a_cluster_that_lost_the_mark_is_refused_while_the_state_has_objects(
    claimed: Claim, folder: SandboxFolder
) -> None:
    keep(folder, "vision")

    with pytest.raises(CannotRun, match="does not have this sandbox's mark"):
        claimed(StubApi(("namespaces", "", "vision", "ours")))


@pytest.mark.parametrize(("mark", "refused"), [("ours", False), ("theirs", True), (None, True)])
def test_an_object_in_the_state_without_the_mark_is_touched_by_no_run(
    mark: str | None, refused: bool, claimed: Claim, folder: SandboxFolder
) -> None:
    keep(folder, "gone", "vision")
    api = StubApi(("configmaps", "default", MARKER, "ours"), ("namespaces", "", "vision", mark))

    if refused:
        with pytest.raises(CannotRun, match=f"do not have the label {MARK}: Namespace vision"):
            claimed(api)
    else:
        claimed(api)


def test_an_environment_with_several_clusters_is_refused(claimed: Claim, tmp_path: Path) -> None:
    section = yaml.safe_load(ENVIRONMENT)
    clusters = section["config"]["training-platform:environment"]["clusters"]
    subnet = {"nodes": "10.13.0.0/20", "pods": "10.67.0.0/16", "services": "10.13.16.0/20"}
    clusters["other"] = {**clusters["main"], "subnet": subnet}
    root = tmp_path / "two"
    without_stacks(root)
    (root / "stacks" / "Pulumi.lab.yaml").write_text(yaml.safe_dump(section))
    workspace = read_workspace(root)
    plan = stack_plan(workspace.stacks["lab"], workspace)
    assert plan is not None

    with pytest.raises(CannotRun, match="has the clusters lab-main, lab-other"):
        claimed(StubApi(), plans=[plan])


@pytest.mark.parametrize(("names", "stays"), [((), False), (("vision",), True)])
def test_the_mark_goes_with_the_last_object(
    names: tuple[str, ...], stays: bool, folder: SandboxFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(folder, *names)
    api = StubApi(("configmaps", "default", MARKER, "ours"))
    monkeypatch.setattr(user_cluster, "connect", lambda *_, **__: api)

    release(UserCluster(tmp_path / "kubeconfig", "kind-lab", "ours", {}), folder)

    assert (("configmaps", "default", MARKER) in api.objects) is stays


@pytest.mark.parametrize(("mark", "imported"), [("ours", True), ("theirs", False), (None, False)])
def test_an_unfinished_create_is_imported_if_the_object_exists_with_the_mark(
    mark: str | None, imported: bool, folder: SandboxFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = StubApi(("namespaces", "", "vision", mark))
    monkeypatch.setattr(user_cluster, "connect", lambda *_, **__: api)
    creates = [
        {"resource": {"type": type_, "inputs": {"metadata": {"name": name}}}}
        for type_, name in ((NAMESPACE, "vision"), (NAMESPACE, "nlp"), ("kubernetes:example.com/v1:Widget", "w"))
    ]

    imported_objects = list(
        created_objects(UserCluster(tmp_path / "kubeconfig", "kind-lab", "ours", {}), folder, creates)
    )

    assert imported_objects == ([(NAMESPACE, "vision")] if imported else [])


@pytest.mark.parametrize(
    ("type_", "foreign_objects", "refused"),
    [(RELEASE, ["ClusterQueue theirs"], True), (RELEASE, [], False), (NAMESPACE, ["ClusterQueue theirs"], False)],
)
def test_kueue_stays_while_it_has_objects_of_no_stack(
    type_: str, foreign_objects: list[str], refused: bool, folder: SandboxFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_cluster, "connect", lambda *_, **__: None)
    monkeypatch.setattr(user_cluster, "objects_without_stack", lambda *_: foreign_objects)
    keep(folder, "some", type_=type_)
    cluster = UserCluster(folder.path, "kind-lab", "ours", {})

    with pytest.raises(CannotRun, match="belong to no stack: ClusterQueue theirs") if refused else nullcontext():
        refuse_objects_without_stack(cluster, folder, "lab")


# The run


def test_the_plugin_reaches_the_server_without_the_users_proxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example.com:3128")
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    config = read_context(kubeconfig(tmp_path, server="https://192.168.49.2:8443"), "kind-lab")

    variables = cluster_variables(UserCluster(tmp_path, "kind-lab", "ours", config))

    assert variables["HTTPS_PROXY"] == "http://proxy.example.com:3128"
    assert variables["NO_PROXY"] == "127.0.0.1,localhost,192.168.49.2"


def test_the_main_file_of_a_run_is_python(folder: SandboxFolder, tmp_path: Path) -> None:
    text = program(folder, UserCluster(tmp_path, "kind-lab", "ours", {}))

    compile(text, "__main__.py", "exec")
    assert "redirection import redirect" in text
