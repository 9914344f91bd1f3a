"""``pipelines/judge`` hands the preview of each stack to a check, which says what it takes from whom."""

from __future__ import annotations

from pathlib import Path

from tests.pipelines.conftest import run


def test_a_check_judges_the_preview_of_each_stack(repository: Path) -> None:
    command = repository / ".venv" / "bin" / "training-platform"
    real = command.read_text()
    command.write_text(real.replace("#!/bin/sh\n", '#!/bin/sh\ncase $1 in check) echo "$@"; exit 1;; esac\n'))

    code, lines = run(repository, "judge", "dev", "origin/main")

    assert code == 1
    (line,) = lines
    assert line.startswith("check --base origin/main --new-only --preview ")
    assert [part.rsplit("/", 1)[1] for part in line.split() if part.endswith(".json")] == [
        "dev.json", "dev-nlp.json", "dev-vision.json",
    ]  # fmt: skip
