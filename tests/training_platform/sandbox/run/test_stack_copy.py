"""A stack file's copy for the sandbox: line by line the same, without what belongs to a real cloud."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.places import ORGANISATION
from training_platform.config.model.stack import read_stack
from training_platform.sandbox.run.folder import SECRET, CannotRun, salt_of, sandboxed

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
    found: dict[str, object] = yaml.safe_load(text)["config"]
    return found


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
    lines, copied = FILE.splitlines(), sandboxed(FILE).splitlines()

    assert len(copied) == len(lines)
    assert [index for index, line in enumerate(lines) if "project:" in line] == [
        index for index, line in enumerate(copied) if "project:" in line
    ]


def test_the_salt_of_the_sandbox_is_added_and_found_again() -> None:
    text = sandboxed(FILE, salt="v1:abc:v1:def")

    assert yaml.safe_load(text)["encryptionsalt"] == "v1:abc:v1:def"
    assert salt_of(text) == "v1:abc:v1:def"
    assert salt_of(FILE) is None


@pytest.mark.parametrize("old", ["    deletion_protection: true\n", ""])
def test_protection_is_lifted_whether_the_file_speaks_of_it_or_not(old: str) -> None:
    text = FILE if old else FILE.replace("    deletion_protection: true\n", "")

    section = config(sandboxed(text, lift_protection=True))["training-platform:environment"]

    assert isinstance(section, dict)
    assert section["deletion_protection"] is False
    assert section["project"] == "example-train-dev"


def test_credentials_inside_braces_are_refused_rather_than_passed_on() -> None:
    with pytest.raises(CannotRun, match="gcp:accessToken stands in a mapping in braces"):
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
