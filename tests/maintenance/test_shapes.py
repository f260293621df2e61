"""Schemas, values and files that PyIceberg does not write by itself: a rewrite changes nothing that
a reader sees.

The rows that are expected are those that the test wrote. They are read by PyIceberg's scan where it
reads them right, and else by DuckDB's own Parquet reader by field id. Spark reads such tables in
`differential/`.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from penstock.maintenance.actions import group_writer
from penstock.maintenance.actions.model import Ended
from penstock.maintenance.actions.probe import proven
from penstock.maintenance.tables.reading.content import ManifestReader
from penstock.maintenance.tables.reading.file_schema import file_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyiceberg.manifest import DataFile

    from tests.maintenance.tables import SampleTable

ALL = {"name": "rewrite_data_files", "force": True, "rewrite_all": True}
NAN = float("nan")
Rows = list[dict[str, object]]


def create(sample: SampleTable, *fields: NestedField, **how: object) -> SampleTable:
    sample.catalog.create_namespace_if_not_exists(sample.name[0])
    sample.catalog.create_table(sample.name, Schema(*fields), **how)
    return sample


def append(sample: SampleTable, rows: Rows) -> None:
    table = sample.table
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))


def scanned(sample: SampleTable) -> list[str]:
    return sorted(map(repr, sample.table.scan().to_arrow().to_pylist()))


def data_files(sample: SampleTable) -> list[DataFile]:
    table = sample.table
    return [e.data_file for e in ManifestReader(table.io).content(table.current_snapshot()).data]


def by_field_id(sample: SampleTable, columns: dict[int, str]) -> list[tuple[object, ...]]:
    """All rows of the current data files, as DuckDB reads these columns of these types."""
    pairs = [
        f"{id_}: {{name: 'c{id_}', type: '{type_}', default_value: NULL}}"
        for id_, type_ in columns.items()
    ]
    paths = [file.file_path.removeprefix("file://") for file in data_files(sample)]
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        relation = engine.execute(
            f"SELECT {', '.join(f'c{id_}' for id_ in columns)} FROM "
            f"read_parquet($paths, schema = MAP {{{', '.join(pairs)}}}) ORDER BY ALL",
            {"paths": paths},
        )
        return relation.fetchall()


def field(number: int, name: str, kind: object, *, required: bool = False) -> NestedField:
    return NestedField(number, name, kind, required=required)


LIST = field(2, "tags", ListType(3, StringType(), element_required=False))
MAP = field(4, "counts", MapType(5, StringType(), 6, LongType(), value_required=False))
STRUCTS = field(
    7,
    "lines",
    ListType(
        8,
        StructType(field(9, "unit price", DoubleType()), field(10, "a.b", StringType())),
        element_required=False,
    ),
)
NESTED_ROWS: Rows = [
    {
        "id": 1,
        "tags": ["x", None],
        "counts": [("k", 1), ("l", None)],
        "lines": [{"unit price": -0.0, "a.b": "p"}],
    },
    {"id": 2, "tags": [], "counts": [], "lines": []},
    {"id": 3, "tags": ["y"], "counts": [("k", 2)], "lines": [{"unit price": NAN, "a.b": None}]},
]


def nested(sample: SampleTable) -> SampleTable:
    create(sample, field(1, "id", LongType()), LIST, MAP, STRUCTS)
    for row in NESTED_ROWS:
        append(sample, [row])
    return sample


def test_elements_keys_and_values_keep_their_field_ids(sample: SampleTable) -> None:
    nested(sample)
    before = scanned(sample)
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 1)
    [file] = data_files(sample)
    parquet = pq.ParquetFile(file.file_path.removeprefix("file://"))
    assert all(f"field_id={id_} " in str(parquet.schema) for id_ in range(1, 11))
    assert scanned(sample) == before


def test_lists_and_maps_beside_a_changed_schema(sample: SampleTable) -> None:
    nested(sample)
    with sample.table.update_schema() as update:
        update.add_column("later", LongType())
        update.add_column(("lines", "element", "tax"), DecimalType(9, 2))
        update.rename_column(("lines", "element", "unit price"), "price per unit")
        update.delete_column(("lines", "element", "a.b"))
    append(
        sample, [{"id": 4, "lines": [{"price per unit": 1.5, "tax": Decimal("0.10")}], "later": 9}]
    )
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 1), outcome.message
    lines = sorted(
        (row["id"], [(line["price per unit"], line["tax"]) for line in row["lines"]], row["later"])
        for row in sample.table.scan().to_arrow().to_pylist()
        if row["id"] != 3
    )
    assert lines == [(1, [(-0.0, None)], None), (2, [], None), (4, [(1.5, Decimal("0.10"))], 9)]
    assert math.copysign(1, lines[0][1][0][0]) == -1


def test_struct_fields_with_a_dot_or_a_space_keep_their_values_when_the_schema_changed(
    sample: SampleTable,
) -> None:
    create(
        sample,
        field(1, "id", LongType()),
        field(
            2, "who", StructType(field(3, "e.mail", StringType()), field(4, "zip code", LongType()))
        ),
    )
    append(sample, [{"id": 1, "who": {"e.mail": "a@b", "zip code": 4051}}])
    append(sample, [{"id": 2, "who": None}])
    with sample.table.update_schema() as update:
        update.add_column("note", StringType())
        update.add_column(("who", "last name"), StringType())
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 1), outcome.message
    rows = by_field_id(
        sample,
        {1: "BIGINT", 2: "STRUCT(e_x2Email VARCHAR, zip_x20code BIGINT, last_x20name VARCHAR)"},
    )
    assert rows == [(1, {"e_x2Email": "a@b", "zip_x20code": 4051, "last_x20name": None}), (2, None)]


def test_int96_timestamps_of_any_year_keep_their_instant(sample: SampleTable) -> None:
    create(
        sample,
        field(1, "id", LongType()),
        field(2, "at", TimestampType()),
        field(3, "zoned", TimestamptzType()),
    )
    texts = ("0001-01-01", "1677-09-21", "2024-02-29 12:00:00.123456", "9999-12-31 23:59:59")
    moments = [datetime.fromisoformat(text) for text in texts]
    schema = file_schema(sample.table.schema())
    for number, moment in enumerate(moments):
        rows = {"id": [number], "at": [moment], "zoned": [moment.replace(tzinfo=UTC)]}
        sample.add_file(pa.table(rows, schema), use_deprecated_int96_timestamps=True)
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 1), outcome.message
    rows = by_field_id(sample, {1: "BIGINT", 2: "TIMESTAMP", 3: "TIMESTAMPTZ"})
    assert rows == [(i, m, m.replace(tzinfo=UTC)) for i, m in enumerate(moments)]


def by_double(sample: SampleTable, values: Sequence[float | None]) -> list[str]:
    """A table with one file for each value of its partition column; the paths."""
    spec = PartitionSpec(
        PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="rate")
    )
    create(sample, field(1, "id", LongType()), field(2, "rate", DoubleType()), partition_spec=spec)
    schema = file_schema(sample.table.schema())
    return [
        sample.add_file(
            pa.table({"id": [number, 100 + number], "rate": [value] * 2}, schema),
            partition=Record(value),
        )
        for number, value in enumerate(values)
    ]


def bits(value: float | None) -> bytes | None:
    return None if value is None else b"NaN" if math.isnan(value) else struct.pack(">d", value)


def test_zero_and_minus_zero_are_two_partitions_and_nan_is_one(sample: SampleTable) -> None:
    values = [NAN, 0.0, -0.0, 1.0, None]
    by_double(sample, values * 2)
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 5), outcome.message
    partitions = {bits(file.partition[0]) for file in data_files(sample)}
    assert partitions == {bits(value) for value in values}
    rows = by_field_id(sample, {1: "BIGINT", 2: "DOUBLE"})
    expected = [(100 * k + i, bits(value)) for i, value in enumerate(values * 2) for k in (0, 1)]
    assert sorted((id_, bits(rate)) for id_, rate in rows) == sorted(expected)


@pytest.mark.parametrize("action", [ALL, "rewrite_position_delete_files", "rewrite_manifests"])
def test_a_deleted_row_of_a_nan_partition_stays_deleted(
    sample: SampleTable, action: object
) -> None:
    by_double(sample, [NAN, NAN, -0.0])
    sample.delete([0, 102])
    sample.delete([101])
    outcome = sample.run(action)
    assert outcome.status is Ended.COMPLETED, outcome.message
    sample.run(ALL)
    assert [id_ for (id_,) in by_field_id(sample, {1: "BIGINT"})] == [1, 2, 100]


def test_a_row_of_a_nan_partition_deleted_meanwhile_is_not_brought_back(
    sample: SampleTable,
) -> None:
    by_double(sample, [NAN, NAN])
    done = []

    def step(name: str) -> None:
        if name == "files_verified" and not done:
            done.append(name)
            sample.delete([1])

    assert sample.run(ALL, step=step).status is Ended.ABANDONED
    assert sample.run(ALL).status is Ended.COMPLETED
    assert [id_ for (id_,) in by_field_id(sample, {1: "BIGINT"})] == [0, 100, 101]


def test_a_double_in_a_manifest_keeps_all_its_bits(sample: SampleTable) -> None:
    """The library's compiled decoder would make 0.1 of it what a float has."""
    by_double(sample, [0.1, 1 / 3])
    for action in ("rewrite_manifests", ALL):
        assert sample.run(action).status is Ended.COMPLETED
        table = sample.table
        [summary] = {
            (s.lower_bound, s.upper_bound)
            for m in table.current_snapshot().manifests(table.io)
            for s in m.partitions
            if m.has_added_files() or m.has_existing_files()
        }
        assert summary == (struct.pack("<d", 0.1), struct.pack("<d", 1 / 3))
    assert {file.partition[0] for file in data_files(sample)} == {0.1, 1 / 3}


