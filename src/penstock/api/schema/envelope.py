"""The envelope of responses under /api: `{"data": …}`, and for lists a `meta` beside it."""

from typing import Generic, TypeVar

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
    """A JSON response without model validation, for hot routes."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return orjson.dumps(content, option=orjson.OPT_UTC_Z)


def request_id(request: Request) -> str:
    value: str = request.scope["state"]["request_id"]
    return value
