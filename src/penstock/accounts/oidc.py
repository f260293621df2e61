"""OIDC token verification: signature, issuer, audience and times, against the provider's JWKS.

Only asymmetric signatures are accepted. The list of algorithms is ours, never the token's, so
neither `none` nor an HMAC keyed with the provider's public key is accepted. Keys are fetched on
first use and cached; an unknown key id causes a refetch (providers rotate keys), at most once every
few seconds, whatever unauthenticated callers send.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import jwt

from penstock.accounts.role import Role
from penstock.kit import clock, logging
from penstock.kit.errors import AuthenticationRequired, InvalidToken, PenstockError, Unavailable
from penstock.kit.outbound_http import checked_client, fetch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from penstock.kit.json_value import JsonObject, JsonValue
    from penstock.kit.outbound import Outbound

log = logging.get(__name__)
ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By key type: the key decides which algorithms are allowed, not the token's header."""
SIGNED = frozenset(name for names in ALGORITHMS.values() for name in names)
MAX_TOKEN = 16 * 1024
MAX_DOCUMENT = 1024 * 1024
FETCH_SECONDS = 5.0
FRESH_SECONDS = 600.0
AGAIN_SECONDS = 5.0


class InvalidRole(AuthenticationRequired):
    """The identity provider's token names no known role."""

    code = "INVALID_ROLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    issuer: str
    audience: str
    jwks_url: str | None = None
    """None: discovered from the issuer's OpenID configuration."""
    username_claim: str = "email"
    email_claim: str = "email"
    name_claim: str = "name"
    role_claim: str | None = None
    """Path of the claim that holds the roles, with dots for nested claims; None: every new user is
    an analyst."""
    roles: Mapping[str, Role] | None = None
    """The provider's names for our roles; None: the same names as ours."""
    leeway_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    username: str
    email: str | None
    display_name: str | None
    role: Role | None
    """None when no role claim is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    key: jwt.PyJWK
    algorithms: tuple[str, ...]
    """The algorithms that this key may verify."""


class Keys:
    """A cache of the provider's public keys, by key id."""

    def __init__(
        self,
        settings: OidcSettings,
        *,
        reach: Callable[[str], Awaitable[None]],
        outbound: Outbound,
        time: clock.Clock = clock.SYSTEM,
    ) -> None:
        self._settings = settings
        self._reach = reach
        self._outbound = outbound
        self._time = time
        self._keys: dict[str | None, SigningKey] = {}
        self._fetched = self._tried = float("-inf")
        self._fetching = asyncio.Lock()

    async def get(self, key_id: str | None) -> SigningKey | None:
        key = self._cached(key_id)
        if self._is_stale(key) or (key is None and self._fetching.locked()):
            async with self._fetching:
                key = self._cached(key_id)
                if self._is_stale(key):
                    await self._refresh()
                    key = self._cached(key_id)
        if self._fetched == float("-inf"):
            raise Unavailable("The identity provider is unreachable.")
        return key

    def _cached(self, key_id: str | None) -> SigningKey | None:
        """A token without a key id matches the only key, when there is one."""
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    def _is_stale(self, key: SigningKey | None) -> bool:
        now = self._time.monotonic()
        return now - self._tried >= AGAIN_SECONDS and (
            key is None or now - self._fetched > FRESH_SECONDS
        )

    async def _refresh(self) -> None:
        """Fetch the keys; on failure the cached keys stay."""
        self._tried = self._time.monotonic()
        try:
            self._keys = _usable(await self._document())
            self._fetched = self._time.monotonic()
        except (
            httpx2.HTTPError,
            PenstockError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ) as e:
            log.warning("oidc_keys_not_fetched", issuer=self._settings.issuer, error=repr(e)[:200])

    async def _document(self) -> dict[str, Any]:
        async with checked_client(self._outbound, timeout=FETCH_SECONDS) as http:
            url = self._settings.jwks_url
            if url is None:
                issuer = self._settings.issuer.rstrip("/")
                configuration = await self._fetch(
                    http, f"{issuer}/.well-known/openid-configuration"
                )
                if configuration["issuer"] != self._settings.issuer:
                    raise ValueError("the document is from another issuer")
                url = str(configuration["jwks_uri"])
            return await self._fetch(http, url)

    async def _fetch(self, http: httpx2.AsyncClient, url: str) -> dict[str, Any]:
        await self._reach(url)
        answer = await fetch(
            http, http.build_request("GET", url), max_bytes=MAX_DOCUMENT, seconds=2 * FETCH_SECONDS
        )
        answer.raise_for_status()
        document = json.loads(answer.content)
        if not isinstance(document, dict):
            raise TypeError("the document is not an object")
        return document


