"""Gateway API and GKE's policies beside it, judged as whole objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.documents.gateways import CASES, IDS, Case, inputs
from tests.training_platform.rules.documents.whole_objects import found


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_a_gateway_cannot_be_is_found_where_it_is(case: Case) -> None:
    def paths(part: dict[str, Any]) -> list[str]:
        return [finding.path for finding in found(f"kubernetes:{case.version}:{case.kind}", **inputs(case.kind, part))]

    assert (paths(case.wrong), paths(case.right)) == ([case.path], [])
