"""The part of Elasticsearch's REST API that a reader needs, in our own process, true to its
documentation.

- A point in time sees the documents of the moment it was opened, until it expires or is closed.
  Every search may return a new id for it; use the newest.
- `slice` needs a `max` above 1; hits are sorted by `_shard_doc`, and `search_after` continues after
  one.
- `fields` returns values in the mapping's type, always as a list; a field without a value is left
  out.
- A mapping is returned in alphabetical order. `_sql/translate` supports comparisons, AND, OR, NOT
  and IS NULL.
- Errors have a type and a reason, in `error` and its `root_cause`.
"""

from __future__ import annotations

import base64
import datetime as dt
import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qs, unquote

import orjson
import sqlglot
from sqlglot import exp

from tests.servers.http import Fault, HttpServer, Request, Response, as_json

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

Document = dict[str, Any]


class Documents(Protocol):
    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Document: ...


VERSION = "8.17.2"
_NUMBERS = {"byte", "integer", "long", "short", "unsigned_long"}
_FRACTIONS = {"double", "float", "half_float", "scaled_float"}


class Refusal(Exception):
    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.kind, self.reason = status, kind, reason


@dataclass(slots=True, kw_only=True)
class Index:
    properties: dict[str, Any]
    documents: Documents
    held_back: asyncio.Event | None = None


@dataclass(slots=True, kw_only=True)
class Moment:
    index: str
    properties: dict[str, Any]
    documents: Documents
    ids: set[str]
    expires: float
    held_back: asyncio.Event | None = None
    has_lost_a_shard: bool = False


