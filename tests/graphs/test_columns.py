"""Declared columns against found ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.graphs.errors import ColumnsDiffer
from penstock.graphs.mappings.columns import TYPES, fit
from penstock.graphs.snapshots.payloads import Column, Entity

ENTITY = Entity(job_type="edge", name="KNOWS", from_node="Person", to_node="Person")
TEXTS = {pa.string(), pa.large_string(), pa.string_view()}
SMALL = {pa.int8(), pa.uint8()}
FITS = {
    "BLOB": {pa.binary(), pa.large_binary(), pa.binary(8), pa.binary(16)},
    "BOOL": {pa.bool_()},
    "DATE": {pa.date32(), pa.date64()},
    "DOUBLE": {
        pa.float64(),
        pa.float32(),
        pa.int32(),
        pa.uint32(),
        pa.int16(),
        pa.uint16(),
        *SMALL,
    },
    "FLOAT": {pa.float32(), pa.int16(), pa.uint16(), *SMALL},
    "INT16": {pa.int16(), *SMALL},
    "INT32": {pa.int32(), pa.int16(), pa.uint16(), *SMALL},
    "INT64": {pa.int64(), pa.int32(), pa.uint32(), pa.int16(), pa.uint16(), *SMALL},
    "INT8": {pa.int8()},
    "LIST": {pa.list_(pa.int64()), pa.large_list(pa.string())},
    "MAP": {pa.map_(pa.string(), pa.int64())},
    "STRING": TEXTS,
    "STRUCT": {pa.struct([("a", pa.int64())])},
    "TIMESTAMP": {pa.timestamp("us"), pa.timestamp("ns", tz="UTC")},
    "UUID": {pa.binary(16), pa.uuid(), *TEXTS},
}
EVERY = {kind for kinds in FITS.values() for kind in kinds} | {
    pa.decimal128(9, 2),
    pa.uint64(),
    pa.time64("us"),
}


def column(kind: str | None) -> list[Column]:
    return [Column(name="x", type=kind)]


def test_a_type_takes_what_it_can_hold_exactly_and_nothing_else() -> None:
    assert set(FITS) == set(TYPES)
    for declared, kinds in FITS.items():
        for kind in EVERY:
            schema = pa.schema([("x", kind)])
            if kind in kinds:
                fit(ENTITY, column(declared), schema)
            else:
                with pytest.raises(ColumnsDiffer, match="does not fit"):
                    fit(ENTITY, column(declared), schema)


def test_narrower_values_are_widened_to_the_declared_type() -> None:
    batch = pa.record_batch({"x": pa.array([1, None, -3], pa.int32())})
    fitting = fit(ENTITY, column("INT64"), batch.schema)
    assert not fitting.exact
    assert fitting.cast(batch).equals(pa.record_batch({"x": pa.array([1, None, -3], pa.int64())}))


def test_a_column_of_nothing_has_its_declared_type() -> None:
    for declared, kind in (("DATE", pa.date32()), ("STRING", pa.string()), ("INT8", pa.int8())):
        fitting = fit(ENTITY, column(declared), pa.schema([("x", pa.null())]))
        assert fitting.schema.field("x").type == kind
    with pytest.raises(ColumnsDiffer, match="null"):
        fit(ENTITY, column("MAP"), pa.schema([("x", pa.null())]))


def test_without_declared_columns_all_are_taken_as_they_are() -> None:
    schema = pa.schema([("b", pa.decimal128(9, 2)), ("a", pa.string())])
    fitting = fit(ENTITY, [], schema)
    assert (fitting.exact, fitting.schema) == (True, schema)


def test_all_problems_are_told_at_once_each_with_its_column_and_a_suggestion() -> None:
    declared = [Column(name="id", type="INT64"), Column(name="Name"), Column(name="born")]
    with pytest.raises(ColumnsDiffer) as differ:
        fit(
            ENTITY,
            declared,
            pa.schema([("id", pa.int64()), ("name", pa.string()), ("extra", pa.string())]),
        )
    problems = {p["column"]: p for p in differ.value.details["problems"]}
    assert set(problems) == {"Name", "born", "name", "extra"}
    assert problems["Name"]["suggestion"] == "Is it 'name'? Then write … AS Name."
    assert all(
        p["entity"] == "Edge KNOWS (Person to Person)" and p["suggestion"]
        for p in problems.values()
    )
    assert (
        differ.value.message
        == "Column 'Name' is declared, but the query does not return it. (3 more)"
    )


def test_a_type_that_does_not_fit_is_told_with_what_to_write() -> None:
    with pytest.raises(ColumnsDiffer) as differ:
        fit(ENTITY, column("INT64"), pa.schema([("x", pa.float64())]))
    assert differ.value.hint == "Write CAST(x AS BIGINT) AS x, or declare it DOUBLE."
