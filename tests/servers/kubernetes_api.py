"""An API server that keeps to the protocol of Kubernetes, for what the launcher uses of it.

Pods, services and secrets with versions, uids, owner references and their collection; lists in
pages, watches as a chunked stream with bookmarks; deletion with a grace; strategic merge patches;
access rules, quotas, tokens, TokenReview; and whatever goes wrong, as a test wants it. What its
pods do is the kubelet's matter (`tests/servers/kubelet.py`).
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
import uuid
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

Object = dict[str, Any]
Misdeed = Literal["refuse", "drop", "drop_answer", "hang"]
KINDS = {"pods": "Pod", "services": "Service", "secrets": "Secret"}
BOOKMARK_SECONDS = 0.5
VERBS = {"GET": "get", "POST": "create", "DELETE": "delete", "PATCH": "patch"}


class Refused(Exception):
    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": message,
            "details": details,
        }


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens to the next `times` calls of a verb, after `skip` others.

    `drop` closes the connection before the call is done, `drop_answer` after it.
    """

    verb: str
    resource: str
    misdeed: Misdeed = "refuse"
    code: int = 503
    times: int = 1
    skip: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    def strikes(self, verb: str, resource: str) -> bool:
        if not self.times or (verb, resource) != (self.verb, self.resource):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    user: str
    audiences: tuple[str, ...] = ("https://kubernetes.default.svc",)
    pod: str | None = None
    expires: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    verb: str
    resource: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def verb(self) -> str:
        if self.method == "GET" and self.query.get("watch") == "true":
            return "watch"
        parts = self.path.split("/")
        collection = self.method == "GET" and len(parts) == 6 and parts[3] == "namespaces"
        return "list" if collection else VERBS[self.method]


