"""The client of the Kubernetes API, and its list-then-watch loop through everything that ends a
watch."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import ipaddress
import re
import ssl
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from penstock.kit.errors import InvalidInput
from penstock.kit.watched_file import WatchedFile
from penstock.launchers.kubernetes.api import KubernetesApi
from penstock.launchers.kubernetes.connection import Connection, from_kubeconfig
from penstock.launchers.kubernetes.errors import (
    AlreadyExists,
    KubernetesError,
    Missing,
    Unreachable,
)
from penstock.launchers.kubernetes.watch import BACKOFF, PodWatch
from tests.servers.kubernetes_api import Fault, KubernetesServer, Token

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

SELECTOR = "app=graph-instance"


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "graph-instance"} | labels},
        "spec": {"containers": [{"name": "graph-server", "image": "penstock:test"}]},
    }


@pytest.fixture
async def server() -> AsyncIterator[KubernetesServer]:
    async with KubernetesServer() as started:
        yield started


@pytest.fixture
async def api(server: KubernetesServer) -> AsyncIterator[KubernetesApi]:
    async with KubernetesApi(Connection(url=server.url, token="admin"), "graphs") as client:
        yield client


async def until(true: Callable[[], object], within: float = 15.0) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def running(watch: PodWatch) -> AsyncIterator[PodWatch]:
    task = asyncio.create_task(watch.run())
    try:
        await until(lambda: watch.is_current)
        yield watch
        assert not task.done(), "the loop goes on whatever happens"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Pauses:
    """A clock whose sleeps are short, and noted."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await asyncio.sleep(min(seconds, 0.01))


async def test_every_verb_does_what_it_says(server: KubernetesServer, api: KubernetesApi) -> None:
    created = await api.create("pods", pod("a"))
    with pytest.raises(AlreadyExists):
        await api.create("pods", pod("a"))
    uid = created["metadata"]["uid"]
    assert (await api.get("pods", "a"))["metadata"]["uid"] == uid
    changed = await api.patch("pods", "a", {"metadata": {"labels": {"x": "y"}}})
    assert changed["metadata"]["labels"] == {"app": "graph-instance", "x": "y"}
    with pytest.raises(KubernetesError, match="UID"):
        await api.delete("pods", "a", uid="another")
    await api.delete("pods", "a", uid=uid)
    for call in (api.get("pods", "a"), api.delete("pods", "a"), api.usage("a")):
        with pytest.raises(Missing):
            await call
    assert "pods/resize" in await api.resources()


async def test_a_list_is_read_page_by_page(server: KubernetesServer, api: KubernetesApi) -> None:
    server.page = 3
    for number in range(10):
        await api.create("pods", pod(f"p{number}"))
    await api.create("pods", pod("other", app="something-else"))
    items, version = await api.list("pods", selector=SELECTOR)
    assert [item["metadata"]["name"] for item in items] == [f"p{n}" for n in range(10)]
    assert version.isdecimal()
    assert len(server.calls_of("list", "pods")) == 4


async def test_a_watch_sees_what_is_created_changed_relabelled_and_deleted(
    server: KubernetesServer, api: KubernetesApi
) -> None:
    await api.create("pods", pod("before"))
    async with running(PodWatch(api, selector=SELECTOR)) as watch:
        assert set(watch.pods) == {"before"}
        await until(lambda: server.calls_of("watch", "pods"))
        await api.create("pods", pod("later"))
        await until(lambda: "later" in watch.pods)
        server.edit("pods", "later", lambda p: p["status"].update(podIP="10.0.0.7"))
        await until(lambda: watch.pods["later"].ip == "10.0.0.7")
        await api.patch("pods", "before", {"metadata": {"labels": {"app": "not-ours"}}})
        await until(lambda: "before" not in watch.pods)
        await api.delete("pods", "later")
        await until(lambda: "later" not in watch.pods)
        assert watch.last["later"].ip == "10.0.0.7"


