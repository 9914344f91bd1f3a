"""A validated request, and the classes that describe a service and its kinds of resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local_google_cloud.requests.discovery import Api, Method
from local_google_cloud.requests.validation import output_only
from local_google_cloud.state.authorization import Caller
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.operation import Style
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json


@dataclass(frozen=True, kw_only=True)
class Call:
    """A validated request: its method, its path and query parameters, its normalised body.

    ``path`` starts after the version, has no custom verb, and contains the project's id: ``projects/p/zones/z/disks``.
    ``project`` is "" if the path names none. ``definition`` extends the discovery document of the service. ``caller``
    is None if the request comes from the owner of the projects.
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
        """The short name of the API."""
        return self.api.service

    @property
    def name(self) -> str:
        """The name under which the store keeps the resource or collection that the path identifies."""
        return f"{self.service}/{self.path}"

    @property
    def location(self) -> str:
        """The zone or region in the path, or ``global``."""
        parts = self.path.split("/")
        for word in ("locations", "zones", "regions"):
            if word in parts[:-1]:
                return parts[parts.index(word) + 1]
        return "global"

    def properties(self, schema: str) -> frozenset[str]:
        """Return the fields of a schema."""
        return frozenset(self.api.schemas[self.api.schema(schema)].get("properties", ()))

    def output_only(self, schema: str) -> frozenset[str]:
        """Return the output-only fields of a schema."""
        return frozenset(output_only(self.api, self.api.schema(schema)))


Fill = Callable[[Cloud, Call, Record, Json], None]  # the record to complete, and its previous body ({} if it is new)
Hook = Callable[[Cloud, Call, Record], None]
Handler = Callable[[Cloud, Call], Json]


def nothing(_cloud: Cloud, _call: Call, _record: Record, _old: Json | None = None) -> None:
    """Do nothing. This is the hook of most kinds."""


@dataclass(frozen=True, kw_only=True)
class ResourceKind:
    """Describes one kind of resource of a service, for the methods that all kinds share.

    - ``collection``: the last word of the collection in the document, such as ``clusters``
    - ``schema``: the schema of its body
    - ``wrapper``: the field of a create request that contains the body
    - ``id_in``: the field or query parameter that contains the id; if it is "", the server assigns an id
    - ``id_form``: a pattern that the id matches
    - ``states``: the status field and its values while a resource is created, ready, changed and deleted
    - ``protection``: the field that protects it from deletion
    - ``check_write`` and ``check_delete`` raise Refusal if anything else forbids a write or a deletion
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
    """Return the function that builds the metadata of operations in most services.

    ``{version}`` in ``message`` is replaced by the API's version.
    """

    def metadata(cloud: Cloud, call: Call, _kind: ResourceKind, record: Record) -> Json:
        return {
            "@type": f"type.googleapis.com/{message.format(version=call.api.version)}",
            "createTime": cloud.time(),
            "target": record.path,
            "verb": call.method.action,
            "apiVersion": call.api.version,
        }

    return metadata


@dataclass(frozen=True, kw_only=True)
class Service:
    """What we add to a service's discovery document: kinds, and handlers keyed by ``<collection>.<action>``.

    ``package`` is the protobuf package of its messages without the version, such as ``google.cloud.filestore``.
    ``metadata`` builds the metadata of its google.longrunning operations. Generated clients need both to parse the
    messages.
    """

    name: str
    package: str = ""
    metadata: Metadata | None = None
    kinds: tuple[ResourceKind, ...] = ()
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    needs_enabling: bool = True
    settle: Callable[[Cloud], None] | None = None  # advances resources to their state at the clock's time

    def kind(self, collection: str) -> ResourceKind | None:
        """Return the kind of a collection such as ``projects.locations.clusters``, identified by its last word."""
        last = collection.rpartition(".")[2]
        return next((kind for kind in self.kinds if kind.collection == last), None)