class KubernetesServer:
    """`async with KubernetesServer() as server:`; `admin` is a token that may do everything."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.port = 0
        self.namespaces = {"default", "graphs"}
        self.objects: dict[tuple[str, str], dict[str, Object]] = {}
        self.tokens = {"admin": Token(user="admin")}
        self.rules: dict[str, set[tuple[str, str]]] = {}
        """What a user may do, as (verb, resource); one without rules may do everything."""
        self.most_pods: int | None = None
        self.admission: Callable[[Object], str | None] = lambda _: None
        self.faults: list[Fault] = []
        self.calls: list[Done] = []
        self.before: Callable[[Done], None] = lambda _: None
        self.after: Callable[[Done], None] = lambda _: None
        """Called for each call, before and after it is done; a ConnectionError cuts it off."""
        self.usage: dict[str, str] = {}
        self.resources = ["pods", "pods/log", "pods/resize", "services", "secrets"]
        self.page = 500
        self.clock_ahead = 0.0
        self.on_pod: Callable[[Object | None, Object | None], None] = lambda _before, _pod: None
        self.log_of: Callable[[str], bytes | None] = lambda _: None
        self.duplicate_events = False
        self._tls = tls
        self._version = 1000
        self._history: list[tuple[int, str, str, Object | None, Object | None]] = []
        """Version, resource, namespace, the object before and after."""
        self._oldest = 0
        self._news = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> KubernetesServer:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", self.port, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Connections are cut; what is stored stays."""
        if self._server is not None:
            self._server.close()
        self.drop_connections()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def drop_connections(self) -> None:
        for task in self._connections:
            task.cancel()

    def compact(self) -> None:
        """Forget all history: watches from earlier versions are told 410."""
        self._history.clear()
        self._oldest = self._version = self._version + 1

    def all(self, resource: str, namespace: str = "graphs") -> dict[str, Object]:
        return self.objects.setdefault((resource, namespace), {})

    def pod(self, name: str) -> Object:
        return self.all("pods")[name]

    def edit(self, resource: str, name: str, change: Callable[[Object], None]) -> None:
        """A change by somebody else: the kubelet, a controller, a person."""
        current = self.all(resource).get(name)
        if current is not None:
            fresh = deepcopy(current)
            change(fresh)
            self._store(resource, "graphs", fresh)

    def remove(self, resource: str, name: str, namespace: str = "graphs") -> None:
        """Gone for good, with all that it owned."""
        gone = self.all(resource, namespace).pop(name, None)
        if gone is None:
            return
        self._record(resource, namespace, gone, None)
        self._collect()

    def calls_of(self, verb: str, resource: str) -> list[Done]:
        return [call for call in self.calls if (call.verb, call.resource) == (verb, resource)]

    def token_for(self, spec: Object, pod: str, projection: Object) -> str:
        """A projected token of the pod's service account."""
        account = spec.get("serviceAccountName", "default")
        token = f"projected.{account}.{uuid.uuid4().hex}"
        self.tokens[token] = Token(
            user=f"system:serviceaccount:graphs:{account}",
            audiences=(projection["audience"],),
            pod=pod,
        )
        return token

    # storage

    def _store(self, resource: str, namespace: str, fresh: Object) -> Object:
        before = self.all(resource, namespace).get(fresh["metadata"]["name"])
        self.all(resource, namespace)[fresh["metadata"]["name"]] = fresh
        self._record(resource, namespace, before, fresh)
        return fresh

    def _record(
        self, resource: str, namespace: str, before: Object | None, fresh: Object | None
    ) -> None:
        self._version += 1
        last = deepcopy(before)
        if fresh is not None:
            fresh["metadata"]["resourceVersion"] = str(self._version)
        elif last is not None:
            last["metadata"]["resourceVersion"] = str(self._version)
        entry = (self._version, resource, namespace, last, deepcopy(fresh))
        self._history += [entry] * (2 if self.duplicate_events else 1)
        if resource == "pods":
            self.on_pod(deepcopy(before), deepcopy(fresh))
        self._news.set()
        self._news = asyncio.Event()

    def _collect(self) -> None:
        """As the garbage collector does: an object whose owner does not exist is deleted."""
        uids = {o["metadata"]["uid"] for objects in self.objects.values() for o in objects.values()}
        for (resource, namespace), objects in list(self.objects.items()):
            for name, current in list(objects.items()):
                owners = current["metadata"].get("ownerReferences") or ()
                if owners and not any(owner["uid"] in uids for owner in owners):
                    self.remove(resource, name, namespace)

    def _create(self, resource: str, namespace: str, fresh: Object) -> Object:
        if namespace not in self.namespaces:
            raise Refused(
                404, "NotFound", f'namespaces "{namespace}" not found',
                name=namespace, kind="namespaces",
            )  # fmt: skip
        name = fresh["metadata"]["name"]
        if resource == "pods":  # before anything is looked up, as with a real one
            self._admit(name, namespace, fresh)
            fresh["status"] = {"phase": "Pending"}
        if name in self.all(resource, namespace):
            raise Refused(409, "AlreadyExists", f'{resource} "{name}" already exists', name=name)
        fresh["metadata"] |= {
            "uid": str(uuid.uuid4()),
            "creationTimestamp": self.moment(),
            "namespace": namespace,
        }
        self._store(resource, namespace, fresh)
        self._collect()
        return fresh

    def _admit(self, name: str, namespace: str, fresh: Object) -> None:
        if self.most_pods is not None and len(self.all("pods", namespace)) >= self.most_pods:
            raise Refused(
                403,
                "Forbidden",
                f'pods "{name}" is forbidden: exceeded quota: compute, requested: pods=1,'
                f" used: pods={self.most_pods}, limited: pods={self.most_pods}",
            )
        if (objection := self.admission(fresh)) is not None:
            raise Refused(403, "Forbidden", f'pods "{name}" is forbidden: {objection}')

    def _delete(self, resource: str, namespace: str, name: str, options: Object) -> Object:
        current = self._get(resource, namespace, name)
        expected = (options.get("preconditions") or {}).get("uid")
        uid = current["metadata"]["uid"]
        if expected not in (None, uid):
            raise Refused(
                409, "Conflict", f"the UID in the precondition ({expected}) is not {uid}", name=name
            )
        grace = options.get("gracePeriodSeconds")
        if grace is None:
            grace = current.get("spec", {}).get("terminationGracePeriodSeconds", 30)
        scheduled = current.get("spec", {}).get("nodeName")
        if resource != "pods" or grace == 0 or not scheduled:
            self.remove(resource, name, namespace)
            return current
        before = current["metadata"].get("deletionGracePeriodSeconds")
        if before is None or grace < before:
            fresh = deepcopy(current)
            fresh["metadata"]["deletionTimestamp"] = self.moment(grace)
            fresh["metadata"]["deletionGracePeriodSeconds"] = grace
            self._store(resource, namespace, fresh)
        return self.all(resource, namespace).get(name, current)

    def _get(self, resource: str, namespace: str, name: str) -> Object:
        current = self.all(resource, namespace).get(name)
        if current is None:
            raise Refused(
                404, "NotFound", f'{resource} "{name}" not found', name=name, kind=resource
            )
        return current

    def _patch(self, resource: str, namespace: str, name: str, part: str, body: Object) -> Object:
        if part and f"{resource}/{part}" not in self.resources:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        fresh = merged(deepcopy(self._get(resource, namespace, name)), body)
        return self._store(resource, namespace, fresh)

    def moment(self, later: float = 0.0) -> str:
        when = time.gmtime(time.time() + self.clock_ahead + later)
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", when)

    # HTTP

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (request := await _request(reader)) is not None:
                await self._answer(request, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        resource, namespace, name, part = _target(request.path)
        verb = request.verb
        what = f"{resource}/{part}" if part else resource
        done = Done(verb=verb, resource=what, name=name)
        fault = next((f for f in self.faults if f.strikes(verb, what)), None)
        self.calls.append(done)
        self.before(done)
        match fault.misdeed if fault else None:
            case "drop":
                raise ConnectionResetError
            case "hang":
                await asyncio.Event().wait()
        headers, status = {}, 200
        try:
            if fault is not None and fault.misdeed == "refuse":
                headers = fault.headers
                raise Refused(fault.code, "InternalError", "as the test wants it")
            user = self._user(request)
            self._authorize(user, verb, what, namespace, name)
            if verb == "watch":
                await self._watch(request, resource, namespace, writer)
                return
            if part == "log":
                body = self._log(namespace, name, request)
            else:
                document = self._serve(request, resource, namespace, name, part)
                body = json.dumps(document).encode()
            status = 201 if verb == "create" else 200
        except Refused as e:
            status, body = e.code, json.dumps(e.status).encode()
        self.after(done)
        if fault is not None and fault.misdeed == "drop_answer":
            raise ConnectionResetError
        writer.write(self._head(status, headers | {"Content-Length": str(len(body))}) + body)
        await writer.drain()

    def _serve(
        self, request: Request, resource: str, namespace: str, name: str, part: str
    ) -> Object:
        body = json.loads(request.body) if request.body else {}
        match request.verb, resource:
            case "get", "resources":
                return {
                    "kind": "APIResourceList",
                    "resources": [{"name": n} for n in self.resources],
                }
            case "get", "metrics":
                return self._metrics(name)
            case "create", "tokenreviews":
                return {"status": self._reviewed(body["spec"])}
            case "create", _:
                return self._create(resource, namespace, body)
            case "list", _:
                return self._list(request, resource, namespace)
            case "get", _:
                return self._get(resource, namespace, name)
            case "delete", _:
                return self._delete(resource, namespace, name, body)
            case "patch", _:
                assert "strategic-merge-patch" in request.headers["content-type"]
                return self._patch(resource, namespace, name, part, body)
        raise Refused(405, "MethodNotAllowed", "the server does not allow this method")

    def _list(self, request: Request, resource: str, namespace: str) -> Object:
        matching = [
            current
            for _, current in sorted(self.all(resource, namespace).items())
            if _matches(current, request.query.get("labelSelector", ""))
        ]
        begin = int(request.query.get("continue") or 0)
        size = min(self.page, int(request.query.get("limit") or self.page))
        metadata = {"resourceVersion": str(self._version)}
        if begin + size < len(matching):
            metadata["continue"] = str(begin + size)
        return {
            "kind": f"{KINDS[resource]}List",
            "metadata": metadata,
            "items": matching[begin : begin + size],
        }

    async def _watch(
        self, request: Request, resource: str, namespace: str, writer: asyncio.StreamWriter
    ) -> None:
        since = int(request.query["resourceVersion"])
        selector = request.query.get("labelSelector", "")
        ends = time.monotonic() + float(request.query.get("timeoutSeconds", 300))
        writer.write(self._head(200, {"Transfer-Encoding": "chunked"}))
        if since < self._oldest:
            gone = Refused(410, "Expired", f"too old resource version: {since} ({self._oldest})")
            writer.write(_chunk({"type": "ERROR", "object": gone.status}) + b"0\r\n\r\n")
            await writer.drain()
            return
        while (left := ends - time.monotonic()) > 0:
            news = self._news
            for version, changed, where, before, current in list(self._history):
                if version <= since or (changed, where) != (resource, namespace):
                    continue
                event = _seen(before, current, selector)
                if event is not None:
                    writer.write(_chunk(event))
            since = max(since, self._version)
            await writer.drain()
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), min(left, BOOKMARK_SECONDS))
                continue
            metadata = {"resourceVersion": str(self._version)}
            bookmark = {"kind": KINDS[resource], "metadata": metadata}
            writer.write(_chunk({"type": "BOOKMARK", "object": bookmark}))
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    def _head(self, status: int, headers: dict[str, str]) -> bytes:
        date = email.utils.formatdate(time.time() + self.clock_ahead, usegmt=True)
        lines = {"Date": date, "Content-Type": "application/json"} | headers
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"HTTP/1.1 {status} X\r\n{text}\r\n".encode()

    # who may do what

    def _user(self, request: Request) -> str:
        token = self.tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if token is None or token.expires <= time.time() + self.clock_ahead:
            raise Refused(401, "Unauthorized", "Unauthorized")
        return token.user

    def _authorize(self, user: str, verb: str, resource: str, namespace: str, name: str) -> None:
        allowed = self.rules.get(user)
        if allowed is None or resource == "resources" or (verb, resource) in allowed:
            return
        subject = f'{resource} "{name}"' if name else resource
        raise Refused(
            403,
            "Forbidden",
            f'{subject} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API'
            f' group "" in the namespace "{namespace}"',
        )

    def _reviewed(self, spec: Object) -> Object:
        token = self.tokens.get(spec["token"])
        if token is None or token.expires <= time.time() + self.clock_ahead:
            return {"authenticated": False, "error": "invalid bearer token"}
        audiences = [a for a in spec.get("audiences") or token.audiences if a in token.audiences]
        if not audiences:
            return {"authenticated": False, "error": "token audiences are invalid"}
        extra = {} if token.pod is None else {"authentication.kubernetes.io/pod-name": [token.pod]}
        user = {"username": token.user, "extra": extra}
        return {"authenticated": True, "audiences": audiences, "user": user}

    def _metrics(self, name: str) -> Object:
        if name not in self.usage:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        usage = {"cpu": "1m", "memory": self.usage[name]}
        return {"kind": "PodMetrics", "containers": [{"name": "graph-server", "usage": usage}]}

    def _log(self, namespace: str, name: str, request: Request) -> bytes:
        containers = self._get("pods", namespace, name)["spec"]["containers"]
        if len(containers) > 1 and "container" not in request.query:
            raise Refused(
                400, "BadRequest", f"a container name must be specified for pod {name}, choose one"
                f" of: [{' '.join(container['name'] for container in containers)}]",
            )  # fmt: skip
        text = self.log_of(name)
        if text is None:
            raise Refused(400, "BadRequest", f'container "graph-server" in pod "{name}" is waiting')
        lines = text.splitlines(keepends=True)[-int(request.query["tailLines"]) :]
        return b"".join(lines)[: int(request.query["limitBytes"])]


