"""A request once its method is known, and the description of a service by its kinds of resources."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from training_platform.catalog.types import Json
from training_platform.parts.sandbox.cloud.requests.discovery import Api, Method
from training_platform.parts.sandbox.cloud.requests.validation import output_only
from training_platform.parts.sandbox.cloud.state.authorization import Caller
from training_platform.parts.sandbox.cloud.state.cloud import Cloud
from training_platform.parts.sandbox.cloud.state.long_running import Style
from training_platform.parts.sandbox.cloud.state.store import Record


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request: its method, its parameters from path and query, its body as read.

    ``path`` is below the version and without a custom verb, projects by id: ``projects/p/zones/z/disks``.
    ``project`` is empty where the path names none; ``definition`` has the service's additions to its document.
    ``caller`` is None for the projects' owner.
    """

    api: Api
    method: Method
    path: str
    parameters: Mapping[str, Any]
    body: Json
    project: str
    definition: Service
    caller: Caller | None = None

    @property
    def service(self) -> str:
        """The API's short name."""
        return self.api.service

    @property
    def name(self) -> str:
        """The path as the store names it: a resource, or a collection."""
        return f"{self.service}/{self.path}"

    @property
    def location(self) -> str:
        """The zone or region in the path, ``global`` where there is none."""
        parts = self.path.split("/")
        for word in ("locations", "zones", "regions"):
            if word in parts[:-1]:
                return parts[parts.index(word) + 1]
        return "global"

    def properties(self, schema: str) -> frozenset[str]:
        """Return the fields of a schema."""
        return frozenset(self.api.schemas[self.api.schema(schema)].get("properties", ()))

    def output_only(self, schema: str) -> frozenset[str]:
        """Return the fields of a schema that only the API writes."""
        return frozenset(output_only(self.api, self.api.schema(schema)))


Fill = Callable[[Cloud, Call, Record, Json], None]  # the record to complete, and its body before (empty when new)
Hook = Callable[[Cloud, Call, Record], None]
Handler = Callable[[Cloud, Call], Json]


def nothing(_cloud: Cloud, _call: Call, _record: Record, _old: Json | None = None) -> None:
    """Do nothing: the hook of most kinds."""


@dataclass(frozen=True, kw_only=True)
class ResourceKind:
    """A kind of resource of a service, for the methods that all kinds have.

    ``collection`` is the last word of the document's collection, ``clusters``. ``schema`` is its body's, ``wrapper``
    the field of a create request that holds it. ``id_in`` names the field or query parameter that holds the id, of the
    form ``id_form``; where it is empty the server assigns an id. ``states`` are the status field and its values while
    a resource is created, when it is ready, changed and deleted. ``protection`` is the field that protects it from
    deletion. ``check_write`` and ``check_delete`` raise where it cannot be written or deleted for another reason.
    """

    collection: str
    schema: str
    style: Style | None = None
    wrapper: str = ""
    id_in: str = "name"
    id_form: str = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
    parent: bool = False  # whether the resource above must exist
    states: tuple[str, str, str, str, str] | None = None
    fill: Fill = nothing
    check_write: Hook = nothing
    after_create: Hook = nothing
    protection: str = ""
    check_delete: Hook = nothing
    clean_up: Hook = nothing
    show: Callable[[Cloud, Record], Json] | None = None
    etag: str = ""  # the field that changes with every write


Metadata = Callable[[Cloud, Call, ResourceKind, Record], Json]


def operation_metadata(message: str) -> Metadata:
    """Return the maker of the metadata of most services, a ``message`` in which ``{version}`` is the API's."""

    def metadata(cloud: Cloud, call: Call, _kind: ResourceKind, record: Record) -> Json:
        return {
            "@type": f"type.googleapis.com/{message.format(version=call.api.version)}", "createTime": cloud.time(),
            "target": record.name.partition("/")[2], "verb": call.method.action, "apiVersion": call.api.version,
        }  # fmt: skip

    return metadata


@dataclass(frozen=True, kw_only=True)
class Service:
    """The additions of a service to its documents: kinds, and handlers by ``<collection>.<action>``.

    ``package`` is that of its messages without the version, ``google.cloud.filestore``; ``metadata`` describes its
    google.longrunning operations. Generated clients read both by the names that they have.
    """

    name: str
    package: str = ""
    metadata: Metadata | None = None
    kinds: tuple[ResourceKind, ...] = ()
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    needs_enabling: bool = True
    settle: Callable[[Cloud], None] | None = None  # brings resources to the state that they have reached by now

    def kind(self, collection: str) -> ResourceKind | None:
        """Return the kind of a collection, of which the last word counts."""
        last = collection.rpartition(".")[2]
        return next((kind for kind in self.kinds if kind.collection == last), None)


def fill_in(body: Json, kind: str) -> None:
    """Complete a body, or a part of one, by the defaults of its kind in ``defaults.yaml``; fields that are set stay."""
    for path, value in _defaults().get(kind, {}).items():
        *parents, name = path.split(".")
        message = body
        for parent in parents:
            message = message.setdefault(parent, {})
        message.setdefault(name, copy.deepcopy(value))


@cache
def _defaults() -> dict[str, Json]:
    file = Path(__file__).parents[1] / "services" / "defaults.yaml"
    defaults: dict[str, Json] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return defaults
