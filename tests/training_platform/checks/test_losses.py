"""A loss is reported at the line that causes it, with a first step, until somebody acknowledges it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from tests.training_platform.checks.losses import BUCKET, CAPACITY, SPOT, TEAM_HEAD, committed, losses
from tests.training_platform.checks.repository import Repository, signed
from training_platform.checks.comparison import changed_fields
from training_platform.cli.main import app
from training_platform.config.reading.finding import Finding, UserError
from training_platform.rules.descriptions import acknowledgement

LIFT = "            deletion_protection: false\n"
HEAD = "    project: example-small\n"


def losses_of_change(repository: Repository, stack: str = "small") -> list[Finding]:
    return losses(repository.compare(selected=(stack,)))


@pytest.mark.parametrize(
    ("stack", "edit", "field", "first"),
    [
        ("small", (CAPACITY, SPOT), "clusters.c.node_pools.gpu.capacity", "hold the queues"),
        ("small", ("gy: 4x4", "gy: 4x8"), "clusters.c.node_pools.tpu.topology", "hold the queues"),
        ("small", ("gib: 1024", "gib: 1024, tier: BASIC_HDD"), "filestore.homes.tier", "take a backup"),
        (
            "small-vision",
            ("a2-highgpu-1g", "a2-highgpu-2g"),
            "vertex.persistent_resources.tuning.machine_type",
            "let its jobs end",
        ),
    ],
    ids=["pool", "topology", "filestore", "persistent-resource"],
)
def test_a_replacement_loses_the_resource_at_the_field_that_forces_it(
    repository: Repository, stack: str, edit: tuple[str, str], field: str, first: str
) -> None:
    line = repository.edit(stack, *edit)
    rule = "loses-data" if field.startswith("filestore") else "stops-jobs"

    (finding,) = [finding for finding in losses_of_change(repository, stack) if finding.rule == rule]

    assert (finding.severity, finding.path) == ("error", field)
    assert finding.position is not None
    assert finding.position.line == line
    assert (finding.first or "").startswith(first)
    assert "deletion_protection: false" in (finding.first or "")


def test_another_machine_type_replaces_a_pool_although_the_provider_would_only_recreate_its_vms(
    repository: Repository,
) -> None:
    committed(repository, "small", "topology: 4x4", "topology: 2x2")  # of one host, so that the pool keeps its name
    repository.edit("small", "topology: 2x2", "topology: 2x4")
    line = repository.edit("small", "ct5lp-hightpu-4t", "ct5lp-hightpu-8t")

    (finding,) = losses_of_change(repository)

    assert (finding.rule, finding.severity, finding.becomes) == ("stops-jobs", "error", "ct5lp-hightpu-8t")
    assert finding.path == "clusters.c.node_pools.tpu.machine_type"
    assert finding.position is not None
    assert finding.position.line == line


def test_another_topology_replaces_slices_whose_placement_is_not_sent(repository: Repository) -> None:
    committed(
        repository,
        "small",
        "ct5lp-hightpu-4t\n            topology: 4x4",
        "tpu7x-standard-4t\n            topology: 2x2x2",
    )
    line = repository.edit("small", "topology: 2x2x2", "topology: 2x2x4")

    (finding,) = losses_of_change(repository)

    assert (finding.rule, finding.path) == ("stops-jobs", "clusters.c.node_pools.tpu.topology")
    assert "node pool tpu in c of small (2, each " in finding.message
    assert "topology from 2x2x2 to 2x2x4" in finding.message
    assert finding.position is not None
    assert finding.position.line == line


def test_a_larger_boot_disk_stops_jobs_though_the_pool_stays(repository: Repository) -> None:
    repository.edit("small", CAPACITY, "            boot_disk: {size_gb: 300}\n" + CAPACITY)

    (finding,) = losses_of_change(repository)

    assert (finding.rule, finding.path) == ("stops-jobs", "clusters.c.node_pools.gpu.boot_disk")
    assert "GKE recreates the VMs of the pool, one after another" in finding.message
    assert finding.position is not None
    lines = repository.path("small").read_text().splitlines()
    assert lines[finding.position.line - 1].strip() == "boot_disk: {size_gb: 300}"


def test_one_line_that_replaces_a_cluster_with_its_pools_is_one_finding(repository: Repository) -> None:
    repository.edit("small", "nodes: 10.0.0.0/20", "nodes: 10.2.0.0/20")

    (finding,) = losses_of_change(repository)

    assert (finding.rule, finding.path) == ("stops-jobs", "clusters.c.subnet.nodes")
    assert finding.message.startswith(
        "stops jobs: cluster c of small, node pool gpu in c of small (2 VMs of a2-highgpu-8g"
    )
    assert "nodes from 10.0.0.0/20 to 10.2.0.0/20" in finding.message


def test_an_environment_under_another_name_says_what_its_name_replaces(repository: Repository) -> None:
    repository.rename("small", "tiny")
    repository.edit("small-vision", "environment: small", "environment: tiny")

    (finding,) = losses_of_change(repository, "tiny")

    assert (finding.path, finding.file, finding.becomes) == ("renamed_from", "stacks/Pulumi.tiny.yaml", "small")
    assert finding.takes == (("tiny", ("data", "jobs")),)
    assert "loses data: Filestore instance homes of tiny" in finding.message
    assert "stops jobs: cluster c of tiny" in finding.message


def test_a_change_that_takes_nothing_is_no_finding(repository: Repository) -> None:
    repository.edit("small", "max_nodes: 2", "max_nodes: 3")
    repository.edit("small", "capacity_gib: 1024", "capacity_gib: 1280")

    assert losses_of_change(repository) == []


def test_a_loss_whose_protection_is_lifted_by_name_is_a_warning_and_no_other(repository: Repository) -> None:
    repository.edit("small", CAPACITY, SPOT + LIFT)
    repository.edit("small", "topology: 4x4", "topology: 4x8")

    severities = {finding.path: finding.severity for finding in losses_of_change(repository)}

    assert severities == {
        "clusters.c.node_pools.gpu.capacity": "warning",
        "clusters.c.node_pools.tpu.topology": "error",
    }


def test_in_an_environment_without_protection_a_loss_is_a_warning(repository: Repository) -> None:
    committed(repository, "small", HEAD, f"{HEAD}    deletion_protection: false\n")
    repository.edit("small", CAPACITY, SPOT)

    (finding,) = losses_of_change(repository)

    assert (finding.rule, finding.severity) == ("stops-jobs", "warning")
    assert "engine refuses" not in (finding.first or "")


def test_protection_that_is_lifted_and_not_needed_is_a_loss_of_its_own(repository: Repository) -> None:
    repository.edit("small", CAPACITY, CAPACITY + LIFT)

    (finding,) = losses_of_change(repository)

    assert (finding.rule, finding.severity) == ("lifts-protection", "warning")
    assert finding.path == "clusters.c.node_pools.gpu.deletion_protection"


def test_a_lifted_protection_that_is_no_longer_needed_warns_at_its_line(repository: Repository) -> None:
    line = repository.edit("small", CAPACITY, SPOT + LIFT)
    repository.commit()
    repository.git("branch", "--force", "main", "HEAD")
    repository.edit("small", "max_nodes: 2", "max_nodes: 3")

    report = repository.compare(selected=("small",))

    (finding,) = [finding for finding in report.all_findings() if finding.rule == "protection-left-off"]
    assert (finding.severity, finding.path) == ("warning", "clusters.c.node_pools.gpu.deletion_protection")
    assert finding.position is not None
    assert finding.position.line == line


def test_a_removal_says_that_the_engine_refuses_what_is_protected(repository: Repository) -> None:
    repository.edit("small", "slices: 2", "slices: 1")

    (finding,) = [finding for finding in losses_of_change(repository) if finding.rule == "stops-jobs"]

    assert finding.path == "clusters.c.node_pools.tpu.slices"
    assert "deploy `deletion_protection: false` in clusters.c.node_pools.tpu before" in (finding.first or "")


def test_a_file_that_goes_leaves_its_stack_deployed(repository: Repository) -> None:
    repository.path("small-vision").unlink()

    report = repository.compare()
    (finding,) = losses(report)

    assert (finding.rule, finding.severity, finding.file) == (
        "leaves-stack",
        "error",
        "stacks/Pulumi.small-vision.yaml",
    )
    assert "its queues still have 8 a100-40" in finding.message
    assert report.comparison is not None
    assert report.comparison.capacity == ()  # nothing is freed
    assert [stack.most_usd.delta for stack in report.comparison.stacks if stack.kind == "left"] == [0.0]


def test_a_stack_that_ended_may_lose_its_file_and_not_before_its_day(repository: Repository) -> None:
    committed(repository, "small-vision", TEAM_HEAD, f'{TEAM_HEAD}    retired: {{since: "2026-11-20"}}\n')
    repository.path("small-vision").unlink()
    assert losses(repository.compare(base="HEAD")) == []

    repository.git("checkout", "--quiet", "HEAD", "--", ".")
    repository.edit("small-vision", "2026-11-20", "2026-11-22")
    repository.commit()
    repository.path("small-vision").unlink()
    (finding,) = losses(repository.compare(base="HEAD"))
    assert finding.rule == "leaves-stack"
    assert (finding.first or "").startswith("keep the file: from 2026-11-22 on")


def test_pools_that_shrink_below_what_is_promised_are_at_fault_and_not_the_share(repository: Repository) -> None:
    committed(repository, "small-vision", "nominal_quota: 8", "nominal_quota: 16")
    line = repository.edit("small", "max_nodes: 2", "max_nodes: 1")

    report = repository.compare(base="HEAD")
    (finding,) = losses(report)

    assert (finding.rule, finding.path) == ("takes-promise", "clusters.c.node_pools.gpu.max_nodes")
    assert finding.position is not None
    assert finding.position.line == line
    assert "its pools shrink from 16 to 8, but teams are promised 16" in finding.message
    (share,) = [finding for finding in report.all_findings() if finding.rule == "capacity-exceeded"]
    assert share.follows == finding.place


def test_a_cost_above_the_threshold_of_prices_is_a_finding(repository: Repository) -> None:
    prices = repository.root / "stacks" / "prices.yaml"
    prices.write_text('read: "2026-11-01"\nmost_more_per_hour: 1000\n', encoding="utf-8")
    repository.commit()
    repository.edit("small", "max_nodes: 2", "max_nodes: 3")
    assert losses(repository.compare(base="HEAD")) == []

    prices.write_text('read: "2026-11-01"\nmost_more_per_hour: 1\n', encoding="utf-8")
    (finding,) = losses(repository.compare(base="HEAD"))

    assert (finding.rule, finding.severity, finding.stack) == ("costs-more", "warning", "small")
    assert "stacks/prices.yaml, here or in HEAD, allows $1.00 more" in finding.message


def test_a_change_that_raises_the_threshold_is_held_to_the_old_one(repository: Repository) -> None:
    prices = repository.root / "stacks" / "prices.yaml"
    prices.write_text('read: "2026-11-01"\nmost_more_per_hour: 1\n', encoding="utf-8")
    repository.commit()
    repository.edit("small", "max_nodes: 2", "max_nodes: 3")

    for head in ('read: "2026-11-01"\nmost_more_per_hour: 1000\n', 'read: "2026-11-01"\n'):
        prices.write_text(head, encoding="utf-8")
        (finding,) = losses(repository.compare(base="HEAD"))
        assert finding.rule == "costs-more"


def test_less_storage_to_claim_is_a_loss_of_the_team(repository: Repository) -> None:
    storage = "        storage_classes: {files: {teams: {vision: 2048}}}\n"
    place = "        location: us-central1-a\n        subnet"
    committed(repository, "small", place, place.replace("        subnet", f"{storage}        subnet"))

    repository.edit("small", "vision: 2048", "vision: 1024")
    (less,) = losses(repository.compare(base="HEAD"))
    repository.edit("small", storage.replace("2048", "1024"), "")
    (none,) = losses(repository.compare(base="HEAD"))

    path = "clusters.c.storage_classes"
    assert (less.rule, less.path) == ("takes-promise", f"{path}.files.teams.vision")
    assert (none.rule, none.path) == ("takes-promise", path)
    assert "the team can claim less storage" in less.message
    assert "teams can no longer claim storage of the class" in none.message  # readable: in the sense of no further


def test_a_cohort_under_another_parent_is_a_loss_of_its_teams(repository: Repository) -> None:
    cohorts = "    cohorts: {research: {parent: all}, all: {}}\n"
    committed(repository, "small", HEAD, HEAD + cohorts)
    repository.edit("small", "{parent: all}", "{}")

    (finding,) = losses(repository.compare(base="HEAD"))

    assert (finding.rule, finding.path) == ("takes-promise", "cohorts.research.parent")
    assert "it borrows from different teams" in finding.message


# Acknowledgements.

ENTRY = """\
acknowledged:
  - stack: small-vision
    path: buckets.data.{field}
    becomes: {becomes}
    takes: [{takes}]
    reason: The team copied its data.
    owner: ml-platform@example.com
    expires: "{expires}"
