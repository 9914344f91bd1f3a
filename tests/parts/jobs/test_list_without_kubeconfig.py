"""``training-platform job list`` where no cluster can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.places import ORGANISATION
from training_platform.cli.main import app


def test_a_missing_kubeconfig_is_one_sentence_for_all_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none"))

    listed = CliRunner().invoke(
        app, ["job", "list", "--kubeconfig", str(tmp_path / "none"), "--root", str(ORGANISATION)]
    )

    assert listed.exit_code == 2
    assert listed.stdout == ""
    about_clusters = [line for line in listed.stderr.splitlines() if "luster" in line]
    assert len(about_clusters) == 1
    assert about_clusters[0].startswith("training-platform: No kubeconfig can be read")
    assert "gcloud container clusters get-credentials" in about_clusters[0]
