"""Runs a case and compares what every reader sees before and after."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyiceberg.manifest import DataFileContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import make_compatible_name
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import ListType, MapType, PrimitiveType, StructType

from penstock.maintenance.actions.model import Ended
from tests.maintenance.differential.actions import (
    Expire,
    RemoveOrphans,
    check_outcome,
    request,
    run,
)
from tests.maintenance.differential.history import (
    STEPS,
    AddFiles,
    AddFileTwice,
    Delete,
    DeletePositions,
    DeletePositionsElsewhere,
    History,
    ReaddFile,
    Update,
    pick,
)
from tests.maintenance.differential.manifests import (
    all_files,
    facts_of_files,
    live_data_files,
    partition_values,
)
from tests.maintenance.differential.metadata_truth import check_metadata, doubtful_partitions
from tests.maintenance.differential.partitions import sources, transforms_for
from tests.maintenance.differential.readers import Rows, Unreadable
from tests.maintenance.differential.schemas import Column, schema_of
from tests.maintenance.differential.tables import local_path, shared_table
from tests.maintenance.differential.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.types import IcebergType
    from rich.console import Console

    from tests.maintenance.differential.cases import Case
    from tests.maintenance.differential.history import Step
    from tests.maintenance.differential.readers import Answer, Engines
    from tests.maintenance.differential.tables import SharedTable
    from tests.maintenance.differential.worker_loop import Read


REFERENCES = ("spark", "duckdb", "pyiceberg")
"""The readers, the one that is most often right first."""


REWRITTEN, UNCHANGED, UNKNOWN = "data files rewritten", "data files unchanged", "not known"
ACTIONS = (
    "rewrite_data_files",
    "rewrite_position_delete_files",
    "rewrite_manifests",
    "expire_snapshots",
    "remove_orphan_files",
)
NEIGHBOUR = ("db", "inner", "neighbour")


class SeenDifferently(AssertionError):
    """A reader does not see what it saw before."""


@dataclass(slots=True)
class Tally:
    """What the cases so far were, over all of a run."""

    cases: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    wrong_before: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)
    """Of each case: what became of its data files."""

    @property
    def readers_that_read(self) -> set[str]:
        """Those that could read all that they were asked to."""
        return set(self.reads) - {reason.partition(":")[0] for reason in self.unreadable}

    def show(self, console: Console) -> None:
        for name in (
            "cases",
            "steps",
            "refusals",
            "outcomes",
            "reads",
            "unreadable",
            "wrong_before",
            "results",
        ):
            console.print(f"{name}:")
            for what, count in getattr(self, name).most_common(40):
                console.print(f"  {count:6} {what}")

    def check_reach(self) -> None:
        """Raises where the cases would show little: most must rewrite what most readers read."""
        cases = sum(self.cases.values())
        lacking = [
            f"{count} of {of} {what}, not {share:.0%} of them"
            for what, count, of, share in (
                ("cases rewrote data files", self.results[REWRITTEN], cases, 0.6),
                ("cases were written by Spark", self.cases["by spark"], cases, 0.1),
                *(
                    (
                        f"reads could be judged by {name}",
                        self._judged(name),
                        self.reads[name],
                        share,
                    )
                    for name, share in (("spark", 0.9), ("pyiceberg", 0.7), ("duckdb", 0.5))
                ),
            )
            if count < share * of
        ]
        lacking += [f"no {name} was completed" for name in ACTIONS if not self._completed(name)]
        lacking += [f"no {step.__name__} was done" for step in STEPS if not self._done(step)]
        if lacking:
            raise AssertionError("; ".join(lacking))

    def _judged(self, reader: str) -> int:
        unreadable = [c for why, c in self.unreadable.items() if why.startswith(f"{reader}:")]
        return self.reads[reader] - sum(unreadable)

    def _completed(self, action: str) -> bool:
        return any(what.startswith(f"{action}: {Ended.COMPLETED}") for what in self.outcomes)

    def _done(self, step: type[Step]) -> bool:
        return any(what.split(" by ")[0] == step.__name__ for what in self.steps)


def check(case: Case, engines: Engines, scratch: Path, tally: Tally) -> None:
    """Raises what is wrong; the table is gone afterwards."""
    with shared_table(engines.spark, pointer=case.pointer) as shared:
        _prepare(case, shared, scratch, tally)
        tally.cases["by spark" if case.by_spark else "by pyiceberg"] += 1
        before = _State.of(shared)
        inputs = all_files(shared.table)
        unjudged = _misreadings(case, shared.table, inputs or ())
        doubtful = doubtful_partitions(shared.table, inputs or ())
        deletes = any(isinstance(action, Expire | RemoveOrphans) for action in case.actions)
        seen = before.read(engines, all_by_spark=deletes)
        neighbor = _neighbor(shared) if case.neighbor else None
        near = _read_table(engines, neighbor)
        for action in case.actions:
            asked = request(shared.table, action)
            outcome = run(shared, asked)
            tally.outcomes[f"{asked['name']}: {outcome.status} {outcome.message[:60]}"] += 1
            check_outcome(
                shared.table,
                asked,
                outcome,
                misread=inputs is None,
                neighbor=case.neighbor,
            )
        after = _State.of(shared)
        tally.results[_result(before, after)] += 1
        _check_retained(case, before, after)
        _check_untouched(before, after)
        _check_seen(seen, after.read(engines, all_by_spark=deletes), unjudged, tally)
        _check_seen(near, _read_table(engines, neighbor), {}, tally)
        _check_facts(before, after)
        if inputs is not None:
            check_metadata(shared.table, before.files, doubtful)


def _result(before: _State, after: _State) -> str:
    if before.facts is None or after.facts is None:
        return UNKNOWN
    return REWRITTEN if before.data_files - after.data_files else UNCHANGED


def _brought_in(case: Case) -> bool:
    return any(isinstance(step, AddFiles) for step in case.history)


def _neighbor(shared: SharedTable) -> str:
    """The metadata file of a table of a nested namespace, with its files in the other's folder."""
    schema = schema_of((Column("n", "int"), Column("text", "string")))
    shared.catalog.create_namespace(NEIGHBOUR[:2])
    location = (shared.folder / "data" / "neighbour").as_uri()
    table = shared.catalog.create_table(NEIGHBOUR, schema, location=location)
    table.append(Values(0).rows(schema, 8, "neighbour"))
    return table.metadata_location


