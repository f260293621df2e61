"""Cases of defects that maintenance once had, by name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tests.maintenance.differential.actions import (
    Expire,
    RemoveOrphans,
    RewriteData,
    RewriteDeletes,
    RewriteManifests,
)
from tests.maintenance.differential.cases import Case
from tests.maintenance.differential.history import (
    AddColumn,
    AddFiles,
    AddFileTwice,
    AddPartitionField,
    Append,
    Delete,
    DeleteEqual,
    DeletePositions,
    DeletePositionsElsewhere,
    DropColumn,
    ReaddFile,
    RemovePartitionField,
    RenameColumn,
    WidenColumn,
)
from tests.maintenance.differential.schemas import Column, ListOf, MapOf, StructOf
from tests.maintenance.differential.values import BIG_TEXT, DAY, FIRST_DAY, LAST_DAY

if TYPE_CHECKING:
    from tests.maintenance.differential.schemas import Shape

NUMBER = Column("n", "int")
IDENTITY, BUCKET, VOID = 0, 1, -1
"""Of `TRANSFORMS`, for types that have all of them."""
ALL = RewriteData()
TWICE = (Append(rows=8), Append(rows=8))
BY_SPARK = (Append(rows=8, by="spark"), Append(rows=8, by="spark"))
NESTED: dict[str, Shape] = {
    "list": ListOf("string"),
    "map": MapOf("string", "long"),
    "list of structs of maps": ListOf(StructOf((Column("x", MapOf("int", ListOf("double"))),))),
}
FAR = (FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1, -1, None)
"""The first and last microseconds that most engines know, neither of which fits nanoseconds."""
SPECIAL_DOUBLES = (math.nan, 0.0, -0.0, math.inf, -math.inf, None)
ENDS_IN_D7FF = (
    "\ud7ff",
    "ends\ud7ff",
    "x" * 15 + "\ud7ff",
    "x" * 15 + "\ud7ff" + "tail",
    "\ud7ff" * 17,
)


def _numbered(values: tuple[object, ...], copies: int = 2) -> tuple[tuple[object, ...], ...]:
    return tuple((number, value) for number, value in enumerate(values * copies))


def _table(name: str, shape: Shape) -> tuple[Column, ...]:
    return (NUMBER, Column(name, shape))


def _field_ids() -> dict[str, Case]:
    """Rewritten files had no field ids in lists and maps, and no other engine could read them."""
    return {
        f"field ids of a {name}, written by {writer}": Case(
            columns=_table("items", shape), history=history, actions=(ALL,)
        )
        for name, shape in NESTED.items()
        for writer, history in (("pyiceberg", TWICE), ("spark", BY_SPARK))
    }


def _int96() -> dict[str, Case]:
    """9999-12-31 became 1816-03-30."""
    rows = _numbered(FAR, 1)
    return {
        f"INT96 timestamps beyond nanoseconds{name}": Case(
            columns=_table("at", "timestamptz"),
            history=(
                Append(rows=rows, by="spark"),
                AddFiles(rows=rows, form="int96", by="spark"),
                AddFiles(rows=rows, form="int96", by="spark"),
                *more,
            ),
            actions=(ALL,),
        )
        for name, more in (
            ("", ()),
            (", with an added column", (AddColumn(name="later", shape="int"),)),
            (", with deletes", (DeletePositions(one_in=3, by_partition=False),)),
        )
    }


def _sanitized_names() -> dict[str, Case]:
    """Fields of structs whose names Parquet does not take were NULL after a schema change."""
    struct = StructOf((Column("a.b", "int"), Column("with space", "string"), Column("1st", "long")))
    changes = {
        "a column was added": AddColumn(name="later", shape="int"),
        "a field of the struct was renamed": RenameColumn(pick=3, name="per%cent"),
        "a field was added to the struct": AddColumn(name="new.field", shape="int", parent=1),
    }
    return {
        f"names that Parquet does not take, after {name}": Case(
            columns=_table("my struct", struct),
            history=(Append(rows=8), change, Append(rows=8)),
            actions=(ALL,),
        )
        for name, change in changes.items()
    }


def _float_partitions() -> dict[str, Case]:
    """Deleted rows of the NaN partition came back, and one of 0.0 and -0.0 became the other."""
    rows = _numbered(SPECIAL_DOUBLES)
    # PyIceberg writes no partition of NaN, nor 0.0 and -0.0 in one go.
    apart = (_numbered((0.0, math.inf, None)), _numbered((-0.0, -math.inf, 1.5)))
    writers = {
        "pyiceberg": tuple(Append(rows=part) for part in apart * 2),
        "spark": (Append(rows=rows, by="spark"),) * 2,
    }
    return {
        f"identity partitions of special {kind}s, written by {by}, {granularity} deletes": Case(
            columns=_table("x", kind),
            partition=((1, IDENTITY),),
            history=(
                *writers[by],
                DeletePositions(one_in=2, by_partition=granularity == "partition"),
                DeletePositions(one_in=3, by_partition=granularity == "partition"),
            ),
            actions=actions,
        )
        for kind in ("double", "float")
        for by in writers
        for granularity, actions in (
            ("file", (ALL,)),
            ("partition", (RewriteDeletes(), RewriteManifests(), ALL)),
        )
    }


def _inexact_partitions() -> dict[str, Case]:
    """The library reads a double of a manifest as a float: 0.1 became 0.10000000149."""
    rows = _numbered((0.1, 1e300, 5e-324, -1 / 3))
    return {
        f"identity partitions of doubles that are no floats, {name}": Case(
            columns=_table("x", "double"),
            partition=((1, IDENTITY),),
            history=(
                Append(rows=rows, by="spark"),
                Append(rows=rows, by="spark"),
                Delete(number=1, by="spark"),
                Delete(number=2, by="spark"),
            ),
            actions=(action,),
            properties=(("write.delete.mode", "merge-on-read"),),
        )
        for name, action in (
            ("data rewritten", ALL),
            ("deletes rewritten", RewriteDeletes(min_input_files=1)),
            ("manifests rewritten", RewriteManifests()),
        )
    }


def _void_partitions() -> dict[str, Case]:
    """The null partition value of a void transform became False or 0 where its source is required:
    another partition, to which deletes of the null one do not apply."""
    return {
        f"void partitions of a required {kind}, {name}": Case(
            columns=(NUMBER, Column("x", kind, required=True)),
            partition=((1, VOID),),
            history=(
                Append(rows=_numbered(values), by="spark"),
                Append(rows=_numbered(values), by="spark"),
                Delete(number=1, by="spark"),
                Delete(number=2, by="spark"),
            ),
            actions=(action,),
            properties=(("write.delete.mode", "merge-on-read"),),
        )
        for kind, values in (("boolean", (True, False)), ("string", ("a", "b")))
        for name, action in (
            ("data rewritten", RewriteData(below=2)),
            ("deletes rewritten", RewriteDeletes(min_input_files=1)),
            ("manifests rewritten", RewriteManifests()),
        )
    }


def _equality_deletes() -> dict[str, Case]:
    """The library writes the ids of an equality delete as longs, which Java cannot read."""
    return {
        f"manifests with equality deletes{name}": Case(
            columns=_table("t", "string"),
            partition=partition,
            history=(Append(rows=8), DeleteEqual(number=3), Append(rows=8), DeleteEqual(number=5)),
            actions=(RewriteManifests(),),
        )
        for name, partition in (("", ()), (", partitioned", ((0, IDENTITY),)))
    }


def _uuids() -> dict[str, Case]:
    """A table with a uuid column never compacted."""
    return {
        f"uuids {name}": Case(columns=_table("u", shape), history=TWICE, actions=(ALL,))
        for name, shape in (
            ("in a column", "uuid"),
            ("in a list", ListOf("uuid")),
            ("in a struct", StructOf((Column("u", "uuid"),))),
            ("in a map", MapOf("uuid", "uuid")),
        )
    } | {
        "uuids sorted": Case(
            columns=_table("u", "uuid"), history=TWICE, actions=(RewriteData(sort=((1, True),)),)
        ),
        "uuids along a curve": Case(
            columns=_table("u", "uuid"), history=TWICE, actions=(RewriteData(curve=(0, 1)),)
        ),
    }


def _nested_evolution() -> dict[str, Case]:
    """Any schema change made a table with a list or a map impossible to compact."""
    changes = {
        "an added column": AddColumn(name="later", shape="int"),
        "a renamed column": RenameColumn(pick=1, name="renamed"),
        "a widened column": WidenColumn(pick=0),
    }
    return {
        f"a {shape} with {name}": Case(
            columns=_table("items", NESTED[shape]),
            history=(Append(rows=8), change, Append(rows=8)),
            actions=(ALL,),
        )
        for shape in NESTED
        for name, change in changes.items()
    }


def _dropped_source() -> dict[str, Case]:
    """The column that an old spec partitions by is not in the schema any more."""
    return {
        f"a dropped source of an old spec, {name}": Case(
            columns=(NUMBER, Column("gone", "string"), Column("stays", "string")),
            partition=((1, transform),),
            history=(
                Append(rows=8),
                Append(rows=8),
                DeletePositions(one_in=3, by_partition=True),
                RemovePartitionField(pick=0),
                DropColumn(pick=0),
                AddPartitionField(source=0, transform=IDENTITY),
                Append(rows=8),
            ),
            actions=(ALL, RewriteDeletes(min_input_files=1), RewriteManifests(), Expire()),
        )
        for name, transform in (("identity", IDENTITY), ("bucket", BUCKET))
    }


def _texts() -> dict[str, Case]:
    """The bound of a text that ends in the last code point before the surrogates. Each text is
    alone in its partition, so that each is a bound."""
    rows = _numbered(ENDS_IN_D7FF, 1)
    return {
        f"texts that end in U+D7FF, metrics {metrics}": Case(
            columns=_table("t", "string"),
            partition=((0, IDENTITY),),
            history=(Append(rows=rows, by="spark"), Append(rows=rows, by="spark")),
            actions=(ALL,),
            properties=(("write.metadata.metrics.default", metrics),),
        )
        for metrics in ("truncate(1)", "truncate(5)", "truncate(16)", "full")
    }


def _folders() -> dict[str, Case]:
    """Folders of partitions whose names hold percent signs were looked for under other names."""
    rows = _numbered(("a/b", "100%", "%2F", "with space", "ü", "a=b", "", None, "a+b", "#", "?"))
    return {
        f"partition folders with encoded names, written by {by}": Case(
            columns=_table("with space", "string"),
            partition=((1, IDENTITY),),
            history=(
                Append(rows=rows, by=by),
                Append(rows=rows, by=by),
                DeletePositions(one_in=3, by_partition=False),
            ),
            actions=(
                RemoveOrphans(),
                ALL,
                RewriteDeletes(),
                RewriteManifests(),
                Expire(),
                RemoveOrphans(),
            ),
        )
        for by in ("pyiceberg", "spark")
    }


def _missing_folder() -> dict[str, Case]:
    """A table with all its files elsewhere has no folder at its location; actions failed of it."""
    return {
        "no folder at the location": Case(
            columns=_table("t", "string"),
            history=(*TWICE, Delete(number=3)),
            actions=(RemoveOrphans(), ALL, RewriteManifests(), Expire(), RemoveOrphans()),
            properties=(
                ("write.data.path", "{elsewhere}/data"),
                ("write.metadata.path", "{elsewhere}/metadata"),
            ),
        )
    }


def _neighbors() -> dict[str, Case]:
    """Live files of a table of a nested namespace were taken for orphans of the one around it."""
    return {
        "a table of a nested namespace in the folder of another": Case(
            columns=_table("t", "string"),
            history=TWICE,
            actions=(RemoveOrphans(), ALL, Expire(), RemoveOrphans()),
            neighbor=True,
        )
    }


def _large_values() -> dict[str, Case]:
    """No defect so far; generated cases seldom have any."""
    rows = _numbered((BIG_TEXT, "a"), 1)
    return {
        f"a text of 10 MB, written by {by}": Case(
            columns=_table("t", "string"),
            history=(
                Append(rows=rows, by=by),
                Append(rows=rows, by=by),
                DeletePositions(one_in=3, by_partition=True),
            ),
            actions=(ALL, RewriteManifests(), Expire()),
        )
        for by in ("pyiceberg", "spark")
    }


def _paths_added_again() -> dict[str, Case]:
    """Deletes that are older than the second addition of a file were applied to it."""
    return {
        f"a file added again after {granularity} deletes, {name}": Case(
            columns=_table("t", "string"),
            history=(
                *TWICE,
                DeletePositions(one_in=2, by_partition=granularity == "partition"),
                ReaddFile(pick=0),
                DeletePositions(one_in=5, by_partition=granularity == "partition"),
            ),
            actions=actions,
        )
        for granularity in ("file", "partition")
        for name, actions in (
            ("data rewritten", (ALL,)),
            ("deletes rewritten", (RewriteDeletes(),)),
            ("all rewritten", (RewriteDeletes(), ALL, RewriteManifests(), RewriteDeletes())),
        )
    }


def _paths_added_twice() -> dict[str, Case]:
    """Of a file that was there twice, a rewrite of one entry removed both, and a delete that
    applied to one was made to apply to both."""
    return {
        f"a file added twice, {name}": Case(
            columns=_table("t", "string"),
            history=(
                *TWICE,
                DeletePositions(one_in=3, by_partition=True),
                AddFileTwice(pick=0),
                DeletePositions(one_in=5, by_partition=True),
                Append(rows=8),
            ),
            actions=actions,
        )
        for name, actions in (
            ("data rewritten", (ALL,)),
            ("data rewritten within a budget", (RewriteData(max_files=2),)),
            ("deletes rewritten", (RewriteDeletes(),)),
            ("manifests rewritten", (RewriteManifests(), ALL, Expire())),
        )
    }


def _deletes_elsewhere() -> dict[str, Case]:
    """A delete file for one data file was not applied where it was of another partition."""
    by_number = (Append(rows=_numbered(("a",), 1)), Append(rows=((1, "b"), (1, "c"), (1, "d"))))
    places = {
        "partition": (((0, IDENTITY),), (*by_number, *by_number)),
        "spec": ((), (*TWICE, AddPartitionField(source=0, transform=IDENTITY), *by_number)),
    }
    return {
        f"deletes recorded under another {place}, by {scope}, {name}": Case(
            columns=_table("t", "string"),
            partition=places[place][0],
            history=(
                *places[place][1],
                DeletePositionsElsewhere(one_in=2, referenced=scope == "reference"),
                DeletePositionsElsewhere(one_in=2, referenced=scope == "reference"),
            ),
            actions=actions,
        )
        for place in places
        for scope in ("bounds", "reference")
        for name, actions in (
            ("data rewritten", (ALL, RewriteDeletes())),
            ("deletes rewritten", (RewriteDeletes(),)),
            ("manifests rewritten", (RewriteManifests(), ALL)),
        )
    }


KNOWN_DEFECTS: dict[str, Case] = {
    **_field_ids(),
    **_int96(),
    **_sanitized_names(),
    **_float_partitions(),
    **_inexact_partitions(),
    **_void_partitions(),
    **_equality_deletes(),
    **_uuids(),
    **_nested_evolution(),
    **_dropped_source(),
    **_texts(),
    **_folders(),
    **_missing_folder(),
    **_neighbors(),
    **_large_values(),
    **_paths_added_again(),
    **_paths_added_twice(),
    **_deletes_elsewhere(),
}