def test_partition_values_of_a_required_column_may_be_null(sample: SampleTable) -> None:
    """As with `void`, which replaces a dropped partition field in format version 1."""
    spec = PartitionSpec(
        PartitionField(source_id=1, field_id=1000, transform=VoidTransform(), name="gone")
    )
    create(sample, field(1, "flag", BooleanType(), required=True), partition_spec=spec)
    schema = file_schema(sample.table.schema())
    for _ in range(2):
        sample.add_file(
            pa.Table.from_arrays([pa.array([True])], schema=schema), partition=Record(None)
        )
    for action in ("rewrite_manifests", ALL):
        assert sample.run(action).status is Ended.COMPLETED
        assert {file.partition[0] for file in data_files(sample)} == {None}


def test_a_manifest_that_was_cut_short_is_not_taken_for_whole(sample: SampleTable) -> None:
    sample.create(files=1, rows=1)
    table = sample.table
    [manifest] = table.current_snapshot().manifests(table.io)
    with Path(manifest.manifest_path.removeprefix("file://")).open("r+b") as file:
        header = file.read().index(b"Obj") + manifest.manifest_length
        file.truncate(header - 500)
    outcome = sample.run("rewrite_manifests")
    assert outcome.status is Ended.FAILED
    assert manifest.manifest_path in outcome.message
    assert sample.operations() == ["append"]


