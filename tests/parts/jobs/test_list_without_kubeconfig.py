"""``training-platform job list`` without access to any cluster."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.places import ORGANISATION
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace


def job_list(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["job", "list", *arguments, "--root", str(ORGANISATION)])


def test_a_missing_kubeconfig_gives_one_sentence_with_every_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none"))
    teams = [*read_workspace(ORGANISATION).teams()]
    clusters = {f"{team.environment}-{cluster}" for _, team, home in teams for cluster in team.shares}

    listed = job_list("--kubeconfig", str(tmp_path / "none"))

    assert (listed.exit_code, listed.stdout) == (2, "")
    assert listed.stderr.count("No kubeconfig can be read") == 1
    named = re.findall(r"^  gcloud container clusters get-credentials (\S+) ", listed.stderr, re.MULTILINE)
    assert set(named) == clusters
    assert len(named) == len(clusters)
    assert [listed.stderr.count(cluster) for cluster in clusters] == [1] * len(clusters)


def test_beside_a_local_cloud_that_is_not_up_contexts_are_named_and_not_gcloud(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"

    listed = job_list("--kubeconfig", str(tmp_path / "none"), "--local-cloud", address)

    assert listed.exit_code == 2
    assert "the local cloud has no Kubernetes API; set --kubeconfig to a file with a context gke_" in listed.stderr
    assert "No local cloud is running: training-platform sandbox up starts one." in listed.stderr
    assert "gcloud" not in listed.stderr
