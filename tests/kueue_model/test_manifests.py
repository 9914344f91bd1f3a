"""Queues of any cluster with Kueue, from manifests: played objects, notes about others, and refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kueue_model.cli import kueue_model
from kueue_model.quotas import amount
from tests.support.places import ROOT
from tools.kueue_kinds import TARGET, kinds

FLAVORS = {"x": {"nvidia.com/gpu": 8, "cpu": 64, "memory": "256Gi"}}
TRACE = "submitted,team,needs,seconds,priority\n"
API = "kueue.x-k8s.io/v1beta2"


def cluster_queue(name: str, flavors: Mapping[Any, dict[str, Any]] = FLAVORS, **more: Any) -> dict[str, Any]:
    rows = [
        {"name": flavor, "resources": [{"name": key, "nominalQuota": quota} for key, quota in quotas.items()]}
        for flavor, quotas in flavors.items()
    ]
    groups = [{"coveredResources": list(next(iter(flavors.values()))), "flavors": rows}]
    spec = {"resourceGroups": groups, "cohortName": "all", **more}
    return {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def configuration(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **fields}


def write(folder: Path, *objects: dict[str, Any], name: str = "queues.yaml") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return folder


def simulate(folder: Path, rows: str, *arguments: str) -> Result:
    (folder / "trace.csv").write_text(TRACE + rows, encoding="utf-8")
    command = [str(folder / "queues"), str(folder / "trace.csv"), "--format", "json", *arguments]
    return CliRunner().invoke(kueue_model, command)


def run(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    (run_document,) = json.loads(done.stdout)["runs"]
    return dict(run_document)


def waits(document: dict[str, Any]) -> dict[str, float]:
    """Return the longest wait of each queue."""
    return {row["team"]: row["longest_seconds"] for row in document["waits"] if row["flavor"] == "all flavors"}


def test_cpus_and_memory_hold_jobs_back_where_the_configuration_counts_them(tmp_path: Path) -> None:
    rows = "0,a,1 nvidia.com/gpu 100 cpu,100,\n0,a,1 nvidia.com/gpu 500m cpu 200Gi memory,100,\n" * 2
    write(tmp_path / "queues", cluster_queue("a"), cluster_queue("b"), configuration())
    counted = waits(run(simulate(tmp_path, rows)))
    excluded = configuration(resources={"excludeResourcePrefixes": ["cpu", "memory"]})
    write(tmp_path / "queues", cluster_queue("a"), cluster_queue("b"), excluded)

    assert counted["a"] >= 100
    assert waits(run(simulate(tmp_path, rows)))["a"] == 0


def test_resources_are_transformed_as_the_configuration_says(tmp_path: Path) -> None:
    mig = {"input": "nvidia.com/mig-1g.5gb", "strategy": "Replace", "outputs": {"memory": "5Gi"}}
    write(tmp_path / "queues", cluster_queue("a"), configuration(resources={"transformations": [mig]}))

    used = run(simulate(tmp_path, "0,a,7 nvidia.com/mig-1g.5gb,3600,\n"))["use"]

    assert {row["flavor"]: row["held_chip_hours"] for row in used if row["held_chip_hours"]} == {"x memory": 35}


def test_lists_configmaps_and_json_are_read_and_names_of_local_queues_are_queues(tmp_path: Path) -> None:
    local = {"kind": "LocalQueue", "apiVersion": API, "metadata": {"name": "main", "namespace": "research"},
             "spec": {"clusterQueue": "a"}}  # fmt: skip
    urgent = {"kind": "WorkloadPriorityClass", "apiVersion": API, "metadata": {"name": "urgent"}, "value": 50}
    items = [cluster_queue("a", preemption={"withinClusterQueue": "LowerPriority"}), local, urgent]
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / "list.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    inner = yaml.safe_dump(configuration(fairSharing={}))
    write(tmp_path / "queues", {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kueue-manager-config"},
        "data": {"controller_manager_config.yaml": inner},
    })  # fmt: skip

    done = simulate(tmp_path, "0,a,8 nvidia.com/gpu,9000,\n60,research/main,8 nvidia.com/gpu,60,urgent\n")

    assert waits(run(done)) == {"a": 0}
    assert [row["evictions"] for row in run(done)["evictions"]] == [1]
    assert not [note for note in json.loads(done.stdout)["notes"] if "no Configuration" in note]


def test_objects_of_v1beta1_are_read(tmp_path: Path) -> None:
    old = cluster_queue("a", cohort="all", flavorFungibility={"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"})
    del old["spec"]["cohortName"]
    other = {**cluster_queue("b", cohort="all"), "apiVersion": "kueue.x-k8s.io/v1beta1"}
    del other["spec"]["cohortName"]
    write(tmp_path / "queues", {**old, "apiVersion": "kueue.x-k8s.io/v1beta1"}, other)

    assert waits(run(simulate(tmp_path, "0,a,16 nvidia.com/gpu,60,\n"))) == {"a": 0}  # borrows


def test_two_versions_are_compared(tmp_path: Path) -> None:
    half = {"x": {"nvidia.com/gpu": 4}}
    write(tmp_path / "queues", cluster_queue("a", half), cluster_queue("b", {"x": {"nvidia.com/gpu": 8}}))
    lending = cluster_queue("b", {"x": {"nvidia.com/gpu": 8}})
    lending["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = 0
    write(tmp_path / "before", cluster_queue("a", half), lending)

    done = simulate(tmp_path, "0,a,4 nvidia.com/gpu,7200,\n" * 3, "--against", str(tmp_path / "before"))

    document = json.loads(done.stdout)
    before, now = (waits(runs[0])["a"] for runs in (document["base"]["runs"], document["runs"]))
    assert now == 0
    assert before >= 2 * 7200


def test_what_is_not_played_is_named(tmp_path: Path) -> None:
    write(
        tmp_path / "queues",
        cluster_queue("checked", admissionChecksStrategy={"admissionChecks": [{"name": "dws"}]}),
        cluster_queue("shared", admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"}),
        cluster_queue("flavored", {"y-h100": FLAVORS["x"]}),
        {"kind": "ResourceFlavor", "apiVersion": API, "metadata": {"name": "y-h10"}},
        {"kind": "ResourceFlavor", "apiVersion": API, "metadata": {"name": "rack"}, "spec": {"topologyName": "t"}},
        {"kind": "AdmissionCheck", "apiVersion": API, "metadata": {"name": "far"},
         "spec": {"controllerName": "kueue.x-k8s.io/multikueue"}},
        configuration(waitForPodsReady={}, featureGates={"ConcurrentAdmission": True}),
    )  # fmt: skip

    notes = json.loads(simulate(tmp_path, "0,checked,1 nvidia.com/gpu,60,\n").stdout)["notes"]

    for part in (
        "Admission checks of ClusterQueues are not simulated: checked.",
        "Scopes of admission fair sharing of ClusterQueues are not simulated: shared.",
        "Topologies of ResourceFlavors are not simulated: rack.",
        "MultiKueue's AdmissionChecks are not simulated: far.",
        "waitForPodsReady of the Configuration is not simulated.",
        "Feature gates of the Configuration are not simulated: ConcurrentAdmission.",
        ("ResourceFlavors that are not in the manifests are assumed to exist: x, y-h100 (nearest: y-h10). In Kueue, a "
         "ClusterQueue with a missing flavor is inactive: its jobs never start."),
    ):  # fmt: skip
        assert part in notes


def test_machines_of_a_flavor_have_their_times_and_price(tmp_path: Path) -> None:
    write(tmp_path / "queues", cluster_queue("a", {"x": {"nvidia.com/gpu": 8}}))
    table = tmp_path / "machines.yaml"
    table.write_text("x: {arrive_minutes: {median: 10}, usd_an_hour: 2}\n", encoding="utf-8")

    played = run(simulate(tmp_path, "0,a,8 nvidia.com/gpu,3600,\n", "--machines", str(table)))
    table.write_text("y: {}\n", encoding="utf-8")
    wrong = simulate(tmp_path, "0,a,8 nvidia.com/gpu,3600,\n", "--machines", str(table))
    table.write_text("x: {usd_per_hour: 2}\n", encoding="utf-8")
    misspelt = simulate(tmp_path, "0,a,8 nvidia.com/gpu,3600,\n", "--machines", str(table))

    assert waits(played) == {"a": 600}
    cost_of_the_hour = 8 * 2
    assert [row["usd_a_day"] for row in played["flavors"]] == [
        pytest.approx(cost_of_the_hour * 86_400 / (600 + 3600), rel=1e-3)
    ]
    assert (wrong.exit_code, misspelt.exit_code) == (2, 2)
    assert "'y' is not a flavor. Allowed: x." in wrong.stderr
    assert "Nearest: usd_an_hour" in misspelt.stderr


def test_a_table_of_machines_has_flavors_of_both_sides_of_a_comparison(tmp_path: Path) -> None:
    write(tmp_path / "queues", cluster_queue("a", {"new": {"nvidia.com/gpu": 8}}))
    write(tmp_path / "before", cluster_queue("a", {"old": {"nvidia.com/gpu": 8}}))
    table = tmp_path / "machines.yaml"
    table.write_text("new: {usd_an_hour: 1}\nold: {usd_an_hour: 2}\n", encoding="utf-8")
    options = ("--machines", str(table), "--against", str(tmp_path / "before"))

    done = simulate(tmp_path, "0,a,8 nvidia.com/gpu,86400,\n", *options)

    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    costs = [side[0]["flavors"][0]["usd_a_day"] for side in (document["runs"], document["base"]["runs"])]
    assert costs == [pytest.approx(8 * 24, rel=1e-3), pytest.approx(2 * 8 * 24, rel=1e-3)]


def test_machines_in_use_all_the_time_cost_their_price_for_24_hours_a_day(tmp_path: Path) -> None:
    write(tmp_path / "queues", cluster_queue("a", {"a100": {"nvidia.com/gpu": 16}}))
    table = tmp_path / "machines.yaml"
    table.write_text("a100: {usd_an_hour: 1}\n", encoding="utf-8")
    rows = "0,a,16 nvidia.com/gpu,86400,\n3600,a,16 nvidia.com/gpu,86400,\n"

    played = run(simulate(tmp_path, rows, "--machines", str(table)))

    assert [row["usd_a_day"] for row in played["flavors"]] == [pytest.approx(16 * 24, rel=1e-3)]


def test_flavors_without_a_price_are_named_beside_the_cost(tmp_path: Path) -> None:
    flavors = {"spot": {"nvidia.com/gpu": 8, "cpu": 64}, "own": {"nvidia.com/gpu": 8, "cpu": 64}}
    write(tmp_path / "queues", cluster_queue("a", flavors))
    table = tmp_path / "machines.yaml"
    table.write_text("spot: {usd_an_hour: 1}\n", encoding="utf-8")
    rows = "0,a,8 nvidia.com/gpu 1 cpu on spot,3600,\n"

    priced = simulate(tmp_path, rows, "--machines", str(table))
    both = simulate(tmp_path, rows + "0,a,8 nvidia.com/gpu 1 cpu on own,3600,\n", "--machines", str(table))

    note = "Not included, because no price is known: own."
    assert note in json.loads(both.stdout)["headlines"]
    assert not [line for line in json.loads(priced.stdout)["headlines"] if "no price" in line]


def test_the_report_names_the_assumed_checkpoints(tmp_path: Path) -> None:
    write(tmp_path / "queues", cluster_queue("a"))

    done = simulate(tmp_path, "0,a,8 nvidia.com/gpu,3600,\n", "--format", "text")

    assert "jobs without a checkpoint column are assumed to save a checkpoint every hour" in done.stdout


@pytest.mark.parametrize("form", ["text", "html"])
def test_amounts_of_cpus_and_memory_are_not_called_chips(tmp_path: Path, form: str) -> None:
    write(tmp_path / "queues", cluster_queue("a"))

    done = simulate(tmp_path, "0,a,8 nvidia.com/gpu 8 cpu 1Gi memory,3600,\n", "--format", form)

    assert "resource-hours" in done.stdout
    assert "quota" in done.stdout.lower()
    assert not [line for line in done.stdout.splitlines() if "chip" in line.lower() and "id=" not in line]


def test_rows_name_resources_flavors_and_queues_that_exist(tmp_path: Path) -> None:
    write(tmp_path / "queues", cluster_queue("a", {"x": {"nvidia.com/gpu": 8}, "y": {"nvidia.com/gpu": 8}}))
    rows = "".join(
        f"0,{team},{needs},60,\n"
        for team, needs in (
            ("a", "2 y"), ("a", "2 nvidia.com/gpu on x or y"), ("b", "1 x"), ("a", "1 amd.com/gpu"), ("a", "x"),
            ("a", "1 nvidia.com/gpu on z"), ("a", "some nvidia.com/gpu"),
        )
    )  # fmt: skip

    done = simulate(tmp_path, rows)

    assert done.exit_code == 1
    for part in (
        "4:3: team: 'b' is not a team", "5:5: needs: 'amd.com/gpu' is not a resource with quota in a",
        "6:5: needs: 'x' is not a request", "7:5: needs: 'z' is not a flavor in a",
        "8:5: needs: 'some' is not a quantity",
    ):  # fmt: skip
        assert part in done.stderr
    (row,) = (row for row in json.loads(done.stdout)["runs"][0]["waits"] if row["flavor"] == "all flavors")
    assert row["jobs"] == 2
    assert json.loads(done.stdout)["notes"][-2] == f"Left out of {tmp_path}/trace.csv: 5 unusable rows."


def spoiled(path: str, value: object) -> dict[str, Any]:
    """Return a ClusterQueue with another value at a path of its spec; None takes the key away."""
    queue = cluster_queue("a", {"x": {"nvidia.com/gpu": 8}})
    *above, last = path.split(".")
    place: Any = queue["spec"]
    for key in above:
        place = place[int(key) if key.isdecimal() else key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return queue


FLAVOR = "resourceGroups.0.flavors.0"


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([{"kind": "Pod", "apiVersion": "v1"}], "has no ClusterQueue"),
        ([spoiled(f"{FLAVOR}.resources.0.nominalQuota", "8 GPUs")], "nominalQuota is '8 GPUs'. Allowed: a quantity"),
        (
            [spoiled(f"{FLAVOR}.resources.0.nominalQuota", -3)],
            ":14: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota is '-3'. Allowed: a quantity of 0 or",
        ),
        ([spoiled(f"{FLAVOR}.resources.0.name", "cpu")], "flavor x has quota for cpu, not for nvidia.com/gpu"),
        ([spoiled(f"{FLAVOR}.resources", None)], "needs a value for spec.resourceGroups[0].flavors[0].resources"),
        ([cluster_queue("a", cohortName="", resourceGroups=[{
            "coveredResources": ["nvidia.com/gpu"],
            "flavors": [{
                "name": "x",
                "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8, "lendingLimit": 1}],
            }],
        }])], "has a lendingLimit, but the object is in no cohort"),
        ([spoiled(f"{FLAVOR}.resources.0.lendinglimit", "1")], "resources[0].lendinglimit. Allowed: borrowingLimit,"),
        ([cluster_queue("a", admissionChecks=["b"])], "no field spec.admissionChecks. Allowed: adm"),
        ([cluster_queue("a", preemption={"reclaimWithinCohort": "any"})], "is 'any'. Allowed: Any, LowerPriority, "),
        ([cluster_queue("a", stopPolicy="hold")], "spec.stopPolicy is 'hold'. Allowed: Hold, HoldAndDrain, None."),
        ([cluster_queue("a", resourceGroups=[{"coveredResources": ["cpu"], "flavors": None}])], "needs a value for"),
        ([{**cluster_queue("a"), "apiVersion": "kueue.x-k8s.io/v1alpha1"}], "is not supported. Allowed: v1beta1, "),
        (
            [cluster_queue("a"), *(
                {"kind": "Cohort", "apiVersion": API, "metadata": {"name": f"c{number}"},
                 "spec": {"parentName": f"c{number + 1}"}}
                for number in range(3000)
            )], "Cohort c0 has more than 50 ancestors",
        ),
        (
            [cluster_queue("a", cohortName="b", resourceGroups=[{
                "coveredResources": ["nvidia.com/gpu"],
                "flavors": [{
                    "name": "x",
                    "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8, "lendingLimit": 9}],
                }],
            }])],
            "nvidia.com/gpu of flavor x lends more than its nominalQuota",
        ),
        ([spoiled("resourceGroups", 5)], "ClusterQueue a: "),
        ([spoiled("fairSharing", {"weight": "x"})], "ClusterQueue a: 'x' is not a quantity"),
        ([cluster_queue("a"), cluster_queue("a", cohortName="b")], "ClusterQueue a is also at"),
        ([cluster_queue("")], "ClusterQueue has no metadata.name"),
        (
            [cluster_queue("a"), *(
                {"kind": "Cohort", "apiVersion": API, "metadata": {"name": name}, "spec": {"parentName": above}}
                for name, above in (("p", "q"), ("q", "p"))
            )], "Cohort p is its own ancestor: p < q < p",
        ),
        (
            [cluster_queue("a"), {"kind": "WorkloadPriorityClass", "apiVersion": API, "metadata": {"name": "p"}}],
            "WorkloadPriorityClass of v1beta2 needs a value for value.",
        ),
        ([cluster_queue("a", cohortName=["b"])], "spec.cohortName is not a string."),
        ([cluster_queue("a", {5: FLAVORS["x"]})], "spec.resourceGroups[0].flavors[0].name is not a string."),
    ],
    ids=range(22),
)  # fmt: skip
def test_manifests_that_kueue_would_refuse_end_with_2(tmp_path: Path, objects: list[Any], message: str) -> None:
    write(tmp_path / "queues", *objects)

    done = simulate(tmp_path, "0,a,1 nvidia.com/gpu,60,\n")

    assert done.exit_code == 2, done.exception
    assert message in done.stderr


@pytest.mark.parametrize(
    ("kind", "version", "nearest"),
    [
        ("ClusterQuue", API, "ClusterQueue"),
        ("ResourceFlavr", API, "ResourceFlavor"),
        ("WorkloadPriorityClas", API, "WorkloadPriorityClass"),
        ("Configuraton", "config.kueue.x-k8s.io/v1beta2", "Configuration"),
    ],
)
def test_a_misspelt_kind_is_refused_where_it_is(tmp_path: Path, kind: str, version: str, nearest: str) -> None:
    misspelt = {"kind": kind, "apiVersion": version, "metadata": {"name": "b"}}
    folder = write(tmp_path / "queues", cluster_queue("a"))
    write(folder, {"kind": "Workload", "apiVersion": API, "metadata": {"name": "w"}}, misspelt, name="other.yaml")

    done = simulate(tmp_path, "0,a,1 nvidia.com/gpu,60,\n")

    assert done.exit_code == 2, done.output
    assert f"other.yaml:6: {kind!r} is not a kind of Kueue. Allowed: AdmissionCheck, " in done.stderr
    assert f" Nearest: {nearest}." in done.stderr


def test_a_local_queue_of_no_cluster_queue_is_noted_at_its_line(tmp_path: Path) -> None:
    local = {"apiVersion": API, "kind": "LocalQueue", "metadata": {"name": "main", "namespace": "lab"}}
    write(tmp_path / "queues", cluster_queue("speech"))
    write(tmp_path / "queues", {**local, "spec": {"clusterQueue": "speach"}}, name="local.yaml")

    done = simulate(tmp_path, "0,lab/main,1 nvidia.com/gpu,60,\n0,speech,1 nvidia.com/gpu,60,\n")

    assert done.exit_code == 1, done.output  # the row of the lost queue
    message = "LocalQueue main: 'speach' is not a ClusterQueue, so its jobs never start. Allowed: speech. Nearest: "
    assert f"local.yaml:7: {message}speech." in " ".join(done.output.split())


@pytest.mark.parametrize("text", ["a: [", "kind: ClusterQueue\n\t", "\ufeff{"])
def test_a_file_that_is_no_yaml_ends_with_2_and_names_the_place(tmp_path: Path, text: str) -> None:
    write(tmp_path / "queues", cluster_queue("a"))
    (tmp_path / "queues" / "broken.yml").write_text(text, encoding="utf-8")

    done = simulate(tmp_path, "0,a,1 nvidia.com/gpu,60,\n")

    assert done.exit_code == 2
    assert "broken.yml:" in done.stderr


def test_a_cohort_may_lend_more_than_its_own_quota(tmp_path: Path) -> None:
    rows = [{"name": "nvidia.com/gpu", "nominalQuota": 0, "lendingLimit": 4}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "x", "resources": rows}]}]
    spec = {"parentName": "all", "resourceGroups": groups}
    cohort = {"kind": "Cohort", "apiVersion": API, "metadata": {"name": "lab"}, "spec": spec}
    write(tmp_path / "queues", cluster_queue("a", cohortName="lab"), cohort)

    done = simulate(tmp_path, "0,a,1 nvidia.com/gpu,60,\n")

    assert done.exit_code == 0, done.output


def test_workloads_are_a_trace_that_requests_all_of_their_resources(tmp_path: Path) -> None:
    usage = {"nvidia.com/gpu": "4", "cpu": "8500m"}
    sets = [{"flavors": dict.fromkeys(usage, "x"), "resourceUsage": usage}, {"resourceUsage": {"cpu": "1"}}]
    times = {"Admitted": "2026-10-01T10:00:00Z", "Finished": "2026-10-01T10:30:00Z"}
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": moment} for kind, moment in times.items()]
    item = {
        "metadata": {"name": "w", "creationTimestamp": "2026-10-01T09:00:00Z"}, "spec": {},
        "status": {"conditions": conditions, "admission": {"clusterQueue": "a", "podSetAssignments": sets}},
    }  # fmt: skip
    (tmp_path / "workloads.json").write_text(json.dumps({"items": [item]}), encoding="utf-8")
    write(tmp_path / "queues", cluster_queue("a"))

    command = [str(tmp_path / "queues"), str(tmp_path / "workloads.json"), "--format", "json"]
    used = run(CliRunner().invoke(kueue_model, command))["use"]

    assert {row["flavor"]: row["held_chip_hours"] for row in used} == {
        "x nvidia.com/gpu": 2,
        "x cpu": 4.75,
        "x memory": 0,
    }


@pytest.mark.parametrize(
    ("levels", "message"),
    [(500, "deep.yaml:1:101: cannot be read: more than 100 levels."), (50_000, "cannot be read: ")],
)
def test_a_file_that_is_nested_too_deeply_ends_with_2(levels: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / "deep.yaml").write_text("[" * levels)

    done = simulate(tmp_path, "0,a,1 nvidia.com/gpu,60,\n")

    assert done.exit_code == 2
    assert message in done.stderr


def test_a_date_that_does_not_exist_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / "date.yaml").write_text("created: 2026-13-45\n")

    done = simulate(tmp_path, "0,a,1 nvidia.com/gpu,60,\n")

    assert done.exit_code == 2
    assert "date.yaml: cannot be read: month must be in 1..12." in done.stderr


def test_fields_and_enums_are_those_of_kueue_s_definitions() -> None:
    folder = ROOT.parent / "shared" / "schemas" / "kueue"
    if not folder.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")

    assert TARGET.read_text(encoding="utf-8") == kinds(folder)


@pytest.mark.parametrize(
    ("resource", "quantity", "counted"),
    [("nvidia.com/gpu", "8", 8), ("nvidia.com/gpu", "1e2", 100), ("cpu", "1500m", 1500), ("cpu", "2e1", 20_000)],
)
def test_quantities_are_counted_as_kueue_does(resource: str, quantity: str, counted: int) -> None:
    assert amount(resource, quantity) == counted


def test_cpus_that_no_queue_can_have_are_told_in_cpus(tmp_path: Path) -> None:
    write(tmp_path / "queues", cluster_queue("a"), configuration())

    document = run(simulate(tmp_path, "0,a,1 nvidia.com/gpu 65500m cpu,100,\n"))

    assert "needs 65.5, but the queue can use at most 64" in json.dumps(document)
