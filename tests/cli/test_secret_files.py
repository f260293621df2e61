"""Where the secrets are of the processes that `penstock up` starts."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from penstock.cli.secret_files import move_to_files, secret_variables
from penstock.wiring import settings as config

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_every_secret_of_the_settings_is_known_for_one() -> None:
    """Whatever hides its value when it is printed."""
    hidden = {
        name
        for name, field in config.Settings.model_fields.items()
        if "SecretStr" in str(field.annotation)
    }
    assert hidden
    assert {f"PENSTOCK_{name.upper()}" for name in hidden} <= secret_variables()


def test_secrets_go_to_private_files_and_a_process_still_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "penstock_storage_secret_access_key").write_text("of-a-file")
    (mounted / "penstock_service_token").write_text("overruled")
    environment = {
        "PENSTOCK_SERVICE_TOKEN": "canary-token",
        "PENSTOCK_CATALOGS": '{"lake": {"type": "rest", "credential": "canary-credential"}}',
        "PENSTOCK_PORT": "8081",
        "PENSTOCK_SECRETS_DIR": str(mounted),
    }
    folder = tmp_path / "run" / "secrets-worker-1"
    for _ in range(2):
        plain = move_to_files(environment, folder)
        assert plain == {"PENSTOCK_PORT": "8081", "PENSTOCK_SECRETS_DIR": str(folder)}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    for name, value in plain.items():
        monkeypatch.setenv(name, value)
    settings = config.load(home=tmp_path)
    assert settings.service_token is not None
    assert settings.service_token.get_secret_value() == "canary-token"
    assert settings.storage_secret_access_key is not None
    assert settings.storage_secret_access_key.get_secret_value() == "of-a-file"
    assert settings.catalogs["lake"]["credential"] == "canary-credential"
