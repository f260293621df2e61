"""Routes of mappings and their immutable versions."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response

from penstock.api.edit_rights import check_edit, mapping_resource
from penstock.api.errors import PUBLIC, declare
from penstock.api.graphs.definition_schemas import definitions, shown_problems
from penstock.api.graphs.history_schemas import (
    Diff,
    Tree,
    VersionDetail,
    VersionListed,
    VersionQuery,
    diffed,
    listed,
    tree,
    version_detail,
)
from penstock.api.graphs.mapping_schemas import (
    ChangedMapping,
    CopyBody,
    Deleted,
    InferBody,
    LifecycleBody,
    Mapping,
    MappingDetail,
    MappingQuery,
    NewMapping,
    Proposed,
    ValidateBody,
    Validation,
    detail,
    proposed,
    shown,
    written,
)
from penstock.api.permissions import Grant, Permit
from penstock.api.requests.request_bodies import LargeRoute
from penstock.api.requests.statement_log import HasStatementLog, StatementLog
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import HasGraphs, ServicesDep
from penstock.graphs.errors import Maintenance, SameVersion
from penstock.graphs.lifetime import lifetime, lifetime_change
from penstock.graphs.mappings.definition import EdgeDefinition, NodeDefinition
from penstock.graphs.mappings.diff import diff
from penstock.graphs.mappings.service import Author, Change, Draft, Expected, Written
from penstock.graphs.snapshots.model import SnapshotStatus
from penstock.jobs.limits import MAX_JOB_ID
from penstock.kit.errors import Conflict, DependencyExists, NotFound, PayloadTooLarge, RateLimited
from penstock.sources.errors import SourceError, SourceUnavailable

router = APIRouter(prefix="/api/mappings", tags=["mappings"], route_class=LargeRoute)
MappingId = Annotated[int, Path(ge=1, le=MAX_JOB_ID, examples=[1])]
Version = Annotated[int, Path(ge=1, le=2**31 - 1, examples=[1])]
UseCase = Annotated[
    str | None,
    Header(
        alias="X-Use-Case-Id",
        max_length=200,
        description="The role for queries to a Trino source.",
        examples=["a"],
    ),
]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=1000,
        description="The expected ETag or version: 409 if it has changed.",
    ),
]
FOUND = declare(*PUBLIC, NotFound)
WRITES = (*PUBLIC, NotFound, PayloadTooLarge, RateLimited)


@router.get("", summary="List mappings", responses=declare(*PUBLIC))
async def list_mappings(
    query: Annotated[MappingQuery, Query()], request: Request, graphs: HasGraphs, _: Permit
) -> Listing[Mapping]:
    """All users' mappings, newest first."""
    records, total = await graphs.mappings.page(
        query.filter(),
        offset=query.offset,
        limit=query.limit,
        sort_by=query.sort_by,
        ascending=query.ascending,
    )
    return query.of([shown(record) for record in records], total, request)


@router.post(
    "", summary="Create a mapping", status_code=201, responses=declare(*WRITES, Maintenance)
)
async def create(
    body: NewMapping,
    response: Response,
    graphs: HasGraphs,
    statements: HasStatementLog,
    grant: Permit,
    use_case: UseCase = None,
) -> Data[MappingDetail]:
    """Checks its queries with the SQL guard and at the source; each problem names its entity and
    column."""
    await graphs.config.refuse_in_maintenance()
    rule = (await graphs.config.lifecycle())["mapping"]
    draft = Draft(
        name=body.name,
        description=body.description,
        definitions=definitions(body.node_definitions, body.edge_definitions or ()),
        data_source_id=body.data_source_id,
        lifetime=lifetime(rule, ttl=body.ttl, inactivity_timeout=body.inactivity_timeout),
    )
    _note(statements, grant, (*draft.definitions.nodes, *draft.definitions.edges))
    return _answer(await graphs.authoring.create(draft, _author(grant, use_case)), response)