"""


def test_homes_on_another_instance_are_a_loss_although_both_instances_stay(repository: Repository) -> None:
    """The volume's server is known only after a deployment; the plans differ in whose output it is."""
    homes = "      homes: {location: us-central1-a, capacity_gib: 1024}\n"
    small = homes.replace("homes", "small")
    hub = """\
        notebooks:
          filestore: homes
          host: notebooks.example.com
          oauth_client_id: a.apps.example.com
          allowed_domain: example.com
"""
    cluster = "        location: us-central1-a\n"
    repository.edit("small", homes, homes + small)
    committed(repository, "small", cluster, cluster + hub)
    repository.edit("small", "filestore: homes", "filestore: small")

    (loss,) = losses_of_change(repository)

    assert (loss.rule, loss.path) == ("stops-jobs", "clusters.c.notebooks.filestore")
    assert "PersistentVolume notebooks in c of small" in loss.message


def acknowledge(repository: Repository, **fields: str) -> None:
    entry = {"takes": "data", "field": "location", "becomes": "us-west4", "expires": "2026-12-31", **fields}
    (repository.root / "stacks" / "exemptions.yaml").write_text(ENTRY.format(**entry), encoding="utf-8")


@pytest.fixture
def with_bucket(repository: Repository) -> Repository:
    committed(repository, "small-vision", TEAM_HEAD, f"{TEAM_HEAD}{BUCKET}")
    return repository


