"""The configured catalogs and remote engines of a deployment.

A catalog of type `sql` without a `uri` lives in the job store's PostgreSQL and is called `shared`.
There, one transaction checks the fence and swaps the table's metadata.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput
from penstock.kit.ids import check_name
from penstock.maintenance.engines.spark.address import read_address
from penstock.maintenance.errors import NoSuchCatalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.catalog import Catalog

    from penstock.kit.json_value import JsonValue

TYPES = {
    "sql": "pyiceberg.catalog.sql.SqlCatalog",
    "rest": "pyiceberg.catalog.rest.RestCatalog",
    "hive": "pyiceberg.catalog.hive.HiveCatalog",
    "glue": "pyiceberg.catalog.glue.GlueCatalog",
    "dynamodb": "pyiceberg.catalog.dynamodb.DynamoDbCatalog",
    "bigquery": "pyiceberg.catalog.bigquery_metastore.BigQueryMetastoreCatalog",
}
"""All but the first two need extra libraries."""
NEED_URI = ("rest", "hive")
ENGINES = ("trino", "spark")
FILE_IO = "pyiceberg.io.pyarrow.PyArrowFileIO"
_ALL_SNAPSHOTS = {"snapshot-loading-mode": "all"}
"""Overrides the configuration and the REST server. With `refs`, snapshots outside the branches and
tags would be invisible, and their files would look like orphans.
"""
_DRIVERS = {"postgresql://": "postgresql+psycopg://", "postgres://": "postgresql+psycopg://"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogConfig:
    """`properties` are PyIceberg's, credentials among them: never log them."""

    name: str
    type: str
    uri: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def shared(self) -> bool:
        return self.type == "sql" and self.uri is None


class Catalogs:
    """The configured catalogs and remote engines; the first catalog is the default."""

    def __init__(
        self,
        configs: Mapping[str, Mapping[str, JsonValue]],
        engines: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._configs = {name: _config(name, settings) for name, settings in configs.items()}
        self.engines = {name: _engine(name, settings) for name, settings in (engines or {}).items()}

    def __iter__(self) -> Iterator[CatalogConfig]:
        return iter(self._configs.values())

    def __len__(self) -> int:
        return len(self._configs)

    @property
    def shared(self) -> list[str]:
        """Names of the catalogs in the job store's database."""
        return [config.name for config in self if config.shared]

    def get(self, name: str | None = None) -> CatalogConfig:
        config = self._configs.get(name) if name else next(iter(self), None)
        if config is None:
            names = ", ".join(self._configs) or "none"
            what = f"Unknown catalog {name[:80]!r}." if name else "No catalog is configured."
            raise NoSuchCatalog(what, hint=f"Known catalogs: {names}. Set PENSTOCK_CATALOGS.")
        return config


def _config(name: str, settings: Mapping[str, JsonValue]) -> CatalogConfig:
    check_name(name, "Catalog")
    kind = str(settings.get("type", "sql"))
    if kind not in TYPES:
        raise InvalidInput(
            f"Catalog {name}: unknown type {kind[:40]!r}.", hint=f"Use {', '.join(TYPES)}."
        )
    rest = {key: str(value) for key, value in settings.items() if key not in ("type", "uri")}
    uri = settings.get("uri")
    if uri is None and kind in NEED_URI:
        raise InvalidInput(f"Catalog {name}: a catalog of the type {kind} needs a uri.")
    return CatalogConfig(
        name=name, type=kind, uri=None if uri is None else str(uri), properties=rest
    )


def _engine(name: str, settings: Mapping[str, str]) -> Mapping[str, str]:
    check_name(name, "Engine")
    if (
        settings.get("type") not in ENGINES
        or not settings.get("url")
        or not settings.get("catalog")
    ):
        raise InvalidInput(
            f"Engine {name}: set type to {' or '.join(ENGINES)}, a url, and the catalog by its "
            "name in that engine."
        )
    if settings["type"] == "spark":
        read_address(settings)
    return settings


def open_catalog(
    config: CatalogConfig, *, shared_uri: str | None = None, mark: str | None = None
) -> Catalog:
    """Open a catalog; the caller closes it. `shared_uri` is the address of the shared catalog's
    database, and `mark` goes into the names of written metadata files."""
    properties = {"py-io-impl": FILE_IO, **config.properties}
    uri = config.uri if config.uri is not None else shared_uri if config.shared else None
    if uri is None and config.shared:
        raise InvalidInput(
            f"Catalog {config.name} is in the job store's database, whose address is not set here."
        )
    if uri is not None:
        properties["uri"] = _with_driver(uri) if config.type == "sql" else uri
    from penstock.maintenance.tables.catalog.metadata_names import with_mark

    opened: Catalog = with_mark(_class(config), mark)(config.name, **properties)
    opened.properties = {**opened.properties, **_ALL_SNAPSHOTS}
    return opened


def all_namespaces(catalog: Catalog) -> list[tuple[str, ...]]:
    """Namespaces on every level, parents before their children."""
    from pyiceberg.exceptions import BadRequestError, NoSuchNamespaceError

    namespaces: dict[tuple[str, ...], None] = {}
    pending: list[tuple[str, ...]] = [()]
    while pending:
        parent = pending.pop(0)
        try:
            children = sorted(tuple(child) for child in catalog.list_namespaces(parent))
        except (NoSuchNamespaceError, BadRequestError):
            if not parent:
                raise
            continue  # dropped concurrently, or the catalog has no nested namespaces
        # A server that ignores `parent` returns all namespaces, or the first level again.
        depth = len(parent)
        deeper = [child for child in children if len(child) > depth and child[:depth] == parent]
        below = [child for child in deeper if child not in namespaces]
        namespaces.update(dict.fromkeys(below))
        pending += below
    return list(namespaces)


def all_tables(catalog: Catalog) -> list[tuple[str, ...]]:
    """The identifiers of all tables, of all namespaces."""
    from pyiceberg.exceptions import NoSuchNamespaceError

    tables: dict[tuple[str, ...], None] = {}
    for namespace in all_namespaces(catalog):
        try:
            tables.update(dict.fromkeys(tuple(name) for name in catalog.list_tables(namespace)))
        except NoSuchNamespaceError:
            continue  # dropped concurrently
    return list(tables)


def _class(config: CatalogConfig) -> type:
    module, _, name = TYPES[config.type].rpartition(".")
    try:
        catalog_class: type = getattr(importlib.import_module(module), name)
    except ImportError as e:
        raise InvalidInput(
            f"Catalog {config.name}: the type {config.type} needs {e.name or 'a library'}, "
            "which is not installed.",
            hint=f"Install pyiceberg[{config.type}] in the same environment as Penstock.",
        ) from e
    return catalog_class


def _with_driver(uri: str) -> str:
    for plain, driven in _DRIVERS.items():
        if uri.startswith(plain):
            return driven + uri.removeprefix(plain)
    return uri
