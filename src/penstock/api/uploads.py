"""Files that people bring: CSV, Parquet or Excel, kept as Parquet for recipes to name."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from pydantic import BaseModel, Field

from penstock.api.errors import PUBLIC, declare
from penstock.api.matrix import Permit
from penstock.api.parts import HasReconciliation
from penstock.api.reading import StrictRoute
from penstock.api.reply import Data
from penstock.kit.errors import NotFound, PayloadTooLarge
from penstock.kit.scratch import scratch_folder
from penstock.reconcile.uploads import Upload as Kept

router = APIRouter(prefix="/api/uploads", tags=["reconciliation"], route_class=StrictRoute)
MAX_BYTES = 1024**3
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


@router.post(
    "",
    summary="Upload a file",
    status_code=201,
    responses=declare(*PUBLIC, PayloadTooLarge),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def add(
    request: Request,
    it: HasReconciliation,
    grant: Permit,
    name: Annotated[str, Query(min_length=1, max_length=200, examples=["payments.csv"])],
    encoding: Annotated[str, Query(max_length=40, description="Of a CSV.", examples=["cp1252"])] = "utf-8",
    delimiter: Annotated[str | None, Query(min_length=1, max_length=1, examples=[";"])] = None,
) -> Data[Upload]:
    """The body is the file itself. A CSV's delimiter is found out; its columns are text."""
    with scratch_folder("upload") as folder:
        path = folder / "body"
        with path.open("wb") as file:
            async for piece in request.stream():
                await asyncio.to_thread(file.write, piece)
        kept = await it.desk.uploads.add(path, name=name, owner=grant.username, encoding=encoding, delimiter=delimiter)
    return Data(data=_shown(kept))


@router.get("/{upload_id}", summary="Show an upload", responses=declare(*PUBLIC, NotFound))
async def show(
    upload_id: Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", examples=["0" * 32])],
    it: HasReconciliation,
    grant: Permit,
) -> Data[Upload]:
    kept = await it.desk.uploads.get(upload_id)
    grant.over(kept.owner_username)
    return Data(data=_shown(kept))


def _shown(kept: Kept) -> Upload:
    return Upload(
        upload_id=kept.upload_id,
        name=kept.name,
        rows=kept.rows,
        size_bytes=kept.size_bytes,
        sha256=kept.sha256,
        columns=[Column(**column) for column in kept.columns],
        created_at=kept.created_at,
    )
