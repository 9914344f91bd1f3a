"""Other storage: a team's buckets and secrets, the environment's images, and Managed Lustre instances."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from training_platform.config.model import environment, team
from training_platform.config.model.storage import LustreSpec
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.plan import Component, Options, Resource
from training_platform.resources.provider_inputs import add_provider_inputs
from training_platform.resources.scope import (
    NAME_LIMIT,
    Scope,
    bucket_id,
    python_repository_id,
    repository_id,
    secret_id,
    short_name,
)

if TYPE_CHECKING:
    from pulumi_gcp.artifactregistry import RepositoryCleanupPolicyArgsDict as CleanupPolicy
    from pulumi_gcp.lustre import InstanceAccessRulesOptionsArgsDict as AccessRules
    from pulumi_gcp.storage import BucketLifecycleRuleArgsDict as LifecycleRule

UPLOAD_DAYS = 7  # a multipart upload that has not ended by then was given up, and its parts are paid for


def team_bucket(key: str, spec: team.BucketSpec, scope: Scope) -> Resource:
    """Return a bucket; ``key`` is its key in the stack file."""
    key_name = scope.key(spec.location)
    # Checkpoints and data sets are nowhere else. The name is fixed, and taken until the old bucket is gone.
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)
    bucket = gcp.bucket(
        f"{declared_name('buckets', key)}-bucket",
        options,
        name=bucket_id(scope, key),
        project=scope.project,
        location=spec.location,
        storage_class=spec.storage_class,
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        encryption={"default_kms_key_name": key_name} if key_name else None,
        versioning={"enabled": spec.versioning},
        lifecycle_rules=list(_lifecycle_rules(spec)),
        # A change of it would replace the bucket, so it is written only where the file has it.
        hierarchical_namespace={"enabled": True} if spec.hierarchical_namespace else None,
        labels=scope.labels,
        force_destroy=not scope.deletion_protection,
    )
    add_provider_inputs(bucket, spec.provider_inputs, ("buckets", key), spec.TAKEN_OVER)
    return bucket


def _lifecycle_rules(spec: team.BucketSpec) -> Iterator[LifecycleRule]:
    """Yield the lifecycle rules, which delete old objects with all of their versions, and abandoned uploads."""
    if spec.delete_after_days is not None:
        yield _rule("Delete", spec.delete_after_days)
    yield _rule("AbortIncompleteMultipartUpload", UPLOAD_DAYS)


def _rule(action: str, age_days: int) -> LifecycleRule:
    return {"action": {"type": action}, "condition": {"age": age_days}}


UNTAGGED_SECONDS = 30 * 24 * 3600


def image_repositories(name: str, spec: environment.ImageRepositorySpec, scope: Scope, into: Component) -> Resource:
    """Add an environment's repositories and return the image repository; ``name`` is the component's name.

    One repository contains the images. Remote repositories with the same name cache these images in the regions in
    which nodes pull and stream. Caches of external registries let nodes pull without access to the internet. It is
    assumed that GKE streams from a remote repository, and that Artifact Registry's agent may read the images of its own
    project (unverified).

    Sources: Artifact Registry docs, repository overview, read 2026-11-23; provider's schema, ``commonRepository``.
    """
    images_id = repository_id(scope.environment)
    images = into.add(image_repository(f"{name}-repository", spec, scope, images_id, location=spec.location))
    path = f"projects/{scope.project}/locations/{spec.location}/repositories/{images_id}"
    for location in spec.caches:
        cache_name = f"{name}-{location}-repository"
        cache = image_repository(cache_name, spec, scope, images_id, location=location, upstream=path)
        into.add(cache, [images])  # the path, a string, does not make it wait
    for location, (key, registry) in product(spec.locations, spec.remotes.items()):
        remote_id = repository_id(scope.environment, key)
        remote_name = f"{name}-{location}.{key}-repository"
        into.add(image_repository(remote_name, spec, scope, remote_id, location=location, upstream=registry))
    return images


def image_repository(
    name: str, spec: environment.ImageRepositorySpec, scope: Scope, held: str, *, location: str, upstream: str = ""
) -> Resource:
    """Return a repository with the id ``held``. With an ``upstream``, it caches what nodes pull from that registry."""
    options = Options(
        # Running jobs pull from it, and nobody keeps the sources of older images; a remote one fetches them again.
        protect=scope.deletion_protection and not upstream,
        # Its id is taken until it is deleted.
        delete_before_replace=True,
    )
    return gcp.repository(
        name,
        options,
        repository_id=held,
        project=scope.project,
        location=location,
        format="DOCKER",
        mode="REMOTE_REPOSITORY" if upstream else None,
        remote_repository_config={"common_repository": {"uri": upstream}} if upstream else None,
        description=f"Images of {upstream or _holder(scope)}",
        kms_key_name=scope.key(location),
        cleanup_policies=_cleanup_policies(spec.keep_versions),
        labels=scope.labels,
    )


def python_repository(name: str, location: str, scope: Scope) -> Resource:
    """Return the repository that caches packages that pip reads from the public index; a new repository is empty."""
    return gcp.repository(
        name,
        Options(delete_before_replace=True),  # its id is taken until it is deleted
        repository_id=python_repository_id(scope.environment),
        project=scope.project,
        location=location,
        format="PYTHON",
        mode="REMOTE_REPOSITORY",
        remote_repository_config={"python_repository": {"public_repository": "PYPI"}},
        description=f"Packages of {_holder(scope)}",
        kms_key_name=scope.key(location),
        labels=scope.labels,
    )


def _holder(scope: Scope) -> str:
    return f"team {scope.team} in {scope.environment}" if scope.team else f"environment {scope.environment}"


def _cleanup_policies(keep_versions: int) -> list[CleanupPolicy]:
    """Return the clean-up policies. An image that matches a policy to keep and a policy to delete is kept."""
    return [
        {"id": "keep-newest", "action": "KEEP", "most_recent_versions": {"keep_count": keep_versions}},
        {
            "id": "delete-untagged",
            "action": "DELETE",
            "condition": {"tag_state": "UNTAGGED", "older_than": f"{UNTAGGED_SECONDS}s"},
        },
    ]


ACCESSOR = "roles/secretmanager.secretAccessor"
VERSION_ADDER = "roles/secretmanager.secretVersionAdder"


def team_secret(key: str, scope: Scope, name: str | None = None) -> Resource:
    """Return a secret. Google Cloud chooses its location. People add its versions, so no state contains its value.

    ``name`` is its logical name if it is not a team's secret.
    """
    # Its versions are deleted with it. The name is fixed, and taken until the old secret is deleted.
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)
    return gcp.secret(
        name or f"{declared_name('secrets', key)}-secret",
        options,
        secret_id=secret_id(scope, key),
        project=scope.project,
        replication={"auto": {}},
        labels=scope.labels,
    )


def secret_grant(name: str, scope: Scope, secret: Resource, role: str, member: Any) -> Resource:
    """Return a member's role on a secret: to read its values, or to add values without reading any."""
    return gcp.secret_member(
        name, project=scope.project, secret_id=secret.output("secret_id"), role=role, member=member
    )


