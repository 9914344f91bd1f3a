"""Where things are: the repository, and the organisation that the tests own.

``stacks/`` and ``jobs/`` are samples that a user deletes; ``tests/organisation/`` holds what tests rest on, laid out as
a repository is, with the program and the project file of this one.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
ORGANISATION = ROOT / "tests" / "organisation"
PACK_ENVIRONMENT = ROOT / ".venv-policies"
"""The virtualenv of the policy pack, which ``make`` creates."""
