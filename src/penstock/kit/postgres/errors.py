"""What can go wrong with a PostgreSQL of our own.

PenstockError
├── PostgresMissing    500  POSTGRES_MISSING
├── PostgresFailed     500  POSTGRES_FAILED
└── Conflict
    └── ClusterHeld    409  CLUSTER_HELD
"""

from __future__ import annotations

from penstock.kit.errors import Conflict, PenstockError


class PostgresMissing(PenstockError):
    """No PostgreSQL programs were found."""

    code = "POSTGRES_MISSING"


class PostgresFailed(PenstockError):
    """The programs are there, but the server did not come up."""

    code = "POSTGRES_FAILED"


class ClusterHeld(Conflict):
    """Somebody else runs a server on this data."""

    code = "CLUSTER_HELD"
