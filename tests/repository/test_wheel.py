"""The wheel in an empty environment: its contents, the commands that run from it, and the purpose of each extra."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.places import ORGANISATION, ROOT
from training_platform.policy.build import make_wheel

PACKAGES = ("training_platform", "kueue_model", "local_google_cloud")
VERSION = distribution("training-platform").version
CLONED = ("Pulumi.yaml", "pyproject.toml", "__main__.py", "policies", *PACKAGES)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", name="as_cloned")
def _as_cloned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds what git would clone, for tests that change nothing in it."""
    folder = tmp_path_factory.mktemp("cloned") / "clone"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *CLONED],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    for name in ("stacks", "jobs"):
        shutil.copytree(ORGANISATION / name, folder / name)
    return folder


@pytest.fixture
def clone(as_cloned: Path, tmp_path: Path) -> Path:
    """Return a folder that holds what git would clone."""
    return Path(shutil.copytree(as_cloned, tmp_path / "clone"))


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> BareEnvironment:
    """Return an environment without any extra."""
    return BareEnvironment(tmp_path_factory.mktemp("bare") / "base", wheel)


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    packages = [ROOT / name for name in PACKAGES]
    there = {path.relative_to(ROOT).as_posix() for package in packages for path in package.rglob("*") if path.is_file()}

    assert packed == {name for name in there if not name.endswith((".pyc", ".md"))}


def test_the_package_alone_checks_and_plans(base: BareEnvironment, as_cloned: Path) -> None:
    assert not {name for name in base.requirements if name.startswith("pulumi") or name in {"grpcio", "protobuf"}}
    for command in COMMANDS_OF_BASE:
        done = base.run(base.command, *command.split(), cwd=as_cloned)
        assert done.returncode == 0, (command, done.stdout, done.stderr)


COMMANDS_OF_BASE = (
    "--version", "catalog list", "check", "explain tpu-topology", "job check", "job render jobs/vision/finetune.yaml",
    "plan dev", "quota show",
)  # fmt: skip
COMMANDS = {
    "adopt example-train-prod --stack prod": "adopt",
    "adopt-state import-prod.json": "adopt",
    "job list": "jobs",
    "job usage": "jobs",
    "quota pull": "quota",
    "sandbox serve": "sandbox",
    "sandbox status": "sandbox",
    "sandbox up dev": "sandbox",
    "trace pull": "jobs",
    "verify dev --plan": "verify",
}
EACH = """
import json, sys
from click.testing import CliRunner
from training_platform.cli.main import app
ran = {command: CliRunner().invoke(app, command.split()) for command in sys.argv[1:]}
print(json.dumps({command: [each.exit_code, each.stderr] for command, each in ran.items()}))
"""


@pytest.fixture(scope="module")
def refusals(base: BareEnvironment, as_cloned: Path) -> dict[str, tuple[int, str]]:
    """Return exit code and standard error of each command, run one by one in a process without any extra."""
    done = base.run(base.python, "-c", EACH, *COMMANDS, cwd=as_cloned)
    assert done.returncode == 0, done.stderr
    answers: dict[str, tuple[int, str]] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize(("command", "extra"), COMMANDS.items())
def test_a_missing_extra_is_one_sentence_that_names_it(
    refusals: dict[str, tuple[int, str]], command: str, extra: str
) -> None:
    code, stderr = refusals[command]

    assert code == 2
    assert stderr.count("\n") == 1, stderr
    assert f"needs the extra `{extra}`: run `make setup` in the clone, or " in stderr
    assert f" -m pip install '.[{extra}]'" in stderr


@pytest.mark.parametrize("command", ["check", "quota show", "job check"])
def test_a_clone_of_another_version_is_refused(base: BareEnvironment, clone: Path, command: str) -> None:
    project = clone / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    project.write_text(text.replace(f'\nversion = "{VERSION}"\n', '\nversion = "7.0.0"\n'), encoding="utf-8")

    done = base.run(base.command, *command.split(), cwd=clone)

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"is version 7.0.0, but the installed training-platform is {VERSION}: install" in done.stderr


def test_a_folder_of_stacks_without_a_program_has_no_version_to_differ(base: BareEnvironment, clone: Path) -> None:
    (clone / "pyproject.toml").unlink()

    assert base.run(base.command, "check", cwd=clone).returncode == 0


class BareEnvironment:
    """A new virtual environment at ``folder`` that holds ``wheel`` with these extras."""

    def __init__(self, folder: Path, wheel: Path, *extras: str) -> None:
        venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
        self.python = folder / "bin" / "python"
        self.command = folder / "bin" / "training-platform"
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
        (site,) = folder.glob("lib/python*/site-packages")
        ours = PathDistribution(next(site.glob("training_platform-*.dist-info")))
        self.requirements = needed(ours, *extras)
        for installed in self.requirements.values():
            _link(installed, site)

    def run(self, *command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run one of its programs, which sees no other packages than its own."""
        environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "120", "XDG_CACHE_HOME": str(self.python.parent / "cache")}
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def needed(of: Distribution, *extras: str) -> dict[str, Distribution]:
    """Return all that a distribution needs, with what that needs, by canonical name."""
    needed_distributions: dict[str, Distribution] = {}
    waiting = [(of, ("", *extras))]
    done: set[tuple[str, str]] = set()
    while waiting:
        needing, extras_wanted = waiting.pop()
        for requirement in map(Requirement, needing.requires or ()):
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": extra}) for extra in extras_wanted):
                continue
            name = canonicalize_name(requirement.name)
            if name == "training-platform":
                waiting.append((of, ("", *requirement.extras)))
                continue
            needed_distributions[name] = distribution(name)
            extras_asked = ("", *sorted(requirement.extras))
            if (name, str(extras_asked)) not in done:
                done.add((name, str(extras_asked)))
                waiting.append((needed_distributions[name], extras_asked))
    return needed_distributions


def _link(installed: Distribution, site: Path) -> None:
    """Link a distribution's packages; folders that several share, such as ``google``, are created and filled."""
    top = Path(str(installed.locate_file("")))
    for part in {Path(str(file)).parts[0] for file in installed.files or ()} - {".."}:
        _link_path(top / part, site / part, {Path(str(file)) for file in installed.files or ()}, top)


def _link_path(source: Path, target: Path, files: set[Path], top: Path) -> None:
    if not source.is_dir() or (source / "__init__.py").exists() or source.suffix == ".dist-info":
        if source.exists() and not target.exists():
            target.symlink_to(source)
        return
    target.mkdir(exist_ok=True)
    depth = len(source.relative_to(top).parts)
    inside = {file.parts[depth] for file in files if file.is_relative_to(source.relative_to(top))}
    for part in inside:
        _link_path(source / part, target / part, files, top)
