"""A probe: the promise that it tests, its needs and cost, and its verdicts. ``probe_table.py`` lists all probes.

A promise that does not hold is refuted. A promise is undecided if a probe could not request or see something: because
of a stock-out, a missing permission, or an earlier probe that did not hold. A probe that ended because of a bug in this
program has failed. A missing verdict proves nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, NamedTuple, get_args

from training_platform.clients.failures import ApiError
from training_platform.clients.google_api import GoogleApi, local_endpoint
from training_platform.clients.kubernetes_api import ClusterApi
from training_platform.clients.project_contents import Contents, project_api
from training_platform.config.model.environment import Environment
from training_platform.config.reading.finding import bug
from training_platform.parts.adopt.matches import Match, matches, object_matches
from training_platform.parts.verify.object_record import Maker
from training_platform.quota.charges import QuotaKey
from training_platform.resources.resource_types import KUBERNETES
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, StackResource
from training_platform.rules.rights import NeededRight

ProbedResource = tuple[str, str, str]  # of a planned resource: its stack, type and name
Stage = Literal["project", "network", "cluster", "pools", "queues", "storage", "vertex", "monitoring", "tenancy"]
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
Verdict = Literal["failed", "refuted", "undecided", "proven"]  # the worst first
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
ProbeNeed = Literal["kubeconfig", "group", "account", "page"]
_UNMET_NEEDS: Final[Mapping[ProbeNeed, str]] = {
    "kubeconfig": "--kubeconfig names no kubeconfig",
    "group": "--group names no test group",
    "account": "--account names no account in the test group",
    "page": "--page, which sends a message to people, is not set",
}
# Words of Compute Engine and GKE if a zone has no machines left now. The last one is the event of a pod, and can also
# be about a quota; the evidence shows its message. Source: general knowledge of their messages (unverified).
_STOCKOUT: Final = (
    "GCE_STOCKOUT", "ZONE_RESOURCE_POOL_EXHAUSTED", "does not have enough resources available", "FailedScaleUp",
)  # fmt: skip


class Answer(NamedTuple):
    """A verdict on one promise, which ``says`` states, and the evidence: an object, a number or a log line."""

    verdict: Verdict
    says: str
    evidence: str = ""


def proven(says: str, evidence: str = "") -> Answer:
    """Return a verdict that a promise holds."""
    return Answer("proven", says, evidence=evidence)


def refuted(says: str, evidence: str = "") -> Answer:
    """Return a verdict that a promise does not hold."""
    return Answer("refuted", says, evidence=evidence)


def undecided(says: str, evidence: str = "") -> Answer:
    """Return a verdict that a promise could not be tested."""
    return Answer("undecided", says, evidence=evidence)


def is_stockout(text: str) -> bool:
    """Return True if a message says that a zone has no machines at present, which refutes nothing."""
    return any(word in text for word in _STOCKOUT)


@dataclass(frozen=True, kw_only=True)
class Platform:
    """What probes test: a planned environment with its teams, the contents of its project, and its clusters.

    - ``demand``: the demand of all stacks in the project, keyed by quota
    - ``promises``: the permissions that stack files promise to people and accounts
    - ``options``: the options of the command, such as the test group
    - ``seconds``: the maximum wait for a controller
    - ``local_cloud``: the address of a server that replaces Google
    - ``confirm``: prompts a person and returns the reply; None without a terminal
    """

    name: str
    environment: Environment
    resources: Sequence[StackResource]
    contents: Contents
    maker: Maker
    demand: Mapping[QuotaKey, float] = field(default_factory=dict)
    promises: Sequence[NeededRight] = ()
    local_cloud: str | None = None
    options: Mapping[ProbeNeed, str] = field(default_factory=dict)
    seconds: float = 120.0
    confirm: Callable[[str], str] | None = None

    def api(self, name: str, region: str = "", account: str | None = None) -> GoogleApi:
        """Return a Google API of the project, given its name in ``clients/listings.yaml``, called as ``account``."""
        return project_api(name, self.contents.project, region, self.local_cloud, account=account)

    def endpoint(self, service: str) -> str | None:
        """Return the address of a service in a local cloud, or None to use Google's own."""
        return local_endpoint(self.local_cloud, service)

    @property
    def clusters(self) -> Mapping[str, ClusterApi]:
        """The reachable clusters of the environment, keyed by path."""
        return self.contents.clusters

    @cached_property
    def in_project(self) -> Mapping[ProbedResource, Match]:
        """The planned resources of Google Cloud that exist."""
        resource_matches: dict[ProbedResource, Match] = {}
        for stack, resources in self._by_stack.items():
            for key, match in matches(resources, self.contents).items():
                resource_matches[(stack, *key)] = match
        return resource_matches

    @cached_property
    def in_clusters(self) -> Mapping[ProbedResource, Match]:
        """The planned objects and releases that exist in reachable clusters, and their providers."""
        all_matches: dict[ProbedResource, Match] = {}
        for stack, resources in self._by_stack.items():
            cloud_matches = {key[1:]: match for key, match in self.in_project.items() if key[0] == stack}
            for key, match in object_matches(resources, cloud_matches, self.contents).items():
                all_matches[(stack, *key)] = match
        return all_matches

    @cached_property
    def _by_stack(self) -> Mapping[str, list[StackResource]]:
        """The resources of each stack, separated because two teams may have resources with the same type and name."""
        by_stack: dict[str, list[StackResource]] = {}
        for resource in self.resources:
            by_stack.setdefault(resource.stack, []).append(resource)
        return by_stack

    def existing(self, resource_type: str) -> list[Match]:
        """Return the resources of a Google Cloud type that are planned and exist."""
        return [match for key, match in self.in_project.items() if key[1] == resource_type]

    def existing_objects(self, kind: str) -> list[Match]:
        """Return the objects of a kind, such as ``core/v1:Namespace``, that are planned and exist."""
        return [match for key, match in self.in_clusters.items() if key[1] == f"{KUBERNETES}{kind}"]

    def cluster_of(self, planned: StackResource) -> str:
        """Return the path of the cluster for which an object is planned."""
        for resource in self.resources:
            is_provider = resource.type == KUBERNETES_PROVIDER and resource.stack == planned.stack
            if is_provider and resource.name == planned.options.get("provider"):
                return str(resource.inputs.get("clusterIdentifier"))
        return ""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One promise, and the function that tests it on a platform. The function yields nothing if nothing applies.

    - ``after``: the probes that have to hold first
    - ``roles``: the minimum roles that the probe needs, without ``roles/``
    - ``minutes``: the maximum time that it takes
    - ``makes``: a description of the objects that exist during the probe; empty for a probe that only reads
    - ``by_name``: if True, the probe is not in the default list
    """

    name: str
    stage: Stage
    proves: str
    answers: Callable[[Platform], Iterator[Answer]]
    roles: Sequence[str]
    after: Sequence[str] = ()
    needs: Sequence[ProbeNeed] = ()
    makes: str = ""
    minutes: float = 1.0
    by_name: bool = False


class ProbeResult(NamedTuple):
    """The verdicts of a probe that has run. There is at least one."""

    name: str
    answers: tuple[Answer, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of the verdicts. One promise that does not hold refutes the probe."""
        return min((answer.verdict for answer in self.answers), key=VERDICTS.index)

    @property
    def holds(self) -> bool:
        """Whether other probes can depend on this one: no promise is refuted or failed, and at least one is proven."""
        verdicts = {answer.verdict for answer in self.answers}
        return verdicts <= {"proven", "undecided"} and "proven" in verdicts


