"""Browser login: links, sessions, and their limits."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
import httpx2
import pytest
from prometheus_client import CollectorRegistry

from penstock.accounts.retention import AnswerRetention
from penstock.api.callers.identity import SecretFile
from penstock.kit.db import Db
from penstock.kit.loop import LoopMetrics
from penstock.wiring.settings import Settings
from tests.api.answers import error
from tests.api.control_plane import ADMIN, OPERATOR
from tests.api.test_users import add, bearer, make_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

OPS_ONLY = "/api/audit"


async def link(operator: httpx2.AsyncClient) -> str:
    answer = await operator.post("/api/login-links", headers=bearer(OPERATOR))
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    path: str = answer.json()["data"]["path"]
    return path


async def rows(database: str, table: str) -> list[str]:
    connection = await asyncpg.connect(database)
    try:
        return [row[0] for row in await connection.fetch(f"SELECT t::text FROM {table} t")]
    finally:
        await connection.close()


@asynccontextmanager
async def browser(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False) as client:
        yield client


@pytest.fixture
async def signed_in(operator: httpx2.AsyncClient, url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(url) as client:
        assert (await client.get(await link(operator))).status_code == 200
        yield client


async def test_a_link_makes_one_session_however_many_open_it_at_once(
    operator: httpx2.AsyncClient, url: str
) -> None:
    path = await link(operator)

    async def status() -> int:
        async with browser(url) as client:
            return (await client.get(path)).status_code

    assert sorted(await asyncio.gather(*(status() for _ in range(6)))) == [200, *[401] * 5]


async def test_the_cookie_is_for_our_pages_and_no_script(
    operator: httpx2.AsyncClient, url: str
) -> None:
    async with browser(url) as client:
        opened = await client.get(await link(operator))
        assert opened.headers["content-type"].startswith("text/html")
        assert "Secure" not in opened.headers["set-cookie"]
        for word in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"):
            assert word in opened.headers["set-cookie"]
        behind_tls = await client.get(await link(operator), headers={"X-Forwarded-Proto": "https"})
        assert "Secure" in behind_tls.headers["set-cookie"]


async def test_only_the_operator_token_makes_links(
    operator: httpx2.AsyncClient, signed_in: httpx2.AsyncClient
) -> None:
    await add(operator, "boss", role="ops")
    key = (await make_key(operator, "boss"))["key"]
    for token in (ADMIN, key):
        error(
            await operator.post("/api/login-links", headers=bearer(token)), 403, "PERMISSION_DENIED"
        )
    origin = {"Origin": str(signed_in.base_url).rstrip("/")}
    error(await signed_in.post("/api/login-links", headers=origin), 403, "PERMISSION_DENIED")
    anyone = await operator.post("/api/login-links", headers={"Authorization": ""})
    error(anyone, 401, "AUTHENTICATION_REQUIRED")


@pytest.mark.parametrize(
    ("query", "code"), [("", "AUTHENTICATION_REQUIRED"), ("?token=", "AUTHENTICATION_REQUIRED")]
)
async def test_a_link_without_a_token_is_refused(
    anyone: httpx2.AsyncClient, query: str, code: str
) -> None:
    error(await anyone.get(f"/login{query}"), 401, code)


async def test_a_token_at_its_longest_is_looked_up_and_a_longer_one_is_not(
    anyone: httpx2.AsyncClient,
) -> None:
    error(await anyone.get(f"/login?token={'x' * 200}"), 401, "INVALID_TOKEN")
    error(await anyone.get(f"/login?token={'x' * 201}"), 401, "AUTHENTICATION_REQUIRED")


async def test_a_session_is_the_operator_and_a_token_beside_it_wins(
    signed_in: httpx2.AsyncClient,
) -> None:
    assert (await signed_in.get(OPS_ONLY)).status_code == 200
    error(await signed_in.get(OPS_ONLY, headers=bearer(ADMIN)), 403, "PERMISSION_DENIED")
    error(await signed_in.get(OPS_ONLY, headers=bearer("wrong")), 401, "INVALID_TOKEN")


async def test_a_link_and_a_session_end_when_their_time_is_over(
    operator: httpx2.AsyncClient,
    url: str,
    signed_in: httpx2.AsyncClient,
    move_time: Callable[[str], Awaitable[None]],
    database: str,
) -> None:
    early, late = await link(operator), await link(operator)
    await move_time("299 seconds")
    async with browser(url) as client:
        assert (await client.get(early)).status_code == 200
    await move_time("301 seconds")
    async with browser(url) as client:
        error(await client.get(late), 401, "INVALID_TOKEN")
    assert (await signed_in.get(OPS_ONLY)).status_code == 200
    await move_time("12 hours 1 second")
    error(await signed_in.get(OPS_ONLY), 401, "INVALID_TOKEN")
    async with Db(database, size=1) as db:
        retention = AnswerRetention(db, every=1, metrics=LoopMetrics(CollectorRegistry()))
        assert (await retention.run_once()).sessions == 2
    assert len(await rows(database, "penstock_secret.browser_session")) == 1


async def test_a_browser_signs_out(signed_in: httpx2.AsyncClient) -> None:
    cookie = dict(signed_in.cookies)
    origin = {"Origin": str(signed_in.base_url).rstrip("/")}
    assert (await signed_in.post("/logout", headers=origin)).status_code == 204
    assert not signed_in.cookies
    [(name, value)] = cookie.items()
    error(
        await signed_in.get(OPS_ONLY, headers={"Cookie": f"{name}={value}"}), 401, "INVALID_TOKEN"
    )
    assert (await signed_in.post("/logout")).status_code == 204


WRITE = ("PUT", "/api/drain", {"draining": False})
READ = ("GET", OPS_ONLY, None)


@pytest.mark.parametrize(
    ("request_", "headers", "status"),
    [
        (WRITE, {"Origin": "SELF"}, 200),
        (WRITE, {"Origin": "SELF", "Sec-Fetch-Site": "same-origin"}, 200),
        (WRITE, {}, 403),
        (WRITE, {"Origin": "null"}, 403),
        (WRITE, {"Origin": "http://127.0.0.1:1"}, 403),
        (WRITE, {"Origin": "https://evil.example"}, 403),
        (WRITE, {"Origin": "SELF", "Sec-Fetch-Site": "same-site"}, 403),
        (
            WRITE,
            {"Origin": "SELF", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
            403,
        ),
        (READ, {}, 200),
        (READ, {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200),
        (READ, {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}, 200),
        (READ, {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        (READ, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
    ],
)
async def test_a_page_of_another_port_or_site_cannot_use_the_session(
    signed_in: httpx2.AsyncClient,
    request_: tuple[str, str, dict[str, Any] | None],
    headers: dict[str, str],
    status: int,
) -> None:
    method, path, body = request_
    own = str(signed_in.base_url).rstrip("/")
    sent = {name: value.replace("SELF", own) for name, value in headers.items()}
    answer = await signed_in.request(method, path, json=body, headers=sent)
    assert answer.status_code == status


async def test_links_and_sessions_are_in_the_audit_and_their_secrets_nowhere(
    operator: httpx2.AsyncClient, url: str, database: str
) -> None:
    path = await link(operator)
    async with browser(url) as client:
        await client.get(path)
        [cookie] = dict(client.cookies).values()
        stored = "".join(
            [
                *await rows(database, "penstock_secret.browser_session"),
                *await rows(database, "penstock.audit"),
            ]
        )
        assert (await client.post("/logout", headers={"Origin": url})).status_code == 204
    entries = (await operator.get(OPS_ONLY, headers=bearer(OPERATOR))).json()["data"]
    actions = [entry["action"] for entry in entries]
    assert actions == ["session.close", "session.open", "login_link.create"]
    assert entries[1]["detail"] == {"address": "127.0.0.1"}
    assert stored
    for secret in (path.partition("=")[2], cookie, OPERATOR):
        assert secret not in stored


def test_a_secret_file_is_read_again_when_it_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "token"
    secret = SecretFile(file)
    assert secret().get_secret_value() == ""
    for text in ("first", "second"):
        draft = tmp_path / "draft"
        draft.write_text(f"{text}\n")
        draft.replace(file)
        assert secret().get_secret_value() == text
    file.unlink()
    assert secret().get_secret_value() == ""


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("login_link_seconds", 10, 3600), ("session_seconds", 60, 2_592_000)],
)
def test_the_lives_of_links_and_sessions_have_limits(name: str, least: int, most: int) -> None:
    for seconds in (least, most):
        assert getattr(Settings.model_validate({name: seconds}), name) == seconds
    for seconds in (least - 1, most + 1):
        with pytest.raises(ValueError, match=name):
            Settings.model_validate({name: seconds})
