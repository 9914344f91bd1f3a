"""The parts of a job's container that Kubernetes and Vertex AI share: image, command, variables, mounts, source.

On GKE, a launcher starts every program with a ``command``. It first fetches secrets and source, then waits for the
program, and ensures that a stopped program does not count as successful. On Vertex AI, only programs that need the
launcher use it. The launcher is one Python file without dependencies, run by the container's own Python, so the image
needs ``python3``. A job without a ``command`` runs the command of its image, which this project cannot know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from training_platform.catalog import IMAGES
from training_platform.config.names import cache_variables, data_variable
from training_platform.parts.jobs.job_model import Mount
from training_platform.parts.jobs.rendezvous import at_run_time
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.source_archive import archive_uri
from training_platform.resources.launcher import PLAN_VARIABLE, launcher
from training_platform.resources.scope import bucket_id, package_index, secret_id

OUTPUT_VARIABLE = "OUTPUT_URI"
PROFILE_VARIABLE = "PROFILE_URI"
LOADERS_VARIABLE = "DATA_LOADERS"
ON_GKE: Final = "image"
ON_VERTEX: Final = "imageUri"
"""The keys for a container's image on each platform."""


class Launch(NamedTuple):
    """What the launcher does for a program in addition to fetching secrets and source.

    The launcher replaces the placeholders in the variables ``nodes``, restarts a failed program up to ``restarts``
    times, and sets the variables that the shell ``script`` on the node exports. If ``on_gke``, it also acts as process
    1: it forwards signals, and counts a program that ends with 0 after a signal as unsuccessful.
    """

    nodes: Mapping[str, str] = {}
    restarts: int = 0
    script: str = ""
    on_gke: bool = False


def container(
    job: ResolvedJob, image_key: str, platform: Mapping[str, Any] | None = None, *, restarts: int = 0, script: str = ""
) -> dict[str, Any]:
    """Return image, command, arguments and variables. ``image_key`` is the image's key on the platform.

    ``platform`` contains additional variables; the job's own variables override them. The launcher fills in the
    variables that depend on the nodes of this run.
    """
    launch = Launch(at_run_time(platform or {}), restarts, script=script, on_gke=image_key == ON_GKE)
    command, args = argv(job, launch)
    fixed = {name: value for name, value in (platform or {}).items() if name not in launch.nodes}
    body: dict[str, Any] = {image_key: image(job)}
    if command:
        body["command"] = command
    if args:
        body["args"] = args
    body["env"] = named({**fixed, **variables(job), **launch_variables(job, launch)})
    return body


