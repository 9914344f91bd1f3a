"""The repository itself: no file tells where it was written, the locks are whole, the make targets are documented."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.releases import releases

ROOT = Path(__file__).parents[2]
LOCKS = {
    "requirements-base.txt": [],
    "requirements.txt": ["deploy", "adopt", "documents", "jobs", "quota", "sandbox", "verify"],
    "modules/requirements.txt": ["deploy"],
    "policies/requirements.txt": ["policy"],
    "requirements-examples.txt": None,
}  # the extras of each; None: nothing of this project's

# Written so that no pattern matches its own text.
UNWANTED = {
    "address of a package index": r"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|proxy[.]golang|crates[.]io/api",
    "option that names a package index": r"--(?:extra-)?index[-]url|--find[-]links|--trusted[-]host",
    "path of somebody's machine": r"(?<![\w.~/}])/(?:[w]ork|[r]oot|[U]sers)/"
    r"|/home/(?!(?:jovyan|kubernetes)\b)[a-z][\w.-]*/",
    "word of the workplace": r"(?i)\b[f]arm-\w+|\bsub-?[a]gents?\b|\bthis [s]ession\b|\bissue #?[0-9]+\b|\b[c]laude\b",
    "secret": r"-----BEGIN [A-Z ]*PRIVATE [K]EY|\bAIza[0-9A-Za-z_-]{35}|\bya29[.][0-9A-Za-z_-]{20}",
}


@pytest.mark.parametrize("kind", UNWANTED)
def test_no_file_holds(kind: str) -> None:
    pattern = re.compile(UNWANTED[kind])
    unwanted_lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in _repository_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if pattern.search(line)
    ]

    assert unwanted_lines == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_pins_and_hashes_and_nothing_else(lock: str) -> None:
    entries = _entries(lock)

    assert entries
    for entry, hashes in entries.items():
        assert re.match(r"[a-z0-9-]+(?:\[[a-z-]+(?:, [a-z-]+)*\])?==[\w.]+(?: ; .+)? \\$", entry)
        assert hashes
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", line) for line in hashes)


@pytest.mark.parametrize(("lock", "extras"), LOCKS.items())
def test_a_lock_covers_its_requirements(lock: str, extras: list[str] | None) -> None:
    locked = _pins(lock)
    requirements = _requirements(lock.replace(".txt", ".in"))
    if extras is not None:
        requirements += _project_requirements(extras)

    assert requirements
    assert [
        str(entry) for entry in requirements if not entry.specifier.contains(locked[canonicalize_name(entry.name)])
    ] == []


def test_every_extra_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["optional-dependencies"].keys() == {extra for extras in LOCKS.values() for extra in extras or ()}


@pytest.mark.parametrize("lock", ["requirements.txt", "modules/requirements.txt", "policies/requirements.txt"])
def test_what_checks_is_the_same_in_every_environment(lock: str) -> None:
    base = _pins("requirements-base.txt")
    other = _pins(lock)
    shared = base.keys() & other.keys()

    assert "pydantic" in shared
    assert {name: other[name] for name in shared} == {name: base[name] for name in shared}


def test_components_run_with_the_versions_that_stacks_are_deployed_with() -> None:
    modules = _pins("modules/requirements.txt")
    deployed = {**_pins("requirements-base.txt"), **_pins("requirements.txt")}

    assert modules.items() <= deployed.items()
    assert len(modules) < 50


def test_protobuf_is_held_back_for_the_policy_sdk_alone() -> None:
    assert _pins("policies/requirements.txt")["protobuf"].startswith("5.29.")
    assert "pulumi-policy" not in _pins("requirements.txt")
    assert int(_pins("requirements.txt")["protobuf"].partition(".")[0]) > 5


def test_ci_runs_what_a_commit_has_to_pass() -> None:
    script = ROOT / ".ci" / "run"

    assert script.stat().st_mode & 0o111
    assert script.read_text().rstrip().endswith("make test")
    command = ["make", "--dry-run", "--always-make", "test"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert ".venv-policies/bin/python -m pytest tests/training_platform/policy" in printed


def test_the_pull_request_workflow_holds_no_credentials() -> None:
    text = (ROOT / ".github" / "workflows" / "check.yml").read_text()
    workflow = yaml.safe_load(text)

    assert workflow[True] == "pull_request"  # YAML 1.1 reads the key `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job.keys().isdisjoint({"permissions", "environment", "secrets"})
        checkouts = [step["with"] for step in job["steps"] if "checkout" in step.get("uses", "")]
        assert [checkout["persist-credentials"] for checkout in checkouts] == [False]
    assert not re.search(r"secrets\.|github\.token|GITHUB_TOKEN|id-token|google-github-actions|GOOGLE_", text)


def test_a_release_says_what_every_fragment_says(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "changelog.d", tmp_path / "changelog.d")
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    for kind in ("removed", "changed", "added", "fixed"):  # right after a release there are none
        (tmp_path / "changelog.d" / f"planted.{kind}.md").write_text(f"What was {kind}: [page](../docs/start.md).\n")
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9", "--dir", str(tmp_path)]
    draft = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    draft_text = " ".join(draft.replace("](", "](../").split())  # the changelog stands a folder higher
    fragments = list((tmp_path / "changelog.d").glob("*.*.md"))

    assert "## 9.9.9, 20" in draft
    assert re.findall(r"^### (\w+)$", draft, re.MULTILINE) == ["Removed", "Changed", "Added", "Fixed"]
    assert [
        path.name for path in fragments if " ".join(path.read_text(encoding="utf-8").split()) not in draft_text
    ] == []


def test_the_newest_release_is_the_version_that_is_installed() -> None:
    (version, _), *_ = releases()

    assert version == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def _repository_files() -> list[Path]:
    """Return every file that git tracks or would add."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in sorted(set(names)) if name and (ROOT / name).is_file()]


def _requirements(name: str) -> list[Requirement]:
    lines = (ROOT / name).read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]


def _project_requirements(extras: list[str]) -> list[Requirement]:
    """Return what the package and these of its extras need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [requirement for requirement in map(Requirement, lines) if requirement.name != project["name"]]


def _pins(name: str) -> dict[str, str]:
    """Return the version of each package in a lock, by its canonical name."""
    locked = (Requirement(line.rstrip(" \\")) for line in _entries(name))
    return {canonicalize_name(entry.name): str(entry.specifier).removeprefix("==") for entry in locked}


def _entries(lock: str) -> dict[str, list[str]]:
    """Return a lock's lines, each package's with the lines of its hashes; comments are left out."""
    entries: dict[str, list[str]] = {}
    for line in (ROOT / lock).read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            entries[line] = []
        elif line.startswith("    --"):
            entries[next(reversed(entries))].append(line.strip(" \\"))
    return entries
