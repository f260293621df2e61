"""What a graph server is told at its start: `PENSTOCK_INSTANCE_*`, where the control plane is, and the storage."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from penstock.kit import config
from penstock.kit.errors import InvalidInput
from penstock.storage.stores import StoreOptions

if TYPE_CHECKING:
    from penstock.kit.config import Settings

_GIB = 1024**3
_CACHE_SHARE = 0.6
"""Of the memory that the process may use; the rest is for results, algorithms and Python."""


class InstanceSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="PENSTOCK_INSTANCE_", frozen=True, extra="ignore")

    id: int = Field(description="The instance's number; it names the internal routes that this server calls.")
    token: SecretStr = Field(description="Shown to the control plane, and expected of it.")
    backend: str = Field("ladybug", description="ladybug, ryugraph or falkordb.")
    dir: Path = Field(description="The server's private folder; nothing else on the machine is written to.")
    socket: Path | None = Field(None, description="The unix socket to listen on; without one, `host` and `port`.")
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(8000, description="Port to listen on; 0 picks one.")
    memory_bytes: Annotated[int, Field(ge=256 * 1024**2)] = Field(2 * _GIB, description="What the process may use.")
    cpu: Annotated[int, Field(ge=1, le=256)] = Field(2, description="Cores that the engine may use.")
    dangling_edges: Literal["fail", "drop"] = Field(
        "fail", description="What becomes of edges whose endpoints are not among the nodes."
    )
    max_rows: Annotated[int, Field(ge=1, le=10_000_000)] = Field(100_000, description="Rows of a JSON answer at most.")
    queries: Annotated[int, Field(ge=1, le=256)] = Field(16, description="Queries that run at once; others wait.")
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(60.0, description="A query's time, if unsaid.")
    max_timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(3600.0, description="The most it may ask.")
    report_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(60.0, description="Pace of the metrics reports.")
    isolation: Literal["require", "prefer", "off"] = Field(
        "prefer", description="Whether a kernel that cannot confine the engine's threads stops the start."
    )
    guard: bool = Field(True, description="Off only to show, in a test, that the isolation holds by itself.")
    falkordb_url: str | None = Field(None, description="redis://… or unix://… of the FalkorDB server.")

    @property
    def cache_bytes(self) -> int:
        return int(self.memory_bytes * _CACHE_SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Everything a server needs to begin; after it was read, the environment holds none of it."""

    instance: InstanceSettings
    plane_url: str
    storage_url: str
    storage: StoreOptions
    log_level: str
    log_form: Literal["json", "text"]


def load() -> Start:
    """Read the environment, then take what is ours out of it: no query and no child process finds it there."""
    try:
        # The fields without a default come from the environment, which the type checker cannot know.
        instance = InstanceSettings.model_validate(_environment())
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"PENSTOCK_INSTANCE_{name.upper()}: {first['msg']}.") from None
    start = _start(instance, config.load())
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        del os.environ[name]
    return start


def _environment() -> dict[str, str]:
    prefix = "PENSTOCK_INSTANCE_"
    return {name.removeprefix(prefix).lower(): value for name, value in os.environ.items() if name.startswith(prefix)}


def _start(instance: InstanceSettings, settings: Settings) -> Start:
    secret = settings.storage_secret_access_key
    return Start(
        instance=instance,
        plane_url=settings.url or f"http://{settings.host}:{settings.port}",
        storage_url=settings.storage_root,
        storage=StoreOptions(
            endpoint=settings.storage_endpoint,
            region=settings.storage_region,
            access_key_id=settings.storage_access_key_id,
            secret_access_key=None if secret is None else secret.get_secret_value(),
            allow_http=settings.storage_allow_http,
        ),
        log_level=settings.log_level,
        log_form=settings.log_form,
    )