def test_an_acknowledged_loss_no_longer_counts_and_is_still_the_headline(with_bucket: Repository) -> None:
    with_bucket.edit("small-vision", "data: {location: us-central1", "data: {location: us-west4")
    acknowledge(with_bucket)

    report = with_bucket.compare(base="HEAD")

    assert losses(report) == []
    assert report.comparison is not None
    (act,) = [act for act in report.comparison.acts if act.is_loss]
    assert (
        str(act.acknowledged) == "acknowledged until 2026-12-31 by ml-platform@example.com: The team copied its data."
    )
    assert act.acknowledged in report.all_exempted()


@pytest.mark.parametrize(
    "other",
    [{"becomes": "us-east1"}, {"takes": "jobs"}, {"field": "delete_after_days"}, {"expires": "2026-11-20"}],
)
def test_an_acknowledgement_covers_one_effect_of_one_field_with_one_value_until_its_day(
    with_bucket: Repository, other: dict[str, str]
) -> None:
    with_bucket.edit("small-vision", "data: {location: us-central1", "data: {location: us-west4")
    acknowledge(with_bucket, **other)

    assert [finding.rule for finding in losses(with_bucket.compare(base="HEAD"))] == ["loses-data"]


def test_an_acknowledgement_is_quiet_before_the_change_and_after_it_until_its_day(with_bucket: Repository) -> None:
    def rules(base: str = "HEAD") -> set[str]:
        return {
            finding.rule for finding in with_bucket.compare(base=base).all_findings() if "exemption" in finding.rule
        }

    acknowledge(with_bucket)
    assert rules() == set()
    with_bucket.edit("small-vision", "data: {location: us-central1", "data: {location: us-west4")
    with_bucket.commit()
    assert rules() == set()

    acknowledge(with_bucket, expires="2026-11-20")
    assert rules() == {"exemption-unused"}


