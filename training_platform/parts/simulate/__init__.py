"""A simulation of jobs in Kueue's queues and on machines, and recommendations from it."""

from training_platform.checks.parts import Part

PART = Part(
    commands={"simulate": "cli:simulate", "recommend": "cli:recommend", "trace": "cli:trace_app"},
    needs=("jobs",),  # `trace pull` asks where runs are
)
