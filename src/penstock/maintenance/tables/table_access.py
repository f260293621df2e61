"""A table and the one way to change it: a swap of its metadata, under the fence.

A definite refusal is a `CommitConflict`: what was written for the commit may go. Whatever else goes
wrong leaves the outcome open; then the table is asked once more, and if it does not know our
snapshot the outcome is unknown and nothing may be deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    UnauthorizedError,
    ValidationError,
)
from pyiceberg.io import load_file_io
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import Table
from pyiceberg.table.update import (
    AssertTableUUID,
    ValidatableTableRequirement,
    update_table_metadata,
)

from penstock.kit import logging
from penstock.kit.errors import PenstockError, StaleAttempt
from penstock.maintenance.errors import (
    CatalogUnavailable,
    CommitConflict,
    CommitUnknown,
    NoSuchTable,
    TableUnreadable,
)
from penstock.maintenance.tables.catalogs import FILE_IO, all_tables
from penstock.maintenance.tables.committable import Committable
from penstock.maintenance.tables.locations import locations
from penstock.maintenance.tables.metadata_names import marked
from penstock.maintenance.tables.neighbors import (
    Neighbor,
    TablePointer,
    neighbour_of,
    read_neighbour,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from penstock.maintenance.actions.context import Run

    Requirements: TypeAlias = tuple["Requirement", ...]
    Updates: TypeAlias = tuple[TableUpdate, ...]

Identifier: TypeAlias = tuple[str, ...]
log = logging.get(__name__)


class Requirement(Protocol):
    def validate(self, base_metadata: TableMetadata | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SameRefs:
    """No branch or tag came, went or moved. The protocol of REST catalogs has no word for one that
    came."""

    refs: Mapping[str, int]

    def validate(self, base_metadata: TableMetadata | None) -> None:
        if base_metadata is None or refs_of(base_metadata) != self.refs:
            raise CommitFailedException("A branch or tag came, went or moved meanwhile.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceNumberFree:
    """No other branch got a snapshot with this sequence number or a later one.

    Java's and PyIceberg's metadata refuse such a snapshot with an error that a catalog does not
    tell from any other.
    """

    sequence_number: int

    def validate(self, base_metadata: TableMetadata | None) -> None:
        if base_metadata is None or base_metadata.next_sequence_number() > self.sequence_number:
            raise CommitFailedException("Another branch of the table was committed to meanwhile.")


def refs_of(metadata: TableMetadata) -> dict[str, int]:
    return {name: ref.snapshot_id for name, ref in metadata.refs.items()}


class TableAccess(Protocol):
    """Where one table is loaded from and committed to."""

    exact: bool
    """Whether a worker that lost its job cannot commit any more, whatever happens."""

    def load(self) -> Table: ...

    def commit(self, table: Table, requirements: Requirements, updates: Updates) -> None:
        """CommitConflict: it does not stand. CommitUnknown: nobody knows."""
        ...

    def neighbours(self) -> list[Neighbor]:
        """The other tables, of all namespaces and as far as they are known of other catalogs."""
        ...


class CatalogTableAccess:
    """A table of a catalog that we may open ourselves. The fence is asked right before the swap."""

    exact = False

    def __init__(
        self,
        catalog: Catalog,
        identifier: Identifier,
        fence: Callable[[], None] = lambda: None,
        elsewhere: Callable[[], list[TablePointer]] = list,
    ) -> None:
        self._catalog = catalog
        self._identifier = tuple(identifier)
        self._fence = fence
        self._elsewhere = elsewhere

    def load(self) -> Table:
        try:
            return self._catalog.load_table(self._identifier)
        except Exception as e:
            raise not_loaded(self._identifier, e) from e

    def commit(self, table: Table, requirements: Requirements, updates: Updates) -> None:
        asserts = (*_always(table), *requirements)
        sent = asserts
        if not isinstance(self._catalog, MetastoreCatalog):
            sent = tuple(r for r in asserts if isinstance(r, ValidatableTableRequirement))
            _validate(asserts, self.load())
        self._fence()
        try:
            self._catalog.commit_table(table, cast("tuple[TableRequirement, ...]", sent), updates)
        except CommitFailedException as e:
            raise CommitConflict(str(e)) from e
        except Exception as e:
            raise CommitUnknown(
                f"The catalog did not say whether the commit stands: {type(e).__name__}."
            ) from e

    def neighbours(self) -> list[Neighbor]:
        properties = {"py-io-impl": FILE_IO, **self._catalog.properties}
        try:
            pointers = _sql_pointers(self._catalog, self._identifier)
            names = () if pointers is not None else all_tables(self._catalog)
        except Exception as e:
            message = f"The other tables of the catalog cannot be listed: {type(e).__name__}."
            raise CatalogUnavailable(message) from e
        others = [self._neighbour(name) for name in names if name != self._identifier]
        others += _read_neighbours(properties, pointers or ())
        return others + _read_neighbours(properties, self._elsewhere())

    def _neighbour(self, identifier: Identifier) -> Neighbor:
        name = ".".join(identifier)
        try:
            return neighbour_of(name, self._catalog.load_table(identifier))
        except Exception as e:
            log.warning("neighbour_not_readable", table=name, error=type(e).__name__)
            return Neighbor(name=name)


class FencedTableAccess:
    """A table whose current metadata is named by a pointer that somebody else moves for us, under
    our fence."""

    exact = True

    def __init__(
        self,
        identifier: Identifier,
        *,
        properties: Mapping[str, str],
        current: Callable[[], str],
        swap: Callable[[str, str], bool],
        others: Callable[[], list[TablePointer]],
        run: Run,
    ) -> None:
        self._identifier = identifier
        self._properties = {"py-io-impl": FILE_IO, **properties}
        self._current = current
        self._swap = swap
        self._others = others
        self._run = run

    def load(self) -> Table:
        return self._open(self._identifier, self._current())

    def commit(self, table: Table, requirements: Requirements, updates: Updates) -> None:
        base = self.load()
        _validate((*_always(table), *requirements), base)
        try:
            metadata = update_table_metadata(
                base.metadata,
                updates,
                metadata_location=base.metadata_location,
            )
        except ValueError as e:
            raise CommitConflict(f"The change does not fit the table any more: {e}"[:500]) from e
        version = MetastoreCatalog._parse_metadata_version(base.metadata_location) + 1
        location = marked(
            locations(metadata).new_table_metadata_file_location(version), self._run.mark
        )
        ToOutputFile.table_metadata(metadata, base.io.new_output(location))
        self._run.step("metadata_written")
        try:
            moved = self._swap(base.metadata_location, location)
        except StaleAttempt:
            # The refusal may answer a repeated request whose first answer was lost: the file may
            # be the table's current one. The next job removes it if it is not.
            raise
        except Exception as e:
            raise CommitUnknown(
                f"Nobody said whether the commit stands: {type(e).__name__}."
            ) from e
        if not moved and not self._superseded(base.metadata_location, location):
            base.io.delete(location)
            raise CommitConflict(f"Somebody else changed {'.'.join(self._identifier)} first.")

    def _superseded(self, before: str, ours: str) -> bool:
        """Whether our commit stands beneath a later one.

        A swap whose answer was lost is asked for again, and somebody else may have committed on top
        of it by then. The metadata log says so: it is cut from its oldest end, so where it reaches
        back to the metadata before ours and does not name ours, ours was never current.
        """
        try:
            table = self.load()
        except StaleAttempt:
            raise
        except PenstockError as e:
            raise CommitUnknown(f"Nobody knows whether the commit stands: {e.message}") from e
        log = {entry.metadata_file for entry in table.metadata.metadata_log}
        log.add(table.metadata_location)
        if ours in log:
            return True
        if before in log:
            return False
        raise CommitUnknown(
            "Nobody knows whether the commit stands: the metadata log is too short."
        )

    def neighbours(self) -> list[Neighbor]:
        return _read_neighbours(self._properties, self._others())

    def _open(self, identifier: Identifier, location: str) -> Table:
        try:
            io = load_file_io(self._properties, location)
            metadata = FromInputFile.table_metadata(io.new_input(location))
            # A table's properties may say how its storage is reached, but name no code to load.
            kind = {"py-io-impl": self._properties["py-io-impl"]}
            io = load_file_io({**self._properties, **metadata.properties, **kind}, location)
        except Exception as e:
            raise not_loaded(identifier, e) from e
        return Table(identifier, metadata, location, io, NoopCatalog("pointer"))


def not_loaded(identifier: Identifier, error: Exception) -> PenstockError:
    """Why a table was not loaded, in the words of our own errors."""
    name = ".".join(identifier)
    match error:
        case NoSuchTableError() | NoSuchNamespaceError():
            return NoSuchTable(f"There is no table {name}.")
        case FileNotFoundError():
            return TableUnreadable(f"A metadata file of {name} is not there: {_first_line(error)}")
        case PermissionError() | ForbiddenError() | UnauthorizedError():
            return TableUnreadable(f"The metadata of {name} may not be read: {_first_line(error)}")
        case ValueError() | KeyError() | TypeError() | NotImplementedError() | ValidationError():
            return TableUnreadable(f"The metadata of {name} cannot be read: {_first_line(error)}")
        case RESTError() if type(error) in (RESTError, BadRequestError):  # the former is for 422
            return TableUnreadable(f"The catalog refuses to load {name}: {_first_line(error)}")
        case OSError():
            return CatalogUnavailable(f"{name} cannot be loaded now: {_first_line(error)}")
        case _:
            return CatalogUnavailable(f"{name} cannot be loaded now: {type(error).__name__}.")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _always(table: Table) -> Requirements:
    """What every commit requires."""
    return AssertTableUUID(uuid=table.metadata.table_uuid), Committable()


def _validate(requirements: Requirements, base: Table) -> None:
    try:
        for requirement in requirements:
            requirement.validate(base.metadata)
    except CommitFailedException as e:
        raise CommitConflict(str(e)) from e


def _read_neighbours(
    properties: Mapping[str, str],
    pointers: Iterable[TablePointer],
) -> list[Neighbor]:
    return [read_neighbour(properties, pointer) for pointer in pointers]


def _sql_pointers(catalog: Catalog, identifier: Identifier) -> list[TablePointer] | None:
    """Every other row of a catalog in a database, those of catalogs of other names too."""
    try:
        from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
        from sqlalchemy import select
    except ImportError:
        return None
    if not isinstance(catalog, SqlCatalog):
        return None
    columns = (
        IcebergTables.catalog_name,
        IcebergTables.table_namespace,
        IcebergTables.table_name,
        IcebergTables.metadata_location,
    )
    own = (catalog.name, ".".join(identifier[:-1]), identifier[-1])
    with catalog.engine.connect() as connection:
        rows = connection.execute(select(*columns)).all()
    return [
        TablePointer(
            name=".".join(row[1:3] if row[0] == catalog.name else row[:3]),
            metadata_location=row[3],
        )
        for row in rows
        if tuple(row[:3]) != own and row[3] is not None
    ]
