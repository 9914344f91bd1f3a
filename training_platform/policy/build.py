"""Builds the folder to publish: the policy pack, its configs, and the project's wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
_CACHES = shutil.ignore_patterns("__pycache__")
_OWN_ENVIRONMENT = re.compile(r"^ +(?:#|virtualenv:).*\n", re.MULTILINE)  # in a project file, with its comment


def build(target: Path) -> Path:
    """Write the pack's folder, replacing its content, and return the path of its wheel."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    wheel = make_wheel(target)
    shutil.copy(ROOT / "policies" / "__main__.py", target)
    project = (ROOT / "policies" / "PulumiPolicy.yaml").read_text(encoding="utf-8")
    (target / "PulumiPolicy.yaml").write_text(
        _OWN_ENVIRONMENT.sub("", project) + "    virtualenv: venv\n", encoding="utf-8"
    )
    (target / "requirements.txt").write_text(f"./{wheel.name}[policy]\n", encoding="utf-8")
    shutil.copytree(ROOT / "policies" / "config", target / "config")
    return wheel


def make_wheel(target: Path) -> Path:
    """Build the project's wheel with this virtualenv's build backend and without a package index. Return its path.

    It is built from a copy of the sources, since setuptools leaves files next to them.
    """
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", "wheel"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(target)]
    with tempfile.TemporaryDirectory() as sources:
        shutil.copy(ROOT / "pyproject.toml", sources)
        for package in ("training_platform", "kueue_model", "local_google_cloud"):
            shutil.copytree(ROOT / package, Path(sources) / package, ignore=_CACHES)
        subprocess.run([*pip, *offline, sources], check=True)  # noqa: S603 # our own interpreter and paths
    return next(target.glob("*.whl"))


if __name__ == "__main__":
    click.echo(build(Path(sys.argv[1])))
