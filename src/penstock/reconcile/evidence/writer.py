"""Writes the evidence of a finished matching: matched, unmatched and duplicate records, and totals
that must tie.

Called by `matching.execution`. It reads the engine's tables and the input files, and writes files
in the scratch folder; `matching.handlers` stores them.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.column_names import leaving
from penstock.engines.contract import ROW_BITS
from penstock.reconcile.errors import TotalsDiffer
from penstock.reconcile.evidence import parquet_file
from penstock.reconcile.evidence.break_rows import BreakRows, free_name
from penstock.reconcile.matching import duplicates, reasons
from penstock.reconcile.matching.amounts import EXACT, FULL
from penstock.reconcile.matching.clauses import FULL_SCORE
from penstock.reconcile.recipes.model import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from penstock.reconcile.evidence.document import RuleEntry, TotalsEntry
    from penstock.reconcile.evidence.parquet_file import EvidenceFile
    from penstock.reconcile.matching.column import Column
    from penstock.reconcile.matching.matcher import Linked, Matching
    from penstock.reconcile.recipes.model import SideName

TABLES = ("matched", "unmatched_left", "unmatched_right", "duplicates", "ambiguous")
_OF_RULE = ("rule", "pattern")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTotals:
    """Counts of one side, and amounts by currency ("" where there is none). `amounts` has the sums
    of all records (`total`), of the `matched` and of the `unmatched` ones; `unmatched_absolute`
    sums the absolute values of the latter."""

    rows: int
    matched: int
    unmatched: int
    null_keys: int
    amounts: Mapping[str, Mapping[str, str]]
    reasons: Mapping[str, int]

    def entry(self) -> TotalsEntry:
        return {
            "rows": self.rows,
            "matched": self.matched,
            "unmatched": self.unmatched,
            "null_keys": self.null_keys,
            "amounts": self.amounts,
            "reasons": self.reasons,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    files: list[EvidenceFile]
    sides: Mapping[SideName, SideTotals]
    rules: list[RuleEntry]

    def rows(self, table: str) -> int:
        return sum(file.rows for file in self.files if file.table == table)


def gather(matching: Matching, folder: Path, read: Mapping[SideName, Sequence[Path]]) -> Evidence:
    """Write all evidence of a finished matching into a folder. `read` are the input files."""
    with localcontext(EXACT):
        return _gathered(matching, folder, read)


def _gathered(
    matching: Matching,
    folder: Path,
    read: Mapping[SideName, Sequence[Path]],
) -> Evidence:
    starts = {side: _starts(read[side]) for side in SIDES}
    files = _matched(matching, folder, "matched", "", starts)
    files += _matched(matching, folder, "ambiguous", " WHERE m.ambiguous", starts)
    rules = [_rule(matching, linked) for linked in matching.links]
    repeated = {side: duplicates.find(matching, side, read[side]) for side in SIDES}
    totals: dict[SideName, SideTotals] = {}
    for side in SIDES:
        breaks = reasons.explain(matching, side, repeated[side])
        files += _unmatched(matching, side, breaks, folder, read[side])
        rows = sum(pq.read_metadata(file).num_rows for file in read[side])
        totals[side] = _totals(matching, side, breaks, rows, rules)
        _check_tied(side, totals[side])
    repeats = duplicates.batches(matching, repeated)
    files += parquet_file.write("duplicates", duplicates.SCHEMA, repeats, folder)
    return Evidence(files=files, sides=totals, rules=rules)


def _starts(files: Sequence[Path]) -> list[int]:
    """The number of records before each file."""
    return [0, *accumulate(pq.read_metadata(file).num_rows for file in files)][:-1]


def _matched(
    matching: Matching,
    folder: Path,
    table: str,
    where: str,
    starts: Mapping[SideName, Sequence[int]],
) -> list[EvidenceFile]:
    columns = _matched_columns(matching)
    schema = pa.schema([pa.field(column.name, column.type) for column in columns])
    selects = [(linked, _matched_sql(matching, linked, where, starts)) for linked in matching.links]
    readers = ((linked, matching.engine.stream(sql)) for linked, sql in selects)
    batches = (batch for linked, rows in readers for batch in _beside(linked, rows, schema))
    return parquet_file.write(table, schema, batches, folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column of matched evidence: its name and type, and its SQL over a link `m` and its records.
    `key` is the side whose primary key it belongs to."""

    name: str
    type: pa.DataType
    sql: str
    key: SideName | None = None


