"""Probes of a deployed platform: which promises of the documentation hold in a project, each with its evidence."""

from training_platform.checks.parts import Part

PART = Part(commands={"verify": "cli:verify"}, needs=("adopt", "jobs"))
