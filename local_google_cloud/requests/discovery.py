"""Finds the method in Google's discovery documents that a request calls, and its parameters.

The documents are part of google-api-python-client, except for one that we wrote. Each is parsed on first use, since
parsing Compute Engine's document takes a tenth of a second. Paths start with ``/<service>/``, such as
``/container/v1/projects/...``.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Final
from urllib.parse import unquote

from training_platform.catalog.reading import own_document
from training_platform.catalog.types import Json

# Versions by service; the gcp provider calls the beta version if one exists.
SERVICES: Final[Mapping[str, tuple[str, ...]]] = {
    "aiplatform": ("v1", "v1beta1"),
    "artifactregistry": ("v1", "v1beta2"),
    "backupdr": ("v1",),
    "billingbudgets": ("v1", "v1beta1"),
    "cloudbilling": ("v1",),
    "cloudkms": ("v1",),
    "cloudresourcemanager": ("v1", "v3"),
    "compute": ("v1", "beta"),
    "container": ("v1", "v1beta1"),
    "dns": ("v1", "v1beta2"),
    "file": ("v1", "v1beta1"),
    "iam": ("v1",),
    "logging": ("v2",),
    "lustre": ("v1",),
    "monitoring": ("v3", "v1"),
    "notebooks": ("v2",),
    "policytroubleshooter": ("v3",),
    "servicenetworking": ("v1",),
    "secretmanager": ("v1",),
    "serviceusage": ("v1", "v1beta1"),
    "storage": ("v1",),
}
_DOCUMENTS: Final = files("googleapiclient.discovery_cache") / "documents"
_VARIABLE: Final = re.compile(r"\{(\+?)([^}]+)\}")
_COMMON: Final = frozenset({"zx", "trace", "upload_protocol", "uploadType", "quotaUser", "userIp"})


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of one version of an API. ``path`` is relative to the document's base path."""

    id: str
    verb: str
    path: str
    flat_path: str
    parameters: Mapping[str, Json]
    request: str | None
    response: str | None

    @property
    def collection(self) -> str:
        """The collection to which the method belongs, with dots: ``projects.locations.clusters``."""
        return self.id.split(".", 1)[1].rpartition(".")[0]

    @property
    def action(self) -> str:
        """The last part of the method's id: ``get``, ``insert``, ``setIamPolicy``."""
        return self.id.rpartition(".")[2]

    @cached_property
    def precision(self) -> tuple[int, int]:
        """How exact a match is: the number of fixed segments, and the length of the custom verb. The highest wins."""
        verb = len(self.flat_path.rpartition(":")[2]) if ":" in self.path else 0
        return sum("{" not in part for part in self.flat_path.split("/")), verb

    @cached_property
    def shape(self) -> re.Pattern[str]:
        """A pattern that matches the document's ``flatPath``."""
        return _compiled(self.flat_path, names=False)

    @cached_property
    def template(self) -> re.Pattern[str]:
        """A pattern that matches the path, with a group for each parameter."""
        return _compiled(self.path, names=True)


@dataclass(frozen=True, kw_only=True)
class Route:
    """The method that a request calls, and the decoded parameters in its path."""

    api: Api
    method: Method
    parameters: Mapping[str, str]
    path: str  # below the version, without a custom verb: projects/p/locations/l/clusters/c


class Api:
    """One version of an API."""

    def __init__(self, service: str, version: str, document: Json) -> None:
        self.service = service
        self.version = version
        self.schemas: Mapping[str, Json] = document["schemas"]
        self.common: frozenset[str] = frozenset(document.get("parameters", ())) | _COMMON
        # Some documents name the version in servicePath, the others in each method's path.
        self.base = str(document["servicePath"])
        self._buckets: dict[tuple[str, int], list[Method]] = defaultdict(list)
        self.methods: dict[str, Method] = {}
        for method in _methods(document):
            self.methods[method.id] = method
            self._buckets[method.verb, method.flat_path.count("/")].append(method)

    @property
    def host(self) -> str:
        """The API's host name, by which Service Usage refers to it."""
        return f"{self.service}.googleapis.com"

    def match(self, verb: str, path: str) -> Route | None:
        """Return the route of a percent-encoded path relative to ``/<service>/``."""
        relative = self._relative_path(path)
        if relative is None:
            return None
        methods = [method for method in self._buckets[verb, relative.count("/")] if method.shape.fullmatch(relative)]
        if not methods:
            return None
        method = max(methods, key=lambda method: method.precision)
        match = method.template.fullmatch(relative)
        parameters = {name: unquote(value) for name, value in match.groupdict().items()} if match else {}
        resource = relative.removeprefix(f"{self.service}/").removeprefix(f"{self.version}/")
        if ":" in method.path.rpartition("/")[2]:
            resource = resource.rpartition(":")[0]
        return Route(api=self, method=method, parameters=parameters, path=unquote(resource))

    def _relative_path(self, path: str) -> str | None:
        """Return a path relative to the document's base path. /compute/v1/... stands for /compute/compute/v1/..."""
        version = f"{self.version}/"
        if self.base:
            for base in (self.base, version):
                if path.startswith(base):
                    return path.removeprefix(base)
            return None
        method = next(iter(self.methods.values()))
        if method.flat_path.startswith(f"{self.service}/{version}") and path.startswith(version):
            return f"{self.service}/{path}"
        return path

    def schema(self, name: str) -> str:
        """Return a schema's full name. Some documents put the package before it: ``GoogleCloudAiplatformV1beta1``."""
        if name not in self.schemas:
            package = re.compile(rf"Google[A-Za-z]*V[0-9]+(?:(?:alpha|beta)[0-9]+)?{name}")
            name = next(schema for schema in self.schemas if package.fullmatch(schema))
        return name

    def verbs(self, path: str) -> list[str]:
        """Return the HTTP methods that a path accepts."""
        return [verb for verb in ("GET", "POST", "PUT", "PATCH", "DELETE") if self.match(verb, path)]


@cache
def load(service: str, version: str) -> Api:
    """Return one version of an API. Raises KeyError if it is not served."""
    if version not in SERVICES.get(service, ()):
        raise KeyError(f"{service} {version}")
    document = own_document(service, version)
    if document is None:
        document = json.loads((_DOCUMENTS / f"{service}.{version}.json").read_text(encoding="utf-8"))
    return Api(service, version, document)


def find(service: str, path: str) -> Api | None:
    """Return the API for a path relative to ``/<service>/``. Its first or second segment is the version."""
    versions = SERVICES.get(service, ())
    version = next((part for part in path.split("/")[:2] if part in versions), None)
    return load(service, version) if version else None


def _methods(node: Json) -> Iterator[Method]:
    for method in node.get("methods", {}).values():
        yield Method(
            id=method["id"],
            verb=method["httpMethod"],
            path=method["path"],
            flat_path=method.get("flatPath", method["path"]),
            parameters=method.get("parameters", {}),
            request=method.get("request", {}).get("$ref"),
            response=method.get("response", {}).get("$ref"),
        )
    for child in node.get("resources", {}).values():
        yield from _methods(child)


def _compiled(template: str, *, names: bool) -> re.Pattern[str]:
    pattern = ""
    end = 0
    for variable in _VARIABLE.finditer(template):
        if variable[1] and names:
            value = ".+"
        elif variable.end() < len(template):
            value = "[^/]+?"
        else:
            value = "[^/:]+|[^/]+"
        group = f"(?P<{variable[2]}>{value})" if names else f"(?:{value})"
        pattern += re.escape(template[end : variable.start()]) + group
        end = variable.end()
    return re.compile(pattern + re.escape(template[end:]))
