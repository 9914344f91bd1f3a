"""Rules that a platform team sets for its own stacks and that Google Cloud does not enforce."""

from __future__ import annotations

import re
from collections.abc import Iterator

from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.section import enumeration
from training_platform.views.access import AlertPolicyView, LabelledView, ReleaseView
from training_platform.views.cluster import ClusterView
from training_platform.views.storage import BucketView, FilestoreView
from training_platform.views.whole_stack import Program


@rule(
    "alerts-reach-nobody",
    ruleset="alerts",
    severity="warning",
    owner="house",
    source="house rule: every alert must notify somebody",
)
def alerts_reach_nobody(policy: AlertPolicyView) -> Iterator[Draft]:
    """Find alert policies that open incidents but notify nobody."""
    if not policy.channels:
        message = "alerts notify nobody: their incidents are visible only in the console"
        allowed = "addresses, or no alerts"
        yield finding(policy, "channels", message, allowed=allowed, nearest="emails: [ml-platform@example.com]")


@rule(
    "chart-version-untested",
    ruleset="charts",
    severity="warning",
    owner="catalogue",
    source="training_platform/catalog/data/software.yaml, which lists the tests with each release",
)
def chart_version_untested(release: ReleaseView) -> Iterator[Draft]:
    """Find a chart of the catalogue in a version whose values and objects are untested.

    A chart from a folder, or without a version, is accepted, because its version is unknown.
    """
    chart = release.catalogued
    if chart is None or not chart.tested or release.version is None:
        return
    if not any(release.of_minor(minor) for minor in chart.tested):
        tested = enumeration([f"{minor}.x" for minor in chart.tested])
        message = (
            f"{release.version} of {chart.name} is untested; the tests used {chart.tested_with}, and objects of its "
            f"kinds are checked against the definitions of a tested version"
        )
        unjudged = "chart of an untested version"
        yield finding(release, "version", message, allowed=tested, nearest=chart.version, unjudged=unjudged)


MOST_LABELS = 64
_KEY = re.compile(r"(?=.{1,63}\Z)[a-z][a-z0-9_-]*\Z")
_VALUE = re.compile(r"[a-z0-9_-]{0,63}\Z")


@rule("labels", ruleset="labels", owner="house", source="house rule: costs are reported for each environment and team")
def own_labels(resource: LabelledView, program: Program) -> Iterator[Draft]:
    """Find a resource that supports labels but does not have the labels of its environment and team."""
    labels = resource.labels or {}
    required = {"environment": program.environment}
    if program.team:
        required["team"] = program.team
    for key, value in required.items():
        if labels.get(key) != value:
            problem = f"is {labels[key]!r}" if key in labels else "is missing"
            message = f"label {key} {problem} on {resource.type.rpartition(':')[2]} {resource.name}"
            yield finding(resource, "labels", message, allowed=value, nearest=f"{key}: {value}")


@rule("label-form", ruleset="labels", source="Resource Manager docs, labels; GKE resource_labels")
def label_form(resource: LabelledView) -> Iterator[Draft]:
    """Find labels that Google Cloud refuses: not in lower case, longer than 63 characters, or more than 64 labels.

    Google Cloud also accepts letters of other scripts. These are not checked.
    """
    labels = resource.labels or {}
    if len(labels) > MOST_LABELS:
        yield finding(resource, "labels", f"{resource.name} has {len(labels)} labels", allowed=f"at most {MOST_LABELS}")
    for key, value in labels.items():
        for text, form, message, allowed in (
            (key, _KEY, f"label {key}", "at most 63 characters, starting with a lower-case letter"),
            (value, _VALUE, f"label {key} is {value}", "at most 63 lower-case letters, digits, - and _"),
        ):
            if text.isascii() and not form.match(text):
                nearest = re.sub(r"[^a-z0-9_-]", "-", text.lower())[:63]
                yield finding(resource, "labels", message, allowed=allowed, nearest=nearest)


_HOUSE = "house rule: one command must not delete production resources with data or running jobs"


@rule(
    "production-said",
    ruleset="protection",
    owner="house",
    source="house rule: a setting says whether an environment is production; its name does not decide this",
)
def production_said(_: ClusterView, program: Program) -> Iterator[Draft]:
    """Find an environment whose file does not say if it is production. Rules about production would not apply to it."""
    if program.team is None and program.known("production") and program.production is None:
        message = "the file does not say whether this environment is production"
        allowed = "production: true or production: false under training-platform:environment"
        yield finding(program, "production", message, allowed=allowed, nearest="production: true")


@rule("cluster-deletion-protection", ruleset="protection", owner="house", source=_HOUSE)
def cluster_deletion_protection(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a production cluster that can be deleted."""
    if not cluster.deletion_protection and program.production:
        yield _unprotected(cluster, "cluster")


@rule("filestore-deletion-protection", ruleset="protection", owner="house", source=_HOUSE)
def filestore_deletion_protection(instance: FilestoreView, program: Program) -> Iterator[Draft]:
    """Find a production Filestore instance that can be deleted, which is the provider's default."""
    if not instance.deletion_protection and program.production:
        yield _unprotected(instance, "Filestore instance")


@rule("bucket-force-destroy", ruleset="protection", owner="house", source=_HOUSE)
def bucket_force_destroy(bucket: BucketView, program: Program) -> Iterator[Draft]:
    """Find a production bucket that is deleted together with its objects."""
    if bucket.force_destroy and program.production:
        message = f"bucket {bucket.name} can be deleted with everything in it"
        nearest = "deletion_protection: true" if bucket.origin else "false"
        yield finding(bucket, "force_destroy", message, allowed="false in production", nearest=nearest)


def _unprotected(view: ClusterView | FilestoreView, kind: str) -> Draft:
    message = f"{kind} {view.name} can be deleted"
    return finding(view, "deletion_protection", message, allowed="true in production", nearest="true")
