"""The request headers of a statement: user, role, session. Only the POST has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

if TYPE_CHECKING:
    from penstock.sources.trino.config import Config

_UNSAFE = re.compile(r"[^\x21-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The role and trace of one statement; created per call, so that jobs never share a role."""

    role: str | None
    trace: str = ""


def statement_headers(config: Config, session: Session, *, spooled: bool) -> dict[str, str]:
    return {name: value for name, value in _headers(config, session, spooled=spooled) if value}


def _headers(config: Config, session: Session, *, spooled: bool) -> list[tuple[str, str]]:
    return [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("X-Trino-User", config.user),
        ("X-Trino-Source", config.source),
        ("X-Trino-Client-Tags", ",".join(config.client_tags)),
        ("X-Trino-Client-Capabilities", "PARAMETRIC_DATETIME"),
        ("X-Trino-Time-Zone", "UTC"),
        ("X-Trino-Trace-Token", _UNSAFE.sub("_", session.trace)),
        ("X-Trino-Role", _role(config, session)),
        ("X-Trino-Catalog", config.catalog or ""),
        ("X-Trino-Schema", config.schema or ""),
        (
            "X-Trino-Session",
            ",".join(f"{name}={quote_plus(value)}" for name, value in config.session.items()),
        ),
        ("X-Trino-Query-Data-Encoding", ",".join(config.encodings) if spooled else ""),
    ]


def _role(config: Config, session: Session) -> str:
    if session.role is None or config.role_catalog is None:
        return ""
    return f"{config.role_catalog}={quote_plus(f'ROLE{{{session.role}}}')}"
