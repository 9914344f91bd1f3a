"""The image of a run, looked up in a registry on the loopback before anything is submitted."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from local_google_cloud.api import serve
from tests.parts.jobs.runs.vertex_cloud import PROJECT, Cloud, Command, job_command, write_repository
from tests.training_platform.cli.registry_server import Answer, Registry
from training_platform.clients.failures import ApiError
from training_platform.clients.registries import Registries, google_token, image_name

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")
DIGEST = f"sha256:{'a' * 64}"
MANIFEST = "/v2/team/train/manifests/2026-11"
TAGS = "/v2/team/train/tags/list"


@pytest.fixture
def registry() -> Iterator[Registry]:
    stub = Registry()
    Thread(target=stub.server.serve_forever, daemon=True).start()
    yield stub
    stub.server.shutdown()
    stub.server.server_close()


@pytest.fixture
def root(tmp_path: Path, registry: Registry) -> Path:
    root = write_repository(tmp_path / "lab")
    file = root / "jobs" / "vision" / "train.yaml"
    file.write_text(file.read_text().replace("registry.example.com/train:1", f"{registry.place}/team/train:2026-11"))
    return root


@pytest.fixture
def cloud(root: Path) -> Cloud:
    return Cloud(root)


@pytest.fixture
def job(root: Path, cloud: Cloud) -> Iterator[Command]:
    with serve(cloud.cloud) as port:
        yield job_command(root, port)


@pytest.fixture
def no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try once: the waits between tries are tested with the client."""
    monkeypatch.setattr("training_platform.clients.registries.RETRIES", 0)


def runs(cloud: Cloud) -> int:
    path = f"v1/projects/{PROJECT}/locations/us-central1/customJobs"
    return len(cloud.cloud.handle("aiplatform", "GET", path, [], None)[1].get("customJobs", ()))


def test_a_job_with_an_existing_image_is_submitted(job: Command, cloud: Cloud, registry: Registry, root: Path) -> None:
    registry.answers[MANIFEST] = Answer({})

    result = job("submit", str(root / "jobs/vision/train.yaml"))

    assert (result.exit_code, runs(cloud)) == (0, 1), result.output
    assert "image" not in result.stderr
    assert [path for path, _ in registry.requests] == [MANIFEST]


def test_a_missing_image_is_refused_at_its_line_with_the_nearest_tag(
    job: Command, cloud: Cloud, registry: Registry, root: Path
) -> None:
    registry.answers[TAGS] = Answer({"tags": ["2026-10", "2026-12a", "other"]})

    result = job("submit", str(root / "jobs/vision/train.yaml"))

    assert (result.exit_code, runs(cloud), result.stdout) == (1, 0, "")
    assert result.stderr.startswith("error jobs/vision/train.yaml:2:")
    assert f"{registry.place}/team/train:2026-11 is not in its registry" in result.stderr
    assert "2026-10" in result.stderr
    assert result.stderr.splitlines()[0].endswith("[job-image-missing]")
    assert result.stderr.count("error") == 1


@pytest.mark.parametrize("answer", [Answer("no", 403), Answer("ill", 500), Answer("who", 401), None], ids=str)
@pytest.mark.usefixtures("no_retries")
def test_a_registry_without_an_answer_is_a_warning_that_only_strict_counts(
    job: Command, cloud: Cloud, registry: Registry, root: Path, answer: Answer | None
) -> None:
    if answer:
        registry.answers[MANIFEST] = answer
    else:
        registry.server.server_close()
    file = str(root / "jobs/vision/train.yaml")

    strict = job("submit", file, "--strict")
    assert (strict.exit_code, runs(cloud), strict.stdout) == (2, 0, "")
    assert "with --strict, the image has to be found" in strict.stderr
    plain = job("submit", file)
    assert (plain.exit_code, runs(cloud)) == (0, 1), plain.output
    assert "could not be looked up" in plain.stderr
    assert "[job-image-unchecked]" in plain.stderr


def test_a_registry_of_google_gives_its_token_for_ours_and_no_other_host_gets_that(registry: Registry) -> None:
    basic = f"Basic {b64encode(b'oauth2accesstoken:ours').decode()}"
    wants = {"WWW-Authenticate": f'Bearer realm="http://{registry.place}/token",service="a",scope="b"'}
    registry.answers[MANIFEST] = Answer({}, 401, wants)
    registry.answers["/token?service=a&scope=b"] = Answer({"token": "for-anybody"})
    image = f"{registry.place}/team/train:2026-11"

    assert Registries(token=lambda host: "ours" if host == registry.place else "").has(image)
    assert [token for _, token in registry.requests] == ["", basic, "Bearer for-anybody"]
    registry.requests.clear()
    away = registry.place.replace("127.0.0.1", "localhost")  # another host than the one that gives tokens
    assert Registries(token=lambda _: "ours").has(f"{away}/team/train:2026-11")
    assert [token for _, token in registry.requests] == ["", "", "Bearer for-anybody"]


@pytest.mark.parametrize(
    ("registry_name", "is_google"),
    [
        ("us-docker.pkg.dev", True), ("gcr.io", True), ("eu.gcr.io", True), ("pkg.dev.example.com", False),
        ("evil-pkg.dev", False), ("docker.pkg.dev:5000", False), ("registry.example.com", False),
    ],
)  # fmt: skip
def test_credentials_are_sent_to_google_registries_only(
    registry_name: str, monkeypatch: pytest.MonkeyPatch, *, is_google: bool
) -> None:
    monkeypatch.setattr("training_platform.clients.registries.access_token", lambda: "ours")

    assert google_token(registry_name) == ("ours" if is_google else "")


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("us-docker.pkg.dev/p/r/train:1", ("us-docker.pkg.dev", "p/r/train", "1")),
        (f"us-docker.pkg.dev/p/r/train@{DIGEST}", ("us-docker.pkg.dev", "p/r/train", DIGEST)),
        ("127.0.0.1:5000/train:1", ("127.0.0.1:5000", "train", "1")),
        ("localhost/train:1", ("localhost", "train", "1")),
        ("python:3.11", ("registry-1.docker.io", "library/python", "3.11")),
        ("docker.io/pytorch/pytorch:2", ("registry-1.docker.io", "pytorch/pytorch", "2")),
        ("pytorch/pytorch:2", ("registry-1.docker.io", "pytorch/pytorch", "2")),
    ],
)
def test_an_image_has_a_registry_a_name_and_a_tag_or_digest(image: str, parts: tuple[str, str, str]) -> None:
    assert image_name(image) == parts


def test_a_challenge_without_a_realm_gives_one_sentence(registry: Registry) -> None:
    registry.answers[MANIFEST] = Answer({}, 401, {"WWW-Authenticate": "Basic"})

    with pytest.raises(ApiError, match="names no token server"):
        Registries().has(f"{registry.place}/team/train:2026-11")


def test_beside_a_local_cloud_no_other_registry_is_asked(job: Command, cloud: Cloud, root: Path) -> None:
    file = root / "jobs" / "vision" / "train.yaml"
    file.write_text("".join(
        "image: registry.invalid/train:1\n" if row.startswith("image:") else row
        for row in file.read_text().splitlines(keepends=True)
    ))  # fmt: skip

    result = job("submit", str(file), "--strict")

    assert (result.exit_code, runs(cloud)) == (0, 1), result.output
