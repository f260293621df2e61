"""A table and the one way to change it: a swap of its metadata, under the fence.

A definite refusal is a `CommitConflict`: what was written for the commit may go. Whatever else goes wrong leaves the
outcome open; then the table is asked once more, and if it does not know our snapshot the outcome is unknown and
nothing may be deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.update import AssertTableUUID, update_table_metadata

from penstock.kit.errors import StaleAttempt
from penstock.maintenance.catalogs import FILE_IO
from penstock.maintenance.errors import CommitConflict, CommitUnknown, NoSuchTable
from penstock.maintenance.marking import marked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from penstock.maintenance.run import Run

    Requirements: TypeAlias = tuple["Requirement", ...]
    Updates: TypeAlias = tuple[TableUpdate, ...]

Identifier: TypeAlias = tuple[str, ...]


class Requirement(Protocol):
    def validate(self, base_metadata: TableMetadata | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SameRefs:
    """No branch or tag came, went or moved. The protocol of REST catalogs has no word for one that came."""

    refs: Mapping[str, int]

    def validate(self, base_metadata: TableMetadata | None) -> None:
        if base_metadata is None or refs_of(base_metadata) != self.refs:
            raise CommitFailedException("A branch or tag came, went or moved meanwhile.")


def refs_of(metadata: TableMetadata) -> dict[str, int]:
    return {name: ref.snapshot_id for name, ref in metadata.refs.items()}


class Lake(Protocol):
    """Where one table is loaded from and committed to."""

    exact: bool
    """Whether a worker that lost its job cannot commit any more, whatever happens."""

    def load(self) -> Table: ...

    def commit(self, table: Table, requirements: Requirements, updates: Updates) -> None:
        """CommitConflict: it does not stand. CommitUnknown: nobody knows."""
        ...

    def neighbours(self) -> list[Table]:
        """The other tables of the catalog."""
        ...


class CatalogLake:
    """A table of a catalog that we may open ourselves. The fence is asked right before the swap."""

    exact = False

    def __init__(self, catalog: Catalog, identifier: Identifier, fence: Callable[[], None] = lambda: None) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self._fence = fence

    def load(self) -> Table:
        try:
            return self._catalog.load_table(self._identifier)
        except (NoSuchTableError, NoSuchNamespaceError) as e:
            raise NoSuchTable(f"There is no table {'.'.join(self._identifier)}.") from e

    def commit(self, table: Table, requirements: Requirements, updates: Updates) -> None:
        self._fence()
        asserts: Requirements = (AssertTableUUID(uuid=table.metadata.table_uuid), *requirements)
        if not isinstance(self._catalog, MetastoreCatalog):
            asserts = tuple(each for each in asserts if not isinstance(each, SameRefs))
        try:
            self._catalog.commit_table(table, cast("tuple[TableRequirement, ...]", asserts), updates)
        except CommitFailedException as e:
            raise CommitConflict(str(e)) from e
        except Exception as e:
            raise CommitUnknown(f"The catalog did not say whether the commit stands: {type(e).__name__}.") from e

    def neighbours(self) -> list[Table]:
        return neighbours(self._catalog, self._identifier)


class PointerLake:
    """A table whose current metadata is named by a pointer that somebody else moves for us, under our fence."""

    exact = True

    def __init__(
        self,
        identifier: Identifier,
        *,
        properties: Mapping[str, str],
        current: Callable[[], str],
        swap: Callable[[str, str], bool],
        others: Callable[[], list[tuple[Identifier, str]]],
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
        try:
            for requirement in (AssertTableUUID(uuid=table.metadata.table_uuid), *requirements):
                requirement.validate(base.metadata)
        except CommitFailedException as e:
            raise CommitConflict(str(e)) from e
        metadata = update_table_metadata(base.metadata, updates, metadata_location=base.metadata_location)
        version = MetastoreCatalog._parse_metadata_version(base.metadata_location) + 1
        provider = load_location_provider(metadata.location, metadata.properties)
        location = marked(provider.new_table_metadata_file_location(version), self._run.mark)
        ToOutputFile.table_metadata(metadata, base.io.new_output(location))
        self._run.step("metadata_written")
        try:
            moved = self._swap(base.metadata_location, location)
        except StaleAttempt:
            base.io.delete(location)
            raise
        except Exception as e:
            raise CommitUnknown(f"Nobody said whether the commit stands: {type(e).__name__}.") from e
        if not moved:
            base.io.delete(location)
            raise CommitConflict(f"Somebody else changed {'.'.join(self._identifier)} first.")

    def neighbours(self) -> list[Table]:
        return [self._open(identifier, location) for identifier, location in self._others()]

    def _open(self, identifier: Identifier, location: str) -> Table:
        io = load_file_io(self._properties, location)
        metadata = FromInputFile.table_metadata(io.new_input(location))
        io = load_file_io({**self._properties, **metadata.properties}, location)
        return Table(identifier, metadata, location, io, NoopCatalog("pointer"))


def neighbours(catalog: Catalog, identifier: Identifier) -> list[Table]:
    names = [name for space in catalog.list_namespaces() for name in catalog.list_tables(space)]
    return [catalog.load_table(name) for name in names if tuple(name) != tuple(identifier)]
