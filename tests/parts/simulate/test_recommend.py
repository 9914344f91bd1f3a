"""Recommendations: a change that meets the targets, the message if none does, and files of targets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.parts.simulate.clusters import sections, shares
from training_platform.cli.main import app

LENDS_NOTHING = {"main": {"h100-reservation": {"nominal_quota": 8, "lending_limit": 0}}}
TEAMS = {"vision": shares(h100_reservation=8), "nlp": {"shares": LENDS_NOTHING}}


def write(root: Path, teams: dict[str, Any]) -> None:
    (root / "stacks").mkdir()
    (root / "Pulumi.yaml").write_text("name: training-platform\nruntime: python\n", encoding="utf-8")
    for name, text in sections(teams).items():
        (root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    rows = "".join(f"{number * 3600},vision,8 h100,7200\n" for number in range(12))
    (root / "trace.csv").write_text(f"submitted,team,needs,seconds\n{rows}0,nlp,8 h100,60\n", encoding="utf-8")


def recommend(root: Path, wishes: dict[str, Any], *more: str) -> Result:
    (root / "wishes.yaml").write_text(yaml.safe_dump(wishes), encoding="utf-8")
    arguments = ("recommend", str(root / "trace.csv"), "--wishes", str(root / "wishes.yaml"), "--root", str(root))
    return CliRunner().invoke(app, [*arguments, *more])


def changed(root: Path, done: Result) -> dict[str, Any]:
    """Apply a recommended difference, and return the stack files by name."""
    subprocess.run(["git", "apply", "-"], cwd=root, input=done.stdout, text=True, check=True)
    return {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (root / "stacks").iterdir()}


def share(files: dict[str, Any], team: str) -> dict[str, Any]:
    return dict(files[f"Pulumi.lab-{team}.yaml"]["config"]["training-platform:team"]["shares"]["main"])


def test_a_limit_that_makes_a_team_wait_is_lifted_and_the_target_then_holds(tmp_path: Path) -> None:
    write(tmp_path, TEAMS)

    done = recommend(tmp_path, {"wait": {"vision": "p90 < 30 min"}})
    files = changed(tmp_path, done)

    assert done.exit_code == 0, done.output
    assert "1 simulated, best so far: missed: vision: p90 < 30 min, is" in done.stderr
    assert share(files, "nlp") == {"h100-reservation": {"nominal_quota": 8, "lending_limit": 8}}
    again = recommend(tmp_path, {"wait": {"vision": "p90 < 30 min"}})
    assert (again.exit_code, again.stdout) == (0, "")


def test_json_has_the_same_difference(tmp_path: Path) -> None:
    write(tmp_path, TEAMS)
    wishes = {"wait": {"vision": "p90 < 30 min"}}

    answer = json.loads(recommend(tmp_path, wishes, "--format", "json").stdout)

    assert answer["best"]["holds"]
    assert answer["best"]["difference"] == recommend(tmp_path, wishes).stdout
    assert answer["best"]["changes"] == ["nlp's h100-reservation in main: lends 8, not 0"]


def test_a_reservation_that_nobody_needs_is_made_smaller_with_the_share_of_it(tmp_path: Path) -> None:
    write(tmp_path, {"vision": shares(h100_reservation=8), "nlp": shares(h100_reservation=8)})

    done = recommend(tmp_path, {"wait": {"vision": "p90 < 1 d"}, "reservations": {"main": {"reserved": 2}}})
    files = changed(tmp_path, done)

    pool = files["Pulumi.lab.yaml"]["config"]["training-platform:environment"]["clusters"]["main"]["node_pools"]
    assert (pool["reserved"]["max_nodes"], pool["reserved"]["min_nodes"]) == (1, 1)
    quotas = [share(files, team)["h100-reservation"]["nominal_quota"] for team in ("vision", "nlp")]
    assert sum(quotas) == 8 * 1


def test_the_cheapest_change_is_left_out_if_a_rule_for_one_stack_refuses_it(tmp_path: Path) -> None:
    lends_half = {"main": {"h100-reservation": {"nominal_quota": 8, "lending_limit": 4}}}
    write(tmp_path, {"vision": shares(h100_reservation=8), "nlp": {"shares": lends_half}})
    wishes = {"wait": {"vision": "p90 < 1 d"}, "reservations": {"main": {"reserved": 2}}}

    done = recommend(tmp_path, wishes)
    (tmp_path / "stacks" / "Pulumi.lab-nlp.yaml").write_text(
        sections({"nlp": {"shares": {"main": {"h100-reservation": {"nominal_quota": 8}}}}})["lab-nlp"], encoding="utf-8"
    )
    without_a_limit = recommend(tmp_path, wishes)

    smaller = "max_nodes of reserved in main: 1, not 2"
    without_nlp = "nlp's h100-reservation in main: 0, not 8"  # of which nlp cannot lend 4
    assert (done.exit_code, done.stdout) == (0, "")
    assert without_nlp not in done.stderr
    best = without_a_limit.stderr.partition(" changes were simulated")[0]
    assert smaller in best
    assert without_nlp in best


def test_a_change_that_the_own_resources_refuse_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, TEAMS)
    refuse_lending = """
def add_resources(own):
    shares = own.team.shares["main"].values() if own.team else ()
    assert all(share.lending_limit in (0, None) for share in shares)
