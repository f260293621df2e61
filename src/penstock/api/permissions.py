"""The permission matrix: one row per route; a route without a row is not served.

A right is `no`, `own` (resources that the caller owns) or `any`. A route that takes `grant: Permit`
enforces its row; where the right may be `own`, it checks the owner with
`grant.over(mapping.owner_username)`. On data sources, mappings and recipes `own` includes what the
owner shared with the caller, where the route checks that. `any` allows reading; the right to run
something on another user's data source is checked at the source.

Rows without roles: `OPEN` needs no credentials; `WORKER` and `WRAPPER` belong to the internal API,
the first for workers, the second for the graph server of the instance in the path (and for
workers).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from penstock.accounts.role import Role
from penstock.accounts.service import Component, ServiceCaller
from penstock.api.callers.auth import Caller, Service, identify, service_of
from penstock.api.callers.identity import Identity
from penstock.kit.errors import Internal, PermissionDenied

Right = Literal["no", "own", "any"]
Kind = Literal["role", "open", "internal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    analyst: Right = "no"
    admin: Right = "no"
    ops: Right = "no"
    kind: Kind = "role"
    components: frozenset[Component] = frozenset()

    def right(self, role: Role) -> Right:
        match role:
            case Role.ANALYST:
                return self.analyst
            case Role.ADMIN:
                return self.admin
            case Role.OPS:
                return self.ops


EVERYBODY = Row(analyst="any", admin="any", ops="any")
OWNER = Row(analyst="own", admin="any", ops="any")
ADMINS = Row(admin="any", ops="any")
ADMIN_ONLY = Row(admin="any")
OPS = Row(ops="any")
OPEN = Row(kind="open")
WORKER = Row(kind="internal", components=frozenset({"worker"}))
WRAPPER = Row(kind="internal", components=frozenset({"worker", "wrapper"}))


MATRIX: Mapping[str, Row] = {
    # health
    "GET /health": OPEN,
    "GET /ready": OPEN,
    "GET /metrics": OPEN,
    # users: a key has its owner's rights, so nobody can create one for a higher role
    "GET /api/users": ADMINS,
    "POST /api/users": ADMINS,
    "POST /api/users/bootstrap": OPEN,  # for the operator, and only while there are no users
    # browsers of the operator
    "POST /api/login-links": OPEN,  # for the operator token
    "GET /login": OPEN,  # with a link
    "POST /logout": OPEN,
    "GET /api/users/{username}": OWNER,
    "PUT /api/users/{username}": ADMINS,
    "DELETE /api/users/{username}": ADMINS,
    "PUT /api/users/{username}/role": ADMINS,
    "GET /api/users/{username}/api-keys": OWNER,
    "POST /api/users/{username}/api-keys": OWNER,
    "DELETE /api/users/{username}/api-keys": OWNER,
    "DELETE /api/users/{username}/api-keys/{key_id}": OWNER,
    # jobs, queues, schedules
    "GET /api/jobs": ADMINS,
    "POST /api/jobs": OPS,
    "GET /api/jobs/{job_id}": ADMINS,
    "POST /api/jobs/{job_id}/cancel": OPS,
    "POST /api/jobs/{job_id}/retry": OPS,
    "GET /api/queues": ADMINS,
    "GET /api/workers": ADMINS,
    "GET /api/drain": ADMINS,
    "PUT /api/drain": OPS,
    "GET /api/audit": OPS,
    "GET /api/schedules": ADMINS,
    "GET /api/schedules/{name}": ADMINS,
    "PUT /api/schedules/{name}": OPS,
    "DELETE /api/schedules/{name}": OPS,
    # mappings
    "GET /api/mappings": EVERYBODY,
    "POST /api/mappings": EVERYBODY,
    "POST /api/mappings/validate": EVERYBODY,
    "POST /api/mappings/infer": EVERYBODY,
    "GET /api/mappings/{mapping_id}": EVERYBODY,
    "PUT /api/mappings/{mapping_id}": OWNER,
    "DELETE /api/mappings/{mapping_id}": OWNER,
    "POST /api/mappings/{mapping_id}/copy": EVERYBODY,
    "PUT /api/mappings/{mapping_id}/lifecycle": OWNER,
    "GET /api/mappings/{mapping_id}/versions": EVERYBODY,
    "GET /api/mappings/{mapping_id}/versions/{version}": EVERYBODY,
    "GET /api/mappings/{mapping_id}/versions/{version}/diff/{other}": EVERYBODY,
    "POST /api/mappings/{mapping_id}/versions/{version}/restore": OWNER,
    "GET /api/mappings/{mapping_id}/tree": EVERYBODY,
    "GET /api/mappings/{mapping_id}/snapshots": EVERYBODY,
    "GET /api/mappings/{mapping_id}/shares": EVERYBODY,
    "PUT /api/mappings/{mapping_id}/shares/{grantee}": OWNER,
    "DELETE /api/mappings/{mapping_id}/shares/{grantee}": OWNER,
    # snapshots
    "GET /api/snapshots": EVERYBODY,
    "POST /api/snapshots": EVERYBODY,
    "GET /api/snapshots/{snapshot_id}": EVERYBODY,
    "PUT /api/snapshots/{snapshot_id}": OWNER,
    "DELETE /api/snapshots/{snapshot_id}": OWNER,
    "PUT /api/snapshots/{snapshot_id}/lifecycle": OWNER,
    "GET /api/snapshots/{snapshot_id}/progress": EVERYBODY,
    "POST /api/snapshots/{snapshot_id}/retry": OWNER,
    "POST /api/snapshots/{snapshot_id}/cancel": OWNER,
    # data sources
    "GET /api/data-sources": EVERYBODY,
    "POST /api/data-sources": EVERYBODY,
    "GET /api/data-sources/{data_source_id}": EVERYBODY,
    "PUT /api/data-sources/{data_source_id}": OWNER,
    "DELETE /api/data-sources/{data_source_id}": OWNER,
    "POST /api/data-sources/{data_source_id}/test": OWNER,
    "PUT /api/data-sources/{data_source_id}/default": ADMINS,
    "GET /api/data-sources/{data_source_id}/browse": OWNER,
    "GET /api/data-sources/{data_source_id}/schema": OWNER,
    "GET /api/data-sources/{data_source_id}/shares": EVERYBODY,
    "PUT /api/data-sources/{data_source_id}/shares/{grantee}": OWNER,
    "DELETE /api/data-sources/{data_source_id}/shares/{grantee}": OWNER,
    # the schema browser
    "GET /api/schema/catalogs": EVERYBODY,
    "GET /api/schema/catalogs/{catalog}/schemas": EVERYBODY,
    "GET /api/schema/catalogs/{catalog}/schemas/{schema}/tables": EVERYBODY,
    "GET /api/schema/catalogs/{catalog}/schemas/{schema}/tables/{table}/columns": EVERYBODY,
    "GET /api/schema/search/tables": EVERYBODY,
    "GET /api/schema/search/columns": EVERYBODY,
    "POST /api/schema/admin/refresh": ADMINS,
    "GET /api/schema/stats": ADMINS,
    # tables and their maintenance
    **{
        f"{method} {prefix}/tables{path}": row
        for prefix in ("", "/api")
        for method, path, row in (
            ("GET", "", EVERYBODY),
            ("GET", "/cache-status", EVERYBODY),
            ("POST", "/refresh", ADMINS),
            ("GET", "/{db}/{table}/status", EVERYBODY),
            ("GET", "/{db}/{table}/health", EVERYBODY),
            ("GET", "/{db}/{table}/recommendation", EVERYBODY),
            ("GET", "/{db}/{table}/history", EVERYBODY),
            ("POST", "/{db}/{table}/plan", ADMINS),
            ("POST", "/{db}/{table}/maintenance", ADMINS),
        )
    },
    "GET /api/iceberg/{catalog}/v1/config": EVERYBODY,
    "GET /api/iceberg/{catalog}/v1/namespaces": EVERYBODY,
    "POST /api/iceberg/{catalog}/v1/namespaces": ADMINS,
    "GET /api/iceberg/{catalog}/v1/namespaces/{namespace}": EVERYBODY,
    "GET /api/iceberg/{catalog}/v1/namespaces/{namespace}/tables": EVERYBODY,
    "POST /api/iceberg/{catalog}/v1/namespaces/{namespace}/tables": ADMINS,
    "GET /api/iceberg/{catalog}/v1/namespaces/{namespace}/tables/{table}": EVERYBODY,
    "POST /api/iceberg/{catalog}/v1/namespaces/{namespace}/tables/{table}": ADMINS,
    "GET /api/maintenance/policies": ADMINS,
    "PUT /api/maintenance/policies": OPS,
    "GET /api/maintenance/runs": ADMINS,
    "GET /api/jobs/{job_id}/actions": ADMINS,
    "POST /api/internal/maintenance/{job_id}/catalog": WORKER,
    "POST /api/internal/maintenance/{job_id}/hold": WORKER,
    "POST /api/internal/maintenance/{job_id}/pointer": WORKER,
    "POST /api/internal/maintenance/{job_id}/swap": WORKER,
    "POST /api/internal/maintenance/{job_id}/neighbours": WORKER,
    "POST /api/internal/maintenance/{job_id}/actions": WORKER,
    "POST /api/internal/maintenance/{job_id}/ended-actions": WORKER,
    # operations
    "GET /api/config/lifecycle": OPS,
    "PUT /api/config/lifecycle": OPS,
    "GET /api/config/concurrency": OPS,
    "PUT /api/config/concurrency": OPS,
    "GET /api/config/maintenance": OPS,
    "PUT /api/config/maintenance": OPS,
    "GET /api/config/export": OPS,
    "PUT /api/config/export": OPS,
    "GET /api/cluster/health": OPS,
    "GET /api/cluster/instances": OPS,
    "GET /api/cluster/metrics": OPS,
    "GET /api/exports": EVERYBODY,
    "GET /api/export-jobs": EVERYBODY,
    "GET /api/ops/export-jobs": OPS,
    "POST /api/exports/{job_id}/retry": OWNER,
    "POST /api/exports/{job_id}/cancel": OWNER,
    "POST /api/ops/jobs/trigger": OPS,
    "GET /api/ops/jobs/status": OPS,
    "GET /api/ops/state": OPS,
    "DELETE /api/admin/resources/bulk": ADMIN_ONLY,
    # favourites
    "GET /api/favorites": EVERYBODY,
    "POST /api/favorites": EVERYBODY,
    "DELETE /api/favorites/{resource_type}/{resource_id}": EVERYBODY,
    # reconciliation
    "GET /api/recipes": EVERYBODY,
    "POST /api/recipes": EVERYBODY,
    "POST /api/recipes/validate": EVERYBODY,
    "POST /api/recipes/explain": EVERYBODY,
    "GET /api/recipes/{recipe_id}": EVERYBODY,
    "PUT /api/recipes/{recipe_id}": OWNER,
    "DELETE /api/recipes/{recipe_id}": OWNER,
    "GET /api/recipes/{recipe_id}/versions": EVERYBODY,
    "GET /api/recipes/{recipe_id}/explain": EVERYBODY,
    "POST /api/recipes/suggest": EVERYBODY,
    "POST /api/recipes/preview": EVERYBODY,
    "POST /api/recipes/{recipe_id}/decisions": OWNER,
    "GET /api/recipes/{recipe_id}/decisions": EVERYBODY,
    "DELETE /api/recipes/{recipe_id}/decisions/{decision_id}": OWNER,
    "PUT /api/recipes/{recipe_id}/items": OWNER,
    "GET /api/recipes/{recipe_id}/items": EVERYBODY,
    "PUT /api/recipes/{recipe_id}/schedule": OWNER,
    "GET /api/uploads": EVERYBODY,
    "GET /api/recipes/{recipe_id}/shares": EVERYBODY,
    "PUT /api/recipes/{recipe_id}/shares/{grantee}": OWNER,
    "DELETE /api/recipes/{recipe_id}/shares/{grantee}": OWNER,
    "POST /api/uploads": EVERYBODY,
    "GET /api/uploads/usage": EVERYBODY,
    "GET /api/uploads/{upload_id}": OWNER,
    "DELETE /api/uploads/{upload_id}": OWNER,
    "GET /api/sources": EVERYBODY,
    "POST /api/sources": EVERYBODY,
    "GET /api/sources/{alias}/preview": OWNER,
    "POST /api/sources/{alias}/load-scoped": OWNER,
    "POST /api/runs": EVERYBODY,
    "GET /api/runs": EVERYBODY,
    "GET /api/runs/{run_id}": OWNER,
    "POST /api/runs/{run_id}/cancel": OWNER,
    "POST /api/runs/{run_id}/retry": OWNER,
    "GET /api/runs/{run_id}/events": OWNER,
    "GET /api/runs/{run_id}/manifest": OWNER,
    "GET /api/runs/{run_id}/evidence/{evidence}": OWNER,
    "GET /api/runs/{run_id}/report": OWNER,
    "GET /api/internal/runs/{run_id}/callback": WORKER,
    "POST /api/internal/runs/start": WORKER,
    "POST /api/internal/runs/chunks/ended": WORKER,
    # the internal API: jobs
    "POST /api/internal/jobs/enqueue": WORKER,
    "POST /api/internal/jobs/claim": WORKER,
    "POST /api/internal/jobs/exchange": WORKER,
    "POST /api/internal/jobs/finish": WORKER,
    "POST /api/internal/jobs/register": WORKER,
    "POST /api/internal/jobs/renew": WORKER,
    "POST /api/internal/jobs/progress": WORKER,
    "POST /api/internal/jobs/park": WORKER,
    "POST /api/internal/jobs/release": WORKER,
    "POST /api/internal/jobs/cancel": WORKER,
    "POST /api/internal/jobs/farewell": WORKER,
    "GET /api/internal/jobs/{job_id}": WORKER,
    "POST /api/internal/jobs/{job_id}/source": WORKER,
    # the internal API: exports and snapshots
    "POST /api/internal/export-jobs/claim": WORKER,
    "GET /api/internal/export-jobs/pollable": WORKER,
    "GET /api/internal/export-jobs/attempts": WORKER,
    "GET /api/internal/export-jobs/{job_id}": WORKER,
    "PATCH /api/internal/export-jobs/{job_id}": WORKER,
    "PUT /api/internal/export-jobs/{job_id}": WORKER,
    "POST /api/internal/snapshots/{snapshot_id}/export-jobs": WORKER,
    "GET /api/internal/snapshots/{snapshot_id}/export-jobs": WORKER,
    "PUT /api/internal/snapshots/{snapshot_id}/status": WORKER,
    "PATCH /api/internal/snapshots/{snapshot_id}/status": WORKER,
    # instances
    "GET /api/instances": EVERYBODY,
    "POST /api/instances": EVERYBODY,
    "POST /api/instances/from-mapping": EVERYBODY,
    "GET /api/instances/user/status": EVERYBODY,
    "GET /api/instances/{instance_id}": EVERYBODY,
    "PUT /api/instances/{instance_id}": OWNER,
    "DELETE /api/instances/{instance_id}": OWNER,
    "POST /api/instances/{instance_id}/terminate": OWNER,
    "PUT /api/instances/{instance_id}/lifecycle": OWNER,
    "PUT /api/instances/{instance_id}/cpu": OWNER,
    "PUT /api/instances/{instance_id}/memory": OWNER,
    "GET /api/instances/{instance_id}/progress": EVERYBODY,
    "GET /api/instances/{instance_id}/events": EVERYBODY,
    "POST /api/instances/{instance_id}/suspend": OWNER,
    "POST /api/instances/{instance_id}/resume": OWNER,
    "GET /api/mappings/{mapping_id}/instances": EVERYBODY,
    # graph servers, through the proxy: the server itself decides what a caller may do
    "GET /wrapper/{slug}/{path}": EVERYBODY,
    "POST /wrapper/{slug}/{path}": EVERYBODY,
    "PUT /wrapper/{slug}/{path}": EVERYBODY,
    "PATCH /wrapper/{slug}/{path}": EVERYBODY,
    "DELETE /wrapper/{slug}/{path}": EVERYBODY,
    # the internal API: instances
    "PUT /api/internal/instances/{instance_id}/status": WRAPPER,
    "PATCH /api/internal/instances/{instance_id}/status": WRAPPER,
    "PUT /api/internal/instances/{instance_id}/metrics": WRAPPER,
    "PATCH /api/internal/instances/{instance_id}/metrics": WRAPPER,
    "PUT /api/internal/instances/{instance_id}/progress": WRAPPER,
    "PATCH /api/internal/instances/{instance_id}/progress": WRAPPER,
    "POST /api/internal/instances/{instance_id}/activity": WRAPPER,
    "GET /api/internal/instances/{instance_id}/mapping": WRAPPER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A caller whom the route lets in, and how far."""

    identity: Identity
    right: Right

    @property
    def username(self) -> str:
        return self.identity.username

    @property
    def role(self) -> Role:
        return self.identity.role

    @property
    def is_admin(self) -> bool:
        """Whether what others own is open to this role."""
        return self.identity.role >= Role.ADMIN

    def may(self, owner_username: str) -> bool:
        return self.right == "any" or owner_username == self.username

    def over(self, owner_username: str) -> None:
        """Refuses whoever may only reach their own, when this is somebody else's."""
        if not self.may(owner_username):
            raise PermissionDenied(
                f"This belongs to {owner_username}; others need the role admin or ops."
            )


