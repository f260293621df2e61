"""What a control plane passes on to its graph servers, and what never."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from penstock.graph_server.settings import GraphServerSettings, InstanceSettings, load, passed_on
from penstock.kit.errors import InvalidInput
from penstock.wiring.instances import server_environment, server_secrets
from penstock.wiring.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

OWN = (
    "id",
    "token",
    "account_token_file",
    "backend",
    "dir",
    "socket",
    "host",
    "port",
    "memory_bytes",
    "cpu",
    "guard",
)


def variable(name: str) -> str:
    return f"PENSTOCK_INSTANCE_{name.upper()}"


def test_every_setting_is_an_operators_choice_or_one_instances_own() -> None:
    assert set(InstanceSettings.model_fields) - set(GraphServerSettings.model_fields) == set(OWN)


def test_the_operators_choices_are_passed_on_as_they_were_written() -> None:
    chosen = {
        variable("dangling_edges"): "drop",
        variable("falkordb_url"): "redis://:secret@falkor:6379",
        variable("timeout_seconds"): "5",
    }
    assert passed_on(chosen | {"PATH": "/bin"}) == chosen


def test_nothing_of_the_control_plane_and_nothing_of_one_instance_is_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secrets = (
        "PENSTOCK_DATABASE_URL",
        "PENSTOCK_SECRET_KEY",
        "PENSTOCK_SERVICE_TOKEN",
        "PENSTOCK_OPERATOR_TOKEN",
    )
    limits = ("PENSTOCK_INSTANCE_MEMORY_PER_USER_GB", "PENSTOCK_INSTANCE_MEMORY_TOTAL_GB")
    for name in (*secrets, *map(variable, OWN), *limits):
        monkeypatch.setenv(name, "64")
    environment = server_environment(Settings(service_token="canary", secret_key="canary"))
    assert not {*secrets, *map(variable, OWN), *limits} & environment.keys()
    assert "canary" not in environment.values()


def test_secrets_are_passed_on_apart_from_everything_that_may_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable("falkordb_url"), "redis://:canary@falkor:6379")
    settings = Settings(storage_access_key_id="canary-id", storage_secret_access_key="canary-key")
    assert server_secrets(settings) == {
        variable("falkordb_url"): "redis://:canary@falkor:6379",
        "PENSTOCK_STORAGE_ACCESS_KEY_ID": "canary-id",
        "PENSTOCK_STORAGE_SECRET_ACCESS_KEY": "canary-key",
    }
    assert not [value for value in server_environment(settings).values() if "canary" in value]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The environment of a graph server, but for its secrets."""
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable("id"), "7")
    monkeypatch.setenv(variable("dir"), str(tmp_path))
    return monkeypatch


def test_a_graph_server_takes_its_secrets_from_a_descriptor_once(begun: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    secrets = {variable("token"): "handed-over", "PENSTOCK_STORAGE_SECRET_ACCESS_KEY": "key"}
    os.write(writing, json.dumps(secrets).encode())
    os.close(writing)
    begun.setenv(variable("secrets_fd"), str(reading))
    begun.setenv(variable("token"), "of-the-environment")
    start = load()
    assert start.instance.token.get_secret_value() == "handed-over"
    assert start.storage.secret_access_key == "key"
    assert os.read(reading, 1) == b""
    assert not [name for name in os.environ if name.startswith("PENSTOCK_")]
    os.close(reading)


def test_a_graph_server_takes_its_secrets_from_mounted_files(
    begun: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "penstock_instance_token").write_text("of-a-file\n")
    (tmp_path / "penstock_storage_secret_access_key").write_text("key\n")
    begun.setenv("PENSTOCK_SECRETS_DIR", str(tmp_path))
    start = load()
    assert start.instance.token.get_secret_value() == "of-a-file"
    assert start.storage.secret_access_key == "key"


@pytest.mark.parametrize("number", ["9999", "none"])
def test_a_descriptor_that_is_none_is_named(begun: pytest.MonkeyPatch, number: str) -> None:
    begun.setenv(variable("secrets_fd"), number)
    with pytest.raises(
        InvalidInput, match=f"{variable('secrets_fd')}: {number} is no descriptor"
    ) as refusal:
        load()
    assert "PENSTOCK_SECRETS_DIR" in str(refusal.value.hint)


@pytest.mark.parametrize(
    ("name", "value"), [("dangling_edges", "perhaps"), ("max_rows", "0"), ("kill_seconds", "-1")]
)
def test_a_choice_that_makes_no_sense_is_named_when_the_control_plane_starts(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(variable(name), value)
    with pytest.raises(InvalidInput, match=variable(name)):
        server_environment(Settings())
