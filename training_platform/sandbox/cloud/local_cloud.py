"""The local cloud itself: a request in, Google's answer out; no HTTP here."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from training_platform.sandbox.cloud.faults.active import Faults
from training_platform.sandbox.cloud.faults.operations import OperationFaults
from training_platform.sandbox.cloud.requests import discovery, errors
from training_platform.sandbox.cloud.requests.discovery import Api, Route
from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.requests.validation import check_path, read_body, read_query
from training_platform.sandbox.cloud.resources import actions
from training_platform.sandbox.cloud.resources.model import Call, Json, Service
from training_platform.sandbox.cloud.services import cloudquotas
from training_platform.sandbox.cloud.services.register import SERVICES
from training_platform.sandbox.cloud.state import projects
from training_platform.sandbox.cloud.state.clock import Clock
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.projects import Projects
from training_platform.sandbox.cloud.state.settings import Settings
from training_platform.sandbox.cloud.state.store import Store

LOG: Final = logging.getLogger("training_platform.sandbox.cloud")
_PROJECT: Final = re.compile(r"(?:^|/)projects/([^/:]+)")
_GENERIC: Final = frozenset(actions.ACTIONS)


class LocalCloud(Cloud):
    """Everything that the server knows. Not safe for threads: one request at a time."""

    def __init__(
        self,
        projects: Projects,
        *,
        store: Store | None = None,
        clock: Clock | None = None,
        settings: Settings | None = None,
    ) -> None:
        clock = clock or Clock()
        self.faults = Faults(clock)
        super().__init__(projects, store or Store(), clock, settings or Settings(), OperationFaults(self.faults))

    def settle(self) -> None:
        """Let everything be what it is by now."""
        self.operations.settle()
        for service in SERVICES.values():
            if service.settle is not None:
                service.settle(self)

    def handle(
        self, service: str, verb: str, path: str, query: Sequence[tuple[str, str]], body: Any
    ) -> tuple[int, Json]:
        """Answer a request; ``path`` is quoted and below ``/<service>/``. Every refusal is an answer too.

        What is refused changes nothing.
        """
        try:
            self.settle()
            self.store.flush()
            with self.store.all_or_nothing():
                return 200, self._answer(service, verb, path, list(query), body)
        except ApiError as error:
            refusal = error
        except OSError as error:
            refusal = ApiError(503, f"The local cloud cannot write its state: {error.strerror or error}.")
            LOG.error("%s", refusal)  # noqa: TRY400 # one sentence is enough
        except Exception:  # a fault of ours must still be an answer that a client understands
            LOG.exception("%s /%s/%s", verb, service, path)
            refusal = ApiError(500, "The local cloud failed; its log says where.")
        self.operations.reload()
        return refusal.code, refusal.body(service)

    def _answer(self, service: str, verb: str, path: str, query: list[tuple[str, str]], body: Any) -> Json:
        if service == "cloudquotas":
            return cloudquotas.answer(self, verb, path, dict(query), body)
        route = self._route(service, verb, path.rstrip("/"))  # the gcp provider creates at .../backupPlans/
        method, api = route.method, route.api
        check_path(method, route.parameters)
        parameters = {**route.parameters, **read_query(api, method, query)}
        read = read_body(api, method, body)
        project, resolved = self._project(route, parameters)
        definition = SERVICES.get(api.service) or Service(name=api.service)
        call = Call(
            api=api, method=method, path=resolved, parameters=parameters, body=read, project=project,
            definition=definition,
        )  # fmt: skip
        if definition.needs_enabling and project and self.settings.check_services:
            self._check_enabled(api, project)
        return self._dispatch(call)

    def _route(self, service: str, verb: str, path: str) -> Route:
        api = discovery.find(service, path)
        if api is None:
            raise ApiError(404, f"The requested URL /{service}/{path} was not found: no such API or version.")
        route = api.match(verb, path)
        if route is not None:
            return route
        others = api.verbs(path)
        more = f"; this path takes {', '.join(others)}" if others else ""
        raise ApiError(404, f"Method not found: {verb} /{service}/{path}{more}.")

    def _project(self, route: Route, parameters: Json) -> tuple[str, str]:
        path = re.sub(
            r"^projects/-/serviceAccounts/([^@]+)@([^.]+)\.", r"projects/\2/serviceAccounts/\1@\2.", route.path
        )
        if route.api.service == "container":
            path = re.sub(r"^(projects/[^/]+)/zones/", r"\1/locations/", path)
        found = _PROJECT.search(path)
        if not found:
            named = parameters.get("project")
            return self.projects.resolve(named) if named else self._bucket_project(path), path
        project = self.projects.resolve(found[1])
        return project, path[: found.start(1)] + project + path[found.end(1) :]

    def project_named(self, path: str, query: Mapping[str, str]) -> str:
        """Return the project that a request names before anybody looked into it; empty where it names none."""
        found = _PROJECT.search(path)
        given = found[1] if found else query.get("project", "")
        try:
            return self.projects.resolve(given) if given else self._bucket_project(path.partition("/")[2])
        except ApiError:
            return ""

    def _bucket_project(self, path: str) -> str:
        """Return the project of a bucket, ``b/<name>`` and more; its requests name none."""
        bucket = self.store.get("/".join(["storage", *path.split("/")[:2]]))
        return bucket.project if bucket else ""

    def _check_enabled(self, api: Api, project: str) -> None:
        if self.store.get(f"serviceusage/projects/{project}/services/{api.host}") is None:
            raise errors.service_disabled(api.host, project, projects.number(project))

    def _dispatch(self, call: Call) -> Json:
        service, collection, action = call.definition, call.method.collection, call.method.action
        handler = service.handlers.get(f"{collection}.{action}") or service.handlers.get(
            f"{collection.rpartition('.')[2]}.{action}"
        )
        if handler is not None:
            return handler(self, call)
        last = collection.rpartition(".")[2].lower()
        if last.endswith("operations") and action in _OPERATIONS:
            return _OPERATIONS[action](self, call)
        kind = service.kind(collection)
        if kind is None or action not in _GENERIC:
            raise errors.unimplemented(call.method.id)
        return actions.ACTIONS[action](self, kind, call)


def _get_operation(cloud: Cloud, call: Call) -> Json:
    """Return an operation as it is; who waits for one asks again, as Google's ``wait`` may have it too."""
    return cloud.existing(call.name.removesuffix("/wait")).body  # Compute Engine's verb is a part of the path


def _list_operations(cloud: Cloud, call: Call) -> Json:
    found = [each.body for each in cloud.store.children(call.name)]
    return {("items" if call.service == "compute" else "operations"): found}


_OPERATIONS: Final = {"get": _get_operation, "list": _list_operations, "wait": _get_operation}
