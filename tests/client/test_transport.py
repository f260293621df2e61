"""How the client speaks: tries again without doubling, and rebuilds what went wrong."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.client._async import transport
from penstock.client._async.transport import filled
from penstock.client.errors import BY_CODE, rebuilt
from tests.client.server import Answer, ScriptedServer, answering

if TYPE_CHECKING:
    from collections.abc import Iterator

MAPPING = {"data": {"id": 7, "owner_username": "ada", "name": "Movies", "current_version": 1}}


def _error(code: str, **details: Any) -> dict[str, Any]:
    return {
        "error": {"code": code, "message": "No.", "details": details},
        "meta": {"request_id": "r-1"},
    }


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr("penstock.client._sync.transport.FIRST_PAUSE", 0.0)


@contextmanager
def connected(*answers: Answer) -> Iterator[tuple[ScriptedServer, penstock.Client]]:
    with answering(*answers) as scripted, penstock.connect(scripted.url, "key") as ps:
        yield scripted, ps


def test_a_write_that_is_tried_again_shows_the_same_key() -> None:
    with connected(Answer(hang_up=True), Answer(status=502), Answer(status=201, body=MAPPING)) as (
        scripted,
        ps,
    ):
        mapping = ps.mappings.create("Movies", nodes=[])
    assert mapping.id == 7
    keys = {asked.headers["idempotency-key"] for asked in scripted.asked}
    assert (len(scripted.asked), len(keys)) == (3, 1)


def test_two_writes_show_two_keys() -> None:
    with connected(Answer(status=201, body=MAPPING)) as (scripted, ps):
        ps.mappings.create("Movies", nodes=[])
        ps.mappings.create("Movies", nodes=[])
    assert len({asked.headers["idempotency-key"] for asked in scripted.asked}) == 2


@pytest.mark.parametrize("code", ["MAINTENANCE", "DRAINING"])
def test_what_waiting_does_not_help_is_not_tried_again(code: str) -> None:
    with connected(Answer(status=503, body=_error(code))) as (scripted, ps):
        with pytest.raises(penstock.errors.Unavailable):
            ps.mappings.get(7)
        assert len(scripted.asked) == 1


def test_the_database_away_is_waited_for_as_long_as_the_server_says() -> None:
    away = Answer(status=503, body=_error("DATABASE_UNAVAILABLE"), headers={"Retry-After": "0"})
    with connected(away, away, Answer(body=MAPPING)) as (scripted, ps):
        assert ps.mappings.get(7).name == "Movies"
    assert len(scripted.asked) == 3


def test_it_gives_up_after_the_last_try_and_says_what_the_server_said() -> None:
    with connected(Answer(status=429, body=_error("RATE_LIMITED"))) as (scripted, ps):
        with pytest.raises(penstock.errors.RateLimited) as caught:
            ps.mappings.get(7)
        assert len(scripted.asked) == transport.TRIES
    assert (caught.value.code, caught.value.request_id) == ("RATE_LIMITED", "r-1")


def test_a_query_that_may_have_arrived_is_not_sent_again() -> None:
    graph = {"data": {"id": 1, "status": "running", "url_slug": "abc"}}
    with connected(Answer(body=graph), Answer(hang_up=True)) as (scripted, ps):
        running = ps.instances.get(1)
        with pytest.raises(penstock.errors.Unreachable):
            running.query("RETURN 1")
        assert [asked.path for asked in scripted.asked] == [
            "/api/instances/1",
            "/wrapper/abc/query",
        ]


def test_no_proxy_of_the_environment_is_asked_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with connected(Answer(body={"status": "healthy"})) as (_, ps):
        assert ps.health() == {"status": "healthy"}


def test_nobody_there_is_said_with_the_address_and_the_next_command() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with (
            penstock.connect(url) as ps,
            pytest.raises(penstock.errors.Unreachable, match="penstock up") as caught,
        ):
            ps.mappings.get(1)
    assert url in caught.value.message


def test_a_server_that_says_nothing_is_not_waited_for_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            penstock.connect(url, timeout=0.05) as ps,
            pytest.raises(penstock.errors.Unreachable, match="ReadTimeout"),
        ):
            ps.mappings.get(1)


def test_nothing_waits_without_an_end() -> None:
    with penstock.connect("http://127.0.0.1:9") as ps:
        waits = (ps.transport._http.timeout.as_dict(), ps.transport._slow.as_dict())
    assert waits[0] == dict.fromkeys(("connect", "read", "write", "pool"), 30.0)
    assert waits[1] == {"connect": 30.0, "read": 600.0, "write": 600.0, "pool": 30.0}


def test_a_stream_that_breaks_is_taken_up_again() -> None:
    over = {"run_id": 1, "name": "x", "status": "completed"}
    going = {"data": over | {"status": "executing"}}
    with connected(Answer(body=going), Answer(hang_up=True), Answer(body={"data": over})) as (
        scripted,
        ps,
    ):
        run = ps.reconcile.get(1)
        assert list(run.events()) == []
    assert run.status == "completed"
    assert [asked.path for asked in scripted.asked] == [
        "/api/runs/1",
        "/api/runs/1/events",
        "/api/runs/1",
    ]


def test_a_segment_cannot_leave_its_place() -> None:
    assert (
        filled("/api/x/{name}/y", {"name": "../admin?a=b#c"}) == "/api/x/..%2Fadmin%3Fa%3Db%23c/y"
    )


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_every_code_has_its_exception(code: str) -> None:
    error = rebuilt(409, _error(code, hint="Wait.", holder_name="bob"))
    assert type(error) is BY_CODE[code]
    assert (error.code, error.hint, error.details["holder_name"], str(error)) == (
        code,
        "Wait.",
        "bob",
        "No. Wait.",
    )


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, None, "NotFound"),
        (418, None, "Invalid"),
        (500, "<html>", "ServerError"),
        (409, {"error": "text"}, "Conflict"),
        (403, {"error": {"code": "NEW_CODE"}}, "PermissionDenied"),
    ],
)
def test_answers_that_are_not_ours_still_become_exceptions(
    status: int, body: Any, kind: str
) -> None:
    assert type(rebuilt(status, body)).__name__ == kind


async def test_the_asynchronous_client_is_the_same() -> None:
    with answering(Answer(body=MAPPING)) as scripted:
        async with penstock.AsyncClient(scripted.url, "key") as ps:
            assert (await ps.mappings.get(7)).name == "Movies"
    assert scripted.asked[0].headers["authorization"] == "Bearer key"


async def test_the_synchronous_client_works_inside_a_running_loop_and_from_threads() -> None:
    with connected(Answer(body=MAPPING)) as (_, ps):
        assert ps.mappings.get(7).id == 7
        assert (await asyncio.to_thread(ps.mappings.get, 7)).id == 7


def test_a_list_asks_page_by_page_and_only_as_far_as_it_is_read() -> None:
    page = {"data": [MAPPING["data"]] * 2, "meta": {"total": 3, "offset": 0, "limit": 2}}
    rest = {"data": [MAPPING["data"]], "meta": {"total": 3, "offset": 2, "limit": 2}}
    with connected(Answer(body=page), Answer(body=rest)) as (scripted, ps):
        mappings = ps.mappings.list(search="Mov")
        next(mappings)
        assert len(scripted.asked) == 1
        assert len(list(mappings)) == 2
    assert "search=Mov" in scripted.asked[1].path
    assert "offset=2" in scripted.asked[1].path
