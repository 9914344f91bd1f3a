"""The settings under which Kubernetes objects go to a folder, or to API servers, instead of their clusters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi_kubernetes.helm import v3 as helm

from modules.gke.kubernetes_provider import KUBECONFIGS, RENDER_TO, cluster_provider
from modules.helm import install_release
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.spec.stack import PROJECT

FOLDER = "/somewhere"
RENDERED = {f"{PROJECT}:{RENDER_TO}": FOLDER}
APPLIED = {f"{PROJECT}:{KUBECONFIGS}": FOLDER}


def planned(config: Mapping[str, Any], tmp_path: Path) -> Plan:
    def program() -> None:
        cluster_provider("a", endpoint="gke.example.com", project="p", location="l", cluster_name="dev-a")
        install_release("kueue-release", helm.ReleaseArgs(chart="kueue"), pulumi.ResourceOptions())

    return record(program, project=PROJECT, stack_name="dev", config=config, references={}, root=tmp_path)


def provider(config: Mapping[str, Any], tmp_path: Path) -> Mapping[str, Any]:
    return planned(config, tmp_path).one("pulumi:providers:kubernetes").inputs


def test_each_cluster_is_rendered_to_a_folder_of_its_own_and_has_no_kubeconfig(tmp_path: Path) -> None:
    inputs = provider(RENDERED, tmp_path)

    assert inputs["renderYamlToDirectory"] == f"{FOLDER}/dev-a"
    assert "kubeconfig" not in inputs


def test_each_cluster_is_reached_by_the_kubeconfig_in_its_own_folder(tmp_path: Path) -> None:
    inputs = provider(APPLIED, tmp_path)

    assert inputs["kubeconfig"] == f"{FOLDER}/projects/p/locations/l/clusters/dev-a/kubeconfig"
    assert "renderYamlToDirectory" not in inputs


def test_without_a_setting_a_cluster_is_reached_and_releases_are_installed(tmp_path: Path) -> None:
    inputs = provider({}, tmp_path)

    assert "gke.example.com" in inputs["kubeconfig"]
    assert "renderYamlToDirectory" not in inputs
    assert planned({}, tmp_path).one("kubernetes:helm.sh/v3:Release").inputs["chart"] == "kueue"


@pytest.mark.parametrize("config", [RENDERED, APPLIED])
def test_where_no_release_can_go_it_is_left_out(config: Mapping[str, str], tmp_path: Path) -> None:
    assert planned(config, tmp_path).of("kubernetes:helm.sh/v3:Release") == []
