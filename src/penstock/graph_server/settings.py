"""Settings of a graph server: `PENSTOCK_INSTANCE_*`, the control plane's address and the
storage."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import orjson
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from penstock.kit import config
from penstock.kit.errors import InvalidInput
from penstock.kit.settings import ControlPlaneSettings, LogSettings
from penstock.storage.object_store import StoreOptions
from penstock.storage.settings import StorageSettings

if TYPE_CHECKING:
    from collections.abc import Mapping


_GIB = 1024**3
_CACHE_SHARE = 0.5
"""Of the instance's memory; the rest is for queries, results, algorithms and Python."""
_BASE_BYTES = 384 * 1024**2
"""Python, the libraries and their idle memory, in all processes together."""
_LEAST_QUERY_BYTES = 64 * 1024**2


PREFIX = "PENSTOCK_INSTANCE_"
SECRETS = frozenset(
    {
        "PENSTOCK_INSTANCE_FALKORDB_URL",
        "PENSTOCK_INSTANCE_TOKEN",
        "PENSTOCK_STORAGE_ACCESS_KEY_ID",
        "PENSTOCK_STORAGE_SECRET_ACCESS_KEY",
    }
)
"""Settings that a launcher hands over where no other process can read them."""


class PlatformSettings(LogSettings, StorageSettings, ControlPlaneSettings):
    """What a graph server reads of the platform's settings; the others are none of its business."""

    model_config = SettingsConfigDict(extra="ignore")


class GraphServerSettings(BaseSettings):
    """What an operator chooses for every graph server; the control plane passes these on.

    Nothing here identifies an instance and nothing belongs to the control plane itself, so a field
    of this class is safe to hand to a process that runs queries of strangers.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    dangling_edges: Literal["fail", "drop"] = Field(
        "fail", description="What becomes of edges whose endpoints are not among the nodes."
    )
    max_rows: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        100_000, description="Rows of a JSON answer at most."
    )
    queries: Annotated[int, Field(ge=1, le=256)] = Field(
        16, description="Queries that run at once; others wait."
    )
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(
        60.0, description="Timeout of a query that does not ask for one."
    )
    max_timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(
        3600.0, description="Longest timeout a query may ask for."
    )
    kill_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        0.75,
        description="How long after its timeout a query may take to stop before the engine's "
        "process "
        "is"
        " killed and restarted.",
    )
    query_memory_bytes: Annotated[int, Field(ge=32 * 1024**2)] | None = Field(
        None,
        description="Memory that all running queries may take together, beside the engine's cache; "
        "unset"
        " means: what the instance's memory leaves.",
    )
    header_timeout_seconds: Annotated[float, Field(ge=1, le=300)] = Field(
        10.0, description="How long the head of a request may take to come."
    )
    body_timeout_seconds: Annotated[float, Field(ge=1, le=3600)] = Field(
        30.0,
        description="How long the body of a request may pause, and how long it may come at less"
        " than 1,024 bytes a second.",
    )
    report_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        60.0, description="Interval of the metrics reports."
    )
    isolation: Literal["require", "prefer", "off"] = Field(
        "prefer",
        description="Whether a kernel that cannot confine the engine's process stops the start.",
    )
    falkordb_url: SecretStr | None = Field(
        None,
        description="redis://… or unix://… of a FalkorDB server to use; unset means: each graph "
        "server"
        " of that backend starts its own.",
    )


class InstanceSettings(GraphServerSettings):
    """All settings of one graph server."""

    id: int = Field(
        description="The instance's number; it names the internal routes that this server calls."
    )
    token: SecretStr = Field(description="Shown to the control plane, and expected of it.")
    account_token_file: Path | None = Field(
        None,
        description="A file with a token of a Kubernetes service account, which is shown to the"
        " control plane instead; read again when it changes.",
    )
    backend: str = Field("ladybug", description="ladybug, ryugraph or falkordb.")
    dir: Path = Field(
        description="The server's private folder; nothing else on the machine is written to."
    )
    socket: Path | None = Field(
        None, description="The unix socket to listen on; without one, `host` and `port`."
    )
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8000, description="Port to listen on; 0 picks one."
    )
    memory_bytes: Annotated[int, Field(ge=256 * 1024**2)] = Field(
        2 * _GIB, description="What the process may use."
    )
    cpu: Annotated[int, Field(ge=1, le=256)] = Field(
        2, description="Cores that the engine may use."
    )
    guard: bool = Field(
        True, description="Off only to show, in a test, that the isolation holds by itself."
    )

    @property
    def cache_bytes(self) -> int:
        return int(self.memory_bytes * _CACHE_SHARE)

    def query_bytes(self, graph_bytes: int) -> int:
        """Memory for running queries, beside what the graph itself has."""
        left = self.memory_bytes - graph_bytes - _BASE_BYTES
        return self.query_memory_bytes or max(_LEAST_QUERY_BYTES, left)


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a control plane's environment that its graph servers get: the operator's
    choices, checked now and not at the first launch."""
    names = {name: f"{PREFIX}{name.upper()}" for name in GraphServerSettings.model_fields}
    chosen = {
        name: environment[variable] for name, variable in names.items() if variable in environment
    }
    try:
        GraphServerSettings.model_validate(chosen)
    except ValidationError as e:
        raise _wrong(e) from None
    return {names[name]: value for name, value in chosen.items()}


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
    """Read the environment and the secrets, then take what is ours out of it: no query and no child
    process finds it there."""
    secrets = _secrets_handed_over()
    try:
        # The fields without a default come from the environment, which the type checker cannot
        # know.
        instance = InstanceSettings.model_validate(_own(secrets_in_files() | os.environ | secrets))
    except ValidationError as e:
        raise _wrong(e) from None
    start = _start(instance, config.load(PlatformSettings, **_platform(secrets)))
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        del os.environ[name]
    return start


