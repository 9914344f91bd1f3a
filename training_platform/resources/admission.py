"""The admission policies for jobs and other objects of teams in a cluster, and the list of all policies.

Kueue must queue every Job or JobSet that a person creates. Kueue's webhook labels and suspends such jobs before these
policies see them. It skips an object whose controller is a job that Kueue manages, which upstream calls out of scope,
and a job that was started by hand.

Sources: kubernetes-sigs/kueue v0.19.2, pkg/controller/jobframework (defaults.go, reconciler.go), read 2026-11-22. Each
policy was tried on API server 1.36.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from training_platform.resources.admission_policy import (
    FROM_PEOPLE,
    JOB_KEY,
    PODSET_LABEL,
    Bounds,
    Policy,
    literal,
)
from training_platform.resources.kueue import PRIORITY_LABEL, QUEUE_LABEL, RUN_LABEL
from training_platform.resources.network_devices import DEVICE_CLASSES
from training_platform.resources.pod_admission import (
    MOST_PAIRS,
    accelerator_pods,
    daemon_exec,
    pairs_in_template,
    pod_baseline,
    pod_images,
    pod_volumes,
    template_baseline,
)
from training_platform.resources.scope import MANAGED_BY

# On a namespace: the most seconds that its jobs may run, by Kueue's label on them.
MAX_RUN_SECONDS = f"{MANAGED_BY}/max-run-seconds"

_WRITTEN = ("CREATE", "UPDATE")
_CREATED = "request.operation == 'CREATE'"

Templates = Callable[[str, str], str]
"""A function of the CEL for a job and a CEL condition on a pod template ``t``.

It returns CEL that is true if any of the job's templates meets the condition.
"""


class OperatorJob(NamedTuple):
    """A kind of job that an operator runs, identified by its API.

    - ``sizes`` are the fields from which Kueue counts pods, except fields that nobody can change.
    - ``queued`` is False for a kind that is not a job itself but that jobs refer to.
    - ``refuses`` maps additional messages to CEL that must be true.
    """

    group: str
    version: str
    resource: str
    templates: Templates
    sizes: Sequence[str] = ()
    suspends: bool = True
    queued: bool = True
    refuses: Mapping[str, str] = {}


def templates_in(list_of: Callable[[str], str]) -> Templates:
    """Return the function that builds conditions on a kind of job's pod templates.

    ``list_of`` maps the CEL for a job to the CEL for the list of its templates.
    """
    return lambda job, condition: f"({list_of(job)}).exists(t, {condition})"


def _pod_templates(job: str) -> str:
    """Return the CEL expression for the pod templates of a Job or JobSet."""
    replicated = f"{job}.spec.replicatedJobs.map(r, r.template.spec.template)"
    return f"(has({job}.spec.template) ? [{job}.spec.template] : {replicated})"


def queued_jobs(bounds: Bounds, images: Mapping[str, str], sources: Sequence[str] = ()) -> Policy:
    """Return the policy for Jobs and JobSets that people create or change. See ``policies`` about ``images``."""
    sizes = ("spec.?parallelism", "spec.?completions", f"spec.?replicatedJobs.orValue([]).map(r, {_JOBSET_SIZE})")
    variables, of_pods = template_baseline(images, sources)
    variables["small"] = f"({_pod_templates('object')}).map(t, {pairs_in_template()}).sum() <= {MOST_PAIRS}"
    return Policy(
        name="training-platform-queued-jobs",
        rules=[
            ("batch", "v1", ["jobs"], _WRITTEN),
            ("jobset.x-k8s.io", "v1alpha2", ["jobsets"], _WRITTEN),
        ],
        conditions=[FROM_PEOPLE],
        variables=variables,
        validations={
            **_TOO_LARGE,
            **_queue_validations(sizes),
            **_template_validations(templates_in(_pod_templates), bounds, of_pods),
        },
    )


def queued_operator_jobs(
    kinds: Sequence[OperatorJob], bounds: Bounds, images: Mapping[str, str], sources: Sequence[str] = ()
) -> tuple[Policy, ...]:
    """Return a policy for each kind of operator job, for jobs that people create or change."""
    variables, of_pods = template_baseline(images, sources)
    queued = []
    for kind in kinds:
        in_queue = _queue_validations(kind.sizes, suspends=kind.suspends) if kind.queued else {}
        policy = Policy(
            name=f"training-platform-queued-{kind.resource}",
            rules=[(kind.group, kind.version, [kind.resource], _WRITTEN)],
            conditions=[FROM_PEOPLE],
            # Each template by itself: CEL has no list of the templates in a list of lists.
            variables={**variables, "small": f"!({kind.templates('object', _MANY_PAIRS)})"},
            validations={
                **_TOO_LARGE,
                **in_queue,
                **_template_validations(kind.templates, bounds, of_pods),
                **kind.refuses,
            },
        )
        queued.append(policy)
    return tuple(queued)


_JOBSET_SIZE = "[r.?replicas, r.template.spec.?parallelism, r.template.spec.?completions]"
"""The CEL expression for the size of a JobSet's replicated job ``r``.