def test_an_acknowledgement_may_name_a_stack_that_is_gone(repository: Repository) -> None:
    repository.path("small-vision").unlink()
    (finding,) = losses(repository.compare())
    text = signed(acknowledgement(finding))
    (repository.root / "stacks" / "exemptions.yaml").write_text(text, encoding="utf-8")

    report = repository.compare()

    assert losses(report) == []
    assert not [finding for finding in report.all_findings() if "exemption" in finding.rule]


def test_what_a_finding_prints_as_its_acknowledgement_lets_it_through_once_signed(with_bucket: Repository) -> None:
    with_bucket.edit("small-vision", "delete_after_days: 90", "delete_after_days: 1")
    (finding,) = losses(with_bucket.compare(base="HEAD"))
    unsigned = acknowledgement(finding).replace("YYYY-MM-DD", "2026-12-31")
    (with_bucket.root / "stacks" / "exemptions.yaml").write_text(unsigned, encoding="utf-8")
    blank_reason, blank_owner = with_bucket.compare(base="HEAD").failures
    assert "acknowledged[0].reason: is blank" in blank_reason
    assert "acknowledged[0].owner" in blank_owner

    text = signed(acknowledgement(finding))
    (with_bucket.root / "stacks" / "exemptions.yaml").write_text(text, encoding="utf-8")

    assert losses(with_bucket.compare(base="HEAD")) == []


