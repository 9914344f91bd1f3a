"""``training-platform adopt`` and ``adopt-state`` as people type them, with their likely mistakes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.parts.adopt.seeding import Seeded, served
from tests.parts.adopt.stacks import PROJECT, STACK, Repository, small_plan, standing
from training_platform.cli.main import app

pytestmark = pytest.mark.timeout(300)  # each plans a stack once or more

LOCATIONS = f"container/v1beta1/projects/{PROJECT}/locations"


def run(root: Path, address: str, *args: str, project: str = PROJECT) -> Result:
    options = ["--stack", "lab", "--local-cloud", address, "--root", str(root), *args]
    return CliRunner().invoke(app, ["adopt", project, *options])


def sentence(ran: Result) -> str:
    """Return the only sentence of a command that failed and wrote nothing."""
    assert (ran.exit_code, ran.stdout) == (2, "")
    return ran.stderr.removeprefix("training-platform: ")


@pytest.fixture(name="seeded")
def _seeded(repository: Repository) -> Seeded:
    return standing(small_plan(repository))


@pytest.fixture(name="address")
def _address(seeded: Seeded) -> Iterator[str]:
    with served(seeded) as address:
        yield address


@pytest.fixture(scope="module", name="imports")
def _imports(repository: Repository) -> Path:
    """Return the import file that adopting the small stack writes."""
    root = repository({"lab": STACK})
    with served(standing(small_plan(repository))) as address:
        run(root, address)
    return root / "import-lab.json"


@pytest.fixture(name="root")
def _root(repository: Repository) -> Path:
    return repository({"lab": STACK})


def test_only_the_import_file_is_written_parents_first(root: Path, address: str) -> None:
    ran = run(root, address)

    assert ran.exit_code == 0, ran.output
    assert "import-lab.json: written." in ran.stdout
    assert (root / "stacks" / "Pulumi.lab.yaml").read_text() == STACK
    rows = json.loads((root / "import-lab.json").read_text())["resources"]
    seen: set[str] = set()
    for row in rows:
        assert row["name"] not in seen
        assert row.get("parent") is None or row["parent"] in seen, "a parent comes before its children"
        assert ("id" in row) is not row.get("component", False)
        seen.add(row["name"])


def test_ids_are_those_of_the_resources_in_the_project(root: Path, address: str) -> None:
    run(root, address)

    rows = json.loads((root / "import-lab.json").read_text())["resources"]
    ids = {row.get("logicalName", row["name"]): row["id"] for row in rows if "id" in row}
    regional = f"projects/{PROJECT}/regions/us-central1"
    zonal = f"projects/{PROJECT}/locations/us-central1-a"
    assert ids["main-cluster"] == f"{zonal}/clusters/lab-main"
    assert ids["main-a100-pool"] == f"{zonal}/clusters/lab-main/nodePools/a100"
    assert ids["filestore-homes-instance"] == f"{zonal}/instances/lab-homes"
    assert ids["main-subnet"] == f"{regional}/subnetworks/main-subnet-0a1b2c3"
    assert ids["apis-container"] == f"{PROJECT}/container.googleapis.com"
    account = f"serviceAccount:lab-gke-nodes@{PROJECT}.iam.gserviceaccount.com"
    assert ids["nodes-artifactregistry.reader"] == f"{PROJECT} roles/artifactregistry.reader {account}"


def test_a_dry_run_writes_nothing(root: Path, address: str) -> None:
    ran = run(root, address, "--dry-run")

    assert ran.exit_code == 0
    assert not (root / "import-lab.json").exists()


def test_an_existing_file_is_not_overwritten_without_the_option(root: Path, address: str) -> None:
    file = root / "import-lab.json"
    file.write_text("{}")

    refused = run(root, address)
    assert refused.exit_code == 2
    assert "import-lab.json: already exists and was not changed" in refused.stderr
    assert file.read_text() == "{}"
    assert run(root, address, "--overwrite").exit_code == 0
    assert "main-cluster" in file.read_text()


def test_a_stack_without_a_file_is_refused_with_the_nearest(root: Path, address: str) -> None:
    ran = CliRunner().invoke(app, ["adopt", PROJECT, "--stack", "lb", "--local-cloud", address, "--root", str(root)])

    assert sentence(ran) == (
        "stacks/Pulumi.lb.yaml does not exist: create it, for example with `init environment`. "
        "Allowed: lab. Nearest: lab.\n"
    )


def test_a_stack_file_with_errors_is_refused(root: Path, address: str) -> None:
    (root / "stacks" / "Pulumi.lab.yaml").write_text(STACK.replace("a2-highgpu-8g", "a2-higpu-8g"))

    message = sentence(run(root, address))
    assert "stacks/Pulumi.lab.yaml:12:" in message
    assert "Nearest: a2-highgpu-8g" in message
    assert message.endswith("The stack files have errors: correct them first.\n")


def test_another_project_than_the_stacks_is_refused(root: Path, address: str) -> None:
    message = sentence(run(root, address, project="example-others"))

    assert message == "lab is in project example-lab, not in example-others.\n"


def test_an_unreadable_project_gives_one_sentence(root: Path) -> None:
    with served(Seeded("example-others")) as address:
        assert sentence(run(root, address)).startswith("GKE denies access in projects/example-lab: ")


def test_everything_is_new_in_an_empty_project(root: Path) -> None:
    with served(Seeded(PROJECT)) as address:
        ran = run(root, address, "--dry-run")

    assert ran.exit_code == 0, ran.output
    assert "lab: 0 resources to import" in ran.stdout


def reported(root: Path, address: str) -> Any:
    ran = run(root, address, "--dry-run", "--format", "json")
    assert ran.exit_code == 1, ran.output
    return json.loads(ran.stdout)


def test_resources_that_no_stack_plans_are_listed_with_their_ids(seeded: Seeded, root: Path, address: str) -> None:
    body = {"name": "train", "initialNodeCount": 1, "network": "lab-network", "subnetwork": "main-subnet-0a1b2c3"}
    seeded.ask("POST", f"{LOCATIONS}/us-central1-a/clusters", {"cluster": body})
    instance = {
        "fileShares": [{"name": "a", "capacityGb": "1024"}],
        "networks": [{"network": "default"}],
        "tier": "ZONAL",
    }
    where = f"file/v1beta1/projects/{PROJECT}/locations/us-central1-a/instances"
    seeded.ask("POST", where, instance, instanceId="scratch")

    zone = f"projects/{PROJECT}/locations/us-central1-a"
    assert reported(root, address)["unplanned"] == [
        {"kind": "cluster", "id": f"{zone}/clusters/train"},
        {"kind": "node pool", "id": f"{zone}/clusters/train/nodePools/default-pool"},
        {"kind": "Filestore instance", "id": f"{zone}/instances/scratch"},
    ]
    text = run(root, address, "--dry-run").stdout
    assert f"exists in the project, and no stack plans it:\n  cluster {zone}/clusters/train\n" in text


def test_a_resource_that_the_stack_would_replace_is_reported_so(seeded: Seeded, root: Path, address: str) -> None:
    seeded.spoil(
        f"container/projects/{PROJECT}/locations/us-central1-a/clusters/lab-main/nodePools/a100",
        lambda body: body["config"].update(serviceAccount="others@example-lab.iam.gserviceaccount.com"),
    )

    (stack,) = reported(root, address)["stacks"]
    assert [(change["resource"].rpartition("/")[2], change["replaces"]) for change in stack["changes"]] == [
        ("a100", True)
    ]
    text = run(root, address, "--dry-run").stdout
    assert "lab-gke-nodes@example-lab.iam.gserviceaccount.com (replaces it)" in text
    assert "  1 resource would be replaced: correct the stack file before the first `pulumi up`" in text


def test_changes_and_settings_without_a_field_are_listed(seeded: Seeded, root: Path, address: str) -> None:
    def other(body: dict[str, Any]) -> None:
        body["addonsConfig"]["gcsFuseCsiDriverConfig"]["enabled"] = False
        body["networkConfig"]["dnsConfig"] = {"clusterDns": "CLOUD_DNS"}

    seeded.spoil(f"container/projects/{PROJECT}/locations/us-central1-a/clusters/lab-main", other)

    ran = run(root, address, "--dry-run")
    assert ran.exit_code == 1
    lines = [line.strip() for line in ran.stdout.splitlines()]
    assert "addonsConfig.gcsFuseCsiDriverConfig.enabled is not set, planned true" in lines
    assert "networkConfig.dnsConfig.clusterDns is CLOUD_DNS" in lines


def settle(state: str, file: Path) -> Result:
    return CliRunner().invoke(app, ["adopt-state", str(file)], input=state)


def exported(**cluster: Any) -> str:
    urn = "urn:pulumi:lab::training-platform::a$gcp:container/cluster:Cluster::main-cluster"
    resource = {"urn": urn, "type": "gcp:container/cluster:Cluster", "custom": True, **cluster}
    other = {"urn": "urn:pulumi:lab::training-platform::other::x", "type": "other", "inputs": {"nodeConfig": 1}}
    return json.dumps({"version": 3, "deployment": {"manifest": {"magic": "m"}, "resources": [resource, other]}})


def test_a_state_loses_ignored_inputs_and_gains_those_that_no_api_returns(imports: Path) -> None:
    state = exported(
        inputs={"name": "lab-main", "nodeConfig": {"windowsNodeConfig": {"osversion": ""}}, "__defaults": []},
        outputs={
            "name": "lab-main",
            "removeDefaultNodePool": None,
            "resourceLabels": {},
            "pulumiLabels": {},
            "effectiveLabels": {"environment": "lab", "goog-pulumi-provisioned": "true"},
            "__pulumi_raw_state_delta": {},
        },
    )

    ran = settle(state, imports)
    assert (ran.exit_code, ran.stderr) == (0, "1 resources corrected: main-cluster\n")
    cluster, other = json.loads(ran.stdout)["deployment"]["resources"]
    labels = {"environment": "lab", "managed-by": "training-platform"}
    assert cluster["inputs"] == {"name": "lab-main", "__defaults": []}
    assert cluster["outputs"]["removeDefaultNodePool"] is True
    assert cluster["outputs"]["resourceLabels"] == labels
    assert cluster["outputs"]["pulumiLabels"] == {**labels, "goog-pulumi-provisioned": "true"}
    assert "__pulumi_raw_state_delta" not in cluster["outputs"]
    assert other == json.loads(state)["deployment"]["resources"][1]


def test_inputs_that_an_api_returned_are_not_overwritten(imports: Path) -> None:
    outputs = {"resourceLabels": {"environment": "other"}, "removeDefaultNodePool": False}

    ran = settle(exported(inputs={"name": "x"}, outputs=outputs), imports)

    cluster = json.loads(ran.stdout)["deployment"]["resources"][0]
    assert cluster["outputs"]["resourceLabels"]["environment"] == "other"
    assert cluster["outputs"]["removeDefaultNodePool"] is False


@pytest.mark.parametrize("state", ["", "[]", "{}", "no json", '{"deployment": {"resources": [1]}}'])
def test_an_invalid_state_gives_one_sentence(state: str, imports: Path) -> None:
    assert "is not an export of a stack" in sentence(settle(state, imports))


@pytest.mark.parametrize("state", [exported(), ""])  # a pulumi that failed prints nothing
def test_a_missing_import_file_gives_one_sentence(state: str, tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in sentence(settle(state, tmp_path / "none.json"))


@pytest.mark.parametrize("text", ["", "[]", '{"resources": [{"type": "a"}]}'])
def test_another_file_than_adopt_wrote_gives_one_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "import.json"
    file.write_text(text, encoding="utf-8")

    assert "is not a file that adopt wrote" in sentence(settle(exported(), file))
