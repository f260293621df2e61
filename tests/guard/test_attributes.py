"""No accepted query calls a function by attribute notation, tested on a PostgreSQL server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.guard.allowed_functions import FUNCTIONS
from penstock.guard.attributes import ROW_FUNCTIONS, check_attributes, unproven_attributes, words
from penstock.guard.errors import FunctionRefused, SqlRefused
from penstock.guard.grammar import GRAMMARS
from penstock.guard.sql import check
from penstock.guard.tables import TableName
from penstock.kit.errors import PenstockError
from penstock.kit.outbound import FOR_OPERATOR
from penstock.sources.postgres.config import Config
from penstock.sources.postgres.session import Session
from tests.graphs.deployment import postgres, postgres_secrets
from tests.guard.shop import POSTGRES_TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

RAN = "a planted function ran"
BODY = f"LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RAISE EXCEPTION '{RAN}'; END $$"
PLANTED = "\n".join(
    f"CREATE FUNCTION {name}({kind}) RETURNS {result} {BODY};"
    for name, kind, result in [
        ("evil", "customers", "text"),
        ("evil", "orders", "text"),
        ("evil", "text", "text"),
        ("evil", "integer", "integer"),
        ("evil", "anyarray", "text"),
        ("name", "orders", "text"),
        ("amount", "customers", "numeric"),
        ("status", "edges", "text"),
        ("length", "integer", "integer"),
    ]
)
TABLES = {"customers": "c", "orders": "o", "edges": "e"}


@pytest.fixture
async def planted(warehouse: str) -> str:
    connection = await asyncpg.connect(warehouse)
    try:
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f"ALTER DATABASE {name} SET search_path = public")
        await connection.execute(f"SET search_path = public; {POSTGRES_TABLES} {PLANTED}")
    finally:
        await connection.close()
    return warehouse


def config_of(dsn: str) -> Config:
    return Config(**postgres(dsn), password=postgres_secrets(dsn)["password"])


def run(sql: str, config: Config) -> Sequence[tuple[Any, ...]]:
    """As an export does: the guard, the source's own look, and the query itself."""
    checked = check(sql, "postgres")
    with Session(config, FOR_OPERATOR).opened() as session:
        session.columns(checked.sql)
        return session.rows(checked.sql)


REACHING = [
    "SELECT c.evil FROM customers c",
    "SELECT customers.evil FROM customers",
    "SELECT public.customers.evil FROM public.customers",
    "SELECT o.name FROM orders o",
    "SELECT c.amount FROM orders o JOIN customers c ON c.id = o.customer_id",
    "SELECT (SELECT c.evil) FROM customers c",
    "SELECT x.y FROM customers c, LATERAL (SELECT c.evil AS y) AS x",
    "SELECT id FROM customers c WHERE c.evil = ''",
    "SELECT id FROM customers c ORDER BY c.evil",
    "SELECT count(*) FROM customers c GROUP BY c.evil",
    "SELECT sum(c.id) OVER (PARTITION BY c.evil) FROM customers c",
    "SELECT max(c.id) FILTER (WHERE c.evil = '') FROM customers c",
    "SELECT 1 FROM customers c JOIN orders o ON c.evil = o.status",
    'SELECT c."evil" FROM customers c',
    "SELECT C.EVIL FROM customers c",
    "SELECT length(c.id) FROM customers c",
    "SELECT a.status FROM customers c JOIN edges AS a ON a.src = c.id",
]


@pytest.mark.parametrize("sql", REACHING)
async def test_a_planted_function_is_run_by_postgres_and_refused_by_us(
    sql: str, planted: str
) -> None:
    connection = await asyncpg.connect(planted)
    try:
        with pytest.raises(asyncpg.RaiseError, match=RAN):
            await connection.fetch(sql)
    finally:
        await connection.close()
    with pytest.raises(FunctionRefused):
        run(sql, config_of(planted))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT q.evil FROM (SELECT * FROM customers) AS q",
        "WITH q AS (SELECT * FROM customers) SELECT q.evil FROM q",
        "WITH q AS (SELECT * FROM orders) SELECT q.name FROM q",
    ],
)
async def test_a_name_of_a_function_on_the_row_of_a_subquery_is_refused(
    sql: str, planted: str
) -> None:
    with pytest.raises(FunctionRefused):
        run(sql, config_of(planted))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT c.id, c.name, c.email FROM customers c",
        "SELECT public.customers.name FROM public.customers",
        "SELECT o.amount, o.status FROM orders AS o",
        "SELECT q.name FROM (SELECT * FROM customers) AS q",
        "SELECT q.amount FROM (SELECT c.*, o.amount FROM customers c JOIN orders o ON true) AS q",
        "WITH q AS (SELECT name FROM customers) SELECT q.name FROM q",
        "SELECT q.n FROM (SELECT q.name AS n FROM customers AS q) AS q",
        "SELECT q.id FROM customers AS q WHERE EXISTS (SELECT q.name FROM (SELECT 1 AS name) AS q)",
        "WITH q (name) AS (SELECT id FROM orders) SELECT q.name FROM q",
        "SELECT s.count FROM (SELECT count(*) FROM orders) AS s",
        "SELECT t.name FROM orders AS t (name)",
        "SELECT x.name FROM customers c, LATERAL (SELECT c.name) AS x",
        "SELECT length(c.name) FROM customers c WHERE c.ctid IS NOT NULL",
    ],
)
async def test_real_columns_pass_although_functions_have_their_names(
    sql: str, planted: str
) -> None:
    if "length" in sql:
        connection = await asyncpg.connect(planted)
        await connection.execute("DROP FUNCTION length(integer)")
        await connection.close()
    assert run(sql, config_of(planted)) is not None


