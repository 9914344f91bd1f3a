"""Findings about internet hosts that a job's program needs but its team's pods may not connect to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from training_platform.catalog.reading import table
from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.reading.finding import Path
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.container import python_index
from training_platform.parts.jobs.job_rules import gke_rule
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.source_rules import readable

JOB_EGRESS = gke_rule(
    "job-egress",
    "Find an internet host or a package index that a job's program refers to but its pods may not reach.",
    severity="warning",
)


def egress_findings(job: ResolvedJob) -> Iterator[Draft]:
    """Find internet hosts that a job's program uses, but that its team's pods may not connect to.

    A team that may connect to some address ranges has no findings, since their hosts are unknown.
    """
    spec = job.spec
    environment = job.environment
    destinations = (*environment.egress, *job.team.egress)
    if environment.open_egress or any(destination.cidr for destination in destinations):
        return
    texts: list[tuple[Path, str]] = [(("env", name), text) for name, text in spec.env.items()]
    texts.append((("command",), " ".join(spec.command)))
    texts.append((("args",), " ".join(spec.args)))
    if spec.source and not python_index(job):
        if spec.source.requirements:
            texts.append((("source", "requirements"), "pip install"))
        if spec.source.package and readable(job):
            texts.append((("source", "package"), "pip install"))
    for path, text in texts:
        hosts = _named_hosts(text)
        if _INDEX in hosts:
            hosts.remove(_INDEX)
            if not (_INDEX_VARIABLES & spec.env.keys() or _INDEX_OPTION.search(text)):
                yield _no_index(job, path)
        closed = [host for host in hosts if not any(destination.covers(host) for destination in destinations)]
        if closed:
            message = f"needs {enumeration(closed)}, but no egress entry allows it for pods of team {job.team.name}"
            rows = ", ".join(f"{{host: {host}}}" for host in closed)
            allowed = f"egress: [{rows}] in the team's stack, an image that contains it, or a data set"
            yield finding(job, path, message, rule=JOB_EGRESS, allowed=allowed)


_HOSTS: Sequence[Mapping[str, Any]] = table(__file__, "hosts.yaml")
_URL = re.compile(r"\bhttps?://([A-Za-z0-9.-]+)")
_GOOGLE = re.compile(r"(.*\.)?(googleapis\.com|gcr\.io|pkg\.dev|google\.internal|cluster\.local)|localhost|[\d.]+")
_INDEX = "the package index"  # of hosts.yaml
# What names the index, and so its host.
_INDEX_VARIABLES = frozenset({"PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"})
_INDEX_OPTION = re.compile(r"--(default-)?index(-url)?[ =]|(^| )-i ")


def _named_hosts(text: str) -> list[str]:
    """Return the hosts of URLs, and those that programs such as pip use, without duplicates and Google's hosts."""
    hosts = [host for host in dict.fromkeys(_URL.findall(text)) if not _GOOGLE.fullmatch(host)]
    for row in _HOSTS:
        if any(re.search(pattern, text) for pattern in row["patterns"]):
            hosts.extend(host for host in row["hosts"] if host not in hosts)
    return hosts


def _no_index(job: ResolvedJob, path: Path) -> Draft:
    """Return the finding that a job can reach no index for its packages. Only the job says which hosts are indexes."""
    message = f"installs packages, but pods of team {job.team.name} can reach no package index that the job names"
    allowed = (
        "python_repository in the environment's stack for packages of source, an image that contains the packages, "
        "or PIP_INDEX_URL under env with an index whose host is under egress"
    )
    return finding(job, path, message, rule=JOB_EGRESS, allowed=allowed)
