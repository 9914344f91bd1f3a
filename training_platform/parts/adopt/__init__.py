"""Adopting an existing platform: ids and import files for the resources of a project, and their differences."""

from training_platform.checks.parts import Part

PART = Part(commands={"adopt": "cli:adopt", "adopt-state": "cli:adopt_state"})
