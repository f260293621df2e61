"""The manifest of a result: written last and once; files are part of a result only through it.

Readers use the manifest, never a listing. It is created with create-if-absent, so exactly one of
several writers wins; it contains its own digest, so a truncated manifest is rejected. Paths are
relative to its folder: only a manifest above an object can list it, which lets the sweeper decide
without an index.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NotRequired, TypedDict

from penstock.kit.errors import InvalidInput
from penstock.storage.concurrency import each
from penstock.storage.errors import ObjectDamaged, ObjectExists
from penstock.storage.keys import check_key, check_prefix
from penstock.storage.part import Part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.storage.contract import Store

NAME = "manifest.json"
_FORMAT = "penstock-manifest/1"


class ColumnDocument(TypedDict):
    name: str
    type: str
    nullable: bool


class PartDocument(TypedDict):
    path: str
    size: int
    rows: int
    etag: NotRequired[str | None]
    sha256: NotRequired[str | None]


class EntityDocument(TypedDict):
    """An entity in a manifest's JSON, or in a job's result."""

    rows: int
    bytes: int
    sql_sha256: str
    columns: list[ColumnDocument]
    arrow_schema: str
    parts: list[PartDocument]


class ManifestDocument(TypedDict):
    format: str
    created_at: str
    rows: int
    bytes: int
    entities: dict[str, EntityDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One table of the result: a node label, an edge type, a staged source."""

    columns: tuple[Column, ...]
    arrow_schema: str
    sql_sha256: str
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    created_at: datetime
    entities: Mapping[str, Entity]

    @property
    def rows(self) -> int:
        return sum(entity.rows for entity in self.entities.values())

    @property
    def size(self) -> int:
        return sum(entity.size for entity in self.entities.values())

    @property
    def parts(self) -> list[Part]:
        return [part for entity in self.entities.values() for part in entity.parts]


def sql_digest(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()


async def write_manifest(store: Store, prefix: str, manifest: Manifest) -> None:
    """Publish the result under `prefix`; raises `ObjectExists` when a different manifest exists."""
    data = encode(manifest, check_prefix(prefix))
    try:
        await store.create(prefix + NAME, data)
    except ObjectExists:
        # A retry of our own write, whose response was lost, is a success.
        if await store.get(prefix + NAME) != data:
            raise


async def read_manifest(store: Store, prefix: str) -> Manifest:
    """The result under `prefix`; `ObjectMissing` when there is none yet, `ObjectDamaged` when it is
    incomplete."""
    return decode(await store.get(check_prefix(prefix) + NAME), prefix)


async def check_parts(store: Store, manifest: Manifest) -> None:
    """Check that every part exists with the size and etag in the manifest."""

    async def check(part: Part) -> None:
        info = await store.head(part.path)
        if info.size != part.size or (part.etag and info.etag != part.etag):
            raise ObjectDamaged(
                f"{store.url}/{part.path} does not match the manifest.", path=part.path
            )

    await each(manifest.parts, check)


def encode(manifest: Manifest, prefix: str) -> bytes:
    body: ManifestDocument = {
        "format": _FORMAT,
        "created_at": manifest.created_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "rows": manifest.rows,
        "bytes": manifest.size,
        "entities": {
            name: entity_to_json(entity, prefix) for name, entity in manifest.entities.items()
        },
    }
    return json.dumps({**body, "sha256": _digest(body)}, indent=1, sort_keys=True).encode()


def decode(data: bytes, prefix: str) -> Manifest:
    body = _intact(data)
    if body is None:
        raise ObjectDamaged(
            f"{prefix}{NAME} is damaged, or has a format that this version cannot read."
        )
    entities = {name: entity_from_json(entity, prefix) for name, entity in body["entities"].items()}
    return Manifest(created_at=datetime.fromisoformat(body["created_at"]), entities=entities)


def _intact(data: bytes) -> ManifestDocument | None:
    try:
        document = json.loads(data)
        whole = document.pop("sha256") == _digest(document) and document["format"] == _FORMAT
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    body: ManifestDocument | None = document if whole else None
    return body


def entity_to_json(entity: Entity, prefix: str = "") -> EntityDocument:
    """The JSON form in a manifest under `prefix`, or in a job's result without a prefix."""
    return {
        "rows": entity.rows,
        "bytes": entity.size,
        "sql_sha256": entity.sql_sha256,
        "columns": [
            {"name": c.name, "type": c.type, "nullable": c.nullable} for c in entity.columns
        ],
        "arrow_schema": entity.arrow_schema,
        "parts": [_part_to_json(part, prefix) for part in entity.parts],
    }


def entity_from_json(body: EntityDocument, prefix: str = "") -> Entity:
    return Entity(
        columns=tuple(Column(**column) for column in body["columns"]),
        arrow_schema=body["arrow_schema"],
        sql_sha256=body["sql_sha256"],
        parts=tuple(_part_from_json(part, prefix) for part in body["parts"]),
    )


def _part_to_json(part: Part, prefix: str) -> PartDocument:
    if not part.path.startswith(prefix):
        raise InvalidInput(f"{part.path} is not under {prefix}, so its manifest cannot list it.")
    path = part.path.removeprefix(prefix)
    return {
        "path": path,
        "size": part.size,
        "rows": part.rows,
        "etag": part.etag,
        "sha256": part.sha256,
    }


def _part_from_json(part: PartDocument, prefix: str) -> Part:
    return Part(
        path=check_key(prefix + part["path"]),
        size=part["size"],
        rows=part["rows"],
        etag=part.get("etag"),
        sha256=part.get("sha256"),
    )


def _digest(body: Mapping[str, object]) -> str:
    return hashlib.sha256(
        json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
