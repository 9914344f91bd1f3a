"""Findings about a job on any target: missing source, fields that exclude each other, data sets out of reach."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Collection, Iterator

from training_platform.catalog.locations import region_of
from training_platform.config.data_sets import access_mode, data_location
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.container import mount_path
from training_platform.parts.jobs.job_model import PythonSource
from training_platform.parts.jobs.job_rules import gke_rule
from training_platform.parts.jobs.program_words import word_findings
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.source_archive import goes_along, source_bucket, source_files

JOB_LOCAL_CHECKPOINTS = declare(
    "job-local-checkpoints",
    "Find local checkpoints that do not fit the job's limits, on VMs without local SSD, or with Pathways.",
    ruleset="jobs",
)
JOB_RETRY_ON = declare(
    "job-retry-on",
    "Find exit codes that are retried without effect, or never.",
    ruleset="jobs",
)


LARGEST_SOURCE_MIB = 100  # of files, before they are packed
_BUILDS = ("pyproject.toml", "setup.py")


def job_findings(job: ResolvedJob) -> list[Finding]:
    """Return the findings about a valid job file that hold on any target."""
    return located(_drafts(job))


JOB_MEMORY = declare(
    "job-memory",
    "Find shared memory that does not fit the memory or the data loaders.",
    ruleset="jobs",
)


def _drafts(job: ResolvedJob) -> Iterator[Draft]:
    yield from _source(job)
    yield from _without_command(job)
    yield from _without_output(job)
    yield from _tag(job)
    yield from _mounts(job)
    yield from _secrets_in_env(job)
    yield from word_findings(job)
    yield from _sweep(job)
    size = job.spec.shared_memory_gib
    memory = job.spec.memory_gib
    if size and memory and size > memory:
        message = f"is {size} GiB, and counts as a part of the memory, which is {memory} GiB"
        allowed = f"at most {memory}"
        yield finding(job, ("shared_memory_gib",), message, rule=JOB_MEMORY, allowed=allowed, nearest=memory)
    if size == 0 and job.spec.data_loaders:
        message = f"is 0, and {job.spec.data_loaders} data loaders hand over what they load in /dev/shm"
        yield finding(job, ("shared_memory_gib",), message, rule=JOB_MEMORY, allowed="a size in GiB, or no such field")


JOB_COMMAND = declare(
    "job-command",
    "Find secrets or a notice in a job without a command: the launcher that fetches them has nothing to start.",
    ruleset="jobs",
)


def _without_command(job: ResolvedJob) -> Iterator[Draft]:
    """Find fields that need the launcher, in a job that leaves its command to the image."""
    spec = job.spec
    if spec.source or spec.command:
        return
    for field, value in (("secrets", spec.secrets), ("notify", spec.notify)):
        if value:
            message = "needs a command: a launcher starts it, and does not know the image's own"
            yield finding(job, (field,), message, rule=JOB_COMMAND, allowed="command, such as [python, -m, train]")
    if spec.local_checkpoints and spec.local_checkpoints.restarts:
        message = "restarts the program in its container by a launcher, which does not know the image's own command"
        allowed = "command, such as [python, -m, train], or restarts: 0"
        yield finding(job, ("local_checkpoints",), message, rule=JOB_COMMAND, allowed=allowed)
    if spec.gke:
        message = (
            "is missing, and no launcher starts the image's own program: if it ends with 0 when its VM is drained, the "
            "run has succeeded"
        )
        allowed = "command, such as [python, -m, train]; or an image whose program ends with 143 after SIGTERM"
        yield finding(job, ("command",), message, rule=JOB_COMMAND, severity="note", allowed=allowed)


JOB_OUTPUT = declare(
    "job-output",
    "Find a path below the output in a job without an output, and a job on spot VMs without one.",
    ruleset="jobs",
)


def _without_output(job: ResolvedJob) -> Iterator[Draft]:
    """Find fields that write below output, in a job that has none."""
    spec = job.spec
    if spec.output:
        return
    yield from _nothing_to_resume_from(job)
    allowed = f"output: {enumeration(job.team.buckets) or 'the team has no bucket'}"
    if spec.local_checkpoints:
        message = "last as long as their pod, and the job has no output for checkpoints that stay"
        yield finding(job, ("local_checkpoints",), message, rule=JOB_OUTPUT, allowed=allowed)
    for field, value in (("profiler", spec.profiler), ("tensorboard", spec.tensorboard)):
        if value:
            yield finding(job, (field,), "writes below output, and the job has none", rule=JOB_OUTPUT, allowed=allowed)


def _nothing_to_resume_from(job: ResolvedJob) -> Iterator[Draft]:
    """Find a job on spot VMs that keeps no checkpoint: each interruption begins it again."""
    spec = job.spec
    on_gke = job.flavor is not None and job.flavor.capacity == "spot"
    on_vertex = spec.vertex is not None and spec.vertex.capacity == "spot"
    if (on_gke or on_vertex) and all(mount.read_only for mount in spec.mounts):
        path: Path = ("gke", "flavor") if on_gke else ("vertex", "capacity")
        message = "is spot, and the job has neither output nor a writable mount: each interruption begins it again"
        allowed = f"output: {enumeration(job.team.buckets) or 'the team has no bucket'}, and checkpoints there"
        yield finding(job, path, message, rule=JOB_OUTPUT, severity="note", allowed=allowed)


JOB_IMAGE_TAG = declare(
    "job-image-tag",
    "Find an image of a job with a tag that moves, so each start may run another program.",
    ruleset="jobs",
    severity="warning",
)


def _tag(job: ResolvedJob) -> Iterator[Draft]:
    """Find an image with a tag that moves with each release: pods that start later may run another program.

    The prebuilt images of Vertex AI, which a job with source gets by default, have no other tag.
    """
    source = job.spec.source
    name = (source.image if source else job.spec.image) or ""
    if name.endswith(":latest") and "/vertex-ai" not in name:
        message = f"{name} is moved to each new version: pods that start later may run another program"
        allowed = "a tag that nobody moves, or @sha256: and a digest, as image build prints"
        path = ("source", "image") if source else ("image",)
        yield finding(job, path, message, rule=JOB_IMAGE_TAG, allowed=allowed)


LARGE_SWEEP = 100  # runs; Kueue takes more, and each is machines for a whole run


JOB_SWEEP = gke_rule(
    "job-sweep",
    "Find a search, which runs only on Vertex AI, fields that only a search uses, and (a note, or a warning "
    "above 100) the number of a sweep's runs.",
)


def _sweep(job: ResolvedJob) -> Iterator[Draft]:
    """Say how many runs a sweep has, and warn of many."""
    if job.spec.sweep is None:
        return
    size = job.spec.sweep.size
    message = f"is {size:,} runs, each on machines of its own"
    if size > LARGE_SWEEP:
        allowed = f"up to {LARGE_SWEEP} without a warning; method: random on Vertex AI tries some of them"
        yield finding(job, ("sweep",), message, rule=JOB_SWEEP, severity="warning", allowed=allowed)
    else:
        yield finding(job, ("sweep",), message, rule=JOB_SWEEP, severity="note")


def readable(job: ResolvedJob) -> bool:
    """Whether the job's source, if any, can be packed."""
    return not any(draft.field[:1] == ("source",) for draft in _source(job))


