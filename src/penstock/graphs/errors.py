"""What the graphs say no with.

Conflict
├── InvalidStateTransition  INVALID_STATE_TRANSITION
└── JobsAlreadyExist        JOBS_ALREADY_EXIST
InvalidInput
└── ColumnsDiffer           COLUMNS_DIFFER
Unavailable
└── Maintenance             MAINTENANCE
"""

from __future__ import annotations

from penstock.kit.errors import Conflict, InvalidInput, Unavailable


class InvalidStateTransition(Conflict):
    """The state machine has no such step; nothing was changed."""

    code = "INVALID_STATE_TRANSITION"


class JobsAlreadyExist(Conflict):
    code = "JOBS_ALREADY_EXIST"


class ColumnsDiffer(InvalidInput):
    """A query does not give the declared columns; `details` has every problem with its column and a suggestion."""

    code = "COLUMNS_DIFFER"


class Maintenance(Unavailable):
    """Nothing new is begun for now; what is there can be read and goes on."""

    code = "MAINTENANCE"
