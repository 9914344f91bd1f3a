"""Where a run's Kubernetes objects go, and what its summary says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.places import ORGANISATION
from training_platform.config.model.stack import PROJECT
from training_platform.sandbox.kubernetes.store import ObjectStore
from training_platform.sandbox.run.folder import CannotRun, SandboxFolder
from training_platform.sandbox.run.servers import api_server_programs
from training_platform.sandbox.run.status import kubernetes_notes

CLUSTER = "projects/p/locations/l/clusters/dev-a"
PROVIDER = "urn:pulumi:dev::training-platform::pulumi:providers:kubernetes::a"


@pytest.fixture
def folder(tmp_path: Path) -> SandboxFolder:
    (tmp_path / "sandbox").mkdir()
    return SandboxFolder(ORGANISATION, tmp_path / "sandbox")


@pytest.fixture
def binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that are never run, named as the variable says."""
    found = tmp_path / "kube"
    found.mkdir()
    for name in ("etcd", "kube-apiserver"):
        (found / name).touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(found))
    return found


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
    assert api_server_programs(folder, asked_for=False) is None


def test_api_servers_need_both_programs_in_the_named_folder(
    folder: SandboxFolder, binaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api_server_programs(folder, asked_for=True) == binaries

    (binaries / "etcd").unlink()
    with pytest.raises(CannotRun, match="needs etcd in the folder that KUBEBUILDER_ASSETS names"):
        api_server_programs(folder, asked_for=True)
    monkeypatch.delenv("KUBEBUILDER_ASSETS")
    with pytest.raises(CannotRun, match="needs etcd and kube-apiserver"):
        api_server_programs(folder, asked_for=True)


def test_a_sandbox_with_api_servers_keeps_them(folder: SandboxFolder, binaries: Path) -> None:
    folder.api_servers.mkdir()

    assert api_server_programs(folder, asked_for=False) == binaries


def test_objects_of_one_sandbox_are_not_in_two_places(folder: SandboxFolder, binaries: Path) -> None:
    keep_an_object(folder)

    with pytest.raises(CannotRun, match="in the stand-in: name another --workspace"):
        api_server_programs(folder, asked_for=True)


def test_a_summary_says_how_many_objects_went_where_and_what_was_left_out(folder: SandboxFolder) -> None:
    keep_a_state(folder)

    assert "A stand-in for the kubernetes provider kept 1 Kubernetes object in 1 cluster." in notes(folder)
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

    said = "\n".join(kubernetes_notes(folder, "dev", (), ("kueue", "jobset")))

    assert (
        "1 Kubernetes object in 1 cluster; controllers of kueue and jobset run where their charts are installed."
        in said
    )
