"""Sources of settings: defaults, then a TOML file, then a secrets directory, then `PENSTOCK_*`; the
last one wins.

Each package declares the section that it reads; `wiring/settings.py` puts them together.
"""

from __future__ import annotations

import os
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from penstock.kit.errors import InvalidInput

Network: TypeAlias = IPv4Network | IPv6Network
S = TypeVar("S", bound="Section")
LEAST_SECRET = 16


def default_home() -> Path:
    return Path(os.environ.get("PENSTOCK_HOME") or Path.home() / ".penstock")


class Section(BaseSettings):
    """Settings of one package."""

    model_config = SettingsConfigDict(env_prefix="PENSTOCK_", extra="forbid", frozen=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        toml = TomlConfigSettingsSource(settings_cls, toml_file=_config_file())
        return init_settings, env_settings, file_secret_settings, toml


def networks(text: str | None) -> tuple[Network, ...]:
    parts = filter(None, map(str.strip, (text or "").split(",")))
    try:
        return tuple(ip_network(part) for part in parts)
    except ValueError as e:
        raise ValueError(
            f"trusted_proxies: {e}; write addresses such as 10.0.0.7,10.1.0.0/16"
        ) from None


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _config_file() -> Path:
    return Path(os.environ.get("PENSTOCK_CONFIG") or default_home() / "penstock.toml")


def load(kind: type[S], **overrides: Any) -> S:
    """The settings in force; a wrong one is named in a sentence, never in a traceback."""
    secrets = os.environ.get("PENSTOCK_SECRETS_DIR") or None
    if (named := os.environ.get("PENSTOCK_CONFIG")) and not Path(named).is_file():
        raise InvalidInput(f"PENSTOCK_CONFIG names {named}, which is not a file.")
    try:
        return kind(_secrets_dir=secrets, **overrides)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        if not name:
            raise InvalidInput(
                f"Settings: {first['msg'].removeprefix('Value error, ')}.",
                hint=f"Settings are PENSTOCK_* in the environment, or lines of {_config_file()}.",
            ) from None
        raise InvalidInput(
            f"Setting {name}: {first['msg']}.",
            hint=f"Set PENSTOCK_{name.upper()} or {name} in {_config_file()}.",
        ) from None
