"""The server's control API below ``/_sandbox``, which changes settings, clock and faults, and removes resources."""

from __future__ import annotations

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from local_google_cloud.faults import FaultError
from local_google_cloud.http.guard import read_json
from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.state.cloud import CloudSettings


def routes(cloud: LocalCloud) -> list[Route]:
    """Return the routes of the control API."""
    control = _Control(cloud)
    return [
        Route("/_sandbox/faults", control.list_faults, methods=["GET"]),
        Route("/_sandbox/faults/{fault}", control.add_fault, methods=["PUT"]),
        Route("/_sandbox/faults/{fault}", control.clear_fault, methods=["DELETE"]),
        Route("/_sandbox/resources/{name:path}", control.remove_resource, methods=["DELETE"]),
        Route("/_sandbox/settings", control.settings, methods=["GET", "PUT"]),
        Route("/_sandbox/clock", control.advance_clock, methods=["POST"]),
    ]


class _Control:
    def __init__(self, cloud: LocalCloud) -> None:
        self._cloud = cloud

    async def settings(self, request: Request) -> Response:
        if request.method == "PUT":
            try:
                self._cloud.settings = CloudSettings.model_validate(await read_json(request) or {})
            except ValidationError as error:
                return JSONResponse({"error": str(error)}, 400)
        return JSONResponse(self._cloud.settings.model_dump())

    async def advance_clock(self, request: Request) -> Response:
        """Advance the clock, and apply everything that is due by then."""
        body = await read_json(request)
        try:
            self._cloud.clock.advance(float(body["advance"]))
        except (ValueError, TypeError, KeyError) as error:
            return JSONResponse({"error": f'the body must be {{"advance": SECONDS}}: {error}'}, 400)
        self._cloud.settle()
        self._cloud.store.flush()
        return JSONResponse({"now": self._cloud.time()})

    async def remove_resource(self, request: Request) -> Response:
        """Remove a resource, as if it had been deleted outside Pulumi."""
        name = request.path_params["name"]
        removed = [record for record in self._cloud.store.all() if record.path == name]
        for record in removed:
            for other in self._cloud.store.all():
                if f"{other.meta.get('pool')}/".startswith(f"{record.name}/"):  # an instance group of a node pool
                    self._cloud.store.delete(other.name)
            self._cloud.store.delete(record.name)
        self._cloud.store.flush()
        return JSONResponse({"removed": [record.name for record in removed]})

    async def list_faults(self, _request: Request) -> Response:
        return JSONResponse(self._cloud.faults.shown())

    async def add_fault(self, request: Request) -> Response:
        try:
            self._cloud.faults.add(request.path_params["fault"])
        except FaultError as error:
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse(self._cloud.faults.shown())

    async def clear_fault(self, request: Request) -> Response:
        """Clear a fault, and continue the operations that were waiting for this."""
        self._cloud.faults.clear(request.path_params["fault"])
        self._cloud.settle()
        self._cloud.store.flush()
        return JSONResponse(self._cloud.faults.shown())
