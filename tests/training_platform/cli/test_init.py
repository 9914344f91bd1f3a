"""From an empty repository to a clean check with nothing but ``init``."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.places import ROOT
from training_platform.catalog import MACHINE_TYPES
from training_platform.cli.main import app
from training_platform.config.first_files import first_capacity, first_zone, machine_named
from training_platform.config.model.environment import Environment
from training_platform.config.workspace import read_workspace

WITHOUT_MACHINES = ("environment", "dev", "--project", "example-lab", "--no-production")
ENVIRONMENT = (*WITHOUT_MACHINES, "--machine-type", "h100")
TEAM = ("team", "vision", "--member", "group:vision@example.com")
JOB = ("job", "vision/train", "--image", "us-docker.pkg.dev/example-lab/images/train:1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository without stacks."""
    (tmp_path / "Pulumi.yaml").write_bytes((ROOT / "Pulumi.yaml").read_bytes())
    (tmp_path / "stacks").mkdir()
    return tmp_path


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--root", str(root)])


def init(root: Path, *arguments: str) -> Result:
    return run(root, "init", *arguments)


def environment(root: Path, name: str = "dev") -> Environment:
    section = read_workspace(root).stacks[name].environment
    assert section is not None
    return section


@pytest.mark.parametrize("machine_type", ["a3-highgpu-8g", "ct5lp-hightpu-4t"])
def test_what_init_writes_is_clean(root: Path, machine_type: str) -> None:
    assert (
        init(root, *WITHOUT_MACHINES, "--machine-type", machine_type, "--alert-email", "a@example.com").exit_code == 0
    )
    assert run(root, "quota", "init").exit_code == 0
    assert init(root, *TEAM).exit_code == 0
    assert init(root, *JOB).exit_code == 0

    checked = run(root, "check", "--strict")
    assert (checked.exit_code, checked.stdout.splitlines()[-1]) == (
        0,
        "2 stacks: 1 note; not judged: 1 project without known limits",
    )
    job = run(root, "job", "check", str(root / "jobs" / "vision" / "train.yaml"))
    assert job.exit_code == 0, job.stdout


def test_a_first_environment_is_ten_lines_below_the_one_that_names_its_schema(root: Path) -> None:
    init(root, *ENVIRONMENT)

    schema, *lines = (root / "stacks" / "Pulumi.dev.yaml").read_text().splitlines()
    assert schema.startswith("# yaml-language-server")
    assert len(lines) == 10


def test_quotas_without_known_limits_are_a_table_and_no_empty_bars(root: Path) -> None:
    init(root, *ENVIRONMENT)
    run(root, "quota", "init")

    quotas = run(root, "check", "--format", "html").stdout.rpartition("Quota headroom")[2].partition("<h2")[0]

    assert "<code>training-platform quota pull example-lab</code> reads the limits." in quotas
    assert "PREEMPTIBLE-NVIDIA-H100-GPUS (GPUs)" in quotas
    assert 'class="bar' not in quotas


@pytest.mark.parametrize("name", ["dev-vision.yaml", "Pulumi.dev-vision.yml", "pulumi.dev-vision.yaml"])
def test_a_stack_file_under_another_name_is_reported_with_the_right_one(root: Path, name: str) -> None:
    init(root, *ENVIRONMENT)
    init(root, *TEAM)
    (root / "stacks" / "Pulumi.dev-vision.yaml").rename(root / "stacks" / name)

    of_all = run(root, "check")
    of_one = run(root, "check", "dev-vision")

    assert (of_all.exit_code, of_one.exit_code) == (2, 2)
    for output in (of_all.stdout, of_one.stderr):
        assert f"stacks/{name}: a file of this name is not read as a stack" in output
        assert "Nearest: Pulumi.dev-vision.yaml." in output


