"""Chip-hours of teams: reading them, budgets that are nearly or fully used up, and the holds that follow."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from local_google_cloud.api import LocalCloud, serve
from tests.support.lab import TODAY, VISION, write_lab
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.cli.main import app
from training_platform.config.reading.finding import Finding, UserError
from training_platform.config.workspace import read_workspace
from training_platform.quota.chip_hours import hours_of, month_after, month_before, question, read_usages
from training_platform.quota.snapshot import read_snapshots

BUDGET = "    monthly_chip_hours: {gpus: 1000}\n"
LEDGER = "stacks/usage/lab.yaml"
OURS = "  # gpus: chip-hours of 2026-11 are used up"


class Monitored(LocalCloud):
    """A local cloud whose managed Prometheus has these hours by cluster, queue and flavor, and by the day asked for."""

    def __init__(self, root: Path) -> None:
        super().__init__(read_snapshots(root, TODAY).by_project)
        self.hours: dict[str, dict[tuple[str, str, str], float]] = {}
        self.disputed: dict[tuple[str, str, str], float] = {}
        self.requests: list[dict[str, str]] = []

    def handle(
        self, service: str, verb: str, path: str, query: Sequence[tuple[str, str]], body: Any, **options: Any
    ) -> tuple[int, dict[str, Any]]:
        """Answer a query of PromQL; everything else as the local cloud does."""
        if (service, path) != ("monitoring", "v1/projects/example-lab/location/global/prometheus/api/v1/query"):
            return super().handle(service, verb, path, query, body, **options)
        self.requests.append(body)
        names = ("cluster", "cluster_queue", "flavor")
        of_month = self.hours.get(body["time"][:10], {})
        if " - min by" in body["query"]:
            of_month = {key: n for key, n in self.disputed.items() if key in of_month}
        rows = [{"metric": dict(zip(names, key, strict=True)), "value": [0, str(n)]} for key, n in of_month.items()]
        return 200, {"status": "success", "data": {"resultType": "vector", "result": rows}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_lab(tmp_path / "lab", lab_vision=VISION + BUDGET)


@pytest.fixture
def cloud(root: Path) -> Iterator[Monitored]:
    cloud = Monitored(root)
    with serve(cloud) as port:
        cloud.port = port  # type: ignore[attr-defined]
        yield cloud


def usage(root: Path, cloud: Any, *arguments: str) -> Result:
    where = ["--root", str(root), "--local-cloud", f"http://127.0.0.1:{cloud.port}"]
    return CliRunner().invoke(app, ["job", "usage", *where, *arguments])


def ledger(root: Path, used: float, month: str = "2026-11", before: float = 0, read: str = "2026-11-21") -> None:
    """Write a ledger in which team vision used some of both flavors of its cluster."""
    (root / "stacks" / "usage").mkdir(exist_ok=True)
    hours = {month: {"vision": {"gpus": {"h100": used - 1, "a100-40": 1}}}}
    hours[month_before(month)] = {"vision": {"gpus": {"h100": before}}}
    (root / LEDGER).write_text(json.dumps({"read": f"{read}T03:17:00Z", "months": hours}))


def chip_hour_findings(root: Path, today: date = TODAY) -> list[Finding]:
    report = run_check(root, CheckOptions(today=today))
    return [finding for finding in report.all_findings() if finding.rule.startswith("chip-hours")]


def line_of(root: Path, text: str, file: str = "stacks/Pulumi.lab-vision.yaml") -> int:
    rows = (root / file).read_text().splitlines()
    return next(number for number, row in enumerate(rows, 1) if text in row)


@pytest.mark.parametrize(
    ("used", "hold", "says", "severity"),
    [
        (799, "", None, None), (800, "", "(80%)", "note"), (999, "", "(100%)", "note"), (1000, "", "(100%)", "warning"),
        (1000, "    hold: {gpus: Hold}\n", ", and is held", "note"),
        (1000, f"    hold: {{gpus: Hold}}{OURS}\n", ", and is held until 2026-12-01", "note"),
    ],
)  # fmt: skip
def test_a_budget_is_named_from_four_fifths_on_and_warns_where_nothing_is_held(
    root: Path, used: float, hold: str, says: str | None, severity: str | None
) -> None:
    ledger(root, used)
    file = root / "stacks" / "Pulumi.lab-vision.yaml"
    file.write_text(file.read_text() + hold)

    findings = chip_hour_findings(root)

    assert [finding.severity for finding in findings] == ([] if says is None else [severity])
    for finding in findings:
        assert finding.message.endswith(str(says))
        assert finding.position is not None
        assert finding.position[0] == line_of(root, "monthly_chip_hours")
        assert (finding.nearest is not None) == (severity == "warning")


def test_a_budget_without_a_fresh_reading_says_so(root: Path) -> None:
    never = chip_hour_findings(root)
    ledger(root, 1, read="2026-11-18")
    fresh = chip_hour_findings(root)
    ledger(root, 1, read="2026-11-17")
    old = chip_hour_findings(root)

    assert [finding.rule for finding in (*never, *old)] == ["chip-hours-ledger"] * 2
    assert "never read" in never[0].message
    assert "last read on 2026-11-17" in old[0].message
    assert fresh == []


def test_a_wrong_ledger_is_found_at_its_line(root: Path) -> None:
    (root / "stacks" / "usage").mkdir()
    text = 'read: "2026-11-21T03:17:00Z"\nmonths:\n  "2026-13": {}\n  "2026-11":\n    vision: {gpus: {h100: -1}}\n'
    (root / LEDGER).write_text(text)

    places = {(finding.file, finding.position[0] if finding.position else 0) for finding in chip_hour_findings(root)}

    assert places == {(LEDGER, 3), (LEDGER, 5)}


def test_a_reading_writes_the_ledger_and_prints_a_hold_that_git_applies(root: Path, cloud: Monitored) -> None:
    subprocess.run(["git", "init", "-q", root], check=True)
    cloud.hours["2026-11-21"] = {
        ("lab-gpus", "vision", "h100"): 1023.46, ("lab-gpus", "nlp", "h100"): 5, ("other", "vision", "h100"): 9,
    }  # fmt: skip
    cloud.hours["2026-11-21"] |= {("lab-tpus", "vision", "tpu-v5e-4x8"): 64}

    result = usage(root, cloud)

    assert result.exit_code == 0, result.output
    usages = read_usages(root)
    team = next(team for _, team, _ in read_workspace(root).teams() if team.name == "vision")
    assert usages.hours(team, "2026-11") == {"gpus": {"h100": 1023.5}, "tpus": {"tpu-v5e-4x8": 64.0}}
    assert "warning stacks/Pulumi.lab-vision.yaml" in result.stderr
    assert "1,024 of its 1,000" in result.stderr
    subprocess.run(["git", "-C", root, "apply"], input=result.stdout, text=True, check=True)
    after = next(team for _, team, _ in read_workspace(root).teams() if team.name == "vision")
    assert after.hold == {"gpus": "Hold"}
    assert OURS in result.stdout
    assert usage(root, cloud).stdout == ""  # it is held already

    file = root / "stacks" / "Pulumi.lab-vision.yaml"
    file.write_text(file.read_text().replace("gpus: 1000", "gpus: 2000"))
    raised = usage(root, cloud)
    assert "has used only 1,024 of its 2,000 chip-hours of 2026-11" in raised.stderr
    subprocess.run(["git", "-C", root, "apply"], input=raised.stdout, text=True, check=True)
    assert next(team for _, team, _ in read_workspace(root).teams() if team.name == "vision").hold == {}


@pytest.mark.parametrize(
    ("november", "december", "lifted"), [(1000, 10, True), (1000, 999, True), (1000, 1000, False), (0, 10, True)]
)
def test_a_new_month_lifts_the_hold_of_the_last_one(
    root: Path, cloud: Monitored, november: int, december: int, *, lifted: bool
) -> None:
    subprocess.run(["git", "init", "-q", root], check=True)
    file = root / "stacks" / "Pulumi.lab-vision.yaml"
    free = file.read_text()
    file.write_text(free + f"    hold:\n      gpus: Hold{OURS}\n")
    (root / "stacks" / "clock.yaml").write_text('today: "2026-12-02"\n')
    key = ("lab-gpus", "vision", "h100")
    cloud.hours = {"2026-12-01": {key: november}, "2026-12-02": {key: december}}

    result = usage(root, cloud)

    hold_position = f"{line_of(root, 'gpus: Hold')}:"
    assert result.exit_code == 0, result.output
    assert (f"Pulumi.lab-vision.yaml:{hold_position}" in result.stderr) is lifted
    assert (result.stdout != "") is lifted
    if lifted:
        subprocess.run(["git", "-C", root, "apply"], input=result.stdout, text=True, check=True)
        assert file.read_text() == free


def test_a_month_is_asked_for_once_it_has_samples(root: Path) -> None:
    home = read_workspace(root).stacks["lab"].environment
    assert home is not None
    begin = datetime(2027, 1, 1, tzinfo=UTC)

    assert question(home, "lab", "2027-01", begin.replace(minute=4)) is None
    assert question(home, "lab", "2027-01", begin.replace(minute=5)) is not None
    assert (month_before("2027-01"), month_after("2026-12")) == ("2026-12", "2027-01")


def test_prometheus_sums_the_leaders_usage_of_accelerators_in_steps_of_five_minutes(root: Path) -> None:
    """``tests/kube/test_metrics.py`` asks this of a real Kueue's metrics."""
    home = read_workspace(root).stacks["lab"].environment
    assert home is not None

    query = question(home, "lab", "2027-01", datetime(2027, 1, 1, 1, tzinfo=UTC))

    held = (
        'kueue_cluster_queue_resource_usage{replica_role!="follower",cluster=~"lab-tpus|lab-gpus",'
        'resource=~"nvidia.com/gpu|google.com/tpu"}'
    )
    keys = "(cluster, cluster_queue, flavor, resource)"
    one_of_replicas, other = (f"{pick} by {keys} ({held})" for pick in ("max", "min"))
    assert query is not None
    for asks, chips in ((query.expr, one_of_replicas), (query.disputed, f"({one_of_replicas} - {other})")):
        assert asks == f"sum by (cluster, cluster_queue, flavor) (sum_over_time({chips}[{60 * 60}s:5m])) / {60 // 5}"


