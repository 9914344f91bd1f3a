"""The part of the control API that adds, lists and clears faults: ``/_sandbox/faults``."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from training_platform.catalog.nearest import find_nearest
from training_platform.sandbox.cloud.faults.active import NameTaken
from training_platform.sandbox.cloud.faults.scenario import ScenarioError, parse_scenario
from training_platform.sandbox.cloud.http.bodies import read_bytes
from training_platform.sandbox.cloud.local_cloud import LocalCloud


def fault_routes(cloud: LocalCloud) -> list[Route]:
    """Return the routes; a scenario is sent as its file has it, YAML or JSON."""

    async def listed(_request: Request) -> Response:
        return JSONResponse(cloud.faults.shown())

    async def add(request: Request) -> Response:
        text = (await read_bytes(request)).decode("utf-8", "replace")
        try:
            names = cloud.faults.add(parse_scenario(text, request.query_params.get("file", "scenario")))
        except ScenarioError as error:
            return JSONResponse({"error": str(error)}, 400)
        except NameTaken as error:
            return JSONResponse({"error": str(error)}, 409)
        return JSONResponse({"added": names})

    async def clear_all(request: Request) -> Response:
        cloud.faults.clear_all(request.query_params.get("project"))
        return _settled()

    async def clear(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            cloud.faults.clear(name)
        except KeyError:
            nearest = find_nearest(name, cloud.faults.names())
            hint = f" Nearest: {nearest}" if nearest else ""
            return JSONResponse({"error": f"there is no fault {name!r}.{hint}"}, 404)
        return _settled()

    def _settled() -> Response:
        cloud.settle()
        cloud.store.flush()
        return JSONResponse({"left": cloud.faults.names()})

    return [
        Route("/_sandbox/faults", listed, methods=["GET"]),
        Route("/_sandbox/faults", add, methods=["POST"]),
        Route("/_sandbox/faults", clear_all, methods=["DELETE"]),
        Route("/_sandbox/faults/{name}", clear, methods=["DELETE"]),
    ]
