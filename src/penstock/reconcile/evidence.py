"""Evidence: what was matched, what was not and why, what is there twice; and the totals, which must tie."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.contract import ROW_BITS
from penstock.reconcile import duplicates, parts, reasons
from penstock.reconcile.break_rows import BreakRows
from penstock.reconcile.clauses import FULL_SCORE, quoted
from penstock.reconcile.errors import TotalsDiffer
from penstock.reconcile.recipe import SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from penstock.reconcile.matching import Linked, Matching
    from penstock.reconcile.parts import EvidenceFile
    from penstock.reconcile.recipe import SideName

TABLES = ("matched", "unmatched_left", "unmatched_right", "duplicates", "ambiguous")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTotals:
    """Counts of one side, and amounts by currency ("" where there is none)."""

    rows: int
    matched: int
    unmatched: int
    null_keys: int
    amounts: Mapping[str, Mapping[str, str]]
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    files: list[EvidenceFile]
    sides: Mapping[SideName, SideTotals]
    rules: list[dict[str, Any]]

    def rows(self, table: str) -> int:
        return sum(file.rows for file in self.files if file.table == table)


def gather(matching: Matching, folder: Path, read: Mapping[SideName, Sequence[Path]]) -> Evidence:
    """Write all evidence of a matching that ran into a folder. `read` are the files that it read."""
    starts = {side: _starts(read[side]) for side in SIDES}
    files = _matched(matching, folder, "matched", "", starts)
    files += _matched(matching, folder, "ambiguous", " WHERE m.ambiguous", starts)
    rules = [_rule(matching, linked) for linked in matching.links]
    repeated = {side: duplicates.find(matching, side, read[side]) for side in SIDES}
    found: dict[SideName, SideTotals] = {}
    for side in SIDES:
        breaks = reasons.explain(matching, side, repeated[side])
        files += _unmatched(matching, side, breaks, folder, read[side])
        rows = sum(pq.read_metadata(file).num_rows for file in read[side])
        found[side] = _totals(matching, side, breaks, rows, rules)
        _check_tied(side, found[side])
    files += parts.write("duplicates", duplicates.SCHEMA, [duplicates.rows(matching, repeated)], folder)
    return Evidence(files=files, sides=found, rules=rules)


def _starts(files: Sequence[Path]) -> list[int]:
    """How many records are before each file."""
    return [0, *accumulate(pq.read_metadata(file).num_rows for file in files)][:-1]


def _matched(
    matching: Matching, folder: Path, table: str, where: str, starts: Mapping[SideName, Sequence[int]]
) -> list[EvidenceFile]:
    readers = (
        _named(linked, matching.engine.stream(_matched_sql(matching, number, linked, where, starts)))
        for number, linked in enumerate(matching.links)
    )
    first = next(readers)
    schema = first.schema
    batches = (batch for reader in chain([first], readers) for batch in reader)
    return parts.write(table, schema, (batch.cast(schema) for batch in batches), folder)


def _named(linked: Linked, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """With the rule and its pattern behind the match: they are the same in all rows, and dear to sort and carry."""
    told = {"rule": linked.name, "pattern": linked.pattern}
    schema = reader.schema
    for place, name in enumerate(told, 1):
        schema = schema.insert(place, pa.field(name, pa.string()))

    def beside(batch: pa.RecordBatch) -> pa.RecordBatch:
        first, *others = batch.columns
        same = [pa.repeat(value, batch.num_rows) for value in told.values()]
        return pa.RecordBatch.from_arrays([first, *same, *others], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, map(beside, reader))


def _matched_sql(
    matching: Matching, number: int, linked: Linked, where: str, starts: Mapping[SideName, Sequence[int]]
) -> str:
    join = "LEFT JOIN" if linked.pattern == "M:N" else "JOIN"
    place = _place(starts["right" if linked.pattern == "M:1" else "left"])
    columns = [f"'{number + 1}-' || CAST({place} AS VARCHAR) AS match_id"]
    apart = matching.differences or not linked.carries
    joins = f" {join} l ON l._id = m.l {join} r ON r._id = m.r" if apart else ""
    for side in SIDES:
        alias, key = side[0], getattr(matching.recipe.sources, side).primary_key
        record = f"m.{alias}" if linked.carries else f"{alias}."
        columns += [f"{record}p{place} AS {quoted(f'{side}_{column}')}" for place, column in enumerate(key)]
        if chosen := _chosen(matching, side, key):
            columns += [f"{alias}s.{quoted(column)} AS {quoted(f'{side}_{column}')}" for column in chosen]
            joins += f" {join} {side}_src AS {alias}s ON {alias}s._id = m.{alias}"
    columns += [f"{sql} AS {quoted(f'diff_{label}')}" for label, sql in matching.differences]
    columns += [f"CAST(m.s AS DOUBLE) / {FULL_SCORE} AS score", "m.ambiguous"]
    order = "m.g" if linked.pattern == "1:1" else "m.g, m.l, m.r"
    return f"SELECT {', '.join(columns)} FROM {linked.rows} AS m{joins}{where} ORDER BY {order}"


def _place(starts: Sequence[int]) -> str:
    """The place of the record that names a match among all of its side, in however many files they are."""
    if len(starts) == 1:
        return "m.g"
    cases = " ".join(f"WHEN {number} THEN {start}" for number, start in enumerate(starts))
    return f"m.g - ((m.g >> {ROW_BITS}) << {ROW_BITS}) + CASE m.g >> {ROW_BITS} {cases} END"


def _chosen(matching: Matching, side: str, key: tuple[str, ...]) -> list[str]:
    output = matching.recipe.output
    known = matching.transpiler.left.columns if side == "left" else matching.transpiler.right.columns
    wanted = list(known) if output.wide else list(dict.fromkeys(getattr(output.columns, side)))
    return [column for column in wanted if column not in key]


def _unmatched(
    matching: Matching, side: SideName, breaks: str, folder: Path, read: Sequence[Path]
) -> list[EvidenceFile]:
    """The rows themselves are taken out of the files, in their order: no engine has to carry or sort them."""
    other: SideName = "right" if side == "left" else "left"
    key = getattr(matching.recipe.sources, other).primary_key
    columns = ["u._id", "u.reason", f"{_rule_name(matching)} AS rule"]
    columns += [f"u.q{place} AS {quoted(f'nearest_{column}')}" for place, column in enumerate(key)]
    columns += ["u.away AS nearest_difference", "u.days AS nearest_days"]
    told = matching.engine.stream(f"SELECT {', '.join(columns)} FROM {breaks} AS u ORDER BY u._id")
    rows = BreakRows(read, told)
    return parts.write(f"unmatched_{side}", rows.schema, rows.batches(), folder)


def _rule_name(matching: Matching) -> str:
    names = [(plan.number, plan.rule.name.replace("'", "''")) for plan in matching.plans]
    if not names:
        return "CAST(NULL AS VARCHAR)"
    cases = " ".join(f"WHEN {number} THEN '{name}'" for number, name in names)
    return f"CASE u.n {cases} ELSE NULL END"


def _rule(matching: Matching, linked: Linked) -> dict[str, Any]:
    """Where a rule is one to one its links are counted as they are: a record that is there twice would not tie."""
    once = "" if linked.pattern in ("1:1", "manual") else "DISTINCT "
    counts = f"COUNT({once}g), COUNT({once}l), COUNT({once}r), SUM(CASE WHEN ambiguous THEN 1 ELSE 0 END)"
    [(groups, left, right, ambiguous)] = matching.engine.rows(f"SELECT {counts} FROM {linked.rows} AS m")
    return {
        "name": linked.name,
        "pattern": linked.pattern,
        "matches": groups,
        "left": left,
        "right": right,
        "ambiguous": int(ambiguous or 0),
        "amounts": {side: _flat(_amounts(matching, side, _records(matching, linked, side, once))) for side in SIDES},
    }


def _totals(
    matching: Matching, side: SideName, breaks: str, read: int, rules: Sequence[Mapping[str, Any]]
) -> SideTotals:
    """What the rules matched and what is left, each counted for itself."""
    counted = dict(matching.engine.rows(f"SELECT reason, COUNT(*) FROM {breaks} GROUP BY reason"))
    nulls = " OR ".join(f"{key} IS NULL" for key in matching.carried.side(side).keys)
    [(null_keys,)] = matching.engine.rows(f"SELECT COUNT(*) FROM {side[0]} WHERE {nulls}")
    amounts = {
        "total": _amounts(matching, side, side[0]),
        "matched": _summed([rule["amounts"][side] for rule in rules]),
        "unmatched": _amounts(matching, side, breaks),
    }
    return SideTotals(
        rows=read,
        matched=sum(rule[side] for rule in rules),
        unmatched=sum(counted.values()),
        null_keys=null_keys,
        amounts={name: _flat(found) for name, found in amounts.items()},
        reasons={reason: counted[reason] for reason in reasons.REASONS if reason in counted},
    )


def _summed(amounts: Sequence[Mapping[str, str]]) -> dict[str, Decimal]:
    names = {name for each in amounts for name in each}
    return {name: sum((Decimal(each.get(name, "0")) for each in amounts), Decimal(0)) for name in names}


def _records(matching: Matching, linked: Linked, side: SideName, once: str) -> str:
    """The records of a side that a rule linked, with what is totalled of them."""
    me, totals = side[0], matching.carried.side(side).totals
    if not linked.carries:
        return f"{me} JOIN (SELECT {once}{me} AS id FROM {linked.rows} AS m) AS a ON a.id = {me}._id"
    chosen = ", ".join([me, *(f"{me}{name} AS {name}" for name in totals)])
    return f"(SELECT {once}{chosen} FROM {linked.rows} AS n) AS m"


def _amounts(matching: Matching, side: SideName, records: str) -> dict[str, Decimal]:
    """Sums by currency."""
    kept = matching.carried.side(side)
    if kept.amount is None:
        return {}
    by, group = ("''", "") if kept.currency is None else (kept.currency, f" GROUP BY {kept.currency}")
    found = matching.engine.rows(f"SELECT {by}, SUM({kept.amount}) FROM {records}{group}")
    sums: dict[str, Decimal] = {}
    for name, total in found:
        sums[str(name or "")] = sums.get(str(name or ""), Decimal(0)) + Decimal(total or 0)
    return sums


def _flat(sums: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: f"{sums[name]:f}" for name in sorted(sums)}


def _check_tied(side: SideName, totals: SideTotals) -> None:
    if totals.matched + totals.unmatched != totals.rows:
        raise TotalsDiffer(
            f"Of {totals.rows} records of the {side} side {totals.matched} are matched and {totals.unmatched} are not.",
            hint="This is a fault of Penstock; please report it with the recipe.",
        )
    for currency, total in totals.amounts["total"].items():
        parts_of = [Decimal(totals.amounts[name].get(currency, "0")) for name in ("matched", "unmatched")]
        if sum(parts_of) != Decimal(total):
            raise TotalsDiffer(f"The amounts of the {side} side do not tie: {total} in all, {sum(parts_of)} in parts.")
