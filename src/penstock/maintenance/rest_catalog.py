"""Our catalogs for other engines: the part of Iceberg's REST protocol that reads, creates and commits.

It adds nothing to a commit: requirements and updates go to the catalog as they came, and the catalog's compare and
swap decides. All of this blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ValidationError
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder

from penstock.kit.errors import Conflict, InvalidInput, NotFound, PenstockError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

SEPARATOR = "\x1f"


class RestCatalogFace:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def namespaces(self, parent: str | None) -> dict[str, Any]:
        found = self._catalog.list_namespaces(_levels(parent) if parent else ())
        return {"namespaces": [list(each) for each in found]}

    def create_namespace(self, body: dict[str, Any]) -> dict[str, Any]:
        namespace, properties = tuple(body["namespace"]), dict(body.get("properties") or {})
        try:
            self._catalog.create_namespace(namespace, properties)
        except NamespaceAlreadyExistsError as e:
            raise Conflict(str(e)) from e
        return {"namespace": list(namespace), "properties": properties}

    def namespace(self, namespace: str) -> dict[str, Any]:
        levels = _levels(namespace)
        try:
            return {"namespace": list(levels), "properties": self._catalog.load_namespace_properties(levels)}
        except NoSuchNamespaceError as e:
            raise NotFound(str(e)) from e

    def tables(self, namespace: str) -> dict[str, Any]:
        self.namespace(namespace)
        found = self._catalog.list_tables(_levels(namespace))
        return {"identifiers": [{"namespace": list(name[:-1]), "name": name[-1]} for name in found]}

    def table(self, namespace: str, name: str) -> dict[str, Any]:
        return _loaded(self._load(namespace, name))

    def create_table(self, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("stage-create"):
            raise InvalidInput("This catalog does not stage tables.", hint="Create the table, then write to it.")
        self.namespace(namespace)
        spec, order = body.get("partition-spec"), body.get("write-order")
        try:
            made = self._catalog.create_table(
                (*_levels(namespace), body["name"]),
                Schema.model_validate(body["schema"]),
                location=body.get("location"),
                partition_spec=PartitionSpec.model_validate(spec) if spec else UNPARTITIONED_PARTITION_SPEC,
                sort_order=SortOrder.model_validate(order) if order else UNSORTED_SORT_ORDER,
                properties=body.get("properties") or {},
            )
        except TableAlreadyExistsError as e:
            raise Conflict(str(e)) from e
        return _loaded(made)

    def commit(self, namespace: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        table = self._load(namespace, name)
        identifier = {"namespace": list(_levels(namespace)), "name": name}
        try:
            asked = CommitTableRequest.model_validate(body | {"identifier": identifier})
        except ValidationError as e:
            raise InvalidInput(f"This commit cannot be read: {e.error_count()} errors.") from e
        try:
            done = self._catalog.commit_table(table, asked.requirements, asked.updates)
        except CommitFailedException as e:
            raise Conflict(str(e)) from e
        return {"metadata-location": done.metadata_location, "metadata": _metadata(done.metadata)}

    def _load(self, namespace: str, name: str) -> Table:
        try:
            return self._catalog.load_table((*_levels(namespace), name))
        except (NoSuchTableError, NoSuchNamespaceError) as e:
            raise NotFound(f"Table does not exist: {namespace}.{name}") from e


def error_body(error: PenstockError) -> dict[str, Any]:
    """As the protocol has it; the types are those that other engines look for."""
    kind = {404: "NoSuchTableException", 409: "CommitFailedException"}.get(error.status, "BadRequestException")
    return {"error": {"message": error.message, "type": kind, "code": error.status}}


def _levels(namespace: str) -> tuple[str, ...]:
    return tuple(namespace.split(SEPARATOR))


def _loaded(table: Table) -> dict[str, Any]:
    return {"metadata-location": table.metadata_location, "metadata": _metadata(table.metadata), "config": {}}


def _metadata(metadata: TableMetadata) -> Any:
    return orjson.loads(metadata.model_dump_json(by_alias=True, exclude_none=True))
