"""The sandbox's folder with its copies of stack files; nothing is written outside it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.places import ORGANISATION, ROOT
from training_platform.config.model.stack import read_stack
from training_platform.parts.sandbox.run.folder import SECRET, CannotRun, SandboxFolder, sandboxed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SandboxFolder:
    """A repository of a person who has plugins and is logged in."""
    root = tmp_path / "repository"
    root.mkdir()
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, root / name)
    shutil.copytree(ORGANISATION / "stacks", root / "stacks")
    (root / "policies").mkdir()
    (tmp_path / "home" / "plugins").mkdir(parents=True)
    (tmp_path / "home" / "credentials.json").write_text("{}")
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    return SandboxFolder(root, root / ".sandbox" / "mine")


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file() and ".sandbox" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def test_a_copy_and_what_an_engine_does_to_it_leave_the_repository_as_it_was(folder: SandboxFolder) -> None:
    before = contents(folder.root)
    folder.prepare()

    checkout = folder.copy("dev", {"gcp:pollInterval": "1s"})
    for path in (checkout / "stacks").rglob("*.yaml"):
        path.write_text("encryptionsalt: v1:abc\n")  # as `pulumi stack init` does
    (checkout / "Pulumi.yaml").write_text("")
    (checkout / "__main__.py").write_text("")

    assert contents(folder.root) == before


def test_the_engine_gets_the_persons_plugins_and_not_their_log_in(folder: SandboxFolder) -> None:
    folder.prepare()

    assert (folder.home / "plugins").resolve() == folder.root.parent / "home" / "plugins"
    assert not (folder.home / "credentials.json").exists()
    assert folder.kubeconfig.read_text() == ""


def test_a_copy_runs_in_this_environment_with_the_settings_beside_the_stacks_own(folder: SandboxFolder) -> None:
    checkout = folder.copy("dev", {"gcp:pollInterval": "1s"}, main="import program\n")

    project = yaml.safe_load((checkout / "Pulumi.yaml").read_text())
    assert project["config"] == {"gcp:pollInterval": {"value": "1s"}}
    assert project["name"] == "training-platform"
    assert (checkout / ".venv").resolve() == Path(sys.prefix).resolve()
    assert (checkout / "policies").resolve() == folder.root / "policies"
    assert (checkout / "__main__.py").read_text() == "import program\n"
    assert (checkout / "program.py").read_text() == (folder.root / "__main__.py").read_text()


def test_a_copy_has_no_environments_of_esc_which_a_local_backend_refuses() -> None:
    text = sandboxed("environment:\n  - platform/dev\nconfig: {gcp:region: us-central1}\n")

    assert yaml.safe_load(text) == {"config": {"gcp:region": "us-central1"}}
    assert text.count("\n") == 3


def test_a_copy_has_the_organisations_own_resources_as_long_as_the_repository_does(folder: SandboxFolder) -> None:
    original = folder.root / "own_resources.py"
    original.write_text("def add_resources(own): ...\n")
    copy = folder.copy("dev", {}) / "own_resources.py"
    assert copy.read_text() == "def add_resources(own): ...\n"

    original.unlink()
    folder.copy("dev", {})

    assert not copy.exists()


def test_a_second_copy_has_the_salt_that_the_state_was_made_with_and_the_newest_text(folder: SandboxFolder) -> None:
    file = folder.copy("dev", {}) / "stacks" / "Pulumi.dev.yaml"
    file.write_text(f"{file.read_text()}encryptionsalt: v1:abc\n")
    folder.keep_salt("dev")
    original = folder.root / "stacks" / "Pulumi.dev.yaml"
    original.write_text(original.read_text().replace("max_nodes: 4", "max_nodes: 3"))

    folder.copy("dev", {})

    assert file.read_text().endswith("encryptionsalt: v1:abc\n")
    assert "max_nodes: 3" in file.read_text()
    assert "encryptionsalt" not in (file.parent / "Pulumi.prod.yaml").read_text()


def test_protection_is_lifted_in_the_copy_of_one_environment(folder: SandboxFolder) -> None:
    stacks = folder.copy("prod-vision", {}, lift_protection="prod") / "stacks"

    assert "deletion_protection: false" in (stacks / "Pulumi.prod.yaml").read_text()
    assert "deletion_protection: false" not in (stacks / "Pulumi.prod-vision.yaml").read_text()


def test_two_commands_cannot_serve_one_folder(folder: SandboxFolder) -> None:
    with folder.locked(), pytest.raises(CannotRun, match="sandbox serve"), folder.locked():
        pass
    with folder.locked():
        pass


def test_a_state_is_read_with_what_was_under_way(folder: SandboxFolder) -> None:
    latest = {"resources": [{"urn": "a"}], "pending_operations": [{"type": "creating"}]}
    path = folder.state / ".pulumi" / "stacks" / "training-platform" / "dev.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"checkpoint": {"latest": latest}}))

    assert folder.stacks() == ["dev"]
    assert folder.resources("dev") == [{"urn": "a"}]
    assert folder.pending("dev") == [{"type": "creating"}]
    assert folder.resources("prod") == []


def test_an_empty_file_of_attributes_is_taken_away_and_a_whole_one_stays(folder: SandboxFolder) -> None:
    stacks = folder.state / ".pulumi" / "stacks" / "training-platform"
    stacks.mkdir(parents=True)
    kept = {"dev.json": "{}", "dev.json.bak.attrs": "{}", "prod.json.attrs": ""}
    for name, text in {**kept, "dev.json.attrs": "", "dev.json.0f1e.tmp": "{"}.items():
        (stacks / name).write_text(text)

    folder.remove_partial_files("dev")

    assert {path.name for path in stacks.iterdir()} == kept.keys()


def test_a_lock_is_held_while_its_process_is_there(folder: SandboxFolder) -> None:
    locks = folder.state / ".pulumi" / "locks" / "organization" / "training-platform" / "dev"
    locks.mkdir(parents=True)
    (locks / "a.json").write_text(json.dumps({"pid": 4194304}))  # above the largest id that Linux gives

    assert folder.locks("dev") == [locks / "a.json"]
    assert folder.holder("dev") is None
    (locks / "b.json").write_text(json.dumps({"pid": os.getpid()}))
    assert folder.holder("dev") == os.getpid()


def test_what_was_under_way_is_kept_until_a_resume_is_through(folder: SandboxFolder) -> None:
    folder.copy("dev", {})

    folder.save_pending("dev", [{"type": "creating"}])
    assert folder.pending("dev") == [{"type": "creating"}]
    folder.save_pending("dev", [])
    assert folder.pending("dev") == []


def keep_state(folder: SandboxFolder, stack: str, *resources: dict[str, object]) -> None:
    file = folder.state / ".pulumi" / "stacks" / "training-platform" / f"{stack}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"checkpoint": {"latest": {"resources": resources}}}))


def test_a_team_whose_file_is_gone_still_reads_its_environment(folder: SandboxFolder) -> None:
    name = "organization/training-platform/dev"
    keep_state(folder, "dev", {"type": "pulumi:pulumi:Stack"})
    keep_state(folder, "gone", {"type": "pulumi:pulumi:StackReference", "inputs": {"name": name}})
    keep_state(folder, "other", {"type": "pulumi:pulumi:StackReference", "inputs": {"name": f"{name}-eu"}})
    keep_state(folder, "destroyed")

    assert folder.readers("dev") == ["gone"]
    assert folder.readers("prod") == []


def test_a_stack_without_a_file_is_destroyed_with_the_salt_of_its_state(folder: SandboxFolder) -> None:
    file = folder.copy("dev", {}) / "stacks" / "Pulumi.dev.yaml"
    file.write_text("encryptionsalt: v1:abc\n")
    folder.keep_salt("dev")
    (folder.root / "stacks" / "Pulumi.dev.yaml").unlink()

    assert (folder.copy("dev", {}) / "stacks" / "Pulumi.dev.yaml").read_text() == "encryptionsalt: v1:abc\n"


STACKS = sorted((ORGANISATION / "stacks").glob("Pulumi.*.yaml"))
FILE = """\
# Zürich's platform.
secretsprovider: gcpkms://projects/p/locations/global/keyRings/r/cryptoKeys/k
encryptedkey: abc=
config:
  gcp:credentials:
    secure: v1:credentials
  gcp:containerCustomEndpoint: https://container.example.com/
  gcp:region: us-central1
  training-platform:environment:
    project: example-train-dev # the project
    deletion_protection: true
    notebooks: {secret: {secure: v1:flow}}
    others:
      token:
        secure: v1:block
      last: 1
