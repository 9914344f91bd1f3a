from __future__ import annotations

import re
from pathlib import Path

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
import yaml

from modules.volumes import FilestoreClass
from tests.demand_of_model import model_demand
from tests.stacks.test_reach import ENVIRONMENT, TEAM, planned
from training_platform.catalog import FILESTORE_TIERS
from training_platform.catalog.prices import HOURS_OF_MONTH, PriceBook
from training_platform.checks.cost import stack_cost
from training_platform.checks.planning.recorder import Plan, record
from training_platform.checks.reports.json_report import file_document
from training_platform.checks.reports.sections import file_section
from training_platform.config.model.cluster import ClusterSpec, SubnetSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import parse_stack
from training_platform.config.model.storage import FileClassSpec, FilestoreSpec
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace
from training_platform.quota.demand import demand_of_views
from training_platform.quota.ledger import file_ledger
from training_platform.resources.filestore import claim_limits, class_tiers, most_gib, storage_class, tier_class
from training_platform.resources.scope import Scope
from training_platform.rules import views_of_plan

CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"
LABELS = {"managed-by": "training-platform", "environment": "prod"}
SUBNET = SubnetSpec(nodes="10.0.0.0/20", pods="10.1.0.0/16", services="10.2.0.0/20")


def deploy(tier: str = "ZONAL", *, protected: bool = True) -> Plan:
    scope = Scope(
        environment="prod", team=None, project="example-train-prod", labels=LABELS, deletion_protection=protected
    )

    def program() -> None:
        provider = kubernetes.Provider("us-central1-kubernetes", kubeconfig="{}")
        declared = storage_class("us-central1-filestore", scope, tier, "prod")
        made = FilestoreClass("us-central1-filestore", declared, pulumi.ResourceOptions(providers=[provider]))
        pulumi.export("class_name", made.class_name)

    return record(program, project="training-platform", stack_name="prod")


def test_claims_make_instances_in_the_platforms_own_network() -> None:
    plan = deploy()

    assert plan.one(CLASS, "us-central1-filestore-class").inputs == {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "filestore-zonal",
            "labels": {**LABELS, "app.kubernetes.io/managed-by": "training-platform"},
        },
        "provisioner": "filestore.csi.storage.gke.io",
        "parameters": {
            "tier": "zonal",
            "network": "prod",
            "labels": "environment=prod,managed-by=training-platform",
        },
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
        "reclaimPolicy": "Retain",
    }
    assert plan.outputs == {"class_name": "filestore-zonal"}


def test_without_deletion_protection_a_deleted_claim_takes_its_instance_along() -> None:
    assert deploy(protected=False).one(CLASS).inputs["reclaimPolicy"] == "Delete"


@pytest.mark.parametrize("tier", FILESTORE_TIERS)
def test_a_tier_is_called_what_the_driver_calls_it(tier: str) -> None:
    inputs = deploy(tier).one(CLASS).inputs

    assert inputs["parameters"]["tier"] == FILESTORE_TIERS[tier].csi_tier
    assert re.fullmatch(r"filestore-[a-z]+(-[a-z]+)*", inputs["metadata"]["name"])


def test_no_two_tiers_share_a_class() -> None:
    assert len({tier_class(tier) for tier in FILESTORE_TIERS}) == len(FILESTORE_TIERS)


def test_what_kubernetes_will_not_change_makes_the_class_anew() -> None:
    options = deploy().one(CLASS).options

    assert options["replaceOnChanges"] == ["reclaimPolicy"]
    assert options["deleteBeforeReplace"] is True


def test_the_class_is_made_through_the_clusters_provider() -> None:
    assert deploy().one(CLASS).options["provider"] == "us-central1-kubernetes"


def test_a_cluster_gets_a_class_for_each_tier_of_its_region_once() -> None:
    near = ClusterSpec(location="us-central1", subnet=SUBNET)
    environment = Environment(
        project="example-train-prod",
        clusters={"near": near, "far": ClusterSpec(location="us-west4", subnet=SUBNET)},
        filestore={
            "homes": FilestoreSpec(location="us-central1-a", tier="ZONAL", capacity_gib=1024),
            "scratch": FilestoreSpec(location="us-central1-b", tier="ZONAL", capacity_gib=1024),
            "datasets": FilestoreSpec(location="us-central1", tier="REGIONAL", capacity_gib=1024),
            "other": FilestoreSpec(location="europe-west4-a", tier="BASIC_HDD", capacity_gib=1024),
        },
    )

    assert class_tiers(environment, near) == ("REGIONAL", "ZONAL")
    assert class_tiers(environment, environment.clusters["far"]) == ()


SHARED = {"tier": "ENTERPRISE", "multishare": True, "largest_share_gib": 256, "teams": {"team": 2048}}
BUILT_IN = ("standard-rwx", "premium-rwx", "zonal-rwx", "enterprise-rwx", "enterprise-multishare-rwx")
CLUSTER = {**ENVIRONMENT["clusters"]["c"], "storage_classes": {"shared": SHARED, "plain": {"tier": "ZONAL"}}}
DECLARED = {**ENVIRONMENT, "clusters": {"c": CLUSTER}}


def test_claims_of_a_declared_class_share_instances_of_its_own() -> None:
    plan = planned(DECLARED, TEAM, "env")
    shared = plan.one(CLASS, "c-files-shared-class").inputs

    assert shared["metadata"]["name"] == "files-shared"
    assert {name: shared["parameters"][name] for name in ("tier", "multishare", "max-volume-size")} == {
        "tier": "enterprise", "multishare": "true", "max-volume-size": "256Gi",
    }  # fmt: skip
    assert shared["parameters"]["instance-storageclass-label"] == "files-shared"
    assert "multishare" not in plan.one(CLASS, "c-files-plain-class").inputs["parameters"]


