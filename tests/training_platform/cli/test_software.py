"""``software outdated``: registries and repositories on the loopback, as they answer and as they fail."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.training_platform.cli.registry_server import Answer, Registry
from training_platform import catalog
from training_platform.catalog import CHARTS
from training_platform.cli.main import app

TAGS = "/v2/charts/kueue/tags/list"
HAS = ["0.19.2", "0.19.10", "v0.19.9", "0.20.0", "0.21.0-devel", "0.20.1-rc.0", "sha256-abc.sig", "latest"]
STACK = """\
config:
  training-platform:environment:
    project: example-lab
    charts: {kueue: {version: "0.20.0"}}
"""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    stub = Registry()
    Thread(target=stub.server.serve_forever, daemon=True).start()
    row = CHARTS["kueue"]
    chart = dataclasses.replace(row, chart=f"oci://{stub.place}/charts/kueue", version="0.19.2")
    monkeypatch.setattr(catalog, "CHARTS", {"kueue": chart})
    yield stub
    stub.server.shutdown()
    stub.server.server_close()


def outdated(root: Path, *arguments: str) -> Result:
    (root / "stacks").mkdir(exist_ok=True)
    (root / "Pulumi.yaml").write_text("name: training-platform\nruntime: python\nstackConfigDir: stacks\n")
    return CliRunner().invoke(app, ["software", "outdated", "--root", str(root), *arguments])


def test_a_newer_patch_is_a_finding_and_the_newest_of_all_is_named(registry: Registry, tmp_path: Path) -> None:
    registry.answers[TAGS] = Answer({"name": "charts/kueue", "tags": HAS})

    result = outdated(tmp_path)

    assert result.output == "kueue 0.19.2 (catalogue): newer: 0.19.10 of its minor version, 0.20.0 newest\n"
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("tags", "newer"), [(["0.19.2"], "the newest"), (["0.19.2", "0.20.0"], "newer: 0.20.0 newest")]
)
def test_only_a_newer_minor_version_is_no_finding(
    registry: Registry, tmp_path: Path, tags: list[str], newer: str
) -> None:
    registry.answers[TAGS] = Answer({"tags": tags})

    result = outdated(tmp_path)

    assert (result.output, result.exit_code) == (f"kueue 0.19.2 (catalogue): {newer}\n", 0)


def test_an_environment_that_names_a_version_of_its_own_is_asked_for_too(registry: Registry, tmp_path: Path) -> None:
    registry.answers[TAGS] = Answer({"tags": HAS})
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.lab.yaml").write_text(STACK)

    rows = json.loads(outdated(tmp_path, "--format", "json").output)["charts"]

    assert [(row["used_by"], row["version"], row["patch"], row["newest"]) for row in rows] == [
        ("catalogue", "0.19.2", "0.19.10", "0.20.0"),
        ("lab", "0.20.0", None, None),
    ]


def test_a_registry_with_pages_and_a_token_for_anybody_is_read_to_its_end(registry: Registry, tmp_path: Path) -> None:
    realm = f"http://{registry.place}/token"
    challenge = {"WWW-Authenticate": f'Bearer realm="{realm}",service="registry",scope="repository:charts/kueue:pull"'}
    registry.answers = {
        TAGS: Answer({"tags": ["0.19.2"]}, 401, challenge),
        "/token?service=registry&scope=repository%3Acharts%2Fkueue%3Apull": Answer({"token": "for-anybody"}),
    }
    first = outdated(tmp_path)
    assert (first.output, first.exit_code) == ("kueue 0.19.2 (catalogue): the newest\n", 0)

    registry.answers[TAGS] = Answer({"tags": ["0.19.2"]}, 200, {"Link": f'<{TAGS}?last=0.19.2>; rel="next"'})
    registry.answers[f"{TAGS}?last=0.19.2"] = Answer({"tags": ["0.19.3"]})
    assert "0.19.3" in outdated(tmp_path).output


def test_a_repository_is_read_by_its_index(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = dataclasses.replace(CHARTS["ray"], repository=f"http://{registry.place}/charts/", version="1.7.0")
    monkeypatch.setattr(catalog, "CHARTS", {"ray": row})
    entries = {row.chart: [{"version": "1.7.1"}, {"version": "1.8.0-rc.1"}, {"version": "1.7.0"}], "other": []}
    registry.answers["/charts/index.yaml"] = Answer(yaml.safe_dump({"apiVersion": "v1", "entries": entries}))

    assert outdated(tmp_path).output == "ray 1.7.0 (catalogue): newer: 1.7.1 of its minor version\n"

    registry.answers["/charts/index.yaml"] = Answer(yaml.safe_dump({"entries": {}}))
    result = outdated(tmp_path)
    assert result.exit_code == 2
    assert "has no chart kuberay-operator." in result.output


DIGEST = f"sha256:{'4' * 64}"


@pytest.fixture
def images(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a catalogue with two images of the registry that have no digest, beside one that has."""
    dated = f"{registry.place}/nodes/shell:24.04"
    latest = f"{registry.place}/vertex-ai/cpu:latest"
    monkeypatch.setattr(catalog, "IMAGES", {"shell": dated, "cpu": latest, "pause": f"{registry.place}/a@{DIGEST}"})
    registry.answers["/v2/nodes/shell/manifests/24.04"] = Answer("", 200, {"Docker-Content-Digest": DIGEST})
    registry.answers["/v2/vertex-ai/cpu/manifests/latest"] = Answer("", 200, {"Docker-Content-Digest": DIGEST})
    (tmp_path / "Pulumi.yaml").write_text("name: training-platform\nruntime: python\nstackConfigDir: stacks\n")
    (tmp_path / "stacks").mkdir()
    file = tmp_path / "training_platform" / "catalog" / "data" / "software.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f'images:\n  shell: # a comment\n    {{image: "{dated}"}}\n  cpu: {{image: "{latest}"}}\n')
    return file