async def admit(request: Request) -> None:
    """Refuses callers who may not use the route, before their body is read."""
    match row(request).kind:
        case "open":
            return
        case "role":
            await permit(request, await identify(request, request.app.state.services))
        case "internal":
            await reach(request, await service_of(request, request.app.state.services))


def is_open(request: Request) -> bool:
    return row(request).kind == "open"


async def permit(request: Request, identity: Caller) -> Grant:
    _check_name(request)
    right = row(request).right(identity.role)
    if right == "no":
        raise PermissionDenied(f"The role {identity.role.name.lower()} may not do this.")
    return Grant(identity=identity, right=right)


Permit = Annotated[Grant, Depends(permit)]


async def reach(request: Request, caller: Service) -> ServiceCaller:
    """Checks a service's access to an internal route; a graph server may access only its own
    instance."""
    if caller.component not in row(request).components:
        raise PermissionDenied(f"A {caller.component} may not do this.")
    if caller.component == "wrapper" and request.path_params.get("instance_id") not in (
        caller.instance_id,
        str(caller.instance_id),
    ):
        raise PermissionDenied(f"This token is valid only for instance {caller.instance_id}.")
    return caller


Inside = Depends(reach)
"""For a router of the internal API: `dependencies=[Inside]`."""


def _check_name(request: Request) -> None:
    """A literal path of another route is not a parameter value: there is no user `bootstrap`."""
    methods = request.app.state.written_out.get(request.scope["path"])
    if methods is not None and request.method not in methods:
        raise HTTPException(405)


