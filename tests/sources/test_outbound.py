"""No driver connects to an address that the policy of its source does not allow."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from penstock.kit.outbound import (
    PUBLIC_ONLY,
    WITH_PRIVATE,
    Outbound,
    OutboundPolicy,
    OutboundRefused,
)
from penstock.sources.bigquery.config import Config as BigQueryConfig
from penstock.sources.bigquery.credentials import Credentials
from penstock.sources.contract import Chunk
from penstock.sources.credentials import SourceCredentials
from penstock.sources.errors import SourceError, SourceRefused
from penstock.sources.files.config import Config as FilesConfig
from penstock.sources.files.place import Place
from penstock.sources.postgres.config import Config as PostgresConfig
from penstock.sources.postgres.config import conninfo, pinned_servers
from penstock.sources.trino import connect
from penstock.sources.trino.config import Config as TrinoConfig
from penstock.sources.trino.wire import Wire, storage_headers
from tests.sources.trino.subjects import ROLE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


@pytest.fixture
def silent() -> Any:
    """A port of this machine where somebody listens; whoever connects is seen."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


def untouched(listening: socket.socket) -> bool:
    try:
        listening.accept()
    except BlockingIOError:
        return True
    return False


def sources(port: int) -> list[tuple[str, dict[str, object], dict[str, str]]]:
    url = f"http://127.0.0.1:{port}"
    keys = {"access_key_id": "a", "secret_access_key": "b"}
    login = {"database": "d", "user": "u", "port": port}
    return [
        ("bigquery", {"project": "my-project", "rest_endpoint": url, "storage_endpoint": url}, {}),
        ("elasticsearch", {"url": url}, {}),
        ("files", {"url": "s3://bucket/x", "endpoint": url, "allow_http": True}, keys),
        ("mysql", {"host": "127.0.0.1", **login}, {}),
        ("postgres", {"host": "127.0.0.1", **login}, {}),
        ("postgres", {"host": "127.1", **login}, {}),
        ("trino", {"url": url, "user": "u", "starburst_role": ROLE}, {}),
    ]


@pytest.mark.parametrize("number", range(7))
async def test_no_driver_connects_to_this_machine_without_leave(
    number: int, silent: socket.socket
) -> None:
    kind, config, secrets = sources(silent.getsockname()[1])[number]
    opening = SourceCredentials(type=kind, config=config, secrets=secrets, outbound=PUBLIC_ONLY)
    with pytest.raises(OutboundRefused):
        async with opening.opened() as source:
            await source.test()
    assert untouched(silent)


@pytest.mark.parametrize("kind", ["mysql", "postgres"])
async def test_no_driver_opens_a_socket_of_this_machine_without_leave(kind: str) -> None:
    config = {"host": "/var/run", "database": "d", "user": "u"}
    with pytest.raises(OutboundRefused, match="socket"):
        async with SourceCredentials(type=kind, config=config, secrets={}).opened() as source:
            await source.test()


def test_a_postgres_connection_names_the_address_and_keeps_the_name_for_tls() -> None:
    answers = iter([["93.184.215.14", "93.184.215.15"]])
    outbound = Outbound(resolver=lambda *_: next(answers))
    config = PostgresConfig(database="d", user="u", host="db.example")
    text = conninfo(config, pinned_servers(config, outbound))
    assert "host='db.example,db.example'" in text
    assert "hostaddr='93.184.215.14,93.184.215.15'" in text


def test_the_key_of_a_service_account_cannot_name_a_token_service_on_this_machine(
    silent: socket.socket,
) -> None:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    key = {
        "type": "service_account",
        "client_email": "a@b.example",
        "token_uri": f"http://127.0.0.1:{silent.getsockname()[1]}/token",
        "private_key": pem.decode(),
    }
    config = BigQueryConfig(project="my-project", service_account=json.dumps(key))
    with pytest.raises(OutboundRefused):
        Credentials(config, Outbound()).headers_now()
    assert untouched(silent)


class RogueTrino:
    """Registers any query and answers it with one spooled segment, as the test wants it."""

    def __init__(self) -> None:
        self.url = ""
        self.segment: dict[str, object] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.redirect: str | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = lines[0].split(" ")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append((path, headers))
        if path == "/moved" and self.redirect is not None:
            head = f"HTTP/1.1 307 X\r\nLocation: {self.redirect}\r\nContent-Length: 0"
            body = b""
        else:
            head, body = "HTTP/1.1 200 OK", json.dumps(self._answer(method)).encode()
            head += f"\r\nContent-Length: {len(body)}"
        writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    def _answer(self, method: str) -> dict[str, object]:
        if method == "POST":
            return {"id": "q1", "nextUri": f"{self.url}/next", "stats": {"state": "QUEUED"}}
        column = {
            "name": "n",
            "type": "bigint",
            "typeSignature": {"rawType": "bigint", "arguments": []},
        }
        spool = {"encoding": "json", "segments": [self.segment]}
        return {"id": "q1", "columns": [column], "data": spool, "stats": {"state": "FINISHED"}}


COLUMNS = [
    {
        "name": "n",
        "type": "bigint",
        "typeSignature": {"rawType": "bigint", "arguments": []},
    }
]


