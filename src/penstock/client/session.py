"""One HTTP session with a control plane: bearer token, JSON both ways, errors as exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

from penstock.client.errors import ClientError

if TYPE_CHECKING:
    from types import TracebackType


class Session:
    def __init__(self, url: str, token: str | None, *, timeout: float = 30.0) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url.rstrip("/")
        self._http = httpx2.Client(base_url=self.url, headers=headers, timeout=timeout)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def call(self, method: str, path: str, *, json: Any = None, **params: Any) -> Any:
        """The decoded body of the answer; ClientError for anything but success."""
        answer = self._send(method, path, json=json, params={k: v for k, v in params.items() if v is not None})
        return answer.json() if answer.content else None

    def text(self, path: str) -> str:
        """A page that is not JSON, such as /metrics."""
        return self._send("GET", path).text

    def _send(self, method: str, path: str, **content: Any) -> httpx2.Response:
        try:
            answer = self._http.request(method, path, **content)
        except httpx2.TransportError as e:
            raise ClientError(
                f"Nobody answers at {self.url} ({type(e).__name__}).",
                code="UNREACHABLE",
                status=503,
                hint="Start it with `penstock up`, or set PENSTOCK_URL.",
            ) from None
        if not answer.is_success:
            raise _error(answer)
        return answer


def _error(answer: httpx2.Response) -> ClientError:
    try:
        error = answer.json()["error"]
        message, code, details = error["message"], error["code"], error.get("details") or {}
    except (ValueError, KeyError, TypeError):
        message, code, details = f"The server answered {answer.status_code}.", "INTERNAL", {}
    return ClientError(message, code=code, status=answer.status_code, hint=details.get("hint"), details=details)
