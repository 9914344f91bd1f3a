"""Views of the model on sample files; that they equal those of the plan is held by the tests that plan."""

from __future__ import annotations

import pytest

from tests.support.places import ORGANISATION
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.rules import evaluate, program, views_of_model
from training_platform.views.access import AccountView, AlertPolicyView, LabelledView, ReleaseView, RoleGrantView
from training_platform.views.cluster import ClusterView
from training_platform.views.kueue import FlavorView
from training_platform.views.network import CountedView, FirewallView, GatewayView, NetworkView, SubnetView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import (
    EncryptedView,
    FilestoreView,
    RepositoryView,
    StorageClassView,
    VolumeClaimView,
)
from training_platform.views.whole_stack import ObjectView


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    return read_workspace(ORGANISATION)


def test_environment_has_a_view_of_everything_that_rules_read(workspace: Workspace) -> None:
    views = views_of_model(workspace.stacks["prod"], workspace)
    kinds = {type(view) for view in views}

    networks = {CountedView, NetworkView, SubnetView, GatewayView, FirewallView}
    assert kinds == networks | {ClusterView, NodePoolView, FilestoreView, FlavorView, StorageClassView} | {
        AccountView,
        AlertPolicyView,
        EncryptedView,
        RoleGrantView,
        LabelledView,
        ObjectView,
        ReleaseView,
        RepositoryView,
        VolumeClaimView,
    }
    assert sum(isinstance(view, ClusterView) for view in views) == 3
    # 3 system and 3 CPU pools; v4: 2 + 2 slices; v5e: 1 pool of hosts + 4 slices; 4 GPU pools.
    assert sum(isinstance(view, NodePoolView) for view in views) == 3 + 3 + 4 + 5 + 4


@pytest.mark.parametrize("stack", ["dev", "prod", "dev-vision", "prod-vision", "prod-nlp"])
def test_sample_stack_breaks_no_rule(workspace: Workspace, stack: str) -> None:
    file = workspace.stacks[stack]
    environment = file.environment_name
    team = file.team.name if file.team else None
    views = views_of_model(file, workspace)
    whole = program(views, stack=stack, environment=environment, team=team, production=environment == "prod")

    assert views
    assert evaluate(whole, file=file) == []


def test_team_without_its_environment_has_no_views(workspace: Workspace) -> None:
    team = workspace.stacks["prod-vision"]

    assert views_of_model(team, Workspace(ORGANISATION, {team.name: team})) == []