@pytest.mark.parametrize(
    ("kind", "partitioned", "word"),
    [(FixedType(3), True, "has the type fixed"), (StructType(), False, "struct without fields")],
)
def test_what_cannot_be_stored_for_all_readers_is_refused(
    sample: SampleTable, kind: object, partitioned: bool, word: str
) -> None:
    spec = PartitionSpec(
        PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="code")
    )
    create(
        sample,
        field(1, "id", LongType()),
        field(2, "code", kind),
        **({"partition_spec": spec} if partitioned else {}),
    )
    append(sample, [])
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    sample.add_file(pa.table({"id": [1]}, schema), partition=Record(None) if partitioned else None)
    outcome = sample.run(ALL)
    assert outcome.status is Ended.REFUSED
    assert word in outcome.message


def test_a_struct_that_came_later_with_a_required_field_is_null_in_old_rows(
    sample: SampleTable,
) -> None:
    create(sample, field(1, "id", LongType()))
    append(sample, [{"id": 1}])
    inner = StructType(
        field(3, "code", LongType(), required=True),
        field(4, "tags", ListType(5, StringType()), required=True),
    )
    with sample.table.update_schema() as update:
        update.add_column("later", inner)
    append(sample, [{"id": 2, "later": {"code": 7, "tags": ["x"]}}])
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 1), outcome.message
    rows = by_field_id(sample, {1: "BIGINT", 2: "STRUCT(code BIGINT, tags VARCHAR[])"})
    assert rows == [(1, None), (2, {"code": 7, "tags": ["x"]})]