def merged(current: Any, change: Any) -> Any:
    """A strategic merge patch: lists of containers are merged by name."""
    if isinstance(change, dict):
        result = dict(current) if isinstance(current, dict) else {}
        for name, value in change.items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = merged(result.get(name), value)
        return result
    if isinstance(change, list) and isinstance(current, list):
        changes = {item["name"]: item for item in change}
        return [merged(item, changes.get(item["name"], {})) for item in current]
    return change


def _seen(before: Object | None, current: Object | None, selector: str) -> Object | None:
    """An event as a watcher with this selector has it: for it an object appears when it begins to
    match, and is deleted when it no longer does."""
    matched = before is not None and _matches(before, selector)
    if current is not None and _matches(current, selector):
        return {"type": "MODIFIED" if matched else "ADDED", "object": current}
    return {"type": "DELETED", "object": current or before} if matched else None


def _matches(current: Object, selector: str) -> bool:
    labels = current["metadata"].get("labels") or {}
    pairs = [term.split("=", 1) for term in selector.split(",") if term]
    return all(labels.get(name) == value for name, value in pairs)


def _chunk(event: Object) -> bytes:
    line = json.dumps(event).encode() + b"\n"
    return f"{len(line):x}\r\n".encode() + line + b"\r\n"


def _target(path: str) -> tuple[str, str, str, str]:
    """Resource, namespace, name and subresource of a path."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    match parts:
        case ["api", "v1"]:
            return "resources", "", "", ""
        case ["apis", "authentication.k8s.io", "v1", "tokenreviews"]:
            return "tokenreviews", "", "", ""
        case ["apis", "metrics.k8s.io", "v1beta1", "namespaces", namespace, "pods", name]:
            return "metrics", namespace, name, ""
        case ["api", "v1", "namespaces", namespace, resource]:
            return resource, namespace, "", ""
        case ["api", "v1", "namespaces", namespace, resource, name]:
            return resource, namespace, name, ""
        case ["api", "v1", "namespaces", namespace, resource, name, part]:
            return resource, namespace, name, part
    return "unknown", "", "", ""


async def _request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return Request(method=method, path=parts.path, query=query, headers=headers, body=body)