"""


def config(text: str) -> dict[str, object]:
    section: dict[str, object] = yaml.safe_load(text)["config"]
    return section


def test_secrets_have_a_value_that_needs_no_key() -> None:
    section = config(sandboxed(FILE))["training-platform:environment"]

    assert section == {
        "project": "example-train-dev",
        "deletion_protection": True,
        "notebooks": {"secret": SECRET},
        "others": {"token": SECRET, "last": 1},
    }


def test_credentials_and_endpoints_of_a_real_cloud_are_left_out_and_other_settings_stay() -> None:
    assert config(sandboxed(FILE)).keys() == {"gcp:region", "training-platform:environment"}
    assert yaml.safe_load(sandboxed(FILE)).keys() == {"config"}


def test_every_line_stays_where_it_is() -> None:
    lines = FILE.splitlines()
    copied = sandboxed(FILE).splitlines()

    assert len(copied) == len(lines)
    assert [index for index, line in enumerate(lines) if "project:" in line] == [
        index for index, line in enumerate(copied) if "project:" in line
    ]


@pytest.mark.parametrize("old", ["    deletion_protection: true\n", ""])
def test_protection_is_lifted_whether_the_file_speaks_of_it_or_not(old: str) -> None:
    text = FILE if old else FILE.replace("    deletion_protection: true\n", "")

    section = config(sandboxed(text, lift_protection=True))["training-platform:environment"]

    assert isinstance(section, dict)
    assert section["deletion_protection"] is False
    assert section["project"] == "example-train-dev"


def test_credentials_inside_braces_are_refused_rather_than_passed_on() -> None:
    with pytest.raises(CannotRun, match="gcp:accessToken is in a mapping in braces"):
        sandboxed("config: {gcp:accessToken: abc}\n")


def test_a_file_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(CannotRun, match="is not YAML"):
        sandboxed("config: [\n")


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.stem)
def test_the_copy_of_each_stack_means_what_the_stack_means(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_text(sandboxed(path.read_text(encoding="utf-8"), salt="v1:abc"), encoding="utf-8")

    assert read_stack(copy, tmp_path).section == read_stack(path, ORGANISATION).section
    assert read_stack(copy, tmp_path).findings == ()