@dataclass(slots=True, kw_only=True)
class ElasticFake:
    """Opened with `async with`; what it was asked is in `requests`, what goes wrong in `faults`."""

    authorization: str | None = None
    indices: dict[str, Index] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    blind: bool = False
    """Whether our user may not look at sizes."""
    broken_shards: int = 0
    """How many of the next searches leave a shard out."""
    now: Callable[[], float] = time.monotonic
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _http: HttpServer = field(init=False)

    def __post_init__(self) -> None:
        self._http = HttpServer(self._serve)

    async def __aenter__(self) -> ElasticFake:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.__aexit__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.port}"

    @property
    def requests(self) -> list[Request]:
        return self._http.requests

    @property
    def faults(self) -> list[Fault]:
        return self._http.faults

    def searches(self) -> list[dict[str, Any]]:
        return [
            orjson.loads(request.body) for request in self.requests if request.path == "/_search"
        ]

    def add(self, name: str, properties: dict[str, Any], documents: Documents) -> None:
        """Index names are in lower case; another name becomes an alias."""
        self.indices[name.lower()] = Index(properties=properties, documents=documents)
        if name != name.lower():
            self.aliases[name] = name.lower()

    def open_moments(self) -> int:
        self._expire()
        return len(self.moments)

    async def _serve(self, request: Request) -> Response:
        try:
            self._admit(request)
            return await self._route(request)
        except Refusal as e:
            cause = {"type": e.kind, "reason": e.reason}
            return as_json(
                {"error": {"root_cause": [cause], **cause}, "status": e.status}, e.status
            )

    def _admit(self, request: Request) -> None:
        sent = request.headers.get("authorization")
        if self.authorization is not None and sent != self.authorization:
            raise Refusal(
                401,
                "security_exception",
                f"unable to authenticate with [{sent}] for REST request [/]",
            )

    async def _route(self, request: Request) -> Response:
        match (request.method, *[unquote(part) for part in request.path.strip("/").split("/")]):
            case ("GET", ""):
                return as_json(
                    {"cluster_name": "lake", "version": {"number": VERSION}, "tagline": "You Know"}
                )
            case ("GET", "_resolve", "index", "*"):
                return as_json(self._resolved())
            case ("GET", name, "_mapping"):
                return as_json(
                    {
                        index_name: {"mappings": _told(index)}
                        for index_name, index in self._named(name).items()
                    }
                )
            case ("GET", name, "_stats", "docs,store"):
                return as_json(self._stats(name))
            case ("POST", name, "_pit"):
                [keep_alive] = parse_qs(request.query)["keep_alive"]
                return as_json({"id": self._open(name, keep_alive)})
            case ("DELETE", "_pit"):
                return self._close(orjson.loads(request.body)["id"])
            case ("POST", "_search"):
                return await self._search(orjson.loads(request.body))
            case ("POST", "_sql", "translate"):
                return as_json(self._translate(orjson.loads(request.body)["query"]))
            case _:
                raise Refusal(
                    400, "illegal_argument_exception", f"no handler found for {request.path}"
                )

    def _named(self, name: str) -> dict[str, Index]:
        name = self.aliases.get(name, name)
        if name.endswith("*"):
            return {
                index_name: index
                for index_name, index in self.indices.items()
                if index_name.startswith(name[:-1])
            }
        if name not in self.indices:
            raise Refusal(404, "index_not_found_exception", f"no such index [{name}]")
        return {name: self.indices[name]}

    def _resolved(self) -> dict[str, Any]:
        return {
            "indices": [{"name": name, "attributes": ["open"]} for name in sorted(self.indices)],
            "aliases": [
                {"name": name, "indices": [index]} for name, index in sorted(self.aliases.items())
            ],
            "data_streams": [],
        }

    def _stats(self, name: str) -> dict[str, Any]:
        if self.blind:
            raise Refusal(
                403, "security_exception", "action [indices:monitor/stats] is unauthorized"
            )
        documents = [
            document for index in self._named(name).values() for document in _all(index.documents)
        ]
        size = sum(len(orjson.dumps(document)) for document in documents)
        return {
            "_all": {
                "primaries": {"docs": {"count": len(documents)}, "store": {"size_in_bytes": size}}
            }
        }

    def _open(self, name: str, keep_alive: str) -> str:
        indices = self._named(name)
        if len(indices) == 1:
            [(name, index)] = indices.items()
            documents: Documents = index.documents
        else:
            documents = [
                document for index in indices.values() for document in _all(index.documents)
            ]
        number = f"pit-{next(self._numbers)}"
        properties = {
            key: value
            for one_index in indices.values()
            for key, value in one_index.properties.items()
        }
        held_back = next(
            (one_index.held_back for one_index in indices.values() if one_index.held_back), None
        )
        moment = Moment(
            index=name,
            properties=properties,
            documents=list(documents) if isinstance(documents, list) else documents,
            ids={number},
            expires=self.now() + _seconds(keep_alive),
            held_back=held_back,
        )
        self.moments.append(moment)
        return number

    def lose_shards(self) -> None:
        """A node that has shards of the open points in time is started again."""
        for moment in self.moments:
            moment.has_lost_a_shard = True

    def _expire(self) -> None:
        self.moments = [moment for moment in self.moments if moment.expires > self.now()]

    def _moment(self, number: str) -> Moment:
        self._expire()
        moment = next((candidate for candidate in self.moments if number in candidate.ids), None)
        if moment is None:
            raise Refusal(
                404,
                "search_context_missing_exception",
                f"No search context found for id [{number}]",
            )
        return moment

    def _close(self, number: str) -> Response:
        before = len(self.moments)
        self.moments = [moment for moment in self.moments if number not in moment.ids]
        freed = before - len(self.moments)
        return as_json({"succeeded": True, "num_freed": freed}, 200 if freed else 404)

    async def _search(self, body: dict[str, Any]) -> Response:
        moment = self._moment(body["pit"]["id"])
        moment.expires = self.now() + _seconds(body["pit"]["keep_alive"])
        renamed = f"pit-{next(self._numbers)}"
        moment.ids.add(renamed)
        if moment.held_back is not None:
            await moment.held_back.wait()
        shards: dict[str, Any] = {"total": 2, "successful": 2, "failed": 0}
        if moment.has_lost_a_shard:
            reason = {"type": "search_context_missing_exception", "reason": "No search context"}
            shards |= {"successful": 1, "failed": 1, "failures": [{"shard": 1, "reason": reason}]}
        if self.broken_shards:
            self.broken_shards -= 1
            reason = {"type": "node_disconnected_exception", "reason": "[node-2] disconnected"}
            shards |= {"successful": 1, "failed": 1, "failures": [{"shard": 1, "reason": reason}]}
        answer = {
            "pit_id": renamed,
            "timed_out": False,
            "_shards": shards,
            "hits": {"hits": _hits(moment, body)},
        }
        return Response(body=orjson.dumps(answer), headers={"Content-Type": "application/json"})

    def _translate(self, sql: str) -> dict[str, Any]:
        tree = sqlglot.parse_one(sql, read="trino")
        table = tree.find(exp.Table)
        assert table is not None
        [index] = self._named(table.name).values()
        for column in tree.find_all(exp.Column):
            if _definition(index.properties, _path(column)) is None:
                raise Refusal(
                    400,
                    "verification_exception",
                    f"Found 1 problem: Unknown column [{_path(column)}]",
                )
        where = tree.args.get("where")
        query = {"query": _condition(where.this)} if where else {}
        return {
            "size": 1000,
            **query,
            "_source": False,
            "fields": [],
            "sort": [{"_doc": {"order": "asc"}}],
        }


def _all(documents: Documents) -> list[Document]:
    return [documents[number] for number in range(len(documents))]


def _told(index: Index) -> dict[str, Any]:
    return {"properties": _sorted(index.properties)}


def _sorted(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {
            **definition,
            **(
                {"properties": _sorted(definition["properties"])}
                if "properties" in definition
                else {}
            ),
        }
        for name, definition in sorted(properties.items())
    }