def named(variables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return variables in the list format of both platforms. A non-string value refers to a field of the pod."""
    rows = variables.items()
    return [{"name": name, "value" if isinstance(value, str) else "valueFrom": value} for name, value in rows]


def variables(job: ResolvedJob) -> dict[str, str]:
    """Return the variables for output, mounts and data loaders. The job's own variables override them."""
    uri = output_uri(job)
    output = {OUTPUT_VARIABLE: uri} if uri else {}
    profile = {PROFILE_VARIABLE: f"{uri}/profile/"} if uri and job.spec.profiler else {}
    loaders = {LOADERS_VARIABLE: str(job.spec.data_loaders)} if job.spec.data_loaders else {}
    return {**output, **profile, **loaders, **mount_variables(job), **job.spec.env}


def image(job: ResolvedJob) -> str:
    """Return the image of the job or of its source. The default is Vertex AI's prebuilt image for its accelerator.

    If the job has both targets, the image is the one for the accelerator on GKE.
    """
    source = job.spec.source
    if source is None:
        return job.spec.image or ""
    if source.image:
        return source.image
    accelerator = None
    if job.flavor:
        accelerator = job.flavor.accelerator
    elif job.spec.vertex:
        accelerator = job.spec.vertex.machine.accelerator
    return IMAGES[f"vertex-training-{accelerator.kind if accelerator else 'cpu'}"]


def launched(job: ResolvedJob, launch: Launch) -> bool:
    """Return True if the container needs the launcher, before its program starts or after it ends.

    ``launch`` is ignored for a job without a command.
    """
    spec = job.spec
    return bool(spec.secrets or spec.notify or spec.source or (any(launch) and spec.command))


def argv(job: ResolvedJob, launch: Launch) -> tuple[list[str], list[str]]:
    """Return the container's command and arguments."""
    spec = job.spec
    if not launched(job, launch):
        return list(spec.command), list(spec.args)
    program = list(spec.command) or ["python3", "-m", module(job)]
    return ["python3", "-c", launcher()], [*program, *spec.args]


def module(job: ResolvedJob) -> str:
    """Return the module that a job with source runs."""
    source = job.spec.source
    if source is None:
        return ""
    return source.module or Path(source.file or "").stem


def launch_variables(job: ResolvedJob, launch: Launch) -> dict[str, str]:
    """Return the variable that tells the launcher what to do, or none if it only waits for the program."""
    if not launched(job, launch):
        return {}
    folder = job.spec.source and job.spec.source.folder
    plan: dict[str, Any] = {
        "secrets": {
            name: f"projects/{job.scope.project}/secrets/{secret_id(job.scope, key)}/versions/{version or 'latest'}"
            for name, text in job.spec.secrets.items()
            for key, _, version in [text.partition(":")]
        },
        "folder" if folder else "package": archive_uri(job),
        "index": None if folder else python_index(job),
        "nodes": launch.nodes,
        "restarts": launch.restarts,
        "retry_on": job.spec.retry_on if launch.restarts else None,
        "script": launch.script,
        "topic": job.spec.notify,
        "message": {"run": job.name, "team": job.team.name, "output": output_uri(job)} if job.spec.notify else None,
    }
    work = {key: value for key, value in plan.items() if value}
    return {PLAN_VARIABLE: json.dumps(work)} if work else {}


def python_index(job: ResolvedJob) -> str | None:
    """Return the URL of the environment's Python repository, if the job has source to install."""
    location = job.environment.python_repository
    if location is None or job.spec.source is None:
        return None
    return package_index(job.team.environment, job.environment.project, location)


LUSTRE: Final = "/mnt/lustre"
DISKS: Final = "/mnt/disks"
NFS: Final = "/mnt/nfs"  # where Vertex AI mounts file shares; buckets are at /gcs


def fixed_path(job: ResolvedJob, mount: Mount) -> str:
    """Return the default path of a mount. It is fixed on Vertex AI; on GKE the mount's ``path`` overrides it.

    Source: Vertex AI docs, NFS mounts and Cloud Storage as a mounted file system, read 2026-08-22.
    """
    source = mount.source
    data = job.environment.data_sets[source.data_set] if source.data_set else None
    if data and data.bucket:
        return f"/gcs/{data.bucket.name}" + (f"/{data.bucket.path}" if data.bucket.path else "")
    if source.bucket:
        return f"/gcs/{bucket_id(job.scope, source.bucket)}"
    parent = NFS
    if data and data.lustre:
        parent = LUSTRE
    elif data and data.hyperdisk_ml:  # which Vertex AI does not mount
        parent = DISKS
    return f"{parent}/{mount.name}"


def mount_path(job: ResolvedJob, mount: Mount) -> str:
    """Return the mount's path in the containers."""
    return mount.path or fixed_path(job, mount)


def share_folder(job: ResolvedJob, directory: str) -> str:
    """Return the folder of a team's directory in the claim's volume, or "" if the whole share belongs to the team."""
    spec = job.team.directories[directory]
    return directory if spec.of_folder(job.environment.filestore[spec.filestore]) else ""


def mount_variables(job: ResolvedJob) -> dict[str, str]:
    """Return ``MOUNT_<NAME>`` for each mount, ``DATA_SET_<NAME>`` as in notebooks, and the variables for caches."""
    paths = {mount.name: mount_path(job, mount) for mount in job.spec.mounts}
    values = {f"MOUNT_{name.upper().replace('-', '_')}": path for name, path in paths.items()}
    for mount in job.spec.mounts:
        if data_set := mount.source.data_set:
            values[data_variable(data_set)] = paths[mount.name]
        if mount.caches:
            values |= cache_variables(paths[mount.name])
    return values


_FOLDERS = {"AIP_MODEL_DIR": "model", "AIP_CHECKPOINT_DIR": "checkpoints", "AIP_TENSORBOARD_LOG_DIR": "logs"}


def output_uri(job: ResolvedJob) -> str | None:
    """Return the output's folder, ``gs://<bucket>/<run>``, or None for a job without output."""
    return f"gs://{bucket_id(job.scope, job.spec.output)}/{job.name}" if job.spec.output else None


def output_variables(job: ResolvedJob) -> dict[str, str]:
    """Return the variables that Vertex AI derives from the output's folder. On GKE, we set them ourselves.

    Source: Vertex AI docs, environment variables of custom training, read 2026-08-22.
    """
    uri = output_uri(job)
    return {name: f"{uri}/{folder}/" for name, folder in _FOLDERS.items()} if uri else {}