def _own(settings: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(PREFIX).lower(): value
        for name, value in settings.items()
        if name.startswith(PREFIX)
    }


def _platform(settings: Mapping[str, str]) -> dict[str, str]:
    """Those that are not a graph server's own, as overrides."""
    names = {
        name: name.removeprefix("PENSTOCK_").lower()
        for name in settings
        if not name.startswith(PREFIX)
    }
    return {name: settings[variable] for variable, name in names.items()}


def _secrets_handed_over() -> dict[str, str]:
    """Secrets that the launcher wrote to a private pipe, which can be read once."""
    number = os.environ.get(f"{PREFIX}SECRETS_FD")
    if number is None:
        return {}
    try:
        descriptor = int(number)
        with os.fdopen(os.dup(descriptor), "rb") as pipe:
            secrets: dict[str, str] = orjson.loads(pipe.read())
    except (OSError, ValueError) as e:
        raise InvalidInput(
            f"{PREFIX}SECRETS_FD: {number} is no descriptor with a JSON object of settings ({e}).",
            hint="Only a launcher sets it; use PENSTOCK_SECRETS_DIR for secrets in files.",
        ) from None
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, descriptor)
    os.close(null)
    return secrets


def secrets_in_files() -> dict[str, str]:
    """By name, such as `penstock_instance_token`, in the folder that a container mounts."""
    folder = os.environ.get("PENSTOCK_SECRETS_DIR")
    files = [] if not folder else [Path(folder) / name.lower() for name in SECRETS]
    return {file.name.upper(): file.read_text().strip() for file in files if file.is_file()}


def _wrong(error: ValidationError) -> InvalidInput:
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    return InvalidInput(f"{PREFIX}{name.upper()}: {first['msg']}.")


def _start(instance: InstanceSettings, settings: PlatformSettings) -> Start:
    secret = settings.storage_secret_access_key
    return Start(
        instance=instance,
        plane_url=settings.control_plane_url,
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
