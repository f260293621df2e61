"""What is wrong with NATS or its settings is said in a sentence that names the setting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from nats.js import api

from penstock.jobs.nats import connection
from penstock.jobs.nats.settings import NatsSettings
from penstock.jobs.nats.streams import CONSUMER
from penstock.kit.errors import InvalidInput
from penstock.wiring import nats as wiring
from penstock.wiring import settings as config
from penstock.wiring.settings import Settings
from tests.api.control_plane import plane
from tests.api.test_tls import pair
from tests.jobs.conformance import Subject, done
from tests.jobs.nats.streams import connected, jetstream, nats_settings
from tests.servers.nats import NatsServer
from tests.servers.process import free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conformance import Clock

PATIENCE = 60.0
USERS = 'authorization { users: [ { user: "penstock", password: "right" } ] }'
FEW_RIGHTS = """authorization { users: [
  { user: "penstock", password: "right",
    permissions: { publish: ["$JS.API.>", "_INBOX.>"], subscribe: ["_INBOX.>"] } } ] }"""
ENOUGH_RIGHTS = """authorization { users: [
  { user: "penstock", password: "right",
    permissions: { publish: ["penstock.>", "$JS.API.>", "$JS.ACK.>"],
                   subscribe: ["penstock.>", "_INBOX.>"] } } ] }"""
TOO_SMALL = 'jetstream { store_dir: "%s", max_file_store: 1024 }'


async def problem(database: str, settings: NatsSettings) -> str:
    """What `/ready` says of the connection; none when there is one."""
    async with plane(database, nats=settings) as services, asyncio.timeout(PATIENCE):
        failing = services.store.metrics.background.failing
        while True:
            if "nats connection" in failing:
                return failing["nats connection"]
            if services.registry.get_sample_value("penstock_nats_connected"):
                return ""
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 2)


@pytest.mark.parametrize(
    ("options", "values", "words"),
    [
        (USERS, {}, "PENSTOCK_NATS_USER"),
        (USERS, {"nats_user": "penstock", "nats_password": "wrong"}, "refuses our credentials"),
        (USERS, {"nats_user": "penstock", "nats_password": "right"}, ""),
        ("authorization { token: right }", {"nats_token": "wrong"}, "PENSTOCK_NATS_TOKEN"),
        ("authorization { token: right }", {"nats_token": "right"}, ""),
        (FEW_RIGHTS, {"nats_user": "penstock", "nats_password": "right"}, "does not let our user"),
    ],
    ids=["no user", "wrong password", "user", "wrong token", "token", "few rights"],
)
async def test_credentials(
    database: str, tmp_path: Path, options: str, values: dict[str, Any], words: str
) -> None:
    with NatsServer(tmp_path, options=options) as server:
        message = await problem(database, nats_settings(server, **values))
    assert words in message
    assert bool(message) is bool(words)
    assert "wrong" not in message


async def test_tls(database: str, tmp_path: Path) -> None:
    files = pair(tmp_path)
    options = f'tls {{ cert_file: "{files.certificate}", key_file: "{files.key}" }}'
    with NatsServer(tmp_path / "nats", options=options) as server:
        assert "PENSTOCK_NATS_TLS_CA" in await problem(database, nats_settings(server))
        settings = nats_settings(server, nats_tls_ca=files.certificate)
        assert await problem(database, settings) == ""


async def test_a_server_that_wants_our_certificate(database: str, tmp_path: Path) -> None:
    files, ours = pair(tmp_path), pair(tmp_path, name="client")
    options = (
        f'tls {{ cert_file: "{files.certificate}", key_file: "{files.key}",'
        f' ca_file: "{ours.certificate}", verify: true }}'
    )
    with NatsServer(tmp_path / "nats", options=options) as server:
        settings = nats_settings(server, nats_tls_ca=files.certificate)
        assert "PENSTOCK_NATS_TLS_CERT" in await problem(database, settings)
        settings = nats_settings(
            server,
            nats_tls_ca=files.certificate,
            nats_tls_cert=ours.certificate,
            nats_tls_key=ours.key,
        )
        assert await problem(database, settings) == ""


async def test_a_stream_of_somebody_else(database: str, nats_server: NatsServer) -> None:
    settings = nats_settings(nats_server)
    [stage, _] = settings.streams
    async with jetstream(nats_server) as js:
        await js.add_stream(stage.config(), retention=api.RetentionPolicy.LIMITS)
        message = await problem(database, settings)
        assert f"The NATS stream {stage.name} is there with another configuration" in message
        assert "retention is limits, not workqueue" in message
        assert "PENSTOCK_NATS_PREFIX" in message
        info = await js.stream_info(stage.name)
        assert info.config.retention == api.RetentionPolicy.LIMITS
        await js.delete_stream(stage.name)


async def test_a_consumer_of_somebody_else(database: str, nats_server: NatsServer) -> None:
    settings = nats_settings(nats_server)
    [stage, _] = settings.streams
    async with jetstream(nats_server) as js:
        await js.add_stream(stage.config())
        await js.add_consumer(stage.name, stage.consumer(), max_deliver=3)
        message = await problem(database, settings)
        assert f"The consumer {CONSUMER} of the NATS stream {stage.name} is there" in message
        assert "max_deliver is 3, not -1" in message
        await js.delete_stream(stage.name)


async def test_a_server_without_jetstream(database: str, tmp_path: Path) -> None:
    with NatsServer(tmp_path, jetstream=False) as server:
        assert "(-js)" in await problem(database, nats_settings(server))


async def test_a_server_without_room(database: str, tmp_path: Path) -> None:
    options = TOO_SMALL % (tmp_path / "store")
    with NatsServer(tmp_path, options=options) as server:
        message = await problem(database, nats_settings(server))
    assert "JetStream refused while looking for the stream" in message
    assert "storage" in message


async def test_nobody_at_the_address(database: str, nats_server: NatsServer) -> None:
    [port] = free_ports(1)
    settings = nats_settings(nats_server, nats_url=f"nats://user:secret@127.0.0.1:{port}")
    message = await problem(database, settings)
    assert f"No NATS server can be reached at 127.0.0.1:{port}" in message
    assert "PENSTOCK_NATS_URL" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "nats_url"),
        ({"nats_url": " , "}, "nats_url"),
        ({"nats_url": "nats://a", "nats_user": "penstock"}, "nats_password"),
        ({"nats_url": "nats://a", "nats_tls_cert": "a.pem"}, "nats_tls_key"),
        ({"nats_url": "nats://a", "nats_prefix": "a.b"}, "nats_prefix"),
    ],
)
def test_settings_that_do_not_go_together(values: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        config.load(queue="nats", **values)


def test_tls_files_that_are_not_there(tmp_path: Path) -> None:
    settings = Settings(queue="nats", nats_url="nats://a", nats_tls_ca=tmp_path / "none.pem")
    with pytest.raises(InvalidInput, match="TLS files of NATS"):
        NatsSettings.of(settings).tls()


async def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "is_installed", lambda: False)
    with pytest.raises(InvalidInput) as refused:
        wiring.check_installed()
    assert refused.value.hint == "pip install 'penstock[nats]'"


async def test_the_rights_that_the_guide_lists_are_enough(
    database: str, clock: Clock, tmp_path: Path
) -> None:
    with NatsServer(tmp_path, options=ENOUGH_RIGHTS) as server:
        settings = nats_settings(
            server, nats_prefix="penstock", nats_user="penstock", nats_password="right"
        )
        async with plane(database, nats=settings) as services, asyncio.timeout(PATIENCE):
            subject = Subject(store=services.store, services=services, clock=clock)
            await connected(subject)
            claimed = await subject.held()
            value = services.registry.get_sample_value
            labels = {"stream": "exec"}
            while not value("penstock_nats_delivered_total", labels):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
            await subject.store.finish([done(claimed)])
            while not value("penstock_nats_acknowledged_total", labels):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
            assert services.store.metrics.background.failing == {}