JobSet's webhook refuses to change the size unless a feature gate allows it.
"""

_MANY_PAIRS = f"{pairs_in_template()} > {MOST_PAIRS // 20}"
_TOO_LARGE = {
    "the job is too large to check: its pod templates must have fewer containers, mounts or volumes": "variables.small"
}


def _queue_validations(sizes: Sequence[str], *, suspends: bool = True) -> dict[str, str]:
    """Return the validations that keep a job in its queue; ``sizes`` is a field of OperatorJob.

    If a kind cannot be suspended, Kueue gates its pods individually as long as the job has a queue. Kueue compares the
    job that it admitted, but not the objects that controllers create for the job. Therefore only controllers may change
    these objects: JobSet recognizes finished ones by their labels, and Kueue no longer counts them. Kueue suspends a
    job whose size differs from the admitted size, but only after the job's controller has created another pod.
    """
    fields = ("spec", "metadata.?labels", "metadata.?annotations", "metadata.?finalizers")
    same_part = " && ".join(f"object.{field} == oldObject.{field}" for field in fields)
    queued = _is_queued("object")
    suspended = _is_suspended("object")
    was_queued = _is_queued("oldObject")
    was_suspended = _is_suspended("oldObject")
    if suspends:
        same_size = " && ".join(f"object.{size} == oldObject.{size}" for size in sizes) or "true"
        held = {
            "a running job keeps its size: suspend it first, so that Kueue counts it again": (
                f"{_CREATED} || {suspended} || {was_suspended} || ({same_size})"
            ),
            "Kueue does not manage this job: it has no queue, or is not suspended": (
                f"!({_CREATED}) || ({suspended} && {queued})"
            ),
            "only Kueue may start a job, and only in the job's queue": (
                f"{_CREATED} || (({suspended} || !{was_suspended}) && (!{was_queued} || {queued}))"
            ),
        }
    else:
        held = {"Kueue does not manage this job: it has no queue": queued}
    return {
        "a job that a person creates must have no controller: it would pass as a part of an admitted job": (
            f"{_CREATED} ? !{_is_controlled('object')} : {_owners('object')} == {_owners('oldObject')}"
        ),
        "only its controller may change a part of an admitted job": (  # readable: deployed as it is
            f"{_CREATED} || !{_is_controlled('oldObject')} || ({same_part})"
        ),
        **held,
        f"{RUN_LABEL} is missing, or above the namespace's limit for a run": (
            f"{_RUN_LIMIT} == '' || ({_RUN}.matches('^[1-9][0-9]{{0,8}}$') && int({_RUN}) <= int({_RUN_LIMIT}))"
        ),
    }


_RUN_LIMIT = f"namespaceObject.metadata.?annotations[?{literal(MAX_RUN_SECONDS)}].orValue('')"
_RUN = f"object.metadata.?labels[?{literal(RUN_LABEL)}].orValue('')"


def _template_validations(templates: Templates, bounds: Bounds, of_pods: Mapping[str, str]) -> dict[str, str]:
    """Return the validations of pod templates: labels, grace period, priority class, finalizers and ``of_pods``.

    Kueue takes a job's priority from its label, or from the priority class of its pods. ``of_pods`` are additional
    conditions that the pods of a template must meet. A job that is too large to evaluate is refused only for its size.
    """
    names = ["", *bounds.priorities]

    def no_template(condition: str) -> str:
        return f"!({templates('object', condition)})"

    return {
        f"only Kueue may set the label {PODSET_LABEL} on pods": _set_by_controllers(PODSET_LABEL, templates),
        f"only JobSet may set the label {JOB_KEY} on pods": _set_by_controllers(JOB_KEY, templates),
        f"pods must end within {bounds.grace_seconds} seconds: shorten terminationGracePeriodSeconds": no_template(
            f"t.?spec.?terminationGracePeriodSeconds.orValue(0) > {bounds.grace_seconds}"
        ),
        f"a job may name only these priority classes: {', '.join(bounds.priorities) or 'none'}": (
            f"object.metadata.?labels[?{literal(PRIORITY_LABEL)}].orValue('') in {literal(names)} && "
            + no_template(f"!(t.?spec.?priorityClassName.orValue('') in {literal(names)})")
        ),
        "only controllers may add finalizers to pods: others would block the deletion of the namespace": no_template(
            "t.?metadata.?finalizers.orValue([]).size() > 0"
        ),
        **{message: f"!variables.small || {no_template(f'!({condition})')}" for message, condition in of_pods.items()},
    }


def _set_by_controllers(label: str, templates: Templates) -> str:
    mark = f"{literal(label)} in t.?metadata.?labels.orValue({{}})"
    return f"!({templates('object', mark)}) || ({_CREATED} ? false : ({templates('oldObject', mark)}))"


def _is_suspended(job: str) -> str:
    return f"{job}.spec.?suspend.orValue(false)"


def _is_queued(job: str) -> str:
    return f"({literal(QUEUE_LABEL)} in {job}.metadata.?labels.orValue({{}}))"


def _owners(job: str) -> str:
    return f"{job}.metadata.?ownerReferences.orValue([])"


def _is_controlled(job: str) -> str:
    return f"{_owners(job)}.exists(o, o.?controller.orValue(false))"


def _finalizers(job: str) -> str:
    return f"{job}.metadata.?finalizers.orValue([])"


def objects(kinds: Sequence[OperatorJob]) -> Policy:
    """Return the policy for objects that people create. It forbids finalizers and permanent tokens.

    Finalizers can block the deletion of a namespace.
    """
    before = f"{_CREATED} ? [] : {_finalizers('oldObject')}"
    # The API server adds it to each claim, before policies see the claim, and removes it from no other kind.
    of_claims = "f == 'kubernetes.io/pvc-protection' && request.resource.resource == 'persistentvolumeclaims'"
    return Policy(
        name="training-platform-objects",
        rules=[
            *((group, version, resources, _WRITTEN) for group, version, resources in _job_resources(kinds)),
            ("", "v1", ["configmaps", "secrets", "persistentvolumeclaims"], _WRITTEN),
        ],
        conditions=[FROM_PEOPLE],
        validations={
            "only controllers may add finalizers: one that is never removed blocks the deletion of the object and "
            "its namespace": (f"{_finalizers('object')}.all(f, ({of_claims}) || f in ({before}))"),
            _NO_ACCOUNT_KEY: "object.?type.orValue('') != 'kubernetes.io/service-account-token'",
        },
    )


_NO_ACCOUNT_KEY = (
    "a Secret must not be a token of a service account: it would be valid for as long as the Secret "
    "exists"  # readable: deployed
)


def deletions(kinds: Sequence[OperatorJob]) -> Policy:
    """Return the policy for deleting jobs. Kueue stops counting a deleted job even if its pods continue to run.

    Deleting a Job of batch/v1 leaves its pods running unless the request says otherwise, as kubectl's requests do.
    Other kinds leave pods only if the request or a finalizer says so. Members cannot delete pods themselves: no role
    allows it.
    """
    orphan = f"request.resource.resource == 'jobs' || 'orphan' in {_finalizers('oldObject')}"
    return Policy(
        name="training-platform-deletions",
        rules=[(group, version, resources, ["DELETE"]) for group, version, resources in _job_resources(kinds)],
        conditions=[FROM_PEOPLE],
        validations={
            "a job must be deleted with its pods: propagationPolicy must be Background or Foreground": (
                "request.options.?propagationPolicy.orValue("
                f"request.options.?orphanDependents.orValue({orphan}) ? 'Orphan' : '') != 'Orphan'"
            ),
        },
    )


def _job_resources(kinds: Sequence[OperatorJob]) -> list[tuple[str, str, list[str]]]:
    return [
        ("batch", "v1", ["jobs"]),
        ("jobset.x-k8s.io", "v1alpha2", ["jobsets"]),
        *((kind.group, kind.version, [kind.resource]) for kind in kinds),
    ]


def claims() -> Policy:
    """Return the policy for device claims, which Kueue does not count. It allows only exact numbers of NICs.

    The API server itself refuses adminAccess in namespaces that do not have the label for it.
    """
    return Policy(
        name="training-platform-claims",
        rules=[("resource.k8s.io", "v1", ["resourceclaims", "resourceclaimtemplates"], _WRITTEN)],
        variables={
            "requests": (
                "object.spec.?spec.?devices.?requests.orValue([]) + object.spec.?devices.?requests.orValue([])"
            ),
        },
        validations={
            f"a claim must request exactly one of the classes {', '.join(DEVICE_CLASSES)}: queues do not count "
            f"devices": (
                f"variables.requests.all(r, has(r.exactly) && r.exactly.deviceClassName in {literal(DEVICE_CLASSES)})"
            ),
            "a claim must have allocationMode ExactCount and the count of its VM's devices: with All, a pod would "
            "also start "
            "on a VM that lacks some": (
                "variables.requests.all(r, r.?exactly.?allocationMode.orValue('') == 'ExactCount')"
            ),
        },
    )


def policies(
    images: Mapping[str, str],
    bounds: Bounds,
    sources: Sequence[str] = (),
    kinds: Sequence[OperatorJob] = (),
    *,
    devices: bool = False,
) -> tuple[Policy, ...]:
    """Return all policies. ``images`` are the images of daemons, keyed by their names in the catalogue.

    ``sources`` are the allowed prefixes of pods' images; if empty, all images are allowed. ``kinds`` are the kinds of
    jobs that operators run. With ``devices``, pods may claim network devices.
    """
    all_policies = [
        queued_jobs(bounds, images, sources),
        objects(kinds),
        deletions(kinds),
        accelerator_pods(bounds),
        pod_volumes(),
        pod_baseline(images),
        daemon_exec(images),
        *queued_operator_jobs(kinds, bounds, images, sources),
    ]
    if sources:
        all_policies.append(pod_images(sources, images))
    if devices:
        all_policies.append(claims())
    return tuple(all_policies)
