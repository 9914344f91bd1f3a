"""The plan of a stack as text: each resource below its parent, or one with all of its inputs and options."""

from __future__ import annotations

import yaml
from click.testing import CliRunner

from tests.support.places import ORGANISATION
from training_platform.cli.main import app


def test_a_resource_names_what_it_waits_for() -> None:
    command = ["plan", "prod-vision", "--resource", "bucket-datasets-bucket", "--root", str(ORGANISATION)]

    title, _, text = CliRunner().invoke(app, command).stdout.partition("\n")

    assert title.startswith("bucket-datasets-bucket  gcp:storage/bucket:Bucket  stacks/Pulumi.prod-vision.yaml:")
    assert yaml.safe_load(text)["options"]["dependsOn"] == ["apis-storage"]
