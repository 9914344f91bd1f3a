"""Builds the folder to publish: the pack, its configs, and the wheel of all that it runs on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer

from training_platform.policy.serving import DESCRIPTION

ROOT = Path(__file__).resolve().parents[2]
_CACHES = shutil.ignore_patterns("__pycache__")
NEEDED = ("pulumi-policy", "pydantic", "PyYAML")
_REQUIREMENT = re.compile(r"^([A-Za-z][A-Za-z0-9-]*)[=<>~!]")


def build(target: Path) -> Path:
    """Write the pack's folder, replacing what stands there, and return its wheel."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    _make_wheel(target)
    wheel = next(target.glob("*.whl"))
    shutil.copy(ROOT / "policies" / "__main__.py", target)
    (target / "PulumiPolicy.yaml").write_text(_project_file(), encoding="utf-8")
    (target / "requirements.txt").write_text("\n".join([*_requirements(), f"./{wheel.name}", ""]), encoding="utf-8")
    shutil.copytree(ROOT / "policies" / "config", target / "config")
    return wheel


def _make_wheel(target: Path) -> None:
    """Build the project's wheel with this virtualenv's build backend and without any index.

    It is built from a copy, since setuptools leaves files beside the sources.
    """
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", "wheel"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(target)]
    with tempfile.TemporaryDirectory() as sources:
        for name in ("pyproject.toml", "requirements.in"):
            shutil.copy(ROOT / name, sources)
        shutil.copytree(ROOT / "training_platform", Path(sources) / "training_platform", ignore=_CACHES)
        subprocess.run([*pip, *offline, sources], check=True)  # noqa: S603 # our own interpreter and paths


def _project_file() -> str:
    return f"""\
description: {DESCRIPTION}
runtime:
  name: python
  options:
    toolchain: pip
    virtualenv: venv
"""


def _requirements() -> Iterator[str]:
    """Yield what the wheel needs, in the ranges of this repository."""
    for line in (ROOT / "requirements.in").read_text(encoding="utf-8").splitlines():
        found = _REQUIREMENT.match(line)
        if found and found[1] in NEEDED:
            yield line.strip()


if __name__ == "__main__":
    typer.echo(build(Path(sys.argv[1])))
