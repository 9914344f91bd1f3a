"""The Pulumi Kubernetes Operator's objects, one for each stack file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pipelines.operator.objects import main, object_name
from tests.places import ORGANISATION, ROOT
from training_platform.config.workspace import read_workspace
from training_platform.sandbox.kubernetes.definitions import load_crds


def test_every_stack_file_has_an_object_and_a_team_waits_for_its_environment(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stacks = read_workspace(ORGANISATION).stacks

    assert main(ORGANISATION) == 0
    found = {each["metadata"]["name"]: each["spec"] for each in yaml.safe_load_all(capsys.readouterr().out)}

    assert list(found) == list(stacks)
    assert {spec["stack"] for spec in found.values()} == {f"organization/training-platform/{name}" for name in stacks}
    before = {name: [each["name"] for each in spec.get("prerequisites", ())] for name, spec in found.items()}
    assert before["prod"] == []
    assert before["prod-vision"] == ["prod"]
    assert all(spec["destroyOnFinalize"] is False for spec in found.values())


def test_the_operator_takes_every_object(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT.parent / "shared" / "schemas" / "pulumi-operator"
    if not folder.is_dir():
        pytest.skip("the operator's CRDs are not beside this checkout, in ../shared/schemas")
    kind = load_crds(folder)["pulumi.com", "v1", "Stack"]

    main(ORGANISATION)

    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    assert {each["metadata"]["name"]: kind.errors(each) for each in objects if kind.errors(each)} == {}
    assert kind.errors({**objects[0], "spec": {**objects[0]["spec"], "bogus": 1}}) == ["spec.bogus: unknown field"]


def test_a_rejected_stack_file_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text("config: {}\n")

    assert main(tmp_path) == 2

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("stacks/Pulumi.dev.yaml:1:1: ")


def test_a_name_is_one_that_kubernetes_takes() -> None:
    assert object_name("Prod-NLP_2") == "prod-nlp-2"
