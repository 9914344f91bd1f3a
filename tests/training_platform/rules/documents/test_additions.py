"""What is added to the documents by hand: it fits every version of a type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training_platform.rules import documents
from training_platform.rules.documents.shapes import check_of

FOLDER = Path(documents.__file__).parent


@pytest.mark.parametrize("file", ["google.json", "kubernetes.json", "gke.json"])
def test_every_type_with_a_document_is_judged(file: str) -> None:
    types = json.loads((FOLDER / file).read_text(encoding="utf-8"))["types"]

    assert [token for token in types if check_of(token) is None] == []
