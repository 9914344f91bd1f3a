"""Findings about a job on any target: a missing command, fields that exclude each other, secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from training_platform.config.reading.declaration import Draft, finding, located
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.job_rules import gke_rule, job_rule
from training_platform.parts.jobs.program_words import word_findings
from training_platform.parts.jobs.rendezvous import starts_torch
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.source_rules import source_findings
from training_platform.parts.jobs.storage_rules import mount_findings

JOB_LOCAL_CHECKPOINTS = job_rule(
    "job-local-checkpoints",
    "Find local checkpoints that exceed the job's limits, need local SSDs that the VMs lack, or are used with "
    "Pathways.",
)
JOB_RETRY_ON = job_rule(
    "job-retry-on",
    "Find retry settings without effect, and an exit code whose retry would repeat an out-of-memory failure.",
)


def job_findings(job: ResolvedJob) -> list[Finding]:
    """Return the findings about a valid job file that do not depend on the target."""
    return located(_drafts(job))


def _drafts(job: ResolvedJob) -> Iterator[Draft]:
    yield from source_findings(job)
    yield from _without_command(job)
    yield from _without_output(job)
    yield from _tag(job)
    yield from mount_findings(job)
    yield from _secrets_in_env(job)
    yield from word_findings(job)
    yield from _sweep(job)
    yield from _shared_memory(job)


JOB_COMMAND = job_rule(
    "job-command",
    "Find secrets or a notice in a job without a command: the launcher that fetches them has nothing to start.",
)


def _without_command(job: ResolvedJob) -> Iterator[Draft]:
    """Find fields that need the launcher, in a job that uses the image's own command."""
    spec = job.spec
    if spec.source or spec.command:
        return
    for field, value in (("secrets", spec.secrets), ("notify", spec.notify)):
        if value:
            message = "needs a command: the launcher that starts it cannot read the image's entrypoint"
            yield finding(job, (field,), message, rule=JOB_COMMAND, allowed="command, such as [python, -m, train]")
    if spec.local_checkpoints and spec.local_checkpoints.restarts:
        message = "needs a command: the launcher that restarts the program cannot read the image's entrypoint"
        allowed = "command, such as [python, -m, train], or restarts: 0"
        yield finding(job, ("local_checkpoints",), message, rule=JOB_COMMAND, allowed=allowed)
    if spec.gke:
        message = (
            "is missing, so the image's own program runs without a launcher: if it exits with 0 when its VM is "
            "drained, the run counts as succeeded"
        )
        allowed = "command, such as [python, -m, train]; or an image whose program exits with 143 after SIGTERM"
        yield finding(job, ("command",), message, rule=JOB_COMMAND, severity="note", allowed=allowed)


JOB_OUTPUT = job_rule(
    "job-output",
    "Find a path below the output in a job without an output, and a job on spot VMs without an output.",
)


def _without_output(job: ResolvedJob) -> Iterator[Draft]:
    """Find fields that make the program write to its output folder, in a job that has no output."""
    spec = job.spec
    if spec.output:
        yield from _unmounted_output(job)
        return
    yield from _nothing_to_resume_from(job)
    allowed = f"output: {enumeration(job.team.buckets) or 'the team has no bucket'}"
    if spec.local_checkpoints:
        message = "are deleted with their pod, but the job has no output for permanent checkpoints"
        yield finding(job, ("local_checkpoints",), message, rule=JOB_OUTPUT, allowed=allowed)
    for field, value in (("profiler", spec.profiler), ("tensorboard", spec.tensorboard)):
        if value:
            yield finding(job, (field,), "writes below output, but the job has none", rule=JOB_OUTPUT, allowed=allowed)


def _unmounted_output(job: ResolvedJob) -> Iterator[Draft]:
    """Find a PyTorch program on GKE that gets its output only as a URL, which torch.save treats as a local folder."""
    spec = job.spec
    if spec.gke is None or not starts_torch(job):
        return
    if any(mount.source.bucket == spec.output and not mount.read_only for mount in spec.mounts):
        return
    message = "reaches the program as a URL, to which torch.save() cannot write, and the job does not mount it on GKE"
    allowed = f"mounts: [{{name: output, source: {{bucket: {spec.output}}}}}], or a library that writes to gs://"
    yield finding(job, ("output",), message, rule=JOB_OUTPUT, severity="note", allowed=allowed)


def _nothing_to_resume_from(job: ResolvedJob) -> Iterator[Draft]:
    """Find a job on spot VMs that keeps no checkpoint, so that each interruption restarts it from the beginning."""
    spec = job.spec
    on_gke = job.flavor is not None and job.flavor.capacity == "spot"
    on_vertex = spec.vertex is not None and spec.vertex.capacity == "spot"
    if (on_gke or on_vertex) and all(mount.read_only for mount in spec.mounts):
        path: Path = ("gke", "flavor") if on_gke else ("vertex", "capacity")
        message = (
            "is spot, but the job has neither output nor a writable mount: after an interruption it starts from zero"
        )
        allowed = f"output: {enumeration(job.team.buckets) or 'the team has no bucket'}, and checkpoints there"
        yield finding(job, path, message, rule=JOB_OUTPUT, severity="note", allowed=allowed)