def _read_table(engines: Engines, file: str | None) -> _Seen:
    if file is None:
        return _Seen(answers={})
    pending = {reader.name: reader.start(file, [None]) for reader in engines.readers}
    return _Seen(answers={(name, None): result()[0] for name, result in pending.items()})


def _prepare(case: Case, shared: SharedTable, scratch: Path, tally: Tally) -> None:
    schema = schema_of(case.columns)
    properties = {name: value.format(elsewhere=shared.elsewhere) for name, value in case.properties}
    shared.create(schema, _spec(schema, case), _order(schema, case), properties)
    history = History(shared, Values(case.seed, big_text=case.big_text), scratch)
    for step in case.history:
        history.apply(step)
    tally.steps.update(history.applied)
    tally.refusals.update(history.refusals)


def _spec(schema: Schema, case: Case) -> PartitionSpec:
    """One field for each source: PyIceberg calls more of them redundant."""
    fields: dict[int, PartitionField] = {}
    for source_number, transform_number in case.partition:
        _, source = pick(sources(schema), source_number)
        transform = pick(transforms_for(source.field_type), transform_number)
        number, name = 1000 + len(fields), f"p {source.field_id} {transform}"
        field = PartitionField(source.field_id, number, transform, name)
        fields.setdefault(source.field_id, field)
    return PartitionSpec(*fields.values())


