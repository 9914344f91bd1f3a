"""Traces: the meaning of rows, and messages about unreadable ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from kueue_model import Cluster, Pods, Trace, read_trace
from tests.parts.simulate.clusters import cluster, sections, shares
from training_platform.cli.main import app
from training_platform.config.reading.finding import UserError

GPU = "nvidia.com/gpu"
TPU = "google.com/tpu"
TEAMS = {"vision": shares(h100_reservation=8, h100_spot=8, tpu_v5e_4x4=16), "nlp": shares(h100_reservation=8)}


@pytest.fixture(scope="module")
def queues() -> Cluster:
    return cluster(TEAMS)


def read(tmp_path: Path, queues: Cluster, text: str) -> Trace:
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return read_trace(path, [queues])


def test_a_row_is_a_job_from_the_first_moment_on(tmp_path: Path, queues: Cluster) -> None:
    text = """submitted,team,needs,seconds,priority,checkpoint,job
2026-11-01T10:00:00Z,nlp,8 h100,60,1000000000,,later
2026-11-01T09:30:00Z,vision,16 tpu-v5e-4x4 + 2 h100,7200,-5,600,first
"""
    first, later = read(tmp_path, queues, text).jobs

    assert (first.name, first.submitted, first.cluster, first.priority) == ("first", 0, "main", -5)
    assert (first.seconds, first.checkpoint, first.chips) == (7200, 600, 16 + 2)
    assert first.pods == (Pods(TPU, 16), Pods(GPU, 2))
    assert (later.submitted, later.priority, later.pods) == (30 * 60, 1_000_000_000, (Pods(GPU, 8),))


def test_a_named_flavor_is_the_only_one_used(tmp_path: Path, queues: Cluster) -> None:
    (job,) = read(tmp_path, queues, "submitted,team,needs,seconds\n0,vision,8 h100-spot,60\n").jobs

    assert job.pods == (Pods(GPU, 8, frozenset({"h100-spot"})),)


def test_all_bad_rows_are_reported_at_once_with_line_and_column(tmp_path: Path, queues: Cluster) -> None:
    text = """submitted,team,needs,seconds
