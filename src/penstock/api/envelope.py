"""The envelope of every answer under /api: one object is `{"data": …}`, a list has a `meta` beside
it."""

from typing import Any, Generic, TypeVar

import orjson
from fastapi import Request, Response
from pydantic import BaseModel, Field

T = TypeVar("T")


class Data(BaseModel, Generic[T]):
    data: T


class Meta(BaseModel):
    total: int = Field(description="How many there are in all.", examples=[1])
    total_is_estimate: bool = Field(
        default=False, description="True where counting them would take long."
    )
    offset: int = Field(examples=[0])
    limit: int = Field(examples=[50])
    request_id: str = Field(examples=["5f0c2f6e9d0e4a7d8f5a3b1c2d4e6f70"])


class Listing(BaseModel, Generic[T]):
    data: list[T]
    meta: Meta


class Reply(Response):
    """JSON straight from the kernel's values, for answers that are made a thousand times a second."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return orjson.dumps(content, option=orjson.OPT_UTC_Z)


def request_id(request: Request) -> str:
    found: str = request.scope["state"]["request_id"]
    return found
