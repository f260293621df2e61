"""What the guard says no with.

InvalidInput ├── SqlRefused             SQL_REFUSED            a piece that is not on the list of
what may pass │   ├── SqlUnreadable      SQL_UNREADABLE         it cannot be parsed in the source's
dialect │   ├── SqlTooLarge        SQL_TOO_LARGE          too long, too deep, too many parts │   ├──
StatementRefused   SQL_STATEMENT_REFUSED  not one SELECT │   ├── FunctionRefused
SQL_FUNCTION_REFUSED │   ├── TableRefused       SQL_TABLE_REFUSED │   └── DuplicateColumn
SQL_DUPLICATE_COLUMN ├── UrlRefused             URL_REFUSED └── NameRefused            NAME_REFUSED
PermissionDenied └── CypherRefused          PERMISSION_DENIED      a clause, procedure or function
that is not on the list CypherUnreadable           RYUGRAPH_ERROR    400  what no engine could read
└── CypherTooLarge         RYUGRAPH_ERROR    400
"""

from __future__ import annotations

from penstock.kit.errors import InvalidInput, PenstockError, PermissionDenied


class SqlRefused(InvalidInput):
    """`details` has `line` and `column` (from 1) where the place is known."""

    code = "SQL_REFUSED"


class SqlUnreadable(SqlRefused):
    """The query cannot be parsed in the source's dialect; the message says where."""

    code = "SQL_UNREADABLE"


class SqlTooLarge(SqlRefused):
    """The query is longer or deeper than is parsed."""

    code = "SQL_TOO_LARGE"


class StatementRefused(SqlRefused):
    """Only one SELECT may be asked."""

    code = "SQL_STATEMENT_REFUSED"


class FunctionRefused(SqlRefused):
    """The query calls a function that is not on the list."""

    code = "SQL_FUNCTION_REFUSED"


class TableRefused(SqlRefused):
    """The query reads something that is no table of the source."""

    code = "SQL_TABLE_REFUSED"


class DuplicateColumn(SqlRefused):
    """Two columns of a query have one name."""

    code = "SQL_DUPLICATE_COLUMN"


class UrlRefused(InvalidInput):
    """The address leads where nothing of ours may go."""

    code = "URL_REFUSED"


class NameRefused(InvalidInput):
    """No object may have this name."""

    code = "NAME_REFUSED"


class CypherRefused(PermissionDenied):
    """`details` has the `word`, and its `position` from 0."""


class CypherUnreadable(PenstockError):
    code = "RYUGRAPH_ERROR"
    status = 400


class CypherTooLarge(CypherUnreadable):
    pass
