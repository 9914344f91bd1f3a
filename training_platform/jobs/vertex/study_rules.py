"""What Vertex AI refuses of sweeps and of training pipelines.

Source: Vertex AI docs on hyperparameter tuning (which has no TPUs) and training pipelines, and their protos, read
2026-08-22.
"""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.config.reading.finding import Finding
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.sweep import Sweep
from training_platform.jobs.spec.vertex import Pipeline, VertexTarget

_TRIALS_PER_PARAMETER = 10


def study_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Yield what is wrong with the sweep and the pipeline around a job."""
    if job.spec.sweep:
        yield from _sweep(job, job.spec.sweep)
        if target.machine.kind == "tpu":
            message = f"is not offered for TPUs on Vertex AI, and {target.machine_type} is one"
            yield job.finding(("sweep",), message, rule="job-vertex-tpu-sweep", allowed="GPUs, or a job for each point")
    if target.pipeline:
        yield from _pipeline(job, target.pipeline)


def _sweep(job: ResolvedJob, sweep: Sweep) -> Iterator[Finding]:
    if sweep.metric is None:
        message = "has no metric, which every trial on Vertex AI reports"
        yield job.finding(("sweep",), message, rule="job-vertex-metric", allowed="metric, such as accuracy")
    elif any(letter.isspace() for letter in sweep.metric):
        message, nearest = f"{sweep.metric!r} has blanks", "_".join(sweep.metric.split())
        yield job.finding(
            ("sweep", "metric"), message, rule="job-vertex-metric", allowed="a name without blanks", nearest=nearest
        )
    if sweep.parallel > sweep.size:
        message = f"is {sweep.parallel}, and there are {sweep.size} trials"
        allowed = f"at most {sweep.size}"
        yield job.finding(
            ("sweep", "parallel"), message, rule="job-vertex-parallel", allowed=allowed, nearest=sweep.size
        )
    if sweep.max_failed_trials and sweep.max_failed_trials > sweep.size:
        message = f"is {sweep.max_failed_trials}, and there are {sweep.size} trials"
        yield job.finding(
            ("sweep", "max_failed_trials"), message, rule="job-vertex-failed-trials",
            allowed=f"at most {sweep.size}", nearest=sweep.size,
        )  # fmt: skip
    wanted = _TRIALS_PER_PARAMETER * len(sweep.parameters)
    if sweep.method == "bayesian" and sweep.size < wanted:
        message = f"is {sweep.size}, few for a search over {len(sweep.parameters)} parameters"
        yield job.finding(
            ("sweep", "trials"), message, rule="job-vertex-trials", severity="warning",
            allowed=f"at least {wanted}, as Vertex AI advises", nearest=wanted,
        )  # fmt: skip


def _pipeline(job: ResolvedJob, pipeline: Pipeline) -> Iterator[Finding]:
    rule, path = "job-vertex-pipeline", ("vertex", "pipeline")
    if pipeline.data_set is None and pipeline.model is None:
        yield job.finding(path, "has neither a data set nor a model", rule=rule, allowed="data_set, model or both")
    if pipeline.model and not job.spec.output:
        message = "is uploaded from below output, and the job has none"
        yield job.finding((*path, "model"), message, rule=rule, allowed="output, one of the team's buckets")
    if pipeline.data_set is None:
        return
    if pipeline.read_as == "files" and not job.spec.output:
        message = "is read as files below output, and the job has none"
        yield job.finding((*path, "data_set"), message, rule=rule, allowed="output, or read_as: bigquery")
    if pipeline.read_as == "bigquery" and pipeline.annotation_schema:
        message = "is for files, and the data set is read from BigQuery"
        yield job.finding((*path, "annotation_schema"), message, rule=rule, allowed="none")
    split = pipeline.split
    if (total := split.training + split.validation + split.test) != 100:
        message = f"adds up to {total} percent"
        yield job.finding((*path, "split"), message, rule=rule, allowed="100 percent in all")
