"""What the guard says no with.

InvalidInput
├── SqlRefused             SQL_REFUSED            a piece that is not on the list of what may pass
│   ├── SqlUnreadable      SQL_UNREADABLE         it cannot be parsed in the source's dialect
│   ├── SqlTooLarge        SQL_TOO_LARGE          too long, too deep, too many parts
│   ├── StatementRefused   SQL_STATEMENT_REFUSED  not one SELECT
│   ├── FunctionRefused    SQL_FUNCTION_REFUSED
│   ├── TableRefused       SQL_TABLE_REFUSED
│   └── DuplicateColumn    SQL_DUPLICATE_COLUMN
├── UrlRefused             URL_REFUSED
└── NameRefused            NAME_REFUSED
PermissionDenied
└── CypherRefused          PERMISSION_DENIED      a clause, procedure or function that is not on the list
CypherUnreadable           RYUGRAPH_ERROR    400  what no engine could read
└── CypherTooLarge         RYUGRAPH_ERROR    400
"""

from __future__ import annotations

from penstock.kit.errors import InvalidInput, PenstockError, PermissionDenied


class SqlRefused(InvalidInput):
    """`details` has `line` and `column` (from 1) where the place is known."""

    code = "SQL_REFUSED"


class SqlUnreadable(SqlRefused):
    code = "SQL_UNREADABLE"


class SqlTooLarge(SqlRefused):
    code = "SQL_TOO_LARGE"


class StatementRefused(SqlRefused):
    code = "SQL_STATEMENT_REFUSED"


class FunctionRefused(SqlRefused):
    code = "SQL_FUNCTION_REFUSED"


class TableRefused(SqlRefused):
    code = "SQL_TABLE_REFUSED"


class DuplicateColumn(SqlRefused):
    code = "SQL_DUPLICATE_COLUMN"


class UrlRefused(InvalidInput):
    code = "URL_REFUSED"


class NameRefused(InvalidInput):
    code = "NAME_REFUSED"


class CypherRefused(PermissionDenied):
    """`details` has the `word`, and its `position` from 0."""


class CypherUnreadable(PenstockError):
    code = "RYUGRAPH_ERROR"
    status = 400


class CypherTooLarge(CypherUnreadable):
    pass