# What the engine knows.

DATA = "urn:pulumi:small-vision::training-platform::x$gcp:storage/bucket:Bucket::bucket-data-bucket"


def test_a_state_shows_what_git_does_not(with_bucket: Repository, tmp_path: Any) -> None:
    state = {
        "version": 3,
        "deployment": {
            "resources": [
                {
                    "urn": DATA,
                    "type": "gcp:storage/bucket:Bucket",
                    "custom": True,
                    "protect": True,
                    "inputs": {"__defaults": ["name"], "name": "given", "location": "us-east1"},
                }
            ]
        },
    }
    file = tmp_path / "state.json"
    file.write_text(json.dumps(state))

    report = with_bucket.compare(base="HEAD", states=(file,))

    (finding,) = [finding for finding in losses(report) if finding.rule == "loses-data"]
    assert finding.path == "buckets.data"
    assert 'location from "us-east1" to "us-central1"' in finding.message
    assert report.comparison is not None
    assert report.comparison.deployed == ("small-vision",)
    assert "given" not in str(report.comparison.stacks)  # a name that the provider filled in


def test_a_preview_is_judged_by_the_same_table(with_bucket: Repository, tmp_path: Any) -> None:
    kind = "gcp:storage/bucket:Bucket"
    old = {"type": kind, "urn": DATA, "custom": True, "protect": True, "inputs": {"location": "us-central1"}}
    steps = [
        {"op": "same", "urn": DATA.replace("data", "other"), "oldState": old, "newState": old},
        {
            "op": "replace",
            "urn": DATA,
            "oldState": old,
            "newState": {**old, "inputs": {"location": "us-west4"}},
            "replaceReasons": ["location"],
            "detailedDiff": {"location": {"kind": "update-replace"}},
        },
    ]
    file = tmp_path / "preview.json"
    file.write_text(json.dumps({"steps": steps}))
    with_bucket.edit("small-vision", "data: {location: us-central1", "data: {location: us-west4")

    (finding,) = losses(with_bucket.compare(base="HEAD", previews=(file,)))

    assert (finding.rule, finding.path, finding.becomes) == ("loses-data", "buckets.data.location", "us-west4")