"""
    (tmp_path / "own_resources.py").write_text(refuse_lending, encoding="utf-8")

    done = recommend(tmp_path, {"wait": {"vision": "p90 < 30 min"}})

    assert done.exit_code == 0, done.output
    assert "lends 8, not 0" not in done.stderr


def test_steps_of_one_number_are_one_change_and_quota_is_given_to_a_team_with_a_wish(tmp_path: Path) -> None:
    write(tmp_path, {"vision": shares(h100_reservation=16), "nlp": shares(h100_reservation=0)})
    rows = "".join(f"{number * 60},vision,8 h100,7200\n" for number in range(36))
    (tmp_path / "trace.csv").write_text(f"submitted,team,needs,seconds\n{rows}0,nlp,8 h100,60\n", encoding="utf-8")
    wishes = {"wait": {"vision": "longest < 5h"}, "reservations": {"main": {"reserved": 12}}}

    done = recommend(tmp_path, wishes)
    files = changed(tmp_path, done)

    assert done.exit_code == 0, done.output
    best = done.stderr.partition("best:")[2].partition(" changes were simulated")[0]
    lines = [line.strip() for line in best.splitlines()[1:-1]]
    size = files["Pulumi.lab.yaml"]["config"]["training-platform:environment"]["clusters"]["main"]["node_pools"]
    nodes = size["reserved"]["max_nodes"]
    assert nodes > 4  # several steps, since each at most doubles
    assert lines == [
        f"max_nodes of reserved in main: {nodes}, not 2", f"vision's h100-reservation in main: {8 * nodes}, not 16"
    ]  # fmt: skip
    assert share(files, "nlp") == {"h100-reservation": {"nominal_quota": 0}}


def test_a_wish_about_a_team_without_jobs_is_not_decided_and_its_share_is_kept(tmp_path: Path) -> None:
    write(tmp_path, {"vision": shares(h100_reservation=8), "nlp": shares(h100_reservation=8)})
    (tmp_path / "trace.csv").write_text("submitted,team,needs,seconds\n0,vision,8 h100,7200\n", encoding="utf-8")
    wishes = {"wait": {"vision": "p90 < 1 d", "nlp": "median < 30 min"}, "reservations": {"main": {"reserved": 2}}}

    done = recommend(tmp_path, wishes)
    document = json.loads(recommend(tmp_path, wishes, "--format", "json").stdout)
    nothing = recommend(tmp_path, {"wait": {"nlp": "median < 30 min"}})

    assert done.exit_code == 1, done.output
    assert f"not decided: nlp: median < 30 min; {tmp_path / 'trace.csv'} has no jobs of nlp" in done.stderr
    assert "all other wishes are met" in done.stderr
    assert "all wishes are met" not in done.stderr
    assert (document["undecided"], document["best"]["holds"]) == (["nlp: median < 30 min"], False)
    files = changed(tmp_path, done)
    assert share(files, "vision")["h100-reservation"]["nominal_quota"] == 0  # borrows
    assert share(files, "nlp") == {"h100-reservation": {"nominal_quota": 8}}
    assert nothing.exit_code == 2
    assert "has no jobs of the teams with wishes: nlp." in nothing.stderr


def test_a_team_without_jobs_gets_no_new_share(tmp_path: Path) -> None:
    write(tmp_path, {"vision": shares(h100_reservation=16), "nlp": shares(h100_reservation=0)})
    rows = "".join(f"0,vision,16 h100,{24 * 3600}\n" for _ in range(2))
    (tmp_path / "trace.csv").write_text(f"submitted,team,needs,seconds\n{rows}", encoding="utf-8")

    done = recommend(tmp_path, {"wait": {"vision": "longest < 4h", "nlp": "longest < 4h"}})

    assert "vision's h100-spot in main: 16, a new share" in done.stderr
    assert "nlp's h100-spot" not in done.stderr


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"wait": {"vision": "longest < 0.01 min"}}, "missed: vision: longest < 1 s, is"),
        ({"wait": {"vision": "p90 < 1 d"}, "budget": 1}, "a day, but the budget is $1"),
    ],
)
def test_a_target_that_no_change_meets_is_named(tmp_path: Path, wishes: dict[str, Any], message: str) -> None:
    write(tmp_path, TEAMS)
    with (tmp_path / "trace.csv").open("a", encoding="utf-8") as file:
        file.write("0,vision,8 h100,7200\n" * 5)  # more than all machines hold

    done = recommend(tmp_path, wishes, "--tries", "3")

    assert done.exit_code == 1
    assert message in done.stderr
    assert "3 changes were simulated." in done.stderr


def test_all_mistakes_of_targets_are_reported(tmp_path: Path) -> None:
    write(tmp_path, TEAMS)

    shape = recommend(tmp_path, {"wait": {"vision": "p95 < 1h", "nlp": "p90"}, "budgt": 1})
    names = recommend(tmp_path, {"wait": {"visoin": "p90 < 1h"}, "reservations": {"main": {"reservd": 2}}})

    assert shape.exit_code == names.exit_code == 2
    for part in (
        "wishes.yaml:1:1: budgt: is not a field of this section", "wishes.yaml:3:3: wait.nlp: 'p90' is not a wish",
        "wishes.yaml:4:3: wait.vision: 'p95 < 1h' is not a wish. Allowed: longest, median, p90, then <",
    ):  # fmt: skip
        assert part in shape.stderr
    assert "'visoin' is not a team of lab: nlp, vision. Nearest: vision." in names.stderr
    assert "'main.reservd' is not a node pool of lab with a reservation: main.reserved." in names.stderr
