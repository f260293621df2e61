"""Iceberg REST catalog adapter: lists, reads, creates and commits tables of our catalogs.

Requirements and updates of a commit go to the catalog unchanged; its compare-and-swap decides.
Invalid requests are rejected with the protocol's errors before the catalog is called, so a later
catalog error is never the client's fault. Tables of format version 3 can be read but not written,
because PyIceberg cannot write them. All calls block.
"""

from __future__ import annotations

import gzip
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, cast

import orjson
from pydantic import ValidationError
from pyiceberg.catalog import MetastoreCatalog
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
from pyiceberg.table.metadata import TableMetadataUtil, TableMetadataV1, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    UpgradeFormatVersionUpdate,
    update_table_metadata,
)
from pyiceberg.transforms import UnknownTransform

from penstock.kit import logging
from penstock.kit.errors import NotFound, PenstockError, Unavailable
from penstock.maintenance.errors import NoSuchTable, TableUnreadable
from penstock.maintenance.tables.catalog.table_access import SequenceNumberFree, not_loaded
from penstock.maintenance.tables.commit.committable import check_clock
from penstock.maintenance.tables.commit.protection import NEWEST_FORMAT
from penstock.maintenance.tables.commit.snapshot_log import with_log_cut
from penstock.maintenance.tables.layout.sizes import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement

    from penstock.kit.json_value import JsonObject, JsonValue

log = logging.get(__name__)
SEPARATOR = "\x1f"
LONGEST_NAME = 255
LONGEST_LOCATION = 900
"""The columns of PyIceberg's SQL catalog have 255 and 1,000 characters, and a file name is appended
to the location.
"""
FORMAT_VERSION = "format-version"
CODE_PROPERTIES = ("py-io-impl", "write.py-location-provider.impl")
"""Properties with names of Python classes, which this process would load."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.\-]*:/")


class ProtocolError(Exception):
    """An error response of the protocol: the HTTP status and the error type."""

    status: ClassVar[int] = 400
    kind: ClassVar[str] = "BadRequestException"

    @property
    def body(self) -> JsonObject:
        return _error(self.status, self.kind, str(self))


class BadRequest(ProtocolError):
    pass


class NoSuchNamespace(ProtocolError):
    status = 404
    kind = "NoSuchNamespaceException"


class MissingTable(ProtocolError):
    status = 404
    kind = "NoSuchTableException"


class Unsupported(ProtocolError):
    status = 406
    kind = "UnsupportedOperationException"


class AlreadyExists(ProtocolError):
    status = 409
    kind = "AlreadyExistsException"


class CommitFailed(ProtocolError):
    status = 409
    kind = "CommitFailedException"


class CommitStateUnknown(ProtocolError):
    status = 500
    kind = "CommitStateUnknownException"


class ServiceUnavailable(ProtocolError):
    status = 503
    kind = "ServiceUnavailableException"


class RestCatalogAdapter:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def namespaces(self, parent: str | None) -> JsonObject:
        with _catalog_errors():
            children = self._catalog.list_namespaces(_levels(parent) if parent else ())
        return {"namespaces": [list(child) for child in children]}

    def create_namespace(self, body: Mapping[str, JsonValue]) -> JsonObject:
        levels, properties = self._new_namespace(body.get("namespace")), _properties(body)
        with _catalog_errors():
            self._catalog.create_namespace(levels, properties)
        return {"namespace": list(levels), "properties": {**properties}}

    def namespace(self, namespace: str) -> JsonObject:
        levels = _levels(namespace)
        with _catalog_errors():
            properties = self._catalog.load_namespace_properties(levels)
        return {"namespace": list(levels), "properties": {**properties}}

    def tables(self, namespace: str) -> JsonObject:
        levels = _levels(namespace)
        with _catalog_errors():
            self._catalog.load_namespace_properties(levels)
            names = self._catalog.list_tables(levels)
        return {"identifiers": [{"namespace": list(n[:-1]), "name": n[-1]} for n in names]}

    def table(self, namespace: str, name: str) -> JsonObject:
        return _loaded(self._load(namespace, name))

    def create_table(self, namespace: str, body: Mapping[str, JsonValue]) -> JsonObject:
        if body.get("stage-create"):
            raise Unsupported("This catalog cannot stage tables; create the table, then write.")
        self.namespace(namespace)
        identifier = (*_levels(namespace), _name("name", body.get("name")))
        location, properties = _location(body.get("location")), _table_properties(body)
        with _request_errors("This table cannot be created"):
            schema = Schema.model_validate(body.get("schema"))
            spec = PartitionSpec.model_validate(body.get("partition-spec") or _NO_SPEC)
            order = SortOrder.model_validate(body.get("write-order") or _NO_ORDER)
            _check_transforms(spec)
            somewhere = location or "file:/x"
            _check_readable(new_table_metadata(schema, spec, order, somewhere, dict(properties)))
        with _catalog_errors():
            # Otherwise the catalog would first write metadata into the existing table's folder.
            if identifier in self._catalog.list_tables(identifier[:-1]):
                raise AlreadyExists(f"Table already exists: {'.'.join(identifier)}")
            try:
                table = self._catalog.create_table(
                    identifier,
                    schema,
                    location=location,
                    partition_spec=spec,
                    sort_order=order,
                    properties=dict(properties),
                )
            except OSError as e:
                if location is None:
                    raise
                raise BadRequest(f"{location} cannot be written: {_short(e)}") from e
        return _loaded(table)

    def commit(self, namespace: str, name: str, body: Mapping[str, JsonValue]) -> JsonObject:
        table = self._load(namespace, name)
        identifier = {"namespace": list(_levels(namespace)), "name": name}
        with _request_errors("This commit cannot be read"):
            sent = CommitTableRequest.model_validate({**body, "identifier": identifier})
        request = sent.model_copy(update={"updates": tuple(map(with_log_cut, sent.updates))})
        _check_writable(table, request)
        requirements = request.requirements
        if isinstance(self._catalog, MetastoreCatalog):  # the protocol cannot express these
            requirements += _sequence_numbers_free(request)
        with _commit_errors():
            done = self._catalog.commit_table(table, requirements, request.updates)
        return {"metadata-location": done.metadata_location, "metadata": _dump(done.metadata)}

    def _load(self, namespace: str, name: str) -> Table:
        if "\x00" in name:
            raise BadRequest("A table's name must not contain a NUL character.")
        identifier = (*_levels(namespace), name)
        try:
            return self._catalog.load_table(identifier)
        except Exception as e:
            raise not_loaded(identifier, e) from e

    def _new_namespace(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            raise BadRequest("namespace must be a list of names.")
        levels = tuple(_name("namespace", level) for level in value)
        if isinstance(self._catalog, MetastoreCatalog) and any("." in level for level in levels):
            raise BadRequest("A namespace level must not contain a dot, which separates levels.")
        if len(".".join(levels)) > LONGEST_NAME:
            raise BadRequest(f"A namespace has at most {LONGEST_NAME} characters.")
        return levels


_NO_SPEC = UNPARTITIONED_PARTITION_SPEC.model_dump()
_NO_ORDER = UNSORTED_SORT_ORDER.model_dump()


def read_body(content: bytes, *needed: str) -> JsonObject:
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise BadRequest("The body is not JSON.") from None
    if not isinstance(body, dict) or any(name not in body for name in needed):
        raise BadRequest(f"The body must be an object with {', '.join(needed)}.")
    return body


def error_body(error: PenstockError) -> JsonObject:
    """Our own errors in the protocol's format."""
    match error:
        case NoSuchTable():
            kind = "NoSuchTableException"
        case NotFound():
            kind = "NotFoundException"
        case TableUnreadable():
            kind = "UnprocessableEntityException"
        case Unavailable():
            kind = "ServiceUnavailableException"
        case _:
            kind = "BadRequestException"
    return _error(error.status, kind, error.message)


