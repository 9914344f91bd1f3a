"""Builds the folder to publish: the pack and the wheel of all that it runs on, under one import name of its own.

In the checkout the packages are called ``modules`` and ``policies``, which are no names for somebody else's
virtualenv; in the wheel they stand below ``training_platform_policies``, and every import says so.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import typer

from policies.serving import DESCRIPTION

ROOT = Path(__file__).resolve().parents[1]
NAME = "training_platform_policies"
PACKAGES = ("catalog", "config", "quota", "rules")
NEEDED = ("pulumi-policy", "pydantic", "PyYAML")
_IMPORT = re.compile(r"^(\s*(?:from|import) )(?=(?:modules|policies)\b)", re.MULTILINE)
_REQUIREMENT = re.compile(r"^([A-Za-z][A-Za-z0-9-]*)[=<>~!]")
_NOT_PUBLISHED = (  # the folder's own file, and what runs nowhere but in a checkout
    "policies/__main__.py",
    "policies/build.py",
    "policies/config_files.py",
    "modules/quota/cloud_quotas.py",
    "modules/quota/pull.py",
)


def build(target: Path) -> Path:
    """Write the pack's folder, replacing what stands there, and return its wheel."""
    with tempfile.TemporaryDirectory() as name:
        sources = Path(name)
        _write_sources(sources)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        _make_wheel(sources, target)
    wheel = next(target.glob("*.whl"))
    main = (ROOT / "policies" / "__main__.py").read_text(encoding="utf-8")
    (target / "__main__.py").write_text(renamed(main), encoding="utf-8")
    (target / "PulumiPolicy.yaml").write_text(_project_file(), encoding="utf-8")
    (target / "requirements.txt").write_text("\n".join([*_requirements(), f"./{wheel.name}", ""]), encoding="utf-8")
    shutil.copytree(ROOT / "policies" / "config", target / "config")
    return wheel


def renamed(source: str) -> str:
    """Return a module's text with its imports of our packages below the name that they are published under."""
    return _IMPORT.sub(rf"\1{NAME}.", source)


def _write_sources(folder: Path) -> None:
    for package in PACKAGES:
        _copy(ROOT / "modules" / package, folder / NAME / "modules" / package)
    _copy(ROOT / "policies", folder / NAME / "policies")
    for file in _NOT_PUBLISHED:
        (folder / NAME / file).unlink()
    for package in ("", "modules", "policies"):
        (folder / NAME / package / "__init__.py").touch()
    (folder / "pyproject.toml").write_text(_project(), encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    for file in source.rglob("*"):
        if file.suffix not in (".py", ".yaml"):
            continue
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8")
        copy.write_text(renamed(text) if file.suffix == ".py" else text, encoding="utf-8")


def _make_wheel(sources: Path, target: Path) -> None:
    """Run pip on the sources, with the build backend of this virtualenv and without any index."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", "wheel"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(target)]
    subprocess.run([*pip, *offline, str(sources)], check=True)  # noqa: S603 # our own interpreter and paths


def _project() -> str:
    """Return a project file with our version; all YAML below the package goes along."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    needed = ", ".join(f'"{each}"' for each in _requirements())
    return f"""\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "{NAME.replace("_", "-")}"
version = "{version}"
description = "{DESCRIPTION}"
requires-python = ">=3.11"
dependencies = [{needed}]

[tool.setuptools.packages.find]
include = ["{NAME}*"]

[tool.setuptools.package-data]
"*" = ["*.yaml"]
"""


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
