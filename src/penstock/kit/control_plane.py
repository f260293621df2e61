"""HTTP to a control plane's internal API: what workers and graph servers share.

Nothing is retried here: only the caller knows how long another try is worth while. Nobody
answering, and an answer that is not ours, are `Unavailable`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import httpx2
import orjson

from penstock.kit.errors import Internal, InvalidInput, PenstockError, Unavailable, rebuild

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

Credential: TypeAlias = "str | Callable[[], str]"
Component: TypeAlias = Literal["worker", "wrapper"]
CONNECT_SECONDS = 5.0
MOST_CONNECTIONS = 32
KEEPALIVE_SECONDS = 30.0


class ControlPlaneHttp:
    """One pool of connections to `{url}/api/internal/{path}`; paths of calls continue it.

    A token that is replaced while we run is given as what reads it.
    """

    def __init__(
        self, url: str, token: Credential, *, component: Component, path: str, answer_seconds: float
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidInput(
                f"{url[:200]!r} is not the URL of a control plane.", hint="Set PENSTOCK_URL."
            )
        self._token = token
        self._authorization()
        self._url = url.rstrip("/")
        self._answer_seconds = answer_seconds
        self._http = httpx2.AsyncClient(
            base_url=f"{self._url}/api/internal/{path}",
            headers={
                "X-Component": component,
                "Content-Type": "application/json",
            },
            limits=httpx2.Limits(
                max_connections=MOST_CONNECTIONS, keepalive_expiry=KEEPALIVE_SECONDS
            ),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None
    ) -> None:
        await self._http.aclose()

    def _authorization(self) -> dict[str, str]:
        token = self._token() if callable(self._token) else self._token
        if not re.fullmatch(r"[!-~]+", token):
            raise InvalidInput("The service token is empty or has characters that no header takes.")
        return {"Authorization": f"Bearer {token}"}

    async def _call(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        answer_seconds: float | None = None,
    ) -> Any:
        """The `data` of the answer; None for an answer without a body."""
        seconds = self._answer_seconds if answer_seconds is None else answer_seconds
        timeout = httpx2.Timeout(seconds, connect=CONNECT_SECONDS)
        try:
            headers = self._authorization()
        except InvalidInput as e:
            # It was there at the start, so whoever replaces it is at work, or has to be called.
            raise Unavailable(e.message, hint=e.hint) from None
        try:
            answer = await self._http.request(
                method, path, content=content, headers=headers, timeout=timeout
            )
        except httpx2.TransportError as e:
            raise Unavailable(
                f"The control plane at {self._url} does not answer ({type(e).__name__})."
            ) from e
        if not answer.is_success:
            raise _error(answer)
        if answer.status_code == 204:
            return None
        try:
            return orjson.loads(answer.content)["data"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise _stranger(answer) from None


def _error(answer: httpx2.Response) -> PenstockError:
    """The error that the control plane raised, as it was; a proxy in between has no envelope of
    ours."""
    try:
        error = orjson.loads(answer.content)["error"]
        details = error["details"]
        return rebuild(
            error["code"], error["message"], hint=details.pop("hint", None), details=details
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return _stranger(answer)


def _stranger(answer: httpx2.Response) -> PenstockError:
    message = (
        f"{answer.url} answered {answer.status_code}, and not in the words of a control plane."
    )
    return (
        Unavailable(message)
        if answer.is_server_error
        else Internal(message, hint="Is PENSTOCK_URL right?")
    )
