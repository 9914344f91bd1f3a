"""The table of effects covers each type and input of the samples, and each row is complete."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.places import ORGANISATION
from training_platform.checks.comparison.changes import removed
from training_platform.checks.comparison.effects import (
    effect_of_addition,
    effect_of_input,
    effect_of_loss,
    effect_table,
    effects_of_field,
    is_decided,
    type_rank,
)
from training_platform.checks.effect_kinds import LOSS_RULES
from training_platform.checks.outcome import FlatResource, flat_resource
from training_platform.config.workspace import read_workspace
from training_platform.resources import resource_types
from training_platform.resources.resource_types import (
    BUCKET,
    CLUSTER,
    DISK,
    FILESTORE,
    IAM_MEMBER,
    NAMESPACE,
    NODE_POOL,
)
from training_platform.resources.stack_plan import stack_plan
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER
from training_platform.rules.exemptions import LOSSES

QUOTA = "kubernetes:core/v1:ResourceQuota"
CLASS = "files-scratch.storageclass.storage.k8s.io"
CONNECTION = "gcp:servicenetworking/connection:Connection"
DATABASE = "gcp:sql/databaseInstance:DatabaseInstance"
BINDING = "gcp:artifactregistry/repositoryIamBinding:RepositoryIamBinding"
TABLE = effect_table()
ROWS = [
    *TABLE.options,
    *TABLE.every,
    *TABLE.fields,
    *(row for kind in TABLE.types.values() for row in (kind.lost, *kind.inputs)),
]


def planned() -> list[FlatResource]:
    """Return every resource of the organisation's stacks."""
    workspace = read_workspace(ORGANISATION)
    plans = [stack_plan(stack, workspace) for stack in workspace.stacks.values()]
    return [flat_resource(resource) for plan in plans if plan for resource in plan.planned() if resource.custom]


def test_no_input_of_the_organisation_is_of_unknown_effect() -> None:
    missing = set()
    for resource in planned():
        assert type_rank(resource.type) >= 0, resource.type
        for path in resource.inputs:
            if not (is_decided(resource.type, path) or resource_types.forces_replacement(resource.type, path)):
                missing.add((resource.type, path))

    assert missing == set()


def test_every_row_has_a_source_and_a_loss_says_what_to_do_first() -> None:
    for row in ROWS:
        assert row.source in TABLE.sources or row.effect in ("grants", "revokes"), row
        assert row.says, row
        assert row.first or row.effect not in LOSS_RULES, row


def test_the_rules_of_losses_are_those_that_an_acknowledgement_may_name() -> None:
    assert {rule.id for rule in LOSS_RULES.values()} == LOSSES


