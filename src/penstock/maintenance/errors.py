"""Errors of the maintenance package."""

from __future__ import annotations

from penstock.kit.errors import Conflict, InvalidInput, NotFound, PenstockError, Unavailable


class NoSuchCatalog(NotFound):
    pass


class NoSuchTable(NotFound):
    pass


class TableUnreadable(PenstockError):
    """The table is in the catalog, but its metadata or a file that it references is unreadable."""

    code = "TABLE_UNREADABLE"
    status = 422


class CatalogUnavailable(Unavailable):
    """The catalog, or the storage of its tables, is unavailable."""

    code = "CATALOG_UNAVAILABLE"


class UnknownAction(InvalidInput):
    """The request names no action, or an unknown one."""

    code = "UNKNOWN_ACTION"
    status = 400


class Refused(PenstockError):
    """The action is not allowed on this table. Nothing was written."""

    code = "MAINTENANCE_REFUSED"
    status = 422


class MaintenanceFailed(PenstockError):
    """An action of the job failed; the job lists the outcome of each action."""

    code = "MAINTENANCE_FAILED"


class CommitConflict(Conflict):
    """Another writer committed a conflicting change first. Our change is not in the table."""

    code = "COMMIT_CONFLICT"


class CommitUnknown(Unavailable):
    """The outcome of the commit is unknown, so none of its files may be deleted."""

    code = "COMMIT_UNKNOWN"
    retryable = False


class ContentDiffers(PenstockError):
    """The written rows differ from the rows read. Nothing was committed."""

    code = "CONTENT_DIFFERS"


class UnreadableFile(PenstockError):
    """A data file is missing or damaged, or its columns do not fit the table. Nothing was
    committed."""

    code = "UNREADABLE_FILE"