@asynccontextmanager
async def rogue() -> AsyncIterator[RogueTrino]:
    it = RogueTrino()
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    async with server:
        it.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield it


def spooled(uri: str, **changes: object) -> dict[str, object]:
    metadata = {"rowOffset": 0, "rowsCount": 1, "segmentSize": 5}
    return {"type": "spooled", "uri": uri, "ackUri": uri, "metadata": metadata, **changes}


async def read(server: RogueTrino, outbound: Outbound) -> None:
    config = {"url": server.url, "user": "u", "starburst_role": ROLE, "retry_seconds": 0}
    async with connect(config, {"password": "secret"}, outbound) as source:
        chunk = Chunk(number=0, sql="SELECT 1 AS n", extra={"columns": COLUMNS})
        async for _ in source.stream(chunk):
            pass


async def test_a_rogue_trino_cannot_have_the_network_asked() -> None:
    """The name of its segment leads to the cloud's metadata service."""

    def names(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] if host == "127.0.0.1" else ["169.254.169.254"]

    async with rogue() as server:
        server.segment = spooled("http://metadata.example/latest")
        with pytest.raises(OutboundRefused, match=r"169\.254\.169\.254"):
            await read(server, Outbound(WITH_PRIVATE, resolver=names))


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1/x",
        "http://user:password@127.0.0.1/x",
        "http:///x",
        "http://127.0.0.1/\r\nX-Injected: 1",
        "http://127.0.0.1/" + "x" * 9000,
        "",
    ],
)
async def test_a_segment_has_a_plain_http_address(uri: str) -> None:
    async with rogue() as server:
        server.segment = spooled(uri)
        with pytest.raises(SourceError, match="segment URL"):
            await read(server, Outbound(WITH_PRIVATE))


@pytest.mark.parametrize(
    "headers",
    [
        {"Metadata-Flavor": "Google"},
        {"X-aws-ec2-metadata-token": "x"},
        {"Metadata": "true"},
        {"Authorization": "Bearer x"},
        {"Host": "internal"},
        {"X-Amz-Server-Side-Encryption-Customer-Key": "x\r\nHost: internal"},
        {"X-Amz-Server-Side-Encryption-Customer-Key": "x" * 4097},
        {f"x-ms-encryption-{n}": "x" for n in range(17)},
    ],
)
def test_a_segment_cannot_choose_the_headers_of_its_request(headers: dict[str, str]) -> None:
    with pytest.raises(SourceError, match="header"):
        storage_headers(headers)


def test_a_segment_may_carry_what_decrypts_it() -> None:
    headers = {f"x-ms-encryption-{n}": "x" * 4096 for n in range(16)}
    assert storage_headers(headers) == headers


async def test_a_redirect_of_a_segment_leads_to_no_refused_address(silent: socket.socket) -> None:
    async with rogue() as server:
        server.redirect = f"http://[::ffff:127.0.0.1]:{silent.getsockname()[1]}/"
        server.segment = spooled(f"{server.url}/moved")
        with pytest.raises(OutboundRefused):
            await read(server, Outbound(WITH_PRIVATE))
        assert [path for path, _ in server.requests][-2:] == ["/next", "/moved"]
    assert untouched(silent)


async def test_a_segment_s_acknowledgement_goes_to_the_coordinator_alone(
    silent: socket.socket,
) -> None:
    wire = Wire(TrinoConfig(url="https://trino.example", user="u"), Outbound(WITH_PRIVATE))
    await wire.acknowledge(f"http://127.0.0.1:{silent.getsockname()[1]}/ack")
    await wire.close()
    assert untouched(silent)


MALFORMED: list[Callable[[], dict[str, object]]] = [
    lambda: spooled("http://x", metadata=None),
    lambda: spooled("http://x", headers=["a"]),
    lambda: spooled("http://x", headers={"a": 1}),
    lambda: spooled("http://x", metadata={"rowOffset": -1, "rowsCount": 1, "segmentSize": 1}),
    lambda: {"type": "inline", "data": 5, "metadata": {}},
]


@pytest.mark.parametrize("make", MALFORMED)
async def test_a_list_of_segments_that_is_none_is_an_error_of_the_source(
    make: Callable[[], dict[str, object]],
) -> None:
    async with rogue() as server:
        server.segment = make()
        with pytest.raises(SourceError, match="list of segments is invalid"):
            await read(server, Outbound(WITH_PRIVATE))


async def test_a_segment_may_not_claim_more_than_an_answer_may_hold() -> None:
    async with rogue() as server:
        metadata = {"rowOffset": 0, "rowsCount": 1, "segmentSize": 1, "uncompressedSize": 1001}
        server.segment = spooled("http://x", metadata=metadata)
        policy = OutboundPolicy(private=True, answer_bytes=1000)
        with pytest.raises(SourceError, match="more than 1,000 bytes"):
            await read(server, Outbound(policy))


def test_a_store_on_the_internet_speaks_https() -> None:
    config = FilesConfig(url="s3://bucket/x", endpoint="http://store.example", allow_http=True)
    outbound = Outbound(WITH_PRIVATE, resolver=lambda *_: ["93.184.215.14"])
    with pytest.raises(SourceRefused, match="must use https"):
        Place(config, outbound).entries()