JOB_SOURCE = declare(
    "job-source",
    "Find source that is not in the repository, or is not a Python file or package.",
    ruleset="jobs",
)


JOB_SOURCE_BUCKET = declare(
    "job-source-bucket",
    "Find source without a bucket for its upload.",
    ruleset="jobs",
)


def _source(job: ResolvedJob) -> Iterator[Draft]:
    """Find source outside the repository, a folder that is not a package, and source without a bucket."""
    source = job.spec.source
    root = job.workspace.root
    if source is None:
        return
    rule = JOB_SOURCE
    yield from _links(job, source)
    if source.file and not ((root / source.file).is_file() and source.file.endswith(".py")):
        message = f"{source.file} is not a Python file of this repository"
        yield finding(job, ("source", "file"), message, rule=rule, allowed="a file that ends in .py")
    if source.package and not any((root / source.package / name).is_file() for name in _BUILDS):
        message = f"{source.package} is not a Python package of this repository"
        allowed = f"a folder with {' or '.join(_BUILDS)}"
        yield finding(job, ("source", "package"), message, rule=rule, allowed=allowed)
    if source.folder:
        yield from _folder(job, source.folder)
    if source_bucket(job) is None:
        message = "has no bucket to go to"
        allowed = f"output or source.bucket: {enumeration(job.team.buckets) or 'the team has none'}"
        yield finding(job, ("source",), message, rule=JOB_SOURCE_BUCKET, allowed=allowed)