def test_a_team_claims_of_a_class_what_it_is_given_and_else_nothing() -> None:
    quota = planned(DECLARED, TEAM, "team").one("kubernetes:core/v1:ResourceQuota", "share-c-tenancy-resource-quota")
    hard = quota.inputs["spec"]["hard"]

    assert hard["files-shared.storageclass.storage.k8s.io/requests.storage"] == "2048Gi"
    assert hard["files-shared.storageclass.storage.k8s.io/persistentvolumeclaims"] == str(2048 // 10)
    assert hard["files-plain.storageclass.storage.k8s.io/requests.storage"] == "0Gi"
    assert hard["files-plain.storageclass.storage.k8s.io/persistentvolumeclaims"] == "0"


@pytest.mark.parametrize(
    ("section", "most", "claims"),
    [
        ({"tier": "ZONAL"}, 0, "0"),
        ({"tier": "ZONAL", "teams": {"team": 100}}, 1024, "1"),  # one instance, as large as the smallest
        ({"tier": "ZONAL", "teams": {"team": 2500, "other": 1024}}, 2560 + 1024, "2"),  # in steps of 256
        ({"tier": "BASIC_HDD", "teams": {"team": 2500}}, 2500, "2"),
        (
            {"tier": "ENTERPRISE", "multishare": True, "teams": {"team": 300, "other": 300}},
            1024,
            "3",
        ),  # on one instance
        ({"tier": "ENTERPRISE", "multishare": True, "teams": {"team": 1300}}, 1536, "13"),
    ],
)
def test_a_class_comes_to_what_its_teams_may_claim_of_it(section: dict[str, object], most: int, claims: str) -> None:
    spec = FileClassSpec.model_validate(section, strict=False)

    assert most_gib(spec) == most
    assert claim_limits({"x": spec}, "team")["files-x.storageclass.storage.k8s.io/persistentvolumeclaims"] == claims


def test_what_claims_come_to_is_counted_alike_from_the_file_and_from_the_plan() -> None:
    files = {"env": {"training-platform:environment": DECLARED}}
    stacks = {
        name: parse_stack(name, parse_source(yaml.safe_dump({"config": section}), f"stacks/Pulumi.{name}.yaml"))
        for name, section in files.items()
    }
    workspace = Workspace(Path(), stacks)
    of_model = [each for each in model_demand(stacks["env"], workspace) if each.holder.label == "shared"]
    classes = [each for each in planned(DECLARED, TEAM, "env").resources if each.type == CLASS]
    of_plan, _ = demand_of_views(views_of_plan(classes), project="example-reach")

    assert [(str(each.key), each.amount) for each in of_model] == [
        ("EnterpriseStorageGibPerRegion in us-central1", 2048)
    ]
    assert [(each.keys, each.amount) for each in of_plan] == [(each.keys, each.amount) for each in of_model]
    assert of_model[0].holder.field == ("clusters", "c", "storage_classes", "shared", "teams")


def test_the_ledger_of_files_has_a_line_for_all_that_teams_may_claim() -> None:
    section = parse_source(
        yaml.safe_dump({"config": {"training-platform:environment": DECLARED}}), "stacks/Pulumi.env.yaml"
    )
    lines = {line.instance: line for line in file_ledger(Workspace(Path(), {"env": parse_stack("env", section)}))}
    shared, plain = lines["claims of files-shared in c"], lines["claims of files-plain in c"]

    assert (shared.capacity, shared.promised, shared.over) == (2048, 2048, False)
    assert file_section([shared]).rows[0].cells[1:4] == ("2,048", "2,048", "0")
    assert file_section([plain]).rows[0].cells[1:4] == ("0", "0", "0")
    assert file_document(plain)["capacity_gib"] == 0
    assert {name for name in lines if name.startswith("claims of ")} == {shared.instance, plain.instance}


def test_a_team_claims_nothing_of_any_class_that_the_ledger_does_not_count() -> None:
    """Every StorageClass of Filestore that its clusters have, GKE's own too, has a limit in its namespace."""
    plan = planned(DECLARED, TEAM, "team")
    hard = plan.one("kubernetes:core/v1:ResourceQuota", "share-c-tenancy-resource-quota").inputs["spec"]["hard"]
    planned_classes = [each.inputs["metadata"]["name"] for each in planned(DECLARED, TEAM, "env").resources
                       if each.type == CLASS and "filestore" in each.inputs["provisioner"]]  # fmt: skip
    limits = {
        name: hard[f"{name}.storageclass.storage.k8s.io/requests.storage"] for name in (*planned_classes, *BUILT_IN)
    }

    assert "filestore-zonal" in planned_classes
    assert {name for name, limit in limits.items() if limit != "0Gi"} == {"files-shared"}


def test_claims_cost_nothing_at_the_least_and_all_that_teams_may_claim_at_the_most() -> None:
    book = PriceBook(services={"filestore-ENTERPRISE": {"us-central1": 0.5}})
    cost, without = (
        stack_cost(Environment.model_validate(each, strict=False), book) for each in (DECLARED, ENVIRONMENT)
    )

    assert cost.least == without.least
    assert cost.most - without.most == pytest.approx((2048 - 1024) * 0.5 / HOURS_OF_MONTH)


def test_a_largest_share_without_shares_is_refused() -> None:
    with pytest.raises(ValueError, match="largest_share_gib needs multishare"):
        FileClassSpec.model_validate({"tier": "ENTERPRISE", "largest_share_gib": 128})
