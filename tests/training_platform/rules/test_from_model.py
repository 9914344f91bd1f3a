"""Views of the model on sample files; that they equal those of the plan is held by the tests that plan."""

from __future__ import annotations

import pytest

from tests.places import ORGANISATION
from training_platform.config.reading.clock import today
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import capacity_ledger, project_ledgers
from training_platform.quota.ledger_findings import ledger_findings
from training_platform.quota.snapshot import read_snapshots
from training_platform.rules import View, evaluate, program, views_of_model
from training_platform.rules.workloads import workload_findings
from training_platform.views.access import AccountView, AlertPolicyView, LabelledView, ReleaseView, RoleGrantView
from training_platform.views.cluster import ClusterView
from training_platform.views.kueue import FlavorQuotaView, FlavorView
from training_platform.views.network import CountedView, FirewallView, GatewayView, NetworkView, SubnetView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import (
    EncryptedView,
    FilestoreView,
    RepositoryView,
    StorageClassView,
    VolumeClaimView,
)
from training_platform.views.vertex import PersistentPoolView
from training_platform.views.whole_stack import ObjectView


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    return read_workspace(ORGANISATION)


def views(workspace: Workspace, stack: str) -> dict[tuple[str, str], View]:
    return {(type(view).__name__, view.name): view for view in views_of_model(workspace.stacks[stack], workspace)}


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


def test_slice_pool_has_the_hosts_of_one_slice(workspace: Workspace) -> None:
    pool = views(workspace, "prod")["NodePoolView", "us-west4-v5e-slice-0-pool"]

    assert isinstance(pool, NodePoolView)
    assert (pool.min_nodes, pool.max_nodes, pool.tpu_topology, pool.capacity) == (8, 8, "4x8", "reservation")
    assert pool.path("max_nodes") == ("clusters", "us-west4", "node_pools", "v5e-slice", "slices")


def test_flex_start_pool_scales_from_zero_without_repair(workspace: Workspace) -> None:
    pool = views(workspace, "prod")["NodePoolView", "us-central1-h100-mega-pool"]

    assert isinstance(pool, NodePoolView)
    assert (pool.capacity, pool.initial_nodes, pool.auto_repair) == ("flex-start", 0, False)
    assert pool.max_run_seconds == 168 * 3600


def test_team_has_its_shares_and_machines(workspace: Workspace) -> None:
    views = views_of_model(workspace.stacks["prod-vision"], workspace)
    shares = {view.flavor: view for view in views if isinstance(view, FlavorQuotaView)}
    (pool,) = [view for view in views if isinstance(view, PersistentPoolView)]

    assert shares["h100-reservation"].nominal_quota == 24
    assert shares["h100-reservation"].path("nominal_quota")[:2] == ("shares", "us-central1")
    assert (pool.resource_id, pool.accelerator_count) == ("prod-vision-tuning", 1)
    assert (pool.replica_count, pool.min_replicas, pool.max_replicas) == (1, 1, 4)


@pytest.mark.parametrize("stack", ["dev", "prod", "dev-vision", "prod-vision", "prod-nlp"])
def test_sample_stack_breaks_no_rule(workspace: Workspace, stack: str) -> None:
    file = workspace.stacks[stack]
    environment = file.environment_name
    team = file.team.name if file.team else None
    views = views_of_model(file, workspace)
    whole = program(views, stack=stack, environment=environment, team=team, production=environment == "prod")

    assert views
    assert evaluate(whole, file=file) == []


def test_sample_projects_keep_within_their_quotas(workspace: Workspace) -> None:
    snapshots = read_snapshots(ORGANISATION, today(ORGANISATION))
    ledgers = project_ledgers(workspace_demand(workspace), snapshots)

    assert set(ledgers) == {"example-train-dev", "example-train-prod"}
    capacity = capacity_ledger(workspace)
    assert [*snapshots.findings, *ledger_findings(workspace, ledgers.values(), capacity)] == []
    assert workload_findings(workspace) == []


def test_team_without_its_environment_has_no_views(workspace: Workspace) -> None:
    team = workspace.stacks["prod-vision"]

    assert views_of_model(team, Workspace(ORGANISATION, {team.name: team})) == []