def _links(job: ResolvedJob, source: PythonSource) -> Iterator[Draft]:
    """Find links out of the repository, out of the source's folder, or to hidden files, which are never uploaded."""
    field = next(field for field in ("file", "package", "folder") if getattr(source, field))
    name = getattr(source, field)
    root = job.workspace.root.resolve()
    folder = root / name
    files: list[pathlib.Path] = []
    if source.file:
        files = [folder]
        folder = folder.parent
    elif folder.is_dir():
        files = source_files(folder, git=source.folder is not None)
    top = folder.resolve()
    if not top.is_relative_to(root):
        message = f"{name} leads out of the repository"
        yield finding(job, ("source", field), message, rule=JOB_SOURCE, allowed="a path without such links")
        return
    leading = [file for file in files if not goes_along(file.resolve(), top)]
    if leading:
        names = enumeration([file.relative_to(folder).as_posix() for file in leading])
        message = f"{names} of {name} lead out of it, or to a hidden file: a run would have files that nobody listed"
        yield finding(job, ("source", field), message, rule=JOB_SOURCE, allowed="files, and links inside the folder")


def _folder(job: ResolvedJob, name: str) -> Iterator[Draft]:
    """Find a folder that does not exist, or is too large."""
    folder = job.workspace.root / name
    path = ("source", "folder")
    files = source_files(folder, git=True) if folder.is_dir() else []
    if not files:
        message = f"{name} is not a folder of this repository with files that git does not ignore"
        yield finding(job, path, message, rule=JOB_SOURCE, allowed="a folder with the program")
    sizes = {file.relative_to(folder).as_posix(): file.stat().st_size for file in files}
    total = sum(sizes.values()) / 2**20
    if total > LARGEST_SOURCE_MIB:
        largest = max(sizes, key=sizes.__getitem__)
        message = f"{name} has {total:,.0f} MiB; {largest} has {sizes[largest] / 2**20:,.0f}"
        allowed = f"at most {LARGEST_SOURCE_MIB} MiB: ignore data and checkpoints in .gitignore, and mount them"
        yield finding(job, path, message, rule=JOB_SOURCE, allowed=allowed)


# Beginnings that only tokens have: Hugging Face, GitHub, GitLab, OpenAI and others, AWS, Google, Slack.
_TOKEN = re.compile(
    r"(hf_|gh[pousr]_|github_pat_|glpat-|sk-|AKIA|AIza|xox[abp]-)[A-Za-z0-9_-]{12,}$|-----BEGIN .*PRIVATE KEY"
)
_SECRET_NAME = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|API_?KEY|ACCESS_KEY|PRIVATE_KEY)$", re.IGNORECASE)
# A switch, a number, a path, an address, or a token of a model's vocabulary.
_HARMLESS = re.compile(
    r"(true|false|[0-9.]{0,9}|/\S*|(gs|https?)://[^@\s]*|<[^<>]*>|\[[A-Z]+\]|\$\(\w+\))$", re.IGNORECASE
)


