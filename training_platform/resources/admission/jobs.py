"""Policies that keep jobs in queues: a Job or JobSet that a person makes is one that Kueue holds.

Kueue's webhook labels and suspends such jobs before these policies see them. It leaves alone what names a job of
Kueue's as its controller, which upstream calls out of scope, and what was started by hand.
Source: kubernetes-sigs/kueue v0.19.2, pkg/controller/jobframework (defaults.go, reconciler.go), read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from training_platform.resources.admission.policy import FROM_PEOPLE, Policy, literal
from training_platform.resources.kueue.objects import QUEUE_LABEL

PODSET_LABEL = "kueue.x-k8s.io/podset"  # Kueue puts it on the pods of a job that it admits
# Holds a pod back until Kueue has counted it and lets it go; nobody else of a team may change pods.
POD_GATE = "kueue.x-k8s.io/admission"
ACCELERATORS = ("google.com/tpu", "nvidia.com/gpu")

_PODS = "r.template.spec.template"
_CREATED = "request.operation == 'CREATE'"
_OWNERS = "{}.metadata.?ownerReferences.orValue([])"
_CONTROLLED = f"{_OWNERS}.exists(o, o.?controller.orValue(false))"


class JobKind(NamedTuple):
    """A kind of job that an operator runs, by its API.

    ``templates`` is CEL that is true where ``{1}`` is true of the template ``t`` of some pods of ``{0}``. A kind that
    is not ``queued`` is what jobs refer to. ``refuses`` are further messages and CEL, which has to be true.
    """

    group: str
    version: str
    resource: str
    templates: str
    suspends: bool = True
    queued: bool = True
    refuses: Mapping[str, str] = {}


def templates_in(lists: str) -> str:
    """Return ``templates`` of a kind from CEL for the list of all templates of ``{0}``."""
    return f"({lists}).exists(t, {{1}})"


def queued_jobs() -> Policy:
    """Return the policy on Jobs and JobSets that people make or change."""
    pods = f"(has({{0}}.spec.template) ? [{{0}}.spec.template] : {{0}}.spec.replicatedJobs.map(r, {_PODS}))"
    return Policy(
        name="training-platform-queued-jobs",
        rules=[
            ("batch", "v1", ["jobs"], ["CREATE", "UPDATE"]),
            ("jobset.x-k8s.io", "v1alpha2", ["jobsets"], ["CREATE", "UPDATE"]),
        ],
        conditions=[FROM_PEOPLE],
        validations=_held(templates_in(pods)),
    )


def queued_operator_jobs(kinds: Sequence[JobKind]) -> tuple[Policy, ...]:
    """Return a policy for each kind of job that an operator runs, as people make or change them."""
    return tuple(
        Policy(
            name=f"training-platform-queued-{kind.resource}",
            rules=[(kind.group, kind.version, [kind.resource], ["CREATE", "UPDATE"])],
            conditions=[FROM_PEOPLE],
            validations={
                **(_held(kind.templates, suspends=kind.suspends) if kind.queued else _unmarked(kind.templates)),
                **kind.refuses,
            },
        )
        for kind in kinds
    )


def _held(templates: str, *, suspends: bool = True) -> dict[str, str]:
    """Return what holds a job in its queue; ``templates`` are those of a JobKind.

    A kind that cannot be suspended has its pods gated by Kueue, one by one, while it has a queue. Kueue looks at the
    job that it admitted and not at the parts that controllers make of it, so nobody else changes those.
    """
    queued, suspended = _queued("object"), _suspended("object")
    started = {
        "Kueue does not hold this job: it has no queue, or is not suspended": (
            f"!({_CREATED}) || ({suspended} && {queued})"
        ),
        "only Kueue starts a job, and only in its queue": (
            f"{_CREATED} || (({suspended} || !{_suspended('oldObject')}) && (!{_queued('oldObject')} || {queued}))"
        ),
    }
    return {
        "a job that a person makes has no controller: it would pass for a part of an admitted one": (
            f"{_CREATED} ? !{_CONTROLLED.format('object')} : "
            f"{_OWNERS.format('object')} == {_OWNERS.format('oldObject')}"
        ),
        "a part of an admitted job is changed by its controller alone": (
            f"{_CREATED} || !{_CONTROLLED.format('oldObject')} || object.spec == oldObject.spec"
        ),
        **(started if suspends else {"Kueue does not hold this job: it has no queue": queued}),
        **_unmarked(templates),
    }


def _unmarked(templates: str) -> dict[str, str]:
    """Return what refuses pods that say themselves to have been admitted."""
    mark = f"{literal(PODSET_LABEL)} in t.?metadata.?labels.orValue({{}})"
    marked, before = (templates.format(which, mark) for which in ("object", "oldObject"))
    return {
        f"the label {PODSET_LABEL} on pods is Kueue's to set": f"!({marked}) || ({_CREATED} ? false : ({before}))",
    }


def _suspended(which: str) -> str:
    return f"{which}.spec.?suspend.orValue(false)"


def _queued(which: str) -> str:
    return f"({literal(QUEUE_LABEL)} in {which}.metadata.?labels.orValue({{}}))"


def accelerator_pods() -> Policy:
    """Return the policy on pods that ask for chips, or would run on nodes that have them."""
    return Policy(
        name="training-platform-accelerator-pods",
        rules=[("", "v1", ["pods"], ["CREATE"])],
        variables={
            "asks": (
                "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, "
                f"{literal(ACCELERATORS)}.exists(k, [c.?resources.?limits.orValue({{}}), "
                "c.?resources.?requests.orValue({})].exists(r, "
                "k in r && quantity(string(r[k])).isGreaterThan(quantity('0')))))"
            ),
        },
        validations={
            "a pod that asks for TPUs or GPUs belongs to a job that Kueue admitted, or is held back by Kueue": (
                f"!variables.asks || {literal(PODSET_LABEL)} in object.metadata.?labels.orValue({{}}) || "
                f"object.spec.?schedulingGates.orValue([]).exists(g, g.name == {literal(POD_GATE)})"
            ),
            "a pod that asks for no TPU or GPU does not tolerate their nodes": (
                "variables.asks || !object.spec.?tolerations.orValue([]).exists(t, "
                f"t.?key.orValue('') == '' || t.key in {literal(ACCELERATORS)})"
            ),
            "a pod is placed by the scheduler, not by nodeName": "object.spec.?nodeName.orValue('') == ''",
            "pods of teams have no priority of the system's": (
                "!object.spec.?priorityClassName.orValue('').startsWith('system-')"
            ),
        },
    )
