"""The account of nodes: no more roles than nodes need, and a name that Google Cloud takes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest

from modules.gke import NodeServiceAccount, NodeServiceAccountArgs
from training_platform.checks.planning.recorder import Plan
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
ACCOUNT = "gcp:serviceaccount/account:Account"
MEMBER = "gcp:projects/iAMMember:IAMMember"


def account(scope: Scope) -> NodeServiceAccount:
    return NodeServiceAccount("nodes", NodeServiceAccountArgs(scope=scope))


def test_nodes_have_an_account_per_environment(scope: Scope, deploy: Deploy) -> None:
    inputs = deploy(lambda: account(scope)).one(ACCOUNT, "nodes-account").inputs

    assert inputs == {
        "project": "example-train-prod",
        "accountId": "prod-gke-nodes",
        "displayName": "GKE nodes of prod",
    }


@pytest.mark.parametrize("environment", ["a", "research-" * 8 + "x", "p" * 20, "p" * 21])
def test_the_account_id_is_one_that_google_cloud_takes(environment: str, scope: Scope, deploy: Deploy) -> None:
    mine = dataclasses.replace(scope, environment=environment)
    name = deploy(lambda: account(mine)).one(ACCOUNT).inputs["accountId"]

    assert re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", name)


def test_nodes_have_three_roles_and_no_more(scope: Scope, deploy: Deploy) -> None:
    members = deploy(lambda: account(scope)).of(MEMBER)

    assert {member.name: member.inputs for member in members} == {
        f"nodes-{role}": {"project": "example-train-prod", "role": f"roles/{role}", "member": UNKNOWN}
        for role in (
            "artifactregistry.reader",
            "container.defaultNodeServiceAccount",
            "serviceusage.serviceUsageConsumer",
        )
    }
    assert all(member.options["dependsOn"] == [(ACCOUNT, "nodes-account")] for member in members)