JOB_SECRET = declare(
    "job-secret",
    "Find a token or a password in the plain variables or words of a job.",
    ruleset="jobs",
)


def _secrets_in_env(job: ResolvedJob) -> Iterator[Draft]:
    """Find a token in a job's plain variables, which everybody who reads the repository or the job sees."""
    spec = job.spec
    for name, value in spec.env.items():
        if _TOKEN.match(value) or (_SECRET_NAME.search(name) and not _HARMLESS.match(value)):
            secrets = job.team.secrets
            service = name.partition("_")[0].casefold()
            meant = next((secret for secret in secrets if secret.startswith(service)), None)
            secret = meant or (secrets[0] if len(secrets) == 1 else "NAME")
            new = "" if secrets else ", once the team's stack file has NAME under secrets"
            message = "looks like a secret, which everybody who reads the repository or the job would have"
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
                message = "looks like a secret, which everybody who reads the repository or the job would have"
                allowed = "secrets, whose variable the program reads"
                yield finding(job, (field, index), message, rule=JOB_SECRET, allowed=allowed)


_OF_THE_IMAGE = frozenset({
    "/bin", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/sys", "/usr",
    "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/var",
})  # fmt: skip


JOB_MOUNT = declare(
    "job-mount",
    "Find mounts that exclude each other: two at one path, caches that are read-only or kept twice.",
    ruleset="jobs",
)


def _mounts(job: ResolvedJob) -> Iterator[Draft]:
    """Find mounts at one path, read-only or second caches, and a file cache of anything but a bucket."""
    taken: dict[str, str] = {}
    caching = [mount.name for mount in job.spec.mounts if mount.caches]
    for index, mount in enumerate(job.spec.mounts):
        path = mount_path(job, mount)
        if path in taken:
            message = f"{path} is the path of mount {taken[path]} too"
            yield finding(job, ("mounts", index), message, rule=JOB_MOUNT, allowed="a path for each")
        taken.setdefault(path, mount.name)
        if path in _OF_THE_IMAGE:
            message = f"hides {path} of the image, and so its programs"
            allowed = "a path of its own, such as /mnt/data"
            yield finding(job, ("mounts", index, "path"), message, rule=JOB_MOUNT, severity="warning", allowed=allowed)
        if mount.caches and mount.read_only:
            message = "keeps caches, which the job writes, and is read only"
            yield finding(job, ("mounts", index, "caches"), message, rule=JOB_MOUNT, allowed="read_only: false")
        if mount.caches and mount.name != caching[0]:
            message = f"mount {caching[0]} keeps the caches already"
            yield finding(job, ("mounts", index, "caches"), message, rule=JOB_MOUNT, allowed="one mount with caches")
        if mount.file_cache_gib and not mount.source.bucket:
            message = "is for buckets: Filestore is cached by the node"
            yield finding(job, ("mounts", index, "file_cache_gib"), message, rule=JOB_MOUNT, allowed="0", nearest=0)


JOB_DATA_SET = declare(
    "job-data-set",
    "Find a data set that cannot be mounted where the job runs, or is not filled yet.",
    ruleset="jobs",
)


JOB_DATA_SET_REGION = declare(
    "job-data-set-region",
    "Find a bucket that a job reads from another region, which costs traffic.",
    ruleset="jobs",
    severity="warning",
    refused_by="nobody: the traffic is charged",
)


