"""The servers of a run, their settings, and the notes of a summary."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from local_google_cloud.api import BrokenFile, endpoints
from tests.support.places import ORGANISATION
from training_platform.cli.main import app
from training_platform.config.model.stack import PROJECT
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
    def token(member: str | None = None) -> str:
        return engine_environment(folder, tmp_path, Servers(1, 2, {}), {}, member=member)["GOOGLE_OAUTH_ACCESS_TOKEN"]

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
    return "\n".join(kubernetes_notes(folder, "dev", (), None))


def test_a_summary_says_how_many_objects_there_are_and_what_was_left_out(folder: SandboxFolder) -> None:
    keep_a_state(folder)

    assert "A stand-in for the kubernetes provider stores 1 Kubernetes object in 1 cluster." in notes(folder)
    assert "Not rendered: the charts of 1 Helm release: 1 kueue." in notes(folder)
