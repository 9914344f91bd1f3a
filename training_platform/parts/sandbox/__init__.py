"""Local stand-ins, so that the real Pulumi engine deploys every stack without a cloud."""

from training_platform.checks.parts import Part

PART = Part(commands={"sandbox": "cli:app"})
