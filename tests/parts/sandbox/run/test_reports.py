"""The engine's events as a timeline, and the summary."""

from __future__ import annotations

import json
from typing import Any

from pulumi.automation.events import EngineEvent

from training_platform.parts.sandbox.run.reports import (
    QuotaRow,
    Timeline,
    as_json,
    as_text,
    summarize,
)

PREFIX = "urn:pulumi:dev::training-platform::"


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def urn(name: str, kind: str = "gcp:container/cluster:Cluster") -> str:
    return f"{PREFIX}{kind}::{name}"


def step(
    kind: str,
    name: str,
    op: str = "create",
    custom: bool = True,
    resource_type: str = "gcp:container/cluster:Cluster",
    **more: Any,
) -> EngineEvent:
    state = {"type": "t", "urn": urn(name), "id": "", "parent": "", "provider": "", "custom": custom}
    about = {"op": op, "urn": urn(name), "type": resource_type, "provider": "", "new": state}
    return EngineEvent.from_json({kind: {"metadata": about, **more}})


def said(severity: str, message: str, about: str = "") -> EngineEvent:
    event = {"message": message, "color": "never", "severity": severity, "urn": about}
    return EngineEvent.from_json({"diagnosticEvent": event})


def timeline(*events: tuple[float, EngineEvent]) -> Timeline:
    clock = Clock()
    found = Timeline(clock)
    for at, event in events:
        clock.now = 100.0 + at
        found.take(event)
    return found


def test_an_operation_lasts_from_its_first_event_to_its_last() -> None:
    found = timeline((1, step("resourcePreEvent", "a")), (7, step("resOutputsEvent", "a")))

    assert [(each.name, each.began, each.seconds, each.failed) for each in found.changed()] == [("a", 1, 6, False)]
    assert found.length() == 6


def test_what_has_not_ended_is_under_way_and_the_oldest_comes_first() -> None:
    found = timeline(
        (1, step("resourcePreEvent", "a")), (2, step("resourcePreEvent", "b")), (3, step("resOutputsEvent", "a"))
    )

    assert [each.name for each in found.under_way()] == ["b"]
    assert found.done() == 1


def test_headings_and_what_stayed_the_same_changed_nothing() -> None:
    found = timeline(
        (1, step("resourcePreEvent", "component", custom=False)),
        (2, step("resourcePreEvent", "a", "same")),
        (3, step("resOutputsEvent", "a", "same")),
        (9, step("resOutputsEvent", "component", custom=False)),
    )

    assert found.changed() == []
    assert found.done() == 2
    assert found.length() == 0


def test_an_error_is_told_once_with_its_resource_and_without_the_plugins_own_log() -> None:
    found = timeline(
        (1, said("error", "sdk-v2/provider2.go:571: sdk.helper_schema: Error 403", urn("a"))),
        (1, said("error", "Error 403\n", urn("a"))),
        (1, said("error", "Error 403", urn("a"))),
        (2, said("error", "update failed")),
        (2, said("warning", "using pulumi-resource-gcp from $PATH at /usr/bin")),
        (3, said("info#err", "noise")),
    )

    assert found.errors == ["a: Error 403"]
    assert found.warnings == []


def test_the_summary_has_order_duration_quota_and_failures() -> None:
    found = timeline(
        (0, step("resourcePreEvent", "a")),
        (4, step("resOutputsEvent", "a")),
        (5, step("resourcePreEvent", "b")),
        (8, step("resOpFailedEvent", "b", status=1, steps=1)),
    )
    row = QuotaRow(project="p", service="compute.googleapis.com", quota="CPUS in us-central1", used=24, limit=200)

    summary = summarize("dev", "up", found, failed=True, quotas=[row], notes=["A note."])

    assert [(each["name"], each["failed"]) for each in summary.steps] == [("a", False), ("b", True)]
    assert summary.seconds == 8
    assert json.loads(as_json(summary))["steps"][1]["urn"] == urn("b")
    text = as_text(summary)
    assert text.startswith("dev: up failed: ")
    assert "    created 1 gcp Cluster\n    failed to create 1 gcp Cluster\n" in text
    assert "  From the first change to the last: 8.0 s\n" in text
    assert "p  compute.googleapis.com  CPUS in us-central1: 24 of 200" in text
    assert text.endswith("  A note.")


def test_a_summary_counts_resources_as_a_check_does() -> None:
    provider = "pulumi:providers:gcp"
    found = timeline(
        (0, step("resourcePreEvent", "component", custom=False)),
        (1, step("resourcePreEvent", "default_10_2_0", resource_type=provider)),
        (2, step("resOutputsEvent", "default_10_2_0", resource_type=provider)),
        (3, step("resourcePreEvent", "kubernetes", resource_type="pulumi:providers:kubernetes")),
        (4, step("resOutputsEvent", "kubernetes", resource_type="pulumi:providers:kubernetes")),
        (5, step("resourcePreEvent", "a")),
        (6, step("resOutputsEvent", "a")),
        (7, step("resOutputsEvent", "component", custom=False)),
    )
    found.counts = {"create": 3}  # of the engine: without its own provider, with the component

    text = as_text(summarize("dev", "up", found))

    assert text.startswith("dev: up done: 2 created\n")
    assert "    created 1 kubernetes provider\n    created 1 gcp Cluster\n" in text
    assert "gcp provider" not in text


def test_a_refresh_counts_neither_components_nor_a_stack_that_is_read() -> None:
    found = timeline()
    found.counts = {"same": 3}

    assert as_text(summarize("dev", "refresh", found, unseen=2)).startswith("dev: refresh done: 1 unchanged")


def test_a_preview_says_what_would_be_done() -> None:
    found = timeline()
    found.counts = {"create": 3, "same": 1}

    assert as_text(summarize("dev", "preview", found)).startswith("dev: preview done: 3 to create, 1 unchanged")
