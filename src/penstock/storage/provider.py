"""Opens the worker's object store on first use, so that a storage outage fails only the jobs that
need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.storage.object_store import StoreOptions, open_store

if TYPE_CHECKING:
    from penstock.storage.contract import Store
    from penstock.storage.settings import StorageSettings


class ObjectStoreProvider:
    def __init__(self, settings: StorageSettings) -> None:
        self._settings = settings
        self._store: Store | None = None

    def open(self) -> Store:
        if self._store is None:
            self._store = open_store(self._settings.storage_root, options=_options(self._settings))
        return self._store

    def location(self, prefix: str) -> str:
        """The URL of the prefix as a query engine addresses it."""
        return f"{self._engine_root}/{prefix}"

    def key(self, location: str) -> str | None:
        """The key of an engine's URL; None if it is not in this storage."""
        root = f"{self._engine_root}/"
        return location.removeprefix(root) if location.startswith(root) else None

    @property
    def _engine_root(self) -> str:
        return (self._settings.storage_engine_url or self._settings.storage_root).rstrip("/")


def _options(settings: StorageSettings) -> StoreOptions:
    secret = settings.storage_secret_access_key
    return StoreOptions(
        endpoint=settings.storage_endpoint,
        region=settings.storage_region,
        access_key_id=settings.storage_access_key_id,
        secret_access_key=None if secret is None else secret.get_secret_value(),
        allow_http=settings.storage_allow_http,
        create_root=settings.storage_url is None,
    )
