"""The two servers that the same promises are held against: how to fill each, and how to look inside
it."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any, Protocol

import httpx2
import pyarrow as pa

from penstock.sources.contract import Failed, Finished, Running
from penstock.sources.trino import TrinoSource, connect
from tests.servers.trino import CLIENT_TIMEOUT
from tests.servers.trino_fake import Script, TrinoFake

if TYPE_CHECKING:
    from penstock.sources.trino.statements import Statements
    from tests.servers.trino import Trino

ROLE = "analyst"


class TrinoSubject(Protocol):
    kind: str
    config: dict[str, object]
    secrets: dict[str, str]
    endless: str
    writing: str
    """A query that a CTAS may write."""
    writing_rows: int

    async def load(self, name: str, table: pa.Table) -> None: ...

    async def many(self, rows: int) -> str: ...

    async def running(self) -> int: ...

    def quote(self, name: str) -> str: ...

    async def newest(self) -> str:
        """The query that came last."""
        ...

    async def ended(self, query_id: str) -> str | None:
        """The error's name, or FINISHED; None while the query is alive."""
        ...

    async def prepare_lake(self) -> None:
        """Make the schema `exports` in the catalog `lake`."""
        ...

    def target(self, name: str) -> dict[str, str]: ...

    def hurry(self) -> None:
        """Abandon soon, where that can be chosen."""
        ...


def opened(subject: TrinoSubject, **changes: object) -> TrinoSource:
    return connect({**subject.config, **changes}, subject.secrets)


class FakeSubject:
    kind = "trino"
    endless = "SELECT count(*) AS n FROM endless"
    writing = "SELECT n FROM slow"
    writing_rows = 1000

    def __init__(self, fake: TrinoFake) -> None:
        self.fake = fake
        self.secrets: dict[str, str] = {}
        self.config: dict[str, object] = {
            "url": fake.url,
            "user": "tester",
            "starburst_role": ROLE,
            "catalog": "memory",
            "schema": "main",
            "client_timeout": fake.client_timeout,
        }
        fake.engine.load("endless", pa.table({"n": pa.array([], pa.int64())}))
        fake.engine.load("slow", pa.table({"n": pa.array(range(1000), pa.int64())}))
        self.fake.scripts.append(Script(match="endless", release=asyncio.Event()))

    async def load(self, name: str, table: pa.Table) -> None:
        self.fake.engine.load(name, table)

    async def many(self, rows: int) -> str:
        self.fake.page_rows = 20_000
        return f"SELECT range AS n, repeat('x', 180) || range AS text FROM range({rows})"

    async def running(self) -> int:
        return len(self.fake.running())

    def quote(self, name: str) -> str:
        return f'"{name}"'

    async def newest(self) -> str:
        return max(self.fake.queries)

    async def prepare_lake(self) -> None:
        """It is always there."""

    def target(self, name: str) -> dict[str, str]:
        return target(name)

    def hurry(self) -> None:
        self.fake.client_timeout = 1.5

    async def ended(self, query_id: str) -> str | None:
        query = self.fake.queries.get(query_id)
        if query is None or not query.over:
            return None
        return query.error.name if query.error is not None else "FINISHED"


class RealSubject:
    kind = "trino"
    endless = "SELECT count(*) AS n FROM tpch.sf10000.lineitem WHERE comment LIKE '%x%x%'"
    writing = "SELECT orderkey, partkey FROM tpch.tiny.lineitem"
    writing_rows = 60175

    def __init__(self, server: Trino) -> None:
        self.server = server
        self.secrets: dict[str, str] = {}
        self.config: dict[str, object] = {
            "url": server.url,
            "user": "tester",
            "starburst_role": ROLE,
            "role_catalog": None,
            "catalog": "memory",
            "schema": "default",
            "client_timeout": CLIENT_TIMEOUT,
        }

    async def load(self, name: str, table: pa.Table) -> None:
        """All values travel as one JSON text and are cast to their types by Trino itself."""
        async with opened(self) as source:
            statements = source.statements()
            for sql in (
                f"DROP TABLE IF EXISTS {self.quote(name)}",
                _create(self.quote(name), table),
            ):
                await run(statements, sql)

    async def many(self, rows: int) -> str:
        return (
            "SELECT *, orderkey * 2 AS twice, comment || comment AS more"
            f" FROM tpch.sf1.lineitem LIMIT {rows}"
        )

    async def running(self) -> int:
        return sum(
            query["state"] not in ("FINISHED", "FAILED") for query in await self._get("/v1/query")
        )

    def quote(self, name: str) -> str:
        return f'"{name}"'

    async def newest(self) -> str:
        return max(str(query["queryId"]) for query in await self._get("/v1/query"))

    async def ended(self, query_id: str) -> str | None:
        info = await self._get(f"/v1/query/{query_id}?pruned=true")
        if info["state"] not in ("FINISHED", "FAILED"):
            return None
        return str(info["errorCode"]["name"]) if info["state"] == "FAILED" else "FINISHED"

    async def prepare_lake(self) -> None:
        async with opened(self) as source:
            await run(source.statements(), "CREATE SCHEMA IF NOT EXISTS lake.exports")

    def target(self, name: str) -> dict[str, str]:
        return target(name)

    def hurry(self) -> None:
        """Its timeout was set when it was started."""

    async def _get(self, path: str) -> Any:
        async with httpx2.AsyncClient() as http:
            return (
                await http.get(self.server.url + path, headers={"X-Trino-User": "tester"})
            ).json()


def target(name: str) -> dict[str, str]:
    return {"catalog": "lake", "schema": "exports", "location": f"local:///conformance/{name}/"}


async def run(statements: Statements, sql: str) -> Finished:
    """Follow a statement to its end."""
    submitted = await statements.submit(sql)
    step = await statements.poll(submitted.next_uri)
    while isinstance(step, Running):
        step = await statements.poll(step.next_uri, rows=step.rows)
    if isinstance(step, Failed):
        raise step.error
    return step


def _create(name: str, table: pa.Table) -> str:
    columns = [f"c{number}" for number in range(table.num_columns)]
    rows = json.dumps(
        [[_text(value) for value in row.values()] for row in table.to_pylist()], ensure_ascii=False
    )
    row_type = ", ".join(f"{column} varchar" for column in columns)
    chosen = ", ".join(
        f'{_cast(column, field.type)} AS "{field.name}"'
        for column, field in zip(columns, table.schema, strict=True)
    )
    literal = rows.replace("'", "''")
    return (
        f"CREATE TABLE {name} AS SELECT {chosen}"
        f" FROM UNNEST(CAST(json_parse('{literal}') AS array(row({row_type}))))"
        f" AS t({', '.join(columns)})"
    )


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text.replace("+00:00", " UTC")


def _cast(column: str, kind: pa.DataType) -> str:
    if pa.types.is_binary(kind):
        return f"from_base64({column})"
    return f"CAST({column} AS {_trino_type(kind)})"


def _trino_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp(6) with time zone" if kind.tz else "timestamp(6)"
    names = {
        "int64": "bigint",
        "int32": "integer",
        "string": "varchar",
        "bool": "boolean",
        "date32[day]": "date",
    }
    return names.get(str(kind), str(kind))
