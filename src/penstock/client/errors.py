"""What a control plane can answer with, rebuilt from its error envelope."""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    """`code` is the server's, or UNREACHABLE when nobody answered."""

    def __init__(
        self, message: str, *, code: str, status: int, hint: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.hint = hint
        self.details = details or {}
