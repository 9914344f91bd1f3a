"""The record holds: whoever refused a violation refuses it again, and takes what is valid or accepted elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.training_platform.rules.corpus import accepted
from tests.violations.draw import damaged
from tests.violations.records import RECORDED, VALID, change, found
from tests.violations.refusers import NOT_SERVED, SCHEMAS, UNKNOWN, Provider, Server, provider, server, written


@pytest.fixture(scope="module")
def plugin() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not SCHEMAS.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    with server(tmp_path_factory.mktemp("violations")) as running:
        yield running


def wrongly(refuser: Provider | Server, by: str, kinds: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Return valid objects that are refused, and violations that pass."""
    refused = {name: refuser.refusal(row["type"], row["inputs"]) for name, row in VALID.items()
               if kinds in row["type"] and not row["type"].endswith("ComputeClass")}  # fmt: skip
    passed = [
        row for row in RECORDED if row.get("by") == by
        and not refuser.refusal(VALID[row["of"]]["type"], damaged(VALID[row["of"]]["inputs"], change(row)))
    ]  # fmt: skip
    return [f"{name}: {refusal}" for name, refusal in refused.items() if refusal], passed


@pytest.mark.engine
@pytest.mark.timeout(600)
def test_the_provider_refuses_its_violations_again_and_takes_what_is_valid(plugin: Provider) -> None:
    assert wrongly(plugin, "provider", "gcp:") == ([], [])


@pytest.mark.kube
@pytest.mark.timeout(600)
def test_the_api_server_refuses_its_violations_again_and_takes_what_is_valid(cluster: Server) -> None:
    assert wrongly(cluster, "server", "kubernetes:") == ([], [])


@pytest.mark.engine
@pytest.mark.timeout(600)
def test_the_provider_takes_every_accepted_configuration(plugin: Provider) -> None:
    assert _refused(plugin, "gcp:", UNKNOWN) == []


@pytest.mark.kube
@pytest.mark.timeout(600)
def test_the_api_server_takes_every_accepted_configuration(cluster: Server) -> None:
    assert _refused(cluster, "kubernetes:", "unknown") == []


def _refused(refuser: Provider | Server, kinds: str, unknown: str) -> list[str]:
    refusals = {
        f"{name} {resource}": refuser.refusal(row["type"], written(row["inputs"], unknown))
        for name, entry in accepted().items()
        for resource, row in entry.get("resources", {}).items()
        if row["type"].startswith(kinds) and not row["type"].endswith(NOT_SERVED)
    }
    return [f"{name}: {text}" for name, text in refusals.items() if text]


@pytest.mark.engine
@pytest.mark.timeout(600)
def test_what_the_apis_refuse_passes_the_provider_and_is_found_by_rules(plugin: Provider) -> None:
    """What the provider refuses by itself is not the rules' to repeat; of these it refuses hardly one."""
    answers = [row for row in RECORDED if "fact" in row]
    passed = [
        row
        for row in answers
        if not plugin.refusal(VALID[row["of"]]["type"], damaged(VALID[row["of"]]["inputs"], change(row)))
    ]

    assert len(passed) >= len(answers) - 6
    assert len([row for row in passed if found(row)]) >= len(passed) - 2
