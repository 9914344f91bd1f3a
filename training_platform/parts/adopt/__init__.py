"""An existing platform as stack files: the resources of a project, their sections, and the files that import them."""

from training_platform.checks.parts import Part

PART = Part(commands={"adopt": "cli:adopt", "adopt-state": "cli:adopt_state"}, needs=("sandbox",))
