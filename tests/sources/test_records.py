"""Configured sources: what goes in, what comes out, and what never does."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import asyncpg
import duckdb
import pytest

from penstock.guard.errors import UrlRefused
from penstock.guard.network_reach import Reach
from penstock.kit.db import Db
from penstock.kit.errors import Conflict, Internal, InvalidInput, NotFound, Unavailable
from penstock.kit.vault import SecretKeyMissing, Vault, new_key
from penstock.sources.credentials import SourceCredentials
from penstock.sources.endpoints import FOLDERS, HOSTS, SOCKETS, URLS, destinations
from penstock.sources.key_rotation import Rekeyed, rekey
from penstock.sources.registry import DRIVERS
from penstock.sources.repository import MAX_CONFIG, DataSources

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

MARK = "canary-hunter2"
POSTGRES = {"database": "shop", "user": "ann", "host": "db.example"}


@pytest.fixture
async def db(database: str) -> AsyncIterator[Db]:
    async with Db(database, size=4) as opened:
        yield opened


@pytest.fixture
def vault() -> Vault:
    return Vault([new_key()])


@pytest.fixture
def sources(db: Db, vault: Vault) -> DataSources:
    return DataSources(db, vault)


@pytest.fixture
def shop(tmp_path: Path) -> str:
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE TABLE orders (id BIGINT NOT NULL, amount DECIMAL(12, 2) DEFAULT 0)"
        )
    return str(file)


async def add(sources: DataSources, name: str = "shop", **changes: Any) -> int:
    values: dict[str, Any] = {
        "kind": "postgres",
        "owner": "ann",
        "config": POSTGRES,
        "secrets": {"password": MARK},
    }
    return (await sources.add(name=name, **(values | changes))).data_source_id


async def test_a_source_is_kept_with_its_credentials_sealed(sources: DataSources, db: Db) -> None:
    source = await sources.get(await add(sources))
    assert (source.name, source.type, source.owner, source.config) == (
        "shop",
        "postgres",
        "ann",
        POSTGRES,
    )
    assert (source.has_credentials, source.is_default, source.test_ok) == (True, False, None)
    opening = await sources.opening(source.data_source_id)
    assert opening.secrets == {"password": MARK}
    async with db.connection() as connection:
        stored = await connection.fetchval(
            "SELECT s::text || c::text FROM penstock.data_source s"
            " JOIN penstock_secret.data_source_credentials c USING (data_source_id)"
        )
    assert MARK not in f"{source!r} {opening!r} {stored}"
    assert MARK.encode().hex() not in stored


async def test_a_source_without_credentials_needs_no_key(db: Db, vault: Vault, shop: str) -> None:
    keyless = DataSources(db, Vault([]))
    source_id = await add(keyless, kind="duckdb", config={"database": shop}, secrets={})
    assert not (await keyless.get(source_id)).has_credentials
    assert (await keyless.test(source_id))[0].test_ok
    with pytest.raises(SecretKeyMissing, match="no secret key"):
        await add(keyless, "other")
    assert (await keyless.page())[1] == 1
    sealed = await add(DataSources(db, vault), "sealed")
    assert (await keyless.get(sealed)).has_credentials
    with pytest.raises(SecretKeyMissing):
        await keyless.opening(sealed)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"config": {"database": "x"}}, "config.user"),
        ({"config": POSTGRES | {"port": 0}}, "config.port"),
        ({"config": POSTGRES | {"colour": "blue"}}, "config.colour"),
        ({"config": POSTGRES | {"password": MARK}}, "config.password"),
        ({"secrets": {"pasword": MARK}}, "credentials.pasword"),
        ({"kind": "duckdb", "config": {"threads": MARK}, "secrets": {}}, "config.threads"),
        ({"kind": "duckdb", "config": {}, "secrets": {"password": MARK}}, "credentials.password"),
    ],
)
async def test_a_wrong_configuration_is_refused_by_its_field_and_not_repeated(
    sources: DataSources, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await add(sources, **changes)
    assert refused.value.details["field"] == field
    assert field.partition(".")[2] in refused.value.message
    assert MARK not in f"{refused.value!r} {refused.value.hint} {refused.value.details}"
    assert (await sources.page())[1] == 0


async def test_what_no_database_can_hold_is_refused(sources: DataSources) -> None:
    trino = {"url": "https://trino.example", "user": "ann", "session": {"a": "b\0"}}
    large = POSTGRES | {"database": "x" * MAX_CONFIG}
    for kind, config in (("trino", trino), ("postgres", large), ("nonsense", {})):
        with pytest.raises(InvalidInput):
            await add(sources, kind=kind, config=config, secrets={})
    for name in ("", "a b", "x" * 201, "\0"):
        with pytest.raises(InvalidInput):
            await add(sources, name)


async def test_a_name_is_taken_once(sources: DataSources) -> None:
    first, second = await add(sources), await add(sources, "other")
    with pytest.raises(Conflict, match="already"):
        await add(sources)
    with pytest.raises(Conflict, match="already"):
        await sources.update(second, actor="ann", name="shop")
    assert (await sources.find("shop")).data_source_id == first
    assert (await sources.find(str(second))).name == "other"
    numeric = await add(sources, str(first))
    assert (await sources.find(str(first))).data_source_id == numeric
    for reference in ("nothing", "²", "9" * 30, "0"):
        with pytest.raises(NotFound):
            await sources.find(reference)


async def test_a_change_keeps_what_it_does_not_name_and_forgets_the_test(
    sources: DataSources, shop: str
) -> None:
    source = await add(sources, kind="duckdb", config={"database": shop}, secrets={})
    tested, took = await sources.test(source)
    assert (tested.test_ok, took > 0) == (True, True)
    assert tested.test_says
    assert tested.test_says.startswith("DuckDB")
    changed = await sources.update(source, actor="ann", config={"database": shop, "threads": 1})
    assert (changed.config["threads"], changed.name, changed.test_ok, changed.tested_at) == (
        1,
        "shop",
        None,
        None,
    )
    with pytest.raises(InvalidInput):
        await sources.update(source, actor="ann", config={"database": shop, "threads": 0})
    assert (await sources.get(source)).config["threads"] == 1
    with pytest.raises(NotFound):
        await sources.update(source + 1, actor="ann", name="x")


async def test_kept_credentials_follow_no_source_to_another_host(sources: DataSources) -> None:
    source = await add(sources)
    elsewhere = POSTGRES | {"host": "evil.example"}
    with pytest.raises(InvalidInput, match="entered again") as refused:
        await sources.update(source, actor="bob", config=elsewhere)
    assert refused.value.details["field"] == "credentials"
    await sources.update(source, actor="bob", config=POSTGRES | {"sslmode": "require"})
    await sources.update(source, actor="bob", config=elsewhere, secrets={"password": "new"})
    assert (await sources.opening(source)).secrets == {"password": "new"}
    await sources.update(source, actor="bob", secrets={})
    assert not (await sources.get(source)).has_credentials


@pytest.mark.parametrize(
    ("kind", "before", "now"),
    [
        ("postgres", {"sslmode": "verify-full"}, {"sslmode": "verify-ca"}),
        ("postgres", {"sslmode": "verify-full"}, {"sslmode": "disable"}),
        ("postgres", {"sslmode": "require"}, {}),
        ("postgres", {}, {"sslmode": "disable"}),
        (
            "postgres",
            {"sslmode": "verify-full", "sslrootcert": "/ca.pem"},
            {"sslmode": "verify-full"},
        ),
        ("postgres", {"sslrootcert": "/ca.pem"}, {"sslrootcert": "/evil.pem"}),
        ("postgres", {}, {"port": 5433}),
        ("mysql", {"tls": "verify"}, {"tls": "require"}),
        ("mysql", {"tls": "verify", "tls_ca": "/ca.pem"}, {"tls": "verify"}),
        ("mysql", {}, {"tls": "disable"}),
    ],
)
async def test_kept_credentials_take_no_way_that_is_protected_less(
    sources: DataSources, kind: str, before: dict[str, object], now: dict[str, object]
) -> None:
    source = await add(sources, kind=kind, config=POSTGRES | before)
    with pytest.raises(InvalidInput, match="entered again") as refused:
        await sources.update(source, actor="bob", config=POSTGRES | now)
    assert refused.value.details["field"] == "credentials"
    await sources.update(source, actor="bob", config=POSTGRES | now, secrets={"password": MARK})


@pytest.mark.parametrize(
    ("kind", "before", "now"),
    [
        ("postgres", {"sslmode": "disable"}, {}),
        ("postgres", {}, {"sslmode": "prefer"}),
        ("postgres", {"sslmode": "require"}, {"sslmode": "verify-full"}),
        ("mysql", {"tls": "prefer"}, {"tls": "require"}),
    ],
)
async def test_kept_credentials_go_on_over_a_way_that_is_protected_as_well_or_better(
    sources: DataSources, kind: str, before: dict[str, object], now: dict[str, object]
) -> None:
    source = await add(sources, kind=kind, config=POSTGRES | before)
    await sources.update(source, actor="bob", config=POSTGRES | now)
    assert (await sources.opening(source)).secrets == {"password": MARK}


@pytest.mark.parametrize("kind", ["trino", "elasticsearch"])
async def test_kept_credentials_are_not_sent_without_tls(sources: DataSources, kind: str) -> None:
    config = {"url": "https://db.example", "user": "ann"}
    source = await add(sources, kind=kind, config=config)
    for weaker in ({"allow_http": True}, {"url": "http://db.example", "allow_http": True}):
        with pytest.raises(InvalidInput, match="entered again"):
            await sources.update(source, actor="bob", config=config | weaker)


async def test_credentials_of_a_lost_key_can_be_given_again(db: Db, sources: DataSources) -> None:
    source = await add(sources)
    later = DataSources(db, Vault([new_key()]))
    with pytest.raises(SecretKeyMissing):
        await later.update(source, actor="ann", name="renamed")
    await later.update(source, actor="ann", secrets={"password": "new"})
    assert (await later.opening(source)).secrets == {"password": "new"}


async def test_one_source_is_the_default_however_many_ask_at_once(sources: DataSources) -> None:
    assert await sources.default() is None
    source_ids = [await add(sources, f"s{n}") for n in range(4)]
    await asyncio.gather(*(sources.make_default(source, actor="ann") for source in source_ids * 3))
    page, total = await sources.page()
    assert (total, sum(s.is_default for s in page)) == (4, 1)
    with pytest.raises(NotFound):
        await sources.make_default(999, actor="ann")
    default = await sources.default()
    assert default is not None
    await sources.drop(default.data_source_id, actor="ann")
    assert await sources.default() is None


async def test_pages_are_cut_filtered_and_turned_around(sources: DataSources, shop: str) -> None:
    source_ids = [await add(sources, f"s{n}") for n in range(3)]
    await add(sources, "file", kind="duckdb", config={"database": shop}, secrets={})
    page, total = await sources.page(kind="postgres", offset=1, limit=1)
    assert ([s.data_source_id for s in page], total) == ([source_ids[1]], 3)
    page, _ = await sources.page(ascending=True)
    assert [s.name for s in page] == ["s0", "s1", "s2", "file"]


async def test_a_failed_test_is_remembered_without_the_secret(
    sources: DataSources, tmp_path: Path
) -> None:
    config = POSTGRES | {"host": str(tmp_path), "database": f"x{MARK}"}
    source = await add(sources, config=config)
    tested, _ = await sources.test(source)
    assert tested.test_ok is False
    assert tested.test_says
    assert MARK not in tested.test_says


class Leaky(Exception):
    pass


async def test_an_error_that_repeats_a_secret_is_hushed_whatever_its_kind() -> None:
    opening = SourceCredentials(
        type="duckdb", config={}, secrets={"password": MARK, "token": "a/b c", "pin": "1"}
    )
    for error in (
        InvalidInput(f"no {MARK}", hint=f"not {MARK}", nested={"a": [f"{MARK} a%2Fb%20c"]}),
        Leaky(f"no {MARK}"),
    ):
        opening._redact_secrets(error)
        text = f"{error!r} {error} {vars(error)}"
        assert MARK not in text
        assert "a%2Fb" not in text
        assert "[redacted]" in text
    unrelated = InvalidInput("10 rows")
    opening._redact_secrets(unrelated)
    assert unrelated.message == "10 rows"


async def test_changes_are_written_down_with_their_actor_and_without_values(
    db: Db, vault: Vault
) -> None:
    noted: list[tuple[str, str, str, object]] = []

    async def audit(tx: object, actor: str, action: str, subject: str, detail: object) -> None:
        noted.append((actor, action, subject, detail))

    sources = DataSources(db, vault, audit=audit)
    source = await add(sources)
    await sources.update(source, actor="bob", secrets={"password": MARK})
    await sources.make_default(source, actor="cat")
    await sources.drop(source, actor="dan")
    assert [(actor, action) for actor, action, _, _ in noted] == [
        ("ann", "data_source.add"),
        ("bob", "data_source.update"),
        ("cat", "data_source.default"),
        ("dan", "data_source.drop"),
    ]
    assert {subject for _, _, subject, _ in noted} == {f"data_source:{source}"}
    assert MARK not in str(noted)


def refuse(url: str) -> None:
    raise UrlRefused(f"{url} is shut.")


async def test_a_source_is_held_against_the_policy_when_it_is_written_and_when_it_is_opened(
    db: Db, vault: Vault
) -> None:
    source = await add(DataSources(db, vault))
    strict = DataSources(db, vault, reach=refuse)
    with pytest.raises(
        UrlRefused, match=r"config\.host: https://db.example:443 is shut"
    ) as refused:
        await add(strict, "other")
    assert refused.value.details == {"field": "config.host"}
    with pytest.raises(UrlRefused):
        await strict.opening(source)
    with pytest.raises(UrlRefused):
        await strict.test(source)


@pytest.mark.parametrize(
    ("kind", "config", "expected"),
    [
        ("postgres", {"host": "db.example", "port": 6000}, {"https://db.example:6000"}),
        (
            "postgres",
            {"host": "a.example,::1,/run/x"},
            {"https://a.example:443", "https://[::1]:443", "unix:/run/x"},
        ),
        ("postgres", {"host": ""}, {"unix:"}),
        ("postgres", {"host": "@hidden"}, {"unix:@hidden"}),
        ("postgres", {}, {"https://localhost:443"}),
        ("mysql", {"unix_socket": "/run/mysql"}, {"unix:/run/mysql"}),
        ("trino", {"url": "https://trino.example:8443"}, {"https://trino.example:8443"}),
        (
            "elasticsearch",
            {"urls": ["http://a:9200", "http://b:9200"]},
            {"http://a:9200", "http://b:9200"},
        ),
        (
            "files",
            {"url": "s3://bucket/x", "endpoint": "http://10.0.0.1:8333"},
            {"http://10.0.0.1:8333"},
        ),
        ("files", {"url": "s3://bucket/x"}, set()),
        ("bigquery", {"rest_endpoint": "http://127.0.0.1:9050"}, {"http://127.0.0.1:9050"}),
        ("files", {"url": "file:///etc"}, {"file:/etc"}),
        (
            "duckdb",
            {"database": "/data/x.duckdb", "directory": "/data"},
            {"file:/data/x.duckdb", "file:/data"},
        ),
        ("duckdb", {}, set()),
    ],
)
def test_where_a_configuration_leads(kind: str, config: dict[str, Any], expected: set[str]) -> None:
    assert {url for _, url in destinations(kind, config)} == expected


def test_every_setting_of_every_driver_that_names_a_place_is_looked_at() -> None:
    for driver in DRIVERS.values():
        if find_spec(driver.module) is None:
            continue
        module = import_module(driver.module)
        config = getattr(module, "Config", None) or import_module(f"{driver.module}.config").Config
        smelling = {
            f.name
            for f in fields(config)
            if any(w in f.name for w in ("host", "url", "endpoint", "socket"))
        }
        assert smelling <= {*HOSTS, *URLS, *SOCKETS, *FOLDERS}, driver.module


def test_public_places_are_open_and_others_only_with_leave() -> None:
    names = {
        "db.example": ["8.8.8.8"],
        "inside.example": ["10.1.2.3"],
        "db": ["172.16.0.5"],
        "both": ["8.8.8.8", "10.0.0.1"],
    }

    def resolver(host: str, port: int) -> list[str]:
        if host == "slow":
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return names.get(host, [])

    public, private = (
        Reach(private=False, resolver=resolver),
        Reach(private=True, resolver=resolver),
    )
    for url in ("https://db.example:5432", "https://8.8.8.8:5432"):
        public(url)
        private(url)
    for url in (
        "https://inside.example:5432",
        "https://db:5432",
        "https://both:1",
        "https://127.0.0.1:1",
        "https://[::1]:1",
    ):
        private(url)
        with pytest.raises(UrlRefused) as refused:
            public(url)
        assert "PENSTOCK_ALLOW_PRIVATE_SOURCES" in str(refused.value.hint)
    for url in ("file:/etc", "unix:/run/x"):
        private(url)
        with pytest.raises(UrlRefused):
            public(url)
    for url in (
        "https://169.254.169.254:80",
        "https://[fe80::1]:80",
        "https://0.0.0.0:1",
        "https://0x7f.1:1",
        "https://nobody.example:1",
    ):
        with pytest.raises(UrlRefused):
            private(url)
    with pytest.raises(Unavailable):
        private("https://slow:1")


async def test_a_new_key_seals_everything_anew_and_the_old_one_can_go(db: Db) -> None:
    old, new = new_key(), new_key()
    before = DataSources(db, Vault([old]))
    source_ids = [await add(before, f"s{n}") for n in range(3)]
    stamps = [(await before.get(source)).updated_at for source in source_ids]
    assert await rekey(db, Vault([new, old])) == Rekeyed(anew=3, already=0)
    assert await rekey(db, Vault([new, old])) == Rekeyed(anew=0, already=3)
    after = DataSources(db, Vault([new]))
    assert [(await after.opening(source)).secrets for source in source_ids] == [
        {"password": MARK}
    ] * 3
    assert [(await after.get(source)).updated_at for source in source_ids] == stamps
    with pytest.raises(SecretKeyMissing):
        await before.opening(source_ids[0])


async def test_a_change_of_keys_is_all_or_nothing(db: Db) -> None:
    current, lost, new = new_key(), new_key(), new_key()
    first = await add(DataSources(db, Vault([current])), "first")
    await add(DataSources(db, Vault([lost])), "second")
    with pytest.raises(SecretKeyMissing, match="data_source:"):
        await rekey(db, Vault([new, current]))
    assert (await DataSources(db, Vault([current])).opening(first)).secrets == {"password": MARK}


async def test_credentials_that_were_moved_to_another_row_do_not_open_there(
    db: Db, vault: Vault
) -> None:
    sources = DataSources(db, vault)
    source_ids = [await add(sources, name) for name in ("first", "second")]
    async with db.connection() as connection:
        await connection.execute(
            "UPDATE penstock_secret.data_source_credentials s SET credentials = o.credentials"
            " FROM penstock_secret.data_source_credentials o"
            " WHERE o.data_source_id <> s.data_source_id"
        )
    for source in source_ids:
        with pytest.raises(Internal, match="another row"):
            await sources.opening(source)
    with pytest.raises(Internal, match="another row"):
        await rekey(db, vault)


async def test_no_two_rows_are_ever_the_default(db: Db, sources: DataSources) -> None:
    for name in ("first", "second"):
        await add(sources, name)
    async with db.connection() as connection:
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute("UPDATE penstock.data_source SET is_default = true")