@pytest.mark.parametrize("late", [False, True])
def test_a_first_job_on_vertex_ai_has_its_quotas_whenever_it_comes(root: Path, late: bool) -> None:
    init(root, *ENVIRONMENT, "--alert-email", "a@example.com")
    init(root, *TEAM)
    file = root / "stacks" / "quotas" / "example-lab.yaml"
    if late:
        run(root, "quota", "init")
        file.write_text(
            file.read_text().replace(
                "N2-CPUS-per-project-region:\n      - {limit: 56", "N2-CPUS-per-project-region:\n      - {limit: 57"
            )
        )
    init(root, *JOB, "--target", "both")

    assert run(root, "quota", "init").stdout.startswith("stacks/quotas/example-lab.yaml: written")

    assert ("- {limit: 57, region: us-central1}" in file.read_text()) is late
    checked = run(root, "check")
    assert (checked.exit_code, checked.stdout.splitlines()[-2]) == (
        0,
        "2 stacks: 1 warning, 1 note; not judged: 1 project without known limits",
    )
    assert "no stack allows anybody to start jobs on Vertex AI" in checked.stdout  # the warning
    assert run(root, "quota", "init").stdout == "Every project has a snapshot.\n"


def test_amounts_of_an_earlier_version_are_marked_as_placeholders(root: Path) -> None:
    init(root, *ENVIRONMENT)
    run(root, "quota", "init")
    file = root / "stacks" / "quotas" / "example-lab.yaml"
    marked = file.read_text()
    schema, _, after_schema = marked.partition("\n")
    body = after_schema.partition("`placeholder`.\n")[2].replace("placeholder: true\n", "")
    file.write_text(f"{schema}\n# Written without looking at Google Cloud: what stacks need.\n{body}")

    assert run(root, "quota", "init").stdout.startswith("stacks/quotas/example-lab.yaml: written")
    assert file.read_text() == marked


def test_every_machine_type_has_a_first_zone_and_provisioning_model() -> None:
    for name, machine in MACHINE_TYPES.items():
        assert not machine.zones or first_zone(name) in machine.zones
        assert first_capacity(name) in machine.capacities


def test_existing_files_are_not_overwritten(root: Path) -> None:
    init(root, *ENVIRONMENT)
    file = root / "stacks" / "Pulumi.dev.yaml"
    file.write_text("config: {}\n")

    again = init(root, *ENVIRONMENT)

    assert again.exit_code == 2
    assert "stacks/Pulumi.dev.yaml already exists" in again.stderr
    assert file.read_text() == "config: {}\n"


@pytest.mark.parametrize(
    ("arguments", "sentences"),
    [
        (("environment", "dev", "--no-production"), ["--project is missing: Google Cloud project id."]),
        (("environment", "dev", "--project", "example-lab"), ["--production or --no-production is missing."]),
        (WITHOUT_MACHINES, ["--machine-type is missing: Machine type, or accelerator such as h100 or tpu-v5e"]),
        ((*WITHOUT_MACHINES, "--machine-type", "x"), ["--machine-type 'x' is not a machine type with TPUs or GPUs."]),
        ((*WITHOUT_MACHINES, "--machine-type", "a100"),
         ["write a100-40 (NVIDIA A100 40 GB, a2-highgpu-8g) or a100-80 (NVIDIA A100 80 GB, a2-ultragpu-8g)."]),
        ((*ENVIRONMENT, "--capacity", "reservation"), ["--reservation is missing: name of the reservation, or any."]),
        ((*ENVIRONMENT, "--slices", "2"), ["--slices needs a pool with TPUs."]),
        ((*ENVIRONMENT, "--max-nodes", "2", "--max-nodes", "3"), ["once for all pools, or once for each of 1."]),
        ((*WITHOUT_MACHINES, "--machine-type", "v5e", "--topology", "4x6"), ["'4x6' is not a topology of ct5lp-"]),
        ((*ENVIRONMENT, "--reservation", "H100"), ["--reservation 'H100' is not in the right form"]),
        ((*ENVIRONMENT, "--capacity", "spot", "--reservation", "r"), ["'r' matches no pool with capacity reservation"]),
        ((*ENVIRONMENT, "--zone", "us-central1-a", "--zone", "us-east4-a"), ["--zone is given 2 times"]),
        (
            ("environment", "dev", "--project", "EXAMPLE", "--machine-type", "a3-higpu-8g", "--zone", "us-central1-z",
             "--capacity", "preemptible", "--alert-email", "me"),
            ["--project 'EXAMPLE' is not in the right form. Allowed: a project id",
             "--production or --no-production is missing.", "Nearest: a3-highgpu-8g.", "Nearest: us-central1-a.",
             "--capacity 'preemptible' is unknown. Allowed: on-demand, spot,", "Nearest: spot.",
             "--alert-email 'me' is not in the right form"],
        ),
        (("environment", "DEV", *ENVIRONMENT[2:]), ["Nearest: Pulumi.dev.yaml"]),
        (TEAM, ["No environment is declared. To write one: training-platform init environment NAME."]),
        (("pool", "dev"), ["No environment is declared"]),
        ((*JOB, "--environment", "dev"), ["No environment is declared"]),
    ],
)  # fmt: skip
def test_all_mistakes_are_reported_at_once_and_nothing_is_written(
    root: Path, arguments: tuple[str, ...], sentences: list[str]
) -> None:
    done = init(root, *arguments)

    assert done.exit_code == 2
    assert [sentence for sentence in sentences if sentence not in done.stderr] == []
    assert not list(root.glob("stacks/*.yaml"))