@pytest.mark.parametrize(
    ("hours", "disputed", "code"), [(1000, 20, 0), (1000, 20.1, 2), (100, 10, 0), (100, 10.1, 2), (1000, 990, 2)]
)
def test_series_that_disagree_by_more_than_a_new_leader_explains_stop_the_ledger(
    root: Path, cloud: Monitored, hours: float, disputed: float, code: int
) -> None:
    key = ("lab-gpus", "vision", "h100")
    cloud.hours = {"2026-11-21": {key: hours}}
    cloud.disputed = {key: disputed}

    result = usage(root, cloud)

    assert result.exit_code == code, result.output
    assert (root / LEDGER).exists() is (code == 0)
    if code:
        output = " ".join(result.output.split())
        assert f"Time series of the use of h100 by queue vision in gpus differ by {disputed:,.0f} of" in output
        assert "roles/monitoring.metricWriter" in output


def test_a_queue_that_held_nothing_is_not_in_the_ledger(root: Path, cloud: Monitored) -> None:
    cloud.hours["2026-11-21"] = {("lab-gpus", "vision", "h100"): 0, ("lab-gpus", "vision", "a100-40"): 0.1}

    assert usage(root, cloud).exit_code == 0

    assert "h100" not in (root / LEDGER).read_text()
    assert "a100-40: 0.1" in (root / LEDGER).read_text()


