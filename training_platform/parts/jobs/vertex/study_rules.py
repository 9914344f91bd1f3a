"""Rules for the sweep and the pipeline of a job on Vertex AI."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.config.reading.declaration import Draft, finding
from training_platform.parts.jobs.job_model import Pipeline, Sweep, VertexTarget
from training_platform.parts.jobs.job_rules import vertex_rule
from training_platform.parts.jobs.resolve import ResolvedJob

JOB_VERTEX_TPU_SWEEP = vertex_rule(
    "job-vertex-tpu-sweep",
    "Find a sweep on TPUs, which Vertex AI does not offer.",
)


def study_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Yield the findings about the sweep and the pipeline of a job."""
    if job.spec.sweep:
        yield from _sweep(job, job.spec.sweep)
        if target.machine.kind == "tpu":
            yield finding(
                job,
                ("sweep",),
                f"is not offered for TPUs on Vertex AI, and {target.machine_type} is a TPU",
                rule=JOB_VERTEX_TPU_SWEEP,
                allowed="GPUs, or a separate job for each combination of values",
            )
    if target.pipeline:
        yield from _pipeline(job, target.pipeline)


_TRIALS_PER_PARAMETER = 10


JOB_VERTEX_METRIC = vertex_rule(
    "job-vertex-metric",
    "Find a sweep without a metric, or with spaces in the metric's name.",
)
JOB_VERTEX_PARALLEL = vertex_rule(
    "job-vertex-parallel",
    "Find a number of parallel trials that exceeds the number of trials.",
)
JOB_VERTEX_FAILED_TRIALS = vertex_rule(
    "job-vertex-failed-trials",
    "Find a limit of failed trials that exceeds the number of trials.",
)
JOB_VERTEX_TRIALS = vertex_rule(
    "job-vertex-trials",
    "Find too few trials for the number of parameters.",
    severity="warning",
)


def _sweep(job: ResolvedJob, sweep: Sweep) -> Iterator[Draft]:
    if sweep.metric is None:
        yield finding(
            job,
            ("sweep",),
            "has no metric, which every trial on Vertex AI reports",
            rule=JOB_VERTEX_METRIC,
            allowed="metric, such as accuracy",
        )
    elif any(letter.isspace() for letter in sweep.metric):
        yield finding(
            job,
            ("sweep", "metric"),
            f"{sweep.metric!r} has blanks",
            rule=JOB_VERTEX_METRIC,
            allowed="a name without spaces",
            nearest="_".join(sweep.metric.split()),
        )
    if sweep.parallel > sweep.size:
        yield finding(
            job,
            ("sweep", "parallel"),
            f"is {sweep.parallel}, but there are {sweep.size} trials",
            rule=JOB_VERTEX_PARALLEL,
            allowed=f"at most {sweep.size}",
            nearest=sweep.size,
        )
    if sweep.max_failed_trials and sweep.max_failed_trials > sweep.size:
        yield finding(
            job,
            ("sweep", "max_failed_trials"),
            f"is {sweep.max_failed_trials}, but there are {sweep.size} trials",
            rule=JOB_VERTEX_FAILED_TRIALS,
            allowed=f"at most {sweep.size}",
            nearest=sweep.size,
        )
    advised = _TRIALS_PER_PARAMETER * len(sweep.parameters)
    if sweep.method == "bayesian" and sweep.size < advised:
        yield finding(
            job,
            ("sweep", "trials"),
            f"is {sweep.size}, which is too few for a search over {len(sweep.parameters)} parameters",
            rule=JOB_VERTEX_TRIALS,
            allowed=f"at least {advised}, as Vertex AI advises",
            nearest=advised,
        )


JOB_VERTEX_PIPELINE = vertex_rule(
    "job-vertex-pipeline",
    "Find a pipeline without data set and model, or with parts that do not fit together.",
)


def _pipeline(job: ResolvedJob, pipeline: Pipeline) -> Iterator[Draft]:
    path = ("vertex", "pipeline")
    if pipeline.data_set is None and pipeline.model is None:
        yield finding(
            job, path, "has neither a data set nor a model", rule=JOB_VERTEX_PIPELINE, allowed="data_set, model or both"
        )
    if pipeline.model and not job.spec.output:
        yield finding(
            job,
            (*path, "model"),
            "is uploaded from a folder below output, but the job has no output",
            rule=JOB_VERTEX_PIPELINE,
            allowed="output, one of the team's buckets",
        )
    if pipeline.data_set is None:
        return
    if pipeline.read_as == "files" and not job.spec.output:
        yield finding(
            job,
            (*path, "data_set"),
            "is read as files below output, but the job has none",
            rule=JOB_VERTEX_PIPELINE,
            allowed="output, or read_as: bigquery",
        )
    if pipeline.read_as == "bigquery" and pipeline.annotation_schema:
        yield finding(
            job,
            (*path, "annotation_schema"),
            "is for files, but the data set is read from BigQuery",
            rule=JOB_VERTEX_PIPELINE,
            allowed="none",
        )
    percent = pipeline.split.training + pipeline.split.validation + pipeline.split.test
    if percent != 100:
        yield finding(
            job,
            (*path, "split"),
            f"adds up to {percent} percent",
            rule=JOB_VERTEX_PIPELINE,
            allowed="100 percent in all",
        )