async def test_a_version_that_the_server_has_forgotten_leads_to_a_new_list(
    server: KubernetesServer, api: KubernetesApi
) -> None:
    watch = PodWatch(api, selector=SELECTOR)
    server.before = lambda call: server.compact() if call.verb == "watch" else None
    report = await watch.run_once()
    assert (report.ended, report.listed) == ("expired", 0)
    server.before = lambda _: None
    await api.create("pods", pod("made-in-between"))
    async with running(watch):
        await until(lambda: "made-in-between" in watch.pods)


async def test_a_forgotten_version_is_not_asked_for_over_and_over(
    server: KubernetesServer, api: KubernetesApi
) -> None:
    server.before = lambda call: server.compact() if call.verb == "watch" else None
    pauses = Pauses()
    async with running(PodWatch(api, selector=SELECTOR, time=pauses)):
        await until(lambda: len(pauses.asked) >= 12)
    assert all(pause <= BACKOFF.cap for pause in pauses.asked)
    assert pauses.asked[-1] > 10 * pauses.asked[0], "later each time"
    assert len(set(pauses.asked)) == len(pauses.asked), "and never all at once"
    lists, watches = server.calls_of("list", "pods"), server.calls_of("watch", "pods")
    assert abs(len(lists) - len(watches)) <= 1


@pytest.mark.parametrize("loss", ["dropped", "restarted"])
async def test_a_connection_that_is_lost_costs_no_event(
    server: KubernetesServer, api: KubernetesApi, loss: str
) -> None:
    await api.create("pods", pod("kept"))
    await api.create("pods", pod("deleted-meanwhile"))
    async with running(PodWatch(api, selector=SELECTOR, time=Pauses())) as watch:
        await until(lambda: server.calls_of("watch", "pods"))
        if loss == "dropped":
            server.remove("pods", "deleted-meanwhile")
            server.drop_connections()
        else:
            await server.close()
            server.remove("pods", "deleted-meanwhile")
            server.compact()
            await asyncio.sleep(0.1)
            await server.open()
        await api.create("pods", pod("made-meanwhile"))
        await until(lambda: set(watch.pods) == {"kept", "made-meanwhile"})
        assert "deleted-meanwhile" in watch.last


async def test_a_watch_that_the_server_ends_is_followed_by_another(
    server: KubernetesServer, api: KubernetesApi
) -> None:
    async with running(PodWatch(api, selector=SELECTOR, resync=1.0, time=Pauses())) as watch:
        await until(lambda: len(server.calls_of("watch", "pods")) >= 3)
        await api.create("pods", pod("a"))
        await until(lambda: "a" in watch.pods)


async def test_an_event_that_comes_twice_is_one(
    server: KubernetesServer, api: KubernetesApi
) -> None:
    server.duplicate_events = True
    watch = PodWatch(api, selector=SELECTOR, resync=1.0)
    going = asyncio.create_task(watch.run_once())
    await until(lambda: server.calls_of("watch", "pods"))
    await api.create("pods", pod("a"))
    server.edit("pods", "a", lambda p: p["status"].update(podIP="10.0.0.7"))
    await api.delete("pods", "a")
    report = await going
    assert (report.events, watch.pods, report.ended) == (3, {}, "resync")


async def test_an_event_older_than_what_is_known_changes_nothing(
    server: KubernetesServer, api: KubernetesApi
) -> None:
    old = await api.create("pods", pod("a"))
    server.edit("pods", "a", lambda p: p["status"].update(podIP="10.0.0.7"))
    watch = PodWatch(api, selector=SELECTOR, resync=1.0)
    await watch.run_once()
    assert not watch._apply({"type": "MODIFIED", "object": old})
    assert watch.pods["a"].ip == "10.0.0.7"
    reborn = {**old, "metadata": {**old["metadata"], "uid": "another"}}
    assert not watch._apply({"type": "DELETED", "object": reborn})
    assert "a" in watch.pods


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_a_busy_server_is_asked_again_no_sooner_than_it_wants(
    server: KubernetesServer, api: KubernetesApi, code: int
) -> None:
    server.faults.append(
        Fault(verb="list", resource="pods", code=code, headers={"Retry-After": "7"})
    )
    pauses = Pauses()
    async with running(PodWatch(api, selector=SELECTOR, time=pauses)):
        assert pauses.asked[0] >= 7