@router.post(
    "/validate", summary="Check definitions without keeping them", responses=declare(*WRITES)
)
async def validate(
    body: ValidateBody,
    graphs: HasGraphs,
    statements: HasStatementLog,
    grant: Permit,
    use_case: UseCase = None,
) -> Data[Validation]:
    """Invalid definitions are reported with status 200."""
    drafted = definitions(body.node_definitions, body.edge_definitions or ())
    _note(statements, grant, (*drafted.nodes, *drafted.edges))
    verdict = await graphs.authoring.judge(drafted, body.data_source_id, _author(grant, use_case))
    return Data(
        data=Validation(
            valid=not verdict.problems,
            problems=shown_problems(verdict.problems),
            warnings=shown_problems(verdict.warnings),
        )
    )


@router.post(
    "/infer",
    summary="Propose a mapping from a schema",
    responses=declare(*WRITES, SourceError, SourceUnavailable),
)
async def infer(
    body: InferBody, graphs: HasGraphs, grant: Permit, use_case: UseCase = None
) -> Data[Proposed]:
    """Uses primary and foreign keys, and names where no keys are declared. Nothing is stored."""
    return Data(
        data=proposed(
            await graphs.inference.infer(
                body.data_source_id, body.scope(), _author(grant, use_case)
            )
        )
    )


@router.get("/{mapping_id:int}", summary="Show a mapping", responses=FOUND)
async def show(
    mapping_id: MappingId, response: Response, graphs: HasGraphs, _: Permit
) -> Data[MappingDetail]:
    """Includes its current version."""
    record = await graphs.mappings.get(mapping_id)
    version = await graphs.mappings.version(mapping_id, record.current_version)
    response.headers["ETag"] = f'"{record.etag}"'
    return Data(data=detail(record, version))


@router.put("/{mapping_id:int}", summary="Change a mapping", responses=declare(*WRITES, Conflict))
async def change(
    mapping_id: MappingId,
    body: ChangedMapping,
    response: Response,
    services: ServicesDep,
    graphs: HasGraphs,
    statements: HasStatementLog,
    grant: Permit,
    use_case: UseCase = None,
    if_match: IfMatch = None,
) -> Data[MappingDetail]:
    """With `expected_version` or `If-Match` a concurrent change by somebody else is a conflict."""
    await check_edit(
        mapping_resource(await graphs.mappings.get(mapping_id)), services.people, grant
    )
    change_request = Change(
        change_description=body.change_description,
        fields=body.fields(),
        nodes=None
        if body.node_definitions is None
        else [node.value() for node in body.node_definitions],
        edges=None
        if body.edge_definitions is None
        else [edge.value() for edge in body.edge_definitions],
    )
    _note(statements, grant, (*(change_request.nodes or ()), *(change_request.edges or ())))
    expected = Expected(version=body.expected_version, etags=_etags(if_match))
    result = await graphs.authoring.change(
        mapping_id, change_request, _author(grant, use_case), expected=expected
    )
    return _answer(result, response)


@router.delete(
    "/{mapping_id:int}",
    summary="Delete a mapping",
    responses=declare(*PUBLIC, NotFound, DependencyExists),
)
async def delete(mapping_id: MappingId, graphs: HasGraphs, grant: Permit) -> Data[Deleted]:
    """Refused while any version has snapshots. Deletes all versions."""
    grant.over((await graphs.mappings.get(mapping_id)).owner_username)
    await graphs.mappings.drop(mapping_id, actor=grant.username)
    return Data(data=Deleted(id=mapping_id))


@router.post(
    "/{mapping_id:int}/copy",
    summary="Copy a mapping",
    status_code=201,
    responses=declare(*WRITES, Maintenance),
)
async def copy(
    mapping_id: MappingId, body: CopyBody, response: Response, graphs: HasGraphs, grant: Permit
) -> Data[MappingDetail]:
    """The current version becomes version 1 of a new mapping, owned by the caller, who must be
    allowed to use its source."""
    await graphs.config.refuse_in_maintenance()
    return _answer(await graphs.authoring.copy(mapping_id, body.name, _author(grant)), response)


