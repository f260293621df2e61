"""Our catalogs for other engines, in Iceberg's REST protocol. Answers and errors are in that protocol's shape."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Request, Response

from penstock.api.errors import PUBLIC, declare
from penstock.api.matrix import Permit
from penstock.api.parts import HasMaintenance, Maintenance
from penstock.api.reply import Reply
from penstock.jobs.bodies import NAME_PATTERN
from penstock.kit.errors import Conflict, InvalidInput, NotFound, PenstockError

router = APIRouter(prefix="/api/iceberg/{catalog}/v1", tags=["iceberg"], responses=declare(*PUBLIC, NotFound, Conflict))
Catalog = Annotated[str, Path(pattern=NAME_PATTERN, examples=["lake"])]
Namespace = Annotated[str, Path(max_length=1000, examples=["shop"])]
Table = Annotated[str, Path(max_length=255, examples=["orders"])]


@router.get("/config", summary="Show how to use a catalog")
async def config(catalog: Catalog, maintenance: HasMaintenance, _: Permit) -> Response:
    maintenance.desk.pool.catalogs.get(catalog)
    return Reply({"defaults": {}, "overrides": {}})


@router.get("/namespaces", summary="List namespaces")
async def namespaces(
    catalog: Catalog, maintenance: HasMaintenance, _: Permit, parent: Annotated[str | None, Query()] = None
) -> Response:
    return await _answer(maintenance, catalog, lambda face: face.namespaces(parent))


@router.post("/namespaces", summary="Create a namespace")
async def create_namespace(catalog: Catalog, request: Request, maintenance: HasMaintenance, _: Permit) -> Response:
    body = await _body(request, "namespace")
    return await _answer(maintenance, catalog, lambda face: face.create_namespace(body))


@router.get("/namespaces/{namespace}", summary="Show a namespace")
async def namespace(catalog: Catalog, namespace: Namespace, maintenance: HasMaintenance, _: Permit) -> Response:
    return await _answer(maintenance, catalog, lambda face: face.namespace(namespace))


@router.get("/namespaces/{namespace}/tables", summary="List the tables of a namespace")
async def tables(catalog: Catalog, namespace: Namespace, maintenance: HasMaintenance, _: Permit) -> Response:
    return await _answer(maintenance, catalog, lambda face: face.tables(namespace))


@router.post("/namespaces/{namespace}/tables", summary="Create a table")
async def create_table(
    catalog: Catalog, namespace: Namespace, request: Request, maintenance: HasMaintenance, _: Permit
) -> Response:
    body = await _body(request, "name", "schema")
    return await _answer(maintenance, catalog, lambda face: face.create_table(namespace, body))


@router.get("/namespaces/{namespace}/tables/{table}", summary="Load a table")
async def table(
    catalog: Catalog, namespace: Namespace, table: Table, maintenance: HasMaintenance, _: Permit
) -> Response:
    return await _answer(maintenance, catalog, lambda face: face.table(namespace, table))


@router.post("/namespaces/{namespace}/tables/{table}", summary="Commit to a table")
async def commit(
    catalog: Catalog, namespace: Namespace, table: Table, request: Request, maintenance: HasMaintenance, _: Permit
) -> Response:
    body = await _body(request, "requirements", "updates")
    return await _answer(maintenance, catalog, lambda face: face.commit(namespace, table, body))


async def _body(request: Request, *needed: str) -> dict[str, Any]:
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        raise InvalidInput("The body is not JSON.") from None
    if not isinstance(body, dict) or any(name not in body for name in needed):
        raise InvalidInput(f"The body must have {', '.join(needed)}.")
    return body


async def _answer(maintenance: Maintenance, catalog: str, ask: Callable[[Any], dict[str, Any]]) -> Response:
    from penstock.maintenance.rest_catalog import RestCatalogFace, error_body

    try:
        opened = await asyncio.to_thread(maintenance.desk.pool.get, catalog)
        return Reply(await asyncio.to_thread(ask, RestCatalogFace(opened)))
    except PenstockError as e:
        return Reply(error_body(e), status_code=e.status)
