"""Renders a job file for one target, as YAML or JSON.

Imports that only one target needs are inside functions, since importing both would take a third of the rendering time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path as FilePath
from typing import Any

import yaml

from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_checks import Judgement, chosen_target, judge
from training_platform.parts.jobs.job_model import Target
from training_platform.parts.jobs.naming import as_run, point_runs
from training_platform.parts.jobs.resolve import ResolvedJob, read_job
from training_platform.parts.jobs.source_archive import archive_uri


@dataclass(frozen=True, kw_only=True)
class Rendered(Judgement):
    """A checked job with its manifest or body in ``text``, which is empty if the job has errors."""

    text: str = ""


def render_job(
    path: FilePath, root: FilePath, target: Target | None, today: date, *, as_json: bool = False
) -> Rendered:
    """Render one job file as YAML or JSON. Findings about its other target are ignored.

    Raises UnreadableError or UserError.
    """
    job, findings = read_job(path, root, read_workspace(root))
    if job is None:
        return Rendered(findings=tuple(findings))
    chosen = chosen_target(job, target)
    judgement = judge(job, chosen, today)
    if judgement.failed:
        return Rendered(findings=judgement.findings, notes=judgement.notes)
    bodies = _bodies(job, chosen)
    text = _json_of(bodies) if as_json else "---\n".join(map(yaml_text, bodies))
    return Rendered(text=text, findings=judgement.findings, notes=(*judgement.notes, *_upload_note(job)))


def _upload_note(job: ResolvedJob) -> Iterator[str]:
    if uri := archive_uri(job):
        yield f"its source is uploaded by job submit only, to {uri}"


def _bodies(job: ResolvedJob, target: Target) -> list[dict[str, Any]]:
    """Return the request bodies for a run with the job's name: one, or on GKE one JobSet per point of a sweep."""
    if target == "vertex":
        from training_platform.parts.jobs.vertex.custom_job import vertex_body

        return [vertex_body(as_run(job, job.name)).body]
    from training_platform.parts.jobs.gke.jobset import jobset

    return [jobset(run) for run in point_runs(job, job.name)]


def _json_of(bodies: list[dict[str, Any]]) -> str:
    if len(bodies) == 1:
        return json_text(bodies[0])
    return json_text({"apiVersion": "v1", "kind": "List", "items": bodies})


_PLAIN = re.compile(r"[A-Za-z]([A-Za-z0-9_./:-]*[A-Za-z0-9_./-])?")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def yaml_text(value: Any) -> str:
    """Return a value as YAML, with keys in their order. Strings of several lines are blocks; repetitions are aliases.

    Strings that some YAML parser reads as a number, a boolean or a date are quoted. For example, kubectl reads ``1e3``
    as a number and ``y`` as true, and PyYAML would write both without quotes.
    """
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=_ONE_LINE))


def json_text(value: Any) -> str:
    """Return a value as JSON, with keys in their order."""
    return json.dumps(value, indent=2) + "\n"


# libyaml's dumper is ten times faster and writes the same text; a PyYAML without libyaml has only its own.
_Fastest: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_ONE_LINE = 2**31 - 1  # libyaml's longest line


class _Dumper(_Fastest):  # type: ignore[misc] # the base is chosen at run time
    def ignore_aliases(self, data: Any) -> bool:
        return not (isinstance(data, str) and "\n" in data)  # the launcher, in each pool of a custom job


def _string_node(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None if _PLAIN.fullmatch(value) and value.lower() not in _WORDS else '"'
    if "\n" in value:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _string_node)
