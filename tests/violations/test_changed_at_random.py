"""Valid objects with one random change, before the real API server and the rules: who refuses what the other takes?

The server is asked twice, to create and to apply as pulumi-kubernetes does; nothing is kept. A change is what one
writes by mistake: an input left out, emptied or written twice, one of another object, or an odd value.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.violations.changes import LATER, Changes, bases, errors
from tests.violations.draw import valid
from tests.violations.refusers import SCHEMAS, Server, server

SEED = 20261122
CHANGES = 1500
LEAST = 0.98  # most of the rest are expressions in CEL
KINDS = {row["type"] for row in valid().values()}  # others are judged by their documents alone


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not SCHEMAS.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    with server(tmp_path_factory.mktemp("random")) as running:
        yield running


@pytest.mark.kube
@pytest.mark.timeout(900)
def test_the_rules_find_what_the_api_server_refuses_and_take_what_it_takes(cluster: Server, tmp_path: Path) -> None:
    drawn = [
        drawn_object for drawn_object in bases() if not cluster.applied(*drawn_object) and not errors(*drawn_object)
    ]
    changes = Changes(drawn, SEED)
    draw = random.Random(SEED)
    wrongly: list[str] = []
    missed: list[str] = []
    refused = 0

    for _ in range(CHANGES):
        kind, inputs = draw.choice(drawn)
        worse = changes.changed(inputs)
        refusal = cluster.applied(kind, worse)
        error_messages = errors(kind, worse)
        if refusal and kind in KINDS:
            refused += 1
            missed += [] if error_messages else [f"{kind}: {refusal}"]
        elif not refusal:
            wrongly += [message for message in error_messages if not LATER.match(message)]

    (tmp_path / "missed.txt").write_text("\n".join(missed), encoding="utf-8")
    assert wrongly == []
    assert refused >= CHANGES / 4
    assert len(missed) <= (1 - LEAST) * refused, "\n".join(missed)