@pytest.mark.parametrize(
    ("kind", "path", "old", "new", "effect"),
    [
        (BUCKET, "lifecycleRules[0].condition.age", 90, 1, "data"),
        (BUCKET, "lifecycleRules[0].condition.age", None, 1, "data"),
        (BUCKET, "lifecycleRules[0].condition.age", 1, 90, "none"),
        (BUCKET, "lifecycleRules[0].condition.age", 90, None, "none"),
        (BUCKET, "versioning.enabled", True, False, "data"),
        (BUCKET, "versioning.enabled", False, True, "none"),
        (BUCKET, "softDeletePolicy.retentionDurationSeconds", 604800, 0, "protection"),
        (BUCKET, "publicAccessPrevention", "enforced", "inherited", "opens"),
        (NODE_POOL, "nodeLocations", ["a", "b"], ["a"], "jobs"),
        (NODE_POOL, "nodeLocations", ["a"], ["a", "b"], "none"),
        (NODE_POOL, "nodeConfig.machineType", "a", "b", "jobs"),
        (NODE_POOL, "nodeConfig.resourceLabels.team", "a", "b", "none"),
        (NODE_POOL, "nodeConfig.labels.team", "a", "b", "none"),
        (NODE_POOL, "autoscaling.minNodeCount", 4, 2, "none"),
        (NODE_POOL, "somethingNew", 1, 2, "unknown"),
        (CLUSTER, "deletionProtection", True, False, "protection"),
        (CLUSTER, "minMasterVersion", "1.33", "1.34", "none"),
        ("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", "spec.stopPolicy", "None", "HoldAndDrain", "jobs"),
        ("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", "spec.stopPolicy", "HoldAndDrain", "None", "none"),
        (NODE_POOL, "nodeConfig.taints[dedicated].effect", None, "NO_EXECUTE", "jobs"),
        (NODE_POOL, "nodeConfig.taints[dedicated].effect", None, "NO_SCHEDULE", "none"),
        (NODE_POOL, "nodeConfig.taints[dedicated].effect", "NO_EXECUTE", None, "none"),
        (FILESTORE, "fileShares.nfsExportOptions[0].ipRanges", ["10.0.0.0/8"], None, "opens"),
        (FILESTORE, "fileShares.nfsExportOptions[0].squashMode", "ROOT_SQUASH", None, "none"),
        (FILESTORE, "fileShares.nfsExportOptions[0].ipRanges", None, ["10.0.0.0/8"], "jobs"),
        (DISK, "size", 500, 499, "data"),
        (DISK, "size", 500, 501, "none"),
        (QUOTA, f"spec.hard.{CLASS}/requests.storage", "2048Gi", "1024Gi", "promises"),
        (QUOTA, f"spec.hard.{CLASS}/requests.storage", "1024Gi", "2048Gi", "none"),
        (QUOTA, "spec.hard.requests.cpu", "8", "4", "none"),
        (BINDING, "members", ["a"], ["a", "b"], "grants"),
        (BINDING, "members", ["a", "b"], ["a"], "revokes"),
        (BINDING, "members", ["a"], ["a", "allUsers"], "opens"),
        ("gcp:pubsub/topicIAMPolicy:TopicIAMPolicy", "policyData", "{}", "[]", "revokes"),
        ("gcp:pubsub/subscription:Subscription", "labels.team", "a", "b", "none"),
        ("gcp:pubsub/subscription:Subscription", "topic", "a", "b", "unknown"),
        ("gcp:pubsub/subscription:Subscription", "protect", True, None, "protection"),
        ("gcp:monitoring/dashboard:Dashboard", "retainOnDelete", True, None, "protection"),
        (BUCKET, "protect", None, True, "none"),
        (CONNECTION, "deletionPolicy", "ABANDON", "DELETE", "protection"),
        (CONNECTION, "deletionPolicy", "ABANDON", None, "protection"),
        (CONNECTION, "deletionPolicy", None, "ABANDON", "none"),
        (DATABASE, "deletionProtection", True, False, "protection"),
        (DATABASE, "deletionProtection", False, True, "none"),
    ],
)
def test_an_input_has_the_effect_of_how_it_changes(kind: str, path: str, old: Any, new: Any, effect: str) -> None:
    assert effect_of_input(kind, path, old, new).kind == effect


def test_losing_a_type_that_the_table_lacks_loses_what_it_holds() -> None:
    assert effect_of_loss("gcp:spanner/database:Database").kind == "data"
    assert effect_of_loss(BUCKET).kind == "data"
    assert effect_of_loss(NODE_POOL).kind == "jobs"


def test_a_removed_object_is_within_the_cluster_of_its_provider_and_its_namespace() -> None:
    key = (KUBERNETES_PROVIDER, "k")
    clusters = {"kubeconfig": ((CLUSTER, "c"), (BUCKET, "b"))}
    provider = FlatResource(type=key[0], name=key[1], inputs={}, inputs_from=clusters)
    namespaces = {"metadata": ((NAMESPACE, "n"), (BUCKET, "b"))}
    job = FlatResource(type="kubernetes:batch/v1:Job", name="j", inputs={}, inputs_from=namespaces, provider=key)

    assert removed(job, {key: provider}).within == ((CLUSTER, "c"), (NAMESPACE, "n"))


def test_a_grant_is_a_line_and_one_to_everybody_a_loss() -> None:
    assert effect_of_addition(IAM_MEMBER, {"member": "group:vision@example.com"}).kind == "grants"
    assert effect_of_addition(IAM_MEMBER, {"member": "allUsers"}).kind == "opens"
    assert effect_of_addition(BUCKET, {}).kind == "none"


