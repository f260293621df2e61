"""What writers do to a table before it is maintained. A history is plain data; columns, branches
and partition fields are picked by number, so that any history fits any table.

A writer that cannot do a thing (PyIceberg partitions by no nested field, say) leaves the table as
it was: commits are atomic. `Refusals` counts these.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_args

import pyarrow.parquet as pq
from pyiceberg.expressions import EqualTo
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StructType,
    UUIDType,
)

from tests.maintenance.differential.manifests import live_data_files
from tests.maintenance.differential.partitions import sources, transforms_for
from tests.maintenance.differential.position_deletes import (
    delete_positions,
    delete_positions_elsewhere,
)
from tests.maintenance.differential.schemas import Shape, iceberg_type
from tests.maintenance.differential.values import for_spark

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyiceberg.table import Table
    from pyiceberg.table.update.schema import UpdateSchema
    from pyiceberg.types import IcebergType, NestedField

    from tests.maintenance.differential.tables import SharedTable
    from tests.maintenance.differential.values import Values

T = TypeVar("T")
Writer: TypeAlias = Literal["pyiceberg", "spark"]
RowsOf: TypeAlias = int | tuple[tuple[object, ...], ...]
"""So many rows, or these; temporal values are integers, as `values.py` has them."""
NUMBER_ID = 1
"""The field id of the column of small numbers, which is the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    rows: RowsOf
    by: Writer = "pyiceberg"
    branch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite:
    """The rows of one number are replaced, or all rows."""

    rows: RowsOf
    number: int | None = None
    by: Writer = "pyiceberg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Of rows of one number, by statement: copy-on-write or merge-on-read as the table says."""

    number: int
    by: Writer = "pyiceberg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    number: int
    by: Literal["spark"] = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePositions:
    """Any rows of any files, into delete files of the one or the other granularity."""

    one_in: int
    by_partition: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePositionsElsewhere:
    """Any rows of any files, a delete file for each data file, recorded under the partition of
    another one; readers find the data file by the bounds of the paths, or by
    `referenced_data_file`."""

    one_in: int
    referenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaddFile:
    """A data file is removed, and added again by the next snapshot: deletes of its rows that are
    older do not apply to it."""

    pick: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFileTwice:
    """A live data file is added once more: its rows are there twice."""

    pick: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteEqual:
    """Rows of one number, by equality deletes, as streaming writers do in Java."""

    number: int
    by: Literal["spark"] = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFiles:
    """Parquet files without field ids, written by Arrow or by Spark (`int96`, `legacy_lists`)."""

    rows: RowsOf
    form: Literal["arrow", "int96", "legacy_lists"] = "arrow"
    by: Writer = "pyiceberg"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    name: str
    shape: Shape
    parent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    pick: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    pick: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveColumn:
    pick: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WidenColumn:
    pick: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeOptional:
    pick: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionField:
    source: int
    transform: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePartitionField:
    pick: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamePartitionField:
    pick: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    pass


SchemaChange: TypeAlias = (
    AddColumn | DropColumn | RenameColumn | MoveColumn | WidenColumn | MakeOptional
)
SpecChange: TypeAlias = AddPartitionField | RemovePartitionField | RenamePartitionField
Step: TypeAlias = (
    Append
    | Overwrite
    | Delete
    | Update
    | DeletePositions
    | DeletePositionsElsewhere
    | ReaddFile
    | AddFileTwice
    | DeleteEqual
    | AddFiles
    | SchemaChange
    | SpecChange
    | Branch
    | Tag
)
STEPS: tuple[type[Step], ...] = get_args(Step)