def test_a_target_size_that_is_no_number_is_as_good_as_none(sample: SampleTable) -> None:
    sample.create()
    with sample.table.transaction() as change:
        change.set_properties({"write.target-file-size-bytes": "512MB"})
    assert sample.run(ALL).added_files == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.parquet.page-size-bytes", "big"),
        ("write.parquet.page-size-bytes", "0"),
        ("write.parquet.page-size-bytes", "-1"),
        ("write.parquet.page-row-limit", "0"),
        ("write.parquet.page-row-limit", "-1"),
        ("write.parquet.dict-size-bytes", "-1"),
        ("write.parquet.compression-codec", "lzo"),
        ("write.parquet.compression-level", "99"),
    ],
)
def test_a_parquet_property_that_cannot_be_followed_is_refused_by_name(
    sample: SampleTable, name: str, value: str
) -> None:
    sample.create()
    with sample.table.transaction() as change:
        change.set_properties({name: value})
    outcome = sample.run(ALL)
    assert outcome.status is Ended.REFUSED
    assert value in outcome.message


@pytest.mark.parametrize("name", ["page-size-bytes", "page-row-limit", "dict-size-bytes"])
def test_a_parquet_property_of_too_many_digits_is_refused(sample: SampleTable, name: str) -> None:
    sample.create()
    with sample.table.transaction() as change:
        change.set_properties({f"write.parquet.{name}": "9" * 40})
    outcome = sample.run(ALL)
    assert (outcome.status, name in outcome.message) == (Ended.REFUSED, True), outcome.message


@pytest.mark.parametrize("codec", ["snappy", "uncompressed"])
def test_a_level_is_of_no_account_to_a_codec_that_has_none(sample: SampleTable, codec: str) -> None:
    sample.create()
    with sample.table.transaction() as change:
        change.set_properties(
            {
                "write.parquet.compression-codec": codec,
                "write.parquet.compression-level": "3",
            }
        )
    assert sample.run(ALL).status is Ended.COMPLETED
    assert sample.ids() == list(range(60))


def test_partition_bounds_of_a_rewritten_manifest_hold_both_zeros(sample: SampleTable) -> None:
    by_double(sample, [0.0, -0.0, 3.0, NAN])
    assert sample.run("rewrite_manifests").status is Ended.COMPLETED
    table = sample.table
    [manifest] = [m for m in table.current_snapshot().manifests(table.io) if m.partitions]
    [summary] = manifest.partitions
    assert (bits(struct.unpack("<d", summary.lower_bound)[0]), summary.contains_nan) == (
        bits(-0.0),
        True,
    )


