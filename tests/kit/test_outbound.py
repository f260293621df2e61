"""Connections lead only where the policy allows, judged by the address that is connected to."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING

import httpx2
import pytest

from penstock.kit.errors import InvalidInput
from penstock.kit.outbound import (
    PUBLIC_ONLY,
    WITH_PRIVATE,
    Outbound,
    OutboundPolicy,
    OutboundRefused,
    Zone,
    allow_list,
    resolve,
    zone_of,
)
from penstock.kit.outbound_http import (
    AnswerTooLarge,
    CheckedSyncTransport,
    CheckedTransport,
    checked_client,
    fetch,
)
from penstock.wiring.settings import Settings, load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

PUBLIC = "93.184.215.14"


class Names:
    """A resolver whose answers come in order; the last one stays."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.questions: list[str] = []

    def __call__(self, host: str, port: int) -> Iterable[str]:
        self.questions.append(host)
        return [self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]]


class Server:
    """Answers every request with the same bytes and keeps the heads of the requests."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.heads: list[str] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(self._answer)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def server(
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
) -> AsyncIterator[Server]:
    it = Server(answer)
    listening = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    async with listening:
        it.port = listening.sockets[0].getsockname()[1]
        yield it


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        (PUBLIC, Zone.PUBLIC),
        ("2606:2800:220:1::1", Zone.PUBLIC),
        ("10.0.0.1", Zone.PRIVATE),
        ("100.64.0.1", Zone.PRIVATE),
        ("172.31.255.255", Zone.PRIVATE),
        ("172.32.0.0", Zone.PUBLIC),
        ("192.168.0.1", Zone.PRIVATE),
        ("fd12::1", Zone.PRIVATE),
        ("127.0.0.1", Zone.LOOPBACK),
        ("127.255.255.255", Zone.LOOPBACK),
        ("::1", Zone.LOOPBACK),
        ("0.0.0.0", Zone.RESERVED),
        ("::", Zone.RESERVED),
        ("169.254.169.254", Zone.RESERVED),
        ("fe80::1", Zone.RESERVED),
        ("fd00:ec2::254", Zone.RESERVED),
        ("100.100.100.200", Zone.RESERVED),
        ("168.63.129.16", Zone.RESERVED),
        ("224.0.0.1", Zone.RESERVED),
        ("255.255.255.255", Zone.RESERVED),
        ("::ffff:127.0.0.1", Zone.RESERVED),
        ("::ffff:93.184.215.14", Zone.RESERVED),
        ("64:ff9b::7f00:1", Zone.RESERVED),
        ("2002:7f00:1::", Zone.RESERVED),
    ],
)
def test_an_address_belongs_to_one_zone(text: str, zone: Zone) -> None:
    assert zone_of(ip_address(text)) is zone


@pytest.mark.parametrize(
    "host", ["2130706433", "0177.0.0.1", "0x7f.1", "127.1", "127.0.0.1", "localhost", "localhost."]
)
def test_another_spelling_of_this_machine_gains_nothing(host: str) -> None:
    with pytest.raises((OutboundRefused, OSError)):
        Outbound(PUBLIC_ONLY, resolver=resolve).addresses(host, 80)


def test_one_refused_address_of_a_name_refuses_the_name() -> None:
    with pytest.raises(OutboundRefused, match=r"10\.0\.0\.7"):
        Outbound(resolver=lambda *_: (PUBLIC, "10.0.0.7")).addresses("both.example", 443)


def test_an_allow_list_opens_a_network_a_name_and_all_names_below_one() -> None:
    policy = OutboundPolicy(allow=allow_list("10.1.0.0/16, minio.example, .corp.example"))
    inside, outside = ip_address("10.1.255.255"), ip_address("10.2.0.0")
    assert policy.permits("any.example", inside)
    assert not policy.permits("any.example", outside)
    assert policy.permits("MinIO.example.", outside)
    assert policy.permits("a.b.corp.example", outside)
    assert not policy.permits("corp.example", outside)
    assert not policy.permits("notminio.example", outside)


def test_an_allowed_name_does_not_open_metadata_services_and_an_allowed_network_does() -> None:
    metadata = ip_address("169.254.169.254")
    assert not OutboundPolicy(private=True, allow=("cloud.example",)).permits(
        "cloud.example", metadata
    )
    assert OutboundPolicy(allow=("169.254.169.254",)).permits("cloud.example", metadata)


@pytest.mark.parametrize("entry", ["10.1.0.0/33", "10.1.0.1/16", "a b", "http://x", "*.x", "1.2.3"])
def test_an_entry_that_is_neither_network_nor_name_is_refused(entry: str) -> None:
    with pytest.raises(InvalidInput, match="neither a network nor a host name"):
        allow_list(f"10.0.0.0/8, {entry}")
    with pytest.raises(InvalidInput, match="outbound_allow"):
        load(outbound_allow=entry)


@pytest.mark.parametrize(
    ("megabytes", "fits"), [(0, False), (1, True), (4096, True), (4097, False)]
)
def test_the_largest_answer_has_bounds(megabytes: int, fits: bool) -> None:
    if fits:
        assert load(outbound_answer_mb=megabytes).outbound_policy.answer_bytes == megabytes * 2**20
    else:
        with pytest.raises(InvalidInput, match="outbound_answer_mb"):
            load(outbound_answer_mb=megabytes)


def test_private_networks_are_open_on_a_laptop_and_closed_on_a_server() -> None:
    assert Settings(host="127.0.0.1").outbound_policy.private
    assert not Settings(host="0.0.0.0").outbound_policy.private


def test_a_policy_arrives_at_a_worker_as_it_was_sent() -> None:
    policy = OutboundPolicy(private=True, allow=("10.0.0.0/8", "x.example"), answer_bytes=7)
    assert OutboundPolicy.from_wire(policy.to_wire()) == policy


async def test_a_name_that_leads_elsewhere_the_second_time_is_refused_at_the_connection() -> None:
    """The check of the URL and the connection each ask; only allowed answers are connected to."""
    names = Names(PUBLIC, "127.0.0.1")
    outbound = Outbound(resolver=names)
    async with server() as inside:
        assert str(outbound.addresses("rebind.example", inside.port)[0]) == PUBLIC
        async with checked_client(outbound, timeout=5) as client:
            with pytest.raises(OutboundRefused, match=r"127\.0\.0\.1"):
                await client.get(f"http://rebind.example:{inside.port}/")
        assert inside.heads == []


async def test_a_connection_goes_to_the_address_that_was_checked_under_the_name_of_the_url() -> (
    None
):
    names = Names("127.0.0.1", "169.254.169.254")
    async with (
        server() as inside,
        checked_client(Outbound(WITH_PRIVATE, resolver=names), timeout=5) as client,
    ):
        answer = await client.get(f"http://trino.example:{inside.port}/v1")
    assert (answer.text, names.questions) == ("hi", ["trino.example"])
    assert f"host: trino.example:{inside.port}\r\n" in inside.heads[0].lower()


async def test_a_redirect_is_not_followed() -> None:
    async with server() as inside:
        moved = (
            f"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:{inside.port}/\r\nContent-Length:"
            f" 0\r\n\r\n"
        )
        async with (
            server(moved.encode()) as outside,
            checked_client(Outbound(WITH_PRIVATE), timeout=5) as client,
        ):
            answer = await client.get(f"http://127.0.0.1:{outside.port}/")
        assert (answer.status_code, inside.heads) == (302, [])


async def test_what_a_server_names_leads_no_further_inside_than_the_server_itself() -> None:
    """The first server is at a public address as far as anybody can tell, the second is this
    machine."""
    outbound = Outbound(WITH_PRIVATE)
    async with server() as inside:
        first = CheckedTransport(outbound)
        async with checked_client(CheckedTransport(outbound, behind=first), timeout=5) as client:
            with pytest.raises(OutboundRefused):
                await client.get(f"http://127.0.0.1:{inside.port}/")
            async with checked_client(first, timeout=5) as origin:
                await origin.get(f"http://127.0.0.1:{inside.port}/")
            assert (await client.get(f"http://127.0.0.1:{inside.port}/")).text == "hi"


@pytest.mark.parametrize(("size", "fits"), [(100, True), (101, False)])
async def test_an_answer_is_read_up_to_its_limit(size: int, fits: bool) -> None:
    body = b"x" * size
    async with (
        server(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, body)) as it,
        checked_client(Outbound(WITH_PRIVATE), timeout=5) as client,
    ):
        request = client.build_request("GET", f"http://127.0.0.1:{it.port}/")
        if fits:
            answer = await fetch(client, request, max_bytes=100, seconds=5)
            assert answer.content == body
        else:
            with pytest.raises(AnswerTooLarge):
                await fetch(client, request, max_bytes=100, seconds=5)


async def test_an_answer_that_never_ends_is_given_up() -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(never, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening, checked_client(Outbound(WITH_PRIVATE), timeout=60) as client:
        request = client.build_request("GET", f"http://127.0.0.1:{port}/")
        with pytest.raises(httpx2.ReadTimeout, match="no whole answer"):
            await fetch(client, request, max_bytes=100, seconds=0.2)


def test_a_blocking_client_is_refused_as_well() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with (
            httpx2.Client(transport=CheckedSyncTransport(Outbound())) as client,
            pytest.raises(OutboundRefused),
        ):
            client.get(f"http://127.0.0.1:{port}/token")
