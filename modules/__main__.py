"""Starts the components for the engine, which runs this folder; their package is beside it in the checkout."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from training_platform.modules.host import serve  # noqa: E402 # found by that path

if __name__ == "__main__":
    serve(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
