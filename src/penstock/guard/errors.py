"""Errors of the guard package.

InvalidInput
├── SqlRefused             SQL_REFUSED            a part that is not on an allowlist
│   ├── SqlUnreadable      SQL_UNREADABLE         invalid in the source's dialect
│   ├── SqlTooLarge        SQL_TOO_LARGE          too long, too deep, too many parts
│   ├── StatementRefused   SQL_STATEMENT_REFUSED  not one SELECT
│   ├── FunctionRefused    SQL_FUNCTION_REFUSED
│   ├── TableRefused       SQL_TABLE_REFUSED
│   └── DuplicateColumn    SQL_DUPLICATE_COLUMN
└── UrlRefused             URL_REFUSED
PermissionDenied
└── CypherRefused          PERMISSION_DENIED      a clause, procedure or function not on the list
CypherUnreadable           RYUGRAPH_ERROR    400  cannot be parsed
└── CypherTooLarge         RYUGRAPH_ERROR    400
"""

from __future__ import annotations

from penstock.kit.errors import InvalidInput, PenstockError, PermissionDenied


class SqlRefused(InvalidInput):
    """The query is not allowed; `details` has `line` and `column` (from 1) where known."""

    code = "SQL_REFUSED"


class SqlUnreadable(SqlRefused):
    """The query cannot be parsed in the source's dialect; the message gives the position."""

    code = "SQL_UNREADABLE"


class SqlTooLarge(SqlRefused):
    """The query is too long or too deeply nested."""

    code = "SQL_TOO_LARGE"


class StatementRefused(SqlRefused):
    """The query is not a single SELECT statement."""

    code = "SQL_STATEMENT_REFUSED"


class FunctionRefused(SqlRefused):
    """The query calls a function that is not allowed."""

    code = "SQL_FUNCTION_REFUSED"


class TableRefused(SqlRefused):
    """The query reads something that is not a table of the source."""

    code = "SQL_TABLE_REFUSED"


class DuplicateColumn(SqlRefused):
    """Two columns of a query have the same name."""

    code = "SQL_DUPLICATE_COLUMN"


class UrlRefused(InvalidInput):
    """The URL leads to a host or port that is not allowed."""

    code = "URL_REFUSED"


class CypherRefused(PermissionDenied):
    """The query is not read-only; `details` has the `word` and its `position` from 0."""


class CypherUnreadable(PenstockError):
    code = "RYUGRAPH_ERROR"
    status = 400


class CypherTooLarge(CypherUnreadable):
    pass
