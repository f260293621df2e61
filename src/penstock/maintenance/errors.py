"""What maintenance refuses, and what can become of a commit."""

from __future__ import annotations

from penstock.kit.errors import Conflict, InvalidInput, NotFound, PenstockError, Unavailable


class NoSuchCatalog(NotFound):
    pass


class NoSuchTable(NotFound):
    pass


class TableUnreadable(PenstockError):
    """The catalog knows the table, but its metadata or a file that this names cannot be read."""

    code = "TABLE_UNREADABLE"
    status = 422


class CatalogUnavailable(Unavailable):
    """The catalog, or the storage of its tables, does not answer."""

    code = "CATALOG_UNAVAILABLE"


class UnknownAction(InvalidInput):
    """No action at all, or one that is not known: the request itself is wrong."""

    code = "UNKNOWN_ACTION"
    status = 400


class Refused(PenstockError):
    """The table is of a kind that we must not touch in this way. Nothing was written."""

    code = "MAINTENANCE_REFUSED"
    status = 422


class MaintenanceFailed(PenstockError):
    """An action did not end well; what each of them did is told with the job."""

    code = "MAINTENANCE_FAILED"


class CommitConflict(Conflict):
    """Somebody else committed first, and what they did cannot stand beside ours. Nothing of ours is
    in the table."""

    code = "COMMIT_CONFLICT"


class CommitUnknown(Unavailable):
    """Nobody can say whether the commit stands: nothing may be deleted."""

    code = "COMMIT_UNKNOWN"
    retryable = False


class ContentDiffers(PenstockError):
    """What was written does not hold what was read. It was not committed."""

    code = "CONTENT_DIFFERS"


class UnreadableFile(PenstockError):
    """A data file that is missing or damaged, or whose columns the table cannot hold. Nothing was
    committed."""

    code = "UNREADABLE_FILE"
