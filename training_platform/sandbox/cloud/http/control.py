"""The server's own API below ``/_sandbox``: state, settings, time, faults; what no cloud has and a test wants."""

from __future__ import annotations

from collections import Counter

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from training_platform.sandbox.cloud.http.bodies import read_json
from training_platform.sandbox.cloud.http.control_faults import fault_routes
from training_platform.sandbox.cloud.local_cloud import LocalCloud
from training_platform.sandbox.cloud.state.quota import finite
from training_platform.sandbox.cloud.state.settings import Settings


def routes(cloud: LocalCloud) -> list[Route]:
    """Return the routes of the control API."""

    async def settings(request: Request) -> Response:
        if request.method == "PUT":
            try:
                cloud.settings = Settings.model_validate(await read_json(request) or {})
            except ValidationError as error:
                return JSONResponse({"error": str(error)}, 400)
        return JSONResponse(cloud.settings.model_dump())

    async def clock(request: Request) -> Response:
        given = await read_json(request)
        try:
            cloud.clock.advance(float(given["advance"]))
        except (ValueError, TypeError, KeyError) as error:
            return JSONResponse({"error": f'a body {{"advance": seconds}} is wanted: {error}'}, 400)
        cloud.settle()
        cloud.store.flush()
        return JSONResponse({"now": cloud.time()})

    async def project(request: Request) -> Response:
        cloud.projects.add(request.path_params["project"])
        return JSONResponse({"projects": cloud.projects.ids()})

    async def quota(request: Request) -> Response:
        held = cloud.quota.used(request.path_params["project"])
        return JSONResponse(
            [
                {"service": key.service, "quota": str(key), "used": used, "limit": finite(cloud.quota.limit(key))}
                for key, used in held.items()
            ]
        )

    return [
        *fault_routes(cloud),
        *_state_routes(cloud),
        Route("/_sandbox/settings", settings, methods=["GET", "PUT"]),
        Route("/_sandbox/clock", clock, methods=["POST"]),
        Route("/_sandbox/projects/{project}", project, methods=["PUT"]),
        Route("/_sandbox/projects/{project}/quota", quota, methods=["GET"]),
    ]


def _state_routes(cloud: LocalCloud) -> list[Route]:
    async def state(request: Request) -> Response:
        project = request.query_params.get("project")
        cloud.settle()
        records = [each for each in cloud.store.all(project) if "/operations/" not in each.name]
        kinds = Counter("/".join([each.name.split("/")[0], each.name.split("/")[-2]]) for each in records)
        return JSONResponse(
            {
                "projects": cloud.projects.ids(),
                "counts": dict(sorted(kinds.items())),
                "names": [each.name for each in records],
            }
        )

    async def reset(request: Request) -> Response:
        project = request.query_params.get("project")
        cloud.faults.clear_all(project)
        cloud.store.clear(project)
        cloud.store.flush()
        return JSONResponse({})

    async def remove(request: Request) -> Response:
        name = request.path_params["name"]
        found = [each for each in cloud.store.all() if each.name.partition("/")[2] == name]
        for record in found:
            groups = [each for each in cloud.store.all() if f"{each.meta.get('pool')}/".startswith(f"{record.name}/")]
            for each in (*groups, record):
                cloud.store.delete(each.name)
        cloud.store.flush()
        return JSONResponse({"removed": [each.name for each in found]})

    return [
        Route("/_sandbox/state", state, methods=["GET"]),
        Route("/_sandbox/reset", reset, methods=["POST"]),
        Route("/_sandbox/resources/{name:path}", remove, methods=["DELETE"]),
    ]
