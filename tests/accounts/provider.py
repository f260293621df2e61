"""An OIDC identity provider for tests: real keys and signatures, served on a real socket."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from penstock.api.serving.server import Server, bind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

AUDIENCE = "penstock"


@cache
def private_key(kid: str) -> rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey:
    if kid.startswith("ec"):
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def jwk(kid: str) -> dict[str, Any]:
    key = private_key(kid)
    if isinstance(key, rsa.RSAPrivateKey):
        shown = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        shown = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**shown, "kid": kid, "use": "sig"}


class Provider:
    def __init__(self) -> None:
        self.url = ""
        self.keys: list[dict[str, Any]] = [jwk("rsa-1"), jwk("ec-1")]
        self.fetched: list[str] = []
        self.down = False
        self.says_issuer: str | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Provider]:
        listener = bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = Server(self)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await server.tried.wait()
        try:
            yield self
        finally:
            server.should_exit = True
            await task

    def claims(self, **changed: object) -> dict[str, object]:
        now = int(time.time())
        payload = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "1",
            "iat": now,
            "exp": now + 300,
            "email": "ann@example.com",
        }
        return {name: value for name, value in (payload | changed).items() if value is not None}

    def token(self, kid: str = "rsa-1", alg: str | None = None, **changed: object) -> str:
        algorithm = alg or ("ES256" if kid.startswith("ec") else "RS256")
        return jwt.encode(
            self.claims(**changed), private_key(kid), algorithm=algorithm, headers={"kid": kid}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.fetched.append(scope["path"])
        documents = {
            "/.well-known/openid-configuration": {
                "issuer": self.says_issuer or self.url,
                "jwks_uri": f"{self.url}/keys",
            },
            "/keys": {"keys": self.keys},
        }
        document = documents.get(scope["path"])
        status = 503 if self.down else 200 if document else 404
        body = json.dumps(document).encode()
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        await send({"type": "http.response.body", "body": body})
