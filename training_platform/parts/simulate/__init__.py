"""Jobs of a trace through a model of Kueue's queues and of machines, and the changes that it recommends."""

from training_platform.checks.parts import Part

PART = Part(
    commands={"simulate": "cli:simulate", "recommend": "cli:recommend", "trace": "cli:trace_app"},
    needs=("jobs",),  # `trace pull` asks where runs are
)
