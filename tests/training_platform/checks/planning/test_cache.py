"""Outcomes on disk: what was written comes back, anything else is a miss, and what is old goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.places import ORGANISATION
from training_platform.checks.planning import cache as module
from training_platform.checks.planning.cache import DAYS, FORMAT, Cache, cache_folder
from training_platform.checks.planning.outcome import Outcome, decode, encode
from training_platform.cli.main import app
from training_platform.config.reading.finding import UserError
from training_platform.resources.planned import UNKNOWN

DIGEST, OTHER = "ab" * 32, "cd" * 32
DAY = 24 * 3600


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "kept")


def entry(tmp_path: Path, digest: str = DIGEST) -> Path:
    return tmp_path / "kept" / digest[:2] / digest


def test_an_outcome_comes_back_as_it_was(cache: Cache, outcome: Outcome) -> None:
    cache.put(DIGEST, encode(outcome))

    assert cache.get(DIGEST) == outcome


def test_an_unknown_output_is_unknown_again_and_a_mapping_called_unknown_is_not(outcome: Outcome) -> None:
    outputs = decode(encode(outcome)).outputs

    assert outputs["endpoint"] is UNKNOWN
    assert outputs["clusters"]["unknown"]["ip"] is UNKNOWN
    assert outputs["clusters"]["names"][1] is UNKNOWN


def test_nothing_is_kept_under_another_digest(cache: Cache, outcome: Outcome) -> None:
    cache.put(DIGEST, encode(outcome))

    assert cache.get(OTHER) is None


@pytest.mark.parametrize("spoil", ["cut short", "empty", "a byte changed", "no JSON", "another's", "a folder"])
def test_a_spoiled_entry_is_a_miss(spoil: str, cache: Cache, outcome: Outcome, tmp_path: Path) -> None:
    cache.put(DIGEST, encode(outcome))
    cache.put(OTHER, encode(outcome))
    path = entry(tmp_path)
    whole = path.read_bytes()
    if spoil == "a folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(
            {
                "cut short": whole[:-20],
                "empty": b"",
                "a byte changed": whole.replace(b"is 9", b"is 8"),
                "no JSON": b"\xff\xfe\n{",
                "another's": entry(tmp_path, OTHER).read_bytes(),
            }[spoil]
        )

    assert cache.get(DIGEST) is None


def test_an_entry_with_a_right_mark_and_no_outcome_is_a_miss(cache: Cache) -> None:
    cache.put(DIGEST, b'{"findings": 3}')

    assert cache.get(DIGEST) is None


def test_a_folder_that_cannot_be_made_is_an_empty_cache(tmp_path: Path, outcome: Outcome) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache = Cache(tmp_path / "file" / "kept")

    cache.put(DIGEST, encode(outcome))
    cache.prune()

    assert cache.get(DIGEST) is None


def test_what_was_not_used_for_long_is_deleted_and_what_was_used_stays(tmp_path: Path, outcome: Outcome) -> None:
    now = [1_000_000_000.0]
    cache = Cache(tmp_path / "kept", lambda: now[0])
    for digest in (DIGEST, OTHER):
        cache.put(digest, encode(outcome))
        os.utime(entry(tmp_path, digest), (now[0], now[0]))
    now[0] += DAYS * DAY
    assert cache.get(DIGEST) is not None
    now[0] += 1

    cache.prune()

    assert entry(tmp_path).exists()
    assert not entry(tmp_path, OTHER).exists()


def test_beyond_the_most_bytes_the_longest_unused_goes(
    tmp_path: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000_000_000.0
    cache = Cache(tmp_path / "kept", lambda: now)
    for age, digest in ((2, DIGEST), (1, OTHER)):
        cache.put(digest, encode(outcome))
        os.utime(entry(tmp_path, digest), (now - age, now - age))
    monkeypatch.setattr(module, "MOST_BYTES", entry(tmp_path).stat().st_size)

    cache.prune()

    assert not entry(tmp_path).exists()
    assert entry(tmp_path, OTHER).exists()


def test_what_is_forgotten_is_a_miss(cache: Cache, outcome: Outcome) -> None:
    cache.put(DIGEST, encode(outcome))

    cache.forget([DIGEST, OTHER])

    assert cache.get(DIGEST) is None


def test_nothing_half_written_is_left_or_found(cache: Cache, outcome: Outcome, tmp_path: Path) -> None:
    cache.put(DIGEST, encode(outcome))
    cache.put(DIGEST, encode(outcome))

    assert [path.name for path in entry(tmp_path).parent.iterdir()] == [DIGEST]


@pytest.mark.parametrize(
    ("variable", "folder"), [("/var/mine", "/var/mine"), ("", "~/.cache"), ("relative", "~/.cache")]
)
def test_the_cache_is_where_the_user_has_caches(variable: str, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", variable)

    assert cache_folder() == Path(folder).expanduser() / "training-platform" / "v2"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o722])
def test_a_folder_that_others_may_write_is_refused_with_what_to_do(mode: int, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept").chmod(mode)

    with pytest.raises(UserError, match=r"not this user's alone.*--no-cache"):
        Cache(tmp_path / "kept")


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "kept").stat().st_uid + 1)

    with pytest.raises(UserError, match="is not this user's alone"):
        Cache(tmp_path / "kept")


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "kept").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UserError, match="is not this user's alone"):
        Cache(tmp_path / "kept")


def test_the_folder_is_its_owner_s_alone(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        Cache(tmp_path / "above" / "kept").put(DIGEST, b"")
    finally:
        os.umask(before)

    assert (tmp_path / "above" / "kept").stat().st_mode & 0o777 == 0o700


def test_a_check_with_a_folder_that_others_may_write_ends_with_2(tmp_path: Path) -> None:
    folder = tmp_path / "training-platform" / FORMAT
    folder.mkdir(parents=True)
    folder.chmod(0o777)

    done = CliRunner().invoke(app, ["check", "dev", "--root", str(ORGANISATION)], env={"XDG_CACHE_HOME": str(tmp_path)})

    assert done.exit_code == 2
    assert "cannot be trusted" in done.stderr
    assert "Traceback" not in done.output