def digests(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["software", "digests", "--root", str(root), *arguments])


def test_missing_digests_are_asked_for_and_written_beside_a_tag_and_instead_of_latest(
    registry: Registry, images: Path, tmp_path: Path
) -> None:
    before = images.read_text()
    named = f"{registry.place}/nodes/shell:24.04@{DIGEST}", f"{registry.place}/vertex-ai/cpu@{DIGEST}"
    shown = digests(tmp_path)
    assert (shown.output, shown.exit_code) == (f"shell: {named[0]}\ncpu: {named[1]}\n", 1)
    assert images.read_text() == before

    assert digests(tmp_path, "--write").exit_code == 0

    assert images.read_text() == (
        f'images:\n  shell: # a comment\n    {{image: "{named[0]}"}}\n  cpu: {{image: "{named[1]}"}}\n'
    )
    assert [path for path, _ in registry.requests if "/a/" in path] == []


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer("", 404), "its registry has no such image."),
        (Answer(""), "its registry returns no digest."),
        (Answer("", 200, {"Docker-Content-Digest": 'sha256:4"}'}), "its registry returns no digest."),
        (Answer("", 403), "does not let you read it."),
    ],
)
def test_an_image_without_a_digest_hides_no_other(
    registry: Registry, images: Path, tmp_path: Path, answer: Answer, sentence: str
) -> None:
    registry.answers["/v2/nodes/shell/manifests/24.04"] = answer

    result = digests(tmp_path, "--write")

    assert result.exit_code == 2
    assert sentence in result.output
    assert f"cpu@{DIGEST}" in images.read_text()
    assert '/nodes/shell:24.04"' in images.read_text()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer("nothing", 404), "answers 404."),
        (Answer({}, 403), "does not let you read it."),
        (Answer({}, 401), "needs credentials"),
        (Answer("<html>"), "the answer cannot be read"),
        (Answer([1]), "the answer is not a JSON object."),
        (Answer({"tags": None}), "its registry lists no tags."),
        (Answer({"tags": ["latest"]}), "has no release."),
    ],
)
def test_a_registry_that_does_not_answer_as_it_should_is_one_sentence_and_exit_code_2(
    registry: Registry, tmp_path: Path, answer: Answer, sentence: str
) -> None:
    registry.answers[TAGS] = answer

    result = outdated(tmp_path)

    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert sentence in result.output


def test_a_chart_that_cannot_be_asked_for_hides_no_other(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.answers[TAGS] = Answer({"tags": HAS})
    gone = dataclasses.replace(CHARTS["jobset"], chart="oci://127.0.0.1:1/charts/jobset")
    monkeypatch.setattr(catalog, "CHARTS", {"jobset": gone, **catalog.CHARTS})

    result = outdated(tmp_path)

    assert result.exit_code == 2
    assert "jobset: 127.0.0.1:1 cannot be reached" in result.output
    assert "0.19.10 of its minor version" in result.output
