"""Stack files that refer to each other, and capacity that no team was promised."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.support import stack_files
from tests.support.places import ORGANISATION, ROOT
from tests.support.plans import planned_stack
from tests.support.stack_files import text_of, workspace_of
from training_platform.checks.comparison.against_base import affected
from training_platform.checks.reports.json_report import json_report
from training_platform.checks.reports.quota_tables import print_overview
from training_platform.checks.reports.sections import shares_of
from training_platform.checks.reports.text import summary
from training_platform.checks.stacks import CheckOptions, check_stacks
from training_platform.config.data_sets import unknown_teams
from training_platform.config.lent_quota import lending, unpromised
from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import ROOT_COHORT
from training_platform.config.names import Locator
from training_platform.config.reading.declaration import located
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.quota.ledger import capacity_ledger
from training_platform.quota.overview import may_borrow, read_overview
from training_platform.resources.resource_types import COHORT
from training_platform.resources.stack_plan import plannable


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    return tmp_path


def edit(root: Path, stack: str, old: str, new: str) -> Workspace:
    path = root / "stacks" / f"Pulumi.{stack}.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return read_workspace(root)


def test_environments_come_before_their_teams() -> None:
    assert list(read_workspace(ORGANISATION).stacks) == ["dev", "prod", "dev-vision", "prod-nlp", "prod-vision"]


def test_an_environment_is_kept_under_its_name_or_a_former_one(copy: Path) -> None:
    base = read_workspace(copy)
    (copy / "stacks" / "Pulumi.dev.yaml").rename(copy / "stacks" / "Pulumi.lab.yaml")
    head = "  training-platform:environment:\n"

    unsaid = list(read_workspace(copy).kept_environments(base))
    kept = list(edit(copy, "lab", head, f"{head}    renamed_from: dev\n").kept_environments(base))

    assert [(stack.name, was.name) for stack, _, was, _ in unsaid] == [("prod", "prod")]
    assert [(stack.name, was.name) for stack, _, was, _ in kept] == [("lab", "dev"), ("prod", "prod")]
    assert kept[0][3] == base.stacks["dev"].environment


HOMES = "contains the home directories of all users of notebooks in us-central1"
DATA_SET = "data_sets: {{d: {{filestore: {{instance: {}, path: a}}}}}}\n    clusters:\n"
WHOLE = "        size_gib: 4096\n"
MISTAKES = {
    # the stack, a text of it and what replaces it; the path of the finding, the nearest value, a part of the text
    "an environment": ("prod-nlp", "environment: prod", "environment: pord", "environment", "prod", ""),
    "a share's cluster": ("prod-nlp", "us-west4:", "us-west5:", "shares.us-west5", "us-west4", ""),
    "a share's flavor": (
        "prod-nlp", "tpu-v4-4x4x4:", "tpu-v4-4x4x8:", "shares.us-central2.tpu-v4-4x4x8", "tpu-v4-4x4x4", "",
    ),
    "a directory's instance": (
        "prod-nlp", "filestore: datasets", "filestore: dataset", "directories.corpora.filestore", "datasets", "",
    ),
    "a directory among homes": (
        "prod-nlp", "filestore: datasets", "filestore: homes", "directories.corpora.filestore", "datasets", HOMES,
    ),
    "homes on a team's instance": (
        "prod", "tier: ZONAL", "tier: ZONAL\n        team: nlp", "clusters.us-central1.notebooks.filestore",
        "datasets", "Allowed: datasets.",
    ),
    "a whole share that others mount": (
        "prod-nlp", WHOLE, f"{WHOLE}        whole_share: true\n", "directories.corpora.whole_share", "false",
        "'datasets' is also used by team vision",
    ),
    "two parts of one name": (
        "prod", "          h100:", "          system:", "clusters.us-central1.node_pools.system", None,
        "'us-central1-system'",
    ),
    "a data set among homes": (
        "prod", "clusters:\n", DATA_SET.format("homes"), "data_sets.d.filestore.instance", "datasets",
        "contains the home directories of all users of notebooks",
    ),
    "a data set's instance": (
        "prod", "clusters:\n", DATA_SET.format("dataset"), "data_sets.d.filestore.instance", "datasets",
        "is not a Filestore instance",
    ),
    "Lustre without a range for services": (
        "prod", "clusters:\n", "lustre: {scratch: {location: us-central1-a, capacity_gib: 9000}}\n    clusters:\n",
        "lustre", "10.200.0.0/20", "private_services_range",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_conflict_between_sections_is_one_finding_at_its_path(copy: Path, mistake: str) -> None:
    stack, old, new, path, nearest, text = MISTAKES[mistake]

    (finding,) = edit(copy, stack, old, new).stacks[stack].findings

    assert (finding.path, finding.nearest) == (path, nearest)
    assert text in str(finding)


def test_a_value_that_the_model_refuses_hides_no_unknown_name(copy: Path) -> None:
    edit(copy, "prod-nlp", "filestore: datasets", "filestore: dataset")
    edit(copy, "prod-nlp", "us-west4:", "us-west5:")
    nlp = edit(copy, "prod-nlp", "nominal_quota: 40", "nominal_quota: forty").stacks["prod-nlp"]

    assert nlp.team is None
    assert [finding.path for finding in nlp.findings] == [
        "shares.us-central1.h100-reservation.nominal_quota",
        "shares.us-west5",
        "directories.corpora.filestore",
    ]


def test_a_directory_on_an_instance_of_another_team_is_found_at_its_line(copy: Path) -> None:
    stacks = edit(copy, "prod", "tier: REGIONAL", "tier: REGIONAL\n        team: nlp").stacks
    (finding,) = stacks["prod-vision"].findings

    assert stacks["prod-nlp"].findings == ()
    assert finding.path == "directories.datasets.filestore"
    assert "'datasets' belongs to team nlp" in finding.message


def test_an_instance_has_the_teams_of_its_environment_that_mount_it() -> None:
    workspace = read_workspace(ORGANISATION)

    assert workspace.teams_on("prod", "datasets") == ["nlp", "vision"]
    assert workspace.teams_on("dev", "scratch") == ["vision"]
    assert workspace.teams_on("prod", "homes") == []


def test_a_team_twice_in_one_environment_is_found_in_both_files(copy: Path) -> None:
    workspace = edit(copy, "prod-vision", "name: vision", "name: nlp")

    messages = {
        name: [finding.message for finding in workspace.stacks[name].findings] for name in ("prod-nlp", "prod-vision")
    }
    twin = "'nlp' is also the name of the team at stacks/Pulumi"
    assert messages == {"prod-nlp": [f"{twin}.prod-vision.yaml:5"], "prod-vision": [f"{twin}.prod-nlp.yaml:5"]}


def test_an_unreadable_file_hides_no_other(copy: Path) -> None:
    (copy / "stacks" / "Pulumi.broken.yaml").write_text("a: [", encoding="utf-8")

    workspace = read_workspace(copy)

    assert len(workspace.stacks) == 5
    assert len(workspace.unreadable) == 1


def test_a_rejected_environment_is_reported_once_and_not_by_its_teams(copy: Path) -> None:
    workspace = edit(copy, "prod", "capacity: spot", "capacity: sport")

    assert workspace.stacks["prod"].findings
    assert not workspace.stacks["prod-nlp"].findings
    assert workspace.unknown_stacks == {"prod", "prod-nlp", "prod-vision"}


@pytest.mark.parametrize(
    "name", ["default", "kube-system", "gmp-system", "kueue-system", "gke-managed-system", "wandb-nlp"]
)
def test_a_team_is_not_called_as_a_namespace_of_the_cluster(copy: Path, name: str) -> None:
    (finding,) = edit(copy, "prod-nlp", "name: nlp", f"name: {name}").stacks["prod-nlp"].findings

    assert finding.path == "name"
    assert "is a namespace that the cluster's own software uses" in finding.message
    assert "kueue-system" in str(finding.allowed)
    assert "kube-..." in str(finding.allowed)
    assert finding.nearest == f"team-{name}"


def test_a_name_that_only_begins_alike_is_a_team_s(copy: Path) -> None:
    (finding,) = edit(copy, "prod-nlp", "name: nlp", "name: kubernetes").stacks["prod-nlp"].findings

    assert (finding.message, finding.nearest) == ("is 'kubernetes', but the file's name contains nlp", "nlp")


def test_two_environments_of_one_project_have_no_team_of_one_name(copy: Path) -> None:
    assert not read_workspace(copy).stacks["prod-vision"].findings  # dev has a team vision, in a project of its own

    workspace = edit(copy, "dev", "project: example-train-dev", "project: example-train-prod")

    assert not workspace.stacks["dev-vision"].findings
    (finding,) = workspace.stacks["prod-vision"].findings
    assert (finding.path, finding.nearest) == ("name", "vision-prod")
    assert "stack dev-vision also has a team 'vision' in project example-train-prod" in finding.message


@pytest.mark.parametrize(
    ("path", "teams", "expected"),
    [
        ("nlp", "", ["directories.corpora"]),
        ("nlp/corpus", "teams: [nlp, vision], ", ["directories.corpora"]),
        ("nlp/corpus", "teams: [nlp], ", []),
        ("nlp-corpus", "", []),
        ("corpus/nlp", "", []),
    ],
)
def test_a_data_set_of_others_is_in_no_teams_folder(copy: Path, path: str, teams: str, expected: list[str]) -> None:
    section = f"data_sets: {{d: {{{teams}filestore: {{instance: datasets, path: {path}}}}}}}\n    clusters:\n"

    findings = edit(copy, "prod", "clusters:\n", section).stacks["prod-nlp"].findings

    assert [finding.path for finding in findings] == expected
    assert all("links" in finding.message for finding in findings)


LUSTRE = """private_services_range: 10.200.0.0/20
    lustre: {scratch: {location: us-central1-a, capacity_gib: 9000}}
    data_sets: {d: {lustre: {instance: scratch}}}
    clusters:
