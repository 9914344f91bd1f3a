"""Messages for a missing tool, and for the engine's refusal to delete a protected resource."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from pulumi.automation import PulumiCommand

from tests.support.places import ORGANISATION, ROOT
from training_platform.cli.main import app
from training_platform.parts.sandbox.run import engine
from training_platform.parts.sandbox.run.engine import with_remedy
from training_platform.parts.sandbox.run.folder import CannotRun


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any tool; returns the only folder on its PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PULUMI_HOME", raising=False)
    return folder


def put(folder: Path, name: str, script: str = "exit 0") -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def run(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["sandbox", *args, "--root", str(ORGANISATION)])
    return result.exit_code, result.output


def test_without_the_cli_a_pipe_gets_one_sentence_and_nothing_is_downloaded(bare: Path, tmp_path: Path) -> None:
    code, output = run("up", "dev", "--workspace", str(tmp_path / "sandbox"))

    assert code == 2
    assert output.count("\n") == 1
    assert "the Pulumi CLI is not on PATH: install version" in output
    assert not (tmp_path / "sandbox").exists()


def test_a_download_that_fails_is_one_sentence_on_how_to_get_the_cli(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install() -> PulumiCommand:
        raise OSError("no route to host")

    monkeypatch.setattr(PulumiCommand, "install", install)

    with pytest.raises(CannotRun, match=r"could not be downloaded: install version \d+\.\d+\.\d+ or later"):
        engine.pulumi_command(lambda _: True)


def test_a_download_is_offered_with_its_version(bare: Path) -> None:
    offered: list[str] = []

    def refuse(engine_version: str) -> bool:
        offered.append(engine_version)
        return False

    with pytest.raises(CannotRun, match="is not on PATH"):
        engine.pulumi_command(refuse)

    assert offered == [version("pulumi")]


def test_a_cli_that_is_too_old_is_one_sentence(bare: Path) -> None:
    put(bare, "pulumi", "echo v3.259.9")

    with pytest.raises(CannotRun, match=r"does not work: Minimum version requirement failed.* 3\.260\.0"):
        engine.pulumi_command(lambda _: False)


def test_the_oldest_cli_is_accepted_and_named_wherever_a_person_meets_it(bare: Path) -> None:
    put(bare, "pulumi", f"echo v{engine.OLDEST_CLI}")
    minor = engine.OLDEST_CLI.rpartition(".")[0]

    assert str(engine.pulumi_command(lambda _: False).version) == engine.OLDEST_CLI
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))
    assert project["requiredPulumiVersion"] == f">={engine.OLDEST_CLI}"
    for page in ("README.md", "README.ja.md", "SECURITY.md"):
        assert re.search(rf"Pulumi.*\b{re.escape(minor)}\b", (ROOT / page).read_text(encoding="utf-8"))


def test_without_the_gcp_plugin_the_sentence_has_the_command_that_gets_it(bare: Path, tmp_path: Path) -> None:
    put(bare, "pulumi", "echo v3.272.0")

    code, output = run("up", "dev", "--workspace", str(tmp_path / "sandbox"))

    assert code == 2
    assert output.count("\n") == 1
    assert f"run `pulumi plugin install resource gcp v{version('pulumi-gcp')}`" in output


def test_a_plugin_is_found_on_path_and_in_pulumis_own_folder(bare: Path, tmp_path: Path) -> None:
    assert not engine.has_plugin("gcp")
    (tmp_path / ".pulumi" / "plugins" / "resource-gcp-v10.2.0").mkdir(parents=True)
    assert engine.has_plugin("gcp")
    put(bare, "pulumi-resource-kubernetes")
    assert engine.has_plugin("kubernetes")


SAID = "To lift the protection, set deletion_protection: false in the section that is deleted."


@pytest.mark.parametrize(
    "refusal",
    [
        'main-h100-pool: unable to replace resource "urn"\nas it is currently marked for protection. To unprotect',
        'main-h100-pool: resource "urn" cannot be deleted\nbecause it is protected. To unprotect the resource',
    ],
)
def test_a_refusal_of_the_engine_comes_with_what_to_write_in_the_stack_file(refusal: str) -> None:
    assert with_remedy(refusal + "\n").startswith(f"{refusal}\n{SAID}")


@pytest.mark.parametrize("message", ["", "main-h100-pool: creating NodePool: EOF\n"])
def test_another_error_is_left_as_it_is(message: str) -> None:
    assert with_remedy(message) == message