STATE = {"urn": DATA, "type": "gcp:storage/bucket:Bucket"}
SECRET = "4dabf18193072939515e22adb298388d"  # the key with which the engine marks special values
TEXTS = [
    "", "[]", "{}", '{"steps": []}', '{"deployment": {"resources": []}}', '{"deployment": null}', "[" * 50_000,
    '{"deployment": {"resources": [1]}}', '{"deployment": {"resources": [{"type": "a"}]}}',
    json.dumps({"deployment": {"resources": [{**STATE, "urn": "prod"}]}}),
    json.dumps({"deployment": {"resources": [{**STATE, "inputs": "secret-of-a-state"}]}}),
    json.dumps({"deployment": {"resources": [{**STATE, "inputs": {SECRET: 1, "ciphertext": "secret-of-a-state"}}]}}),
    json.dumps({"version": 99, "deployment": {"resources": [STATE]}}),
    '{"steps": [1]}', '{"steps": {}}', json.dumps({"steps": [{"op": "same", "urn": DATA, "oldState": 1}]}),
    json.dumps({"steps": [{"op": 1, "urn": DATA, "detailedDiff": [1]}]}),
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_file_that_the_engine_did_not_print_is_refused_in_one_sentence(
    repository: Repository, tmp_path: Any, text: str
) -> None:
    file = tmp_path / "printed.json"
    file.write_text(text)

    with pytest.raises(UserError, match=r"printed\.json is not the output of `pulumi stack export") as of_state:
        repository.compare(states=(file,))
    with pytest.raises(UserError, match=r"printed\.json is not the output of `pulumi preview --json") as of_preview:
        repository.compare(previews=(file,))
    assert "secret-of-a-state" not in f"{of_state.value}{of_preview.value}"


def test_an_interrupted_update_and_two_states_of_a_stack_are_refused(repository: Repository, tmp_path: Any) -> None:
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"version": 3, "deployment": {"resources": [STATE]}}))
    with pytest.raises(UserError, match="--state is given twice for the stack small-vision"):
        repository.compare(states=(file, file))

    file.write_text(json.dumps({"version": 3, "deployment": {"resources": [STATE], "pending_operations": [{}]}}))
    with pytest.raises(UserError, match="pending operations: 1"):
        repository.compare(states=(file,))

    other = {**STATE, "urn": DATA.replace("small-vision", "small")}
    file.write_text(json.dumps({"version": 3, "deployment": {"resources": [STATE, other]}}))
    with pytest.raises(UserError, match="resources of 2 stacks: small, small-vision"):
        repository.compare(states=(file,))


def test_a_stack_that_is_retired_says_what_will_be_destroyed_and_not_what_it_keeps(with_bucket: Repository) -> None:
    kept = "keeps: [buckets.data], paid_by: ml@example.com"
    line = with_bucket.edit("small-vision", TEAM_HEAD, f'{TEAM_HEAD}    retired: {{since: "2026-12-01", {kept}}}\n')

    report = with_bucket.compare(base="HEAD")

    (finding,) = losses(report)
    assert (finding.rule, finding.path, finding.becomes) == ("loses-data", "retired", "2026-12-01, keeps buckets.data")
    assert finding.takes == (("small-vision", ("data", "jobs", "promises", "protection")),)
    assert "persistent resource tuning of small-vision" in finding.message
    assert finding.position is not None
    assert finding.position.line == line
    assert report.comparison is not None
    assert report.comparison.capacity == ()  # its share is given back once its file is removed
    destroyed = {resource.name for stack in report.comparison.stacks for resource in stack.resources}
    assert "bucket-data-bucket" not in destroyed
    assert "bucket-data-storage-objectViewer-group-vision-at-example.com" in destroyed


def test_what_is_kept_stays_with_the_network_that_it_is_in(repository: Repository) -> None:
    repository.edit("small-vision", TEAM_HEAD, f'{TEAM_HEAD}    retired: {{since: "2026-12-01"}}\n')
    kept = "keeps: [filestore.homes], paid_by: ml@example.com"
    repository.edit("small", HEAD, f'{HEAD}    retired: {{since: "2026-12-01", {kept}}}\n')

    comparison = repository.compare(base="HEAD").comparison

    assert comparison is not None
    (environment,) = [stack for stack in comparison.stacks if stack.name == "small"]
    destroyed = {resource.name for resource in environment.resources}
    assert "c-cluster" in destroyed
    assert destroyed.isdisjoint({"network-vpc", "filestore-homes-instance"})


def test_an_environment_does_not_end_while_a_team_of_it_goes_on(repository: Repository) -> None:
    repository.edit("small", HEAD, f'{HEAD}    retired: {{since: "2026-12-01", keeps: [filestore.home]}}\n')

    messages = [str(finding) for finding in repository.compare().all_findings() if finding.rule == "stack-model"]

    assert any("keeps needs paid_by" in message for message in messages)

    repository.edit("small", "keeps: [filestore.home]", "keeps: [filestore.home], paid_by: ml@example.com")
    messages = [
        str(consequence) for consequence in repository.compare().all_findings() if consequence.rule == "stack-model"
    ]
    assert any(
        "retired: retires the environment, but small-vision in it is not retired" in message for message in messages
    )
    assert any("'filestore.home' is not a section of this file" in message for message in messages)
    assert any("Nearest: filestore.homes" in message for message in messages)