0,visin,8 h100,60
0,vision,8 h200,60
0,vision,12 tpu-v5e-4x4,60
soon,vision,8 h100,60
0,vision,8 h100,-1
0,vision,8 h100,60
0,vision,8 h100,60,more
0,nlp,8 h100-spot,60
0,vision,0 h100,60
"""
    trace = read(tmp_path, queues, text)

    assert [finding.one_line.removeprefix(f"{tmp_path}/") for finding in trace.findings] == [
        "trace.csv:2:3: team: 'visin' is not a team with a share. Allowed: nlp, vision. Nearest: vision",
        (
            "trace.csv:3:10: needs: 'h200' is not an accelerator or flavor of a share of vision in main. "
            "Allowed: h100, h100-reservation, h100-spot, tpu-v5e, tpu-v5e-4x4. Nearest: h100"
        ),
        "trace.csv:4:10: needs: 12 chips are not whole slices of tpu-v5e-4x4. Allowed: a multiple of 16. Nearest: 16",
        (
            "trace.csv:5:1: submitted: 'soon' is not a point in time. "
            "Allowed: 2026-11-01T09:30:00Z, or a number of seconds."
        ),
        "trace.csv:6:17: seconds: '-1' is not a number of seconds. Allowed: at least 0.001 and up to ten years.",
        "trace.csv:8:1: has 1 more cells than the header. Allowed: a cell for each column of the header.",
        (
            "trace.csv:9:7: needs: 'h100-spot' is not an accelerator or flavor of a share of nlp in main. "
            "Allowed: h100, h100-reservation. Nearest: h100"
        ),
        (
            "trace.csv:10:10: needs: '0' is not a number of chips or GPUs. Allowed: a number and an accelerator or a "
            "flavor, such as 8 h100."
        ),
    ]
    assert len(trace.jobs) == 1


@pytest.mark.parametrize(
    "row",
    [
        "0,vision,8 h100,60,--5",
        f"0,vision,{'9' * 5000} h100,60,",
        f"0,vision,8 h100,60,{'9' * 5000}",
        "0,vision,8 h100,60,1000000001",
        f"{'9' * 400},vision,8 h100,60,",
        "nan,vision,8 h100,60,",
        "0,vision,8 h100,inf,",
        "0,vision,8 h100,1e-300,",
        '0,vision,"8 h100,60,',
        f"0,vision,8 h100,60,{'x' * 140_000}",
        "0,vision,\xff\xfe,60,",
    ],
)
def test_a_bad_row_is_the_only_one_left_out(tmp_path: Path, queues: Cluster, row: str) -> None:
    path = tmp_path / "trace.csv"
    text = f"submitted,team,needs,seconds,priority\n0,vision,8 h100,60,\n{row}\n0,nlp,8 h100,60,\n"
    path.write_bytes(text.encode("latin-1"))

    trace = read_trace(path, [queues])

    assert [finding.position.line for finding in trace.findings if finding.position] == [3]
    assert [job.team for job in trace.jobs] == ["vision", "nlp"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("submitted,team,needs,seconds,team", "has 'team' more than once"),
        ("submitted,team,seconds", "the header of a trace needs needs."),
        ("submitted,tem,needs,seconds", "'tem' is not a column of a trace"),
        ("", "the header of a trace needs"),
    ],
)
def test_an_invalid_header_is_reported(tmp_path: Path, queues: Cluster, header: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path, queues, f"{header}\n0,a,b,c\n")


def test_the_command_makes_a_trace_of_jobs_a_week_with_hours_of_the_median_job(tmp_path: Path, queues: Cluster) -> None:
    result = CliRunner().invoke(app, ["trace", "make", "vision:8 h100:70:1.5:high", "--days", "140"])

    jobs = read(tmp_path, queues, result.stdout).jobs
    assert len(jobs) == pytest.approx(70 * 20, rel=0.1)
    assert sorted(job.seconds for job in jobs)[len(jobs) // 2] == pytest.approx(1.5 * 3600, rel=0.15)
    assert {job.priority for job in jobs} == {100}


def run(repository: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *arguments, "--root", str(repository)])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: training-platform\nruntime: python\n", encoding="utf-8")
    for name, text in sections(TEAMS).items():
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    rows = "".join(f"{number * 600},vision,8 h100,7200\n" for number in range(12))
    (tmp_path / "trace.csv").write_text(f"submitted,team,needs,seconds\n{rows}", encoding="utf-8")
    return tmp_path


def test_a_change_is_compared_with_the_files_of_a_commit(repository: Path) -> None:
    def git(*arguments: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *names, *arguments], cwd=repository, check=True, capture_output=True)

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "one")
    without_spot = {**TEAMS, "vision": shares(h100_reservation=8)}
    (repository / "stacks" / "Pulumi.lab-vision.yaml").write_text(sections(without_spot)["lab-vision"])

    done = run(repository, str(repository / "trace.csv"), "--base", "HEAD", "--format", "markdown")

    assert done.exit_code == 0, done.output
    assert "Nine of ten jobs of vision in main wait" in done.output
    assert "a day less." in done.output  # no spot VMs any more
    assert " → " in done.output


def test_several_runs_have_figures_each_and_bad_rows_end_with_1(repository: Path) -> None:
    with (repository / "trace.csv").open("a", encoding="utf-8") as file:
        file.write("0,visin,8 h100,60\n")

    done = run(repository, str(repository / "trace.csv"), "--runs", "3", "--format", "json")

    assert done.exit_code == 1
    assert "'visin' is not a team" in done.stderr
    assert len(json.loads(done.stdout)["runs"]) == 3


def changed(repository: Path, changes: str, more_rows: str = "") -> Result:
    rows = "0,nlp,16 h100,36000,a\n3600,nlp,16 h100,3600,b\n7200,nlp,16 h100,3600,c\n"
    (repository / "held.csv").write_text(f"submitted,team,needs,seconds,job\n{rows}{more_rows}", encoding="utf-8")
    (repository / "changes.csv").write_text(changes, encoding="utf-8")
    return run(
        repository, str(repository / "held.csv"), "--changes", str(repository / "changes.csv"), "--format", "json"
    )


def test_a_job_with_another_priority_starts_before_others(repository: Path) -> None:
    done = changed(repository, "moment,job,priority\n10000,c,high\n")

    evictions = json.loads(done.stdout)["runs"][0]["evictions"]
    assert [(row["team"], row["evicts"], row["evictions"]) for row in evictions] == [("nlp", "nlp", 1)]


def test_all_mistakes_of_changes_are_reported(repository: Path) -> None:
    rows = "soon,nlp,Hold,,\n0,nlp,Hld,,\n0,nlpp,Hold,,\n0,,,x,5\n0,,,a,hgh\n0,nlp,Hold,a,5\n"

    done = changed(repository, f"moment,team,hold,job,priority\n{rows}")
    header = changed(repository, "moment,teams\n")

    assert done.exit_code == header.exit_code == 2
    for part in (
        ":2: moment: 'soon' is not a point in time",
        ":3: hold: 'Hld' is not a stop policy. Allowed: None, Hold, HoldAndDrain. Nearest: Hold",
        ":4: team: 'nlpp' is not a team", ":5: job: 'x' is not a job", ":6: priority: 'hgh' is not a priority",
        ":7: team: a change applies either to a team's queue or to a job",
    ):  # fmt: skip
        assert part in done.stderr
    assert "changes.csv:1: the header needs the column moment" in header.stderr


def test_plots_are_files_that_any_reader_shows_with_the_chips_of_each_flavor(repository: Path) -> None:
    rows = "".join(f"{number * 600},nlp,16 h100,7200\n" for number in range(12))
    (repository / "busy.csv").write_text(f"submitted,team,needs,seconds\n{rows}", encoding="utf-8")

    done = run(repository, str(repository / "busy.csv"), "--plots", str(repository / "plots"))

    texts = {path.name: path.read_text(encoding="utf-8") for path in (repository / "plots").iterdir()}
    files = {name: ElementTree.fromstring(text) for name, text in texts.items()}  # noqa: S314 # our own
    assert done.exit_code == 0, done.output
    assert sorted(files) == ["chips-main-h100-reservation.svg", "waits-main-nlp.svg"]
    for drawing in files.values():
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        assert drawing.findall(".//{http://www.w3.org/2000/svg}polyline")
    labels = [row.text for row in files["waits-main-nlp.svg"].iter("{http://www.w3.org/2000/svg}text")]
    last_wait = (11 * 7200 + 11 - 11 * 600) / 3600  # each after the one before, a second later
    assert labels[0] == f"{last_wait:.3g}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--environment", "lap"], "'lap' is not an environment: lab. Nearest: lab."),
        (["--machines", "missing.yaml"], "missing.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_played_ends_with_2(repository: Path, arguments: list[str], message: str) -> None:
    done = run(repository, str(repository / "trace.csv"), *arguments)

    assert done.exit_code == 2
    assert message in done.stderr


def test_all_mistakes_of_a_machines_file_are_reported(repository: Path) -> None:
    machines = repository / "machines.yaml"
    machines.write_text("spt: {}\nspot: {lost_hours: {mean: 0}}\nflex-start: {arrive_minutes: {p90: 5}}\n")

    done = run(repository, str(repository / "trace.csv"), "--machines", str(machines))

    assert done.exit_code == 2
    assert "machines.yaml:1:1: spt: 'spt' is not one of the allowed values" in done.stderr
    assert "reservation. Nearest: spot" in done.stderr
    assert "machines.yaml:2:21: spot.lost_hours.mean: is 0" in done.stderr
    assert "machines.yaml:3:14: flex-start.arrive_minutes: p90 is below the median" in done.stderr