@pytest.mark.parametrize(
    ("plant", "sql"),
    [
        (
            "CREATE OPERATOR public.+ (leftarg = text, rightarg = text, function = planted2)",
            "SELECT c.name || '' + c.email::text FROM customers c",
        ),
        (
            "CREATE OPERATOR public.= (leftarg = text, rightarg = integer, function = planted3)",
            "SELECT 1 FROM customers c WHERE c.name IN (1)",
        ),
        (
            "CREATE CAST (customers AS bigint) WITH FUNCTION planted4(customers) AS IMPLICIT",
            "SELECT id FROM customers",
        ),
        (
            "CREATE CAST (point AS integer) WITH FUNCTION planted5(point)",
            "SELECT CAST(c.score AS integer) FROM customers c",
        ),
    ],
)
async def test_planted_operators_and_casts_are_refused(
    plant: str, sql: str, warehouse: str
) -> None:
    connection = await asyncpg.connect(warehouse)
    functions = [
        ("planted2", "text, text", "text"),
        ("planted3", "text, integer", "boolean"),
        ("planted4", "customers", "bigint"),
        ("planted5", "point", "integer"),
    ]
    try:
        await connection.execute(POSTGRES_TABLES)
        for name, arguments, result in functions:
            await connection.execute(f"CREATE FUNCTION {name}({arguments}) RETURNS {result} {BODY}")
        check(sql, "postgres")
        await connection.execute(plant)
    finally:
        await connection.close()
    with pytest.raises(FunctionRefused, match="planted"):
        run(sql, config_of(warehouse))


async def test_a_function_of_an_extension_is_not_in_the_way_and_another_one_is(
    warehouse: str,
) -> None:
    connection = await asyncpg.connect(warehouse)
    sql = "SELECT abs(c.active) FROM customers c"
    try:
        await connection.execute(POSTGRES_TABLES)
        body = "LANGUAGE sql IMMUTABLE AS 'SELECT $1'"
        await connection.execute(f"CREATE FUNCTION abs(boolean) RETURNS boolean {body}")
        with pytest.raises(FunctionRefused):
            run(sql, config_of(warehouse))
        await connection.execute("ALTER EXTENSION plpgsql ADD FUNCTION abs(boolean)")
    finally:
        await connection.close()
    assert len(run(sql, config_of(warehouse))) == 4