EVERY_TYPE = [
    field(1, "b", BooleanType()),
    field(2, "i", IntegerType()),
    field(3, "l", LongType()),
    field(4, "f", FloatType()),
    field(5, "d", DoubleType()),
    field(6, "d9", DecimalType(9, 2)),
    field(7, "d18", DecimalType(18, 0)),
    field(8, "d38", DecimalType(38, 10)),
    field(9, "day", DateType()),
    field(10, "hour", TimeType()),
    field(11, "at", TimestampType()),
    field(12, "zoned", TimestamptzType()),
    field(13, "s", StringType()),
    field(14, "u", UUIDType()),
    field(15, "x", FixedType(3)),
    field(16, "y", BinaryType()),
]
EXTREMES: Rows = [
    {
        "b": True,
        "i": -(2**31),
        "l": -(2**63),
        "f": -0.0,
        "d": NAN,
        "d9": Decimal("-9999999.99"),
        "d18": Decimal(10**18 - 1),
        "d38": Decimal("9" * 28 + "." + "9" * 10),
        "day": date(1, 1, 1),
        "hour": time(23, 59, 59, 999999),
        "at": datetime.fromisoformat("0001-01-01"),
        "zoned": datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
        "s": "",
        "u": UUID(int=2**128 - 1),
        "x": b"\xff\xff\xff",
        "y": b"\xff" * 20,
    },
    {
        "b": False,
        "i": 2**31 - 1,
        "l": 2**63 - 1,
        "f": math.inf,
        "d": -0.0,
        "d9": Decimal("0.01"),
        "d18": Decimal(-(10**18) + 1),
        "d38": Decimal("-0.0000000001"),
        "day": date(9999, 12, 31),
        "hour": time(0),
        "at": datetime.fromisoformat("9999-12-31 23:59:59.999999"),
        "zoned": datetime(1, 1, 1, tzinfo=UTC),
        "s": "ends with " + "\U0010ffff" * 10,
        "u": UUID(int=0),
        "x": b"\x00\x00\x00",
        "y": b"",
    },
    {},
]


def test_every_primitive_type_keeps_its_extremes(sample: SampleTable) -> None:
    create(sample, *EVERY_TYPE)
    for row in EXTREMES:
        append(sample, [row])
    before = scanned(sample)
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 1), outcome.message
    assert scanned(sample) == before
    [file] = data_files(sample)
    assert (file.nan_value_counts, file.null_value_counts[5]) == ({4: 0, 5: 1}, 1)
    assert set(file.lower_bounds) == set(range(1, 17)) - {14}


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("a" * 15 + "\ud7ff" + "b", "a" * 15 + "\ue000"),
        ("a" * 15 + "\U0010ffff" + "b", "a" * 14 + "b"),
        ("\U0010ffff" * 17, None),
        ("a" * 16, "a" * 16),
    ],
)
def test_an_upper_bound_is_no_less_than_the_text_that_it_shortens(
    sample: SampleTable, text: str, bound: str | None
) -> None:
    create(sample, field(1, "id", LongType()), field(2, "s", StringType()))
    for number in range(2):
        sample.add_file(pa.table({"id": [number], "s": [text]}, file_schema(sample.table.schema())))
    outcome = sample.run(ALL)
    assert outcome.status is Ended.COMPLETED, outcome.message
    [file] = data_files(sample)
    upper = file.upper_bounds.get(2)
    assert upper == (None if bound is None else bound.encode())
    assert by_field_id(sample, {2: "VARCHAR"}) == [(text,), (text,)]


