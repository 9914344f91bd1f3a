from __future__ import annotations

from training_platform.resources.tenancy import MEMBER_RULES, Subject, subjects

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
        Subject("Group", "vision@example.com"),
        Subject("User", "ada@example.com"),
        Subject("User", "ci@p.iam.gserviceaccount.com"),
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
    assert verbs("", "pods") >= {"get", "list", "watch", "delete"}


def test_members_keep_data_and_settings_beside_their_jobs() -> None:
    for resource in ("persistentvolumeclaims", "configmaps", "secrets"):
        assert verbs("", resource) >= WRITE


def test_members_see_queues_and_change_none() -> None:
    for resource in ("localqueues", "workloads"):
        assert verbs("kueue.x-k8s.io", resource) == {"get", "list", "watch"}
