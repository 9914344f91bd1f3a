"""State files: a broken one gives one sentence, and a failed write leaves the old one."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from local_google_cloud.files import BrokenFile, write_whole
from local_google_cloud.kubernetes.object_store import ObjectStore
from local_google_cloud.state.store import Store
from tests.support.places import ORGANISATION
from training_platform.cli.main import app

BROKEN = (
    "",
    "{",
    "[]",
    "null",
    "7",
    '{"format": 1}',
    '{"format": 1, "serial": 1, "records": [{"name": "a"}]}',
    '{"format": 1, "serial": "x", "records": []}',
    '[{"cluster": "a"}]',
    "[" * 100_000,
)


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:30])
@pytest.mark.parametrize("store", [Store, ObjectStore], ids=["cloud", "kubernetes"])
def test_a_broken_file_is_refused_with_its_name(store: type[Store | ObjectStore], text: str, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(text)
    if text == "[]" and store is ObjectStore:
        assert ObjectStore(file).clusters() == []
        return

    with pytest.raises(BrokenFile, match=rf"\A{file} is broken: .+\. Delete the sandbox's folder to start again\.\Z"):
        store(file)


@pytest.mark.parametrize("name", ["cloud.json", "kubernetes.json", "server.json"])
def test_the_command_says_it_in_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{")

    ran = CliRunner().invoke(app, ["sandbox", "status", "--root", str(ORGANISATION), "--workspace", str(tmp_path)])

    assert ran.exit_code == 2
    assert f"{tmp_path / name} is broken" in ran.output
    assert "Traceback" not in ran.output


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state.json"
    write_whole(file, "old")

    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, "new")

    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]