def _matched_columns(matching: Matching) -> list[_Column]:
    """In output order; those of a match's rule are the same in all of its rows."""
    columns = [_Column(name=name, type=pa.string(), sql="") for name in ("match_id", *_OF_RULE)]
    for side in SIDES:
        columns += [
            _Column(name=f"{side}_{key.name}", type=key.type, sql=f"p{place}", key=side)
            for place, key in enumerate(matching.key_columns(side))
        ]
        columns += [
            _Column(name=f"{side}_{one.name}", type=one.type, sql=f"{side[0]}s.{one.sql}")
            for one in _chosen(matching, side)
        ]
    for label, difference in matching.differences:
        columns.append(_Column(name=f"diff_{label}", type=difference.type, sql=difference.sql))
    score = f"CAST(m.s AS DOUBLE) / {FULL_SCORE}"
    columns.append(_Column(name="score", type=pa.float64(), sql=score))
    columns.append(_Column(name="ambiguous", type=pa.bool_(), sql="m.ambiguous"))
    return columns


def _beside(
    linked: Linked,
    reader: pa.RecordBatchReader,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Add the rule and its pattern after the match id: they are constant, and expensive to sort and
    carry."""
    same = [linked.name, linked.pattern]
    candidates = pa.schema([schema.field(0), *list(schema)[1 + len(same) :]])
    for batch in leaving(reader, candidates):
        first, *others = batch.columns
        ours = [pa.repeat(value, batch.num_rows) for value in same]
        yield pa.RecordBatch.from_arrays([first, *ours, *others], schema=schema)


def _matched_sql(
    matching: Matching,
    linked: Linked,
    where: str,
    starts: Mapping[SideName, Sequence[int]],
) -> str:
    """Columns by position; they are renamed when rows leave the engine."""
    join = "LEFT JOIN" if linked.pattern == "M:N" else "JOIN"
    chosen = [f"'{linked.number}-' || CAST({_place(starts[linked.lead])} AS VARCHAR)"]
    keys = "m.{}" if linked.carries else "{}."
    for column in _matched_columns(matching)[1 + len(_OF_RULE) :]:
        record = "" if column.key is None else keys.format(column.key[0])
        chosen.append(f"{record}{column.sql}")
    apart = matching.differences or not linked.carries
    joins = f" {join} l ON l._id = m.l {join} r ON r._id = m.r" if apart else ""
    for side in SIDES:
        if _chosen(matching, side):
            joins += f" {join} {side}_rows AS {side[0]}s ON {side[0]}s._id = m.{side[0]}"
    named = ", ".join(f"{sql} AS e{place}" for place, sql in enumerate(chosen))
    order = "m.g" if linked.pattern == "1:1" else "m.g, m.l, m.r"
    return f"SELECT {named} FROM {linked.rows} AS m{joins}{where} ORDER BY {order}"


def _place(starts: Sequence[int]) -> str:
    """The position of the match's lead record among all of its side, across files."""
    if len(starts) == 1:
        return "m.g"
    cases = " ".join(f"WHEN {number} THEN {start}" for number, start in enumerate(starts))
    return f"m.g - ((m.g >> {ROW_BITS}) << {ROW_BITS}) + CASE m.g >> {ROW_BITS} {cases} END"


def _chosen(matching: Matching, side: SideName) -> list[Column]:
    """The columns of a side that matched evidence has in addition to its key."""
    output, columns = matching.recipe.output, matching.transpiler.side(side).columns
    names = columns if output.wide else dict.fromkeys(getattr(output.columns, side))
    key = getattr(matching.recipe.sources, side).primary_key
    return [columns[name] for name in names if name not in key]


def _unmatched(
    matching: Matching, side: SideName, breaks: str, folder: Path, read: Sequence[Path]
) -> list[EvidenceFile]:
    """The rows are read from the files, in order: no engine has to carry or sort them."""
    other: SideName = "right" if side == "left" else "left"
    away = pa.decimal128(FULL, reasons.away_scale(matching))
    ours = {"reason": pa.string(), "rule": pa.string()}
    last = {"nearest_difference": away, "nearest_days": pa.int64()}
    nearest: dict[str, pa.DataType] = {}
    for key in matching.key_columns(other):
        nearest[free_name(f"nearest_{key.name}", "key", {*ours, *last, *nearest})] = key.type
    columns = ["u._id", "u.reason", f"{_rule_name(matching)} AS rule"]
    columns += [f"u.q{place}" for place in range(len(nearest))]
    columns += ["u.away", "u.days"]
    batches = matching.engine.stream(
        f"SELECT {', '.join(columns)} FROM {breaks} AS u ORDER BY u._id"
    )
    schema = pa.schema([("_id", pa.int64()), *(ours | nearest | last).items()])
    rows = BreakRows(read, pa.RecordBatchReader.from_batches(schema, leaving(batches, schema)))
    return parquet_file.write(f"unmatched_{side}", rows.schema, rows.batches(), folder)


def _rule_name(matching: Matching) -> str:
    names = [(plan.number, plan.rule.name.replace("'", "''")) for plan in matching.plans]
    if not names:
        return "CAST(NULL AS VARCHAR)"
    cases = " ".join(f"WHEN {number} THEN '{name}'" for number, name in names)
    return f"CASE u.n {cases} ELSE NULL END"


def _rule(matching: Matching, linked: Linked) -> RuleEntry:
    """Links of a 1:1 rule are counted without DISTINCT: a record linked twice would break the
    totals."""
    once = "" if linked.pattern in ("1:1", "manual") else "DISTINCT "
    counts = (
        f"COUNT({once}g), COUNT({once}l), COUNT({once}r), "
        "SUM(CASE WHEN ambiguous THEN 1 ELSE 0 END)"
    )
    [(groups, left, right, ambiguous)] = matching.engine.rows(
        f"SELECT {counts} FROM {linked.rows} AS m"
    )
    return {
        "name": linked.name,
        "pattern": linked.pattern,
        "matches": groups,
        "left": left,
        "right": right,
        "ambiguous": int(ambiguous or 0),
        "greedy_clusters": linked.greedy.clusters,
        "greedy_records": linked.greedy.records,
        "amounts": {
            side: _flat(_amounts(matching, side, _records(matching, linked, side, once)))
            for side in SIDES
        },
    }


def _totals(
    matching: Matching, side: SideName, breaks: str, read: int, rules: Sequence[RuleEntry]
) -> SideTotals:
    """Matched and unmatched, counted independently."""
    sql = f"SELECT reason, COUNT(*) FROM {breaks} GROUP BY reason"
    counted: dict[str, int] = dict(matching.engine.rows(sql))
    nulls = " OR ".join(f"{key} IS NULL" for key in matching.carried.side(side).keys)
    [(null_keys,)] = matching.engine.rows(f"SELECT COUNT(*) FROM {side[0]} WHERE {nulls}")
    amounts = {
        "total": _amounts(matching, side, side[0]),
        "matched": _summed([rule["amounts"][side] for rule in rules]),
        "unmatched": _amounts(matching, side, breaks),
        "unmatched_absolute": _amounts(matching, side, breaks, absolute=True),
    }
    return SideTotals(
        rows=read,
        matched=sum(rule[side] for rule in rules),
        unmatched=sum(counted.values()),
        null_keys=null_keys,
        amounts={name: _flat(sums) for name, sums in amounts.items()},
        reasons={reason: counted[reason] for reason in reasons.REASONS if reason in counted},
    )


def _summed(amounts: Sequence[Mapping[str, str]]) -> dict[str, Decimal]:
    names = {name for sums in amounts for name in sums}
    return {
        name: sum((Decimal(sums.get(name, "0")) for sums in amounts), Decimal(0)) for name in names
    }


def _records(matching: Matching, linked: Linked, side: SideName, once: str) -> str:
    """The records of a side linked by a rule, with the columns to total."""
    me, totals = side[0], matching.carried.side(side).totals
    if not linked.carries:
        return (
            f"{me} JOIN (SELECT {once}{me} AS id FROM {linked.rows} AS m) AS a ON a.id = {me}._id"
        )
    chosen = ", ".join([me, *(f"{me}{name} AS {name}" for name in totals)])
    return f"(SELECT {once}{chosen} FROM {linked.rows} AS n) AS m"


def _amounts(
    matching: Matching,
    side: SideName,
    records: str,
    *,
    absolute: bool = False,
) -> dict[str, Decimal]:
    """Sums by currency, of the amounts or of their absolute values."""
    carried = matching.carried.side(side)
    if carried.amount is None:
        return {}
    by, group = (
        ("''", "")
        if carried.currency is None
        else (carried.currency, f" GROUP BY {carried.currency}")
    )
    amount = f"ABS({carried.amount})" if absolute else carried.amount
    totals = matching.engine.rows(f"SELECT {by}, SUM({amount}) FROM {records}{group}")
    sums: dict[str, Decimal] = {}
    for name, total in totals:
        sums[name or ""] = sums.get(name or "", Decimal(0)) + Decimal(total or 0)
    return sums


def _flat(sums: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: f"{sums[name]:f}" for name in sorted(sums)}


def _check_tied(side: SideName, totals: SideTotals) -> None:
    if totals.matched + totals.unmatched != totals.rows:
        raise TotalsDiffer(
            f"Of {totals.rows} records of the {side} side {totals.matched} are "
            f"matched and {totals.unmatched} are not.",
            hint="This is a fault of Penstock; please report it with the recipe.",
        )
    for currency, total in totals.amounts["total"].items():
        parts_of = [
            Decimal(totals.amounts[name].get(currency, "0")) for name in ("matched", "unmatched")
        ]
        if sum(parts_of) != Decimal(total):
            raise TotalsDiffer(
                f"The amounts of the {side} side do not tie: {total} in all, "
                f"{sum(parts_of)} in parts."
            )
