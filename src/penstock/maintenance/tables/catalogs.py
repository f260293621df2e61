"""The catalogs of a deployment, by name.

A catalog of type `sql` without a `uri` lives in the job store's own PostgreSQL: it is `shared`, and
a swap of a table's metadata is there one transaction with the check of the fence.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.kit.errors import InvalidInput
from penstock.kit.ids import check_name
from penstock.maintenance.engines.spark.address import read_address
from penstock.maintenance.errors import NoSuchCatalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.catalog import Catalog

TYPES = {
    "sql": "pyiceberg.catalog.sql.SqlCatalog",
    "rest": "pyiceberg.catalog.rest.RestCatalog",
    "hive": "pyiceberg.catalog.hive.HiveCatalog",
    "glue": "pyiceberg.catalog.glue.GlueCatalog",
    "dynamodb": "pyiceberg.catalog.dynamodb.DynamoDbCatalog",
    "bigquery": "pyiceberg.catalog.bigquery_metastore.BigQueryMetastoreCatalog",
}
"""All but the first two need libraries that are installed beside ours."""
NEED_URI = ("rest", "hive")
ENGINES = ("trino", "spark")
FILE_IO = "pyiceberg.io.pyarrow.PyArrowFileIO"
_ALL_SNAPSHOTS = {"snapshot-loading-mode": "all"}
"""Whatever the configuration or a REST server says: with `refs`, the snapshots that only the
history names would not be seen, and their files be taken for orphans.
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
    """What is configured, with the remote engines; the first one is meant where a request names
    none."""

    def __init__(
        self,
        configs: Mapping[str, Mapping[str, Any]],
        engines: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._configs = {name: _config(name, given) for name, given in configs.items()}
        self.engines = {name: _engine(name, given) for name, given in (engines or {}).items()}

    def __iter__(self) -> Iterator[CatalogConfig]:
        return iter(self._configs.values())

    def __len__(self) -> int:
        return len(self._configs)

    @property
    def shared(self) -> list[str]:
        """The names of those that live in the job store's database."""
        return [config.name for config in self if config.shared]

    def get(self, name: str | None = None) -> CatalogConfig:
        found = self._configs.get(name) if name else next(iter(self), None)
        if found is None:
            known = ", ".join(self._configs) or "none"
            what = f"There is no catalog {name[:80]!r}." if name else "No catalog is configured."
            raise NoSuchCatalog(what, hint=f"Known catalogs: {known}. Set PENSTOCK_CATALOGS.")
        return found


def _config(name: str, given: Mapping[str, Any]) -> CatalogConfig:
    check_name(name, "Catalog")
    kind = str(given.get("type", "sql"))
    if kind not in TYPES:
        raise InvalidInput(
            f"Catalog {name}: type {kind[:40]!r} is not known.", hint=f"Use {', '.join(TYPES)}."
        )
    rest = {key: str(value) for key, value in given.items() if key not in ("type", "uri")}
    uri = given.get("uri")
    if uri is None and kind in NEED_URI:
        raise InvalidInput(f"Catalog {name}: a catalog of the type {kind} needs a uri.")
    return CatalogConfig(
        name=name, type=kind, uri=None if uri is None else str(uri), properties=rest
    )


def _engine(name: str, given: Mapping[str, str]) -> Mapping[str, str]:
    check_name(name, "Engine")
    if given.get("type") not in ENGINES or not given.get("url") or not given.get("catalog"):
        raise InvalidInput(
            f"Engine {name}: it needs the type {' or '.join(ENGINES)}, a url, and the catalog as the engine calls it."
        )
    if given["type"] == "spark":
        read_address(given)
    return given


def open_catalog(
    config: CatalogConfig, *, shared_uri: str | None = None, mark: str | None = None
) -> Catalog:
    """A catalog to work with; the caller closes it. `shared_uri` opens one that lives in the job
    store's database, and `mark` goes into the names of the metadata files that are written."""
    properties = {"py-io-impl": FILE_IO, **config.properties}
    uri = config.uri if config.uri is not None else shared_uri if config.shared else None
    if uri is None and config.shared:
        raise InvalidInput(
            f"Catalog {config.name} lives in the job store's database, which is not known here."
        )
    if uri is not None:
        properties["uri"] = _with_driver(uri) if config.type == "sql" else uri
    from penstock.maintenance.tables.metadata_names import with_mark

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
            continue  # it went meanwhile, or the catalog has no namespaces in namespaces
        # A server that ignores `parent` answers with all of them, or with the first level again.
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
            continue  # it went meanwhile
    return list(tables)


def _class(config: CatalogConfig) -> type:
    module, _, name = TYPES[config.type].rpartition(".")
    try:
        found: type = getattr(importlib.import_module(module), name)
    except ImportError as e:
        raise InvalidInput(
            f"Catalog {config.name}: the type {config.type} needs {e.name or 'a library'}, which is not installed.",
            hint=f"Install pyiceberg[{config.type}] beside Penstock.",
        ) from e
    return found


def _with_driver(uri: str) -> str:
    for plain, driven in _DRIVERS.items():
        if uri.startswith(plain):
            return driven + uri.removeprefix(plain)
    return uri
