"""Changes behind Pulumi's back, in the local Google Cloud under the real engine and the real gcp plugin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.engine.fleet import repository, served

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]


def test_what_changed_behind_pulumis_back_is_found_and_put_right(tmp_path: Path) -> None:
    with served(repository(tmp_path / "repository")) as fleet:
        fleet.sandbox.steps("up", "dev")
        instance, policy = (fleet.identity("dev", name) for name in ("filestore-homes-instance", "alerts-GpuHot"))
        labels = fleet.ask("GET", f"file/v1/{instance}")["labels"]
        fleet.ask("PATCH", f"file/v1/{instance}?updateMask=labels", {"labels": {**labels, "environment": "by-hand"}})
        fleet.ask("DELETE", f"monitoring/v3/{policy}")

        refreshed = fleet.sandbox("refresh", "dev")
        assert refreshed.returncode == 0, refreshed.stdout + refreshed.stderr
        assert re.match(r"dev: refresh done: 1 deleted, \d+ unchanged, 1 updated\n", refreshed.stdout), refreshed.stdout
        assert "    is gone: alerts-GpuHot (gcp AlertPolicy)\n" in refreshed.stdout
        assert "    drifted: filestore-homes-instance (gcp Instance): labels.environment\n" in refreshed.stdout

        mended = fleet.sandbox("up", "dev")
        assert mended.returncode == 0, mended.stdout + mended.stderr
        assert fleet.steps("dev") == {("update", "filestore-homes-instance"), ("create", "alerts-GpuHot")}
        assert fleet.ask("GET", f"file/v1/{instance}")["labels"] == labels
