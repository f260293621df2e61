"""Routes of uploads: CSV, Parquet or Excel files, stored as Parquet for use in recipes."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from pydantic import BaseModel, Field

from penstock.accounts.role import Role
from penstock.api.errors import PUBLIC, declare
from penstock.api.pagination import Page
from penstock.api.permissions import Permit
from penstock.api.requests.request_bodies import FileRoute
from penstock.api.schema.envelope import Data, Listing
from penstock.api.services import HasReconciliation
from penstock.kit.errors import InvalidState, NotFound, PayloadTooLarge
from penstock.kit.scratch import scratch_folder
from penstock.reconcile.uploads.service import Upload as StoredUpload
from penstock.reconcile.uploads.service import UploadQuotaExceeded

router = APIRouter(prefix="/api/uploads", tags=["reconciliation"], route_class=FileRoute)
UploadId = Annotated[str, InPath(pattern=r"^[0-9a-f]{32}$", examples=["0" * 32])]


class Column(BaseModel):
    name: str
    type: str


class Upload(BaseModel):
    upload_id: str = Field(examples=["0" * 32])
    name: str = Field(examples=["payments.csv"])
    rows: int
    size_bytes: int
    sha256: str
    columns: list[Column]
    created_at: datetime
    owner: str
    expires_at: datetime = Field(description="Extended when a run uses it.")


class UploadDropped(BaseModel):
    upload_id: str
    deleted: bool


class UploadUsage(BaseModel):
    """The storage that the caller's uploads use, and their quota."""

    files: int
    max_files: int
    bytes: int
    max_bytes: int
    max_file_bytes: int
    days: int = Field(description="Retention in days after the last use by a run.")


class UploadQuery(Page):
    sort_by: Literal["created_at"] = "created_at"


@router.post(
    "",
    summary="Upload a file",
    status_code=201,
    responses=declare(*PUBLIC, PayloadTooLarge, UploadQuotaExceeded),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        }
    },
)
async def add(
    request: Request,
    it: HasReconciliation,
    grant: Permit,
    name: Annotated[str, Query(min_length=1, max_length=200, examples=["payments.csv"])],
    encoding: Annotated[
        str, Query(max_length=40, description="Of a CSV.", examples=["cp1252"])
    ] = "utf-8",
    delimiter: Annotated[str | None, Query(min_length=1, max_length=1, examples=[";"])] = None,
) -> Data[Upload]:
    """The body is the file itself. A CSV's delimiter is detected; its columns are text."""
    uploads = it.service.uploads
    await uploads.check_quota(grant.username)
    async with uploads.turns.slot(grant.username):
        with scratch_folder("upload") as folder:
            path = folder / "body"
            await _receive(request, path, uploads.quota.max_bytes)
            upload = await uploads.add(
                path, name=name, owner=grant.username, encoding=encoding, delimiter=delimiter
            )
    return Data(data=_shown(upload))


async def _receive(request: Request, path: Path, max_bytes: int) -> None:
    size = 0
    with path.open("wb") as file:
        async for piece in request.stream():
            size += len(piece)
            if size > max_bytes:
                raise _too_large(max_bytes)
            await asyncio.to_thread(file.write, piece)


def _too_large(limit: int) -> PayloadTooLarge:
    message = f"The file is too large; the limit is {limit:,} bytes."
    return PayloadTooLarge(message, hint="Split it, or compress it as .csv.gz.", limit=limit)


@router.get("", summary="List uploads", responses=declare(*PUBLIC))
async def list_uploads(
    query: Annotated[UploadQuery, Query()], request: Request, it: HasReconciliation, grant: Permit
) -> Listing[Upload]:
    """Newest first: the caller's own uploads, or all uploads for admins."""
    owner = None if grant.role in (Role.ADMIN, Role.OPS) else grant.username
    rows, total = await it.service.uploads.page(owner=owner, offset=query.offset, limit=query.limit)
    return query.of([_shown(row) for row in rows], total, request)


@router.get("/usage", summary="Show the storage that your uploads use", responses=declare(*PUBLIC))
async def usage(it: HasReconciliation, grant: Permit) -> Data[UploadUsage]:
    quota, used = it.service.uploads.quota, await it.service.uploads.usage(grant.username)
    shown = UploadUsage(
        files=used.files,
        max_files=quota.user_files,
        bytes=used.bytes,
        max_bytes=quota.user_bytes,
        max_file_bytes=quota.max_bytes,
        days=quota.days,
    )
    return Data(data=shown)


@router.get("/{upload_id}", summary="Show an upload", responses=declare(*PUBLIC, NotFound))
async def show(
    upload_id: Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", examples=["0" * 32])],
    it: HasReconciliation,
    grant: Permit,
) -> Data[Upload]:
    upload = await it.service.uploads.get(upload_id)
    grant.over(upload.owner_username)
    return Data(data=_shown(upload))


@router.delete(
    "/{upload_id}",
    summary="Delete an upload",
    responses=declare(*PUBLIC, NotFound, InvalidState),
)
async def delete(upload_id: UploadId, it: HasReconciliation, grant: Permit) -> Data[UploadDropped]:
    """Deletes it at once, with its file; refused while an unfinished run reads it."""
    uploads = it.service.uploads
    grant.over((await uploads.get(upload_id)).owner_username)
    await uploads.delete(upload_id)
    return Data(data=UploadDropped(upload_id=upload_id, deleted=True))


def _shown(upload: StoredUpload) -> Upload:
    return Upload(
        upload_id=upload.upload_id,
        name=upload.name,
        rows=upload.rows,
        size_bytes=upload.size_bytes,
        sha256=upload.sha256,
        columns=[Column(**column) for column in upload.columns],
        created_at=upload.created_at,
        owner=upload.owner_username,
        expires_at=upload.expires_at,
    )