def data_set_findings(job: ResolvedJob, region: str, *, vertex: bool) -> Iterator[Draft]:
    """Find data sets that cannot be mounted in a region, on Vertex AI, or yet; and buckets in another region."""
    for index, mount in enumerate(job.spec.mounts):
        if (key := mount.source.data_set) is None:
            continue
        path: Path = ("mounts", index, "source", "data_set")
        data = job.environment.data_sets[key]
        here = region_of(data_location(data, job.environment))
        if vertex and data.hyperdisk_ml:
            message = f"{key} is on Hyperdisk ML, which Vertex AI does not mount"
            yield finding(
                job, path, message, rule=JOB_DATA_SET, allowed="a bucket, Filestore or Managed Lustre, or gke"
            )
        elif access_mode(data, job.team.name) is None:
            message = f"{key} is still being filled by team {data.writer or 'nobody'}"
            yield finding(job, path, message, rule=JOB_DATA_SET, allowed=f"filled: true of data_sets.{key}, once it is")
        elif region != here and not data.bucket:
            readable_data_sets = {
                name: spec for name, spec in job.environment.data_sets.items() if spec.readable_by(job.team.name)
            }
            near = [
                name
                for name in readable_data_sets
                if region_of(data_location(readable_data_sets[name], job.environment)) == region
            ]
            message = f"{key} is in {here} and the job in {region}: only a bucket is mounted from another region"
            allowed = enumeration(near) or f"a data set in {region}, or a job in {here}"
            yield finding(job, path, message, rule=JOB_DATA_SET, allowed=allowed)
        elif region != here:
            size = f"{data.size_gib:,} GiB" if data.size_gib else "all of it"
            crossing = f"each pass over it sends {size} between regions, charged"
            message = f"{key} is in {here} and the job in {region}: {crossing}"
            allowed = f"a copy in {region}, or a job in {here}"
            yield finding(job, path, message, rule=JOB_DATA_SET_REGION, allowed=allowed)


# USD for a GiB between regions of North America, or of Europe; between continents it is more. Source: general knowledge
# of Cloud Storage's prices (unverified: no copy of the table of data transfer was found on 2026-11-23).
USD_BETWEEN_REGIONS = 0.02


JOB_BUCKET_REGION = declare(
    "job-bucket-region",
    "Find a bucket of another region than the job's, whose traffic is charged.",
    ruleset="jobs",
    severity="warning",
    refused_by="nobody: the traffic is charged",
)


def bucket_findings(job: ResolvedJob, region: str) -> Iterator[Draft]:
    """Find buckets in another region than the job, since traffic between regions is charged."""
    buckets = job.team.buckets
    used: dict[Path, str | None] = {("output",): job.spec.output}
    used |= {("mounts", index, "source", "bucket"): mount.source.bucket for index, mount in enumerate(job.spec.mounts)}
    for path, name in used.items():
        if name is None or buckets[name].location == region:
            continue
        message = (
            f"{name} is in {buckets[name].location} and the job in {region}: each GiB between them costs about "
            f"{USD_BETWEEN_REGIONS} USD within a continent (unverified), and more beyond"
        )
        near = sorted(other for other, bucket in buckets.items() if bucket.location == region)
        allowed = f"a bucket in {region}: {enumeration(near) or 'the team has none'}"
        nearest = near[0] if near else None
        rule = JOB_BUCKET_REGION
        yield finding(job, path, message, rule=rule, severity="warning", allowed=allowed, nearest=nearest)


def disk_findings(job: ResolvedJob, zones: Collection[str | None]) -> Iterator[Draft]:
    """Find data sets on a disk outside the zones of the job's VMs; ``zones`` has None for any zone."""
    for index, mount in enumerate(job.spec.mounts):
        data = job.environment.data_sets[mount.source.data_set] if mount.source.data_set else None
        disk = data.hyperdisk_ml if data else None
        if disk and zones and not {disk.zone, None} & set(zones):
            path: Path = ("mounts", index, "source", "data_set")
            there = enumeration(sorted(zone for zone in zones if zone))
            message = f"{mount.source.data_set} is on a disk in {disk.zone}, and the job's VMs are in {there}"
            yield finding(
                job, path, message, rule=JOB_DATA_SET, allowed=f"a flavor with a pool in {disk.zone}, or another copy"
            )
