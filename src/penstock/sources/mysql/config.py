from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from penstock.sources.config import secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    database: str
    user: str
    host: str = "localhost"
    """A name or address, or the path of a Unix socket."""
    port: Annotated[int, Field(ge=1, le=65535)] = 3306
    password: str = secret("")
    tls: Literal["disable", "prefer", "require", "verify"] = "prefer"
    tls_ca: str | None = None
    tinyint1_is_bool: bool = True
    """A tinyint(1) is MySQL's BOOLEAN; a value in it other than 0 and 1 is then an error."""
    connect_seconds: Annotated[int, Field(ge=1, le=300)] = 10
    silence_seconds: Annotated[float, Field(gt=0)] = 900.0
    """A query that gives no batch for so long is taken for lost; also how long it may think before
    the first."""
