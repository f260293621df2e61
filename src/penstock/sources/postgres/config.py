from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from penstock.sources.config import secret

_NAME_BYTES = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    database: str
    user: str
    host: str = "localhost"
    port: Annotated[int, Field(ge=1, le=65535)] = 5432
    password: str = secret("")
    sslmode: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    sslrootcert: str | None = None
    connect_seconds: Annotated[int, Field(ge=1, le=300)] = 10
    silence_seconds: Annotated[float, Field(gt=0)] = 900.0
    """A query that gives no batch for so long is taken for lost; also how long it may think before the first."""


def conninfo(config: Config, *, trace: str = "") -> str:
    """libpq's own form. A URL would need escapes, and a wrong one is repeated in its error, password and all."""
    wanted = {
        "application_name": f"penstock {trace}".strip().encode()[:_NAME_BYTES].decode(errors="ignore"),
        "client_encoding": "UTF8",
        "connect_timeout": config.connect_seconds,
        "dbname": config.database,
        "host": config.host,
        "keepalives_count": 3,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "password": config.password,
        "port": config.port,
        "sslmode": config.sslmode,
        "sslrootcert": config.sslrootcert,
        "tcp_user_timeout": 60_000,
        "user": config.user,
    }
    return " ".join(f"{name}={_quoted(str(value))}" for name, value in wanted.items() if value not in {None, ""})


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
