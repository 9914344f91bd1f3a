"""The documents of Google's resources: whole, and equal to what the generator makes of the installed packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.documents import __main__ as generator
from tools.documents import google
from training_platform.resources.register import REGISTER
from training_platform.resources.rest import paths
from training_platform.rules.documents.shapes import check_of


@pytest.fixture(scope="module", name="written")
def _written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, google.Reader]:
    folder = tmp_path_factory.mktemp("documents")
    return folder / "google.json", generator.write_google(folder)


def test_the_documents_are_those_of_the_installed_packages(written: tuple[Path, google.Reader]) -> None:
    committed = (generator.TARGET / "google.json").read_text(encoding="utf-8")

    assert written[0].read_text(encoding="utf-8") == committed, "run make documents"


def test_every_type_of_the_register_has_a_document() -> None:
    types = {token for token in REGISTER if token.startswith("gcp:")}

    assert types <= set(paths()["types"])
    assert [token for token in types if check_of(token) is None] == []


def test_every_input_has_a_field_or_a_reason_to_have_none(written: tuple[Path, google.Reader]) -> None:
    left = {name for row in google.PATHS["left"] for name in row["inputs"]}
    missing = {each if each in left else each.rpartition(".")[2] for each in written[1].missing - _output()}

    assert missing == left


def test_every_renamed_input_is_one_that_the_provider_has(written: tuple[Path, google.Reader]) -> None:
    renamed = {f"{message}.{name}" for message, names in paths()["names"].items() for name in names}

    assert renamed == written[1].used
    assert renamed & written[1].missing == set()


def test_every_field_that_only_the_api_writes_is_refused_or_known_to_be_taken(
    written: tuple[Path, google.Reader],
) -> None:
    assert written[1].output - _output() == set(google.PATHS["written"])
    assert _output() <= written[1].output | written[1].missing


def _output() -> set[str]:
    return set(google.PATHS["output"])
