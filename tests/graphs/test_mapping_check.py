"""Queries checked when they are written: by the guard, and at sources that answer, refuse, vary and
are away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.accounts.role import Role
from penstock.graphs.mappings.definition import Property
from penstock.graphs.mappings.service import Author
from tests.graphs.definitions import mapping, node
from tests.graphs.deployment import fill, postgres, postgres_secrets
from tests.servers.trino_fake import TrinoFake

if TYPE_CHECKING:
    from penstock.graphs.mappings.query_check import Verdict
    from tests.graphs.deployment import Deployment

NUMBER = Property(name="n", type="INT64")


async def judged(
    deployment: Deployment, number: int, *queries: str, use_case: str | None = None
) -> Verdict:
    """Of nodes with one column, n, that is an INT64."""
    nodes = [
        node(f"N{place}", sql=sql, primary_key=NUMBER, properties=())
        for place, sql in enumerate(queries)
    ]
    author = Author(username="me", role=Role.ANALYST, use_case=use_case)
    return await deployment.graphs.authoring.judge(mapping(nodes), number, author)


async def test_whatever_gives_the_columns_is_good(deployment: Deployment, duck: int) -> None:
    verdict = await judged(
        deployment,
        duck,
        "SELECT id AS n FROM customers",
        "WITH c AS (SELECT id AS n FROM customers) SELECT n FROM c",
        "SELECT id AS n FROM customers UNION ALL SELECT item FROM purchases",
        "SELECT age AS n FROM customers -- an INTEGER, which is widened",
        "SELECT count(*) AS n FROM customers;",
    )
    assert verdict.problems == verdict.warnings == ()


async def test_whatever_is_not_one_select_never_reaches_the_source(
    deployment: Deployment, duck: int
) -> None:
    hostile = (
        "INSERT INTO customers VALUES (1)",
        "SELECT 1 AS n; DROP TABLE customers",
        "SELECT n FROM read_csv('/etc/passwd')",
        "COPY customers TO '/tmp/x'",
        "SELECT FROM WHERE",
        "SELECT 1 AS n, 2 AS n",
    )
    verdict = await judged(deployment, duck, *hostile)
    assert [problem.entity for problem in verdict.problems] == [
        f"Node N{place}" for place in range(len(hostile))
    ]
    assert all(problem.column == "sql" and problem.suggestion for problem in verdict.problems)
    assert verdict.warnings == ()


async def test_a_postgres_says_what_its_columns_are(deployment: Deployment, warehouse: str) -> None:
    await fill(warehouse, 3)
    number = await deployment.source("postgres", postgres(warehouse), postgres_secrets(warehouse))
    verdict = await judged(
        deployment,
        number,
        "SELECT id AS n FROM customers",
        "SELECT name AS n FROM customers",
        "SELECT id FROM customers",
        "SELECT n FROM customers",
        "SELECT id AS n FROM nowhere",
    )
    assert [(problem.entity, problem.column) for problem in verdict.problems] == [
        ("Node N1", "n"),
        ("Node N2", "n"),
        ("Node N2", "id"),
        ("Node N3", "sql"),
        ("Node N4", "sql"),
    ]
    assert (
        verdict.problems[0].suggestion
        == "Write CAST(n AS BIGINT) AS n, or declare it STRING or UUID."
    )
    assert verdict.warnings == ()


async def test_a_source_that_is_away_is_one_warning_however_many_queries_there_are(
    deployment: Deployment,
) -> None:
    config = {"host": "127.0.0.1", "port": 1, "database": "x", "user": "x"}
    number = await deployment.source("postgres", config)
    verdict = await judged(deployment, number, *(["SELECT 1 AS n"] * 20))
    assert verdict.problems == ()
    [warning] = verdict.warnings
    assert warning.problem.startswith("The source could not be queried: ")


async def test_a_trino_is_asked_under_the_role_of_the_use_case_and_of_no_other(
    deployment: Deployment,
) -> None:
    async with TrinoFake() as fake:
        number = await deployment.source(
            "trino", {"url": fake.url, "user": "me", "catalog": "c", "schema": "s"}
        )
        asked = await judged(deployment, number, "SELECT BIGINT '1' AS n", use_case="analyst")
        assert asked.problems == asked.warnings == ()
        roles = {
            request.headers.get("x-trino-role")
            for request in fake.requests
            if request.method == "POST"
        }
        assert roles == {"system=ROLE%7Banalyst%7D"}
        [warning] = (await judged(deployment, number, "SELECT BIGINT '1' AS n")).warnings
        assert "Missing use case ID" in warning.problem