def test_a_row_group_without_bounds_leaves_its_column_without_bounds(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow leaves out what is longer than 4 KB; bounds of the other row groups would hide those
    rows."""
    create(sample, field(1, "id", LongType()), field(2, "s", StringType()))
    long = "z" * 5000
    for number, text in enumerate(["a", long, "b"]):
        append(sample, [{"id": number, "s": text}])
    monkeypatch.setattr(group_writer, "ROW_GROUP_BYTES", 1)
    monkeypatch.setattr(group_writer, "LEAST_ROW_GROUP_BYTES", 1)
    assert sample.run(ALL).added_files == 1
    [file] = data_files(sample)
    assert pq.ParquetFile(file.file_path.removeprefix("file://")).num_row_groups == 3
    assert 2 not in file.upper_bounds
    assert sample.table.scan(row_filter=f"s = '{long}'").to_arrow().num_rows == 1


def test_names_that_files_must_not_tell_apart_by_case_or_by_escaping(sample: SampleTable) -> None:
    create(
        sample,
        *(
            field(n, name, LongType())
            for n, name in enumerate(["a b", "a_x20b", "A b", "1", "select", "é"], 1)
        ),
    )
    schema = file_schema(sample.table.schema())
    assert len(set(schema.names)) == 6
    for number in range(2):
        sample.add_file(
            pa.Table.from_arrays(
                [pa.array([10 * id_ + number]) for id_ in range(1, 7)], schema=schema
            )
        )
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 1), outcome.message
    rows = by_field_id(sample, dict.fromkeys(range(1, 7), "BIGINT"))
    assert rows == [tuple(10 * id_ + number for id_ in range(1, 7)) for number in range(2)]


def test_a_partition_column_that_is_only_in_the_metadata_is_written_out(
    sample: SampleTable,
) -> None:
    """As Hive's folders have it, and `add_files` brings them in."""
    spec = PartitionSpec(
        PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="day")
    )
    create(sample, field(1, "id", LongType()), field(2, "day", DateType()), partition_spec=spec)
    for number in range(2):
        sample.add_file(
            pa.table({"id": [number]}, pa.schema([file_schema(sample.table.schema()).field(0)])),
            partition=Record(19_000),
        )
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 1), outcome.message
    assert by_field_id(sample, {1: "BIGINT", 2: "DATE"}) == [
        (n, date(2022, 1, 8)) for n in range(2)
    ]


def test_files_without_field_ids_are_read_by_the_name_mapping(sample: SampleTable) -> None:
    mapping = (
        '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["old name"], "fields":'
        ' [{"field-id": 3, "names": ["element"], "fields": [{"field-id": 4, "names": ["q"]}]}]}]'
    )
    items = field(
        2, "items", ListType(3, StructType(field(4, "amount", LongType())), element_required=False)
    )
    create(
        sample,
        field(1, "id", LongType()),
        items,
        properties={"schema.name-mapping.default": mapping},
    )
    for number in range(2):
        rows = pa.table({"old name": [[{"q": number}, None]], "id": [number], "stranger": ["?"]})
        sample.add_file(rows)
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 1), outcome.message
    rows = by_field_id(sample, {1: "BIGINT", 2: "STRUCT(amount BIGINT)[]"})
    assert rows == [(n, [{"amount": n}, None]) for n in range(2)]


MAPPING = (
    '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["c"], "fields":'
    ' [{"field-id": 3, "names": ["element"]}]}]'
)
LISTS = ListType(3, LongType(), element_required=False)


@pytest.mark.parametrize(
    ("kind", "type_", "values"),
    [
        (StringType(), pa.string_view(), ["", None, "a text longer than twelve bytes"]),
        (StringType(), pa.large_string(), ["", None, "b"]),
        (BinaryType(), pa.binary_view(), [b"", None, b"\xff"]),
        (LISTS, pa.large_list(pa.int64()), [[], None, [1, None]]),
    ],
    ids=str,
)
def test_files_that_say_how_arrow_is_to_read_them_are_rewritten(
    sample: SampleTable, kind: object, type_: pa.DataType, values: list[object]
) -> None:
    """Polars writes texts as `string_view`, for one."""
    properties = {"schema.name-mapping.default": MAPPING}
    create(sample, field(1, "id", LongType()), field(2, "c", kind), properties=properties)
    for _ in range(2):
        sample.add_file(pa.table({"id": [1, 2, 3], "c": pa.array(values, type_)}))
    outcome = sample.run(ALL)
    assert (outcome.status, outcome.added_files) == (Ended.COMPLETED, 1), outcome.message
    assert sample.table.scan().to_arrow()["c"].to_pylist() == values * 2