"""


def test_a_data_set_is_on_managed_lustre_of_its_environment_or_says_all_of_another(copy: Path) -> None:
    assert edit(copy, "prod", "clusters:\n", LUSTRE).stacks["prod"].findings == ()

    (finding,) = edit(copy, "prod", "instance: scratch}", "instance: scrach}").stacks["prod"].findings
    assert (finding.path, finding.nearest) == ("data_sets.d.lustre.instance", "scratch")
    (finding,) = edit(copy, "prod", "instance: scrach}", "instance: o, filesystem: f}").stacks["prod"].findings
    assert finding.path == "data_sets.d.lustre"
    assert "location and address" in finding.message


def test_a_team_s_data_set_of_a_name_that_its_environment_uses_is_found(copy: Path) -> None:
    team_set = "data_sets: {d: {bucket: {name: example-own, location: us-central1}}}\n    vertex:\n"
    assert not edit(copy, "prod-vision", "vertex:\n", team_set).stacks["prod-vision"].findings
    section = "data_sets: {d: {filestore: {instance: datasets, path: a}}}\n    clusters:\n"
    (finding,) = edit(copy, "prod", "clusters:\n", section).stacks["prod-vision"].findings

    assert (finding.path, finding.message) == ("data_sets.d", "is also the name of a data set of prod")


TUNING = "        tuning:\n          network_attachment: environment\n"


def test_an_attachment_that_the_environment_does_not_have_is_found(copy: Path) -> None:
    (finding,) = edit(copy, "prod-vision", "        tuning:\n", TUNING).stacks["prod-vision"].findings
    assert finding.path == "vertex.persistent_resources.tuning.network_attachment"
    assert finding.message == "prod has no network attachment in us-central1"

    section = "network_attachments: {us-central1: 10.30.0.0/24}\n    clusters:\n"
    assert not edit(copy, "prod", "clusters:\n", section).stacks["prod-vision"].findings
    apart = edit(copy, "prod-vision", "name: vision\n", "name: vision\n    project: example-vision\n")
    (finding,) = apart.stacks["prod-vision"].findings
    assert "agent of example-vision has no role" in finding.message


def test_a_data_set_of_everybody_on_an_instance_of_one_team_is_found(copy: Path) -> None:
    edit(copy, "prod", "tier: REGIONAL", "tier: REGIONAL\n        team: nlp")
    section = "data_sets: {d: {filestore: {instance: datasets, path: a}}}\n    clusters:\n"
    (finding,) = edit(copy, "prod", "clusters:\n", section).stacks["prod"].findings

    assert (finding.path, finding.nearest) == ("data_sets.d.teams", "[nlp]")


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ({}, []),  # a rule on the stack's plan compares what the stack creates
        ({"name": "train"}, ["10.10.0.0/20 overlaps 10.10.4.0/24, network_attachments.us-central1 of lab"]),
    ],
)
def test_an_attachment_is_apart_from_the_existing_subnets_of_its_own_stack(
    name: dict[str, str], messages: list[str]
) -> None:
    clusters = {"main": stack_files.cluster(subnet={**stack_files.RANGES, **name})}
    networks = {"network": {"name": "vpc"}, "network_attachments": {"us-central1": "10.10.4.0/24"}}
    lab = workspace_of({"lab": {"environment": stack_files.environment(clusters, **networks)}}).stacks["lab"]

    assert [finding.message for finding in lab.findings] == messages


def test_a_bucket_that_names_a_team_without_a_file_is_found(copy: Path) -> None:
    readers = "      pretraining:\n        readers: [vision, visoin]\n"

    (finding,) = located(unknown_teams(edit(copy, "prod-nlp", "      pretraining:\n", readers)))

    assert (finding.path, finding.nearest) == ("buckets.pretraining.readers[1]", "vision")


COHORTS = "    project: example-train-prod\n    cohorts:\n"


def in_cohorts(copy: Path, text: str) -> Workspace:
    cohorts = "".join(f"      {line}\n" for line in text.splitlines())
    return edit(copy, "prod", "    project: example-train-prod\n", COHORTS + cohorts)


def test_a_cohort_within_itself_is_found_at_its_parent(copy: Path) -> None:
    findings = in_cohorts(copy, "a: {parent: b}\nb: {parent: c}\nc: {parent: b}").stacks["prod"].findings

    assert [finding.path for finding in findings] == ["cohorts.b.parent", "cohorts.c.parent"]
    assert "b in c in b" in findings[0].message
    assert findings[0].position
    assert (findings[0].position.line, findings[0].nearest) == (8, "training-platform")


@pytest.mark.parametrize(
    ("text", "path", "nearest"),
    [
        ("a: {parent: bb}\nb: {}", "cohorts.a.parent", "b"),
        ("training-platform: {parent: b}\nb: {}", "cohorts.training-platform.parent", None),
        ("a: {shares: {us-central: {h100: {nominal_quota: 8}}}}", "cohorts.a.shares.us-central", "us-central1"),
        (
            "a: {shares: {us-central1: {a100: {nominal_quota: 8}}}}",
            "cohorts.a.shares.us-central1.a100",
            "a100-40",  # the flavor of pool a100
        ),
    ],
)
def test_a_cohort_that_refers_to_something_unknown_is_found(
    copy: Path, text: str, path: str, nearest: str | None
) -> None:
    (finding,) = in_cohorts(copy, text).stacks["prod"].findings

    assert (finding.path, finding.nearest) == (path, nearest)


@pytest.mark.parametrize(
    ("text", "path", "nearest"),
    [
        ("cohort: reserch", "cohort", "research"),
        ("hold: {us-west5: Hold}", "hold.us-west5", "us-west4"),
        ("wandb_launch: {us-west5: {entity: a, queues: [b]}}", "wandb_launch.us-west5", "us-west4"),
        ("preemption: {borrow_within_cohort: LowerPriority}", "preemption.borrow_within_cohort", "Never"),
    ],
)
def test_a_queue_that_kueue_would_serve_differently_is_found(copy: Path, text: str, path: str, nearest: str) -> None:
    in_cohorts(copy, "research: {}")
    (finding,) = edit(copy, "prod-nlp", "    name: nlp\n", f"    name: nlp\n    {text}\n").stacks["prod-nlp"].findings

    assert finding.position
    assert (finding.path, finding.position.line, finding.nearest) == (path, 6, nearest)


@pytest.mark.parametrize(
    ("cluster", "allowed", "nearest"),
    [
        ("us-west4", "tpu-v5e-2x4, tpu-v5e-4x8-reservation", "tpu-v5e-4x8-reservation"),
        ("us-east1", "none in us-east1", None),
    ],
)
def test_an_order_with_a_flavor_that_the_team_has_no_share_of_names_those_of_its_cluster(
    copy: Path, cluster: str, allowed: str, nearest: str | None
) -> None:
    order = f"    name: nlp\n    fallback: {{order: {{{cluster}: [tpu-v5e-4x8-reserved]}}}}\n"
    (finding,) = edit(copy, "prod-nlp", "    name: nlp\n", order).stacks["prod-nlp"].findings

    assert (finding.path, finding.allowed) == (f"fallback.order.{cluster}[0]", allowed)
    assert finding.nearest == nearest


def test_borrowing_in_the_place_of_others_goes_without_fair_sharing(copy: Path) -> None:
    edit(
        copy, "prod", "    project: example-train-prod\n", "    project: example-train-prod\n    fair_sharing: false\n"
    )
    text = "    name: nlp\n    preemption: {borrow_within_cohort: LowerPriority}\n"

    assert edit(copy, "prod-nlp", "    name: nlp\n", text).stacks["prod-nlp"].findings == ()


def test_a_host_that_a_cluster_cannot_hold_pods_to_is_found_at_its_line(copy: Path) -> None:
    opened = "    egress: [{cidr: 203.0.113.0/24}, {host: api.example.com}]\n    directories:"
    (finding,) = edit(copy, "prod-nlp", "    directories:", opened).stacks["prod-nlp"].findings

    assert finding.path == "egress[1].host"
    assert "fqdn_policies in clusters us-central1, us-central2, us-west4 of prod" in finding.message
    for cluster in ("us-central1", "us-central2", "us-west4"):
        edit(copy, "prod", f"      {cluster}:\n", f"      {cluster}:\n        fqdn_policies: true\n")
    assert read_workspace(copy).stacks["prod-nlp"].findings == ()


@pytest.mark.parametrize(
    ("destination", "let_through"),
    [
        ("{cidr: 10.22.33.0/26, ports: [2049]}", False),
        ("{cidr: 10.22.33.7/32, ports: [443, 2049], protocol: UDP}", False),
        ("{cidr: 0.0.0.0/0, ports: [2049]}", False),
        ("{cidr: 10.0.0.0/8, ports: [443]}", True),
        ("{cidr: 10.22.34.0/24, ports: [2049]}", True),
        ("{cidr: 203.0.113.0/24, ports: [2049]}", True),
    ],
)
@pytest.mark.parametrize("stack", ["prod", "prod-nlp"])
def test_no_destination_opens_an_instance_whose_files_root_in_a_pod_would_read(
    copy: Path, destination: str, stack: str, let_through: bool
) -> None:
    before = "    directories:" if stack == "prod-nlp" else "    filestore:"
    findings = edit(copy, stack, before, f"    egress: [{destination}]\n{before}").stacks[stack].findings

    assert [(finding.path, "opens port 2049, NFS" in finding.message) for finding in findings] == (
        [] if let_through else [("egress[0]", True)]
    )


@pytest.mark.parametrize(
    ("destination", "let_through"),
    [
        ("{cidr: 10.22.0.0/20, ports: [10250]}", False),
        ("{cidr: 10.22.0.7/32, ports: [443, 10255]}", False),
        ("{cidr: 10.22.0.0/20, ports: [10250], protocol: UDP}", True),
        ("{cidr: 10.22.0.0/20, ports: [10251]}", True),
        ("{cidr: 10.23.0.0/20, ports: [10250]}", True),
    ],
)
@pytest.mark.parametrize("stack", ["prod", "prod-nlp"])
def test_no_destination_opens_the_kubelets_of_nodes(
    copy: Path, destination: str, stack: str, let_through: bool
) -> None:
    before = "    directories:" if stack == "prod-nlp" else "    filestore:"
    findings = edit(copy, stack, before, f"    egress: [{destination}]\n{before}").stacks[stack].findings

    assert [(finding.path, "of the nodes of us-central1" in finding.message) for finding in findings] == (
        [] if let_through else [("egress[0]", True)]
    )


def test_an_instance_without_a_range_may_have_any_private_address(copy: Path) -> None:
    edit(copy, "prod", "        reserved_range: 10.22.33.0/26\n", "")
    opened = "    egress: [{cidr: 172.16.5.0/24, ports: [2049]}]\n    filestore:"
    (finding,) = edit(copy, "prod", "    filestore:", opened).stacks["prod"].findings

    assert "instance datasets may have" in finding.message


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ("egress: [{host: api.example.com}]", "egress[0].host", "needs fqdn_policies in clusters us-central1"),
        ("google_apis: public", "google_apis", "could not reach Google's APIs"),
        ("egress: [{ports: [443]}]", "egress[0]", "has neither cidr nor host"),
        ("egress: [{cidr: 10.0.0.0/8, host: a.example.com}]", "egress[0]", "has both cidr and host"),
        ("egress: [{host: api_one}]", "egress[0].host", "'api_one'"),
        ("egress: [{cidr: 203.0.113.1/24}]", "egress[0].cidr", "bits set to the right"),
        ("egress: [{cidr: 203.0.113.0/24, ports: [70000]}]", "egress[0].ports[0]", "70000"),
    ],
)
def test_an_egress_rule_that_cannot_be_enforced_is_found_at_its_line(
    copy: Path, fields: str, path: str, message: str
) -> None:
    (finding,) = edit(copy, "dev", "    project:", f"    {fields}\n    project:").stacks["dev"].findings

    assert (finding.path, finding.severity) == (path, "error")
    assert message in finding.message


@pytest.mark.parametrize(
    ("fields", "paths", "places"),
    [
        ("python_repository: us", ["python_repository"], ["us"]),
        (
            "images: {location: us, caches: [asia], remotes: {hub: 'https://r.example.com'}}",
            ["images.remotes"],
            ["us", "asia"],
        ),
        ("images: {location: us, caches: [asia]}", [], []),
    ],
)
def test_a_repository_that_reads_the_internet_is_found_behind_a_perimeter(
    copy: Path, fields: str, paths: list[str], places: list[str]
) -> None:
    edit(copy, "dev", "    images:\n      location: us\n", f"    {fields}\n")
    assert edit(copy, "dev", "    project:", "    google_apis: private\n    project:").stacks["dev"].findings == ()

    findings = edit(copy, "dev", "google_apis: private", "google_apis: restricted").stacks["dev"].findings

    assert [(row.rule, row.severity, row.path) for row in findings] == [
        ("repository-perimeter", "warning", path) for path in paths
    ]
    assert all(place in row.message for row in findings for place in places)


@pytest.mark.parametrize(("stack", "warnings"), [("prod", 1), ("dev", 0)], ids=["two teams", "one team"])
def test_checkpoints_of_several_teams_are_not_backed_up_as_one_identity(copy: Path, stack: str, warnings: int) -> None:
    addon = "{addons_config: {high_scale_checkpointing_config: {enabled: true}}}"
    cluster = "      us-central1:\n"

    findings = edit(copy, stack, cluster, f"{cluster}        provider_inputs: {addon}\n").stacks[stack].findings

    assert [(row.rule, row.severity) for row in findings] == [("checkpoints-shared", "warning")] * warnings
    assert all("teams nlp, vision" in row.message for row in findings)


def test_public_addresses_go_with_open_egress(copy: Path) -> None:
    fields = "    google_apis: public\n    open_egress: true\n    project:"

    assert edit(copy, "dev", "    project:", fields).stacks["dev"].findings == ()


Json = dict[str, Any]
TPU = "tpu-v5e-2x4-reservation"
GPU = "h100-reservation"
POOLS: Json = {
    "h100": {"machine_type": "a3-highgpu-8g", "capacity": "reservation", "reservation": "h100", "max_nodes": 8},
    "v5e": {"machine_type": "ct5lp-hightpu-4t", "topology": "2x4", "slices": 4, "capacity": "reservation",
            "reservation": "v5e"},
}  # fmt: skip


def files(teams: Json, **environment: Any) -> Json:
    lab = {"clusters": {"c": stack_files.cluster(node_pools=POOLS)}, **environment}
    sections: Json = {"lab": {"environment": stack_files.environment(**lab)}}
    for name, shares in teams.items():
        quotas = {flavor: {"nominal_quota": quota} for flavor, quota in shares.items()}
        sections[f"lab-{name}"] = {"team": stack_files.team("lab", name, shares={"c": quotas})}
    return sections


def workspace(teams: Json, **environment: Any) -> Workspace:
    return workspace_of(files(teams, **environment))


def root_quotas(environment: Environment) -> dict[str, int]:
    shares = environment.cohorts[ROOT_COHORT].shares.get("c", {})
    return {flavor: share.nominal_quota for flavor, share in shares.items()}


def test_an_environment_does_not_end_before_its_own_teams() -> None:
    def findings(home: str, **team: Any) -> list[str]:
        end = {"retired": {"since": "2026-11-21"}}
        stacks = {
            "lab": {"environment": stack_files.environment(**end)},
            "other": {"environment": stack_files.environment(project="example-other")},
            "lab-vision": {"team": stack_files.team(home, **team)},
        }
        return [finding.message for finding in workspace_of(stacks).stacks["lab"].findings]

    assert findings("lab") == ["retires the environment, but lab-vision in it is not retired"]
    assert findings("lab", retired={"since": "2026-11-21"}) == []
    assert findings("other") == []


def test_two_names_that_read_alike_are_found_with_the_other_place() -> None:
    gpu = {"machine_type": "a3-highgpu-8g"}
    clusters = {"a": stack_files.cluster(node_pools={"b-c": gpu}), "a-b": stack_files.cluster(node_pools={"c": gpu})}
    clusters["a-b"]["subnet"] = {"nodes": "10.11.0.0/20", "pods": "10.72.0.0/14", "services": "10.11.16.0/20"}

    (finding,) = workspace_of({"lab": {"environment": stack_files.environment(clusters)}}).stacks["lab"].findings

    assert finding.path == "clusters.a-b.node_pools.c"
    assert finding.message == "would be called 'a-b-c', as would clusters.a.node_pools.b-c"


def test_a_copy_with_other_stacks_derives_flavors_from_them() -> None:
    with_gpus = workspace({"vision": {GPU: 8}})
    assert GPU in with_gpus.flavors("lab", "c")
    lab = files({})["lab"]["environment"]
    without_pools = workspace({}, clusters={"c": {**lab["clusters"]["c"], "node_pools": {}}})

    copied = dataclasses.replace(with_gpus, stacks=without_pools.stacks)

    assert copied.flavors("lab", "c") == {}
    assert GPU in with_gpus.flavors("lab", "c")


def test_unpromised_capacity_is_counted_in_whole_slices() -> None:
    cohorts = {"research": {"shares": {"c": {GPU: {"nominal_quota": 8}}}}}
    lab_workspace = workspace({"vision": {GPU: 24, TPU: 10}, "nlp": {GPU: 16}}, cohorts=cohorts)

    # 64 GPUs less 24, 16 and 8; 32 chips less 10 are 22, of which two slices of 8 are whole.
    amounts = {GPU: 64 - 24 - 16 - 8, TPU: 16}
    assert unpromised(lab_workspace, "lab") == {"c": amounts}
    assert {line.flavor.name: line.unpromised for line in capacity_ledger(lab_workspace)} == amounts


@pytest.mark.parametrize("promised", [64, 72])
def test_nothing_is_left_if_everything_was_promised(promised: int) -> None:
    lab_workspace = workspace({"vision": {GPU: promised, TPU: 32}})

    assert unpromised(lab_workspace, "lab") == {}
    assert {line.unpromised for line in capacity_ledger(lab_workspace)} == {0}


def test_lend_unpromised_gives_it_to_the_root_cohort_beside_its_own_quota() -> None:
    cohorts = {ROOT_COHORT: {"weight": 3, "shares": {"c": {GPU: {"nominal_quota": 8, "lending_limit": 8}}}}}
    environment = lending(workspace({"vision": {GPU: 24, TPU: 32}}, lend_unpromised=True, cohorts=cohorts), "lab")

    assert root_quotas(environment) == {GPU: 64 - 24}
    assert environment.cohorts[ROOT_COHORT].weight == 3


def test_without_the_switch_the_environment_stays_as_its_file_says() -> None:
    lab_workspace = workspace({"vision": {GPU: 24}})

    assert lending(lab_workspace, "lab") is lab_workspace.stacks["lab"].environment


def test_the_cohort_is_planned_with_it_and_its_findings_land_on_the_switch() -> None:
    lab_workspace = workspace({"vision": {GPU: 24, TPU: 32}}, lend_unpromised=True)
    cohort = planned_stack(lab_workspace.stacks["lab"], lab_workspace).one(COHORT)

    (group,) = cohort.inputs["spec"]["resourceGroups"]
    assert group["flavors"] == [{"name": GPU, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "40"}]}]
    assert Locator(lab_workspace.stacks["lab"].section).path(cohort.name) == ("lend_unpromised",)  # type: ignore[arg-type]
    idle = workspace({"vision": {GPU: 24, TPU: 32}})
    assert planned_stack(idle.stacks["lab"], idle).of(COHORT) == []


@pytest.mark.parametrize("lends", [True, False])
def test_the_ledger_says_whether_it_is_lent_or_idle(lends: bool) -> None:
    lab_workspace = workspace({"vision": {GPU: 24}, "nlp": {GPU: 0}}, lend_unpromised=lends)
    (line,) = [row for row in capacity_ledger(lab_workspace) if row.flavor.name == GPU]
    nlp = next(share for share in line.shares if share.holder.label == "nlp")

    assert (line.unpromised, line.lent) == (40, 40 if lends else 0)
    assert may_borrow(line, nlp, lab_workspace) == 24 + (40 if lends else 0)
    assert line.headroom == 40  # what is lent can still be promised


def test_a_changed_team_changes_the_environment_that_lends_and_no_other() -> None:
    changed = ["stacks/Pulumi.lab-vision.yaml"]
    before, after = ({"vision": {GPU: quota}} for quota in (24, 16))
    lends = affected(changed, workspace(after, lend_unpromised=True), workspace(before, lend_unpromised=True))
    idle = affected(changed, workspace(after), workspace(before))

    assert lends.head == lends.base == ("lab", "lab-vision")
    assert idle.head == ("lab-vision",)


@pytest.mark.parametrize(("lends", "planned"), [(True, []), (False, ["lab", "lab-nlp"])])
def test_unpromised_capacity_is_unknown_with_a_rejected_team(lends: bool, planned: list[str]) -> None:
    lab_workspace = workspace({"vision": {GPU: -1}, "nlp": {GPU: 8}}, lend_unpromised=lends)

    assert [stack.name for stack in plannable(lab_workspace, lab_workspace.stacks)] == planned


@pytest.fixture
def organisation(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes stack files beside the repository's program, and returns the folder."""

    def write(teams: Json, **environment: Any) -> Path:
        (tmp_path / "stacks").mkdir(exist_ok=True)
        shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
        for name, sections in files(teams, **environment).items():
            (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(text_of(sections), encoding="utf-8")
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("lends", "message"), [(True, "40 GPUs lent to all, 32 chips lent to all"), (False, "40 GPUs, 32 chips")]
)
def test_every_report_says_whether_it_is_lent_or_idle(
    organisation: Callable[..., Path], lends: bool, message: str
) -> None:
    root = organisation({"vision": {GPU: 24, TPU: 0}}, lend_unpromised=lends)
    report = check_stacks(root, None, CheckOptions(today=date(2026, 11, 22))).report
    console = Console(record=True, width=200)
    console.print(*summary(report, 200))

    # 40 GPUs, and 32 chips of TPUs.
    assert f"; unassigned: {message}\n" in console.export_text()
    (gpus,) = [line for line in report.capacity if line.flavor.name == GPU]
    assert shares_of(gpus) == f"vision 24, {'lent to all' if lends else 'idle'} 40"
    document = next(line for line in json.loads(json_report(report))["capacity"] if line["flavor"] == GPU)
    assert (document["unpromised"], document["lent"]) == (40, 40 if lends else 0)
    shown = Console(record=True, width=200)
    print_overview(read_overview(root, date(2026, 11, 22)), "project", shown)
    assert re.search(rf"{'lent to all' if lends else 'idle'} +{40 if lends else 0} +40\n", shown.export_text())
