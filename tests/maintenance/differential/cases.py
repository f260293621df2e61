"""One case: a table, what was written to it, and what maintenance then does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

from tests.maintenance.differential import history as h
from tests.maintenance.differential.actions import (
    Expire,
    Maintenance,
    RemoveOrphans,
    RewriteData,
    RewriteDeletes,
    RewriteManifests,
)
from tests.maintenance.differential.schemas import Column, fields, names, schema_of, shapes
from tests.maintenance.differential.values import NUMBER

if TYPE_CHECKING:
    from tests.maintenance.differential.history import Step

T = TypeVar("T")
DEPTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    columns: tuple[Column, ...]
    history: tuple[Step, ...]
    actions: tuple[Maintenance, ...]
    partition: tuple[tuple[int, int], ...] = ()
    """A source and a transform of each partition field, by number."""
    sort: tuple[int, ...] = ()
    """The table's own sort order: columns by number."""
    properties: tuple[tuple[str, str], ...] = ()
    """`{elsewhere}` in a value is a folder outside of the table's location."""
    pointer: bool = False
    big_text: bool = False
    neighbor: bool = False
    """Whether a table of a nested namespace has its files in this one's folder."""
    seed: int = 0

    @property
    def by_spark(self) -> bool:
        return any(getattr(step, "by", "") == "spark" for step in self.history)


def _rarely(strategy: st.SearchStrategy[T], otherwise: T) -> st.SearchStrategy[T]:
    return st.one_of(st.just(otherwise), st.just(otherwise), st.just(otherwise), strategy)


_picks = st.integers(0, 11)
_numbers = st.integers(0, 9)
_row_counts = st.sampled_from((1, 3, 8, 8, 20, 0))


@cache
def _schema_changes(*, time: bool) -> st.SearchStrategy[Step]:
    return st.one_of(
        st.builds(h.AddColumn, name=names, shape=shapes(1, time=time), parent=_picks),
        st.builds(h.DropColumn, pick=_picks),
        st.builds(h.RenameColumn, pick=_picks, name=names),
        st.builds(h.MoveColumn, pick=_picks),
        st.builds(h.WidenColumn, pick=_picks),
        st.builds(h.MakeOptional, pick=_picks),
    )


_spec_changes = st.one_of(
    *[st.builds(h.AddPartitionField, source=_picks, transform=_picks)] * 3,
    st.builds(h.RemovePartitionField, pick=_picks),
    st.builds(h.RenamePartitionField, pick=_picks, name=names),
)
_marks = st.one_of(st.builds(h.Branch), st.builds(h.Tag))


@cache
def _steps(*, spark: bool, time: bool) -> st.SearchStrategy[Step]:
    by = st.sampled_from(("spark", "spark", "pyiceberg")) if spark else st.just("pyiceberg")
    branch = st.one_of(st.none(), st.none(), _picks)
    append = st.builds(h.Append, rows=_row_counts, by=by, branch=branch)
    positions = st.builds(
        h.DeletePositions, one_in=st.sampled_from((1, 2, 3, 5)), by_partition=st.booleans()
    )
    elsewhere = st.builds(h.DeletePositionsElsewhere, one_in=st.sampled_from((2, 3, 5)))
    again = st.one_of(st.builds(h.ReaddFile, pick=_picks), st.builds(h.AddFileTwice, pick=_picks))
    delete = st.builds(h.Delete, number=_numbers, by=by)
    rewrite = st.builds(h.Overwrite, rows=_row_counts, by=by, number=st.one_of(st.none(), _numbers))
    forms = ("int96", "int96", "legacy_lists", "arrow") if spark else ("arrow",)
    files = st.builds(h.AddFiles, rows=_row_counts, by=by, form=st.sampled_from(forms))
    update = st.builds(h.Update, number=_numbers) if spark else positions
    changes = _schema_changes(time=time)
    writes = st.one_of(
        *[append] * 4, *[positions] * 3, *[delete] * 2, *[files] * 3, rewrite, update
    )
    equal = [st.builds(h.DeleteEqual, number=_numbers)] if spark else []
    rare = st.one_of(_marks, _marks, _spec_changes, _spec_changes, elsewhere, again, *equal)
    return st.one_of(writes, writes, changes, rare)


_rewrites = st.builds(
    RewriteData,
    rewrite_all=st.sampled_from((True, True, False)),
    min_input_files=st.sampled_from((1, 2)),
    below=_rarely(_numbers, None),
    small_files=st.booleans(),
    max_files=_rarely(st.sampled_from((1, 2, 3)), None),
    sort=_rarely(st.lists(st.tuples(_picks, st.booleans()), max_size=2).map(tuple), ()),
    curve=_rarely(st.lists(_picks, min_size=2, max_size=3, unique=True).map(tuple), ()),
    by_own_order=_rarely(st.just(True), False),
)
_others = st.one_of(
    st.builds(RewriteDeletes, min_input_files=st.sampled_from((1, 2))),
    st.builds(RewriteManifests, small=st.booleans()),
    st.builds(Expire, retain_last=st.sampled_from((1, 2, 100))),
    st.builds(RemoveOrphans),
)
_any_actions = st.lists(st.one_of(_others, _others, _rewrites), max_size=3)
_actions = st.one_of(
    st.builds(lambda rewrite, others: (rewrite, *others), _rewrites, _any_actions),
    st.builds(lambda others, rewrite: (*others, rewrite), _any_actions, _rewrites),
)
_properties = st.fixed_dictionaries(
    {},
    optional={
        "write.delete.granularity": st.sampled_from(("file", "partition")),
        "write.metadata.metrics.default": st.sampled_from(
            ("full", "counts", "none", "truncate(4)", "truncate(16)")
        ),
        "write.format.default": st.sampled_from(("parquet",) * 18 + ("avro", "orc")),
        "write.object-storage.enabled": st.just("true"),
        "write.parquet.compression-codec": st.sampled_from(
            ("zstd", "snappy", "gzip", "uncompressed")
        ),
    },
).map(lambda properties: tuple(sorted(properties.items())))


def _is_a_schema(columns: tuple[Column, ...]) -> bool:
    """False for a name with a dot that is also the full name of a nested field."""
    try:
        schema_of(columns)
    except ValueError:
        return False
    return True


@st.composite
def cases(draw: st.DrawFn, *, spark_share: float = 0.28) -> Case:
    spark = draw(st.integers(0, 99)) < spark_share * 100
    time = not spark and draw(st.integers(0, 9)) == 9
    others = draw(fields(shapes(DEPTH, time=time), most=6))
    number = Column(NUMBER, draw(st.sampled_from(("int", "long"))))
    columns = (number, *(column for column in others if column.name.lower() != NUMBER))
    modes = draw(st.sampled_from(("merge-on-read", "merge-on-read", "copy-on-write")))
    properties = {
        "write.delete.mode": modes,
        "write.update.mode": modes,
        **dict(draw(_properties)),
    }
    steps = draw(st.lists(_steps(spark=spark, time=time), min_size=2, max_size=5))
    first = h.Append(rows=draw(_row_counts), by="spark" if spark else "pyiceberg")
    return Case(
        columns=columns if _is_a_schema(columns) else (number,),
        history=(first, *steps),
        actions=draw(_actions),
        partition=tuple(draw(st.lists(st.tuples(_picks, _picks), max_size=2))),
        sort=tuple(draw(st.lists(_picks, max_size=2))),
        properties=tuple(sorted(properties.items())),
        pointer=draw(st.booleans()),
        big_text=draw(st.integers(0, 99)) == 99,
        seed=draw(st.integers(0, 2**32 - 1)),
    )
