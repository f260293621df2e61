"""The precedence of credentials, and what each of them may do, over HTTP."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from penstock.accounts.oidc import Keys, Oidc, OidcSettings
from penstock.api.callers.credentials import TokenHolders
from penstock.api.callers.local_only import PROXY_HEADERS
from penstock.kit.outbound import FOR_OPERATOR
from tests.accounts.provider import AUDIENCE, Provider
from tests.api.answers import error
from tests.api.control_plane import ADMIN, INSTANCE_TOKENS, OPERATOR, SERVICE, plane
from tests.api.test_users import add, bearer, make_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from penstock.api.services import Services
    from tests.api.control_plane import Edge

ADMINS_ONLY = "/api/jobs"
OPS_ONLY = "/api/audit"
PROXY_SECRET = "a secret of the proxy and us"


@asynccontextmanager
async def client_of(edge: Edge, services: Services) -> AsyncIterator[httpx2.AsyncClient]:
    with edge.showing(services) as url:
        async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
            yield client


@pytest.fixture
async def behind_proxy(database: str, edge: Edge) -> AsyncIterator[httpx2.AsyncClient]:
    async with plane(database, trust=True) as services, client_of(edge, services) as client:
        yield client


@pytest.fixture
async def local(database: str, edge: Edge) -> AsyncIterator[httpx2.AsyncClient]:
    async with plane(database, local_only=True) as services, client_of(edge, services) as client:
        yield client


async def grow(client: httpx2.AsyncClient, username: str, role: str) -> None:
    answer = await client.post(
        "/api/users", json={"username": username, "role": role}, headers=bearer(OPERATOR)
    )
    assert answer.status_code == 201


async def test_headers_are_not_believed_unless_the_server_is_told_to(
    anyone: httpx2.AsyncClient,
) -> None:
    shown = {"X-Username": "ann", "X-User-Role": "ops"}
    error(await anyone.get("/api/data-sources", headers=shown), 401, "AUTHENTICATION_REQUIRED")
    admin = bearer(ADMIN) | {"X-User-Role": "analyst"}
    assert (await anyone.get(ADMINS_ONLY, headers=admin)).status_code == 200


async def test_a_trusted_proxy_names_the_user_and_a_newcomer_is_an_analyst(
    behind_proxy: httpx2.AsyncClient,
) -> None:
    ann = {"X-Username": "ann", "X-User-Role": "ops"}
    assert (await behind_proxy.get("/api/data-sources", headers=ann)).status_code == 200
    error(await behind_proxy.get(ADMINS_ONLY, headers=ann), 403, "PERMISSION_DENIED")
    shown = (await behind_proxy.get("/api/users/ann", headers=ann)).json()
    assert shown["role"] == "analyst"
    assert shown["last_login_at"] is not None


async def test_a_role_header_lowers_and_never_raises(behind_proxy: httpx2.AsyncClient) -> None:
    await grow(behind_proxy, "boss", "ops")
    await grow(behind_proxy, "ann", "admin")

    async def status(path: str, username: str, role: str | None) -> int:
        headers = {"X-Username": username} | ({} if role is None else {"X-User-Role": role})
        return (await behind_proxy.get(path, headers=headers)).status_code

    assert [await status(OPS_ONLY, "boss", role) for role in (None, "ops", "admin", "analyst")] == [
        200,
        200,
        403,
        403,
    ]
    assert [
        await status(ADMINS_ONLY, "ann", role) for role in (None, "ops", "admin", "analyst")
    ] == [
        200,
        200,
        200,
        403,
    ]
    assert await status(OPS_ONLY, "ann", "ops") == 403


async def test_a_role_header_never_outranks_a_verified_token(
    behind_proxy: httpx2.AsyncClient,
) -> None:
    await grow(behind_proxy, "boss", "ops")
    both = bearer(ADMIN) | {"X-Username": "boss", "X-User-Role": "ops"}
    error(await behind_proxy.get(OPS_ONLY, headers=both), 403, "PERMISSION_DENIED")
    lowered = bearer(OPERATOR) | {"X-User-Role": "analyst"}
    error(await behind_proxy.get(OPS_ONLY, headers=lowered), 403, "PERMISSION_DENIED")


async def test_a_token_that_does_not_count_is_not_mended_by_a_header(
    behind_proxy: httpx2.AsyncClient,
) -> None:
    shown = bearer("pst_wrong") | {"X-Username": "ann"}
    error(await behind_proxy.get("/api/data-sources", headers=shown), 401, "INVALID_TOKEN")


@pytest.mark.parametrize("word", ["king", "", "OPS", "analyst,ops"])
async def test_a_role_that_is_none_is_refused(behind_proxy: httpx2.AsyncClient, word: str) -> None:
    shown = {"X-Username": "ann", "X-User-Role": word}
    error(await behind_proxy.get("/api/data-sources", headers=shown), 401, "INVALID_ROLE")


async def test_a_credential_that_is_there_twice_is_refused(anyone: httpx2.AsyncClient) -> None:
    for method, path, token in (
        ("GET", ADMINS_ONLY, ADMIN),
        ("POST", "/api/jobs", ADMIN),
        ("POST", "/api/internal/jobs/claim", SERVICE),
    ):
        twice = [("Authorization", f"Bearer {token}")] * 2
        answer = await anyone.request(method, path, headers=[*twice, ("X-Component", "worker")])
        error(answer, 401, "INVALID_TOKEN")


async def test_a_header_that_is_there_twice_is_refused(behind_proxy: httpx2.AsyncClient) -> None:
    for name in ("X-Username", "X-User-Role"):
        shown = [("X-Username", "ann"), ("X-User-Role", "analyst"), (name, "ops")]
        error(await behind_proxy.get("/api/data-sources", headers=shown), 401, "INVALID_TOKEN")


@pytest.mark.parametrize(
    "username", ["", "a/b", "..", "operator", "x" * 201, "' OR 1=1 --", "Ünal"]
)
async def test_a_name_that_cannot_be_one_is_refused(
    behind_proxy: httpx2.AsyncClient, username: str
) -> None:
    shown = {"X-Username": username.encode("utf-8")}
    error(await behind_proxy.get("/api/data-sources", headers=shown), 401, "INVALID_TOKEN")


async def test_a_deactivated_user_is_not_let_in_by_a_header(
    behind_proxy: httpx2.AsyncClient,
) -> None:
    await grow(behind_proxy, "ann", "analyst")
    await behind_proxy.delete("/api/users/ann", headers=bearer(OPERATOR))
    error(
        await behind_proxy.get("/api/data-sources", headers={"X-Username": "ANN"}),
        401,
        "INVALID_TOKEN",
    )


@pytest.mark.parametrize(
    ("proxies", "secret", "header", "status"),
    [
        ("127.0.0.0/8", None, None, 200),
        ("10.0.0.0/8, ::1", None, None, 401),
        (None, PROXY_SECRET, PROXY_SECRET, 200),
        (None, PROXY_SECRET, None, 401),
        (None, PROXY_SECRET, "", 401),
        (None, PROXY_SECRET, PROXY_SECRET + "x", 401),
        ("127.0.0.1", PROXY_SECRET, PROXY_SECRET, 200),
        ("127.0.0.1", PROXY_SECRET, None, 401),
        ("10.0.0.7", PROXY_SECRET, PROXY_SECRET, 401),
    ],
)
async def test_a_proxy_is_known_by_its_address_its_secret_or_both(
    database: str,
    edge: Edge,
    proxies: str | None,
    secret: str | None,
    header: str | None,
    status: int,
) -> None:
    headers = {"X-Username": "ann"} | (
        {} if header is None else {"X-Penstock-Proxy-Secret": header}
    )
    trusting = plane(database, trust=True, proxies=proxies, proxy_secret=secret)
    async with trusting as services, client_of(edge, services) as client:
        answer = await client.get("/api/data-sources", headers=headers)
        assert answer.status_code == status
        if status == 401:
            assert "PENSTOCK_TRUSTED_HEADERS" in answer.json()["error"]["details"]["hint"]


async def test_nobody_becomes_the_proxy_by_claiming_its_address(database: str, edge: Edge) -> None:
    async with (
        plane(database, trust=True, proxies="10.0.0.7") as services,
        client_of(edge, services) as client,
    ):
        for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded"):
            headers = {"X-Username": "ann", name: "10.0.0.7"}
            error(
                await client.get("/api/data-sources", headers=headers),
                401,
                "AUTHENTICATION_REQUIRED",
            )


async def test_a_role_header_of_others_than_the_proxy_changes_nothing(
    database: str, edge: Edge
) -> None:
    async with (
        plane(database, trust=True, proxies="10.0.0.7") as services,
        client_of(edge, services) as client,
    ):
        lowered = bearer(OPERATOR) | {"X-User-Role": "analyst"}
        assert (await client.get(OPS_ONLY, headers=lowered)).status_code == 200


async def test_on_a_machine_of_ones_own_no_other_name_reaches_us(local: httpx2.AsyncClient) -> None:
    """A web page whose own name was made to point at this machine sends that name."""
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "localhost.evil.example:80",
        "",
    ):
        for path in ("/api/data-sources", "/health", "/login?token=x"):
            answer = await local.get(path, headers=bearer(OPERATOR) | {"Host": host})
            error(answer, 403, "PERMISSION_DENIED")
    for host in ("localhost:8080", "127.0.0.1", "[::1]:8080"):
        answer = await local.get("/api/data-sources", headers=bearer(OPERATOR) | {"Host": host})
        assert answer.status_code == 200


@pytest.mark.parametrize(
    "name",
    [
        *sorted(PROXY_HEADERS),
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X_Forwarded_For",
        "X-Forwarded",
        "CF-Ray",
    ],
)
async def test_on_a_machine_of_ones_own_nothing_that_came_through_a_proxy_is_answered(
    local: httpx2.AsyncClient, name: str
) -> None:
    answer = await local.get("/api/data-sources", headers=bearer(OPERATOR) | {name: "10.0.0.7"})
    error(answer, 403, "PERMISSION_DENIED")
    assert "PENSTOCK_TRUSTED_PROXIES" in answer.json()["error"]["details"]["hint"]


async def test_on_a_machine_of_ones_own_a_name_in_a_header_is_not_believed(
    local: httpx2.AsyncClient,
) -> None:
    answer = await local.get("/api/data-sources", headers={"X-Username": "ann"})
    error(answer, 401, "AUTHENTICATION_REQUIRED")


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider().running() as running:
        yield running


async def anywhere(url: str) -> None:
    pass


@asynccontextmanager
async def with_provider(
    provider: Provider, database: str, edge: Edge, **changed: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    settings = OidcSettings(issuer=provider.url, audience=AUDIENCE, **changed)
    oidc = Oidc(settings, Keys(settings, reach=anywhere, outbound=FOR_OPERATOR))
    async with plane(database) as services:
        assert services.people is not None
        holders = TokenHolders(oidc, services.people.users)
        knowing = replace(services, authenticators=(*services.authenticators, holders))
        async with client_of(edge, knowing) as client:
            yield client


async def test_a_providers_token_is_let_in_and_its_user_is_known_from_then_on(
    provider: Provider, database: str, edge: Edge
) -> None:
    async with with_provider(provider, database, edge) as client:
        ann = bearer(provider.token(name="Ann"))
        shown = (await client.get("/api/users/ann@example.com", headers=ann)).json()
        assert (shown["role"], shown["email"], shown["display_name"]) == (
            "analyst",
            "ann@example.com",
            "Ann",
        )
        assert shown["last_login_at"] is not None
        again = bearer(provider.token("ec-1", email="Ann@Example.com"))
        assert (await client.get("/api/users/ann@example.com", headers=again)).status_code == 200
        await client.put(
            "/api/users/ann@example.com/role", json={"role": "admin"}, headers=bearer(OPERATOR)
        )
        assert (await client.get(ADMINS_ONLY, headers=ann)).status_code == 200
        await client.delete("/api/users/ann@example.com", headers=bearer(OPERATOR))
        error(await client.get("/api/data-sources", headers=ann), 401, "INVALID_TOKEN")


async def test_a_claim_says_what_a_newcomer_begins_with_and_later_only_lowers(
    provider: Provider, database: str, edge: Edge
) -> None:
    async with with_provider(provider, database, edge, role_claim="roles") as client:

        async def status(*roles: str) -> int:
            headers = bearer(provider.token(roles=list(roles)))
            return (await client.get(ADMINS_ONLY, headers=headers)).status_code

        assert await status("admin") == 200
        assert await status("analyst") == 403
        assert await status("ops") == 200
        error(
            await client.get(OPS_ONLY, headers=bearer(provider.token(roles=["ops"]))),
            403,
            "PERMISSION_DENIED",
        )
        error(
            await client.get(ADMINS_ONLY, headers=bearer(provider.token(roles=["king"]))),
            401,
            "INVALID_ROLE",
        )
        error(
            await client.get(ADMINS_ONLY, headers=bearer(provider.token(aud="other"))),
            401,
            "INVALID_TOKEN",
        )
        unnameable = bearer(provider.token(email="a b@example.com", roles=["analyst"]))
        error(await client.get(ADMINS_ONLY, headers=unnameable), 401, "INVALID_TOKEN")


async def test_many_who_come_for_the_first_time_at_once_are_one_user(
    provider: Provider, database: str, edge: Edge
) -> None:
    async with with_provider(provider, database, edge) as client:
        ann = bearer(provider.token())
        answers = await asyncio.gather(
            *(client.get("/api/data-sources", headers=ann) for _ in range(8))
        )
        assert {answer.status_code for answer in answers} == {200}
        assert len((await client.get("/api/users", headers=bearer(OPERATOR))).json()["data"]) == 1


async def test_a_provider_that_is_away_is_503_and_our_own_keys_go_on(
    provider: Provider, database: str, edge: Edge
) -> None:
    provider.down = True
    async with with_provider(provider, database, edge) as client:
        answer = await client.get("/api/data-sources", headers=bearer(provider.token()))
        error(answer, 503, "UNAVAILABLE")
        assert int(answer.headers["retry-after"]) > 0
        assert (await client.get("/api/data-sources", headers=bearer(OPERATOR))).status_code == 200


async def test_a_service_token_opens_no_public_route_and_a_users_no_internal_one(
    operator: httpx2.AsyncClient,
) -> None:
    await add(operator, "boss", role="ops")
    key = (await make_key(operator, "boss"))["key"]
    for token in (SERVICE, INSTANCE_TOKENS.mint(1)):
        error(await operator.get("/api/data-sources", headers=bearer(token)), 401, "INVALID_TOKEN")
    for token in (key, OPERATOR, "psi_1_" + "0" * 64):
        headers = bearer(token) | {"X-Component": "worker"}
        error(
            await operator.post("/api/internal/jobs/claim", headers=headers, json={}),
            401,
            "INVALID_TOKEN",
        )


async def test_a_graph_servers_token_is_no_workers(operator: httpx2.AsyncClient) -> None:
    headers = bearer(INSTANCE_TOKENS.mint(1))
    for component in ("worker", "wrapper"):
        answer = await operator.post(
            "/api/internal/jobs/claim", headers=headers | {"X-Component": component}, json={}
        )
        error(answer, 403, "PERMISSION_DENIED")