@pytest.mark.parametrize(
    ("arguments", "sentences"),
    [
        (("team", "vision", "--member", "me", "--share", "h1000=8", "--share", "h100-spot=all"),
         ["--member 'me' is not in the right form", "--share 'h1000' is unknown. Allowed: us-central1/h100-spot.",
          "--share 'all' is not an integer."]),
        ((*TEAM, "--share", "h100=4"),
         ["--share h100-spot=4 must be a multiple of 8, one VM. Nearest: h100-spot=8"]),
        ((*TEAM, "--share", "h100=16"),
         ["exceeds the unassigned h100-spot in us-central1: 8. Nearest: h100-spot=8,"]),
        ((*TEAM, "--environment", "prod"), ["--environment 'prod' is unknown. Allowed: dev."]),
        (("pool", "dve"), ["ENVIRONMENT 'dve' is unknown. Allowed: dev. Nearest: dev."]),
        (("pool", "dev", "--cluster", "us-central", "--name", "H", "--zone", "us-central1-g"),
         ["--machine-type is missing: Machine type, or accelerator such as h100 or tpu-v5e.",
          "--cluster 'us-central' is unknown. Allowed: us-central1. Nearest: us-central1.", "--name 'H' is not in",
          "--zone 'us-central1-g' is unknown."]),
        (("pool", "dev", "--machine-type", "h100", "--name", "h100"),
         ["Cluster us-central1 of dev already has a node pool h100: choose anoth"]),
        (("pool", "dev", "--machine-type", "h100", "--slices", "2"), ["node_pools.h100-spot", "slices"]),
        (("job", "vision/train", "--image", "i"), ["is not TEAM/NAME with a team of dev. Its teams: none."]),
    ],
)  # fmt: skip
def test_what_an_environment_has_no_place_for_is_refused(
    root: Path, arguments: tuple[str, ...], sentences: list[str]
) -> None:
    init(root, *ENVIRONMENT)
    before = {path: path.read_bytes() for path in root.rglob("*.yaml")}

    done = init(root, *arguments)

    assert done.exit_code == 2
    assert [sentence for sentence in sentences if sentence not in done.stderr] == []
    assert {path: path.read_bytes() for path in root.rglob("*.yaml")} == before


@pytest.mark.parametrize(
    ("name", "machine_type"),
    [("h100", "a3-highgpu-8g"), ("H200", "a3-ultragpu-8g"), ("tpu-v5e", "ct5lp-hightpu-4t"), ("v4", "ct4p-hightpu-4t"),
     ("a100-40", "a2-highgpu-8g"), ("l4", "g2-standard-96"), ("a2-megagpu-16g", "a2-megagpu-16g")],
)  # fmt: skip
def test_an_accelerator_means_its_usual_machine_type(name: str, machine_type: str) -> None:
    assert machine_named(name).name == machine_type


def test_every_machine_type_that_is_asked_for_is_a_pool_in_a_cluster_of_its_region(root: Path) -> None:
    done = init(root, *ENVIRONMENT, "--machine-type", "v4", "--machine-type", "a3-highgpu-4g")

    assert done.exit_code == 0, done.stderr
    clusters = environment(root).clusters
    pools = {name: {pool: spec.machine_type for pool, spec in row.node_pools.items()} for name, row in clusters.items()}
    assert pools == {
        "us-central1": {"h100": "a3-highgpu-8g", "h100-spot": "a3-highgpu-4g"},
        "us-central2": {"tpu-v4": "ct4p-hightpu-4t"},
    }