def _order(schema: Schema, case: Case) -> SortOrder:
    primitive = [f for f in schema.fields if isinstance(f.field_type, PrimitiveType)]
    ids = dict.fromkeys(pick(primitive, number).field_id for number in case.sort)
    return SortOrder(
        *(
            SortField(number, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST)
            for number in ids
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """Of a table at one moment: its metadata file and what that names."""

    file: str
    metadata: Mapping[str, object]
    files: Mapping[Path, tuple[int, int]]
    """In its folder, with their sizes and when they were written."""
    facts: Mapping[str, list[str]] | None
    """What is said of each live file; None where PyIceberg misreads the manifests."""
    data_files: frozenset[str]

    @classmethod
    def of(cls, shared: SharedTable) -> _State:
        table = shared.table
        facts = facts_of_files(table)
        live = live_data_files(table, table.metadata.current_snapshot())
        metadata = json.loads(local_path(table.metadata_location).read_text())
        return cls(
            file=table.metadata_location,
            metadata=metadata,
            files={f: _written(f) for f in shared.folder.rglob("*") if f.is_file()},
            facts=facts,
            data_files=frozenset(() if facts is None else (file.file_path for file in live)),
        )

    @property
    def current(self) -> int | None:
        return self.metadata.get("current-snapshot-id")

    @property
    def snapshots(self) -> dict[int, Mapping[str, object]]:
        return {snapshot["snapshot-id"]: snapshot for snapshot in self.metadata["snapshots"]}

    @property
    def refs(self) -> Mapping[str, Mapping[str, object]]:
        return self.metadata["refs"]

    def all_reads(self) -> list[Read]:
        """None is not repeated by the current snapshot, unless that has another schema."""
        current = self.snapshots.get(self.current or 0, {})
        same = current.get("schema-id") == self.metadata["current-schema-id"]
        snapshots = [s for s in self.snapshots if not (same and s == self.current)]
        return [None, *snapshots, *(name for name in self.refs if name != "main")]

    def read(self, engines: Engines, *, all_by_spark: bool) -> _Seen:
        """Spark is slow: where nothing was deleted, it reads only what is new."""
        pending = {}
        for reader in engines.readers:
            reads = [r for r in self.all_reads() if reader.reads_refs or not isinstance(r, str)]
            if reader.name == "spark" and not all_by_spark:
                reads = [read for read in reads if not isinstance(read, int)]
            pending[reader.name] = (reads, reader.start(self.file, reads))
        answers = {
            (name, read): answer
            for name, (reads, result) in pending.items()
            for read, answer in zip(reads, result(), strict=True)
        }
        return _Seen(answers=answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What readers saw of a table at one moment."""

    answers: Mapping[tuple[str, Read], Answer]

    def of(self, reader: str, read: Read) -> Answer:
        """A snapshot that was not there yet has what the table had."""
        return self.answers.get((reader, read)) or self.answers[reader, None]


def _check_retained(case: Case, before: _State, after: _State) -> None:
    """Branches and tags stay; so does each snapshot that expiry was not told to remove."""
    for name, ref in before.refs.items():
        if name not in after.refs:
            raise SeenDifferently(f"{name} is gone")
        if name != "main" and after.refs[name] != ref:
            raise SeenDifferently(f"{name} was moved: {ref} became {after.refs[name]}")
    keep = [action.retain_last for action in case.actions if isinstance(action, Expire)]
    moved = before.current != after.current
    must_stay = (
        _ancestors_kept(before, min(keep), main=not moved) if keep else set(before.snapshots)
    )
    if missing := must_stay - after.snapshots.keys():
        raise SeenDifferently(f"snapshots are gone: {missing}")


def _written(file: Path) -> tuple[int, int]:
    facts = file.stat()
    return facts.st_size, facts.st_mtime_ns


def _check_untouched(before: _State, after: _State) -> None:
    """No file is ever written again, and a snapshot stays what it was: what was read of one is
    still there to be read."""
    for file in before.files.keys() & after.files.keys():
        if before.files[file] != after.files[file]:
            raise SeenDifferently(f"{file} was written again")
    for number in before.snapshots.keys() & after.snapshots.keys():
        first, now = dict(before.snapshots[number]), dict(after.snapshots[number])
        if first.get("parent-snapshot-id") not in after.snapshots:
            first.pop("parent-snapshot-id", None)
            now.pop("parent-snapshot-id", None)
        if first != now:
            raise SeenDifferently(f"{first} became {now}")


def _check_facts(before: _State, after: _State) -> None:
    """Of a file that was not rewritten, metadata say what they said."""
    if before.facts is None or after.facts is None:
        return
    for path in before.facts.keys() & after.facts.keys():
        if before.facts[path] != after.facts[path]:
            raise SeenDifferently(f"{path}: {before.facts[path]} became {after.facts[path]}")


def _ancestors_kept(state: _State, keep: int, *, main: bool) -> set[int]:
    result: set[int] = set()
    for name, ref in state.refs.items():
        if name == "main" and not main:
            continue
        at, left = ref["snapshot-id"], keep if ref["type"] == SnapshotRefType.BRANCH else 1
        while at in state.snapshots and left:
            result.add(at)
            at, left = state.snapshots[at].get("parent-snapshot-id"), left - 1
    return result


def _misreadings(case: Case, table: Table, inputs: Sequence[DataFile]) -> dict[str, str]:
    """Readers that read the table wrongly before, or not twice alike, and of what: their answers
    say nothing of ours."""
    schema = table.schema()
    repeated = _repeated_fields(schema.as_struct(), repeated=False)
    # PyIceberg reads NULL for fields of structs in lists or maps whose names Parquet does not
    # take, from all files with the names that Iceberg's writers give them, its own included.
    # Files that `add_files` brought in have the plain names: of these it sees the values, until
    # they are rewritten.
    if _brought_in(case) and any(name != make_compatible_name(name) for name in repeated):
        return {"pyiceberg": "names of nested fields"}
    # PyIceberg looks deletes up by the partition, of which a NaN does not equal itself: whether
    # it finds those of a NaN partition depends on which objects it happens to have at hand.
    if any(map(_deletes_of_nan, inputs)):
        return {"pyiceberg": "deletes of NaN partitions"}
    # Both apply the deletes of a path to every entry of it, whatever the sequence numbers.
    if added_again_after_deletes(case) and any(f.content != DataFileContent.DATA for f in inputs):
        return dict.fromkeys(("pyiceberg", "duckdb"), "deletes of paths that were added again")
    return {}


def added_again_after_deletes(case: Case) -> bool:
    """Whether deletes may apply to some entries of a path and not to others."""
    again = [at for at, s in enumerate(case.history) if isinstance(s, ReaddFile | AddFileTwice)]
    deletes = (Delete, Update, DeletePositions, DeletePositionsElsewhere)
    return bool(again) and any(isinstance(step, deletes) for step in case.history[: again[-1]])


def _deletes_of_nan(file: DataFile) -> bool:
    return file.content != DataFileContent.DATA and any(
        isinstance(value, float) and math.isnan(value) for value in partition_values(file)
    )


def _repeated_fields(of: IcebergType, *, repeated: bool) -> Iterator[str]:
    """The names of fields inside lists and maps."""
    match of:
        case StructType():
            for field in of.fields:
                yield from [field.name] if repeated else []
                yield from _repeated_fields(field.field_type, repeated=repeated)
        case ListType():
            yield from _repeated_fields(of.element_type, repeated=True)
        case MapType():
            yield from _repeated_fields(of.value_type, repeated=True)


def _check_seen(before: _Seen, after: _Seen, unjudged: Mapping[str, str], tally: Tally) -> None:
    for (reader, read), answer in after.answers.items():
        first = before.of(reader, read)
        tally.reads[reader] += 1
        if reader in unjudged:
            tally.unreadable[f"{reader}: {unjudged[reader]}"] += 1
            continue
        match first, answer:
            case Unreadable(), _:
                tally.unreadable[f"{reader}: {first.reason[:160]}"] += 1
            case Rows(), Unreadable():
                raise SeenDifferently(f"{reader} cannot read {read} any more: {answer.reason}")
            case Rows(), Rows() if first != answer:
                if not _was_wrong(before, after, unjudged, reader, read):
                    difference = _difference(first, answer)
                    raise SeenDifferently(f"{reader} sees {read} differently: {difference}")
                tally.wrong_before[reader] += 1


def _was_wrong(
    before: _Seen, after: _Seen, unjudged: Mapping[str, str], reader: str, read: Read
) -> bool:
    """Whether a reader misread the old files and now agrees with better ones, to which nothing has
    changed: with Spark, or, if it is Spark itself, with both others.

    PyIceberg misreads INT96 timestamps that do not fit into nanoseconds, for one; Spark takes a
    struct for null of whose fields a file has none.
    """
    judges = [name for name in REFERENCES if name != reader]
    if unjudged.keys() & judges and reader == "spark":
        return False
    if reader != "spark" and isinstance(before.of("spark", read), Rows):
        judges = ["spark"]
    now = after.of(reader, read)
    return all(
        isinstance(true := before.of(judge, read), Rows)
        and true == after.of(judge, read)
        and true.rows == now.rows
        for judge in judges
    )


def _difference(first: Rows, answer: Rows) -> str:
    if first.types != answer.types:
        return f"types {first.types} became {answer.types}"
    lost, gained = Counter(first.rows), Counter(answer.rows)
    lost, gained = lost - gained, gained - lost
    return (
        f"{len(first.rows)} rows became {len(answer.rows)}; "
        f"lost {sorted(lost.elements())[:3]}, gained {sorted(gained.elements())[:3]}"
    )
