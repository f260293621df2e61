"""Generated match_sql expressions on every engine, compared with their evaluation in Python."""

from __future__ import annotations

import math
import random
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from penstock.engines.contract import EngineLimits
from penstock.engines.errors import EngineQueryError
from penstock.engines.registry import ENGINES, open_engine
from penstock.guard.errors import SqlRefused
from penstock.reconcile.match_sql.queries import compiled
from penstock.reconcile.matching.column import columns
from tests.reconcile.oracle.expressions import Failed, Generator, Piece, rows, table

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.engines.contract import Engine

PER_SEED = 25
FAILS = "fails"
_LIMITS = EngineLimits(memory_bytes=256 * 1024**2, threads=1)


@dataclass(slots=True, kw_only=True)
class Tally:
    """How many expressions were computed, ended the run, and were refused."""

    computed: int = 0
    failed: int = 0
    refused: int = 0


def differences(seed: int, folder: Path, tally: Tally) -> list[str]:
    """Where an engine and Python differ about the expressions of one seed."""
    chance = random.Random(seed)
    values = table(chance)
    pq.write_table(values, folder / "rows.parquet")
    generator, sentences = Generator(chance), []
    with ExitStack() as stack:
        engines: list[Engine] = []
        for name in sorted(ENGINES):
            (folder / name).mkdir()
            engine = stack.enter_context(open_engine(name, folder / name, _LIMITS))
            for side in ("left", "right"):
                schema = engine.relation(f"{side}_rows", [folder / "rows.parquet"])
            engines.append(engine)
        schema_columns = columns(schema)
        for _ in range(PER_SEED):
            piece = generator.any_sort(chance.randint(1, 3))
            sql = f"SELECT id, {piece.sql} AS v FROM left_src"
            texts = [_compiled(sql, engine, schema_columns) for engine in engines]
            if any(text is None for text in texts):
                tally.refused += 1
                sentences += [] if texts == [None, None] else [f"refused by one engine: {sql}"]
                continue
            records = rows(values)
            lenient = [{**row, "lenient": True} for row in records]
            meant = _meant(piece, records)
            tally.failed += meant == FAILS
            tally.computed += meant != FAILS
            for engine, text in zip(engines, texts, strict=True):
                answer = _answer(engine, text or "")
                if answer != meant and answer != _meant(piece, lenient):
                    first = _first(answer, meant)
                    sentences.append(f"{engine.name}: {piece.sql}: {first}")
    return sentences


def _compiled(sql: str, engine: Engine, schema_columns: Any) -> str | None:
    try:
        return compiled(
            sql, engine.dialect, "UTC", {"left": schema_columns, "right": schema_columns}
        ).sql
    except SqlRefused:
        return None


def _meant(piece: Piece, records: list[dict[str, Any]]) -> list[str] | str:
    try:
        return [_plain(piece.of(row)) for row in records]
    except Failed:
        return FAILS


def _answer(engine: Engine, sql: str) -> list[str] | str:
    try:
        answer = engine.stream(f"SELECT * FROM ({sql}) AS q").read_all()
    except EngineQueryError:
        return FAILS
    order = answer.column(0).to_pylist()
    values = dict(zip(order, answer.column(1).to_pylist(), strict=True))
    return [_plain(values[number]) for number in range(len(order))]


def _plain(value: Any) -> str:
    """A value so that equal ones are written alike."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, int | Decimal):
        exact = Decimal(value)
        return f"{exact.normalize():f}" if exact else "0"
    return f"{value}"


def _first(answer: list[str] | str, meant: list[str] | str) -> str:
    if isinstance(answer, str) or isinstance(meant, str):
        return f"{str(answer)[:60]} instead of {str(meant)[:60]}"
    place = next(n for n, (a, b) in enumerate(zip(answer, meant, strict=True)) if a != b)
    return f"row {place} is {answer[place]!r} instead of {meant[place]!r}"