async def test_a_refusal_names_the_verb_the_resource_and_the_service_account(
    server: KubernetesServer,
) -> None:
    server.tokens["weak"] = Token(user="system:serviceaccount:penstock:control-plane")
    server.rules["system:serviceaccount:penstock:control-plane"] = {("get", "pods")}
    connection = Connection(url=server.url, token="weak")
    async with KubernetesApi(connection, "graphs") as api:
        with pytest.raises(KubernetesError) as refused:
            await api.list("pods", selector=SELECTOR)
        assert refused.value.message == (
            "ServiceAccount penstock/control-plane may not list pods in namespace graphs."
        )
        assert "verb list on the resource pods" in (refused.value.hint or "")


async def test_an_unknown_namespace_is_named(server: KubernetesServer) -> None:
    async with KubernetesApi(Connection(url=server.url, token="admin"), "typo") as api:
        with pytest.raises(KubernetesError, match="There is no namespace typo"):
            await api.create("pods", pod("a"))


async def test_an_expired_token_is_an_error_that_says_so_and_a_new_one_is_read(
    server: KubernetesServer, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    server.tokens["old"] = Token(user="me", expires=time.time() - 1)
    connection = Connection(url=server.url, user="me", token_file=WatchedFile(file))
    async with KubernetesApi(connection, "graphs") as api:
        with pytest.raises(KubernetesError, match="credentials of me: they are expired"):
            await api.resources()
        server.tokens["new"] = Token(user="me")
        file.write_text("new\n")
        assert await api.resources()


async def test_clocks_that_differ_are_named_where_a_token_is_refused(
    server: KubernetesServer,
) -> None:
    server.clock_ahead = 600
    server.tokens["brief"] = Token(user="me", expires=time.time() + 60)
    async with KubernetesApi(Connection(url=server.url, token="brief"), "graphs") as api:
        with pytest.raises(KubernetesError) as refused:
            await api.resources()
        hint = refused.value.hint or ""
        assert re.search(r"the clock of this machine is (599|600) s behind", hint), hint
        assert abs(api.server_time - time.time() - 600) < 3


async def test_a_server_that_is_away_or_is_none_is_unreachable(server: KubernetesServer) -> None:
    async with KubernetesApi(Connection(url="http://127.0.0.1:1"), "graphs") as api:
        with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:1 is unreachable"):
            await api.resources()


LOCAL = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


def certificate(
    folder: Path,
    *,
    begins: dt.timedelta = dt.timedelta(days=-1),
    subject: x509.GeneralName = LOCAL,
) -> tuple[Path, Path]:
    """A certificate for the subject that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    begin = dt.datetime.now(dt.UTC) + begins
    names = x509.SubjectAlternativeName([subject])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=2))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "tls.crt", folder / "tls.key"
    files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


@asynccontextmanager
async def with_tls(
    folder: Path,
    *,
    begins: dt.timedelta = dt.timedelta(days=-1),
    subject: x509.GeneralName = LOCAL,
) -> AsyncIterator[tuple[KubernetesServer, Path]]:
    folder.mkdir(exist_ok=True)
    file, key = certificate(folder, begins=begins, subject=subject)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file, key)
    async with KubernetesServer(tls=context) as server:
        yield server, file


async def test_a_kubeconfig_says_where_the_server_is_and_how_to_log_in(tmp_path: Path) -> None:
    async with with_tls(tmp_path) as (server, _):
        config = {
            "kind": "Config",
            "current-context": "here",
            "contexts": [
                {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "graphs"}}
            ],
            "clusters": [
                {"name": "c", "cluster": {"server": server.url, "certificate-authority": "tls.crt"}}
            ],
            "users": [{"name": "u", "user": {"tokenFile": "token"}}],
        }
        (tmp_path / "token").write_text("admin")
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        async with KubernetesApi(from_kubeconfig(tmp_path / "config")) as api:
            assert api.namespace == "graphs"
            assert await api.resources()


async def test_the_name_of_the_certificate_is_the_one_that_the_kubeconfig_says(
    tmp_path: Path,
) -> None:
    async with with_tls(tmp_path, subject=x509.DNSName("cluster.example")) as (server, _):
        cluster = {"server": server.url, "certificate-authority": "tls.crt"}
        config = {
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "admin"}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        async with KubernetesApi(from_kubeconfig(tmp_path / "config")) as api:
            with pytest.raises(Unreachable, match="is not trusted"):
                await api.resources()
        cluster["tls-server-name"] = "cluster.example"
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        async with KubernetesApi(from_kubeconfig(tmp_path / "config")) as api:
            assert await api.resources()
            _, version = await api.list("pods", selector="")
            async with api.watch("pods", selector="", version=version, seconds=1) as events:
                assert [event async for event in events if event["type"] != "BOOKMARK"] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a kubeconfig"),
        ("kind: Config", "names no current-context"),
        ("kind: Config\ncurrent-context: x", "has no context x"),
    ],
)
def test_a_kubeconfig_that_is_none_is_said_to_be(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        from_kubeconfig(tmp_path / "config")


async def test_a_certificate_of_somebody_else_is_refused_and_a_new_ca_is_read(
    tmp_path: Path,
) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    wrong, _ = certificate(stranger)
    ca = tmp_path / "ca.crt"
    ca.write_text(wrong.read_text())
    async with with_tls(tmp_path / "right") as (server, file):
        connection = Connection(url=server.url, token="admin", ca_file=WatchedFile(ca))
        async with KubernetesApi(connection, "graphs") as api:
            with pytest.raises(Unreachable, match="is not trusted"):
                await api.resources()
            ca.write_text(file.read_text())
            assert await api.resources()


async def test_calls_at_one_time_read_a_new_ca_once_and_leave_no_connection_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients: list[httpx2.AsyncClient] = []

    class Counted(httpx2.AsyncClient):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            clients.append(self)

    monkeypatch.setattr(httpx2, "AsyncClient", Counted)
    ca = tmp_path / "ca.crt"
    async with with_tls(tmp_path / "right") as (server, file):
        ca.write_text(file.read_text())
        connection = Connection(url=server.url, token="admin", ca_file=WatchedFile(ca))
        async with KubernetesApi(connection, "graphs") as api:
            assert await api.resources()
            ca.write_text(2 * file.read_text())
            assert all(await asyncio.gather(*(api.resources() for _ in range(5))))
    assert [client.is_closed for client in clients] == [True, True]


async def test_a_client_certificate_of_a_kubeconfig_is_shown(tmp_path: Path) -> None:
    file, key = certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=file)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(file, key)
    async with KubernetesServer(tls=context) as server:
        ca = base64.b64encode(file.read_bytes()).decode()
        user = {
            "client-certificate": "tls.crt",
            "client-key-data": base64.b64encode(key.read_bytes()).decode(),
            "token": "admin",
        }
        config = {
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": server.url, "certificate-authority-data": ca}}
            ],
            "users": [{"name": "u", "user": user}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        async with KubernetesApi(from_kubeconfig(tmp_path / "config")) as api:
            assert await api.resources()
        del user["client-certificate"]
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        async with KubernetesApi(from_kubeconfig(tmp_path / "config")) as api:
            with pytest.raises(Unreachable):
                await api.resources()


async def test_a_certificate_that_is_not_valid_yet_points_to_the_clock(tmp_path: Path) -> None:
    async with with_tls(tmp_path / "tls", begins=dt.timedelta(hours=1)) as (server, file):
        connection = Connection(url=server.url, token="admin", ca=file.read_text())
        async with KubernetesApi(connection, "graphs") as api:
            with pytest.raises(Unreachable) as refused:
                await api.resources()
            assert "clock of this machine" in (refused.value.hint or "")
