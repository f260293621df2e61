"""Pagination: `offset`, `limit` (clamped), `sort_by`, `sort_order`. Unknown parameters are refused.

class JobQuery(Page):
    sort_by: Literal["created_at", "id"] = "created_at"
    kind: Name | None = None

async def list_jobs(query: Annotated[JobQuery, Query()], …) -> Listing[JobSummary]
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar

from fastapi import Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from penstock.api.schema.envelope import Listing, Meta, Reply, request_id
from penstock.jobs.model import Json
from penstock.jobs.row_counts import Count

T = TypeVar("T")
MAX_LIMIT = 100
MAX_OFFSET = 1_000_000


def _clamped(limit: int) -> int:
    return min(limit, MAX_LIMIT)


Limit = Annotated[int, Field(ge=1, description=f"At most {MAX_LIMIT}."), AfterValidator(_clamped)]


def _iso(text: object) -> object:
    """Pydantic would take a bare number for a Unix time."""
    if not isinstance(text, str) or "-" not in text[1:]:
        raise ValueError("not an ISO 8601 time")
    return text


def _in_utc(moment: datetime) -> datetime:
    """A time without a zone is in UTC; one that Python cannot represent is refused."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("out of range") from None


Moment = Annotated[
    datetime,
    BeforeValidator(_iso),
    AfterValidator(_in_utc),
    Field(examples=["2026-01-31T12:00:00Z"]),
]


class Page(BaseModel):
    model_config = ConfigDict(extra="forbid")

    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = 0
    limit: Limit = 50
    sort_order: Literal["asc", "desc"] = "desc"

    @property
    def ascending(self) -> bool:
        return self.sort_order == "asc"

    def of(self, page: Sequence[T], total: int | Count, request: Request) -> Listing[T]:
        """The envelope of one page of rows."""
        counted = Count(value=total, estimated=False) if isinstance(total, int) else total
        return Listing(data=list(page), meta=Meta(**self._meta(counted, request)))

    def reply(self, page: Sequence[Json], total: Count, request: Request) -> Reply:
        """The same for documents that already match the response model; they are not validated."""
        return Reply({"data": page, "meta": self._meta(total, request)})

    def _meta(self, total: Count, request: Request) -> dict[str, object]:
        return {
            "total": total.value,
            "total_is_estimate": total.estimated,
            "offset": self.offset,
            "limit": self.limit,
            "request_id": request_id(request),
        }

    def cut(self, rows: Sequence[T], request: Request) -> Listing[T]:
        """One page of a complete list."""
        return self.of(rows[self.offset : self.offset + self.limit], len(rows), request)
