"""The real provider takes every way to get capacity."""

from __future__ import annotations

import pytest

from tests.engine.workspace import MakeWorkspace
from tests.stacks.test_ways_to_get_capacity import KUEUE, TEXT

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


def test_a_preview_of_every_way_to_get_capacity_succeeds(workspace: MakeWorkspace) -> None:
    place = workspace("ways")
    (place.root / "stacks" / "Pulumi.ways.yaml").write_text(TEXT, encoding="utf-8")
    place.init("ways")
    preview = place.preview("ways")

    assert (preview.code, preview.errors) == (0, [])
    kinds = {kind for kind, _ in preview.resources}
    assert {f"{KUEUE}:AdmissionCheck", "kubernetes:cloud.google.com/v1:ComputeClass"} <= kinds
    queued = preview.resources["gcp:container/nodePool:NodePool", "c-queued-pool"]["inputs"]
    assert queued["queuedProvisioning"]["enabled"] is True
