"""Where a run's Kubernetes objects go, and what its summary says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training_platform.config.spec.stack import PROJECT
from training_platform.config.workspace import read_workspace
from training_platform.sandbox.kubernetes.store import Store
from training_platform.sandbox.run import tools
from training_platform.sandbox.run.folder import Folder
from training_platform.sandbox.run.kubernetes import Mode, choose_mode, cluster_identifiers, kubernetes_notes
from training_platform.sandbox.run.problems import CannotRun

ROOT = Path(__file__).parents[4]
CLUSTER = "projects/p/locations/l/clusters/dev-a"
PROVIDER = "urn:pulumi:dev::training-platform::pulumi:providers:kubernetes::a"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "sandbox").mkdir()
    return Folder(ROOT, tmp_path / "sandbox")


@pytest.fixture
def binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that are never run, named as the variable says."""
    found = tmp_path / "kube"
    found.mkdir()
    for name in ("etcd", "kube-apiserver"):
        (found / name).touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(found))
    return found


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "has_plugin", lambda _name: True)


@pytest.fixture(autouse=True)
def _no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "has_plugin", lambda _name: False)


def choose(folder: Folder, *, api_server: bool = False, render: Path | None = None) -> Mode:
    return choose_mode(folder, api_server=api_server, render=render)


def keep_an_object(folder: Folder) -> None:
    Store(folder.kubernetes).ensure_namespace(CLUSTER, "vision")


def keep_a_state(folder: Folder) -> None:
    state = folder.state / ".pulumi" / "stacks" / PROJECT
    state.mkdir(parents=True)
    resources = [
        {"urn": PROVIDER, "type": "pulumi:providers:kubernetes", "inputs": {"clusterIdentifier": CLUSTER}},
        {"urn": "u::p::t::ns", "type": "kubernetes:core/v1:Namespace", "inputs": {}},
        {"urn": "u::p::t::r", "type": "kubernetes:helm.sh/v3:Release", "inputs": {"name": "kueue"}},
    ]
    (state / "dev.json").write_text(json.dumps({"checkpoint": {"latest": {"resources": resources}}}))


def notes(folder: Folder, mode: Mode) -> str:
    return "\n".join(kubernetes_notes(folder, "dev", mode, ()))


def test_unless_told_otherwise_the_stand_in_keeps_objects(folder: Folder, binaries: Path, released: None) -> None:
    assert choose(folder) == Mode()
    assert Mode().config(folder) == {}


def test_api_servers_need_both_programs_in_the_named_folder(
    folder: Folder, binaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose(folder, api_server=True) == Mode(binaries=binaries)

    (binaries / "etcd").unlink()
    with pytest.raises(CannotRun, match="needs etcd in the folder that KUBEBUILDER_ASSETS names"):
        choose(folder, api_server=True)
    monkeypatch.delenv("KUBEBUILDER_ASSETS")
    with pytest.raises(CannotRun, match="needs etcd and kube-apiserver"):
        choose(folder, api_server=True)


def test_a_sandbox_with_api_servers_keeps_them(folder: Folder, binaries: Path) -> None:
    folder.api_servers.mkdir()

    assert choose(folder) == Mode(binaries=binaries)


def test_objects_of_one_sandbox_are_not_in_two_places(folder: Folder, binaries: Path, tmp_path: Path) -> None:
    keep_an_object(folder)

    with pytest.raises(CannotRun, match="in the stand-in: name another --workspace"):
        choose(folder, api_server=True)
    with pytest.raises(CannotRun, match="exclude each other"):
        choose(folder, api_server=True, render=tmp_path)


def test_the_released_plugin_finds_api_servers_by_kubeconfig(folder: Folder, binaries: Path, released: None) -> None:
    mode = choose(folder, api_server=True)

    assert mode == Mode(binaries=binaries, released=True)
    assert mode.config(folder) == {"training-platform:kubeconfigs": str(folder.api_servers)}


def test_the_released_plugin_renders_from_the_first_run_to_the_last(
    folder: Folder, tmp_path: Path, released: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode = choose(folder, render=tmp_path / "yaml")

    assert mode.config(folder) == {"training-platform:renderTo": str(tmp_path / "yaml")}
    assert choose(folder) == mode
    monkeypatch.setattr(tools, "has_plugin", lambda _name: False)
    with pytest.raises(CannotRun, match="rendering needs the released kubernetes plugin"):
        choose(folder)


def test_what_the_stand_in_keeps_it_renders_itself(folder: Folder, tmp_path: Path, released: None) -> None:
    keep_an_object(folder)
    keep_a_state(folder)

    mode = choose(folder, render=tmp_path / "yaml")

    assert (mode.released, mode.config(folder)) == (False, {})
    assert f"Written to {tmp_path / 'yaml'}: 1 object, those of all stacks in these clusters." in notes(folder, mode)
    assert (tmp_path / "yaml" / "dev-a" / "namespace_vision.yaml").exists()


def test_a_summary_says_how_many_objects_went_where_and_what_was_left_out(folder: Folder, binaries: Path) -> None:
    keep_a_state(folder)

    assert "A stand-in for the kubernetes provider kept 1 Kubernetes object in 1 cluster." in notes(folder, Mode())
    assert "Not rendered: the charts of 1 Helm release: 1 kueue." in notes(folder, Mode())
    applied = notes(folder, Mode(binaries=binaries))
    assert "Applied to a real API server for each cluster: 1 Kubernetes object in 1 cluster;" in applied
    assert "Not applied: the charts of 1 Helm release: 1 kueue." in applied
    rendered = notes(folder, Mode(render=Path("yaml"), released=True))
    assert "Rendered to yaml by the released kubernetes plugin: 1 Kubernetes object in 1 cluster." in rendered


def test_a_teams_clusters_are_its_environments() -> None:
    workspace = read_workspace(ROOT)
    found = cluster_identifiers(workspace, workspace.stacks["dev-vision"])

    assert "projects/example-train-dev/locations/us-west4/clusters/dev-us-west4" in found
    assert found == cluster_identifiers(workspace, workspace.stacks["dev"])
