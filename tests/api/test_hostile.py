"""Every operation against hostile input, generated from the OpenAPI description, so that none is
omitted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from penstock.api.schema.examples import Examples
from tests.api.answers import error
from tests.api.resources import FIXED
from tests.api.running_api import Api, running_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import httpx2
    from fastapi import FastAPI

    from tests.api.control_plane import Edge

Operation: TypeAlias = tuple[str, str, dict[str, Any]]
INJECTIONS = (
    "' OR '1'='1",
    "x'; DROP TABLE penstock.account; --",
    "\\' UNION SELECT digest FROM penstock_secret.api_key --",
    "%_\\$1:name{0}%s",
    "Ünïcode 安 🐟 \u202e",
    "\x00",
)
IDS = (
    "0",
    "-1",
    "1.5",
    "1e3",
    "abc",
    "１",
    "9007199254740993",
    "9223372036854775808",
    "9" * 400,
    "%00",
    "null",
)
NOT_JSON = (
    b"{",
    b"\xff\xfe",
    b"NaN",
    b'{"name": "\\ud800"}',
    b'{"name": "\\u0000"}',
    b'{"name": NaN}',
    b'{"' + b"x" * 10_000 + b'": 1}',
    b"[" * 5000 + b"]" * 5000,
    b"[]",
)


@pytest.fixture(scope="module")
async def api(
    lasting_database: str, edge: Edge, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Api]:
    home = tmp_path_factory.mktemp("home")
    lake = {"lake": {"warehouse": (home / "warehouse").as_uri()}}
    async with running_api(lasting_database, edge, home, catalogs=lake) as api:
        yield api


@pytest.fixture(scope="module")
def app(api: Api, edge: Edge) -> FastAPI:
    assert edge.app is not None
    return edge.app


def operations(app: FastAPI) -> Iterator[Operation]:
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/api/") and not path.startswith("/api/internal/"):
                yield method.upper(), path, operation


def nowhere(path: str) -> str:
    filled = re.sub(r"{\w+_id}", "999999", path)
    return re.sub(r"{(\w+)}", lambda named: FIXED.get(named[1], "nothing"), filled)


def caller(api: Api, path: str) -> httpx2.AsyncClient:
    return api.ada if path.startswith("/api/admin/") else api.oz


async def test_no_filter_lets_sql_through(api: Api, app: FastAPI) -> None:
    await api.oz.post("/api/users", json={"username": "ann"})
    tried = 0
    for method, path, operation in operations(app):
        for parameter in operation.get("parameters", []):
            if method != "GET" or parameter["in"] != "query":
                continue
            for text in INJECTIONS if _takes_text(parameter) else INJECTIONS[:1]:
                answer = await caller(api, path).get(
                    nowhere(path), params={parameter["name"]: text}
                )
                cell = (
                    f"{path}?{parameter['name']}={text[:60]!r}:"
                    f" {answer.status_code} {answer.text[:200]}"
                )
                assert answer.status_code in (200, 400, 404, 422, 503), cell
                assert answer.status_code != 503 or "DATABASE" not in answer.text, cell
                tried += 1
    assert tried > 200
    assert (await api.oz.get("/api/users/ann")).status_code == 200


async def test_no_identifier_breaks_anything(api: Api, app: FastAPI) -> None:
    for method, path, operation in operations(app):
        numbers = [
            p["name"] for p in operation.get("parameters", []) if p["in"] == "path" and _is_whole(p)
        ]
        for name in numbers:
            for text in IDS:
                target = nowhere(path.replace(f"{{{name}}}", text))
                answer = await caller(api, path).request(method, target)
                cell = f"{method} {target[:200]}: {answer.status_code} {answer.text[:200]}"
                assert answer.status_code in (404, 405, 422) or text == "9007199254740993", cell
                assert answer.status_code < 500, cell
                if answer.status_code >= 400:
                    error(answer, answer.status_code, answer.json()["error"]["code"])


def _takes_text(parameter: dict[str, Any]) -> bool:
    kinds = [parameter["schema"], *parameter["schema"].get("anyOf", [])]
    return any(kind.get("type") == "string" and "enum" not in kind for kind in kinds)


def _is_whole(parameter: dict[str, Any]) -> bool:
    return bool(parameter["schema"].get("type") == "integer")


async def test_no_name_in_a_path_breaks_anything(api: Api, app: FastAPI) -> None:
    for method, path, operation in operations(app):
        names = [
            p["name"]
            for p in operation.get("parameters", [])
            if p["in"] == "path" and not _is_whole(p)
        ]
        for name in names:
            for text in (
                "%27%20OR%201=1",
                "%00",
                "..",
                "%2e%2e",
                "%F0%9F%90%9F",
                "a%2Fb",
                "x" * 5000,
                "%FF",
            ):
                answer = await caller(api, path).request(
                    method, nowhere(path.replace(f"{{{name}}}", text))
                )
                assert answer.status_code < 500, (method, path, name, text[:80], answer.text[:200])


async def test_no_body_breaks_anything(api: Api, app: FastAPI) -> None:
    json = {"Content-Type": "application/json"}
    for method, path, operation in operations(app):
        if "requestBody" not in operation:
            continue
        for body in NOT_JSON:
            answer = await caller(api, path).request(
                method, nowhere(path), content=body, headers=json
            )
            cell = f"{method} {path} {body[:60]!r}: {answer.status_code} {answer.text[:200]}"
            assert answer.status_code in (404, 422), cell
            error(answer, answer.status_code, answer.json()["error"]["code"])


async def test_no_text_in_a_body_breaks_anything(api: Api, app: FastAPI) -> None:
    tried = 0
    for method, path, operation in operations(app):
        for body in _with_nul(operation, app.openapi()["components"]["schemas"]):
            answer = await caller(api, path).request(method, nowhere(path), json=body)
            assert answer.status_code < 500, (
                f"{method} {path} {body}: {answer.status_code} {answer.text[:200]}"
            )
            tried += 1
    assert tried > 50


def _with_nul(operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Bodies with what they need, and in one field after the other a character that PostgreSQL has
    no place for."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    for name in re.findall(r"schemas/(\w+)", str(content.get("schema")))[:1]:
        fields, examples = schemas[name]["properties"], Examples(schemas)
        needed = {
            field: examples.of(fields[field], field) for field in schemas[name].get("required", ())
        }
        for field, node in fields.items():
            if _takes_text({"schema": node}):
                yield needed | {field: "a\x00b"}
            elif node.get("additionalProperties") is True:
                yield needed | {field: {"a": "a\x00b"}}


async def test_no_method_that_is_not_there_breaks_anything(api: Api, app: FastAPI) -> None:
    for path in app.openapi()["paths"]:
        there = {method.upper() for method in app.openapi()["paths"][path]}
        for method in ("PATCH", "OPTIONS"):
            if method in there:
                continue
            answer = await caller(api, path).request(method, nowhere(path))
            if answer.status_code != 404:
                error(answer, 405, "METHOD_NOT_ALLOWED")
                assert there <= set(answer.headers["allow"].split(", ")), (method, path)
