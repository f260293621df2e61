"""All settings: the sections that the packages declare, in the order in which they are documented
(from the last base to the first)."""

from __future__ import annotations

from typing import Any

from penstock.accounts.settings import AccountSettings
from penstock.api.settings import AccessSettings, ProcessSettings, RateSettings, ServerSettings
from penstock.graphs.settings import ExportSettings, InstanceMemorySettings, SnapshotSettings
from penstock.http.settings import HttpSettings
from penstock.jobs.settings import FairShareSettings, JobSettings, TransportSettings
from penstock.kit import config
from penstock.kit.settings import (
    ControlPlaneSettings,
    DatabaseSettings,
    HomeSettings,
    ListenSettings,
    LogSettings,
    OutboundSettings,
    SecretKeySettings,
    TlsSettings,
)
from penstock.launchers.settings import LauncherSettings
from penstock.maintenance.settings import MaintenanceSettings
from penstock.reconcile.settings import RunSettings, UploadSettings
from penstock.sources.settings import SourceSettings
from penstock.storage.settings import StorageSettings
from penstock.worker.settings import WorkerSettings


class Settings(
    ServerSettings,
    WorkerSettings,
    TransportSettings,
    JobSettings,
    LogSettings,
    LauncherSettings,
    InstanceMemorySettings,
    UploadSettings,
    RunSettings,
    SnapshotSettings,
    FairShareSettings,
    ExportSettings,
    MaintenanceSettings,
    StorageSettings,
    SourceSettings,
    OutboundSettings,
    SecretKeySettings,
    AccountSettings,
    RateSettings,
    AccessSettings,
    ControlPlaneSettings,
    HttpSettings,
    TlsSettings,
    ProcessSettings,
    ListenSettings,
    DatabaseSettings,
    HomeSettings,
):
    """Every knob there is; `docs/reference/settings.md` is generated from it."""


def load(**overrides: Any) -> Settings:
    """The settings in force; a wrong one is named in a sentence, never in a traceback."""
    return config.load(Settings, **overrides)