def test_a_pool_is_added_and_every_line_and_comment_stays(root: Path) -> None:
    init(root, *ENVIRONMENT)
    file = root / "stacks" / "Pulumi.dev.yaml"
    text = file.read_text().replace("        node_pools:\n", "        node_pools: # scarce\n          # ours\n")
    file.write_text(text + "            # of the first pool\n\n    # the end of the file\n")
    before = file.read_text().splitlines()

    done = init(root, "pool", "dev", "--machine-type", "v6e", "--topology", "4x4", "--slices", "2")

    assert done.exit_code == 0, done.stderr
    after = file.read_text().splitlines()
    (line,) = [line for line in after if line not in before]
    assert [row for row in after if row != line] == before
    assert after.index(line) == len(before) - 2  # above the empty line and the comment that end the file
    pool = environment(root).clusters["us-central1"].node_pools["tpu-v6e"]
    assert (pool.machine_type, pool.topology, pool.slices) == ("ct6e-standard-4t", "4x4", 2)


def test_a_pool_of_a_flavor_that_teams_share_needs_no_share(root: Path) -> None:
    init(root, *ENVIRONMENT, "--machine-type", "h100")
    shared = "No team has a share of h100-spot yet"

    assert shared in init(root, "pool", "dev", "--machine-type", "h100", "--name", "second").stdout
    init(root, *TEAM)
    assert shared not in init(root, "pool", "dev", "--machine-type", "h100", "--name", "third").stdout


def test_a_pool_in_another_region_gets_a_cluster_there(root: Path) -> None:
    init(root, *ENVIRONMENT)

    done = init(
        root,
        "pool",
        "dev",
        "--machine-type",
        "a3-highgpu-8g",
        "--zone",
        "europe-west4-b",
        "--name",
        "eu",
        "--max-nodes",
        "3",
    )

    assert "node pool eu written, in the new cluster europe-west4" in done.stdout
    assert environment(root).clusters["europe-west4"].node_pools["eu"].max_nodes == 3
    assert run(root, "quota", "init").exit_code == 0
    assert run(root, "check").exit_code == 0


def test_a_new_team_is_told_its_share_and_how_the_next_one_gets_one(root: Path) -> None:
    init(root, *ENVIRONMENT)

    first = init(root, *TEAM)
    second = init(root, "team", "nlp", "--member", "group:nlp@example.com")

    assert "  share of h100-spot in us-central1: 8 of 8 GPUs\n" in first.stdout
    advice = "Nothing is left for another team: lower a nominal_quota in stacks/Pulumi.dev-vision.yaml first, or"
    assert advice in first.stdout
    assert "  no share: all capacity of dev is assigned to teams\n" in second.stdout
    assert advice in second.stdout
    third = init(root, "team", "speech", "--member", "group:speech@example.com", "--share", "h100=0")
    assert "stacks/Pulumi.dev-vision.yaml first, or let it only borrow with --share FLAVOR=0.\n" in second.stdout
    assert "The team can only borrow. To give it GPUs or chips, lower a nominal_quota in stacks/" in third.stdout
    assert "--share" not in third.stdout
    assert "Nearest: vision/train." in init(root, "job", "visoin/train", "--image", "i:1").stderr


def test_a_team_of_a_group_is_told_the_field_for_groups_in_clusters(root: Path) -> None:
    assert init(root, *ENVIRONMENT, "--google-groups-domain", "example com").exit_code == 2
    assert init(root, *ENVIRONMENT).exit_code == 0

    first = init(root, *TEAM)
    person = init(root, "team", "one", "--member", "user:a@example.com")
    file = root / "stacks" / "Pulumi.dev.yaml"
    file.write_text(file.read_text().replace("    project:", "    google_groups_domain: example.com\n    project:"))
    second = init(root, "team", "nlp", "--member", "group:nlp@example.com")

    hint = "Groups have no rights in clusters yet: write google_groups_domain: example.com into stacks/Pulumi.dev.yaml"
    assert f"{hint}, directly below training-platform:environment, and add the groups" in first.stdout
    assert second.exit_code == 0
    assert "Groups have no rights" not in person.stdout + second.stdout


