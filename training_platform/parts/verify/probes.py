"""Probes as data: what each proves, needs and costs, and the function that answers; their order, and how they are run.

A probe's function yields answers. A promise that does not hold is refuted, and whatever could not be asked or seen is
undecided: a stock-out, a missing right, or a probe that another one has to hold for. A probe that ends in a bug of ours
has failed. Nothing is proven by silence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import Final, Literal, NamedTuple, get_args

from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.reading import table
from training_platform.clients.failures import ApiError
from training_platform.clients.google_api import GoogleApi, GoogleError, local_endpoint
from training_platform.clients.kubernetes_api import ClusterApi
from training_platform.clients.project_contents import Contents, project_api
from training_platform.config.model.environment import Environment
from training_platform.config.reading.finding import UserError, bug
from training_platform.parts.adopt.matches import Match, matches, object_matches
from training_platform.parts.verify.object_record import Maker, found
from training_platform.quota.charges import QuotaKey
from training_platform.resources.resource_types import KUBERNETES, LUSTRE, RESOURCE_TYPES
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, StackResource
from training_platform.rules.rights import Promise

Key = tuple[str, str, str]  # of a planned resource: its stack, type and name
Stage = Literal["project", "network", "cluster", "pools", "queues", "storage", "vertex", "monitoring", "tenancy"]
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
Verdict = Literal["failed", "refuted", "undecided", "proven"]  # the worst first
Need = Literal["kubeconfig", "group", "account", "page"]
_NEEDS: Final[Mapping[Need, str]] = {
    "kubeconfig": "--kubeconfig names no kubeconfig",
    "group": "--group names no test group",
    "account": "--account names no account in the test group",
    "page": "--page sends a message to people, and was not given",
}
_ROOM: Final = "training_platform.parts.verify"
# Words of Compute Engine and GKE where a zone lacks machines now; the last one is an event of a pod, and can be about a
# quota as well, whose message is the evidence. Source: general knowledge of their messages (unverified).
_STOCKOUT: Final = (
    "GCE_STOCKOUT", "ZONE_RESOURCE_POOL_EXHAUSTED", "does not have enough resources available", "FailedScaleUp",
)  # fmt: skip


VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)


class Answer(NamedTuple):
    """One answer: the verdict, the promise in a sentence, and what was seen: an object, a number, a line of a log."""

    verdict: Verdict
    says: str
    evidence: str = ""


def proven(says: str, evidence: str = "") -> Answer:
    """Return an answer that a promise holds."""
    return Answer("proven", says, evidence)


def refuted(says: str, evidence: str = "") -> Answer:
    """Return an answer that a promise does not hold."""
    return Answer("refuted", says, evidence)


def undecided(says: str, evidence: str = "") -> Answer:
    """Return an answer that could not be had."""
    return Answer("undecided", says, evidence)


def is_stockout(text: str) -> bool:
    """Whether a message says that machines are missing now, which refutes nothing."""
    return any(word in text for word in _STOCKOUT)


@dataclass(kw_only=True)
class Platform:
    """What probes ask: an environment with its teams as planned, its project as listed, and its clusters by path.

    ``demand`` is the need of all stacks in the project by quota, ``promises`` what the stack files let people and
    accounts do. ``options`` are the command's, such as the test group. ``seconds`` is the longest wait for a
    controller, ``local_cloud`` asked in Google's place, ``confirm`` asks a person for a text, None where there is no
    terminal.
    """

    name: str
    environment: Environment
    resources: Sequence[StackResource]
    contents: Contents
    maker: Maker
    demand: Mapping[QuotaKey, float] = field(default_factory=dict)
    promises: Sequence[Promise] = ()
    local_cloud: str | None = None
    options: Mapping[Need, str] = field(default_factory=dict)
    seconds: float = 120.0
    confirm: Callable[[str], str] | None = None

    def api(self, name: str, region: str = "", account: str | None = None) -> GoogleApi:
        """Return a Google API of the project, by its name in ``clients/listings.yaml``; it is asked as ``account``."""
        return project_api(name, self.contents.project, region, self.local_cloud, account=account)

    def endpoint(self, service: str) -> str | None:
        """Return the address of a service in a local cloud, None for Google's own."""
        return local_endpoint(self.local_cloud, service)

    @property
    def clusters(self) -> Mapping[str, ClusterApi]:
        """The clusters of the environment that can be asked, by path."""
        return self.contents.clusters

    @cached_property
    def in_project(self) -> dict[Key, Match]:
        """The planned resources of Google Cloud that are there."""
        for one in (one for one in self.resources if one.type == LUSTRE):  # which no list of ``adopt`` has
            path = str(RESOURCE_TYPES[LUSTRE].import_id).format_map(one.inputs)
            try:
                body = found(self.api("lustre"), path)
            except GoogleError as error:
                self.contents.unread[LUSTRE] = str(error)
            else:
                self.contents.bodies.setdefault(LUSTRE, {}).update({path: body} if body else {})
        return self._of_stacks(lambda _, resources: matches(resources, self.contents))

    @cached_property
    def in_clusters(self) -> dict[Key, Match]:
        """The planned objects and releases that are in clusters which can be asked, and their providers."""

        def of_stack(stack: str, resources: Sequence[StackResource]) -> Mapping[tuple[str, str], Match]:
            own = {key[1:]: match for key, match in self.in_project.items() if key[0] == stack}
            return object_matches(resources, own, self.contents)

        return self._of_stacks(of_stack)

    def _of_stacks(
        self, find: Callable[[str, Sequence[StackResource]], Mapping[tuple[str, str], Match]]
    ) -> dict[Key, Match]:
        """Return the matches of each stack: two teams have resources of one type and name."""
        found: dict[Key, Match] = {}
        for stack in dict.fromkeys(one.stack for one in self.resources):
            own = [one for one in self.resources if one.stack == stack]
            found |= {(stack, *key): match for key, match in find(stack, own).items()}
        return found

    def found(self, token: str) -> list[Match]:
        """Return what is there of a type of Google Cloud."""
        return [match for key, match in self.in_project.items() if key[1] == token]

    def objects(self, kind: str) -> list[Match]:
        """Return the planned objects of a kind that are there, such as ``core/v1:Namespace``."""
        return [match for key, match in self.in_clusters.items() if key[1] == f"{KUBERNETES}{kind}"]

    def cluster_of(self, planned: StackResource) -> str:
        """Return the path of the cluster that an object is planned in."""
        providers = (one for one in self.resources if one.type == KUBERNETES_PROVIDER and one.stack == planned.stack)
        name = planned.options.get("provider")
        return next((str(one.inputs.get("clusterIdentifier")) for one in providers if one.name == name), "")


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A row of ``probes.yaml``, which says what its fields mean."""

    name: str
    stage: Stage
    proves: str
    roles: Sequence[str]
    ready: Sequence[str] = ()
    by: str = ""
    after: Sequence[str] = ()
    needs: Sequence[Need] = ()
    makes: str = ""
    minutes: float = 1.0
    by_name: bool = False

    def run(self, platform: Platform) -> Iterator[Answer]:
        """Yield the answers, of which there is none where there is nothing to ask about."""
        if self.ready:
            yield from import_module(f"{_ROOM}.google_cloud").ready(platform, self.ready)
        if self.by:
            yield from getattr(import_module(f"{_ROOM}.{self.by}"), self.name.replace("-", "_"))(platform)


@cache
def probes() -> Mapping[str, Probe]:
    """Return every probe by its name, in the order of stages, each after those that it needs."""
    stages = table(__file__, "probes.yaml").items()
    known = {name: Probe(name=name, stage=stage, **row) for stage, rows in stages for name, row in rows.items()}
    ordered: dict[str, Probe] = {}

    def add(one: Probe) -> None:
        for name in one.after:
            add(known[name])
        ordered.setdefault(one.name, one)

    for one in known.values():
        add(one)
    return ordered


def chosen(*, stages: Collection[str] = (), names: Collection[str] = (), further: Collection[str] = ()) -> list[Probe]:
    """Return the probes to run. Raises UserError for an unknown name.

    Names choose alone; stages choose all of theirs but the ``by_name`` ones, and neither chooses the default list. The
    ``further`` ones are added, and so is each that a chosen one has to come after.
    """
    known = probes()
    for name in (*names, *further):
        if name not in known:
            raise UserError(f"{name!r} is not a probe. Nearest: {find_nearest(name, known)}.")
    wanted = {
        one.name
        for one in known.values()
        if one.name in {*names, *further} or (not names and not one.by_name and (not stages or one.stage in stages))
    }
    for one in reversed(list(known.values())):  # those that come after others are behind them
        if one.name in wanted:
            wanted.update(one.after)
    return [one for one in known.values() if one.name in wanted]


class Asked(NamedTuple):
    """A probe that was run, by name, with its answers; an empty list is never one."""

    name: str
    answers: tuple[Answer, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of its answers: one promise that does not hold refutes it."""
        return min((answer.verdict for answer in self.answers), key=VERDICTS.index)

    @property
    def holds(self) -> bool:
        """Whether others can rest on it: nothing refuted or failed, something proven."""
        verdicts = {answer.verdict for answer in self.answers}
        return verdicts <= {"proven", "undecided"} and "proven" in verdicts


def ask(one: Probe, platform: Platform, before: Mapping[str, Asked]) -> Asked:
    """Run one probe. A server that refuses or cannot be reached decides nothing; a bug of ours is reported as one."""
    because = [name for name in one.after if name in before and not before[name].holds]
    missing = [_NEEDS[need] for need in one.needs if not _has(platform, need)]
    if because or missing:
        reason = f"not decided, because of {', '.join(because)}" if because else f"not decided: {'; '.join(missing)}"
        return Asked(one.name, (undecided(reason),))
    answers: list[Answer] = []
    try:
        answers.extend(one.run(platform))
    except ApiError as error:
        answers.append(undecided("the server could not be asked", str(error)))
    except Exception as error:  # noqa: BLE001 # any error here is a bug, and the other probes still run
        answers.append(Answer("failed", bug(f"probe {one.name} failed", error)))
    return Asked(one.name, tuple(answers) or (undecided("there is nothing to ask about"),))


def _has(platform: Platform, need: Need) -> bool:
    return bool(platform.clusters) if need == "kubeconfig" else bool(platform.options.get(need))


def digest(texts: Iterable[str]) -> str:
    """Return a digest of the stack files: a run goes on only with those that it began with."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