def test_a_loss_is_explained_at_its_line_with_the_entry_that_lets_it_through(with_bucket: Repository) -> None:
    line = with_bucket.edit("small-vision", "delete_after_days: 90", "delete_after_days: 1")
    place = f"stacks/Pulumi.small-vision.yaml:{line}"

    done = CliRunner().invoke(app, ["explain", place, "--base", "HEAD", "--root", str(with_bucket.root)])

    assert done.exit_code == 0, done.output
    assert "To fix it: copy the objects that must stay to a bucket without this rule" in done.output
    assert "acknowledged:\n      - stack: small-vision\n" in done.output
    assert 'becomes: "1"' in done.output


# The field that decides.


def test_a_network_is_opened_at_the_line_that_opens_it_beside_a_lower_share(repository: Repository) -> None:
    committed(repository, "small-vision", TEAM_HEAD, f"{TEAM_HEAD}    egress: [{{cidr: 203.0.113.0/24}}]\n")
    repository.edit("small-vision", "203.0.113.0/24", "0.0.0.0/0")
    repository.edit("small-vision", "nominal_quota: 8", "nominal_quota: 0")

    told = {finding.rule: finding.path for finding in losses(repository.compare(base="HEAD"))}

    assert told == {"opens-access": "egress", "takes-promise": "shares.c.a100-40.nominal_quota"}


def test_rights_are_given_at_the_line_of_members_beside_another_share(repository: Repository) -> None:
    line = repository.edit(
        "small-vision", "[group:vision@example.com]", "[group:vision@example.com, user:sam@example.com]"
    )
    repository.edit("small-vision", "nominal_quota: 8", "nominal_quota: 16")

    comparison = repository.compare().comparison

    assert comparison is not None
    (grant,) = [act for act in comparison.acts if act.consequences[0].kind == "grants"]
    assert grant.consequences[0].subjects == ("sam@example.com in team vision",)
    assert grant.finding.message.startswith("grants rights: sam@example.com in team vision: members from ")
    assert (grant.finding.path, grant.finding.position and grant.finding.position.line) == ("members", line)


def test_of_two_fields_with_one_value_the_one_that_takes_is_at_fault(repository: Repository) -> None:
    limits = "nominal_quota: 8, lending_limit: {0}, borrowing_limit: {0}"
    committed(repository, "small-vision", "nominal_quota: 8", limits.format(8))
    repository.edit("small-vision", limits.format(8), limits.format(0))

    told = {finding.path: finding.becomes for finding in losses(repository.compare(base="HEAD"))}

    assert told == {"shares.c.a100-40.borrowing_limit": "0"}  # nobody else borrows what it lends


def test_less_to_lend_is_a_loss_of_a_team_that_may_borrow_it(repository: Repository) -> None:
    lending = "nominal_quota: 8, lending_limit: 8"
    committed(repository, "small-vision", "nominal_quota: 8", lending)
    other = repository.path("small-vision").read_text(encoding="utf-8").split("    vertex:")[0]
    repository.path("small-nlp").write_text(other.replace("vision", "nlp").replace(lending, "nominal_quota: 0"))
    repository.commit()
    repository.edit("small-vision", lending, "nominal_quota: 8, lending_limit: 0")

    (finding,) = losses(repository.compare(base="HEAD"))

    assert (finding.rule, finding.path) == ("takes-promise", "shares.c.a100-40.lending_limit")
    assert "other teams can borrow less from the share" in finding.message


def test_a_smaller_budget_of_chip_hours_is_a_loss(repository: Repository) -> None:
    committed(repository, "small-vision", TEAM_HEAD, f"{TEAM_HEAD}    monthly_chip_hours: {{c: 30000}}\n")
    repository.edit("small-vision", "30000", "3000")

    (finding,) = losses(repository.compare(base="HEAD"))

    assert (finding.rule, finding.path, finding.becomes) == ("takes-promise", "monthly_chip_hours.c", "3000")


