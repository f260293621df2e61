"""Where exports of a test may go beside a folder: a real S3, the one of the storage's own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.storage.conftest import BUCKET, s3

if TYPE_CHECKING:
    from penstock.storage.object_store import StoreOptions

__all__ = ["in_s3", "s3"]


def in_s3(server: StoreOptions, root: str, bucket: str = BUCKET) -> dict[str, Any]:
    return {
        "storage_url": f"s3://{bucket}/{root}",
        "storage_endpoint": server.endpoint,
        "storage_access_key_id": server.access_key_id,
        "storage_secret_access_key": server.secret_access_key,
        "storage_allow_http": True,
    }