def unmapped(sample: SampleTable) -> None:
    sample.add_file(pa.table({"id": [1]}))


def of_another_type(sample: SampleTable) -> None:
    schema = file_schema(Schema(field(1, "id", DoubleType())))
    sample.add_file(pa.table({"id": [1.5]}, schema))


def truncated(sample: SampleTable) -> None:
    path = sample.add_file(pa.table({"id": [1]}, file_schema(sample.table.schema())))
    with Path(path.removeprefix("file://")).open("r+b") as file:
        file.truncate(20)


def missing(sample: SampleTable) -> None:
    path = sample.add_file(pa.table({"id": [1]}, file_schema(sample.table.schema())))
    sample.table.io.delete(path)


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (unmapped, "no field ids"),
        (of_another_type, "double"),
        (truncated, "cannot be read"),
        (missing, "is missing"),
    ],
)
def test_a_file_that_cannot_be_read_fails_the_action_with_its_name(
    sample: SampleTable, damage: Callable[[SampleTable], None], word: str
) -> None:
    create(sample, field(1, "id", LongType()))
    append(sample, [{"id": 0}])
    damage(sample)
    snapshot = sample.table.current_snapshot().snapshot_id
    outcome = sample.run(ALL)
    assert outcome.status is Ended.FAILED
    assert word in outcome.message
    assert ".parquet" in outcome.message
    assert sample.table.current_snapshot().snapshot_id == snapshot


PAIRS = MapType(5, StringType(), 6, LongType(), value_required=False)


def _column(sample: SampleTable) -> None:
    append(sample, [{"id": None}])
    with sample.table.update_schema(allow_incompatible_changes=True) as change:
        change.update_column("id", required=True)


def _element(sample: SampleTable) -> None:
    append(sample, [{"tags": ["x", None]}])
    with sample.table.update_schema(allow_incompatible_changes=True) as change:
        change.update_column("tags.element", required=True)


def _value(sample: SampleTable) -> None:
    append(sample, [{"pairs": [("k", None)]}])
    with sample.table.update_schema(allow_incompatible_changes=True) as change:
        change.update_column("pairs.value", required=True)


@pytest.mark.parametrize(
    ("made_required", "name"), [(_column, "id"), (_element, "element"), (_value, "value")]
)
def test_a_column_that_was_made_required_over_nulls_fails_the_action_with_the_file(
    sample: SampleTable, made_required: Callable[[SampleTable], None], name: str
) -> None:
    create(sample, field(1, "id", LongType()), LIST, field(4, "pairs", PAIRS))
    made_required(sample)
    outcome = sample.run(ALL)
    assert (outcome.status, ".parquet" in outcome.message) == (Ended.FAILED, True)
    assert f"the required field {name!r} holds nulls" in outcome.message
    assert sample.operations() == ["append"]


def test_an_old_partition_spec_whose_column_was_dropped(sample: SampleTable) -> None:
    spec = PartitionSpec(
        PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="region")
    )
    create(
        sample, field(1, "id", LongType()), field(2, "region", StringType()), partition_spec=spec
    )
    for number in range(4):
        append(sample, [{"id": number, "region": "north" if number % 2 else "south"}])
    with sample.table.update_spec() as update:
        update.remove_field("region")
    with sample.table.update_schema() as update:
        update.delete_column("region")
    append(sample, [{"id": 9}])
    for action in (ALL, "rewrite_manifests"):
        outcome = sample.run(action)
        assert outcome.status is Ended.COMPLETED, outcome.message
    partitions = sorted(
        (file.spec_id, file.partition[0]) for file in data_files(sample) if file.spec_id == 0
    )
    assert partitions == [(0, "north"), (0, "south")]
    assert [id_ for (id_,) in by_field_id(sample, {1: "BIGINT"})] == [0, 1, 2, 3, 9]


