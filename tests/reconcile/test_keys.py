"""Keys as text: the same on every engine, distinct for distinct keys, and parsed back by
decisions."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engines.registry import ENGINES
from penstock.reconcile.errors import BadDecision
from penstock.reconcile.matching.decided import Decided
from penstock.reconcile.matching.execution import Executed, Execution
from penstock.reconcile.matching.keys import NULL, SEPARATOR
from penstock.reconcile.recipes import validation
from penstock.reconcile.runs.aging import CLEARED, OPEN
from tests.reconcile.book_runs import document, rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ESCAPE = "\u241b"
SECONDS = [0, -1, 1, 1_706_702_400, 253_402_300_799, 253_402_300_800, -62_135_596_800]
SECONDS += [
    -62_135_596_801,
    -62_167_219_200,
    -62_167_219_201,
    9_000_000_000_000,
    -9_000_000_000_000,
]
DAYS = [0, -1, -719_162, -719_163, -719_528, -719_529, 2_932_896, 2_932_897, -800_000]
DAYS += [-(2**31), 1 - 2**31, 2 - 2**31, 2**31 - 2, 2**31 - 1]
TEXTS = ["", " ", "a", "A", "a ", "\u00e9", "e\u0301", SEPARATOR, f"a{SEPARATOR}b", ESCAPE, NULL]
TEXTS += [f"{ESCAPE}{ESCAPE}", f"{ESCAPE}{NULL}", f"{ESCAPE}\u241f", "\u241f", "\x00", "a\x00", "'"]
TEXTS += [
    '"',
    "null",
    "None",
    "\\",
    "\u2028",
    "\U0001f468\u200d\U0001f469",
    "1",
    "01",
    "1.0",
    "%",
    "_",
]
_ANY_UNIT = {"s": 1, "ms": 10**3, "us": 10**6}


def moments(unit: str, zone: str | None) -> pa.Array:
    ticks = [seconds * _ANY_UNIT[unit] for seconds in SECONDS]
    ticks += [] if unit == "s" else [1, -1]
    ticks += [2**63 - 1, 2**63 - 2, 1 - 2**63, -(2**63)] if unit == "us" else []
    return pa.array(dict.fromkeys(ticks), pa.timestamp(unit, zone))


KEYS: dict[str, pa.Array] = {
    "text": pa.array(TEXTS),
    "large text": pa.array(TEXTS, pa.large_string()),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "boolean": pa.array([True, False]),
    **{
        f"{kind}": pa.array([0, 1, low, high], kind)
        for kind, low, high in (
            (pa.int8(), -128, 127),
            (pa.int16(), -(2**15), 2**15 - 1),
            (pa.int32(), -(2**31), 2**31 - 1),
            (pa.int64(), -(2**63), 2**63 - 1),
            (pa.uint8(), 2, 255),
            (pa.uint64(), 2**63, 2**64 - 1),
        )
    },
    **{
        f"decimal {digits} {scale}": pa.array(
            [Decimal(f"{unscaled}E-{scale}") for unscaled in (0, 1, -1, 10, 10**digits - 1)],
            pa.decimal128(digits, scale),
        )
        for digits, scale in ((5, 0), (18, 2), (28, 28), (37, 37), (38, 0), (38, 10), (38, 38))
    },
    "decimal 40 2": pa.array([Decimal("1.50"), Decimal("-0.01"), Decimal(0)], pa.decimal256(40, 2)),
    "decimal 50 40": pa.array(
        [Decimal("1E-40"), Decimal("-1E-7"), Decimal(0)], pa.decimal256(50, 40)
    ),
    "half": pa.array([0.1, -0.0, 65504.0, float("inf")], pa.float32()).cast(pa.float16()),
    "float": pa.array([0.1, 0.0, 1e-45, 3e38, float("nan"), float("-inf")], pa.float32()),
    "double": pa.array(
        [0.1, 0.30000000000000004, -0.0, 5e-324, 1e308, 1e22, float("nan"), float("inf")]
    ),
    "bytes": pa.array([b"", b"\x00", b"\x00\xff", b"a"]),
    "large bytes": pa.array([b"", b"\x00\xff"], pa.large_binary()),
    "fixed bytes": pa.array([b"\x00" * 16, b"0123456789abcdef"], pa.binary(16)),
    "uuid": pa.array([b"\x00" * 16, b"0123456789abcdef"], pa.uuid()),
    "date": pa.array(DAYS, pa.date32()),
    "date64": pa.array([day * 86_400_000 for day in DAYS], pa.date64()),
    "time s": pa.array([0, 1, 86_399], pa.time32("s")),
    "time ms": pa.array([0, 1, 86_399_999], pa.time32("ms")),
    "time us": pa.array([0, 1, 10, 86_399_999_999], pa.time64("us")),
    "time ns": pa.array([0, 1, 1000, 86_399_999_999_999], pa.time64("ns")),
    **{
        f"moment {unit} {zone}": moments(unit, zone)
        for unit in _ANY_UNIT
        for zone in (None, "UTC", "Europe/Vienna", "+05:30")
    },
    "moment ns": pa.array([0, 1, -1, 1000, 2**63 - 1, 1 - 2**63], pa.timestamp("ns")),
    "moment ns zoned": pa.array([0, 1, -1, 2**63 - 1], pa.timestamp("ns", "America/New_York")),
}


def run(
    folder: Path,
    engine: str,
    left: pa.Table,
    right: pa.Table,
    keys: Sequence[str],
    **options: Any,
) -> Executed:
    folder.mkdir()
    files: dict[Any, list[Path]] = {}
    for name, table in (("left", left), ("right", right)):
        files[name] = [folder / f"{name}.parquet"]
        pq.write_table(table, files[name][0])
    rule = {"name": "never", "conditions": [{"left": "n", "op": "eq", "right": "other"}]}
    output = {"columns": {"left": ["n"], "right": ["n"]}}
    recipe = document(list(keys), list(keys), rules=[rule], output=output)
    return Execution(
        recipe=validation.read(recipe), files=files, scratch=folder / "s", engine=engine, **options
    ).run()


def open_keys(done: Executed, side: str) -> list[str]:
    tables = [pq.read_table(file.path) for file in done.aged if file.table == OPEN]
    return [row["key"] for row in pa.concat_tables(tables).to_pylist() if row["side"] == side]


def numbered(**keys: pa.Array) -> pa.Table:
    count = len(next(iter(keys.values())))
    return pa.table(keys | {"n": range(count), "other": range(1000, 1000 + count)})


@pytest.mark.parametrize("what", KEYS)
def test_a_decision_by_the_key_of_an_open_item_names_its_record(tmp_path: Path, what: str) -> None:
    """By every key; each record has its own, whichever engine wrote it or reads it."""
    table = numbered(k=KEYS[what])
    count = table.num_rows
    texts = {}
    for engine in ENGINES:
        opened = run(tmp_path / engine, engine, table, table, ["k"], run_id=1)
        texts[engine] = open_keys(opened, "left")
        assert len(set(texts[engine])) == count
    assert len({tuple(keys) for keys in texts.values()}) == 1
    decided = Decided(match=[([key], [key]) for key in texts["duckdb"]])
    before = [file.path for file in opened.aged if file.table == OPEN]
    for engine in ENGINES:
        folder = tmp_path / f"{engine} decided"
        done = run(folder, engine, table, table, ["k"], decided=decided, run_id=2, before=before)
        matched = [pq.read_table(f.path) for f in done.evidence.files if f.table == "matched"]
        pairs = pa.concat_tables(matched).select(["rule", "left_n", "right_n"]).to_pylist()
        assert sorted(tuple(pair.values()) for pair in pairs) == [
            ("manual", n, n) for n in range(count)
        ]
        cleared = [pq.read_table(file.path) for file in done.aged if file.table == CLEARED]
        assert pa.concat_tables(cleared).column("outcome").to_pylist() == ["matched"] * 2 * count


def test_keys_of_several_values_read_back_too(tmp_path: Path, engine: str) -> None:
    pairs = [(a, b) for a in TEXTS[:12] for b in (*TEXTS[:12], None)]
    table = numbered(a=pa.array([a for a, _ in pairs]), b=pa.array([b for _, b in pairs]))
    opened = run(tmp_path / "open", engine, table, table, ["a", "b"], run_id=1)
    keys = open_keys(opened, "left")
    assert len(set(keys)) == len(pairs)
    named = [key.split(SEPARATOR) for key in keys if not key.endswith(f"{SEPARATOR}{NULL}")]
    assert len(named) == 12 * 12
    decided = Decided(match=[(key, key) for key in named])
    done = run(tmp_path / "decided", engine, table, table, ["a", "b"], decided=decided)
    matched = [row for row in rows(done, "matched") if row["rule"] == "manual"]
    assert len(matched) == len(named)
    assert all(row["left_n"] == row["right_n"] for row in matched)


def test_zeros_of_both_signs_are_one_key(tmp_path: Path, engine: str) -> None:
    left, right = numbered(k=pa.array([-0.0, 1.0])), numbered(k=pa.array([2.0, 0.0]))
    for number, key in enumerate(("0", "-0.0", "0.0", "0e5")):
        decided = Decided(match=[([key], [key])])
        done = run(tmp_path / str(number), engine, left, right, ["k"], decided=decided)
        assert [(row["left_n"], row["right_n"]) for row in rows(done, "matched")] == [(0, 1)]


UNREADABLE: list[tuple[pa.DataType, str]] = [
    (pa.int64(), "abc"),
    (pa.int64(), ""),
    (pa.int64(), "1.5"),
    (pa.int64(), str(2**63)),
    (pa.uint8(), "-1"),
    (pa.decimal128(5, 2), "1.005"),
    (pa.decimal128(5, 2), "12345"),
    (pa.decimal128(5, 2), "NaN"),
    (pa.float64(), "one"),
    (pa.bool_(), "yes"),
    (pa.binary(), "0"),
    (pa.binary(2), "00"),
    (pa.date32(), "2024-02-30"),
    (pa.date32(), "2024-1-1"),
    (pa.date32(), "+9999999-01-01"),
    (pa.time32("ms"), "00:00:00.0001"),
    (pa.time64("us"), "24:00:00"),
    (pa.timestamp("ms"), "2024-01-31T12:00:00.0001"),
    (pa.timestamp("ms"), "2024-01-31T12:00:00Z"),
    (pa.timestamp("us", "UTC"), "2024-01-31T12:00:00"),
    (pa.timestamp("ms"), "+300000-01-01T00:00:00"),
    (pa.timestamp("ns"), "2500-01-01T00:00:00"),
    (pa.string(), f"{ESCAPE}x"),
    (pa.string(), f"x{ESCAPE}"),
    (pa.string(), NULL),
]


@pytest.mark.parametrize("kind", ["match", "unmatch"])
@pytest.mark.parametrize(
    ("of", "text"), UNREADABLE, ids=[f"{of} {text[:20]!r}" for of, text in UNREADABLE]
)
def test_a_decision_that_cannot_be_read_stops_the_run(
    tmp_path: Path, of: pa.DataType, text: str, kind: str
) -> None:
    table, other = numbered(k=pa.nulls(1, of)), numbered(k=pa.array(["a"]))
    with pytest.raises(BadDecision, match="left key that cannot be read") as caught:
        run(
            tmp_path / "run",
            "duckdb",
            table,
            other,
            ["k"],
            decided=Decided(**{kind: [([text], ["a"])]}),
        )
    assert caught.value.details["left_key"] == [text]
    assert caught.value.details["side"] == "left"


def test_a_decision_of_another_number_of_values_stops_the_run(tmp_path: Path) -> None:
    table = numbered(k=pa.array(["a"]))
    decided = Decided(unmatch=[(["a"], ["a", "b"])])
    with pytest.raises(BadDecision, match="it has 2 values, but the primary key has 1"):
        run(tmp_path / "run", "duckdb", table, table, ["k"], decided=decided)
