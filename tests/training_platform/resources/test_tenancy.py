from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.support.plans import PlannedStack, composed
from training_platform.resources.scope import Scope
from training_platform.resources.stack_resource import StackResource
from training_platform.resources.tenancy import (
    CONNECT_ROLE,
    MEMBER_RULES,
    NamespaceParts,
    RoleSubject,
    cluster_callers,
    subjects,
    team_namespace,
)

NAMESPACE = "kubernetes:core/v1:Namespace"
RBAC = "kubernetes:rbac.authorization.k8s.io/v1"
SCOPE = Scope(
    environment="prod",
    team="vision",
    project="example-train-prod",
    labels={"environment": "prod", "team": "vision", "managed-by": "training-platform"},
    deletion_protection=True,
)
EMAIL = "prod-vision-jobs@example-train-prod.iam.gserviceaccount.com"


def plan(scope: Scope = SCOPE, members: tuple[str, ...] = ("group:vision@example.com",), **more: Any) -> PlannedStack:
    args = NamespaceParts(
        scope=scope,
        team="vision",
        members=members,
        google_service_account=EMAIL,
        labels={"training-platform/team": "vision"},
        quota={"pods": "10"},
        **more,
    )
    return composed(lambda into: team_namespace(into, args), "share-main")


def test_the_namespace_has_the_teams_name_and_labels() -> None:
    planned_tenancy = plan()
    metadata = planned_tenancy.one(NAMESPACE, "share-main-namespace").inputs["metadata"]

    assert metadata["name"] == "vision"
    assert metadata["labels"] == {
        **SCOPE.labels,
        "app.kubernetes.io/managed-by": "training-platform",
        "training-platform/team": "vision",
    }
    assert planned_tenancy.outputs["value"] == "vision"


@pytest.mark.parametrize("protected", [True, False])
def test_what_runs_in_it_is_protected_with_the_environment(*, protected: bool) -> None:
    planned_tenancy = plan(dataclasses.replace(SCOPE, deletion_protection=protected))

    assert planned_tenancy.one(NAMESPACE).options.get("protect", False) is protected


def test_jobs_act_as_the_teams_account_in_google_cloud() -> None:
    account = plan().one("kubernetes:core/v1:ServiceAccount").inputs["metadata"]

    assert (account["name"], account["namespace"]) == ("training", "vision")
    assert account["annotations"] == {"iam.gke.io/gcp-service-account": EMAIL}


def test_members_get_the_rights_of_members_in_this_namespace_alone() -> None:
    planned_tenancy = plan(members=("group:vision@example.com", "user:ada@example.com", "domain:example.com"))
    role = planned_tenancy.one(f"{RBAC}:Role").inputs
    binding = planned_tenancy.one(f"{RBAC}:RoleBinding").inputs

    assert [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in role["rules"]] == [
        ([rule.api_group], list(rule.resources), list(rule.verbs)) for rule in MEMBER_RULES
    ]
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == ("Role", role["metadata"]["name"])
    assert [(subject["kind"], subject["name"]) for subject in binding["subjects"]] == [
        ("Group", "vision@example.com"),
        ("User", "ada@example.com"),
    ]
    assert {subject["apiGroup"] for subject in binding["subjects"]} == {"rbac.authorization.k8s.io"}
    assert planned_tenancy.of(f"{RBAC}:ClusterRoleBinding") == []


