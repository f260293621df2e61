"""Loads a table and commits to it by swapping its metadata under the fence.

A definite refusal raises `CommitConflict`, and the files written for the commit may be deleted.
After any other error the table is loaded again; if our snapshot is not in it, the outcome stays
unknown (`CommitUnknown`) and nothing may be deleted.
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
from penstock.maintenance.tables.catalog.catalogs import FILE_IO, all_tables
from penstock.maintenance.tables.catalog.metadata_names import marked
from penstock.maintenance.tables.commit.committable import Committable
from penstock.maintenance.tables.ownership.locations import locations
from penstock.maintenance.tables.ownership.neighbors import (
    Neighbor,
    TablePointer,
    neighbor_of,
    read_neighbor,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from penstock.maintenance.actions.context import ActionContext

    Requirements: TypeAlias = tuple["Requirement", ...]
    Updates: TypeAlias = tuple[TableUpdate, ...]

Identifier: TypeAlias = tuple[str, ...]
log = logging.get(__name__)


class Requirement(Protocol):
    def validate(self, base_metadata: TableMetadata | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SameRefs:
    """Commit requirement: no branch or tag was added, removed or moved. The REST catalog protocol
    cannot express that none was added."""

    refs: Mapping[str, int]

    def validate(self, base_metadata: TableMetadata | None) -> None:
        if base_metadata is None or refs_of(base_metadata) != self.refs:
            raise CommitFailedException("A branch or tag was added, removed or moved concurrently.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceNumberFree:
    """Commit requirement: no other branch has a snapshot with this or a later sequence number.

    Java and PyIceberg refuse such a snapshot too, but with an unspecific error.
    """

    sequence_number: int

    def validate(self, base_metadata: TableMetadata | None) -> None:
        if base_metadata is None or base_metadata.next_sequence_number() > self.sequence_number:
            raise CommitFailedException("Another branch of the table was committed concurrently.")


def refs_of(metadata: TableMetadata) -> dict[str, int]:
    return {name: ref.snapshot_id for name, ref in metadata.refs.items()}


class TableAccess(Protocol):
    """Loads one table and commits to it."""

    exact: bool
    """Whether a worker that lost its job can never commit."""

    def load(self) -> Table: ...

    def commit(self, table: Table, requirements: Requirements, updates: Updates) -> None:
        """CommitConflict: not committed. CommitUnknown: the outcome is unknown."""
        ...

    def neighbors(self) -> list[Neighbor]:
        """Other tables: of all namespaces, and of other catalogs as far as they are known."""
        ...


class CatalogTableAccess:
    """A table of a catalog that is opened directly. The fence is checked right before the swap."""

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
                f"The catalog did not confirm the commit: {type(e).__name__}."
            ) from e

    def neighbors(self) -> list[Neighbor]:
        properties = {"py-io-impl": FILE_IO, **self._catalog.properties}
        try:
            pointers = _sql_pointers(self._catalog, self._identifier)
            names = () if pointers is not None else all_tables(self._catalog)
        except Exception as e:
            message = f"The other tables of the catalog cannot be listed: {type(e).__name__}."
            raise CatalogUnavailable(message) from e
        others = [self._neighbor(name) for name in names if name != self._identifier]
        others += _read_neighbors(properties, pointers or ())
        return others + _read_neighbors(properties, self._elsewhere())

    def _neighbor(self, identifier: Identifier) -> Neighbor:
        name = ".".join(identifier)
        try:
            return neighbor_of(name, self._catalog.load_table(identifier))
        except Exception as e:
            log.warning("neighbour_not_readable", table=name, error=type(e).__name__)
            return Neighbor(name=name)


class FencedTableAccess:
    """A table whose metadata pointer the control plane moves, under our fence."""

    exact = True

    def __init__(
        self,
        identifier: Identifier,
        *,
        properties: Mapping[str, str],
        current: Callable[[], str],
        swap: Callable[[str, str], bool],
        others: Callable[[], list[TablePointer]],
        context: ActionContext,
    ) -> None:
        self._identifier = identifier
        self._properties = {"py-io-impl": FILE_IO, **properties}
        self._current = current
        self._swap = swap
        self._others = others
        self._context = context

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
            raise CommitConflict(f"The change no longer fits the table: {e}"[:500]) from e
        version = MetastoreCatalog._parse_metadata_version(base.metadata_location) + 1
        location = marked(
            locations(metadata).new_table_metadata_file_location(version), self._context.mark
        )
        ToOutputFile.table_metadata(metadata, base.io.new_output(location))
        self._context.step("metadata_written")
        try:
            moved = self._swap(base.metadata_location, location)
        except StaleAttempt:
            # This may be a repeated request whose first response was lost, and the file may be
            # the table's current metadata. The next job removes it if it is not.
            raise
        except Exception as e:
            raise CommitUnknown(
                f"The control plane did not confirm the commit: {type(e).__name__}."
            ) from e
        if not moved and not self._superseded(base.metadata_location, location):
            base.io.delete(location)
            raise CommitConflict(
                f"Another writer changed {'.'.join(self._identifier)} concurrently."
            )

    def _superseded(self, before: str, ours: str) -> bool:
        """Whether our commit succeeded and a later one is on top of it.

        A swap whose response was lost is repeated, and another writer may have committed in
        between. The metadata log tells: it is truncated at its oldest end, so if it reaches back to
        the metadata before ours without ours, ours was never current.
        """
        try:
            table = self.load()
        except StaleAttempt:
            raise
        except PenstockError as e:
            raise CommitUnknown(f"The outcome of the commit is unknown: {e.message}") from e
        log = {entry.metadata_file for entry in table.metadata.metadata_log}
        log.add(table.metadata_location)
        if ours in log:
            return True
        if before in log:
            return False
        raise CommitUnknown("The outcome of the commit is unknown: the metadata log is too short.")

    def neighbors(self) -> list[Neighbor]:
        return _read_neighbors(self._properties, self._others())

    def _open(self, identifier: Identifier, location: str) -> Table:
        try:
            io = load_file_io(self._properties, location)
            metadata = FromInputFile.table_metadata(io.new_input(location))
            # A table's properties may configure its storage, but must not name code to load.
            kind = {"py-io-impl": self._properties["py-io-impl"]}
            io = load_file_io({**self._properties, **metadata.properties, **kind}, location)
        except Exception as e:
            raise not_loaded(identifier, e) from e
        return Table(identifier, metadata, location, io, NoopCatalog("pointer"))


def not_loaded(identifier: Identifier, error: Exception) -> PenstockError:
    """Map an error of loading a table to our own errors."""
    name = ".".join(identifier)
    match error:
        case NoSuchTableError() | NoSuchNamespaceError():
            return NoSuchTable(f"There is no table {name}.")
        case FileNotFoundError():
            return TableUnreadable(f"A metadata file of {name} is missing: {_first_line(error)}")
        case PermissionError() | ForbiddenError() | UnauthorizedError():
            return TableUnreadable(f"No permission to read {name}: {_first_line(error)}")
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
    """The requirements of every commit."""
    return AssertTableUUID(uuid=table.metadata.table_uuid), Committable()


def _validate(requirements: Requirements, base: Table) -> None:
    try:
        for requirement in requirements:
            requirement.validate(base.metadata)
    except CommitFailedException as e:
        raise CommitConflict(str(e)) from e


def _read_neighbors(
    properties: Mapping[str, str],
    pointers: Iterable[TablePointer],
) -> list[Neighbor]:
    return [read_neighbor(properties, pointer) for pointer in pointers]


def _sql_pointers(catalog: Catalog, identifier: Identifier) -> list[TablePointer] | None:
    """All other rows of a SQL catalog's table, including those of other catalog names."""
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