NOBODY = 65534


def lustre_instance(key: str, spec: LustreSpec, scope: Scope, network: Any) -> Resource:
    """Return an instance. ``network`` is the VPC's id; private service access must be ready in the VPC.

    Clusters from 1.33.2-gke.4780000 on mount it at port 988 (GKE docs, read 2026-11-22).
    """
    options = Options(
        # Deletion, and so any replacement, loses all data.
        protect=scope.deletion_protection and spec.deletion_protection,
        # The name is fixed, and taken until the old instance is gone.
        delete_before_replace=True,
    )
    return gcp.lustre(
        f"{declared_name('lustre', key)}-instance",
        options,
        instance_id=instance_id(key, scope),
        project=scope.project,
        location=spec.location,
        network=network,
        filesystem=spec.filesystem,
        capacity_gib=str(spec.capacity_gib),
        per_unit_storage_throughput=str(spec.mbps_per_tib),
        access_rules_options=_access_rules(spec),
        kms_key=scope.key(spec.location),
        description=f"{key} of environment {scope.environment}",
        labels=scope.labels,
    )


def instance_id(key: str, scope: Scope) -> str:
    """Return an instance's id, ``{environment}-{key}``."""
    return short_name(f"{scope.environment}-{key}", NAME_LIMIT)


def lustre_address(mount_point: str) -> str:
    """Return the IP address in an instance's mount point, ``ADDRESS@tcp:/FILESYSTEM``."""
    return mount_point.partition("@")[0]


def _access_rules(spec: LustreSpec) -> AccessRules:
    if not spec.squash_root:
        return {"default_squash_mode": "NO_SQUASH"}
    return {"default_squash_mode": "ROOT_SQUASH", "default_squash_uid": NOBODY, "default_squash_gid": NOBODY}
