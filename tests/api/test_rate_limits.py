"""Rate limits of users and addresses, and of failed logins."""

from __future__ import annotations

from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from penstock.api.callers.client_address import client_address, parse
from penstock.api.callers.identity import Identity, Role
from penstock.api.callers.rate_limits import REFUSAL_SECONDS, VERIFIED_SECONDS, RateLimits
from penstock.kit.errors import RateLimited
from penstock.wiring.settings import Settings
from tests.api.answers import error
from tests.api.control_plane import ADMIN, ANALYST, OPERATOR, SERVICE, plane
from tests.api.test_users import bearer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.api.control_plane import Edge

PATH = "/api/data-sources"
ANN = Identity(username="ann", role=Role.ANALYST, via="api_key")
BOB = Identity(username="bob", role=Role.ANALYST, via="api_key")
FAR = ip_address("198.51.100.7")


class Ticks:
    """A clock, and the pauses that were made on it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


def limits_of(ticks: Ticks, **settings: float) -> RateLimits:
    return RateLimits(Settings(**settings), CollectorRegistry(), ticks=ticks, pause=ticks.pause)


@asynccontextmanager
async def limited(
    database: str, edge: Edge, *, trust: bool = False, **limits: float
) -> AsyncIterator[httpx2.AsyncClient]:
    async with plane(database, trust=trust, limits=limits) as services:
        with edge.showing(services) as url:
            async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
                yield client


async def test_a_user_may_send_two_seconds_worth_at_once_and_no_more(ticks: Ticks) -> None:
    limits = limits_of(ticks, user_requests_per_second=2)
    for _ in range(4):
        await limits.check_user(ANN)
    assert ticks.pauses == []
    with pytest.raises(RateLimited, match="ann sends too many requests") as refused:
        await limits.check_user(ANN)
    assert refused.value.details == {"limit": "user", "retry_after_seconds": 1}
    assert ticks.pauses == [REFUSAL_SECONDS]
    await limits.check_user(BOB)
    ticks.now = 0.5
    await limits.check_user(ANN)


async def test_the_operator_token_has_no_limit_and_neither_has_anybody_with_zero(
    ticks: Ticks,
) -> None:
    operator = Identity(username="operator", role=Role.OPS, via="operator_token")
    strict, off = (
        limits_of(ticks, user_requests_per_second=1),
        limits_of(ticks, user_requests_per_second=0),
    )
    for _ in range(11):
        await strict.check_user(operator)
        await off.check_user(ANN)


async def test_an_address_has_a_limit_that_this_machine_has_not(ticks: Ticks) -> None:
    limits = limits_of(ticks, address_requests_per_second=1)
    for _ in range(2):
        await limits.check_address(FAR)
    with pytest.raises(RateLimited, match=str(FAR)):
        await limits.check_address(FAR)
    for address in (ip_address("127.0.0.1"), ip_address("::1"), None):
        for _ in range(11):
            await limits.check_address(address)


async def test_the_addresses_of_one_ipv6_network_count_as_one(ticks: Ticks) -> None:
    limits = limits_of(ticks, address_requests_per_second=1)
    for number in range(2):
        await limits.check_address(ip_address(f"2001:db8:0:1::{number}"))
    with pytest.raises(RateLimited):
        await limits.check_address(ip_address("2001:db8:0:1:ffff::"))
    await limits.check_address(ip_address("2001:db8:0:2::"))


def test_after_too_many_wrong_credentials_only_those_that_were_right_lately_are_tried(
    ticks: Ticks,
) -> None:
    limits = limits_of(ticks, failed_logins_per_minute=3)
    limits.login_succeeded("right")
    for number in range(3):
        limits.check_login(FAR, f"wrong {number}")
        limits.login_failed(FAR)
    with pytest.raises(RateLimited, match="Too many failed logins") as refused:
        limits.check_login(FAR, "wrong 4")
    assert refused.value.details["retry_after_seconds"] == 20
    limits.check_login(FAR, "right")
    limits.check_login(ip_address("198.51.100.8"), "wrong")
    ticks.now = 20
    limits.check_login(FAR, "wrong 5")


def test_a_credential_counts_as_right_lately_for_an_hour(ticks: Ticks) -> None:
    limits = limits_of(ticks, failed_logins_per_minute=1)
    limits.login_succeeded("right")
    ticks.now = VERIFIED_SECONDS - 1
    limits.login_failed(FAR)
    limits.check_login(FAR, "right")
    ticks.now = VERIFIED_SECONDS
    with pytest.raises(RateLimited):
        limits.check_login(FAR, "right")


async def test_too_many_requests_of_a_user_are_429_and_say_when_to_try_again(
    database: str, edge: Edge
) -> None:
    async with limited(database, edge, user_requests_per_second=0.1) as client:
        assert (await client.get(PATH, headers=bearer(ANALYST))).status_code == 200
        answer = await client.get(PATH, headers=bearer(ANALYST))
        problem = error(answer, 429, "RATE_LIMITED")
        assert 1 <= int(answer.headers["retry-after"]) <= 10
        assert "user_requests_per_second" in problem["details"]["hint"]
        assert (await client.get(PATH, headers=bearer(ADMIN))).status_code == 200
        for _ in range(3):
            assert (await client.get(PATH, headers=bearer(OPERATOR))).status_code == 200
        assert (
            'penstock_rate_limited_requests_total{limit="user"} 1.0'
            in (await client.get("/metrics")).text
        )


async def test_workers_are_not_limited(database: str, edge: Edge) -> None:
    async with limited(
        database, edge, trust=True, user_requests_per_second=0.1, address_requests_per_second=0.1
    ) as client:
        far = {"X-Forwarded-For": str(FAR)}
        worker = bearer(SERVICE) | {"X-Component": "worker"} | far
        for _ in range(5):
            body = {
                "worker": "w",
                "queues": ["default"],
                "kinds": ["work"],
                "limit": 1,
                "wait_seconds": 0,
            }
            answer = await client.post("/api/internal/jobs/claim", headers=worker, json=body)
            assert answer.status_code != 429
        assert (await client.get("/health", headers=far)).status_code == 200
        error(await client.get("/health", headers=far), 429, "RATE_LIMITED")


@pytest.mark.parametrize(
    "path", ["/api/data-sources", "/api/jobs", "/api/internal/jobs/claim", "/api/users/bootstrap"]
)
async def test_guessing_tokens_is_429_on_every_way_in_and_those_that_are_signed_in_go_on(
    database: str, edge: Edge, path: str
) -> None:
    method = "GET" if path in ("/api/data-sources", "/api/jobs") else "POST"
    async with limited(database, edge, failed_logins_per_minute=2) as client:
        assert (await client.get(PATH, headers=bearer(OPERATOR))).status_code == 200
        for number in range(2):
            headers = bearer(f"guess-{number}") | {"X-Component": "worker"}
            assert (await client.request(method, "/api/users", headers=headers)).status_code == 401
        json = {"username": "x"} if method == "POST" else None
        answer = await client.request(
            method, path, headers=bearer("guess-3") | {"X-Component": "worker"}, json=json
        )
        error(answer, 429, "RATE_LIMITED")
        assert int(answer.headers["retry-after"]) > 0
        assert (await client.get(PATH, headers=bearer(OPERATOR))).status_code == 200
        error(await client.get(PATH, headers=bearer(ADMIN)), 429, "RATE_LIMITED")


async def test_guessing_login_links_sessions_and_the_secret_of_the_proxy_is_limited_too(
    database: str, edge: Edge
) -> None:
    async with limited(database, edge, failed_logins_per_minute=1) as client:
        error(await client.get("/login?token=guess"), 401, "INVALID_TOKEN")
        error(await client.get("/login?token=guess"), 429, "RATE_LIMITED")
        port = httpx2.URL(str(client.base_url)).port
        error(
            await client.get(PATH, headers={"Cookie": f"penstock_session_{port}=guess"}),
            429,
            "RATE_LIMITED",
        )
        named = {"X-Username": "ann", "X-Penstock-Proxy-Secret": "guess"}
        error(await client.get(PATH, headers=named), 429, "RATE_LIMITED")


async def test_behind_a_trusted_proxy_each_caller_has_a_limit_of_their_own(
    database: str, edge: Edge
) -> None:
    async with limited(database, edge, trust=True, address_requests_per_second=0.1) as client:

        async def status(forwarded: str) -> int:
            return (await client.get("/health", headers={"X-Forwarded-For": forwarded})).status_code

        assert await status("198.51.100.7") == 200
        assert await status("10.9.9.9, 198.51.100.7") == 429, (
            "what a caller writes before it counts for nothing"
        )
        assert await status("198.51.100.8, 127.0.0.1") == 200
        assert await status("not an address") == 200


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("10.0.0.7", None, "10.0.0.7"),
        ("10.0.0.7", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.7", "1.1.1.1, 198.51.100.7, 10.0.0.8", "198.51.100.7"),
        ("10.0.0.7", "10.0.0.8", "10.0.0.8"),
        ("10.0.0.7", "junk", "10.0.0.7"),
        ("198.51.100.9", "198.51.100.7", "198.51.100.9"),
        ("::ffff:10.0.0.7", "198.51.100.7", "198.51.100.7"),
    ],
)
def test_the_address_of_a_caller_is_what_the_last_trusted_proxy_saw(
    peer: str, forwarded: str | None, address: str
) -> None:
    networks = Settings(trusted_proxies="10.0.0.0/24").proxy_networks
    headers = [] if forwarded is None else [(b"x-forwarded-for", forwarded.encode())]
    assert client_address({"client": (peer, 1), "headers": headers}, networks) == parse(address)