def _error(status: int, kind: str, message: str) -> JsonObject:
    return {"error": {"message": message, "type": kind, "code": status}}


@contextmanager
def _request_errors(what: str) -> Iterator[None]:
    """Turns PyIceberg's errors about a request's content into protocol errors."""
    try:
        yield
    except ProtocolError:
        raise
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadRequest(f"{what}: {place}: {first['msg']}.") from e
    except NotImplementedError as e:
        raise Unsupported(f"{what}: {_short(e)}") from e
    except Exception as e:
        raise BadRequest(f"{what}: {_short(e)}") from e


@contextmanager
def _catalog_errors() -> Iterator[None]:
    try:
        yield
    except ProtocolError:
        raise
    except NoSuchNamespaceError as e:
        raise NoSuchNamespace(_short(e)) from e
    except (NamespaceAlreadyExistsError, TableAlreadyExistsError) as e:
        raise AlreadyExists(_short(e)) from e
    except (ValueError, NotImplementedError) as e:
        raise BadRequest(_short(e)) from e
    except Exception as e:
        kinds = {kind.__name__ for kind in type(e).__mro__}
        if "IntegrityError" in kinds:
            raise AlreadyExists("It was created concurrently by another client.") from e
        if "DataError" in kinds:
            raise BadRequest("The catalog's database rejected a name or value.") from e
        log.warning("catalog_failed", error=type(e).__name__)
        raise ServiceUnavailable(f"The catalog or its storage failed: {type(e).__name__}.") from e


@contextmanager
def _commit_errors() -> Iterator[None]:
    """Any error except a definite refusal becomes CommitStateUnknown: files must be kept."""
    try:
        yield
    except CommitFailedException as e:
        raise CommitFailed(_short(e)) from e
    except NoSuchTableError as e:
        raise MissingTable(_short(e)) from e
    except Exception as e:
        log.warning("catalog_commit_unknown", error=type(e).__name__)
        message = f"The outcome of the commit is unknown: {type(e).__name__}."
        raise CommitStateUnknown(message) from e


