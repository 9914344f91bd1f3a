"""The requests of controllers against the pools where they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.declaration import located
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace
from training_platform.rules.system_requests import system_pool_findings

FULL: dict[str, Any] = {"serving": True, "operators": ["ray"]}


def system(machine: str, minimum: int, maximum: int) -> dict[str, Any]:
    return {"system_pool": {"machine_type": machine, "min_nodes": minimum, "max_nodes": maximum}}


def findings_of(fields: dict[str, Any]) -> list[Finding]:
    subnet = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}
    cluster = {"location": "us-central1-a", "subnet": subnet, **fields}
    section = {"project": "example-train", "production": False, "clusters": {"main": cluster}}
    text = yaml.safe_dump({"config": {"training-platform:environment": section}})
    stack = parse_stack("lab", parse_source(text, "stacks/Pulumi.lab.yaml"))
    assert not stack.findings, [str(finding) for finding in stack.findings]
    return located(system_pool_findings(Workspace(Path(), {"lab": stack})))


def found(**fields: Any) -> list[tuple[str, str | None, str]]:
    findings = findings_of(fields)
    return [(finding.severity, finding.nearest, finding.path.removeprefix("clusters.main.")) for finding in findings]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({**FULL, **system("e2-standard-2", 2, 2)}, []),
        ({**FULL, **system("e2-standard-2", 1, 1)}, [("error", "2", "system_pool.max_nodes")]),
        ({**FULL, **system("e2-standard-2", 1, 2)}, [("warning", "2", "system_pool.min_nodes")]),
        (system("e2-standard-2", 1, 2), [("warning", "2", "system_pool.min_nodes")]),
        ({**system("e2-standard-2", 1, 1), "software": {"kueue": "none", "jobset": "none"}}, []),
        ({**FULL, **system("e2-standard-2", 1, 1), "cpu_pools": {"more": {"min_nodes": 1, "max_nodes": 1}}}, []),
    ],
    ids=["default", "two VMs", "one VM", "one VM at first", "less software", "nothing installed", "another pool"],
)
def test_pools_without_accelerators_hold_the_controllers(fields: dict[str, Any], expected: list[Any]) -> None:
    assert found(**fields) == expected


def with_fallbacks(maximum: int, *machines: str) -> dict[str, Any]:
    fields = system("e2-standard-8", 1, maximum)
    fields["system_pool"]["fallback_machine_types"] = list(machines)
    return fields


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({**FULL, **with_fallbacks(1, "n2-standard-4")}, []),
        (
            {**FULL, **with_fallbacks(1, "n2-standard-4", "n2d-standard-2")},
            [("error", "max_nodes 2", "system_pool.fallback_machine_types[1]")],
        ),
        ({**FULL, **with_fallbacks(2, "n2-standard-4", "n2d-standard-2")}, []),
    ],
    ids=["large enough", "one too small", "two VMs"],
)
def test_each_fallback_holds_the_controllers_without_the_other_machine_types(
    fields: dict[str, Any], expected: list[Any]
) -> None:
    assert found(**fields) == expected


def test_the_message_has_the_sum_and_the_room() -> None:
    (finding,) = findings_of({**FULL, **system("e2-standard-2", 1, 1)})

    assert finding.message == (
        "controllers of main request 2.35 vCPUs, but in addition to GKE's own pods its pools without accelerators have "
        "room for 1.23 at most"
    )
