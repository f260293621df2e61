"""The role under which a source with roles runs a query: the use case that a job names."""

from __future__ import annotations

import re

from penstock.kit.errors import InvalidInput

MISSING_ROLE = "Missing use case ID (X-Use-Case-Id header required)"

_ROLE = re.compile(r"[^\x00-\x1f\x7f{}]{1,200}")


def require_role(role: str | None) -> str:
    """The role, validated; there is no default, so a job without a role fails."""
    if not role:
        raise InvalidInput(MISSING_ROLE)
    if not _ROLE.fullmatch(role):
        raise InvalidInput(
            "The use case ID is not a role name.",
            hint="Use 1-200 characters, without control characters or braces.",
        )
    return role