class Oidc:
    def __init__(self, settings: OidcSettings, keys: Keys) -> None:
        self._settings = settings
        self._keys = keys

    async def verify(self, token: str) -> Claims | None:
        """The token's verified claims; None when it is not a JWT; raises InvalidToken for a JWT
        that fails verification."""
        if token.count(".") != 2:
            return None
        if len(token) > MAX_TOKEN:
            raise InvalidToken("This token is too long.")
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in SIGNED:
                raise InvalidToken("This token uses a signature algorithm that is not accepted.")
            key = await self._keys.get(header.get("kid"))
            if key is None:
                raise InvalidToken("This token is signed with a key that its issuer does not list.")
            return self._claims(self._decoded(token, key))
        except jwt.PyJWTError as e:
            raise InvalidToken(_reason(e)) from None

    def _decoded(self, token: str, key: SigningKey) -> JsonObject:
        claims: JsonObject = jwt.decode(
            token,
            key.key.key,
            algorithms=list(key.algorithms),
            audience=self._settings.audience,
            issuer=self._settings.issuer,
            leeway=self._settings.leeway_seconds,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims

    def _claims(self, claims: Mapping[str, JsonValue]) -> Claims:
        username = _text(claims, self._settings.username_claim)
        if username is None:
            raise InvalidToken(
                f"This token has no claim {self._settings.username_claim}, so it names no user."
            )
        if (
            claims.get("email_verified") is False
            and self._settings.username_claim == self._settings.email_claim
        ):
            raise InvalidToken("The e-mail address of this token is not verified.")
        return Claims(
            username=username,
            email=_text(claims, self._settings.email_claim),
            display_name=_text(claims, self._settings.name_claim),
            role=self._role(claims),
        )

    def _role(self, claims: Mapping[str, JsonValue]) -> Role | None:
        if self._settings.role_claim is None:
            return None
        claim = _at(claims, self._settings.role_claim)
        words = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
        role_names = self._settings.roles or {role.word: role for role in Role}
        roles = [role_names[word] for word in words if isinstance(word, str) and word in role_names]
        if not roles:
            raise InvalidRole(
                "Your identity provider's token names no Penstock role.",
                hint="Ask your administrator for one of: " + _list(role_names),
            )
        return max(roles)


def _usable(document: Mapping[str, Any]) -> dict[str | None, SigningKey]:
    """The signature keys of a JWKS document; other entries are skipped."""
    keys: dict[str | None, SigningKey] = {}
    for entry in document["keys"]:
        algorithms = ALGORITHMS.get(entry.get("kty"), ())
        named = entry.get("alg")
        if (
            entry.get("use", "sig") != "sig"
            or not algorithms
            or (named is not None and named not in algorithms)
        ):
            continue
        try:
            key = jwt.PyJWK(entry)
        except jwt.PyJWTError:
            log.warning("oidc_key_passed_over", kid=str(entry.get("kid"))[:80])
        else:
            keys[entry.get("kid")] = SigningKey(
                key=key, algorithms=algorithms if named is None else (named,)
            )
    return keys


def _reason(error: jwt.PyJWTError) -> str:
    match error:
        case jwt.ExpiredSignatureError():
            return "This token has expired."
        case jwt.ImmatureSignatureError():
            return "This token is not valid yet."
        case jwt.InvalidAudienceError():
            return "This token is for another audience."
        case jwt.InvalidIssuerError():
            return "This token is from another issuer."
        case jwt.MissingRequiredClaimError():
            return f"This token has no claim {error.claim}."
        case _:
            return "This token cannot be verified."


def _at(claims: Mapping[str, JsonValue], path: str) -> object:
    """Resolves paths such as `realm_access.roles`, and claims with dots in their own name."""
    if path in claims:
        return claims[path]
    value: object = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _text(claims: Mapping[str, JsonValue], path: str) -> str | None:
    value = _at(claims, path)
    return (
        value if isinstance(value, str) and 0 < len(value) <= 320 and "\x00" not in value else None
    )


def _list(role_names: Mapping[str, Role]) -> str:
    return ", ".join(sorted(role_names))