def run_probe(probe: Probe, platform: Platform, earlier: Mapping[str, ProbeResult]) -> ProbeResult:
    """Run one probe. It is undecided if a server refuses or cannot be reached. A bug in this program is reported."""
    broken = [name for name in probe.after if name in earlier and not earlier[name].holds]
    if broken:
        return ProbeResult(probe.name, (undecided(f"not decided, because of {', '.join(broken)}"),))
    unmet = [_UNMET_NEEDS[need] for need in probe.needs if not _has(platform, need)]
    if unmet:
        return ProbeResult(probe.name, (undecided(f"not decided: {'; '.join(unmet)}"),))
    answers: list[Answer] = []
    try:
        answers.extend(probe.answers(platform))
    except ApiError as error:
        answers.append(undecided("the server did not answer", str(error)))
    except Exception as error:  # noqa: BLE001 # any error here is a bug, and the other probes still run
        answers.append(Answer("failed", bug(f"probe {probe.name} failed", error)))
    if not answers:
        answers.append(undecided("the environment has nothing that this probe tests"))
    return ProbeResult(probe.name, tuple(answers))


def _has(platform: Platform, need: ProbeNeed) -> bool:
    if need == "kubeconfig":
        return bool(platform.clusters)
    return bool(platform.options.get(need))


def digest(texts: Iterable[str]) -> str:
    """Return a digest of the stack files, since an interrupted run can continue only with the same files."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
