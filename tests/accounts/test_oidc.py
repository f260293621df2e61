"""OIDC tokens: valid ones, and many kinds of invalid ones."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from penstock.accounts.oidc import (
    AGAIN_SECONDS,
    FRESH_SECONDS,
    MAX_TOKEN,
    InvalidRole,
    Keys,
    Oidc,
    OidcSettings,
)
from penstock.accounts.role import Role
from penstock.kit.errors import InvalidInput, InvalidToken, Unavailable
from penstock.kit.outbound import FOR_OPERATOR
from tests.accounts.provider import AUDIENCE, Provider, jwk, private_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Time:
    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at

    def now(self) -> Any:
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


async def anywhere(url: str) -> None:
    pass


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider().running() as running:
        yield running


@pytest.fixture
def moment() -> Time:
    return Time()


@pytest.fixture
def oidc(provider: Provider, moment: Time) -> Oidc:
    return verifier(provider, moment)


def verifier(provider: Provider, moment: Time, **changed: Any) -> Oidc:
    settings = OidcSettings(**({"issuer": provider.url, "audience": AUDIENCE} | changed))
    return Oidc(settings, Keys(settings, reach=anywhere, outbound=FOR_OPERATOR, time=moment))


@pytest.mark.parametrize(
    ("kid", "alg"), [("rsa-1", "RS256"), ("rsa-1", "RS512"), ("rsa-1", "PS256"), ("ec-1", "ES256")]
)
async def test_a_token_that_the_provider_signed_counts(
    oidc: Oidc, provider: Provider, kid: str, alg: str
) -> None:
    claims = await oidc.verify(provider.token(kid, alg, name="Ann", exp=int(time.time()) + 5))
    assert claims is not None
    assert (claims.username, claims.email, claims.display_name) == (
        "ann@example.com",
        "ann@example.com",
        "Ann",
    )
    assert claims.role is None


async def test_a_token_for_several_audiences_counts_when_we_are_one(
    oidc: Oidc, provider: Provider
) -> None:
    assert await oidc.verify(provider.token(aud=["other", AUDIENCE]))


async def test_what_is_no_token_is_left_to_others(oidc: Oidc, provider: Provider) -> None:
    for text in ("", "pst_abc", "a.b", "a.b.c.d"):
        assert await oidc.verify(text) is None
    assert provider.fetched == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"exp": int(time.time()) - 61}, "expired"),
        ({"exp": None}, "no claim exp"),
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"iss": None}, "no claim iss"),
        ({"aud": "other"}, "another audience"),
        ({"aud": None}, "no claim aud"),
        ({"nbf": int(time.time()) + 86_400}, "not valid yet"),
        ({"iat": int(time.time()) + 86_400}, "not valid yet"),
        ({"email": None}, "no claim email"),
        ({"email": ["ann@example.com"]}, "no claim email"),
        ({"email": "a\0b"}, "no claim email"),
        ({"email_verified": False}, "not verified"),
    ],
)
async def test_a_token_with_a_claim_that_is_wrong_does_not_count(
    oidc: Oidc, provider: Provider, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidToken, match=message):
        await oidc.verify(provider.token(**changed))


async def test_clocks_may_differ_by_a_minute_and_no_more(oidc: Oidc, provider: Provider) -> None:
    now = int(time.time())
    assert await oidc.verify(provider.token(exp=now - 50))
    assert await oidc.verify(provider.token(nbf=now + 50, iat=now + 50))
    with pytest.raises(InvalidToken):
        await oidc.verify(provider.token(exp=now - 70))
    with pytest.raises(InvalidToken):
        await oidc.verify(provider.token(nbf=now + 80))


async def test_an_unsigned_token_does_not_count(oidc: Oidc, provider: Provider) -> None:
    unsigned = jwt.encode(provider.claims(), None, algorithm="none", headers={"kid": "rsa-1"})
    for token in (unsigned, unsigned + provider.token().rsplit(".", 1)[1]):
        with pytest.raises(InvalidToken, match="signature algorithm"):
            await oidc.verify(token)


@pytest.mark.parametrize("alg", ["HS256", "hs256", "HS512"])
async def test_a_public_key_is_no_shared_secret(oidc: Oidc, provider: Provider, alg: str) -> None:
    """The library refuses to make such a token, so it is made by hand."""
    import hashlib
    import hmac

    pem = (
        private_key("rsa-1")
        .public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    text = ".".join(
        _base64(json.dumps(part)) for part in ({"alg": alg, "kid": "rsa-1"}, provider.claims())
    )
    digest = hashlib.sha512 if alg == "HS512" else hashlib.sha256
    proof = hmac.new(pem, text.encode(), digest).digest()
    with pytest.raises(InvalidToken):
        await oidc.verify(f"{text}.{base64.urlsafe_b64encode(proof).decode().rstrip('=')}")


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


async def test_a_strangers_signature_does_not_count(oidc: Oidc, provider: Provider) -> None:
    forged = jwt.encode(
        provider.claims(), private_key("rsa-2"), algorithm="RS256", headers={"kid": "rsa-1"}
    )
    crossed = jwt.encode(
        provider.claims(), private_key("ec-1"), algorithm="ES256", headers={"kid": "rsa-1"}
    )
    own = {
        "kid": "rsa-1",
        "jwk": jwk("rsa-2"),
        "jku": "https://evil.example/keys",
        "x5u": "https://evil.example",
    }
    brought = jwt.encode(provider.claims(), private_key("rsa-2"), algorithm="RS256", headers=own)
    head, body, proof = provider.token().split(".")
    changed = _base64(json.dumps(provider.claims(email="boss@example.com")))
    for token in (
        forged,
        crossed,
        brought,
        f"{head}.{changed}.{proof}",
        f"{head}.{body}.",
        f"..{proof}",
        "a.b.c",
    ):
        with pytest.raises(InvalidToken):
            await oidc.verify(token)


async def test_a_token_past_the_limit_is_not_even_read(oidc: Oidc, provider: Provider) -> None:
    with pytest.raises(InvalidToken, match="too long"):
        await oidc.verify("a" * MAX_TOKEN + ".b.")
    assert provider.fetched == []


async def test_a_new_key_is_looked_up_and_an_old_one_stops_counting(
    oidc: Oidc, provider: Provider, moment: Time
) -> None:
    before = provider.token("rsa-1")
    assert await oidc.verify(before)
    provider.keys = [jwk("rsa-2")]
    moment.at += AGAIN_SECONDS
    assert await oidc.verify(provider.token("rsa-2"))
    with pytest.raises(InvalidToken, match="does not list"):
        await oidc.verify(before)


async def test_strangers_cannot_make_us_ask_again_and_again(
    oidc: Oidc, provider: Provider, moment: Time
) -> None:
    for _ in range(20):
        with pytest.raises(InvalidToken):
            await oidc.verify(provider.token("rsa-3"))
    assert provider.fetched == ["/.well-known/openid-configuration", "/keys"]
    moment.at += AGAIN_SECONDS
    with pytest.raises(InvalidToken):
        await oidc.verify(provider.token("rsa-3"))
    assert provider.fetched.count("/keys") == 2


async def test_keys_are_kept_and_outlive_a_provider_that_is_down(
    oidc: Oidc, provider: Provider, moment: Time
) -> None:
    for _ in range(3):
        assert await oidc.verify(provider.token())
    assert provider.fetched.count("/keys") == 1
    provider.down = True
    moment.at += FRESH_SECONDS + 1
    assert await oidc.verify(provider.token())


async def test_without_any_keys_nobody_can_be_let_in_until_the_provider_is_back(
    oidc: Oidc, provider: Provider, moment: Time
) -> None:
    provider.down = True
    for _ in range(3):
        with pytest.raises(Unavailable):
            await oidc.verify(provider.token())
    assert len(provider.fetched) == 1
    provider.down = False
    moment.at += AGAIN_SECONDS
    assert await oidc.verify(provider.token())


async def test_a_document_of_another_issuer_gives_no_keys(oidc: Oidc, provider: Provider) -> None:
    provider.says_issuer = "https://evil.example"
    with pytest.raises(Unavailable):
        await oidc.verify(provider.token())


async def test_keys_that_are_not_for_signatures_are_passed_over(
    provider: Provider, moment: Time
) -> None:
    secret = {"kty": "oct", "k": _base64("secret" * 8), "kid": "rsa-1", "alg": "HS256"}
    broken = {"kty": "RSA", "kid": "broken", "n": "!", "e": "!"}
    provider.keys = [secret, jwk("rsa-1") | {"use": "enc"}, jwk("ec-1") | {"alg": "RS256"}, broken]
    oidc = verifier(provider, moment)
    for token in (provider.token("rsa-1"), provider.token("ec-1")):
        with pytest.raises(InvalidToken, match="does not list"):
            await oidc.verify(token)


async def test_a_key_without_an_id_is_taken_when_it_is_the_only_one(
    provider: Provider, moment: Time
) -> None:
    oidc = verifier(provider, moment)
    bare = jwt.encode(provider.claims(), private_key("rsa-1"), algorithm="RS256")
    with pytest.raises(InvalidToken):
        await oidc.verify(bare)
    provider.keys = [jwk("rsa-1")]
    assert await verifier(provider, moment).verify(bare)


async def test_the_place_of_the_keys_can_be_set_and_is_checked(
    provider: Provider, moment: Time
) -> None:
    oidc = verifier(provider, moment, jwks_url=f"{provider.url}/keys")
    assert await oidc.verify(provider.token())
    assert provider.fetched == ["/keys"]

    async def nowhere(url: str) -> None:
        raise InvalidInput(f"{url} is private.")

    settings = OidcSettings(issuer=provider.url, audience=AUDIENCE)
    with pytest.raises(Unavailable):
        await Oidc(
            settings, Keys(settings, reach=nowhere, outbound=FOR_OPERATOR, time=moment)
        ).verify(provider.token())


@pytest.mark.parametrize(
    ("claim", "claims", "role"),
    [
        ("roles", {"roles": ["other", "admin", "analyst"]}, Role.ADMIN),
        ("roles", {"roles": "ops"}, Role.OPS),
        ("realm_access.roles", {"realm_access": {"roles": ["analyst"]}}, Role.ANALYST),
        ("https://penstock.example/roles", {"https://penstock.example/roles": ["ops"]}, Role.OPS),
    ],
)
async def test_the_highest_role_of_the_claim_is_taken(
    provider: Provider, moment: Time, claim: str, claims: dict[str, Any], role: Role
) -> None:
    identity = await verifier(provider, moment, role_claim=claim).verify(provider.token(**claims))
    assert identity is not None
    assert identity.role is role


@pytest.mark.parametrize("claim", [None, [], ["king"], 3, {"admin": True}, [["admin"]], "Admin"])
async def test_a_claim_without_a_role_of_ours_lets_nobody_in(
    provider: Provider, moment: Time, claim: object
) -> None:
    with pytest.raises(InvalidRole):
        await verifier(provider, moment, role_claim="roles").verify(provider.token(roles=claim))


async def test_the_provider_may_have_other_words_for_roles(
    provider: Provider, moment: Time
) -> None:
    oidc = verifier(provider, moment, role_claim="groups", roles={"graph-admins": Role.ADMIN})
    identity = await oidc.verify(provider.token(groups=["graph-admins"]))
    assert identity is not None
    assert identity.role is Role.ADMIN
    with pytest.raises(InvalidRole):
        await oidc.verify(provider.token(groups=["admin"]))