def test_shares_by_flags_leave_the_rest_for_the_next_team(root: Path) -> None:
    init(root, *ENVIRONMENT)
    init(root, "pool", "dev", "--machine-type", "h100", "--max-nodes", "3")

    first = init(root, *TEAM, "--share", "h100-spot=16")
    second = init(root, "team", "nlp", "--member", "group:nlp@example.com")

    init(root, "pool", "dev", "--machine-type", "h100", "--name", "now", "--capacity", "flex-start")
    unclear = init(root, "team", "audio", "--member", "group:audio@example.com", "--share", "h100=8")
    assert "'h100' is ambiguous: us-central1/h100-flex-start, us-central1/h100-spot" in unclear.stderr
    assert "16 of 32 GPUs" in first.stdout
    assert "Nothing is left" not in first.stdout
    assert "16 of 32 GPUs" in second.stdout
    assert "Nothing is left for another team" in second.stdout


def test_a_new_pool_is_described_and_spot_is_not_chosen_for_production_in_silence(root: Path) -> None:
    created = init(
        root, "environment", "prod", "--project", "example-lab", "--production", "--machine-type", "v5e"
    ).stdout
    added = init(root, "pool", "prod", "--machine-type", "l4", "--capacity", "on-demand", "--max-nodes", "2").stdout

    assert (
        "  node pool tpu-v5e in us-central1: up to 1 VM of ct5lp-hightpu-4t (4 chips) in us-central1-a, spot; teams "
        "use it as flavor tpu-v5e-2x2-spot\n    Google stops spot VMs at any time. For production, see --capacity.\n"
    ) in created
    assert "node pool l4 in us-central1: up to 2 VMs of g2-standard-96 (16 GPUs) in us-central1-a, on-demand" in added
    assert "tpu-v5e" not in added
    assert "stops spot VMs" not in added


def test_quota_init_is_the_next_step_only_where_a_project_has_no_amounts(root: Path) -> None:
    first = init(root, *ENVIRONMENT)
    run(root, "quota", "init")
    second = init(root, *TEAM)

    assert first.stdout.endswith("Next: training-platform quota init, then training-platform check.\n")
    assert second.stdout.endswith("Next: training-platform check.\n")


def test_environments_get_address_ranges_of_their_own(root: Path) -> None:
    init(root, *ENVIRONMENT)
    init(root, "environment", "prod", "--project", "example-train-prod", "--production", "--machine-type", "h100")
    init(root, "pool", "dev", "--machine-type", "h100", "--zone", "europe-west4-b")

    subnets = [spec.subnet for name in ("dev", "prod") for spec in environment(root, name).clusters.values()]
    ranges = [IPv4Network(part) for row in subnets if row for part in (row.nodes, row.pods, row.services)]
    assert len(ranges) == 3 * 3
    assert not [pair for pair in combinations(ranges, 2) if pair[0].overlaps(pair[1])]


def test_an_organisation_made_only_by_commands_is_clean(root: Path) -> None:
    """Two environments, three teams and four pools."""
    mail = ("--alert-email", "a@example.com")
    for arguments in (
        (*ENVIRONMENT, "--machine-type", "v5e", *mail),
        ("environment", "prod", "--project", "example-train-prod", "--production", "--machine-type", "h100",
         "--capacity", "reservation", "--reservation", "h100-pool", *mail),
        ("pool", "prod", "--machine-type", "v6e", "--topology", "4x4", "--reservation", "v6e-pool"),
        (*TEAM, "--environment", "dev", "--share", "h100-spot=8"),
        ("team", "nlp", "--environment", "dev", "--member", "group:nlp@example.com"),
        ("team", "speech", "--environment", "prod", "--member", "group:speech@example.com"),
    ):  # fmt: skip
        assert init(root, *arguments).exit_code == 0, arguments
    assert run(root, "quota", "init").exit_code == 0

    checked = run(root, "check", "--strict")

    assert (checked.exit_code, checked.stdout.splitlines()[-1]) == (
        0,
        "5 stacks: 4 notes; not judged: 2 projects without known limits, 2 reservations of unknown size",
    ), checked.stdout


def test_more_demand_raises_a_placeholder_and_is_not_compared_with_it(root: Path) -> None:
    init(root, *ENVIRONMENT)
    run(root, "quota", "init")
    file = root / "stacks" / "quotas" / "example-lab.yaml"
    stack = root / "stacks" / "Pulumi.dev.yaml"
    gpus = "PREEMPTIBLE-NVIDIA-H100-GPUS-per-project-region:\n      - {limit: %d, region: us-central1}\n"
    assert gpus % 8 in file.read_text()
    stack.write_text(stack.read_text().replace("max_nodes: 1", "max_nodes: 2"))

    assert "quota-exceeded" not in run(root, "check").stdout
    assert run(root, "quota", "init").stdout.startswith("stacks/quotas/example-lab.yaml: written")
    raised = file.read_text()
    assert gpus % 16 in raised
    stack.write_text(stack.read_text().replace("max_nodes: 2", "max_nodes: 1"))
    assert run(root, "quota", "init").stdout == "Every project has a snapshot.\n"
    assert file.read_text() == raised  # never lowered


