"""Where things are: the repository, and the organisation that the tests own.

``stacks/`` and ``jobs/`` are samples that a user deletes; ``tests/organisation/`` holds what tests rest on, laid out as
a repository is, with the program and the project file of this one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
ORGANISATION = ROOT / "tests" / "organisation"
PACK_ENVIRONMENT = ROOT / ".venv-policies"
"""The virtualenv of the policy pack, which ``make`` creates."""


def gitlab_pipeline() -> dict[str, Any]:
    """Return GitLab's pipeline, which follows the document with its inputs."""
    _, pipeline = yaml.safe_load_all((ROOT / ".gitlab-ci.yml").read_text())
    return dict(pipeline)