def row(request: Request) -> Row:
    return MATRIX[f"{request.method} {request.scope['route'].path_format}"]


def names(routes: Iterable[BaseRoute]) -> dict[str, APIRoute]:
    """The routes by the key of their row."""
    served = [route for route in routes if isinstance(route, APIRoute)]
    return {
        f"{method} {route.path_format}": route
        for route in served
        for method in sorted(route.methods or ())
    }


def written_out(routes: Iterable[BaseRoute]) -> dict[str, set[str]]:
    """Literal paths (without parameters), and their methods."""
    methods: dict[str, set[str]] = {}
    for name in names(routes):
        method, path = name.split(" ", 1)
        if "{" not in path:
            methods.setdefault(path, set()).add(method)
    return methods


def check(routes: Iterable[BaseRoute]) -> None:
    """Refuses to serve a route that has no row, or that does not enforce its row."""
    for name, route in names(routes).items():
        row = MATRIX.get(name)
        if row is None:
            raise Internal(
                f"{name} has no row in the permission matrix.", hint="Add it to api/permissions.py."
            )
        if not _enforces(route.dependant, row):
            raise Internal(
                f"{name} does not enforce its row in the permission matrix.",
                hint="Take `grant: Permit`.",
            )


def _enforces(dependant: Dependant, row: Row) -> bool:
    match row.kind:
        case "role":
            return _depends(dependant, permit)
        case "internal":
            return _depends(dependant, reach)
        case "open":
            return True


def _depends(dependant: Dependant, call: object) -> bool:
    return dependant.call is call or any(_depends(child, call) for child in dependant.dependencies)