JOB_IMAGE_TAG = job_rule(
    "job-image-tag",
    "Find a job's image with a tag that moves, so that each start may run a different program.",
    severity="warning",
)


def _tag(job: ResolvedJob) -> Iterator[Draft]:
    """Find an image tag that moves with each release. Pods that start later may then run another program.

    The prebuilt images of Vertex AI, which a job with ``source`` uses by default, have only such tags.
    """
    source = job.spec.source
    name = (source.image if source else job.spec.image) or ""
    untagged = name and ":" not in name.rpartition("/")[2]  # a digest has a colon too
    if (untagged or name.endswith(":latest")) and "/vertex-ai" not in name:
        tag = "has no tag, so it uses latest, which" if untagged else "has a tag that"
        message = f"{name} {tag} is moved to each new version: pods that start later may run another program"
        allowed = "a tag that never moves, or the digest (@sha256:...) that image build prints"
        path = ("source", "image") if source else ("image",)
        yield finding(job, path, message, rule=JOB_IMAGE_TAG, allowed=allowed)


LARGE_SWEEP = 100  # runs; Kueue takes more, and each is machines for a whole run


JOB_SWEEP = gke_rule(
    "job-sweep",
    "Find a search, since searches run only on Vertex AI; fields that only a search uses; and the number of a "
    "sweep's runs (a note, or a warning above 100).",
)


def _sweep(job: ResolvedJob) -> Iterator[Draft]:
    """Report the number of runs of a sweep, and warn if there are many."""
    if job.spec.sweep is None:
        return
    size = job.spec.sweep.size
    message = f"starts {size:,} runs, each on its own machines"
    if size > LARGE_SWEEP:
        allowed = f"up to {LARGE_SWEEP} without a warning; on Vertex AI, method: random tries only some combinations"
        yield finding(job, ("sweep",), message, rule=JOB_SWEEP, severity="warning", allowed=allowed)
    else:
        yield finding(job, ("sweep",), message, rule=JOB_SWEEP, severity="note")


# Beginnings that only tokens have: Hugging Face, GitHub, GitLab, OpenAI and others, AWS, Google, Slack.
_TOKEN = re.compile(
    r"(hf_|gh[pousr]_|github_pat_|glpat-|sk-|AKIA|AIza|xox[abp]-)[A-Za-z0-9_-]{12,}$|-----BEGIN .*PRIVATE KEY"
)
_SECRET_NAME = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|API_?KEY|ACCESS_KEY|PRIVATE_KEY)$", re.IGNORECASE)
# A switch, a number, a path, an address, or a token of a model's vocabulary.
_HARMLESS = re.compile(
    r"(true|false|[0-9.]{0,9}|/\S*|(gs|https?)://[^@\s]*|<[^<>]*>|\[[A-Z]+\]|\$\(\w+\))$", re.IGNORECASE
)
JOB_SECRET = job_rule(
    "job-secret",
    "Find a token or a password in the variables, command or arguments of a job.",
)


def _secrets_in_env(job: ResolvedJob) -> Iterator[Draft]:
    """Find a token in a job's plain variables. Everybody who can read the repository or the job can see it."""
    spec = job.spec
    for name, value in spec.env.items():
        if _TOKEN.match(value) or (_SECRET_NAME.search(name) and not _HARMLESS.match(value)):
            secrets = job.team.secrets
            service = name.partition("_")[0].casefold()
            meant = next((secret for secret in secrets if secret.startswith(service)), None)
            secret = meant or (secrets[0] if len(secrets) == 1 else "NAME")
            new = "" if secrets else ", once the team's stack file has NAME under secrets"
            message = "looks like a secret, and everybody who can read the repository or the job can read it"
            yield finding(
                job,
                ("env", name),
                message,
                rule=JOB_SECRET,
                allowed=f"secrets: {enumeration(secrets) or 'NAME'}",
                nearest=f"secrets: {{{name}: {secret}}}{new}",
            )
    for field, texts in (("command", spec.command), ("args", spec.args)):
        for index, text in enumerate(texts):
            if _TOKEN.match(text.rpartition("=")[2]):
                message = "looks like a secret, and everybody who can read the repository or the job can read it"
                allowed = "an entry under secrets; the program reads its variable"
                yield finding(job, (field, index), message, rule=JOB_SECRET, allowed=allowed)


JOB_MEMORY = job_rule(
    "job-memory",
    "Find shared memory that does not fit the memory or the data loaders.",
)


def _shared_memory(job: ResolvedJob) -> Iterator[Draft]:
    """Find a job whose shared memory exceeds its memory, or that has none for its data loaders, which need it."""
    size = job.spec.shared_memory_gib
    memory = job.spec.memory_gib
    if size and memory and size > memory:
        message = f"is {size} GiB, but it is part of the memory, which is {memory} GiB"
        allowed = f"at most {memory}"
        yield finding(job, ("shared_memory_gib",), message, rule=JOB_MEMORY, allowed=allowed, nearest=memory)
    if size == 0 and job.spec.data_loaders:
        message = f"is 0, but {job.spec.data_loaders} data loaders pass their data through /dev/shm"
        yield finding(
            job, ("shared_memory_gib",), message, rule=JOB_MEMORY, allowed="a size in GiB, or the field left out"
        )
