"""What is written by hand of the documents is in the package as it stands."""

from __future__ import annotations

import json
from pathlib import Path

from tools.documents import __main__ as generator
from tools.documents import by_hand


def test_the_package_has_what_is_written_by_hand(tmp_path: Path) -> None:
    by_hand.write(tmp_path / "by_hand.json")

    written = (tmp_path / "by_hand.json").read_text(encoding="utf-8")
    assert written == (generator.TARGET / "by_hand.json").read_text(encoding="utf-8"), "run make documents"
    assert json.loads(written) == {**by_hand.content(), "types": [list(row) for row in by_hand.content()["types"]]}