@dataclass(slots=True)
class History:
    """Applies steps to a table."""

    shared: SharedTable
    values: Values
    scratch: Path
    applied: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    _number: int = 0

    def apply(self, step: Step) -> None:
        self._number += 1
        kind = type(step).__name__ + (f" by {step.by}" if hasattr(step, "by") else "")
        try:
            self._apply(step)
        except Exception as e:
            self.refusals[
                f"{kind}: {type(e).__name__}: {str(e).splitlines()[0][:120] if str(e) else ''}"
            ] += 1
        else:
            self.applied[kind] += 1

    def _apply(self, step: Step) -> None:
        table = self.shared.table
        match step:
            case Append() | Overwrite() | Delete() | Update() if step.by == "spark":
                self._apply_by_spark(table, step)
            case Append() | Overwrite() | Delete():
                self._apply_by_pyiceberg(table, step)
            case DeletePositions() | DeletePositionsElsewhere():
                self._delete_positions(table, step)
            case ReaddFile() | AddFileTwice():
                _add_again(table, step)
            case DeleteEqual():
                self._delete_equal(table, step)
            case AddFiles():
                self._add_files(table, step)
            case Branch() | Tag():
                self._mark(table, step)
            case AddPartitionField() | RemovePartitionField() | RenamePartitionField():
                _change_spec(table, step)
            case _:
                with table.update_schema() as change:
                    _change_schema(table, change, step)

    def _apply_by_pyiceberg(self, table: Table, step: Append | Overwrite | Delete) -> None:
        match step:
            case Append():
                branches = _branches(table)
                on_branch = step.branch is not None and branches
                branch = pick(branches, step.branch) if on_branch else "main"
                table.append(self._rows(table, step.rows), branch=branch)
            case Overwrite(number=None):
                table.overwrite(self._rows(table, step.rows))
            case Overwrite():
                table.overwrite(self._rows(table, step.rows), EqualTo(_number(table), step.number))
            case Delete():
                table.delete(EqualTo(_number(table), step.number))

    def _apply_by_spark(self, table: Table, step: Append | Overwrite | Delete | Update) -> None:
        name = self.shared.spark_name
        match step:
            case Append():
                self._insert_by_spark("INTO", step.rows)
            case Overwrite():
                self._insert_by_spark("OVERWRITE", step.rows)
            case Delete():
                where = f"{quoted(_number(table))} = {step.number}"
                self.shared.run_in_spark(f"DELETE FROM {name} WHERE {where}")
            case Update():
                column = quoted(_number(table))
                where = f"{column} = {step.number}"
                self.shared.run_in_spark(f"UPDATE {name} SET {column} = 5 WHERE {where}")

    def _rows(self, table: Table, rows: RowsOf) -> pa.Table:
        return self.values.rows(table.schema(), rows, str(self._number))

    def _insert_by_spark(self, how: str, rows: RowsOf) -> None:
        file = self._file("rows.parquet")
        pq.write_table(for_spark(self._rows(self.shared.table, rows)), file)
        self.shared.run_in_spark(
            f"INSERT {how} {self.shared.spark_name} SELECT * FROM parquet.{quoted(str(file))}"
        )

    def _delete_positions(
        self, table: Table, step: DeletePositions | DeletePositionsElsewhere
    ) -> None:
        random = Random(f"{self._number}")
        positions = {
            file.file_path: [
                at for at in range(file.record_count) if not random.randrange(step.one_in)
            ]
            for file in live_data_files(table, table.metadata.current_snapshot())
        }
        match step:
            case DeletePositions():
                delete_positions(table, positions, by_partition=step.by_partition)
            case DeletePositionsElsewhere():
                if not delete_positions_elsewhere(table, positions, referenced=step.referenced):
                    raise NothingToPick("all files are in one partition, or no row was drawn")

    def _delete_equal(self, table: Table, step: DeleteEqual) -> None:
        if not isinstance(table.schema().find_type(_number(table)), IntegerType):
            raise NothingToPick("Python hands no long over to Java")
        with self.shared.handed_over() as spark:
            spark.delete_equal(self.shared.spark_name, NUMBER_ID, step.number)

    def _add_files(self, table: Table, step: AddFiles) -> None:
        folder = self._file("added")
        folder.mkdir()
        rows = self._rows(table, step.rows)
        if table.spec().fields:
            if step.by == "pyiceberg" and not _can_tell_partitions(table):
                raise NothingToPick("PyIceberg would take the partition for null")
            rows = rows.slice(0, 1)
        file = folder / "part-0.parquet"
        if step.form == "arrow":
            pq.write_table(rows, file)
        else:
            self._written_by_spark(rows, folder, step.form)
            [file] = folder.glob("*.parquet")
        if step.by == "pyiceberg":
            table.add_files([file.as_uri()])
        else:
            source = quoted(f"`parquet`.`{folder}`", "'")
            names = f"table => '{self.shared.spark_name}', source_table => {source}"
            self.shared.run_in_spark(f"CALL folders.system.add_files({names})")

    def _written_by_spark(self, rows: pa.Table, folder: Path, form: str) -> None:
        if _has_type(self.shared.table.schema(), UUIDType, FixedType):
            raise NothingToPick("Spark's own Parquet files have no UUIDs and no fixed lengths")
        source = self._file("source.parquet")
        pq.write_table(for_spark(rows), source)
        settings = {
            "spark.sql.parquet.outputTimestampType": "INT96"
            if form == "int96"
            else "TIMESTAMP_MICROS",
            "spark.sql.parquet.writeLegacyFormat": str(form == "legacy_lists").lower(),
        }
        self.shared.spark.run(
            *(f"SET {name}={value}" for name, value in settings.items()),
            f"INSERT OVERWRITE DIRECTORY '{folder}' USING parquet "
            f"SELECT * FROM parquet.{quoted(str(source))}",
        )

    def _mark(self, table: Table, step: Branch | Tag) -> None:
        snapshot = table.metadata.current_snapshot_id
        if snapshot is None:
            raise NothingToPick
        with table.manage_snapshots() as change:
            match step:
                case Branch():
                    change.create_branch(snapshot, f"branch-{self._number}")
                case Tag():
                    change.create_tag(snapshot, f"tag-{self._number}")

    def _file(self, name: str) -> Path:
        return self.scratch / f"{self.shared.name}-{self._number}-{name}"


