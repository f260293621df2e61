"""The Iceberg REST catalog API, for other engines. Responses and errors follow that protocol."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from penstock.api.errors import PUBLIC, declare
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import PayloadRoute
from penstock.api.schema.envelope import Reply
from penstock.api.services import HasMaintenance, Maintenance
from penstock.jobs.http_bodies import NAME_PATTERN
from penstock.kit.errors import Conflict, NotFound, PenstockError
from penstock.kit.json_value import JsonObject
from penstock.maintenance.errors import CatalogUnavailable, TableUnreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.maintenance.tables.catalog.rest_catalog import RestCatalogAdapter

PROTOCOL = {
    400: "BadRequestException",
    406: "UnsupportedOperationException",
    500: "CommitStateUnknownException",
}
"""Statuses specific to this protocol, and their exception names."""


class ProtocolRoute(PayloadRoute):
    """Invalid names, NUL characters among them, are refused in the protocol's format."""

    refuses_nul = False


router = APIRouter(
    prefix="/api/iceberg/{catalog}/v1",
    route_class=ProtocolRoute,
    tags=["iceberg"],
    responses=declare(*PUBLIC, NotFound, Conflict, TableUnreadable, CatalogUnavailable)
    | {status: {"description": kind} for status, kind in PROTOCOL.items()},
)
Catalog = Annotated[str, Path(pattern=NAME_PATTERN, examples=["lake"])]
Namespace = Annotated[str, Path(examples=["shop"])]
Table = Annotated[str, Path(examples=["orders"])]


@router.get("/config", summary="Show a catalog's configuration")
async def config(catalog: Catalog, maintenance: HasMaintenance, _: Permit) -> Response:
    return await _answer(maintenance, catalog, lambda _: {"defaults": {}, "overrides": {}})


@router.get("/namespaces", summary="List namespaces")
async def namespaces(
    catalog: Catalog,
    maintenance: HasMaintenance,
    _: Permit,
    parent: Annotated[str | None, Query()] = None,
) -> Response:
    return await _answer(maintenance, catalog, lambda face: face.namespaces(parent))


@router.post("/namespaces", summary="Create a namespace")
async def create_namespace(
    catalog: Catalog, request: Request, maintenance: HasMaintenance, _: Permit
) -> Response:
    content = await request.body()
    return await _answer(
        maintenance,
        catalog,
        lambda face: face.create_namespace(_read(content, "namespace")),
    )


@router.get("/namespaces/{namespace}", summary="Show a namespace")
async def namespace(
    catalog: Catalog, namespace: Namespace, maintenance: HasMaintenance, _: Permit
) -> Response:
    return await _answer(maintenance, catalog, lambda face: face.namespace(namespace))


@router.get("/namespaces/{namespace}/tables", summary="List the tables of a namespace")
async def tables(
    catalog: Catalog, namespace: Namespace, maintenance: HasMaintenance, _: Permit
) -> Response:
    return await _answer(maintenance, catalog, lambda face: face.tables(namespace))


@router.post("/namespaces/{namespace}/tables", summary="Create a table")
async def create_table(
    catalog: Catalog, namespace: Namespace, request: Request, maintenance: HasMaintenance, _: Permit
) -> Response:
    content = await request.body()
    return await _answer(
        maintenance,
        catalog,
        lambda face: face.create_table(namespace, _read(content, "name", "schema")),
    )


@router.get("/namespaces/{namespace}/tables/{table}", summary="Load a table")
async def table(
    catalog: Catalog, namespace: Namespace, table: Table, maintenance: HasMaintenance, _: Permit
) -> Response:
    return await _answer(maintenance, catalog, lambda face: face.table(namespace, table))


@router.post("/namespaces/{namespace}/tables/{table}", summary="Commit to a table")
async def commit(
    catalog: Catalog,
    namespace: Namespace,
    table: Table,
    request: Request,
    maintenance: HasMaintenance,
    _: Permit,
) -> Response:
    content = await request.body()
    return await _answer(
        maintenance,
        catalog,
        lambda face: face.commit(namespace, table, _read(content, "requirements", "updates")),
    )


def _read(content: bytes, *needed: str) -> JsonObject:
    from penstock.maintenance.tables.catalog.rest_catalog import read_body

    return read_body(content, *needed)


async def _answer(
    maintenance: Maintenance, catalog: str, ask: "Callable[[RestCatalogAdapter], JsonObject]"
) -> Response:
    from penstock.maintenance.tables.catalog import rest_catalog

    try:
        opened = await asyncio.to_thread(maintenance.service.pool.get, catalog)
        return Reply(await asyncio.to_thread(ask, rest_catalog.RestCatalogAdapter(opened)))
    except rest_catalog.ProtocolError as e:
        return Reply(e.body, status_code=e.status)
    except PenstockError as e:
        return Reply(rest_catalog.error_body(e), status_code=e.status)
