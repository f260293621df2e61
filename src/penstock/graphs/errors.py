"""What the graphs say no with.

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
    """The state machine has no such step; nothing was changed."""

    code = "INVALID_STATE_TRANSITION"


class ShutdownBlocked(Conflict):
    """An algorithm runs; it is not ended unless that is said."""

    code = "SHUTDOWN_BLOCKED"


class JobsAlreadyExist(Conflict):
    """The snapshot has its export jobs already."""

    code = "JOBS_ALREADY_EXIST"


class ColumnsDiffer(InvalidInput):
    """A query does not give the declared columns; `details` has every problem with its column and a
    suggestion."""

    code = "COLUMNS_DIFFER"


class ExportTooLarge(InvalidInput):
    """A query gives more rows or bytes than its author may export; `details` has the limit."""

    code = "EXPORT_TOO_LARGE"


class SameVersion(InvalidInput):
    """A version was to be compared with itself."""

    code = "SAME_VERSION"
    status = 400


class Maintenance(Unavailable):
    """Nothing new is begun for now; what is there can be read and goes on."""

    code = "MAINTENANCE"
