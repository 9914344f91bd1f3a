"""The alerts' scenarios as promtool, Prometheus' own tester of rules, reads them, and the verdicts of its last run.

``python -m tests.alerts.promtool`` plays every scenario and writes ``verdicts.yaml``, which the tests hold against the
expressions and scenarios of today. promtool is named by TRAINING_PLATFORM_PROMTOOL, or is on PATH.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.support.promql import OF_HISTOGRAMS, metrics
from training_platform.resources.monitoring import EVALUATION, AlertRule, alert_rules

PROGRAM = "TRAINING_PLATFORM_PROMTOOL"
FOLDER = Path(__file__).parent
VERDICTS = FOLDER / "verdicts.yaml"
CLUSTERS = ("prod-us-central1", "prod-us-west4")
PROJECT = "example-train-prod"
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Scenario(NamedTuple):
    """Series over time, in promtool's notation, and the labels of the incidents that are open at some times.

    Each sample is a minute after the one before. A scenario without incidents keeps its alert quiet.
    """

    name: str
    series: Mapping[str, str]
    open: Mapping[str, list[str]]

    @property
    def fires(self) -> bool:
        """Whether an incident is open at some time."""
        return any(self.open.values())


@cache
def _file() -> Mapping[str, Any]:
    content: dict[str, Any] = yaml.safe_load((FOLDER / "scenarios.yaml").read_text(encoding="utf-8"))
    return content


@cache
def scenarios() -> Mapping[str, list[Scenario]]:
    """Return the scenarios of each alert, with series that carry all labels their source writes."""
    return {
        alert: [
            Scenario(
                name,
                {written(text, alert_rules()[alert].needs): values for text, values in row["series"].items()},
                row["open"],
            )
            for name, row in rows.items()
        ]
        for alert, rows in _file()["scenarios"].items()
    }


def written(text: str, needs: str) -> str:
    """Return a series with every label that its source writes; those it does not give have the source's usual value.

    Raises ValueError for a metric or a label that the source does not have.
    """
    source = metrics()[needs]
    usual = _file()["labels"][needs]
    name, _, label_text = text.partition("{")
    labels_of_series = dict(_LABEL.findall(label_text))
    base = next((name.removesuffix(end) for end in OF_HISTOGRAMS if name.endswith(end)), name)
    labels_of_metric = source["metrics"].get(name, source["metrics"].get(base))
    if labels_of_metric is None:
        raise ValueError(f"{needs} has no metric {name}")
    labels = [*source["labels"], *labels_of_metric]
    if name.endswith("_bucket"):
        labels.append("le")
    if unknown := labels_of_series.keys() - set(labels):
        raise ValueError(f"{name} has no label {', '.join(sorted(unknown))}")
    values = {label: labels_of_series[label] if label in labels_of_series else usual[label] for label in labels}
    return name + "{" + ",".join(f'{label}="{value}"' for label, value in values.items() if value) + "}"


def as_rules(name: str, rule: AlertRule) -> dict[str, Any]:
    """Return an alert as a Prometheus rule, evaluated as often as its policy."""
    alert = {"alert": name, "expr": rule.query(CLUSTERS, PROJECT), "for": f"{rule.for_seconds}s"}
    return {"groups": [{"name": "alerts", "interval": EVALUATION, "rules": [alert]}]}


def as_tests(name: str, played: list[Scenario]) -> dict[str, Any]:
    """Return an alert's scenarios as promtool's tests."""
    tests = [
        {
            "name": scenario.name,
            "interval": "1m",
            "input_series": [{"series": key, "values": values} for key, values in scenario.series.items()],
            "alert_rule_test": [
                {
                    "eval_time": time,
                    "alertname": name,
                    "exp_alerts": [{"exp_labels": dict(_LABEL.findall(labels))} for labels in incidents],
                }
                for time, incidents in scenario.open.items()
            ],
        }
        for scenario in played
    ]
    return {"rule_files": ["rules.yaml"], "evaluation_interval": EVALUATION, "tests": tests}


def digest(name: str, scenario: Scenario) -> str:
    """Return what changes with an alert's expression, with the time it holds, and with the scenario."""
    content = [as_rules(name, alert_rules()[name]), as_tests(name, [scenario])]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def program() -> str | None:
    """Return promtool's path, where a setting or PATH names one."""
    return os.environ.get(PROGRAM) or shutil.which("promtool")


def play(name: str, rule: AlertRule, played: list[Scenario]) -> str:
    """Return what promtool says against an alert; nothing where all scenarios end as they should."""
    promtool = program()
    assert promtool, f"{PROGRAM} names no promtool"
    with tempfile.TemporaryDirectory() as folder:
        for file, content in {"rules.yaml": as_rules(name, rule), "tests.yaml": as_tests(name, played)}.items():
            Path(folder, file).write_text(yaml.safe_dump(content), encoding="utf-8")
        run = subprocess.run(
            [promtool, "test", "rules", "tests.yaml"], cwd=folder, capture_output=True, text=True, check=False
        )
    return run.stdout + run.stderr if run.returncode else ""


def verdicts() -> Mapping[str, Any]:
    """Return promtool's version, and the digest of each scenario that ended as it should."""
    content: dict[str, Any] = yaml.safe_load(VERDICTS.read_text(encoding="utf-8"))
    return content


def main() -> int:
    """Play every scenario; record the verdicts, or print what promtool says and return 1."""
    complaints = {name: play(name, alert_rules()[name], played) for name, played in scenarios().items()}
    for name, complaint in complaints.items():
        if complaint:
            sys.stderr.write(f"{name}:\n{complaint}\n")
    if any(complaints.values()):
        return 1
    version = subprocess.run([str(program()), "--version"], capture_output=True, text=True, check=True).stdout
    recorded = {
        "promtool": version.split()[2],
        "passed": {
            name: {scenario.name: digest(name, scenario) for scenario in played} for name, played in scenarios().items()
        },
    }
    text = "# Written by python -m tests.alerts.promtool: what promtool found right, by alert and scenario.\n"
    VERDICTS.write_text(text + yaml.safe_dump(recorded, sort_keys=False, width=120), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
