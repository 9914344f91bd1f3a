"""Of violations that somebody refused first, the rules find 95 in 100, with resource, input and what is allowed."""

from __future__ import annotations

from tests.violations.records import RECORDED, VALID, findings_of, found

LEAST = 0.95


def test_a_valid_object_of_every_kind_breaks_no_rule() -> None:
    errors = {name: [finding for finding in findings_of(name, row["inputs"]) if finding.severity == "error"]
              for name, row in VALID.items()}  # fmt: skip

    assert {name: rows for name, rows in errors.items() if rows} == {}


def test_95_in_100_violations_are_found_where_they_are() -> None:
    missed = [row for row in RECORDED if not found(row)]
    lines = "\n".join(f"{row['of']} {row['values']}: {row.get('says', row.get('fact'))}" for row in missed)

    assert len(missed) <= (1 - LEAST) * len(RECORDED), lines


def test_what_is_found_names_resource_input_and_what_is_allowed() -> None:
    for row in RECORDED:
        for finding in found(row):
            assert finding.resource == f"{VALID[row['of']]['type']} {row['of']}"
            assert finding.path, finding
            assert finding.allowed, finding
            assert finding.message, finding
