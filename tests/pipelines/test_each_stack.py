"""``pipelines/each-stack``: an environment before its teams, with its own policy config."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PULUMI = """\
#!/bin/sh
echo "$@"
case "$*" in *"--stack $FAILING "*) exit 1;; esac
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with four stacks, and a ``pulumi`` that says its arguments and fails for one stack."""
    (tmp_path / "pipelines").mkdir()
    shutil.copy(ROOT / "pipelines" / "each-stack", tmp_path / "pipelines")
    (tmp_path / "stacks").mkdir()
    for stack in ("dev", "dev-nlp", "dev-vision", "prod"):
        (tmp_path / "stacks" / f"Pulumi.{stack}.yaml").touch()
    (tmp_path / "policies" / "config").mkdir(parents=True)
    (tmp_path / "policies" / "config" / "prod.json").touch()
    pulumi = tmp_path / "bin" / "pulumi"
    pulumi.parent.mkdir()
    pulumi.write_text(PULUMI)
    pulumi.chmod(0o755)
    return tmp_path


def each_stack(repository: Path, environment: str, failing: str = "") -> tuple[int, list[str]]:
    ran = subprocess.run(
        [str(repository / "pipelines" / "each-stack"), environment, "preview", "--diff"],
        env={"PATH": f"{repository / 'bin'}:/usr/bin:/bin", "FAILING": failing},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ran.returncode, [line for line in ran.stdout.splitlines() if not line.startswith("==")]


def test_an_environment_is_run_before_its_teams(repository: Path) -> None:
    assert each_stack(repository, "dev") == (
        0,
        [
            f"preview --non-interactive --stack {stack} --policy-pack policies --diff"
            for stack in ("dev", "dev-nlp", "dev-vision")
        ],
    )


def test_an_environments_policy_config_is_given_where_there_is_one(repository: Path) -> None:
    _, said = each_stack(repository, "prod")

    (line,) = said
    assert line.endswith(" --stack prod --policy-pack policies --diff --policy-pack-config policies/config/prod.json")


def test_a_team_that_fails_holds_up_no_other_and_is_not_forgotten(repository: Path) -> None:
    code, said = each_stack(repository, "dev", failing="dev-nlp")

    assert (code, len(said)) == (1, 3)


def test_an_environment_that_fails_ends_it(repository: Path) -> None:
    code, said = each_stack(repository, "dev", failing="dev")

    assert (code, len(said)) == (1, 1)
