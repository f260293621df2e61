"""Errors of the graphs package.

Conflict
├── ConcurrencyLimit        CONCURRENCY_LIMIT
├── InvalidStateTransition  INVALID_STATE_TRANSITION
├── JobsAlreadyExist        JOBS_ALREADY_EXIST
└── ShutdownBlocked         SHUTDOWN_BLOCKED
InvalidInput
├── ColumnsDiffer           COLUMNS_DIFFER
└── SameVersion             SAME_VERSION
Unavailable
└── Maintenance             MAINTENANCE
"""

from __future__ import annotations

from penstock.kit.errors import Conflict, InvalidInput, Unavailable


class InvalidStateTransition(Conflict):
    """The state machine has no such transition; nothing was changed."""

    code = "INVALID_STATE_TRANSITION"


class ShutdownBlocked(Conflict):
    """An algorithm is running; only `force` ends it."""

    code = "SHUTDOWN_BLOCKED"


class JobsAlreadyExist(Conflict):
    """The snapshot has its export jobs already."""

    code = "JOBS_ALREADY_EXIST"


class ColumnsDiffer(InvalidInput):
    """A query does not return the declared columns.

    `details` lists every problem with its column and a suggestion."""

    code = "COLUMNS_DIFFER"


class ExportTooLarge(InvalidInput):
    """A query returns more rows or bytes than its author may export; `details` has the limit."""

    code = "EXPORT_TOO_LARGE"


class SameVersion(InvalidInput):
    """A version was compared with itself."""

    code = "SAME_VERSION"
    status = 400


class Maintenance(Unavailable):
    """The platform is read-only: nothing new is created; running work continues."""

    code = "MAINTENANCE"
