"""No form of a private address is reachable, and a host is resolved exactly once."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.guard.errors import UrlRefused
from penstock.guard.url import resolve_public
from tests.guard.cases import lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.guard.url import Network

PUBLIC = "93.184.215.14"
HOSTILE = lines("urls.txt")


class Names:
    """A resolver with fixed answers that counts its calls."""

    def __init__(self, *answers: str) -> None:
        self.answers = answers
        self.asked: list[tuple[str, int]] = []

    def __call__(self, host: str, port: int) -> tuple[str, ...]:
        self.asked.append((host, port))
        return self.answers


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(set(HOSTILE)) >= 60


@pytest.mark.parametrize("line", HOSTILE)
def test_a_hostile_url_is_refused(line: str) -> None:
    url, arrow, answers = line.partition(" -> ")
    names = Names(*filter(None, answers.split(","))) if arrow else Names(PUBLIC)
    with pytest.raises(UrlRefused) as refusal:
        resolve_public(url, resolver=names)
    assert refusal.value.status == 422


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://hooks.example/run?x=1#top", "hooks.example", 443),
        ("http://hooks.example", "hooks.example", 80),
        ("HTTPS://Hooks.Example:8443/", "hooks.example", 8443),
        ("https://hooks.example./", "hooks.example", 443),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443),
        ("https://a_b.hooks-1.example/@user?u=a@b", "a_b.hooks-1.example", 443),
        ("https://10.example/", "10.example", 443),
    ],
)
def test_a_public_name_is_pinned_to_all_its_addresses(url: str, host: str, port: int) -> None:
    names = Names(PUBLIC, "2606:2800:21f:cb07:6820:80da:af6b:8b2c", PUBLIC)
    pinned = resolve_public(url, resolver=names)
    assert (pinned.url, pinned.host, pinned.port) == (url, host, port)
    assert pinned.addresses == (
        ip_address(PUBLIC),
        ip_address("2606:2800:21f:cb07:6820:80da:af6b:8b2c"),
    )
    assert names.asked == [(host, port)]


@pytest.mark.parametrize("host", ["8.8.8.8", "[2606:4700:4700::1111]"])
def test_a_public_address_is_taken_as_it_is_and_nothing_is_asked(host: str) -> None:
    names = Names("10.0.0.1")
    assert resolve_public(f"https://{host}/", resolver=names).addresses == (
        ip_address(host.strip("[]")),
    )
    assert names.asked == []


def test_a_second_answer_cannot_lead_elsewhere() -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"]])
    pinned = resolve_public("https://rebind.example/", resolver=lambda *_: next(answers))
    assert pinned.addresses == (ip_address(PUBLIC),)
    with pytest.raises(UrlRefused, match=r"127\.0\.0\.1, which is not a public address"):
        resolve_public("https://rebind.example/", resolver=lambda *_: next(answers))


def test_an_allowed_network_is_reached_by_address_and_by_name_and_no_other_is() -> None:
    lan: list[Network | str] = ["10.1.0.0/16", ip_network("fd00:1::/32")]
    assert _reached("http://10.1.2.3/", lan) == "10.1.2.3"
    assert _reached("http://[fd00:1::5]/", lan) == "fd00:1::5"
    assert resolve_public("http://trino:8080/", allow=lan, resolver=Names("10.1.2.3")).port == 8080
    with pytest.raises(UrlRefused):
        _reached("http://10.2.0.1/", lan)
    with pytest.raises(UrlRefused):
        resolve_public("http://trino:8080/", allow=lan, resolver=Names("10.1.2.3", "10.2.0.1"))
    with pytest.raises(UrlRefused):
        _reached("http://[::ffff:10.1.2.3]/", lan)


def test_ports_are_the_callers_choice() -> None:
    assert resolve_public("http://a.example:5432/", ports=None, resolver=Names(PUBLIC)).port == 5432
    assert (
        resolve_public("http://a.example:9000/", ports=[9000], resolver=Names(PUBLIC)).port == 9000
    )
    with pytest.raises(UrlRefused, match="Port 80 is not allowed"):
        resolve_public("http://a.example/", ports=[443], resolver=Names(PUBLIC))


def test_a_url_may_be_2048_characters_long_and_not_one_more() -> None:
    url = "https://a.example/" + "x" * (2048 - len("https://a.example/"))
    assert resolve_public(url, resolver=Names(PUBLIC)).url == url
    with pytest.raises(UrlRefused, match="too long"):
        resolve_public(url + "x", resolver=Names(PUBLIC))


def test_a_resolver_that_fails_is_a_refusal() -> None:
    def failing(host: str, port: int) -> list[str]:
        raise OSError("no such host")

    with pytest.raises(UrlRefused, match=r"a\.example has no address"):
        resolve_public("https://a.example/", resolver=failing)


def test_the_systems_resolver_is_asked_by_default() -> None:
    with pytest.raises(UrlRefused):
        resolve_public("http://localhost:8080/", allow=["192.0.2.0/24"])


@given(st.ip_addresses())
def test_an_address_is_reached_only_if_the_registry_calls_it_global(
    address: IPv4Address | IPv6Address,
) -> None:
    text = str(address)
    host = f"[{text}]" if ":" in text else text
    try:
        pinned = resolve_public(f"http://{host}/")
    except UrlRefused:
        return
    assert pinned.addresses[0].is_global
    assert not pinned.addresses[0].is_multicast


def _reached(url: str, allow: Sequence[Network | str]) -> str:
    pinned = resolve_public(url, allow=allow, resolver=Names())
    return str(pinned.addresses[0])
