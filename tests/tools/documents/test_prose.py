"""Bounds that descriptions say in prose: what is read of a sentence, and what is left to people."""

from __future__ import annotations

from typing import Any

import pytest

from tools.documents.prose import said
from training_platform.rules.documents.problems import Problem
from training_platform.rules.documents.shapes import check_of

LABEL = {"pattern": "^([a-z]([-a-z0-9]{0,61}[a-z0-9])?)?$"}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("number", "Span of time. Must be from 0 to 999,999,999 inclusive.", {"least": 0, "most": 999999999}),
        ("number", "The value of the field must be in [0, 1].", {"least": 0, "most": 1}),
        ("number", "Valid range is [0.0,1.0].", {"least": 0, "most": 1}),
        ("number", "If set, this value must be between 20 and 60. The default is 20.", {"least": 20, "most": 60}),
        ("number", "Must be greater than or equal to 1 hour and less than or equal to 48 hours.",
         {"least": 1, "most": 48}),
        ("number", "The maximum allowed value is 31,622,400s (1 year).", {"most": 31622400}),
        ("number", "The maximum allowed value is two weeks (1,209,600).", {"most": 1209600}),
        ("number", "The duration. The minimum allowed value is 300.", {"least": 300}),
        ("number", "Must be from 1 to 12, or 0 to specify a year without a month and day.", {"least": 0, "most": 12}),
        ("text", "The display name is limited to 512 Unicode characters.", {"longest": 512}),
        ("text", "Optional. A description with 2048 characters or less.", {"longest": 2048}),
        ("text", "It must be between 3 and 255 characters in length.", {"shortest": 3, "longest": 255}),
        ("text", "Cannot exceed 256 characters.", {"longest": 256}),
        ("text", "The name must be 1-63 characters long, and comply withRFC1035.", LABEL),
        ("list", "A maximum of 10 audiences may be configured.", {"most": 10}),
        ("list", "Up to 5 headers can be specified.", {"most": 5}),
    ],
)  # fmt: skip
def test_a_sentence_that_says_bounds_is_read(kind: str, text: str, expected: dict[str, Any]) -> None:
    assert said(kind, (text,), {}) == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("number", "The value must be a number between 1 and the number of availability domains."),
        ("number", "If cron_schedule is defined, then this must be <= 360."),
        ("number", "For internal load balancers the minimum (default) is 10 minutes and the maximum is 16 hours."),
        ("number", "Values must be between 10,000 and 120,000."),
        ("number", "The limit may be exceeded, and must be between 1 and 10 GiB."),
        ("number", "Must be greater than or equal to 0 and typically must be less than or equal to 23."),
        ("text", "Prefixes with lengths longer than 14 characters will use a shortened UUID."),
        ("text", "A path. Format: projects/{project}/global/networks/{network}. It can be up to 63 characters long."),
        ("text", "The value must be a valid RFC1035 name (1-63 characters) or a valid instance URL."),
        ("list", "This field supports up to 1,024 total characters in a single request."),
    ],
)
def test_a_sentence_of_some_cases_or_another_unit_is_left(kind: str, text: str) -> None:
    assert said(kind, (text,), {}) == {}


def test_the_api_is_believed_before_the_provider_and_a_pattern_of_a_document_before_prose() -> None:
    texts = ("Must be between 1 and 30 days, inclusive.", "Must be between 1 and 31 days, inclusive.")

    assert said("number", texts, {}) == {"least": 1, "most": 31}
    assert said("text", ("Cannot exceed 9 characters.",), {"pattern": "[a-z]{3}"}) == {}


@pytest.mark.parametrize(
    ("token", "inputs", "path"),
    [
        ("gcp:compute/route:Route", {"priority": 70_000}, "priority"),  # a wider bound of its type in the document
        ("gcp:compute/backendService:BackendService", {"cdnPolicy": {"clientTtl": 40_000_000}}, "cdnPolicy.clientTtl"),
        ("gcp:lustre/instance:Instance", {"instanceId": "a" * 64}, "instanceId"),
        ("gcp:billing/budget:Budget", {"budgetFilter": {"customPeriod": {"startDate": {"day": 0}}}},
         "budgetFilter.customPeriod.startDate.day"),  # the provider's bound is narrower than that in prose
    ],
)  # fmt: skip
def test_a_value_out_of_the_bounds_is_found(token: str, inputs: dict[str, Any], path: str) -> None:
    found = list[Problem]()
    judge = check_of(token)
    assert judge

    judge(inputs, (), found.append)

    assert [problem.path for problem in found if problem.kind in ("range", "format")] == [path]
