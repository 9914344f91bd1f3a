"""``pipelines/retire`` destroys what has ended: teams first, and nothing else."""

from __future__ import annotations

from pathlib import Path

from tests.pipelines.conftest import ENDED, ENDED_TEAM, ENVIRONMENT, run, stacks_of


def test_teams_are_destroyed_before_their_environment_and_what_stays_is_listed(ended: Path) -> None:
    code, lines = run(ended, "retire", "dev")

    assert code == 0
    assert stacks_of("up", lines) == ["dev-nlp", "dev-vision", "dev"]  # which lifts the protection
    assert stacks_of("destroy", lines) == ["dev-nlp", "dev-vision", "dev"]
    assert lines[-1] == "dev-nlp keeps buckets.data; ml@example.com pays"


def test_an_environment_stays_while_a_team_of_it_is_not_destroyed(ended: Path) -> None:
    code, lines = run(ended, "retire", "dev", failing="dev-nlp")

    assert code == 1
    assert stacks_of("destroy", lines) == ["dev-vision"]
    assert any("gcloud storage rm --recursive" in line for line in lines)


def test_what_is_destroyed_already_is_not_created_to_be_destroyed_again(ended: Path) -> None:
    code, lines = run(ended, "retire", "dev", gone="dev-nlp")

    assert code == 0
    assert stacks_of("up", lines) == stacks_of("destroy", lines) == ["dev-vision", "dev"]
    ups = [line for line in lines if line.startswith("up ")]
    assert [line.count(" --target ") for line in ups] == [1, 1]
    assert all(f" --target urn:pulumi:{line.split()[-1]}::p::t$u::left " in line for line in ups)


def test_what_goes_on_is_never_destroyed(repository: Path) -> None:
    code, lines = run(repository, "retire", "dev")

    assert code == 0
    assert lines == ["== what is kept", "nothing: no retired stack of dev keeps anything"]


def test_before_the_day_of_a_stack_it_says_which_day_that_is(repository: Path) -> None:
    (repository / "stacks" / "Pulumi.dev-nlp.yaml").write_text(ENDED_TEAM + ENDED.replace("2026-11-20", "2026-11-22"))

    code, lines = run(repository, "retire", "dev")

    assert code == 0
    assert lines == ["== what is kept", "dev-nlp ends on 2026-11-22; nothing of it is destroyed before that date"]


def test_a_deployment_leaves_a_stack_alone_that_has_ended(ended: Path) -> None:
    (ended / "stacks" / "Pulumi.dev.yaml").write_text(ENVIRONMENT.format(production="false"))
    team = ended / "stacks" / "Pulumi.dev-vision.yaml"
    team.write_text(team.read_text().replace("2026-11-21", "2026-11-22"))

    code, lines = run(ended, "each-stack", "dev", "up", "--yes")

    assert code == 0
    assert stacks_of("up", lines) == ["dev", "dev-vision"]  # whose protection is lifted from now on
    assert any(line.startswith("== dev-nlp is retired") for line in lines)