async def test_row_functions_are_those_of_the_server(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        rows = await connection.fetch(
            "SELECT DISTINCT p.proname FROM pg_proc AS p JOIN pg_type AS t ON t.oid ="
            " p.proargtypes[0]"
            " WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'"
            " AND p.pronargs - p.pronargdefaults <= 1 AND t.typname IN"
            " ('record', 'any', 'anyelement', 'anynonarray', 'anycompatible',"
            " 'anycompatiblenonarray')"
        )
    finally:
        await connection.close()
    assert {row["proname"] for row in rows} - FUNCTIONS["postgres"] <= ROW_FUNCTIONS


REFUSED = "refused"


def attempt(sql: str, config: Config) -> str:
    """Nothing for a query that ran, and otherwise what came out."""
    try:
        run(sql, config)
    except SqlRefused:
        return REFUSED
    except PenstockError as e:
        return e.message
    return ""


NAMES = ["id", "name", "amount", "status", "evil", "src", "count", "record_out", "length", "q", "c"]
QUALIFIERS = ["c", "o", "e", "q", "x", "customers", "public.customers"]
FORMS = [
    "{q}.{n}",
    '{q}."{n}"',
    "({q}).{n}",
    "({q}.*).{n}",
    "({q}.{n}).{m}",
    "{q}.{n}.{m}",
    "{n}",
    "abs({q}.{n})",
    "coalesce({q}.{n}, {q}.{m})",
    "CASE WHEN {q}.{n} IS NULL THEN {q}.{m} END",
    "(SELECT {q}.{n})",
    "(SELECT max(z.{n}) FROM (SELECT {q}.*) AS z)",
    "CAST({q}.{n} AS text)",
    "length({q}.{n})",
    "ROW({q}.{n}, {q}.{m})",
    "(ARRAY[{q}.{n}])[1]",
    "count({q})",
    "{q}",
]
FROMS = [
    "customers c",
    "customers c, orders o",
    "orders o JOIN edges e ON true",
    "customers",
    "public.customers",
    "(SELECT * FROM customers) AS q",
    "(SELECT c.*, o.amount FROM customers c, orders o) AS q",
    "customers c, LATERAL (SELECT c.*) AS x",
    "orders AS c (evil, name)",
    "edges e CROSS JOIN (SELECT src AS name FROM edges) AS q",
]
PLACES = [
    "SELECT {e} AS r FROM {f}",
    "SELECT 1 AS r FROM {f} WHERE {e} IS NOT NULL",
    "SELECT 1 AS r FROM {f} ORDER BY {e}",
    "SELECT count(*) AS r FROM {f} GROUP BY {e}",
    "WITH q AS (SELECT {e} AS name FROM {f}) SELECT q.name, q.{n} AS r FROM q",
    "WITH q AS (SELECT * FROM customers) SELECT {e} AS r FROM {f}, q",
    "SELECT r.{n} AS r FROM (SELECT {e} AS evil FROM {f}) AS r",
]


async def test_no_mutation_of_attribute_notation_runs_a_planted_function(planted: str) -> None:
    config = config_of(planted)
    accepted = refused = 0

    @settings(
        max_examples=int(os.environ.get("PENSTOCK_FUZZ", "400")),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        place=st.sampled_from(PLACES),
        form=st.sampled_from(FORMS),
        source=st.sampled_from(FROMS),
        qualifier=st.sampled_from(QUALIFIERS),
        name=st.sampled_from(NAMES),
        more=st.sampled_from(NAMES),
    )
    def attack(place: str, form: str, source: str, qualifier: str, name: str, more: str) -> None:
        nonlocal accepted, refused
        expression = form.format(q=qualifier, n=name, m=more)
        sql = place.format(e=expression, f=source, n=name)
        outcome = attempt(sql, config)
        accepted += outcome == ""
        refused += outcome == REFUSED
        assert RAN not in outcome, sql

    attack()
    assert accepted
    assert refused


def test_the_words_of_a_query_are_read_by_its_tokens() -> None:
    spoken = words("SELECT a.\"B\", C.d, f (x), 'g(y).h' FROM s.t WHERE x::int @> 1")
    assert spoken.dotted == {"B", "d", "t"}
    assert spoken.called == {"f"}
    assert spoken.casts
    assert "@>" in spoken.signs


def test_names_defined_over_names_many_times_are_looked_at_once() -> None:
    steps = ", ".join(
        f"q{n} AS (SELECT a.*, b.* FROM q{n - 1} AS a, q{n - 1} AS b)" for n in range(1, 40)
    )
    sql = f"WITH q0 AS (SELECT 1 AS x), {steps} SELECT z.evil FROM q39 AS z"
    grammar = GRAMMARS["postgres"]
    (tree,) = grammar.parse(sql, grammar.tokenize(sql))
    assert tree is not None
    with pytest.raises(FunctionRefused):
        check_attributes(tree)


def test_a_name_is_proven_by_every_relation_it_may_mean() -> None:
    columns = {TableName(name="a"): frozenset({"f"}), TableName(name="b"): frozenset({"g"})}
    functions = frozenset({"f"})
    assert not unproven_attributes("SELECT x.f FROM a AS x", columns, functions)
    assert unproven_attributes("SELECT x.f FROM b AS x", columns, functions) == {"f"}
    nested = "SELECT (SELECT x.f FROM b AS x) FROM a AS x"
    assert unproven_attributes(nested, columns, functions) == {"f"}


@pytest.mark.parametrize(("length", "fits"), [(63, True), (64, False)])
def test_a_name_is_as_long_as_postgres_reads_it(length: int, fits: bool) -> None:
    sql = f"SELECT id AS {'x' * length} FROM customers"
    if fits:
        assert check(sql, "postgres").columns == ("x" * length,)
    else:
        with pytest.raises(SqlRefused, match="longer than 63 bytes"):
            check(sql, "postgres")
