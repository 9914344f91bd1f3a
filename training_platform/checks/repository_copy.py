"""A temporary copy of a repository with other stack files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from training_platform.checks.stacks import JOBS
from training_platform.config.workspace import STACKS_FOLDER
from training_platform.resources.plan import OWN_RESOURCES


@contextmanager
def repository_copy(root: Path, texts: Mapping[str, str]) -> Iterator[Path]:
    """Yield a temporary copy of all files that plans and checks read. ``texts`` replaces or adds files by name."""
    with TemporaryDirectory() as name:
        copy = Path(name)
        for file in ("Pulumi.yaml", OWN_RESOURCES):
            if (root / file).is_file():
                shutil.copy(root / file, copy)
        for folder in (STACKS_FOLDER, JOBS):
            if (root / folder).is_dir():
                shutil.copytree(root / folder, copy / folder)
        for file, text in texts.items():
            (copy / file).write_text(text, encoding="utf-8", newline="")
        yield copy
