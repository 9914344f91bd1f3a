"""The local cloud without its HTTP server: it takes a request, and returns the response that Google would send."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from local_google_cloud.faults import ActiveFaults
from local_google_cloud.requests import discovery
from local_google_cloud.requests.discovery import Route
from local_google_cloud.requests.errors import Refusal, service_disabled, unimplemented
from local_google_cloud.requests.validation import check_path, read_body, read_query
from local_google_cloud.resources.actions import ACTIONS
from local_google_cloud.resources.resource_kinds import Call, Service
from local_google_cloud.services.projects import answer_cloud_quotas
from local_google_cloud.services.service_table import SERVICES
from local_google_cloud.state.authorization import Caller, authorize, resource_of
from local_google_cloud.state.clock import Clock
from local_google_cloud.state.cloud import Cloud, CloudSettings
from local_google_cloud.state.questions import Access, Judge
from local_google_cloud.state.store import Store
from training_platform.catalog.types import Json

LOG: Final = logging.getLogger("local_google_cloud")
_PROJECT: Final = re.compile(r"(?:^|/)projects/([^/:]+)")


class _ValidatedError(Exception):
    """Carries the response to a valid ``validateOnly`` request. Raising it undoes the request's changes."""

    def __init__(self, answer: Json) -> None:
        self.answer = answer


class LocalCloud(Cloud):
    """A local Google Cloud. Not thread-safe: it handles one request at a time."""

    def __init__(
        self,
        projects: Iterable[str],
        *,
        store: Store | None = None,
        clock: Clock | None = None,
        settings: CloudSettings | None = None,
        judge: Judge | None = None,
    ) -> None:
        clock = clock or Clock()
        self.faults = ActiveFaults(clock)
        super().__init__(
            projects, store or Store(), clock, settings or CloudSettings(), self.faults, judge=judge or Judge()
        )

    def settle(self) -> None:
        """Bring every operation and resource to its state at the clock's current time."""
        self.operations.settle()
        for service in SERVICES.values():
            if service.settle is not None:
                service.settle(self)

    def handle(
        self,
        service: str,
        verb: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: Any,
        *,
        caller: Caller | None = None,
    ) -> tuple[int, Json]:
        """Return the status code and body for a request. ``path`` is percent-encoded and relative to ``/<service>/``.

        If ``caller`` is None, the request comes from the owner of the projects. A refused request changes nothing, and
        neither does one with ``validateOnly``.
        """
        try:
            self.settle()
            self.store.flush()
            with self.store.all_or_nothing():
                return 200, self._answer(service, verb, path, list(query), body, caller=caller)
        except _ValidatedError as validated:
            self.operations.reload()
            return 200, validated.answer
        except Refusal as error:
            refusal = error
        except OSError as error:
            refusal = Refusal(503, f"The local cloud cannot write its state: {error.strerror or error}.")
            LOG.error("%s", refusal)  # noqa: TRY400 # one sentence is enough
        except Exception:  # clients need a readable response even if we have a bug
            LOG.exception("%s /%s/%s", verb, service, path)
            refusal = Refusal(500, "The local cloud failed; its log contains the error.")
        self.operations.reload()
        return refusal.code, refusal.body(service)

    def _answer(
        self, service: str, verb: str, path: str, query: list[tuple[str, str]], body: Any, *, caller: Caller | None
    ) -> Json:
        if service == "cloudquotas":
            return answer_cloud_quotas(self, verb, path, dict(query), body, caller=caller)
        route = _find_route(service, verb, path.rstrip("/"))  # the gcp provider posts to .../backupPlans/
        method = route.method
        api = route.api
        check_path(method, route.parameters)
        parameters = {**route.parameters, **read_query(api, method, query)}
        body = read_body(api, method, body)
        project, resolved_path = self._resolve_project(route, parameters)
        definition = SERVICES.get(api.service) or Service(name=api.service)
        enabled = f"serviceusage/projects/{project}/services/{api.host}" in self.store
        if definition.needs_enabling and project and self.settings.check_services and not enabled:
            raise service_disabled(api.host, project, self.judge.project_number(project))
        call = Call(
            api=api,
            method=method,
            path=resolved_path,
            parameters=parameters,
            body=body,
            project=project,
            definition=definition,
            caller=caller,
        )
        resource = resource_of(self, call.service, resolved_path, project)
        authorize(self, caller, Access(call.service, method.id, resource=resource, request={**parameters, **body}))
        answer = self._dispatch(call)
        if parameters.get("validateOnly"):
            raise _ValidatedError(answer)
        return answer

    def _resolve_project(self, route: Route, parameters: Json) -> tuple[str, str]:
        """Return the project of a request, and the path in which the project's number is replaced by its id."""
        path = re.sub(
            r"^projects/-/serviceAccounts/([^@]+)@([^.]+)\.", r"projects/\2/serviceAccounts/\1@\2.", route.path
        )
        if route.api.service == "container":
            path = re.sub(r"^(projects/[^/]+)/zones/", r"\1/locations/", path)
        match = _PROJECT.search(path)
        if match:
            project = self.projects.resolve(match[1])
            return project, path[: match.start(1)] + project + path[match.end(1) :]
        name = parameters.get("project")
        return self.projects.resolve(name) if name else self._project_of_bucket(path), path

    def _project_of_bucket(self, path: str) -> str:
        """Return the project that owns the bucket in a path ``b/<name>/...``, which does not name the project."""
        bucket = self.store.get("/".join(["storage", *path.split("/")[:2]]))
        return bucket.project if bucket else ""

    def _dispatch(self, call: Call) -> Json:
        """Call the service's own handler. Without one, return the operation or call the action common to all kinds."""
        handlers = call.definition.handlers
        collection = call.method.collection
        action = call.method.action
        last = collection.rpartition(".")[2]
        handler = handlers.get(f"{collection}.{action}") or handlers.get(f"{last}.{action}")
        if handler is not None:
            return handler(self, call)
        if last.lower().endswith("operations"):
            if action in ("get", "wait"):  # a wait returns at once too: clients poll
                return self.existing(call.name.removesuffix("/wait")).body  # in the path of Compute Engine only
            if action == "list":
                operations = [record.body for record in self.store.children(call.name)]
                return {("items" if call.service == "compute" else "operations"): operations}
        kind = call.definition.kind(collection)
        if kind is None or action not in ACTIONS:
            raise unimplemented(call.method.id)
        return ACTIONS[action](self, kind, call)


def _find_route(service: str, verb: str, path: str) -> Route:
    api = discovery.find(service, path)
    if api is None:
        raise Refusal(404, f"The requested URL /{service}/{path} was not found: no such API or version.")
    route = api.match(verb, path)
    if route is None:
        verbs = api.verbs(path)
        hint = f"; this path takes {', '.join(verbs)}" if verbs else ""
        raise Refusal(404, f"Method not found: {verb} /{service}/{path}{hint}.")
    return route