def test_a_grant_that_has_all_members_takes_rights_of_those_that_it_does_not_name() -> None:
    binding = effect_of_addition(BINDING, {"members": ["user:ada@example.com"]})
    policy = effect_of_addition("gcp:pubsub/topicIAMPolicy:TopicIAMPolicy", {"policyData": "{}"})

    assert (binding.kind, binding.says) == (
        "revokes",
        "everybody who is not in the binding loses the role on this resource",
    )
    assert (policy.kind, policy.says) == (
        "revokes",
        "everybody who is not in the policy loses all roles on this resource",
    )
    assert effect_of_addition(BINDING, {"members": ["allUsers"]}).kind == "opens"
    assert effect_of_addition("gcp:pubsub/topicIAMMember:TopicIAMMember", {"member": "allUsers"}).kind == "opens"
    assert effect_of_loss("gcp:pubsub/topicIAMMember:TopicIAMMember").kind == "revokes"


@pytest.mark.parametrize(
    ("section", "path", "old", "new", "effects"),
    [
        ("environment", "production", True, False, ["protection"]),
        ("environment", "production", False, True, []),
        ("environment", "max_run_hours", 168, 12, ["promises"]),
        ("environment", "max_run_hours", None, 12, ["promises"]),
        ("environment", "max_run_hours", 12, 168, []),
        ("environment", "max_grace_seconds", 900, 30, ["promises"]),
        ("environment", "image_sources", None, ["a/"], ["revokes"]),
        ("environment", "image_sources", ["a/"], None, ["protection"]),
        ("environment", "fair_sharing", True, False, ["promises"]),
        ("environment", "clusters.c.notebooks.teams.core.users", ["a"], [], ["revokes"]),
        ("environment", "clusters.c.notebooks.teams.core", None, {"users": ["a"]}, ["grants"]),
        ("environment", "clusters.c.notebooks.allowed_domain", "a", "b", ["revokes"]),
        ("environment", "clusters.c.notebooks.idle_minutes", 60, 5, ["promises"]),
        ("environment", "cohorts.research.shares.c.h100.lending_limit", 16, 0, ["promises"]),
        ("environment", "retired.since", "2026-12-01", "2026-11-30", ["promises"]),
        ("team", "retired.since", "2026-12-01", "2026-11-30", ["promises"]),
        ("team", "retired.since", "2026-12-01", "2027-01-01", []),
        ("team", "host_network", False, True, ["opens"]),
        ("team", "writes_metrics", False, True, ["opens"]),
        ("team", "members", ["a", "b"], ["a"], ["revokes"]),
        ("team", "members", ["a"], ["a", "b"], ["grants"]),
        ("team", "members", ["a"], ["b"], ["grants", "revokes"]),
        ("team", "monthly_chip_hours.c", 30000, 3000, ["promises"]),
        ("team", "monthly_chip_hours", None, {"c": 3000}, ["promises"]),
        ("team", "monthly_chip_hours.c", 3000, 30000, []),
        ("team", "shares.c.h100.lending_limit", 16, 0, ["promises"]),
        ("team", "wandb_launch.c.max_jobs", 10, 4, ["promises"]),
        ("team", "wandb_launch.c.max_jobs", 4, 10, []),
        ("team", "weight", 2, 1, ["promises"]),
        ("team", "cohort", "a", "b", ["promises"]),
        ("environment", "cohorts.research.parent", "a", None, ["promises"]),
        ("team", "egress", [], [{"cidr": "0.0.0.0/0"}], ["opens"]),
        ("team", "buckets.data.location", "a", "b", []),
    ],
)
def test_a_field_without_a_resource_has_its_own_effect(
    section: str, path: str, old: Any, new: Any, effects: list[str]
) -> None:
    assert [effect.kind for effect in effects_of_field(section, path, old, new)] == effects


def test_what_opens_says_which_way() -> None:
    policy = "kubernetes:networking.k8s.io/v1:NetworkPolicy"

    out = effect_of_input(policy, "spec.egress[0].to[0].ipBlock.cidr", "203.0.113.0/24", "0.0.0.0/0")
    inward = effect_of_input(policy, "spec.ingress[0].from[0].ipBlock.cidr", "203.0.113.0/24", "0.0.0.0/0")
    (field,) = effects_of_field("team", "egress", [], [{"cidr": "0.0.0.0/0"}])

    assert out.says == field.says == "pods may connect to any address"
    assert inward.says == "any address may connect to the pods"