def _seconds(text: str) -> float:
    return float(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def _hits(moment: Moment, body: dict[str, Any]) -> list[dict[str, Any]]:
    if body["size"] == 0:
        return []
    assert body["sort"] == [{"_shard_doc": "asc"}]
    part = body.get("slice", {"id": 0, "max": 1})
    if "slice" in body and part["max"] < 2:
        raise Refusal(400, "x_content_parse_exception", "[slice] failed to parse field [max]")
    [start] = body.get("search_after", [-1])
    hits: list[dict[str, Any]] = []
    number = start + 1
    while number < len(moment.documents) and len(hits) < body["size"]:
        document = moment.documents[number]
        if number % part["max"] == part["id"] and _matches(document, body.get("query")):
            hits.append(_hit(moment, number, document, body))
        number += 1
    return hits


def _hit(moment: Moment, number: int, document: Document, body: dict[str, Any]) -> dict[str, Any]:
    hit: dict[str, Any] = {
        "_index": moment.index,
        "_id": f"d{number}",
        "_score": None,
        "sort": [number],
    }
    if body["_source"]:
        hit["_source"] = {
            key: value for key, value in document.items() if _included(key, body["_source"])
        }
    asked = [
        (field, None) if isinstance(field, str) else (field["field"], field["format"])
        for field in body["fields"]
    ]
    fields = {
        path: values for path, form in asked if (values := _values(moment, document, path, form))
    }
    return {**hit, "fields": fields} if fields else hit


def _included(key: str, paths: list[str]) -> bool:
    return any(
        path == key or path.startswith(f"{key}.") or key.startswith(f"{path}.") for path in paths
    )


def _values(moment: Moment, document: Document, path: str, form: str | None) -> list[Any]:
    definition = _definition(moment.properties, path)
    if definition is None:
        return []
    if definition["type"] == "alias":
        return _values(moment, document, definition["path"], form)
    value = _found(document, path)
    if value is None and "." in path:  # a multi-field has the value of the field above it
        value = _found(document, path.rpartition(".")[0])
        value = None if isinstance(value, dict) else value
    listed = value if isinstance(value, list) else [value]
    return [_typed(item, definition["type"], form) for item in listed if item is not None]


def _definition(properties: dict[str, Any], path: str) -> dict[str, Any] | None:
    if path in properties:
        return {"type": "object", **properties[path]}
    head, _, rest = path.partition(".")
    below = properties.get(head, {})
    return (
        _definition({**below.get("properties", {}), **below.get("fields", {})}, rest)
        if rest
        else None
    )


def _found(node: Any, path: str) -> Any:
    if not isinstance(node, dict) or path in node:
        return node.get(path) if isinstance(node, dict) else None
    head, _, rest = path.partition(".")
    return _found(node.get(head), rest) if rest else None


def _typed(value: Any, kind: str, form: str | None) -> Any:
    if kind in _NUMBERS:
        return int(value)
    if kind in _FRACTIONS:
        return float(value)
    if kind == "boolean":
        return value if isinstance(value, bool) else value == "true"
    if kind in ("date", "date_nanos"):
        assert form == "strict_date_optional_time_nanos"
        return _moment_text(value)
    return value if isinstance(value, str) else str(value)


def _moment_text(value: Any) -> str:
    """A date is written as milliseconds, or in a format that begins like ISO 8601."""
    if isinstance(value, int) or value.lstrip("-").isdigit():
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=int(value))
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value) if "T" in value else f"{value.replace('/', '-')}T00:00:00.000Z"


def _path(column: exp.Column) -> str:
    return ".".join(part.name for part in column.parts)


def _condition(node: exp.Expr) -> dict[str, Any]:
    match node:
        case exp.Paren():
            return _condition(node.this)
        case exp.And() | exp.Or():
            kind = "must" if isinstance(node, exp.And) else "should"
            return {"bool": {kind: [_condition(node.left), _condition(node.right)], "boost": 1.0}}
        case exp.Not():
            return {"bool": {"must_not": [_condition(node.this)], "boost": 1.0}}
        case exp.NEQ():
            return {
                "bool": {
                    "must_not": [_condition(exp.EQ(this=node.this, expression=node.expression))]
                }
            }
        case exp.Is():
            return {"bool": {"must_not": [{"exists": {"field": _path(node.this), "boost": 1.0}}]}}
        case exp.EQ():
            return {"term": {_path(node.this): {"value": _literal(node.expression)}}}
        case exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
            return {
                "range": {_path(node.this): {node.key: _literal(node.expression), "boost": 1.0}}
            }
        case _:
            raise Refusal(400, "parsing_exception", f"line 1:1: cannot read {node.sql()}")


def _literal(node: exp.Expr) -> Any:
    return node.to_py()


def _matches(document: Document, query: dict[str, Any] | None) -> bool:
    if query is None:
        return True
    [(kind, body)] = query.items()
    if kind == "bool":
        musts = all(_matches(document, clause) for clause in body.get("must", ()))
        shoulds = not body.get("should") or any(
            _matches(document, clause) for clause in body["should"]
        )
        return (
            musts
            and shoulds
            and not any(_matches(document, clause) for clause in body.get("must_not", ()))
        )
    if kind == "exists":
        return _found(document, body["field"]) is not None
    [(path, asked)] = body.items()
    value = _found(document, path)
    if value is None:
        return False
    if kind == "term":
        return bool(value == asked["value"])
    limits = {"gt": value.__gt__, "gte": value.__ge__, "lt": value.__lt__, "lte": value.__le__}
    return all(limits[name](limit) for name, limit in asked.items() if name in limits)


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