def _add_again(table: Table, step: ReaddFile | AddFileTwice) -> None:
    files = sorted(
        live_data_files(table, table.metadata.current_snapshot()), key=lambda file: file.file_path
    )
    file = pick(files, step.pick)
    if isinstance(step, ReaddFile):
        with table.transaction() as change, change.update_snapshot().overwrite() as snapshot:
            snapshot.delete_data_file(file)
    with table.transaction() as change, change.update_snapshot().fast_append() as snapshot:
        snapshot.append_data_file(file)


class NothingToPick(ValueError):
    """A step needs what the table does not have."""


def pick(items: Sequence[T], number: int) -> T:
    if not items:
        raise NothingToPick
    return items[number % len(items)]


def quoted(name: str, mark: str = "`") -> str:
    return mark + name.replace(mark, mark * 2) + mark


def _can_tell_partitions(table: Table) -> bool:
    """Whether PyIceberg finds the partition of a file in its statistics."""
    mode = table.properties.get("write.metadata.metrics.default", "full")
    top = {field.field_id for field in table.schema().fields}
    has_bounds = mode == "full" or mode.startswith("truncate")
    return has_bounds and all(field.source_id in top for field in table.spec().fields)


def _has_type(schema: Schema, *types: type[IcebergType]) -> bool:
    return any(isinstance(field.field_type, types) for field in schema._lazy_id_to_field.values())


def _number(table: Table) -> str:
    name = table.schema().find_column_name(NUMBER_ID)
    if name is None:
        raise ValueError("the table has no numbers any more")
    return name


def _branches(table: Table) -> list[str]:
    return sorted(name for name in table.metadata.refs if name.startswith("branch"))


def _change_schema(table: Table, change: UpdateSchema, step: SchemaChange) -> None:
    names = _full_names(table.schema())
    match step:
        case AddColumn():
            structs = [(), *((name,) for name, f in names if isinstance(f.field_type, StructType))]
            new = iceberg_type(step.shape, count(1))
            change.add_column((*pick(structs, step.parent), step.name), new)
        case DropColumn():
            change.delete_column(pick(_droppable(table, names), step.pick)[0])
        case RenameColumn():
            change.rename_column(pick(names, step.pick)[0], step.name)
        case MoveColumn():
            change.move_first(pick(names, step.pick)[0])
        case WidenColumn():
            name, field = pick([(n, f) for n, f in names if _wider(f) is not None], step.pick)
            change.update_column(name, _wider(field))
        case MakeOptional():
            change.make_column_optional(
                pick([(n, f) for n, f in names if f.required], step.pick)[0]
            )


def _full_names(schema: Schema) -> list[tuple[str, NestedField]]:
    """All fields of structs, at any depth, with their full names."""
    fields: list[NestedField] = []

    def walk(of: IcebergType) -> None:
        match of:
            case StructType():
                for inner in of.fields:
                    fields.append(inner)
                    walk(inner.field_type)
            case ListType():
                walk(of.element_type)
            case MapType():
                walk(of.value_type)

    walk(schema.as_struct())
    return [(schema.find_column_name(field.field_id), field) for field in fields]


def _droppable(table: Table, names: list[tuple[str, NestedField]]) -> list[tuple[str, NestedField]]:
    """Not what the table is now partitioned or sorted by: PyIceberg drops it and then cannot load
    the table."""
    used = {NUMBER_ID, *(f.source_id for f in (*table.spec().fields, *table.sort_order().fields))}
    inner_ids = {field.field_id: _ids_inside(field) for _, field in names}
    return [(name, field) for name, field in names if not inner_ids[field.field_id] & used]


def _ids_inside(field: NestedField) -> frozenset[int]:
    return frozenset(Schema(field).field_ids)


def _wider(field: NestedField) -> PrimitiveType | None:
    match field.field_type:
        case IntegerType():
            return LongType()
        case FloatType():
            return DoubleType()
        case DecimalType(precision=precision, scale=scale) if precision < 38:
            return DecimalType(min(38, precision + 7), scale)
    return None


def _change_spec(table: Table, step: SpecChange) -> None:
    with table.update_spec() as change:
        match step:
            case AddPartitionField():
                name, source = pick(sources(table.schema()), step.source)
                transform = pick(transforms_for(source.field_type), step.transform)
                change.add_field(name, transform, f"p {source.field_id} {transform}")
            case RemovePartitionField():
                change.remove_field(pick(list(table.spec().fields), step.pick).name)
            case RenamePartitionField():
                change.rename_field(pick(list(table.spec().fields), step.pick).name, step.name)
