"""Declares the rules for jobs on any target, or on one target. Rules for a target share a rule set and sources."""

from __future__ import annotations

from training_platform.config.reading.declaration import Rule, declare
from training_platform.config.reading.finding import Severity

_ON_GKE = "webhooks of JobSet and Kueue, and documentation of GKE, read 2026"
_ON_VERTEX = "documentation and protos of Vertex AI, read 2026-08-22"


def job_rule(rule_id: str, title: str, *, severity: Severity = "error", refused_by: str | None = None) -> Rule:
    """Declare a rule for jobs on any target. Raises ValueError if the id exists already."""
    return declare(rule_id, title, ruleset="jobs", severity=severity, refused_by=refused_by)


def gke_rule(rule_id: str, title: str, *, severity: Severity = "error") -> Rule:
    """Declare a rule for jobs on GKE. Raises ValueError if the id exists already."""
    return declare(rule_id, title, ruleset="jobs-on-gke", severity=severity, source=_ON_GKE)


def vertex_rule(rule_id: str, title: str, *, severity: Severity = "error") -> Rule:
    """Declare a rule for jobs on Vertex AI. Raises ValueError if the id exists already."""
    return declare(rule_id, title, ruleset="jobs-on-vertex", severity=severity, source=_ON_VERTEX)
