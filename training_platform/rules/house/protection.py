"""Protection against deletion, in production."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.cluster import ClusterView
from training_platform.views.program import Program
from training_platform.views.storage import BucketView, FilestoreView

_HOUSE = "house rule: what holds data or running jobs in production is not deleted by one command"


@rule(
    "production-said",
    ruleset="protection",
    owner="house",
    source="house rule: whether an environment is production is a setting, and never guessed from its name",
)
def production_said(_: ClusterView, program: Program) -> Iterator[Draft]:
    """Find an environment whose file does not say whether it is production: no rule for production would hold."""
    if program.team is None and program.known("production") and program.production is None:
        message = "the file does not say whether this environment is production"
        allowed = "one line under training-platform:environment, production: true or production: false"
        yield finding(program, "production", message, allowed=allowed, nearest="production: true")


@rule("cluster-deletion-protection", ruleset="protection", owner="house", facts=("CLU-05",), source=_HOUSE)
def cluster_deletion_protection(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a production cluster that can be deleted."""
    if not cluster.deletion_protection and program.production:
        yield _unprotected(cluster, "cluster")


@rule("filestore-deletion-protection", ruleset="protection", owner="house", facts=("FST-09",), source=_HOUSE)
def filestore_deletion_protection(instance: FilestoreView, program: Program) -> Iterator[Draft]:
    """Find a production Filestore instance that can be deleted; the provider's default is that it can."""
    if not instance.deletion_protection and program.production:
        yield _unprotected(instance, "Filestore instance")


@rule("bucket-force-destroy", ruleset="protection", owner="house", source=_HOUSE)
def bucket_force_destroy(bucket: BucketView, program: Program) -> Iterator[Draft]:
    """Find a production bucket that is deleted with everything in it."""
    if bucket.force_destroy and program.production:
        message = f"bucket {bucket.name} is deleted with everything in it"
        nearest = "deletion_protection: true" if bucket.origin else "false"
        yield finding(bucket, "force_destroy", message, allowed="false in production", nearest=nearest)


def _unprotected(view: ClusterView | FilestoreView, what: str) -> Draft:
    message = f"{what} {view.name} can be deleted"
    return finding(view, "deletion_protection", message, allowed="true in production", nearest="true")