@pytest.mark.parametrize(("used", "held"), [(999.9, False), (1000, True)])
def test_a_hold_is_proposed_as_soon_as_all_of_a_budget_is_used(
    root: Path, cloud: Monitored, used: float, *, held: bool
) -> None:
    cloud.hours["2026-11-21"] = {("lab-gpus", "vision", "h100"): used}

    assert (OURS in usage(root, cloud).stdout) is held


def test_an_answer_that_is_no_vector_ends_the_reading(root: Path, cloud: Monitored) -> None:
    home = read_workspace(root).stacks["lab"].environment
    assert home is not None
    wrong: tuple[dict[str, Any], ...] = (
        {}, {"metric": {"cluster": "lab-gpus"}, "value": [0, "1"]}, {"metric": {}, "value": []},
    )  # fmt: skip
    for row in wrong:
        with pytest.raises(UserError, match="does not contain chip-hours"):
            hours_of([row], home, "lab")

    cloud.hours["2026-11-21"] = {("lab-gpus", "vision", "h100"): "much"}  # type: ignore[dict-item]
    result = usage(root, cloud)
    assert (result.exit_code, (root / LEDGER).exists()) == (2, False)


def test_the_cost_of_a_team_is_its_month_with_prices_and_budgets(root: Path) -> None:
    ledger(root, 101)
    ask = ["job", "cost", "--root", str(root), "--team", "vision"]

    text = CliRunner().invoke(app, ask)
    report = json.loads(CliRunner().invoke(app, [*ask, "--format", "json"]).stdout)

    assert text.exit_code == 0, text.output
    assert "gpus: 101.0 of 1,000 chip-hours of 2026-11 (10%)" in text.stdout
    h100, a100 = report["flavors"]
    assert (h100["flavor"], h100["chip_hours"], a100["chip_hours"]) == ("h100", 100, 1)
    assert h100["list_price_usd"] > 100 * a100["list_price_usd"] > 0
    assert report["budgets"] == [{"cluster": "gpus", "chip_hours": 101, "budget": 1000, "held": False}]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--team", "visoin"], "Nearest: vision"),
        (["--team", "vision"], "training-platform job usage --environment lab writes it"),
        (["--team", "vision", "--month", "11"], "write it as 2026-11"),
        ([], "name a job file, or a team"),
    ],
)
def test_an_unknown_team_or_one_without_a_ledger_gives_one_sentence(
    root: Path, arguments: list[str], says: str
) -> None:
    result = CliRunner().invoke(app, ["job", "cost", "--root", str(root), *arguments])

    assert result.exit_code == 2
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
