"""The engine's events as a timeline, and the summary."""

from __future__ import annotations

import json
from typing import Any

from pulumi.automation.events import EngineEvent, PropertyDiff

from training_platform.parts.sandbox.run.reports import (
    REFERENCE,
    QuotaRow,
    Timeline,
    as_json,
    as_text,
    summarize,
)

PREFIX = "urn:pulumi:dev::training-platform::"


class Clock:
    """A clock that tests advance."""

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


def diagnostic(severity: str, message: str, about: str = "") -> EngineEvent:
    event = {"message": message, "color": "never", "severity": severity, "urn": about}
    return EngineEvent.from_json({"diagnosticEvent": event})


def timeline(*events: tuple[float, EngineEvent]) -> Timeline:
    clock = Clock()
    run = Timeline(clock)
    for seconds, event in events:
        clock.now = 100.0 + seconds
        run.take(event)
    return run


def test_an_operation_lasts_from_its_first_event_to_its_last() -> None:
    run = timeline((1, step("resourcePreEvent", "a")), (7, step("resOutputsEvent", "a")))

    assert [(operation.name, operation.began, operation.seconds, operation.failed) for operation in run.changed()] == [
        ("a", 1, 6, False)
    ]
    assert run.length() == 6


def test_what_has_not_ended_is_under_way_and_the_oldest_comes_first() -> None:
    run = timeline(
        (1, step("resourcePreEvent", "a")), (2, step("resourcePreEvent", "b")), (3, step("resOutputsEvent", "a"))
    )

    assert [operation.name for operation in run.in_progress()] == ["b"]
    assert run.done() == 1


def test_headings_and_what_stayed_the_same_changed_nothing() -> None:
    run = timeline(
        (1, step("resourcePreEvent", "component", custom=False)),
        (2, step("resourcePreEvent", "a", "same")),
        (3, step("resOutputsEvent", "a", "same")),
        (9, step("resOutputsEvent", "component", custom=False)),
    )

    assert run.changed() == []
    assert run.done() == 2
    assert run.length() == 0


def test_an_error_is_told_once_with_its_resource_and_without_the_plugins_own_log() -> None:
    run = timeline(
        (1, diagnostic("error", "sdk-v2/provider2.go:571: sdk.helper_schema: Error 403", urn("a"))),
        (1, diagnostic("error", "Error 403\n", urn("a"))),
        (1, diagnostic("error", "Error 403", urn("a"))),
        (2, diagnostic("error", "update failed")),
        (2, diagnostic("warning", "using pulumi-resource-gcp from $PATH at /usr/bin")),
        (3, diagnostic("info#err", "noise")),
    )

    assert run.errors == ["a: Error 403"]
    assert run.warnings == []


def test_the_summary_has_order_duration_quota_and_failures() -> None:
    run = timeline(
        (0, step("resourcePreEvent", "a")),
        (4, step("resOutputsEvent", "a")),
        (5, step("resourcePreEvent", "b")),
        (8, step("resOpFailedEvent", "b", status=1, steps=1)),
    )
    row = QuotaRow(project="p", service="compute.googleapis.com", quota="CPUS in us-central1", used=24, limit=200)

    summary = summarize("dev", "up", run, failed=True, quotas=[row], notes=["A note."])

    assert [(step_row["name"], step_row["failed"]) for step_row in summary.steps] == [("a", False), ("b", True)]
    assert summary.seconds == 8
    assert json.loads(as_json(summary))["steps"][1]["urn"] == urn("b")
    text = as_text(summary)
    assert text.startswith("dev: up failed: ")
    assert "    created 1 gcp Cluster\n    failed to create 1 gcp Cluster\n" in text
    assert "  From the first change to the last: 8.0 s\n" in text
    assert "p  compute.googleapis.com  CPUS in us-central1: 24 of 200" in text
    assert text.endswith("  A note.")


def test_a_refresh_counts_neither_components_nor_a_stack_that_is_read() -> None:
    run = timeline()
    run.counts = {"same": 3}

    assert as_text(summarize("dev", "refresh", run, without_events=2)).startswith("dev: refresh done: 1 unchanged")


def test_a_preview_says_what_would_be_done() -> None:
    run = timeline()
    run.counts = {"create": 3, "same": 1}

    assert as_text(summarize("dev", "preview", run)).startswith("dev: preview done: 3 to create, 1 unchanged")


def changed(name: str, op: str, **fields: str) -> tuple[float, EngineEvent]:
    diff = {path: {"diffKind": kind, "inputDiff": True} for path, kind in fields.items()}
    event = step("resourcePreEvent", name, op)
    assert event.resource_pre_event is not None
    event.resource_pre_event.metadata.detailed_diff = {
        path: PropertyDiff.from_json(value) for path, value in diff.items()
    }
    return 0.0, event


def test_a_preview_names_what_it_would_replace_delete_or_change_with_the_fields() -> None:
    run = timeline(
        changed("new", "create"),
        changed("labels", "update", resourceLabels="update"),
        changed("zone", "create-replacement", description="update", location="update-replace", __meta="update"),
        changed("range", "create-replacement", ipCidrRange="update", __meta="update-replace"),
        changed("old", "delete"),
        *((1.0, step("resOutputsEvent", name, op)) for name, op in (
            ("new", "create"), ("labels", "update"), ("zone", "create-replacement"), ("range", "create-replacement"),
            ("old", "delete"),
        )),
    )  # fmt: skip
    run.counts = {"create": 1, "update": 1, "replace": 1, "delete": 1}

    assert as_text(summarize("dev", "preview", run)).splitlines()[1:] == [
        "    replaces zone (gcp Cluster): location",
        "    replaces range (gcp Cluster): ipCidrRange",
        "    deletes old (gcp Cluster)",
        "    updates labels (gcp Cluster): resourceLabels",
    ]


def test_a_reference_that_was_only_read_is_not_forgotten() -> None:
    run = timeline(
        (0.0, step("resourcePreEvent", "prod", "discard", resource_type=REFERENCE)),
        (1.0, step("resOutputsEvent", "prod", "discard", resource_type=REFERENCE)),
    )
    run.counts = {"delete": 64, "discard": 1}

    assert as_text(summarize("dev", "destroy", run)) == "dev: destroy done: 64 deleted"
