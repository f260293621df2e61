"""A thin client of the Kubernetes API: a few verbs on a few resources of one namespace.

Nothing is retried here, and the answers are JSON as it came; whoever calls knows what a repetition
would mean. The token and the CA are read again when their files change.
"""

from __future__ import annotations

import email.utils
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

import httpx2
import orjson

from penstock.launchers.kubernetes.errors import Call, Unreachable, refusal, unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from penstock.launchers.kubernetes.connection import Connection
    from penstock.launchers.kubernetes.pod import Manifest

Resource: TypeAlias = Literal["pods", "services", "secrets"]
ANSWER_SECONDS = 15.0
CONNECT_SECONDS = 5.0
PAGE = 500
MAX_LOG_BYTES = 4 * 1024 * 1024
_METRICS = "/apis/metrics.k8s.io/v1beta1"
_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_MERGE = "application/strategic-merge-patch+json"


class KubernetesApi:
    """`async with KubernetesApi(connection, namespace) as api:`"""

    def __init__(self, connection: Connection, namespace: str | None = None) -> None:
        self.connection = connection
        self.namespace = namespace or connection.namespace
        self.skew = 0.0
        """Seconds by which our clock is ahead of the server's, by its last answer."""
        self._client: httpx2.AsyncClient | None = None
        self._ca: str | None = None

    async def __aenter__(self) -> KubernetesApi:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    @property
    def server_time(self) -> float:
        return time.time() - self.skew

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        """AlreadyExists if there is one of that name."""
        call = self._call("create", resource)
        return await self._json(call, "POST", self._path(resource), body=manifest)

    async def get(self, resource: Resource, name: str) -> Manifest:
        call = self._call("get", resource, name)
        return await self._json(call, "GET", self._path(resource, name))

    async def list(self, resource: Resource, *, selector: str) -> tuple[list[Manifest], str]:
        """All that match, as of one moment, and the version from which to watch."""
        call, token = self._call("list", resource), ""
        items: list[Manifest] = []
        while True:
            query = {"labelSelector": selector, "limit": str(PAGE)}
            page: Manifest = await self._json(
                call,
                "GET",
                self._path(resource),
                query=query | ({"continue": token} if token else {}),
            )
            items += page.get("items") or []
            token = page["metadata"].get("continue") or ""
            if not token:
                return items, str(page["metadata"].get("resourceVersion", ""))

    @asynccontextmanager
    async def watch(
        self, resource: Resource, *, selector: str, version: str, seconds: float
    ) -> AsyncIterator[AsyncIterator[Manifest]]:
        """Events since `version`, until the server ends them after `seconds`; an error event is
        raised as the error it carries."""
        call = self._call("watch", resource)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "labelSelector": selector,
            "resourceVersion": version,
            "timeoutSeconds": str(max(1, round(seconds))),
        }
        async with self._stream(
            call, self._path(resource), query, silence=seconds + ANSWER_SECONDS
        ) as answer:
            yield self._events(call, answer)

    async def delete(
        self, resource: Resource, name: str, *, uid: str | None = None, grace: int | None = None
    ) -> None:
        """`uid` protects another object that got the same name; Missing if there is none."""
        options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        call = self._call("delete", resource, name)
        await self._json(call, "DELETE", self._path(resource, name), body=options)

    async def patch(
        self, resource: Resource, name: str, change: Manifest, *, part: str = ""
    ) -> Manifest:
        """A strategic merge patch of an object, or of its subresource `part`."""
        call = self._call("patch", f"{resource}/{part}" if part else resource, name)
        path = f"{self._path(resource, name)}{f'/{part}' if part else ''}"
        return await self._json(call, "PATCH", path, body=change, content_type=_MERGE)

    async def log(self, pod: str, *, container: str, lines: int, tail: int) -> str:
        """The end of a container's log: at most `lines` lines and `tail` bytes."""
        call, text = self._call("get", "pods/log", pod), b""
        query = {
            "container": container,
            "tailLines": str(lines),
            "limitBytes": str(MAX_LOG_BYTES),
        }
        path = f"{self._path('pods', pod)}/log"
        async with self._stream(call, path, query, silence=ANSWER_SECONDS) as answer:
            async for piece in answer.aiter_bytes():
                text = (text + piece)[-tail:]
        return text.decode(errors="replace")

    async def usage(self, pod: str) -> Manifest:
        """What metrics-server measured; Missing without it."""
        call = self._call("get", "pods.metrics.k8s.io", pod)
        path = f"{_METRICS}/namespaces/{self.namespace}/pods/{pod}"
        return await self._json(call, "GET", path)

    async def resources(self) -> frozenset[str]:
        """The names of the core resources that this server has, subresources included."""
        call = self._call("get", "the list of resources")
        document: Manifest = await self._json(call, "GET", "/api/v1")
        return frozenset(str(entry["name"]) for entry in document.get("resources") or ())

    async def review_token(self, token: str, *, audience: str) -> Manifest:
        """The status of a TokenReview."""
        body: Manifest = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        call = self._call("create", "tokenreviews.authentication.k8s.io")
        document: Manifest = await self._json(call, "POST", _REVIEWS, body=body)
        status: Manifest = document.get("status") or {}
        return status

    def _path(self, resource: Resource, name: str = "") -> str:
        return f"/api/v1/namespaces/{self.namespace}/{resource}{f'/{name}' if name else ''}"

    def _call(self, verb: str, resource: str, name: str = "") -> Call:
        return Call(verb=verb, resource=resource, namespace=self.namespace, name=name)

    async def _json(
        self,
        call: Call,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Manifest | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        client = await self._current()
        headers = self.connection.headers() | {"Content-Type": content_type}
        content = None if body is None else orjson.dumps(body)
        try:
            answer = await client.request(
                method,
                path,
                params=query,
                content=content,
                headers=headers,
                extensions=self.connection.extensions,
            )
        except httpx2.TransportError as e:
            raise unreachable(self.connection.url, e, skew=self.skew) from None
        return self._document(call, answer)

    @asynccontextmanager
    async def _stream(
        self, call: Call, path: str, query: Mapping[str, str], *, silence: float
    ) -> AsyncIterator[httpx2.Response]:
        client = await self._current()
        timeout = httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, read=silence)
        try:
            async with client.stream(
                "GET",
                path,
                params=query,
                headers=self.connection.headers(),
                timeout=timeout,
                extensions=self.connection.extensions,
            ) as answer:
                if not answer.is_success:
                    await answer.aread()
                    self._document(call, answer)
                self._note_time(answer)
                yield answer
        except httpx2.TransportError as e:
            raise unreachable(self.connection.url, e, skew=self.skew) from None

    async def _events(self, call: Call, answer: httpx2.Response) -> AsyncIterator[Manifest]:
        async for line in answer.aiter_lines():
            try:
                event = orjson.loads(line)
            except orjson.JSONDecodeError:
                raise Unreachable("A watch of the Kubernetes API server was cut off.") from None
            if event.get("type") == "ERROR":
                status = event.get("object") or {}
                raise refusal(
                    call,
                    int(status.get("code") or 500),
                    status,
                    skew=self.skew,
                    user=self.connection.user,
                )
            yield event

    def _document(self, call: Call, answer: httpx2.Response) -> Manifest:
        self._note_time(answer)
        try:
            document = orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            document = {"message": answer.text[:300]}
            if answer.is_success:
                raise Unreachable(
                    f"What answers at {self.connection.url} is not a Kubernetes API server."
                ) from None
        if answer.is_success:
            result: Manifest = document
            return result
        error = refusal(
            call,
            answer.status_code,
            document if isinstance(document, dict) else {},
            skew=self.skew,
            user=self.connection.user,
        )
        if isinstance(error, Unreachable):
            error.after = _seconds(answer.headers.get("Retry-After"))
        raise error

    def _note_time(self, answer: httpx2.Response) -> None:
        date = email.utils.parsedate_tz(answer.headers.get("Date", ""))
        if date is not None:
            ahead = time.time() - email.utils.mktime_tz(date)
            # The header has whole seconds.
            self.skew = 0.0 if 0 <= ahead < 2 else ahead

    async def _current(self) -> httpx2.AsyncClient:
        """The client; a new one after the CA has changed."""
        trusted = self.connection.trusted()
        if (client := self._client) is not None and trusted == self._ca:
            return client
        fresh = httpx2.AsyncClient(
            base_url=self.connection.url,
            verify=self.connection.tls(),
            timeout=httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            trust_env=False,
            limits=httpx2.Limits(max_connections=50, max_keepalive_connections=10),
        )
        self._client, self._ca = fresh, trusted
        if client is not None:
            await client.aclose()
        return fresh


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isdecimal() else 0.0