def test_shorter_runs_are_a_loss_of_the_teams(repository: Repository) -> None:
    committed(repository, "small", HEAD, f"{HEAD}    max_run_hours: 168\n")
    repository.edit("small", "max_run_hours: 168", "max_run_hours: 12")

    (finding,) = losses(repository.compare(base="HEAD"))

    assert (finding.rule, finding.path) == ("takes-promise", "max_run_hours")


def test_a_pool_with_two_changed_inputs_is_counted_once(repository: Repository) -> None:
    repository.edit("small", CAPACITY, "            boot_disk: {type: pd-ssd, size_gb: 300}\n" + CAPACITY)

    (finding,) = losses_of_change(repository)

    assert "node pool gpu in c of small (2 VMs of a2-highgpu-8g" in finding.message
    assert finding.becomes == "{type: pd-ssd, size_gb: 300}"


def test_protection_is_lifted_in_the_section_of_what_is_lost_and_else_in_the_environment(
    with_bucket: Repository,
) -> None:
    with_bucket.edit("small-vision", TEAM_HEAD, f"{TEAM_HEAD}    labels: {{cost-center: cv}}\n")
    with_bucket.edit("small-vision", "data: {location: us-central1", "data: {location: us-west4")

    first = {finding.path: finding.first or "" for finding in losses(with_bucket.compare(base="HEAD"))}

    lift = "deploy `deletion_protection: false` in"
    assert f"{lift} vertex.persistent_resources.tuning before" in first["labels"]
    assert f"{lift} the environment, since buckets.data has no such field, before" in first["buckets.data.location"]


def test_a_renamed_pool_is_recognized(repository: Repository) -> None:
    repository.edit("small", "          gpu:", "          big:")

    (finding,) = [finding for finding in losses_of_change(repository) if finding.rule == "stops-jobs"]

    assert "big has the same fields: a new name deletes the old resource and creates another" in finding.message


def test_pools_shrink_at_the_field_that_shrinks_them(repository: Repository) -> None:
    committed(repository, "small-vision", "nominal_quota: 8", "nominal_quota: 16")
    repository.edit("small", CAPACITY, "            boot_disk: {size_gb: 300}\n" + CAPACITY)
    repository.edit("small", "max_nodes: 2", "max_nodes: 1")

    told = {finding.rule: finding.path for finding in losses(repository.compare(base="HEAD"))}

    assert told == {
        "takes-promise": "clusters.c.node_pools.gpu.max_nodes",
        "stops-jobs": "clusters.c.node_pools.gpu.boot_disk",
    }


def test_after_many_trials_the_only_field_of_a_section_is_taken_for_the_cause(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_fields, "_MOST_PLANNED", 0)
    repository.edit("small", CAPACITY, SPOT)
    repository.edit("small", "max_nodes: 2", "max_nodes: 3")
    repository.edit("small", "topology: 4x4", "topology: 4x8")

    told = [finding.path for finding in losses_of_change(repository)]

    assert "clusters.c.node_pools.tpu.topology" in told


# Rights on what is another team's.

THEIRS = "    data_sets: {{theirs: {{bucket: {{name: {name}, location: us-central1}}}}}}\n"


@pytest.mark.parametrize(("name", "rules"), [("example-small-small-nlp-data", ["opens-access"]), ("elsewhere", [])])
def test_a_role_on_the_bucket_of_another_team_opens_it(repository: Repository, name: str, rules: list[str]) -> None:
    nlp = repository.path("small-vision").read_text(encoding="utf-8").split("    shares:")[0].replace("vision", "nlp")
    repository.path("small-nlp").write_text(f"{nlp}{BUCKET}", encoding="utf-8")
    repository.commit()
    repository.edit("small-vision", TEAM_HEAD, TEAM_HEAD + THEIRS.format(name=name))

    findings = losses(repository.compare(base="HEAD"))

    assert [finding.rule for finding in findings] == rules
    for finding in findings:
        assert finding.path == "data_sets"
        assert "gets roles/storage.objectViewer on buckets/example-small-small-nlp-data of small-nlp" in finding.message
        assert finding.first == "agree on the grant with the people of small-nlp"
