import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from training_platform.config.reading.finding import Position
from training_platform.config.reading.source import Reader, Source, UnreadableError, parse_source, read_source


def test_a_key_of_digits_after_a_flag_is_no_second_half_of_a_number() -> None:
    source = parse_source("{a: true, 500: x}", "f.yaml")

    assert source.value == {"a": True, "500": "x"}
    assert not any("comma" in finding.message for finding in source.findings)


def test_a_path_that_is_not_written_is_placed_at_what_encloses_it() -> None:
    source = parse_source("a:\n  b: 1\n", "f.yaml")

    assert source.position(("a", "boot_disk", "size_gb")) == source.position(("a",))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("9007199254740992", 2**53),
        ("1.5", 1.5),
        ('"1.30"', "1.30"),
        ("'yes'", "yes"),
        ("2x2x4", "2x2x4"),
        ("us-central1-a", "us-central1-a"),
    ],
)
def test_a_scalar_reads_as_every_reader_reads_it(text: str, value: object) -> None:
    source = parse_source(f"a: {text}\n", "f.yaml")

    assert source.value == {"a": value}
    assert type(source.value["a"]) is type(value)
    assert not source.findings


def test_an_integer_that_no_float_holds_must_be_quoted() -> None:
    assert parse_source(f"a: {2**53 + 1}\n", "f.yaml").findings
    assert parse_source(f"a: -{'9' * 400}\n", "f.yaml").findings


def test_an_empty_file_has_a_first_line() -> None:
    assert parse_source("", "f.yaml").position(("a",)) == Position(1, 1)


def test_a_merge_key_is_found() -> None:
    source = parse_source("base: &b {x: 1}\na:\n  <<: *b\n", "f.yaml")

    assert [finding.path for finding in source.findings] == ["a.<<"]


def test_an_alias_reads_as_what_it_stands_for() -> None:
    assert parse_source("a: &x {n: 1}\nb: *x\n", "f.yaml").value == {"a": {"n": 1}, "b": {"n": 1}}


def test_an_alias_of_itself_is_unreadable() -> None:
    with pytest.raises(UnreadableError, match="too deeply"):
        parse_source("a: &x [*x]\n", "f.yaml")


def test_aliases_of_aliases_do_not_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    with pytest.raises(UnreadableError, match="repeated too deeply"):
        parse_source("\n".join(lines), "f.yaml")


def test_deep_nesting_gives_one_sentence_and_does_not_end_the_process() -> None:
    for text in ("[" * 26_000, "[\n" * 26_000, "{a: " * 26_000, "- " * 26_000, "? " * 26_000, "&a [" * 26_000):
        with pytest.raises(UnreadableError, match=r"f\.yaml:\d+:\d+: is nested or repeated too deeply"):
            parse_source(text, "f.yaml")


def test_a_small_file_of_aliases_is_refused_before_it_is_read_out() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 40)]
    source = Source("f.yaml")

    with pytest.raises(UnreadableError, match=r"f\.yaml:6:5: is nested or repeated too deeply"):
        Reader(source, yaml.parse("\n".join(lines), Loader=yaml.BaseLoader)).document()

    assert len(source.positions) < 200_000


def test_what_aliases_may_stand_for_is_counted_as_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training_platform.config.reading.source._MOST_REPEATED", 1_000)
    hundred = f"a: &a [{', '.join('x' * 98)}]\n"  # 98 values between the events of its start and its end

    parse_source(hundred + f"b: [{', '.join(['*a'] * 10)}]\n", "f.yaml")
    with pytest.raises(UnreadableError, match="repeated too deeply"):
        parse_source(hundred + f"b: [{', '.join(['*a'] * 11)}]\n", "f.yaml")