def test_a_snapshot_with_limits_stays(root: Path) -> None:
    init(root, *ENVIRONMENT)
    run(root, "quota", "init")
    file = root / "stacks" / "quotas" / "example-lab.yaml"
    stack = root / "stacks" / "Pulumi.dev.yaml"
    file.write_text(before := file.read_text().replace("placeholder: true\n", ""))
    stack.write_text(stack.read_text().replace("max_nodes: 1", "max_nodes: 2"))

    assert run(root, "quota", "init").stdout == "Every project has a snapshot.\n"
    assert file.read_text() == before
    assert "quota-exceeded" in run(root, "check").stdout  # two VMs, and limits for one


def test_check_says_in_one_line_that_limits_are_not_known_and_what_reads_them(root: Path) -> None:
    init(root, *ENVIRONMENT)
    run(root, "quota", "init")

    checked = run(root, "check")

    sentence = "the limits of example-lab are not known yet; `training-platform quota pull example-lab` reads them"
    (line,) = [line for line in checked.stdout.splitlines() if "not known" in line]
    assert line.startswith("note stacks/quotas/example-lab.yaml:")
    assert sentence in line
    assert "full" not in checked.stdout
    planned = run(root, "quota", "plan").stdout
    assert f"Nothing can be planned: {sentence}." in " ".join(planned.split())
    assert "->" not in planned
    assert f"not known: {sentence}.\n" in run(root, "quota", "show").stdout


def test_a_job_for_both_targets_has_accelerators_that_vertex_ai_grants(root: Path) -> None:
    init(root, *WITHOUT_MACHINES, "--machine-type", "v5e", "--machine-type", "a100-40")
    init(root, *TEAM)
    init(root, *JOB)
    first = yaml.safe_load((root / "jobs" / "vision" / "train.yaml").read_text())
    (root / "stacks" / "quotas").mkdir()
    (root / "stacks" / "quotas" / "example-lab.yaml").write_text(
        "project: example-lab\ntaken: 2026-11-01\nlimits:\n  aiplatform.googleapis.com:\n"
        "    CustomModelTrainingA100GPUsPerProjectPerRegion: [{limit: 8, region: europe-west4}]\n"
    )

    assert init(root, *JOB[:1], "vision/both", *JOB[2:], "--target", "both").exit_code == 0

    job = yaml.safe_load((root / "jobs" / "vision" / "both.yaml").read_text())
    assert first["gke"]["flavor"] == "tpu-v5e-2x2-spot"
    assert job["gke"]["flavor"] == "a100-40-spot"
    assert (job["vertex"]["machine_type"], job["vertex"]["region"]) == ("a2-highgpu-1g", "europe-west4")


@pytest.mark.parametrize(("machine_type", "kind"), [("a2-highgpu-1g", "gpu"), ("ct5lp-hightpu-4t", "tpu")])
def test_a_job_for_both_targets_has_machines_of_one_kind_as_it_has_one_image(
    root: Path, machine_type: str, kind: str
) -> None:
    init(root, *WITHOUT_MACHINES, "--machine-type", machine_type)
    init(root, *TEAM)

    assert init(root, *JOB, "--target", "both").exit_code == 0

    job = yaml.safe_load((root / "jobs" / "vision" / "train.yaml").read_text())
    assert MACHINE_TYPES[job["vertex"]["machine_type"]].kind == kind


def test_a_topology_that_check_would_refuse_is_not_written(root: Path) -> None:
    init(root, *WITHOUT_MACHINES, "--machine-type", "v5e")

    refused = init(root, "pool", "dev", "--machine-type", "ct5lp-hightpu-4t", "--topology", "4x6")

    assert refused.exit_code == 2
    assert "'4x6' is not a topology of ct5lp-hightpu-4t. Allowed: 2x2, 2x4," in refused.stderr
    assert "Nearest: 4x8." in refused.stderr
    assert init(root, "pool", "dev", "--machine-type", "ct5lp-hightpu-4t", "--topology", "4x8").exit_code == 0
