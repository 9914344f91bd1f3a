"""A mistake of our own ends with 2, could not check; 1 would read as findings."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from training_platform.cli import main


def broken() -> None:
    raise KeyError("pools\udcff")


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> object:
    """Return the exit code of a command that fails."""
    capsys.readouterr()  # what the test reads was written since
    monkeypatch.setenv("TRAINING_PLATFORM_TRACEBACK", getattr(request, "param", ""))
    monkeypatch.setattr(main, "app", broken)
    monkeypatch.setattr(main, "standard_streams", nullcontext)
    with pytest.raises(SystemExit) as ended:
        main.main()
    return ended.value.code


def test_a_mistake_of_our_own_is_one_sentence_and_exit_code_2(code: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert code == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith(
        "training-platform: failed because of a bug of its own, so nothing was checked: KeyError: "
    )
    assert sentence.endswith("TRAINING_PLATFORM_TRACEBACK=1 shows where.")


@pytest.mark.parametrize("code", ["1"], indirect=True)
def test_who_asks_is_shown_where(code: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert code == 2
    assert Path(__file__).name in capsys.readouterr().err
