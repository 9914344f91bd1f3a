"""Which controllers a sandbox can run, and what people call its clusters; no program is started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from training_platform.sandbox.kubernetes.api_servers import ControlPlanes, context
from training_platform.sandbox.kubernetes.controllers import IN_SANDBOX, PROGRAMS, ReleaseControllers, find_binaries
from training_platform.sandbox.kubernetes.store import ObjectStore


def able(folder: Path, *kinds: str) -> list[str]:
    controllers = ReleaseControllers(ControlPlanes(folder, folder), find_binaries(folder), ObjectStore(), lambda _: {})
    return controllers.able(kinds)


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for program in PROGRAMS.values():
        monkeypatch.delenv(program.variable, raising=False)


def test_without_programs_no_controller_runs(tmp_path: Path) -> None:
    assert able(tmp_path, *IN_SANDBOX.values()) == []


@pytest.mark.parametrize("by_path", [True, False])
def test_a_controller_runs_whose_program_is_named_and_whose_kinds_are_defined(
    by_path: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ("kueue" if by_path else "elsewhere")
    program.touch(mode=0o755)
    if not by_path:
        monkeypatch.setenv("TRAINING_PLATFORM_KUEUE", str(program))

    assert able(tmp_path, *IN_SANDBOX.values()) == ["kueue"]
    assert able(tmp_path, IN_SANDBOX["jobset"]) == []


@pytest.mark.parametrize(
    ("cluster", "name"),
    [
        ("projects/example-lab/locations/us-west4/clusters/lab-main", "gke_example-lab_us-west4_lab-main"),
        ("https://127.0.0.1:1", "cluster"),
    ],
)
def test_a_cluster_is_called_as_gcloud_calls_it(cluster: str, name: str) -> None:
    assert context(cluster) == name
