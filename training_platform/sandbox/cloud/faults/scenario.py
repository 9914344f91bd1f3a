"""Reads scenario files, with the place of all that is wrong."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from training_platform.config.reading.rejection import RULE, rejections
from training_platform.config.reading.source import Source, UnreadableError, parse_source, read_source
from training_platform.sandbox.cloud.faults.spec import Scenario


class ScenarioError(Exception):
    """A scenario that cannot be played; the message has every finding, each with file, line and column."""


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file. Raises ScenarioError."""
    try:
        return _scenario(read_source(path, str(path)))
    except UnreadableError as error:
        raise ScenarioError(str(error)) from error


def parse_scenario(text: str, file: str) -> Scenario:
    """Return the scenario in a text, YAML or JSON; ``file`` is what errors call it. Raises ScenarioError."""
    try:
        return _scenario(parse_source(text, file))
    except UnreadableError as error:
        raise ScenarioError(str(error)) from error


def _scenario(source: Source) -> Scenario:
    findings = list(source.findings)
    try:
        scenario = Scenario.model_validate(source.value)
    except ValidationError as error:
        findings += rejections(error, Scenario, source, (), "")
    else:
        if not findings and not any(scenario.faults()):
            findings.append(source.finding(RULE, (), "has no fault", allowed=", ".join(Scenario.model_fields)))
    if findings:
        raise ScenarioError("\n".join(str(each) for each in findings))
    return scenario
