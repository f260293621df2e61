"""match_sql as docs/reference/match-sql.md describes it: the same pairs on every engine, or a
refusal before the run."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.engines.registry import ENGINES
from penstock.guard.errors import SqlRefused
from penstock.kit.errors import InvalidInput
from penstock.reconcile.errors import RuleFailed
from penstock.reconcile.match_sql.functions import NAMES
from penstock.reconcile.recipes import trial, validation
from tests.reconcile.book_runs import digests, document, execute, rows

if TYPE_CHECKING:
    from penstock.reconcile.recipes.model import SideName

HALF_PAST_ELEVEN = 1_706_743_800_000_000
"""2024-01-31 23:30, in microseconds since 1970."""
LEFT = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        "i": pa.array([7, 5, None, 0, 7, 2**63 - 1], pa.int64()),
        "d": pa.array(
            [Decimal("99.50"), Decimal("-0.50"), None, Decimal(0), Decimal("1.25"), Decimal(7)],
        ),
        "f": pa.array([0.5, float("nan"), -0.0, 0.0, None, 1e300]),
        "s": ["STRASSE", "İx", "ΟΔΟΣ", "a", "a", None],
        "n": ["1", "01", "x", " 2", "3.5", None],
        "day": pa.array([date(2024, 1, 31), date(2024, 2, 29), None, *[date(2024, 3, 1)] * 3]),
        "ts": pa.array([HALF_PAST_ELEVEN] * 3 + [None] * 3, pa.int64()).cast(pa.timestamp("us")),
        "tz": pa.array([HALF_PAST_ELEVEN] * 3 + [None] * 3, pa.int64()).cast(
            pa.timestamp("us", "UTC"),
        ),
        "b": [True, False, None, True, False, True],
        "items": pa.array([[1], [], None, [2], [3], [4]], pa.list_(pa.int64())),
    }
)
RIGHT = LEFT
JOIN = (
    "SELECT l.id AS left_id, r.id AS right_id FROM left_src l"
    " JOIN right_src r ON l.id = r.id WHERE "
)


def ids(executed: Any) -> list[tuple[int, int]]:
    return sorted((row["left_id"], row["right_id"]) for row in rows(executed, "matched"))


def pairs(
    folder: Path,
    sql: str,
    left: pa.Table = LEFT,
    right: pa.Table = RIGHT,
    **more: Any,
) -> list[tuple[int, int]]:
    """The pairs, which every engine returns, with the same bytes of evidence."""
    recipe = document(match_sql=sql, match_pattern="M:N", **more)
    done = [execute(folder / name, recipe, left, right, engine=name) for name in sorted(ENGINES)]
    assert digests(done[0]) == digests(done[1])
    return ids(done[0])


CONDITIONS = {
    "l.i / 2 = 3.5": [1, 5],
    "l.i // 2 = 3": [1, 5],
    "l.i % 2 = 1": [1, 2, 5, 6],
    "CAST(l.d AS INTEGER) = 100": [1],
    "CAST(l.d AS INTEGER) = -1": [2],
    "lower(l.s) = 'οδοσ'": [3],
    "upper(l.s) = 'ΟΔΟΣ'": [3],
    "9223372036854775807 + l.i > 9223372036854775807": [1, 2, 5, 6],
    "l.f = CAST('NaN' AS DOUBLE)": [2],
    "l.f = 0": [3, 4],
    "year(l.day) = 2024 AND extract(quarter FROM l.day) = 1": [1, 2, 4, 5, 6],
    "date_diff('month', l.day, DATE '2024-03-01') = 2": [1],
    "l.day + 1 = DATE '2024-03-01'": [2],
    "CAST(l.ts AS VARCHAR) = '2024-01-31T23:30:00.000000'": [1, 2, 3],
    "CAST(l.ts AS DATE) = DATE '2024-01-31'": [1, 2, 3],
    "TRY_CAST(l.n AS INTEGER) = 1": [1, 2],
    "l.s LIKE '%TR_S%'": [1],
    "regexp_matches(l.n, '^\\d+$')": [1, 2],
    "l.i IN (7, 0)": [1, 4, 5],
    "l.b IS NOT TRUE": [2, 3, 5],
    "l.items IS NULL": [3],
    "CASE l.i WHEN 7 THEN 'seven' ELSE l.s END = 'seven'": [1, 5],
    "if(l.b, l.i, 1) = 1": [2, 3, 5],
    "l.d = 1.25": [5],
    "sign(l.d) = -1": [2],
    "l.day > CAST(TIMESTAMP '2024-02-01 00:00:00' AS DATE)": [2, 4, 5, 6],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_holds_for_the_same_records_on_every_engine(
    tmp_path: Path,
    condition: str,
) -> None:
    matched = pairs(tmp_path, JOIN + condition)
    assert [left for left, _ in matched] == CONDITIONS[condition]


@pytest.mark.parametrize(("zone", "day"), [("UTC", 31), ("Europe/Vienna", 1)])
def test_a_timestamp_with_a_zone_is_cast_to_the_day_of_the_recipe_s_zone(
    tmp_path: Path,
    zone: str,
    day: int,
) -> None:
    shown = date(2024, 1, 31) if day == 31 else date(2024, 2, 1)
    sql = f"{JOIN}CAST(l.tz AS DATE) = DATE '{shown}' AND day(l.tz) = {day}"
    assert len(pairs(tmp_path, sql, time_zone=zone)) == 3


QUERIES = {
    "the greatest of each group": (
        "WITH best AS (SELECT s, max(i) AS most FROM left_src GROUP BY s)"
        " SELECT l.id AS left_id, r.id AS right_id FROM left_src l"
        " JOIN best ON best.s = l.s AND best.most = l.i"
        " JOIN right_src r ON r.id = l.id",
        [(1, 1), (2, 2), (5, 5)],
    ),
    "ranks with nulls last": (
        f"{JOIN} l.id IN (SELECT id FROM (SELECT id, rank() OVER (ORDER BY i DESC) AS k"
        " FROM left_src) AS q"
        " WHERE k <= 2)",
        [(1, 1), (5, 5), (6, 6)],
    ),
    "ties in the order of the rows": (
        "SELECT l.id AS left_id, r.id AS right_id FROM"
        " (SELECT id, row_number() OVER (PARTITION BY b ORDER BY s) AS k, b FROM left_src) AS l"
        " JOIN (SELECT id, row_number() OVER (PARTITION BY b"
        " ORDER BY s) AS k, b FROM right_src) AS r"
        " ON l.k = r.k AND l.b IS NOT DISTINCT FROM r.b",
        [(n, n) for n in range(1, 7)],
    ),
    "the row before": (
        "SELECT q.before AS left_id, q.id AS right_id FROM"
        " (SELECT id, lag(id) OVER (ORDER BY day DESC NULLS FIRST) AS before FROM right_src) AS q"
        " WHERE q.before IS NOT NULL",
        [(2, 1), (3, 4), (4, 5), (5, 6), (6, 2)],
    ),
    "running sums": (
        "SELECT q.id AS left_id, q.id AS right_id FROM"
        " (SELECT id, sum(id) OVER (ORDER BY id) AS total FROM left_src) AS q"
        " WHERE q.total BETWEEN 3 AND 10",
        [(2, 2), (3, 3), (4, 4)],
    ),
    "groups and having": (
        "SELECT min(l.id) AS left_id, max(r.id) AS right_id"
        " FROM left_src l JOIN right_src r USING (s)"
        " GROUP BY s HAVING count(*) > 1 AND count(DISTINCT l.id) = 2",
        [(4, 5)],
    ),
    "groups by an expression that may fail": (
        "SELECT q.id AS left_id, q.id AS right_id"
        " FROM (SELECT CAST(substr(s, 1, 0) || '7' AS INTEGER) AS k,"
        " min(id) AS id FROM left_src WHERE s IS NOT NULL"
        " GROUP BY CAST(substr(s, 1, 0) || '7' AS INTEGER)) AS q",
        [(1, 1)],
    ),
    "unions": (
        "SELECT id AS left_id, id AS right_id FROM left_src WHERE id < 3 UNION ALL"
        " SELECT id, id FROM right_src WHERE id > 5",
        [(1, 1), (2, 2), (6, 6)],
    ),
    "except": (
        "SELECT id AS left_id, id AS right_id FROM left_src EXCEPT SELECT id, id"
        " FROM right_src WHERE b",
        [(2, 2), (3, 3), (5, 5)],
    ),
    "exists": (
        f"{JOIN} NOT EXISTS (SELECT 1 FROM right_src AS x WHERE x.s = l.s AND x.id <> l.id)",
        [(1, 1), (2, 2), (3, 3), (6, 6)],
    ),
    "stars and distinct": (
        "WITH both AS (SELECT l.*, r.id AS other FROM left_src l JOIN right_src r ON l.d = r.d)"
        " SELECT DISTINCT id AS left_id, other AS right_id FROM both",
        [(1, 1), (2, 2), (4, 4), (5, 5), (6, 6)],
    ),
    "a full join using a column": (
        "SELECT l.id AS left_id, r.id AS right_id FROM (SELECT * FROM left_src WHERE id < 3) AS l"
        " FULL JOIN right_src r USING (id) WHERE id <= 4",
        [(1, 1), (2, 2)],
    ),
}


@pytest.mark.parametrize("what", QUERIES)
def test_a_query_returns_the_same_pairs_on_every_engine(tmp_path: Path, what: str) -> None:
    sql, meant = QUERIES[what]
    assert pairs(tmp_path, sql) == meant


REFUSED = {
    "l.i = r.n": (
        "l.i (a whole number) and r.n (text) are of different types",
        "CAST(x AS VARCHAR)",
    ),
    "l.f = r.d": ("are of different types", "CAST(x AS DOUBLE)"),
    "l.day = l.ts": ("are of different types", "DATE"),
    "l.ts = l.tz": ("are of different types", "Cast both to DATE"),
    "l.day = '2024-01-31'": ("are of different types", "DATE '2024-01-31'"),
    "l.b = 1": ("are of different types", "Cast one"),
    "random() < 0.5": ("Function random", "another value in every run"),
    "l.day < now()": ("Function now", "another value in every run"),
    "l.day < current_date": ("CURRENT_DATE", "another value in every run"),
    "power(l.d, 2) = 4": ("Function power", "last digits"),
    "reverse(l.s) = 'a'": ("Function reverse", "as they are"),
    "l.s ILIKE 'a'": ("ILIKE", "lower(a) LIKE"),
    "l.s ~ 'a'": ("~", "regexp_matches"),
    "l.s LIKE r.s": ("written out", "starts_with"),
    "l.s LIKE 'a!b' ESCAPE '!'": ("stands before no", "Double it"),
    "substr(l.s, -1) = 'a'": ("-1 in substr", "Write it out"),
    r"regexp_matches(l.s, '\<a')": ("edge of a word", "reference"),
    "regexp_matches(l.s, l.s)": ("The pattern", "in quotes"),
    "l.i = NULL": ("never true", "IS NULL"),
    "l.i": ("neither true nor false", "comparison"),
    "l.items = r.items": ("only be tested with IS NULL", "source's query"),
    "l.i * l.i * l.i = 1": ("may have 57 digits", "shorter decimals"),
    "sum(l.i) > 1": ("stands where no aggregate may", "HAVING"),
    "row_number() OVER (ORDER BY l.i) = 1": ("stands where no window may", "subquery"),
    "l.id NOT IN (SELECT id FROM right_src)": (
        "never true where the subquery returns a null",
        "NOT EXISTS",
    ),
    "l.i = (SELECT max(i) FROM right_src)": ("subquery inside an expression", "Join it"),
    "(l.id IN (SELECT id FROM right_src) OR l.b)": (
        "subquery inside an expression",
        "joined by AND",
    ),
    "l.day + INTERVAL 1 MONTH > r.day": ("no fixed length", "INTERVAL 3 DAY"),
    "l.nope = 1": ("There is no column l.nope", ""),
    "id = 1": ("several columns id", "l.x"),
    "CAST(l.i AS FLOAT) = 1": ("no cast to", "DOUBLE"),
    "CAST(l.i AS BOOLEAN)": ("cannot be cast", "comparison"),
    "l.s || l.i = 'a'": ("is no text", "CAST(x AS VARCHAR)"),
    "round(l.f, 2) = 1": ("is no number", "CAST(x AS DECIMAL"),
    "l.s COLLATE nocase = 'A'": ("COLLATE", "lower"),
    "l.i & 1 = 1": ("&", "%"),
    "(l.id, l.i) = (1, 2)": ("tuple", "one by one"),
    "substr(l.s) = 'a'": ("takes 2 to 3 arguments", ""),
    "extract(epoch FROM l.ts) = 1": ("no part epoch", "year"),
    "DATE '2024-02-30' = l.day": ("is no DATE", "2024-01-31"),
    "lpad(l.s, 5, '') = 'a'": ("is empty", "character"),
    "l.id = 1 LIMIT 1": ("LIMIT", "row_number"),
    "l.id = 1 ORDER BY 1": ("ORDER", "Leave it out"),
}


@pytest.mark.parametrize("condition", REFUSED)
def test_what_engines_do_not_compute_alike_is_refused_before_the_run(
    tmp_path: Path,
    condition: str,
) -> None:
    expected, hint = REFUSED[condition]
    recipe = document(match_sql=JOIN + condition)
    messages = set()
    for name in sorted(ENGINES):
        with pytest.raises(SqlRefused) as caught:
            execute(tmp_path / name, recipe, LEFT, RIGHT, engine=name)
        messages.add((caught.value.message, caught.value.hint))
    [(message, instead)] = messages
    assert expected in message
    assert hint in (instead or "")


SELECTS = {
    (
        "WITH RECURSIVE a AS (SELECT id FROM left_src) SELECT id AS left_id, id AS right_id FROM a"
    ): "RECURSIVE",
    "SELECT l.id AS left_id, r.id AS right_id FROM left_src l NATURAL JOIN right_src r": "METHOD",
    (
        "SELECT l.id AS left_id, r.id AS right_id FROM left_src l"
        " SEMI JOIN right_src r ON l.id = r.id"
    ): "SEMI",
    "SELECT DISTINCT ON (s) id AS left_id, id AS right_id FROM left_src": "A tuple is not part",
    (
        "SELECT id AS left_id, id AS right_id"
        " FROM left_src QUALIFY row_number() OVER (ORDER BY id) = 1"
    ): "QUALIFY",
    "SELECT id AS left_id, avg(i) AS right_id FROM left_src GROUP BY id": "Function avg",
    "SELECT id AS left_id, sum(f) AS right_id FROM left_src GROUP BY id": "takes exact numbers",
    "SELECT id AS left_id, max(f) AS right_id FROM left_src GROUP BY id": "max takes no f",
    (
        "SELECT id AS left_id, i AS right_id FROM left_src GROUP BY id"
    ): "not what the rows are grouped by",
    "SELECT id AS left_id, sum(i) FILTER (WHERE b) AS right_id FROM left_src GROUP BY id": "FILTER",
    "SELECT id AS left_id, row_number() OVER () AS right_id FROM left_src": "has no order",
    (
        "SELECT id AS left_id, sum(i) OVER (ORDER BY id ROWS 1 PRECEDING) AS right_id FROM left_src"
    ): "frame",
    "SELECT id AS left_id, row_number() OVER (ORDER BY id) AS right_id FROM"
    " (SELECT id FROM left_src UNION ALL SELECT id FROM left_src) AS q": "would have no order",
    (
        "SELECT id AS left_id, id AS right_id FROM left_src UNION SELECT id, s FROM left_src"
    ): "different types",
    "SELECT 1 AS left_id, 2 AS right_id": "no FROM",
    "SELECT id AS left_id, id AS right_id FROM left_src TABLESAMPLE 10 PERCENT": "TABLESAMPLE",
    "SELECT id AS left_id, id AS right_id FROM left_src, LATERAL (SELECT 1) AS q": "LATERAL",
    "SELECT id AS left_id, id AS right_id FROM left_src PIVOT (sum(i) FOR b IN (true))": "PIVOT",
}


@pytest.mark.parametrize("sql", SELECTS)
def test_parts_of_queries_that_are_not_listed_are_refused(tmp_path: Path, sql: str) -> None:
    for name in sorted(ENGINES):
        with pytest.raises(SqlRefused, match=SELECTS[sql]):
            execute(tmp_path / name, document(match_sql=sql), LEFT, RIGHT, engine=name)


def test_a_recipe_s_validation_tells_what_is_refused() -> None:
    recipe = validation.read(document(match_sql=f"{JOIN}l.i = r.n"))
    schemas: dict[SideName, pa.Schema] = {"left": LEFT.schema, "right": RIGHT.schema}
    [fault] = trial.faults(recipe, schemas)
    assert fault.path == "match_sql"
    assert "l.i (a whole number) and r.n (text)" in fault.message
    assert "CAST(x AS VARCHAR)" in fault.suggestion


FAILING = {
    "10 / l.i = 1": "0 is zero, and cannot divide",
    "CAST(l.n AS INTEGER) = 1": "does not fit INTEGER",
    "CAST(l.i AS INTEGER) = 1": "9223372036854775807 does not fit INTEGER",
    "CAST(l.f AS DECIMAL(10, 2)) = 1": "does not fit DECIMAL",
    "CAST(l.s AS DATE) = l.day": "is no DATE such as 2024-01-31",
    "l.day + l.i > r.day": "not between the years 1 and 9999",
    "substr(l.s, l.i) = 'a'": "is no number from 1 to 1000000000 for substr",
    "tolerance_match(l.n, 1, 0)": "x is no number",
    "tolerance_match(l.f, 1, 0)": "is no such number",
    "date_match(l.s, l.day, 1)": "is no date",
}


@pytest.mark.parametrize("condition", FAILING)
def test_a_value_that_cannot_be_computed_ends_the_run_on_every_engine(
    tmp_path: Path,
    condition: str,
) -> None:
    for name in sorted(ENGINES):
        with pytest.raises(RuleFailed, match=FAILING[condition]):
            execute(tmp_path / name, document(match_sql=JOIN + condition), LEFT, RIGHT, engine=name)


KEYS = {
    "whole numbers": pa.array([-(2**63), 0, 2**63 - 1], pa.int64()),
    "small numbers": pa.array([-128, 0, 127], pa.int8()),
    "unsigned numbers": pa.array([0, 1, 2**64 - 1], pa.uint64()),
    "decimals": pa.array(
        [Decimal("0.10"), Decimal("-1.00"), Decimal("99.99")],
        pa.decimal128(12, 2),
    ),
    "long decimals": pa.array([Decimal("1.5"), Decimal(0), Decimal(-2)], pa.decimal256(40, 2)),
    "doubles": pa.array([0.1, -0.0, float("inf")], pa.float64()),
    "floats": pa.array([0.1, 0.0, -2.5], pa.float32()),
    "texts": pa.array(["", "a", "A "]),
    "dates": pa.array([date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    "timestamps": pa.array([0, 1, -1], pa.int64()).cast(pa.timestamp("us")),
    "timestamps in nanoseconds": pa.array([0, 1, -1], pa.int64()).cast(pa.timestamp("ns")),
    "timestamps with a zone": pa.array([0, 1, -1], pa.int64()).cast(
        pa.timestamp("us", "Europe/Vienna"),
    ),
    "times": pa.array([time(0), time(1, 2, 3), time(23, 59)]),
    "booleans and nulls": pa.array([True, False, None]),
    "bytes": pa.array([b"", b"\x00", b"a"]),
}


@pytest.mark.parametrize("what", KEYS)
def test_keys_of_every_type_are_those_of_their_records(tmp_path: Path, what: str) -> None:
    both = pa.table({"id": KEYS[what], "ref": ["a", "b", "c"]})
    sql = (
        "SELECT l.id AS left_id, r.id AS right_id FROM left_src l JOIN right_src r ON l.ref = r.ref"
    )
    recipe = document(match_sql=sql)
    done = [execute(tmp_path / name, recipe, both, both, engine=name) for name in sorted(ENGINES)]
    assert digests(done[0]) == digests(done[1])
    assert len(rows(done[0], "matched")) == 3 - KEYS[what].null_count


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (
            "CAST(l.id AS VARCHAR) AS left_id",
            "returns the left key id as text, but it is a whole number",
        ),
        ("l.day AS left_id", "as a date, but it is a whole number"),
        ("l.id AS left_id, l.i AS left_id", "returns 2 columns called left_id"),
    ],
)
def test_a_key_is_returned_as_the_type_that_it_has(
    tmp_path: Path,
    returned: str,
    says: str,
) -> None:
    sql = f"SELECT {returned}, r.id AS right_id FROM left_src l JOIN right_src r ON l.id = r.id"
    for name in sorted(ENGINES):
        with pytest.raises(InvalidInput, match=says):
            execute(tmp_path / name, document(match_sql=sql), LEFT, RIGHT, engine=name)


def test_whole_numbers_and_decimals_are_one_key(tmp_path: Path) -> None:
    sql = (
        "SELECT CAST(l.id AS DECIMAL(10, 2)) AS left_id, r.id AS right_id"
        " FROM left_src l JOIN right_src r USING (id)"
    )
    assert pairs(tmp_path, sql) == [(n, n) for n in range(1, 7)]


def test_reasons_compare_what_the_sql_joins_by_with_its_types(tmp_path: Path) -> None:
    left = pa.table({"id": [1, 2], "n": pa.array([1, 5], pa.int64())})
    right = pa.table({"id": [1, 2], "t": ["01", "1"], "d": pa.array([Decimal("1.00"), Decimal(2)])})
    for number, on in enumerate(("CAST(l.n AS VARCHAR) = r.t", "l.n = r.d")):
        sql = (
            "SELECT l.id AS left_id, r.id AS right_id FROM left_src l"
            f" JOIN right_src r ON {on} WHERE r.id > 5"
        )
        for name in sorted(ENGINES):
            folder = tmp_path / f"{name}{number}"
            done = execute(folder, document(match_sql=sql), left, right, engine=name)
            reasons = [row["reason"] for row in rows(done, "unmatched_left")]
            assert reasons == ["rejected_by_sql", "no_candidate"]


def test_the_reference_names_every_function() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "match-sql.md").read_text()
    assert {name for name in NAMES if f"`{name}(" not in page} == set()
