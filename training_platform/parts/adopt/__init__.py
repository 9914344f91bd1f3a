"""Adopting an existing platform: a project's resources as sections of stack files, and files to import them."""

from training_platform.checks.parts import Part

PART = Part(commands={"adopt": "cli:adopt", "adopt-state": "cli:adopt_state"})
