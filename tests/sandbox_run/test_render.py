"""The setting under which Kubernetes objects are written to a folder instead of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from checks.recorder import record
from modules.config.stack import PROJECT
from modules.gke.kubernetes_provider import RENDER_TO, cluster_provider


def provider(config: Mapping[str, Any], tmp_path: Path) -> Mapping[str, Any]:
    def program() -> None:
        cluster_provider("a", endpoint="gke.example.com", project="p", location="l", cluster_name="dev-a")

    plan = record(program, project=PROJECT, stack_name="dev", config=config, references={}, root=tmp_path)
    return next(each.inputs for each in plan.resources if each.type == "pulumi:providers:kubernetes")


def test_each_cluster_is_rendered_to_a_folder_of_its_own_and_has_no_kubeconfig(tmp_path: Path) -> None:
    inputs = provider({f"{PROJECT}:{RENDER_TO}": "/tmp/objects"}, tmp_path)  # noqa: S108 # nothing is written

    assert inputs["renderYamlToDirectory"] == "/tmp/objects/dev-a"  # noqa: S108
    assert "kubeconfig" not in inputs


def test_without_the_setting_a_cluster_is_reached(tmp_path: Path) -> None:
    inputs = provider({}, tmp_path)

    assert "gke.example.com" in inputs["kubeconfig"]
    assert "renderYamlToDirectory" not in inputs
