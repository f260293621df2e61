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
    """Read tinyint(1), MySQL's BOOLEAN, as bool; other values than 0 and 1 are then an error."""
    connect_seconds: Annotated[int, Field(ge=1, le=300)] = 10
    silence_seconds: Annotated[float, Field(gt=0)] = 900.0
    """A query without a batch for this long is cancelled; also the time limit for the first
    batch."""
