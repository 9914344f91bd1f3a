"""The real provider takes a pool of every machine that the catalogue has, in every way that it can be had."""

from __future__ import annotations

import pytest
import yaml

from tests.engine.workspace import MakeWorkspace
from tests.training_platform.catalog.test_every_family_plans import NODE_POOL, environment

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


def test_a_preview_takes_every_pool_of_every_family(workspace: MakeWorkspace) -> None:
    place = workspace("every")
    section = environment()
    text = yaml.safe_dump({"config": {"training-platform:environment": section}})
    (place.root / "stacks" / "Pulumi.every.yaml").write_text(text, encoding="utf-8")
    place.init("every")

    preview = place.preview("every")

    wanted = sum(len(cluster["node_pools"]) + 1 for cluster in section["clusters"].values())  # and a system pool each
    assert preview.errors == []
    assert preview.code == 0
    assert sum(kind == NODE_POOL for kind, _ in preview.resources) == wanted