@router.put(
    "/{mapping_id:int}/lifecycle",
    summary="Set how long a mapping lives",
    responses=declare(*WRITES),
)
async def lifecycle(
    mapping_id: MappingId, body: LifecycleBody, graphs: HasGraphs, grant: Permit
) -> Data[MappingDetail]:
    """A `ttl` counts from now."""
    grant.over((await graphs.mappings.get(mapping_id)).owner_username)
    rule = (await graphs.config.lifecycle())["mapping"]
    record = await graphs.mappings.live(mapping_id, lifetime_change(rule, body.told()))
    return Data(
        data=detail(record, await graphs.mappings.version(mapping_id, record.current_version))
    )


@router.get("/{mapping_id:int}/versions", summary="List the versions of a mapping", responses=FOUND)
async def versions(
    mapping_id: MappingId,
    query: Annotated[VersionQuery, Query()],
    request: Request,
    graphs: HasGraphs,
    _: Permit,
) -> Listing[VersionListed]:
    """Newest first, without their definitions."""
    record = await graphs.mappings.get(mapping_id)
    page = await graphs.mappings.versions(
        mapping_id, offset=query.offset, limit=query.limit, ascending=query.ascending
    )
    return query.of([listed(version) for version in page], record.current_version, request)


@router.get(
    "/{mapping_id:int}/versions/{version}", summary="Show a version of a mapping", responses=FOUND
)
async def show_version(
    mapping_id: MappingId, version: Version, graphs: HasGraphs, _: Permit
) -> Data[VersionDetail]:
    return Data(data=version_detail(await graphs.mappings.version(mapping_id, version)))


@router.get(
    "/{mapping_id:int}/versions/{version}/diff/{other}",
    summary="Compare two versions of a mapping",
    response_model_by_alias=True,
    responses=declare(*PUBLIC, NotFound, SameVersion),
)
async def compare(
    mapping_id: MappingId, version: Version, other: Version, graphs: HasGraphs, _: Permit
) -> Data[Diff]:
    """The changes that turn the first version into the second."""
    before = await graphs.mappings.version(mapping_id, version)
    return Data(data=diffed(diff(before, await graphs.mappings.version(mapping_id, other))))


@router.post(
    "/{mapping_id:int}/versions/{version}/restore",
    summary="Restore a version of a mapping",
    responses=declare(*PUBLIC, NotFound, Conflict),
)
async def restore(
    mapping_id: MappingId,
    version: Version,
    response: Response,
    services: ServicesDep,
    graphs: HasGraphs,
    grant: Permit,
) -> Data[MappingDetail]:
    """Appends a new version with the old one's content; no version is removed."""
    await check_edit(
        mapping_resource(await graphs.mappings.get(mapping_id)), services.people, grant
    )
    return _answer(await graphs.authoring.restore(mapping_id, version, _author(grant)), response)


@router.get(
    "/{mapping_id:int}/tree", summary="Show all that was made of a mapping", responses=FOUND
)
async def show_tree(
    mapping_id: MappingId,
    graphs: HasGraphs,
    _: Permit,
    include_instances: bool = True,
    status: Annotated[
        SnapshotStatus | None, Query(description="Only snapshots with this status.")
    ] = None,
) -> Data[Tree]:
    """Its versions, their snapshots, and their instances."""
    branches = await graphs.trees.grow(mapping_id, status=status)
    return Data(data=tree(branches, include_instances=include_instances))


def _note(
    statements: StatementLog, grant: Grant, entities: Iterable[NodeDefinition | EdgeDefinition]
) -> None:
    for entity in entities:
        statements.note("mapping", grant.username, entity.sql)


def _author(grant: Grant, use_case: str | None = None) -> Author:
    return Author(username=grant.username, role=grant.role, use_case=use_case)


def _answer(result: Written, response: Response) -> Data[MappingDetail]:
    response.headers["ETag"] = f'"{result.mapping.etag}"'
    return Data(data=written(result))


def _etags(header: str | None) -> frozenset[str] | None:
    """The tags of an If-Match header, unquoted; weak tags match like strong ones."""
    if header is None:
        return None
    return frozenset(tag.strip().removeprefix("W/").strip('"') for tag in header.split(","))
