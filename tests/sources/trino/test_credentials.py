"""Credentials go to the coordinator and to nobody else: no error, no log line, no repr and no other
server."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import structlog

from penstock.kit import logging
from penstock.kit.errors import InvalidInput, PenstockError
from penstock.sources.contract import Limits
from penstock.sources.errors import SourceRefused
from penstock.sources.trino import connect
from tests.servers.http import Fault, HttpServer, Request, Response
from tests.sources.conformance import chunk, collect_batches, told
from tests.sources.trino.subjects import FakeSubject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.sources.trino import TrinoSource
    from tests.servers.trino_fake import TrinoFake

PASSWORD = "c0rrect-h0rse"
TOKEN = "eyJhbGciOi.J9.s3cret-signature"


@pytest.fixture
def subject(fake_trino: TrinoFake) -> FakeSubject:
    return FakeSubject(fake_trino)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    written = io.StringIO()
    logging.configure(level="DEBUG", stream=written)
    yield written
    structlog.reset_defaults()


def source_with(subject: FakeSubject, secrets: dict[str, str], **changes: object) -> TrinoSource:
    return connect({**subject.config, **changes}, secrets)


async def test_a_password_is_sent_with_every_request(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    fake_trino.passwords["tester"] = PASSWORD
    async with source_with(subject, {"password": PASSWORD}) as source:
        assert await collect_batches(source, "SELECT 1 AS one") == 1
    expected = "Basic " + base64.b64encode(f"tester:{PASSWORD}".encode()).decode()
    assert {request.headers.get("authorization") for request in fake_trino.requests} == {expected}


async def test_a_token_is_sent_as_a_bearer(fake_trino: TrinoFake, subject: FakeSubject) -> None:
    fake_trino.passwords[""] = TOKEN
    async with source_with(subject, {"token": TOKEN}) as source:
        await source.test()
    assert {request.headers.get("authorization") for request in fake_trino.requests} == {
        f"Bearer {TOKEN}"
    }


@pytest.mark.parametrize("secrets", [{"password": "wr0ng-0ne"}, {"token": "wr0ng-0ne"}])
async def test_a_wrong_secret_is_refused_and_never_shown(
    fake_trino: TrinoFake, subject: FakeSubject, log: io.StringIO, secrets: dict[str, str]
) -> None:
    fake_trino.passwords["tester"] = PASSWORD
    async with source_with(subject, secrets) as source:
        with pytest.raises(SourceRefused) as error:
            await source.test()
    assert "wr0ng-0ne" not in told(error.value) + log.getvalue() + repr(source)


async def test_a_server_that_echoes_the_secret_does_not_bring_it_into_the_error(
    subject: FakeSubject, log: io.StringIO
) -> None:
    async def echo(request: Request) -> Response:
        return Response(
            status=400, body=f"bad header: {request.headers['authorization']} {PASSWORD}".encode()
        )

    async with HttpServer(echo) as server:
        config = {**subject.config, "url": f"http://127.0.0.1:{server.port}"}
        async with connect(config, {"password": PASSWORD}) as source:
            with pytest.raises(PenstockError, match="bad header") as error:
                await source.test()
    shown = told(error.value) + log.getvalue()
    assert PASSWORD not in shown
    assert base64.b64encode(f"tester:{PASSWORD}".encode()).decode() not in shown


async def test_no_secret_is_shown_by_a_configuration_or_written_by_a_successful_run(
    fake_trino: TrinoFake, subject: FakeSubject, log: io.StringIO
) -> None:
    async with source_with(subject, {"password": PASSWORD}) as source:
        plan = await source.plan("SELECT 1 AS one", Limits())
        assert await collect_batches(source, "SELECT 1 AS one") == 1
    assert PASSWORD not in repr(source._config) + repr(plan) + log.getvalue()
    assert "trino_query_registered" in log.getvalue()


@pytest.mark.parametrize("origin", ["foreign", "redirected"])
async def test_a_segment_in_foreign_storage_is_fetched_without_our_credentials(
    fake_trino: TrinoFake, subject: FakeSubject, origin: str
) -> None:
    """In the storage itself, or at the coordinator that redirects to it."""
    fake_trino.engine.load("numbers", pa.table({"n": pa.array(range(4000), pa.int64())}))

    async def storage(request: Request) -> Response:
        return Response(body=fake_trino.segments[request.path.rpartition("/")[2]])

    async with HttpServer(storage) as server:
        elsewhere = f"http://127.0.0.1:{server.port}"
        if origin == "foreign":
            fake_trino.storage_url = elsewhere
        else:
            fake_trino.redirect_url = elsewhere
        async with source_with(subject, {"password": PASSWORD}) as source:
            assert await collect_batches(source, "SELECT n FROM numbers") == 4000
        assert server.requests
        for request in server.requests:
            assert "authorization" not in request.headers
            assert "x-amz-server-side-encryption-customer-key" in request.headers


async def test_what_a_storage_says_of_a_failure_is_not_repeated(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    fake_trino.engine.load("numbers", pa.table({"n": pa.array(range(4000), pa.int64())}))

    async def storage(_: Request) -> Response:
        return Response(
            status=403, body=b"<Error><StringToSign>X-Amz-Signature=5ecret</StringToSign></Error>"
        )

    async with HttpServer(storage) as server:
        fake_trino.storage_url = f"http://127.0.0.1:{server.port}"
        async with source_with(subject, {}) as source:
            with pytest.raises(PenstockError, match="403") as error:
                await collect_batches(source, "SELECT n FROM numbers")
    assert "5ecret" not in told(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://trino.example:8080",
        "http://10.0.0.1",
        "http://128.0.0.1",
        "http://localhost.evil.example",
    ],
)
def test_plain_http_is_for_this_machine(url: str) -> None:
    with pytest.raises(InvalidInput, match="plain http"):
        connect({"url": url, "user": "u"}, {"password": PASSWORD})
    connect({"url": url, "user": "u", "allow_http": True}, {"password": PASSWORD})


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080",
        "http://localhost",
        "http://[::1]:80",
        "https://trino.example",
        "https://trino.example:443/",
    ],
)
def test_https_and_loopback_are_fine(url: str) -> None:
    connect({"url": url, "user": "u"}, {"password": PASSWORD})


@pytest.mark.parametrize(
    ("config", "secrets"),
    [
        ({"url": f"https://u:{PASSWORD}@trino.example"}, {}),
        ({"url": "https://trino.example/path"}, {}),
        ({"url": "ftp://trino.example"}, {}),
        ({"url": "trino.example"}, {}),
        ({"url": "https://trino.example", "password": PASSWORD}, {}),
        ({"url": "https://trino.example"}, {"password": PASSWORD, "token": TOKEN}),
        ({"url": "https://trino.example", "encodings": ["arrow"]}, {}),
        ({"url": "https://trino.example", "nonsense": 1}, {}),
        ({"url": "https://trino.example", "user": "a\r\nX-Trino-Role: b"}, {}),
    ],
)
def test_a_wrong_configuration_is_named_without_its_secret(
    config: dict[str, object], secrets: dict[str, str]
) -> None:
    with pytest.raises(InvalidInput) as error:
        connect({"user": "u", **config}, secrets)
    assert PASSWORD not in told(error.value)


async def test_a_trace_cannot_bring_a_header_of_its_own(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    async with source_with(subject, {}) as source:
        async for _ in source.stream(
            chunk("SELECT 1 AS one"), trace="job\r\nX-Trino-Role: system=ROLE{admin}"
        ):
            pass
    assert {query.headers["x-trino-role"] for query in fake_trino.queries.values()} == {
        "system=ROLE%7Banalyst%7D"
    }


async def test_an_error_of_the_network_does_not_show_the_address_of_a_page(
    fake_trino: TrinoFake, subject: FakeSubject
) -> None:
    fake_trino.faults.append(Fault(misdeed="reset", times=99))
    async with source_with(subject, {"password": PASSWORD}, retry_seconds=0) as source:
        with pytest.raises(PenstockError) as error:
            await collect_batches(source, "SELECT 1 AS one")
    assert "/v1/statement" not in error.value.message
    assert PASSWORD not in told(error.value)
