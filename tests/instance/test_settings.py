"""What a control plane passes on to its graph servers, and what never."""

from __future__ import annotations

import pytest

from penstock.instance.settings import GraphServerSettings, InstanceSettings, passed_on
from penstock.kit.config import Settings
from penstock.kit.errors import InvalidInput
from penstock.launching import server_environment

OWN = ("id", "token", "backend", "dir", "socket", "host", "port", "memory_bytes", "cpu", "guard")


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
    secrets = ("PENSTOCK_DATABASE_URL", "PENSTOCK_SECRET_KEY", "PENSTOCK_SERVICE_TOKEN", "PENSTOCK_OPERATOR_TOKEN")
    limits = ("PENSTOCK_INSTANCE_MEMORY_PER_USER_GB", "PENSTOCK_INSTANCE_MEMORY_TOTAL_GB")
    for name in (*secrets, *map(variable, OWN), *limits):
        monkeypatch.setenv(name, "64")
    environment = server_environment(Settings(service_token="canary", secret_key="canary"))
    assert not {*secrets, *map(variable, OWN), *limits} & environment.keys()
    assert "canary" not in environment.values()


@pytest.mark.parametrize(("name", "value"), [("dangling_edges", "perhaps"), ("max_rows", "0"), ("kill_seconds", "-1")])
def test_a_choice_that_makes_no_sense_is_named_when_the_control_plane_starts(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(variable(name), value)
    with pytest.raises(InvalidInput, match=variable(name)):
        server_environment(Settings())
