"""Training jobs: one file under ``jobs/<team>/`` becomes a JobSet for GKE or a CustomJob for Vertex AI."""

from training_platform.checks.parts import Part

PART = Part(
    commands={
        "init job": "cli.init_job:init_job",
        "job": "cli.job:app",
        "image": "cli.image:app",
        "persistent-resource": "cli.persistent_resource:app",
    },
    judges="jobs",
    findings="job_checks:judge_folder",
    quota_needs="job_checks:needs_of_jobs",
    schemas="schema:schema_files",
)