def test_an_anchor_belongs_only_to_its_own_events() -> None:
    text = "a: &x [1, &y {n: 2}]\nb: [*y, *x]\n"

    assert parse_source(text, "f.yaml").value == {"a": [1, {"n": 2}], "b": [{"n": 2}, [1, {"n": 2}]]}
    with pytest.raises(UnreadableError, match=r"f\.yaml:2:4: is not YAML: no anchor 'z' precedes this alias"):
        parse_source("a: 1\nb: *z\n", "f.yaml")
    with pytest.raises(UnreadableError, match=r"f\.yaml:2:4: is not YAML: the anchor 'x' is given twice"):
        parse_source("a: &x 1\nb: &x 2\n", "f.yaml")


def test_a_second_document_gives_one_sentence() -> None:
    with pytest.raises(UnreadableError, match=r"f\.yaml:2:1: is not YAML: a second document starts here"):
        parse_source("a: 1\n---\nb: 2\n", "f.yaml")


def test_anything_but_a_regular_file_gives_one_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "endless.yaml").symlink_to("/dev/zero")
    (tmp_path / "folder.yaml").mkdir()

    for name in ("pipe", "endless", "folder"):
        with pytest.raises(UnreadableError, match="is not a regular file"):
            read_source(tmp_path / f"{name}.yaml", "f.yaml")


def test_a_file_of_64_mib_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    with path.open("wb") as file:
        file.write(b"a: 1\n#")
        file.truncate(64 * 2**20)  # zero bytes, which are not YAML

    with pytest.raises(UnreadableError, match="is not YAML"):
        read_source(path, "f.yaml")
    with path.open("ab") as file:
        file.write(b"\n")
    with pytest.raises(UnreadableError, match="is larger than 64 MiB"):
        read_source(path, "f.yaml")


def test_broken_yaml_says_where() -> None:
    with pytest.raises(UnreadableError, match=r"f\.yaml:3:1: is not YAML"):
        parse_source("a: [1,\nb: {", "f.yaml")


def test_an_unreadable_file_gives_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"f\.yaml: cannot be read"):
        read_source(tmp_path / "f.yaml", "f.yaml")


def test_a_binary_file_gives_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_bytes(b"a: \xff\n")

    with pytest.raises(UnreadableError, match=r"is not UTF-8 text \(byte 3\)"):
        read_source(tmp_path / "f.yaml", "f.yaml")


@given(st.text())
def test_no_text_makes_a_traceback(text: str) -> None:
    try:
        source = parse_source(text, "f.yaml")
    except UnreadableError as refusal:
        message = str(refusal)
    else:
        message = source.file
    assert message.startswith("f.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a: {b: "1" c: 2}\n', "f.yaml:1:12: is not YAML: a comma is missing between two entries of { }."),
        ('a: ["1" "2"]\n', "f.yaml:1:9: is not YAML: a comma is missing between two entries of [ ]."),
        (
            "a:\n  b:\n c: 1\n",
            (
                "f.yaml:3:2: is not YAML: this line is indented by 1 space, and the line above by 2; "
                "indent this line by 3 spaces."
            ),
        ),
        ("a:\n  b\n    c: 1\n", "f.yaml:2:3: is not YAML: the colon after the key is missing; write b:."),
        ("a:\n  b 2\n  c: 1\n", "f.yaml:2:3: is not YAML: the colon after the key is missing; write b: 2."),
        ("a:b\n  c: 1\n", "f.yaml:1:1: is not YAML: the colon after the key is missing; write a:b:."),
        ("a:\n  b:2\n  c: 1\n", "f.yaml:2:3: is not YAML: the space after the colon is missing; write b: 2."),
        (
            "<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> theirs\n",
            (
                "f.yaml:1:1: is not YAML: lines 1, 3 and 5 have markers of a merge conflict; "
                "keep one side and delete the markers."
            ),
        ),
    ],
)
def test_why_a_text_is_not_yaml(text: str, message: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        parse_source(text, "f.yaml")

    assert str(refused.value) == message


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("a.yaml")

    with pytest.raises(UnreadableError, match=r"a\.yaml: is a symbolic link to itself"):
        read_source(tmp_path / "a.yaml", "a.yaml")
