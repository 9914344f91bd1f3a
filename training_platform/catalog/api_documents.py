"""Documents of APIs that Google's client ships none of, in the shape of its own: ``documents/{api}.{version}.yaml``."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml

_FOLDER = files("training_platform.catalog") / "documents"


def own_document(api: str, version: str) -> dict[str, Any] | None:
    """Return our own document of a version of an API; None where Google's client ships it."""
    path = _FOLDER / f"{api}.{version}.yaml"
    if not path.is_file():
        return None
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document
