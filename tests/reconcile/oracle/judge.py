"""Runs one data set on every engine and on the reference matcher, and yields the differences as
text."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engines.contract import EngineLimits
from penstock.engines.registry import ENGINES
from penstock.reconcile.errors import BadValue, RecipeInvalid, RuleFailed
from penstock.reconcile.matching.decided import Decided
from penstock.reconcile.matching.execution import Executed, Execution
from penstock.reconcile.matching.matcher import MatchLimits
from penstock.reconcile.recipes import validation
from tests.reconcile.oracle.matcher import Answer, FreeMatcher, Matcher
from tests.reconcile.oracle.values import Refused, day, number, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.reconcile.oracle.books import Book
    from tests.reconcile.oracle.values import Side

_ESCAPED = re.compile("[\x1f\N{SYMBOL FOR NULL}\N{SYMBOL FOR ESCAPE}]")
MOST_EXACT = 12
"""Clusters that trying everything can settle; in books with larger ones this is the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one run wrote: rows by table, and the digests of its files."""

    executed: Executed
    tables: Mapping[str, pa.Table]

    @property
    def digests(self) -> list[tuple[str, str]]:
        return [(file.name, file.sha256) for file in self.executed.evidence.files]


def differences(book: Book, folder: Path) -> list[str]:
    """Where the matcher and the plain one differ; nothing where they agree."""
    limits = [
        MatchLimits(exact_cluster=_exact(book)),
        MatchLimits(exact_cluster=_exact(book), at_once=0, examined_at_once=0),
    ]
    answer = answer_of(book)
    runs: dict[str, Evidence | str] = {}
    for number_of_run, engine in enumerate(sorted(ENGINES)):
        at = folder / engine
        settled = limits[(book.seed + number_of_run) % 2]
        runs[engine] = _run(book, at, engine, settled, book.pieces if number_of_run else 1)
    return [
        f"{engine}: {sentence}"
        for engine, run in runs.items()
        for sentence in _compared(book, answer, run)
    ] + list(_alike(runs))


def _exact(book: Book) -> int:
    return MOST_EXACT if book.seed % 3 else 5


def answer_of(book: Book) -> Answer | Refused:
    """What the guide says of a book."""
    matcher = Matcher(book.document, book.left, book.right, exact_cluster=_exact(book))
    if "match_sql" in book.document:
        matcher = FreeMatcher(book.document, book.left, book.right, book.conditions)
    try:
        return matcher.run(book.match, book.unmatch)
    except Refused as e:
        return e


def _run(book: Book, folder: Path, engine: str, limits: MatchLimits, pieces: int) -> Evidence | str:
    folder.mkdir(parents=True)
    files: dict[Any, list[Path]] = {
        side.name: _written(side, folder, pieces) for side in (book.left, book.right)
    }
    written = [_decisions(pairs) for pairs in (book.match, book.unmatch)]
    execution = Execution(
        recipe=validation.read(book.document),
        files=files,
        scratch=folder / "scratch",
        engine=engine,
        limits=EngineLimits(memory_bytes=256 * 1024**2, threads=1),
        match_limits=limits,
        decided=Decided(match=written[0], unmatch=written[1]),
    )
    try:
        executed = execution.run()
    except BadValue as e:
        return f"refused {e.details['side']} {e.details['column']}"
    except (RecipeInvalid, RuleFailed) as e:
        return f"refused {e.message}"
    names = {file.table for file in executed.evidence.files}
    return Evidence(
        executed=executed,
        tables={
            name: pa.concat_tables(
                [pq.read_table(f.path) for f in executed.evidence.files if f.table == name]
            )
            for name in names
        },
    )


def _decisions(pairs: Sequence[tuple[Any, Any]]) -> list[tuple[list[str], list[str]]]:
    """Pairs of keys as texts; a key with a null names no record, and cannot be decided about."""
    return [(_texts(a), _texts(b)) for a, b in pairs if None not in a and None not in b]


def _texts(key: Sequence[Any]) -> list[str]:
    """A key as the interface shows it."""
    return [_shown(part) for part in key]


def _shown(part: Any) -> str:
    if isinstance(part, bytes):
        return part.hex()
    if isinstance(part, str):
        return _ESCAPED.sub("\N{SYMBOL FOR ESCAPE}\\g<0>", part).replace(
            "\x1f", "\N{SYMBOL FOR UNIT SEPARATOR}"
        )
    return str(part.isoformat() if hasattr(part, "isoformat") else part)


def _written(side: Side, folder: Path, pieces: int) -> list[Path]:
    arrays = [pa.array([row[field.name] for row in side.rows], field.type) for field in side.schema]
    table = pa.Table.from_arrays(arrays, schema=side.schema)
    step = -(-len(table) // pieces) or 1
    files = []
    for start in range(0, max(len(table), 1), step):
        files.append(folder / f"{side.name}-{start}.parquet")
        pq.write_table(table.slice(start, step), files[-1])
    return files


def _compared(book: Book, answer: Answer | Refused, run: Evidence | str) -> Iterator[str]:
    if isinstance(answer, Refused) or isinstance(run, str):
        may_refuse = isinstance(answer, Refused) or answer.large_sums
        if not (may_refuse and isinstance(run, str)):
            shown = run if isinstance(run, str) else "a result"
            right = (
                f"{answer} should be refused"
                if isinstance(answer, Refused)
                else "a result is right"
            )
            yield f"{shown} where {right}"
        return
    with localcontext(prec=200):
        yield from _matches(book, answer, run)
        for side in (book.left, book.right):
            yield from _breaks(book, side, answer, run)
            yield from _totals(book, side, answer, run)
        yield from _duplicates(answer, run)
        yield from _rules(answer, run)


def _matches(book: Book, answer: Answer, run: Evidence) -> Iterator[str]:
    uids = {side.name: side.uid for side in (book.left, book.right)}
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in run.tables["matched"].to_pylist():
        groups.setdefault((row["match_id"], row["rule"], row["pattern"]), []).append(row)
    written = Counter(
        (
            rule,
            pattern,
            *(frozenset(row[f"{s}_{uids[s]}"] for row in rows) - {None} for s in ("left", "right")),
            any(row["ambiguous"] for row in rows),
        )
        for (_, rule, pattern), rows in groups.items()
    )
    expected = Counter(
        (
            match.rule,
            match.pattern,
            frozenset(book.left.rows[place][uids["left"]] for place in match.left),
            frozenset(book.right.rows[place][uids["right"]] for place in match.right),
            match.ambiguous,
        )
        for match in answer.matches
    )
    for what, more in (("is missing", expected - written), ("is too much", written - expected)):
        for match in list(more)[:3]:
            yield f"match {match} {what}"
    flagged = sum(row["ambiguous"] for row in run.tables["matched"].to_pylist())
    if flagged != len(run.tables["ambiguous"]):
        yield f"{flagged} rows are ambiguous, {len(run.tables['ambiguous'])} are in that table"
    yield from _carried(book, run, uids)


def _carried(book: Book, run: Evidence, uids: Mapping[str, str]) -> Iterator[str]:
    """Every value of a record that matched evidence shows is the one that was read, with its
    type."""
    for side in (book.left, book.right):
        by_uid = {row[uids[side.name]]: row for row in side.rows}
        shown = [
            name for name in run.tables["matched"].column_names if name.startswith(f"{side.name}_")
        ]
        for name in shown:
            own = name.removeprefix(f"{side.name}_")
            if run.tables["matched"].schema.field(name).type != side.type(own):
                yield (
                    f"{name} is a {run.tables['matched'].schema.field(name).type}, "
                    f"not {side.type(own)}"
                )
        for row in run.tables["matched"].to_pylist():
            uid = row[f"{side.name}_{uids[side.name]}"]
            for name in shown:
                own = name.removeprefix(f"{side.name}_")
                expected = None if uid is None else by_uid[uid][own]
                if not _is_same(row[name], expected):
                    yield f"{name} of record {uid} is {row[name]!r}, not {expected!r}"
    yield from _compared_fields(book, run, uids)


def _is_same(shown: Any, read: Any) -> bool:
    """NaN is shown as it was read."""
    return bool(shown == read) or (shown != shown and read != read)


def _compared_fields(book: Book, run: Evidence, uids: Mapping[str, str]) -> Iterator[str]:
    zone = book.document.get("time_zone", "UTC")
    rows = {
        side.name: {row[uids[side.name]]: row for row in side.rows}
        for side in (book.left, book.right)
    }
    for pair in book.document.get("compare", ()):
        kinds = {book.left.kind(pair["left"]), book.right.kind(pair["right"])}
        for row in run.tables["matched"].to_pylist():
            a, b = (rows[s].get(row[f"{s}_{uids[s]}"]) for s in ("left", "right"))
            expected: Any = None
            if a is not None and b is not None:
                expected = _difference(book, pair, kinds, (a, b), zone)
            written = row[f"diff_{pair['name']}"]
            if written != expected:
                yield f"diff_{pair['name']} is {written!r}, not {expected!r}"


def _difference(
    book: Book,
    pair: Mapping[str, str],
    kinds: set[str],
    rows: tuple[dict[str, Any], dict[str, Any]],
    zone: str,
) -> Any:
    sides = zip((book.left, book.right), rows, strict=True)
    if kinds == {"number"}:
        a, b = (number(side, pair[side.name], row, 0, 200) for side, row in sides)
        return None if a is None or b is None else b - a
    if kinds <= {"date", "moment"}:
        x, y = (day(side, pair[side.name], row, zone) for side, row in sides)
        return None if x is None or y is None else y - x
    one, other = (text(row[pair[side.name]]) for side, row in sides)
    return None if one is None or other is None else "" if one == other else f"{one} → {other}"


def _breaks(book: Book, side: Side, answer: Answer, run: Evidence) -> Iterator[str]:
    table = run.tables[f"unmatched_{side.name}"]
    own, ours = table.column_names[: len(side.schema)], table.column_names[len(side.schema) :]
    if len(set(table.column_names)) != len(table.column_names):
        yield f"unmatched_{side.name} has a column twice: {table.column_names}"
        return
    uid = own[side.schema.names.index(side.uid)]
    expected = {
        side.rows[place][side.uid]: (place, why) for place, why in answer.breaks[side.name].items()
    }
    written = table.to_pylist()
    if sorted(row[uid] for row in written) != sorted(expected):
        yield (
            f"unmatched_{side.name} has {sorted(row[uid] for row in written)}, "
            f"not {sorted(expected)}"
        )
        return
    nearest = [name for name in ours[2:] if name not in ("nearest_difference", "nearest_days")]
    for row in written:
        place, why = expected[row[uid]]
        for name, source in zip(own, side.schema.names, strict=True):
            if not _is_same(row[name], side.rows[place][source]):
                yield (
                    f"{name} of break {row[uid]} is {row[name]!r}, not {side.rows[place][source]!r}"
                )
        keys = tuple(row[name] for name in nearest)
        shown = (row[ours[0]], row[ours[1]], keys, row["nearest_difference"], row["nearest_days"])
        right = (why.reason, why.rule, why.nearest or (None,) * len(keys), why.difference, why.days)
        if shown != right:
            yield f"{side.name} break {row[uid]} is {shown}, not {right}"


def _totals(book: Book, side: Side, answer: Answer, run: Evidence) -> Iterator[str]:
    totals = run.executed.evidence.sides[side.name]
    breaks = answer.breaks[side.name]
    matched = {place for match in answer.matches for place in getattr(match, side.name)}
    counts = (totals.rows, totals.matched, totals.unmatched)
    if counts != (len(side.rows), len(matched), len(breaks)):
        yield (
            f"totals of {side.name} are {counts}, not {(len(side.rows), len(matched), len(breaks))}"
        )
    if dict(totals.reasons) != dict(Counter(why.reason for why in breaks.values())):
        yield f"reasons of {side.name} are {totals.reasons}"
    nulls = sum(any(row[name] is None for name in side.key) for row in side.rows)
    if totals.null_keys != nulls:
        yield f"{totals.null_keys} keys of {side.name} have nulls, not {nulls}"
    pair = Matcher(book.document, book.left, book.right, exact_cluster=0).totalled()
    places = {"total": set(range(len(side.rows))), "matched": matched, "unmatched": set(breaks)}
    for name, those in places.items() if pair is not None else ():
        expected = _amounts(book, side, pair[side.name], those)
        written = {currency: Decimal(amount) for currency, amount in totals.amounts[name].items()}
        if {c: a for c, a in written.items() if a} != {c: a for c, a in expected.items() if a}:
            yield f"{name} amounts of {side.name} are {written}, not {expected}"


def _amounts(book: Book, side: Side, column: str, places: set[int]) -> dict[str, Decimal]:
    currency = book.document["output"].get("currency", {}).get(side.name)
    sums: dict[str, Decimal] = {}
    for place in places:
        row = side.rows[place]
        name = "" if currency is None else row[currency] or ""
        sums[name] = sums.get(name, Decimal(0)) + (number(side, column, row, 0, 200) or Decimal(0))
    return sums


def _duplicates(answer: Answer, run: Evidence) -> Iterator[str]:
    written = {
        (row["side"], tuple(json.loads(row["key"]))): row["count"]
        for row in run.tables["duplicates"].to_pylist()
    }
    expected = {
        (side, key): count
        for side, keys in answer.duplicates.items()
        for key, count in keys.items()
    }
    if written != expected:
        yield f"duplicates are {written}, not {expected}"


def _rules(answer: Answer, run: Evidence) -> Iterator[str]:
    for rule in run.executed.evidence.rules:
        matches = [match for match in answer.matches if match.rule == rule["name"]]
        left, right = (
            {place for m in matches for place in getattr(m, side)} for side in ("left", "right")
        )
        expected = (len(matches), len(left), len(right))
        if (rule["matches"], rule["left"], rule["right"]) != expected:
            yield (
                f"{rule['name']} made {(rule['matches'], rule['left'], rule['right'])}, "
                f"not {expected}"
            )
        if rule["greedy_clusters"] != answer.greedy_clusters.get(rule["name"], 0):
            yield f"{rule['name']} settled {rule['greedy_clusters']} clusters greedily"


def _alike(runs: Mapping[str, Evidence | str]) -> Iterator[str]:
    first, *others = runs.items()
    for name, other in others:
        if isinstance(first[1], str) or isinstance(other, str):
            if not (isinstance(first[1], str) and isinstance(other, str)):
                yield f"{first[0]} {first[1]!r:.200}, {name} {other!r:.200}"
        elif first[1].digests != other.digests:
            changed = [a[0] for a, b in zip(first[1].digests, other.digests, strict=True) if a != b]
            yield f"{first[0]} and {name} wrote other bytes: {changed}"
