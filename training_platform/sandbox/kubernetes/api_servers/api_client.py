"""The REST calls to one cluster's API server: discovery, server-side apply, delete; what it refuses is ``Refused``.

Server-side apply refuses fields that a kind lacks (seen with 1.33); strict validation refuses fields said twice, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import httpx

from training_platform.sandbox.kubernetes.api_servers.control_plane import START_SECONDS, Access
from training_platform.sandbox.kubernetes.store import Refused
from training_platform.sandbox.kubernetes.values import Json, dig, has_condition

FIELD_MANAGER: Final = "pulumi-kubernetes"
_DEFINITION: Final = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_POLL_SECONDS: Final = 0.05  # between two looks at whether a definition is served yet, or an object gone


class Resource(NamedTuple):
    """How the server calls a kind in its paths; ``root`` is ``/api/v1`` or ``/apis/<group>/<version>``."""

    root: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """The path of an object, or of all objects of the kind."""
        inside = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root}{inside}/{self.plural}" + (f"/{name}" if name else "")


class NotThere(Refused):
    """The object, its namespace, or its kind is not there."""


class Conflict(Refused):
    """Somebody else changed the object meanwhile."""


class ApiClient:
    """One cluster; safe to use from several threads."""

    def __init__(self, access: Access) -> None:
        self._http = access.client()
        self._kinds: dict[str, dict[str, Resource]] = {}  # by root and kind

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def resource(self, group: str, version: str, kind: str) -> Resource:
        """Look a kind up; without a version, in the one that the server prefers. Raises NotThere."""
        root = self._root(group, version)
        if kind not in self._kinds.get(root, {}):
            self._kinds[root] = dict(self._discover(root))
        if kind not in self._kinds[root]:
            raise NotThere(f'no matches for kind "{kind}" in version "{root.removeprefix("/apis/")}"')
        return self._kinds[root][kind]

    def read(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """An object without the server's notes on who set what, or ``None``."""
        try:
            return _plain(self._call("GET", resource.path(namespace, name)))
        except NotThere:
            return None

    def apply(
        self, resource: Resource, namespace: str, name: str, obj: Json, *, dry_run: bool = False, force: bool = False
    ) -> Json:
        """Apply an object server-side: create it, or set its fields and take away those that were set so before.

        With ``force`` fields that others have set are taken over; else they are a conflict, which is refused.
        """
        options = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", "force": str(force).lower()}
        if dry_run:
            options["dryRun"] = "All"
        headers = {"Content-Type": "application/apply-patch+yaml"}  # JSON is YAML
        return _plain(
            self._call("PATCH", resource.path(namespace, name), params=options, json=obj, headers=headers),
        )

    def delete(self, resource: Resource, namespace: str, name: str, *, controlled: bool = False) -> None:
        """Delete an object; deleting it twice is not an error.

        Where controllers run (``controlled``) it waits until they take their finalizers away, else it takes them away.
        """
        try:
            self._call("DELETE", resource.path(namespace, name), params={"propagationPolicy": "Background"})
        except NotThere:
            return
        deadline = time.monotonic() + START_SECONDS
        while (found := self.read(resource, namespace, name)) and (holders := dig(found, "metadata", "finalizers")):
            if not controlled:
                patch = {"Content-Type": "application/merge-patch+json"}
                body = json.dumps({"metadata": {"finalizers": None}})
                self._call("PATCH", resource.path(namespace, name), content=body, headers=patch)
                return
            if time.monotonic() > deadline:
                raise Refused(f'{resource.plural} "{name}" is being deleted, and held by {", ".join(holders)}')
            time.sleep(_POLL_SECONDS)

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace and all in it, as its controller does; without one, in its place."""
        namespaces = self.resource("", "v1", "Namespace")
        path = namespaces.path("", name)
        self.delete(namespaces, "", name)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for collection in self._collections(name):
                self._call("DELETE", collection)
            try:
                self._call("PUT", f"{path}/finalize", json={**self._call("GET", path), "spec": {"finalizers": []}})
            except NotThere:
                return
            except Conflict:  # the controller is at it
                time.sleep(_POLL_SECONDS)

    def define(self, definitions: Mapping[str, Json]) -> None:
        """Install CustomResourceDefinitions, by name, and wait until their kinds are served."""
        resource = self.resource(*_DEFINITION)
        for name, definition in definitions.items():
            self.apply(resource, "", name, definition, force=True)
        deadline = time.monotonic() + START_SECONDS
        for name in definitions:
            while not has_condition(self.read(resource, "", name) or {}, "Established"):
                if time.monotonic() > deadline:
                    raise Refused(f"the definition {name} is not served {START_SECONDS:.0f} s after it was installed")
                time.sleep(_POLL_SECONDS)

    def _root(self, group: str, version: str) -> str:
        if not group:
            return f"/api/{version or 'v1'}"
        return f"/apis/{group}/{version or self._call('GET', f'/apis/{group}')['preferredVersion']['version']}"

    def _discover(self, root: str) -> Iterator[tuple[str, Resource]]:
        for each in self._resources(root):
            yield each["kind"], Resource(root, each["name"], each["namespaced"])

    def _resources(self, root: str) -> Iterator[Json]:
        """Every kind of a version; one that has none is empty. Parts of objects, such as ``pods/log``, are left out."""
        try:
            listed = self._call("GET", root)
        except NotThere:
            return
        yield from (each for each in listed["resources"] if "/" not in each["name"])

    def _collections(self, namespace: str) -> Iterator[str]:
        groups = self._call("GET", "/apis")["groups"]
        for root in ("/api/v1", *(f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups)):
            for each in self._resources(root):
                if each["namespaced"] and "deletecollection" in each["verbs"]:
                    yield Resource(root, each["name"], namespaced=True).path(namespace)

    def _call(self, method: str, path: str, **options: Any) -> Json:
        try:
            answer = self._http.request(method, path, **options)
        except httpx.TransportError as error:
            raise Refused(f"the API server of the cluster does not answer: {error}") from error
        found: Json = answer.json() if answer.headers["Content-Type"] == "application/json" else {}
        if answer.is_success:
            return found
        reason = found.get("message") or answer.text.strip()
        raise _REFUSALS.get(answer.status_code, Refused)(reason)


_REFUSALS: Final[Mapping[int, type[Refused]]] = {HTTPStatus.NOT_FOUND: NotThere, HTTPStatus.CONFLICT: Conflict}


def _plain(obj: Json) -> Json:
    obj.get("metadata", {}).pop("managedFields", None)
    return obj
