"""What only a deployment knows of the things that a job on Vertex AI names, and a submission fills in.

In a rendered body it stands as ``{filestore:PROJECT/LOCATION/INSTANCE}``, ``{lustre:PROJECT/LOCATION/INSTANCE}`` or
``{tensorboard:PROJECT/REGION/NAME}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from training_platform.jobs.resolve import ResolvedJob
from training_platform.resources.filestore.instance import instance_name
from training_platform.resources.scope import environment_scope
from training_platform.resources.storage.lustre import instance_id
from training_platform.resources.vertex.tensorboard import tensorboard_name

Kind = Literal["filestore", "lustre", "tensorboard"]
_REFERENCE = re.compile(rf"\{{({'|'.join(get_args(Kind))}):([^/}}]+)/([^/}}]+)/([^/}}]+)\}}")


class Deployed(NamedTuple):
    """A thing of Google Cloud: an instance's address, or the full name of a TensorBoard."""

    kind: Kind
    project: str
    location: str
    name: str

    def __str__(self) -> str:
        """Return the text that stands for it."""
        return f"{{{self.kind}:{self.project}/{self.location}/{self.name}}}"


def filestore_address(job: ResolvedJob, directory: str) -> str:
    """Return what stands for the address of the instance that a team's directory is on."""
    return instance_address(job, job.team.directories[directory].filestore)


def instance_address(job: ResolvedJob, key: str) -> str:
    """Return what stands for the address of a Filestore instance of the environment."""
    name = instance_name(job.team.environment, key)
    return str(Deployed("filestore", job.environment.project, job.environment.filestore[key].location, name))


def lustre_address(job: ResolvedJob, key: str) -> str:
    """Return what stands for the address of a Managed Lustre instance of the environment."""
    name = instance_id(key, environment_scope(job.team.environment, job.environment))
    return str(Deployed("lustre", job.environment.project, job.environment.lustre[key].location, name))


def tensorboard_reference(job: ResolvedJob, region: str) -> str:
    """Return what stands for the full name of the team's TensorBoard in a region."""
    return str(Deployed("tensorboard", job.scope.project, region, tensorboard_name(region, job.scope)))


def references(body: Any) -> set[Deployed]:
    """Return everything that a body leaves to a submission."""
    if isinstance(body, str):
        return {Deployed(kind, *parts) for kind, *parts in _REFERENCE.findall(body)}
    parts = body.values() if isinstance(body, Mapping) else body if isinstance(body, (list, tuple)) else ()
    return {found for part in parts for found in references(part)}


def filled(body: Any, look_up: Callable[[Deployed], str]) -> Any:
    """Return a body in which everything is filled in; each thing is looked up once."""
    known = {found: look_up(found) for found in sorted(references(body))}

    def fill(part: Any) -> Any:
        if isinstance(part, str):
            for found, value in known.items():
                part = part.replace(str(found), value)
            return part
        if isinstance(part, Mapping):
            return {key: fill(value) for key, value in part.items()}
        return [fill(value) for value in part] if isinstance(part, (list, tuple)) else part

    return fill(body)