def _check_writable(table: Table, request: CommitTableRequest) -> None:
    """Reject a commit whose metadata could not be read back, before anything is written."""
    upgrades = [u for u in request.updates if isinstance(u, UpgradeFormatVersionUpdate)]
    newest = max(table.metadata.format_version, *(u.format_version for u in upgrades), 0)
    if newest > NEWEST_FORMAT:
        raise Unsupported(f"Tables of format version {newest} can be read but not written.")
    try:
        for requirement in (*request.requirements, *_sequence_numbers_free(request)):
            requirement.validate(table.metadata)
    except CommitFailedException as e:
        raise CommitFailed(_short(e)) from e
    with _request_errors("This commit does not fit the table"):
        check_clock(table.metadata)
        changed = update_table_metadata(
            table.metadata,
            request.updates,
            metadata_location=table.metadata_location,
        )
        _check_readable(changed)
        if _last_sequence_number(changed) < _last_sequence_number(table.metadata):
            raise BadRequest("A snapshot has an older sequence number than the table's last one.")
        _check_transforms(changed.spec())
        _location(changed.location)
        _check_code(changed.properties)


def _sequence_numbers_free(request: CommitTableRequest) -> tuple[TableRequirement, ...]:
    """A snapshot that was overtaken by one of another branch is a conflict, so its writer
    retries."""
    numbers = [
        update.snapshot.sequence_number
        for update in request.updates
        if isinstance(update, AddSnapshotUpdate) and update.snapshot.parent_snapshot_id is not None
    ]
    free = [SequenceNumberFree(sequence_number=number) for number in numbers if number is not None]
    return cast("tuple[TableRequirement, ...]", tuple(free))


def _last_sequence_number(metadata: TableMetadata) -> int:
    return 0 if isinstance(metadata, TableMetadataV1) else metadata.last_sequence_number


def _check_transforms(spec: PartitionSpec) -> None:
    """PyIceberg can read tables with unknown partition transforms, but not write them."""
    if unknown := [f.name for f in spec.fields if isinstance(f.transform, UnknownTransform)]:
        raise BadRequest(f"The partition field {unknown[0]} has an unknown transform.")


def _check_readable(metadata: TableMetadata) -> None:
    TableMetadataUtil.parse_raw(metadata.model_dump_json(exclude_none=True))


def _levels(namespace: str) -> tuple[str, ...]:
    levels = tuple(namespace.split(SEPARATOR))
    for level in levels:
        _name("namespace", level)
    return levels


def _name(field: str, value: object) -> str:
    if not isinstance(value, str) or not value or len(value) > LONGEST_NAME:
        raise BadRequest(f"{field} must be a string of 1 to {LONGEST_NAME} characters.")
    if _CONTROL.search(value) or "/" in value or value in (".", ".."):
        raise BadRequest(f"{field} must not contain slashes or control characters, or be . or ..")
    return value


def _location(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_LOCATION:
        raise BadRequest(f"location must be a string of 1 to {LONGEST_LOCATION} characters.")
    parts = value.split("/")
    if not _ABSOLUTE.match(value) or _CONTROL.search(value) or "." in parts or ".." in parts:
        raise BadRequest("location must be a URI or an absolute path without . or .. segments.")
    if "?" in value or "#" in value:
        raise BadRequest("location must not contain ? or #, where PyIceberg would truncate it.")
    return value


def _table_properties(body: Mapping[str, JsonValue]) -> dict[str, str]:
    properties = _properties(body)
    _check_code(properties)
    version = properties.get(FORMAT_VERSION, str(NEWEST_FORMAT))
    number = whole_number(version)
    if not number:
        raise BadRequest(f"{FORMAT_VERSION} must be 1 or {NEWEST_FORMAT}.")
    if number > NEWEST_FORMAT:
        raise Unsupported(f"Tables of format version {number} cannot be created here.")
    return properties


def _check_code(properties: Mapping[str, str]) -> None:
    if named := [name for name in CODE_PROPERTIES if name in properties]:
        raise BadRequest(f"The property {named[0]} names custom code, which is never loaded.")


def _properties(body: Mapping[str, JsonValue]) -> dict[str, str]:
    value = body.get("properties")
    if value is None:
        return {}
    properties = (
        {name: text for name, text in value.items() if isinstance(text, str)}
        if isinstance(value, dict)
        else None
    )
    if properties is None or properties != value:
        raise BadRequest("properties must be an object with string values.")
    return properties


def _loaded(table: Table) -> JsonObject:
    metadata = table.metadata
    shown = _raw(table) if metadata.format_version > NEWEST_FORMAT else _dump(metadata)
    return {"metadata-location": table.metadata_location, "metadata": shown, "config": {}}


def _raw(table: Table) -> JsonValue:
    with table.io.new_input(table.metadata_location).open() as stream:
        content = stream.read()
    plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    metadata: JsonValue = orjson.loads(plain)
    return metadata


def _dump(metadata: TableMetadata) -> JsonValue:
    dumped: JsonValue = orjson.loads(metadata.model_dump_json(by_alias=True, exclude_none=True))
    return dumped


def _short(error: Exception) -> str:
    return str(error)[:500] or type(error).__name__