def test_only_the_teams_own_pods_and_the_scrape_of_metrics_get_in() -> None:
    spec = plan().one("kubernetes:networking.k8s.io/v1:NetworkPolicy").inputs["spec"]

    assert spec["podSelector"] == {}
    assert spec["policyTypes"] == ["Ingress"]
    assert spec["ingress"] == [
        {
            "from": [
                {"podSelector": {}},
                {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gmp-system"}}},
            ]
        }
    ]


def test_what_pods_connect_to_is_held_by_policies_beside_it() -> None:
    closed: dict[str, list[str]] = {"policyTypes": ["Egress"]}
    hosts: dict[str, list[str]] = {"egress": []}
    planned_tenancy = plan(egress=closed, hosts=hosts)
    policies = {
        policy.inputs["metadata"]["name"]: policy
        for policy in planned_tenancy.of("kubernetes:networking.k8s.io/v1:NetworkPolicy")
    }
    (named,) = planned_tenancy.of("kubernetes:networking.gke.io/v1alpha1:FQDNNetworkPolicy")

    assert policies.keys() == {"same-namespace", "egress"}
    assert policies["egress"].inputs["spec"] == closed
    assert (named.inputs["spec"], named.inputs["metadata"]["namespace"]) == (hosts, "vision")


def test_the_namespace_holds_no_more_than_its_quota() -> None:
    planned_tenancy = plan()

    assert planned_tenancy.one("kubernetes:core/v1:ResourceQuota").inputs["spec"] == {"hard": {"pods": "10"}}
    (limit,) = planned_tenancy.one("kubernetes:core/v1:LimitRange").inputs["spec"]["limits"]
    # A quota of CPUs refuses pods that name none, and those of jobs name none.
    assert limit == {"type": "Container", "defaultRequest": {"cpu": "0", "memory": "0"}}


def test_everything_is_in_the_namespace_and_after_it() -> None:
    namespaced = [
        resource for resource in plan().resources if "metadata" in resource.inputs and resource.type != NAMESPACE
    ]

    assert len(namespaced) == 4 + 2
    for resource in namespaced:
        assert resource.inputs["metadata"]["namespace"] == "vision"
        assert (NAMESPACE, "share-main-namespace") in resource.options["dependsOn"]


WRITE = {"create", "update", "patch", "delete"}


def verbs(api_group: str, resource: str) -> set[str]:
    return {
        verb
        for rule in MEMBER_RULES
        if rule.api_group == api_group and resource in rule.resources
        for verb in rule.verbs
    }


def test_groups_and_people_are_known_by_their_addresses_and_accounts_are_users() -> None:
    members = ["group:vision@example.com", "user:ada@example.com", "serviceAccount:ci@p.iam.gserviceaccount.com"]

    assert subjects(members) == [
        RoleSubject("Group", "vision@example.com"),
        RoleSubject("User", "ada@example.com"),
        RoleSubject("User", "ci@p.iam.gserviceaccount.com"),
    ]


def test_a_whole_domain_has_no_counterpart_in_kubernetes() -> None:
    assert subjects(["domain:example.com"]) == []


def test_members_run_jobs_of_the_kinds_that_kueue_counts() -> None:
    assert verbs("batch", "jobs") >= WRITE
    assert verbs("jobset.x-k8s.io", "jobsets") >= WRITE


def test_members_start_no_pod_past_kueue() -> None:
    assert "create" not in verbs("", "pods")
    assert all(rule.api_group != "apps" for rule in MEMBER_RULES)
    assert all("*" not in (rule.api_group, *rule.resources, *rule.verbs) for rule in MEMBER_RULES)


def test_members_see_into_their_pods() -> None:
    assert verbs("", "pods/log") >= {"get"}
    assert verbs("", "pods/exec") == {"get", "create"}
    assert verbs("", "pods") == {"get", "list", "watch"}


def test_members_keep_data_and_settings_beside_their_jobs() -> None:
    for resource in ("persistentvolumeclaims", "configmaps", "secrets"):
        assert verbs("", resource) >= WRITE


def test_members_see_queues_and_change_none() -> None:
    for resource in ("localqueues", "workloads"):
        assert verbs("kueue.x-k8s.io", resource) == {"get", "list", "watch"}


SCOPE_CONNECT = Scope(environment="dev", team="vision", project="example-vision", labels={}, deletion_protection=False)
MEMBERS = ("group:vision@example.com", "user:vision@example.com")


def test_members_may_connect_in_the_project_of_the_clusters() -> None:
    plan = composed(lambda into: list(map(into.add, cluster_callers(SCOPE_CONNECT, "example-train", MEMBERS))))

    grants = plan.of("gcp:projects/iAMMember:IAMMember")
    assert [(grant.inputs["project"], grant.inputs["role"], grant.inputs["member"]) for grant in grants] == [
        ("example-train", CONNECT_ROLE, member) for member in MEMBERS
    ]
    assert len({grant.name for grant in grants}) == 2


def grant(scope: Scope) -> StackResource:
    plan = composed(lambda into: list(map(into.add, cluster_callers(scope, "example-train", MEMBERS[:1]))))
    return plan.one("gcp:projects/iAMMember:IAMMember")


def test_a_member_who_leaves_one_team_loses_its_grant_and_keeps_the_others() -> None:
    vision = grant(SCOPE_CONNECT)
    nlp = grant(dataclasses.replace(SCOPE_CONNECT, team="nlp"))

    # IAM tells bindings of one role apart by their conditions.
    assert vision.inputs["condition"] != nlp.inputs["condition"]
    assert "dev-vision" in vision.inputs["condition"]["title"]
    assert not any(grant.options.get("retainOnDelete") for grant in (vision, nlp))