def lying(sample: SampleTable, **statistics: dict[int, object]) -> None:
    create(sample, field(1, "id", LongType()), field(2, "rate", DoubleType()))
    schema = file_schema(sample.table.schema())
    true = {"null_value_counts": {1: 0, 2: 0}, "nan_value_counts": {2: 1}}
    sample.add_file(pa.table({"id": [1, 2], "rate": [1.0, NAN]}, schema), statistics=true)
    sample.add_file(pa.table({"id": [3, None], "rate": [2.0, None]}, schema), statistics=statistics)


@pytest.mark.parametrize(
    "statistics",
    [
        {"null_value_counts": {1: 0}},
        {"null_value_counts": {2: 3}},
        {"nan_value_counts": {2: 2}},
    ],
)
def test_counts_that_the_inputs_promise_must_hold_for_the_outputs(
    sample: SampleTable, statistics: dict[str, dict[int, int]]
) -> None:
    lying(sample, **statistics)
    snapshot = sample.table.current_snapshot().snapshot_id
    outcome = sample.run(ALL)
    assert outcome.status is Ended.FAILED
    assert "statistics" in outcome.message
    assert sample.table.current_snapshot().snapshot_id == snapshot


@pytest.mark.parametrize(("low", "high"), [(5, 6), (0, 2), (-1, 3), (0, 4)])
def test_bounds_that_the_inputs_promise_must_hold_for_the_outputs(
    sample: SampleTable, low: int, high: int
) -> None:
    create(sample, field(1, "id", LongType()))
    schema = file_schema(sample.table.schema())
    bounds = {
        "lower_bounds": {1: struct.pack("<q", low)},
        "upper_bounds": {1: struct.pack("<q", high)},
    }
    true_bounds = {
        "lower_bounds": {1: struct.pack("<q", 1)},
        "upper_bounds": {1: struct.pack("<q", 2)},
    }
    sample.add_file(pa.table({"id": [1, 2]}, schema), statistics=true_bounds)
    sample.add_file(pa.table({"id": [0, 3]}, schema), statistics=bounds)
    outcome = sample.run(ALL)
    assert outcome.status is Ended.FAILED
    assert "should" in outcome.message


@pytest.mark.parametrize("reader", ["_scanned", "_queried"])
def test_another_reader_that_sees_other_values_stops_the_rewrite(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    """Our own reader is made to change a value, as a defect of it would: each of the others alone
    finds it."""
    from penstock.maintenance.tables.reading import data_file_reader
    from penstock.maintenance.tables.verification import independent_readers

    create(sample, field(1, "id", LongType()))
    for number in range(2):
        sample.add_file(pa.table({"id": [number]}, file_schema(sample.table.schema())))
    project = data_file_reader.project
    other = {"_scanned": "_queried", "_queried": "_scanned"}[reader]
    assert proven()  # once a process: it would find the defect first
    monkeypatch.setattr(independent_readers.IndependentReaders, other, lambda *_: {})
    monkeypatch.setattr(
        data_file_reader,
        "project",
        lambda *a, **k: [pa.compute.add(x, 1) for x in project(*a, **k)],
    )
    outcome = sample.run(ALL)
    assert outcome.status is Ended.FAILED
    assert "and Penstock read different values" in outcome.message
    assert [id_ for (id_,) in by_field_id(sample, {1: "BIGINT"})] == [0, 1]


def test_deletes_are_applied_as_other_readers_apply_them(
    sample: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.maintenance.tables.reading import data_file_reader

    sample.create(files=3)
    sample.delete([1, 12])
    assert proven()  # once a process: it would find the defect first
    monkeypatch.setattr(
        data_file_reader, "_without", lambda batch, start, positions: batch.slice(1)
    )
    snapshot = sample.table.current_snapshot().snapshot_id
    outcome = sample.run(ALL)
    assert outcome.status is Ended.FAILED
    assert "and Penstock read different values" in outcome.message
    assert sample.table.current_snapshot().snapshot_id == snapshot
