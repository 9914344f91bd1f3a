"""What the check of readability sees, and what it leaves to a reader."""

from __future__ import annotations

import pytest

from tools.readability import main, remarks, tuples


def kinds(source: str) -> list[str]:
    return [remark.kind for remark in remarks(source)]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("width, height = 3, 4", "packed assignment"),
        ("for item in items if ready else ():\n    use(item)", "condition in an iterable"),
        ("sizes = [size for size in sizes if size for part in (parts if ready else [])]", "condition in an iterable"),
        ("use(**({'size': 3} if ready else {}))", "condition in an iterable"),
        ("use(*([3] if ready else []))", "condition in an iterable"),
        ("body = {**({'size': 3} if ready else {})}", "condition in an iterable"),
        ("size = 1 if small else 2 if large else 3", "nested conditional expression"),
        ("(start if ready else stop)(pool)", "callee chosen by a condition"),
        ("sizes = [c for a in x for b in a for c in b]", "dense comprehension"),
        ("sizes = [size for part in parts if (size := len(part))]", "dense comprehension"),
        ("found = 3", "vague name"),
        ("for each in pools:\n    use(each)", "vague name"),
        ("def use(wanted): ...", "vague name"),
        ("first, *rest = pools", "vague name"),
        ('def use():\n    """Read the file anew."""', "phrase in a docstring"),  # readable: a sample
        ("fail(f'{count} is no whole number')", "phrase in a text"),  # readable: a sample
    ],
)
def test_what_needs_a_second_reading_is_reported_once(source: str, kind: str) -> None:
    assert kinds(source) == [kind]


@pytest.mark.parametrize(
    "source",
    [
        "width, height = height, width",
        "width, height = size",
        "for item in items:\n    use(item)",
        "size = 1 if small else 2",
        "sizes = [b for a in x for b in a]",
        "pools.each = 3",
        'def use():\n    """Read the file again.\n\n    It stands alone."""',  # readable: a sample
        "key = 'alone'",  # readable: a sample
        "found = 3  # readable: the name of the field in the answer",
    ],
)
def test_what_reads_straight_down_is_not_reported(source: str) -> None:
    assert kinds(source) == []


CLASSES = """
class Point(NamedTuple):
    x: int
    y: int


class Range(NamedTuple):
    first: int
    last: int
    step: int


@dataclass(frozen=True)
class Pool:
    NAMES: ClassVar[int]
    name: str
    zone: str


@dataclass(kw_only=True)
class Named:
    a: int
    b: int
    c: int
"""


def test_classes_of_three_fields_by_position_are_listed() -> None:
    assert list(tuples(CLASSES)) == ["Range"]


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("Range(1, 2, 3)", 1),
        ("ranges.Range(*row)", 1),
        ("Range(1, 2, step=3)", 0),
        ("Range._make(row)", 0),
        ("Point(1, 2)", 0),
        ("Range(1, 2, 3)  # readable: a table", 0),
    ],
)
def test_fields_by_position_are_a_remark(source: str, count: int) -> None:
    assert [remark.kind for remark in remarks(source, {"Range"})] == ["fields by position"] * count


def test_remarks_are_findings(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["readability", "tools/readability.py"])
    assert main() == 0
    assert capsys.readouterr().out == ""
