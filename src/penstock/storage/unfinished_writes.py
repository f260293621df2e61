"""List and abort unfinished uploads, which a killed writer leaves behind.

No listing of objects shows them. S3 and GCS use the same XML API and differ in how a request is
signed. obstore can neither list nor abort uploads of other processes and does not expose its
credentials, so this needs configured keys; with ambient credentials the bucket needs a lifecycle
rule that aborts incomplete uploads. A local folder has staging files, `<name>#<n>`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import httpx2

from penstock.kit.clock import SYSTEM, Clock
from penstock.storage.concurrency import each
from penstock.storage.contract import Upload
from penstock.storage.errors import StorageError, StorageRefused, StorageUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_TIMEOUT = 30.0
_STAGED = re.compile(r"(?P<key>.+)#(?P<id>\d+)")


class HiddenUploads:
    """Used for a store whose unfinished uploads cannot be listed with our credentials."""

    async def under(self, prefix: str) -> Sequence[Upload] | None:  # noqa: ARG002
        return None

    async def abort(self, uploads: Iterable[Upload]) -> None:  # noqa: ARG002
        raise StorageRefused(
            "Unfinished uploads of this store cannot be aborted with its credentials."
        )


class StagedFiles:
    """The staging files under a local root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def under(self, prefix: str) -> Sequence[Upload] | None:
        return await asyncio.to_thread(self._find, prefix)

    async def abort(self, uploads: Iterable[Upload]) -> None:
        await asyncio.to_thread(
            self._remove, [self._root / f"{upload.key}#{upload.id}" for upload in uploads]
        )

    def _find(self, prefix: str) -> list[Upload]:
        uploads = []
        for path in (self._root / prefix).rglob("*#*"):
            match = _STAGED.fullmatch(path.relative_to(self._root).as_posix())
            if match and path.is_file():
                touched = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                uploads.append(Upload(key=match["key"], id=match["id"], started=touched))
        return uploads

    def _remove(self, paths: Iterable[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)


class Signer(Protocol):
    def __call__(self, method: str, host: str, path: str, query: str) -> Mapping[str, str]:
        """The authentication headers of a request without a body."""
        ...


class MultipartUploads:
    """The unfinished multipart uploads of a bucket, below the store's prefix."""

    def __init__(self, bucket_url: str, sign: Signer, *, root: str) -> None:
        self._url = urlsplit(bucket_url)
        self._sign = sign
        self._root = root

    async def under(self, prefix: str) -> Sequence[Upload] | None:
        try:
            async with httpx2.AsyncClient(timeout=_TIMEOUT) as client:
                return await self._find(client, prefix)
        except StorageRefused:
            return None

    async def abort(self, uploads: Iterable[Upload]) -> None:
        async with httpx2.AsyncClient(timeout=_TIMEOUT) as client:

            async def abort(upload: Upload) -> None:
                await self._ask(
                    client, "DELETE", f"/{self._root}{upload.key}", {"uploadId": upload.id}
                )

            await each(uploads, abort)

    async def _find(self, client: httpx2.AsyncClient, prefix: str) -> list[Upload]:
        uploads: list[Upload] = []
        marker: dict[str, str] = {}
        while True:
            answer = await self._ask(
                client, "GET", "", {"uploads": "", "prefix": self._root + prefix, **marker}
            )
            page = _without_namespaces(answer)
            uploads += [self._upload(node) for node in page.iter("Upload")]
            if page.findtext("IsTruncated") != "true":
                return uploads
            marker = {
                "key-marker": page.findtext("NextKeyMarker") or "",
                "upload-id-marker": page.findtext("NextUploadIdMarker") or "",
            }

    def _upload(self, node: ElementTree.Element) -> Upload:
        return Upload(
            key=(node.findtext("Key") or "").removeprefix(self._root),
            id=node.findtext("UploadId") or "",
            started=datetime.fromisoformat(node.findtext("Initiated") or ""),
        )

    async def _ask(
        self, client: httpx2.AsyncClient, method: str, key: str, parameters: Mapping[str, str]
    ) -> bytes:
        path = quote(self._url.path + key, safe="/-_.~")
        query = "&".join(
            f"{quote(k, safe='')}={quote(v, safe='-_.~')}" for k, v in sorted(parameters.items())
        )
        headers = self._sign(method, self._url.netloc, path, query)
        url = f"{self._url.scheme}://{self._url.netloc}{path}?{query}"
        try:
            answer = await client.request(method, url, headers=dict(headers))
        except httpx2.TransportError:
            raise StorageUnavailable(
                f"The storage at {self._url.netloc} cannot be reached."
            ) from None
        if answer.status_code in (401, 403):
            raise StorageRefused(
                "The storage refused to list its unfinished uploads.", status=answer.status_code
            )
        if answer.status_code >= 300 and not (method == "DELETE" and answer.status_code == 404):
            raise StorageError(
                "Listing or aborting unfinished uploads failed.", status=answer.status_code
            )
        return answer.content


def _without_namespaces(document: bytes) -> ElementTree.Element:
    # A response of the configured storage; expat rejects entity bombs.
    root = ElementTree.fromstring(document)  # noqa: S314
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
    return root


def bearer(token: str) -> Signer:
    def sign(method: str, host: str, path: str, query: str) -> Mapping[str, str]:  # noqa: ARG001
        return {"authorization": f"Bearer {token}"}

    return sign


def aws(
    key_id: str, secret: str, *, region: str, session: str | None = None, clock: Clock = SYSTEM
) -> Signer:
    """Signature Version 4, for requests without a body."""

    def sign(method: str, host: str, path: str, query: str) -> Mapping[str, str]:
        stamp = clock.now().strftime("%Y%m%dT%H%M%SZ")
        scope = f"{stamp[:8]}/{region}/s3/aws4_request"
        empty = hashlib.sha256(b"").hexdigest()
        headers = {"host": host, "x-amz-content-sha256": empty, "x-amz-date": stamp}
        headers |= {"x-amz-security-token": session} if session else {}
        names = ";".join(headers)
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        request = "\n".join((method, path, query, lines, names, empty))
        text = "\n".join(
            ("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest())
        )
        key = f"AWS4{secret}".encode()
        for step in scope.split("/"):
            key = hmac.digest(key, step.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        authorization = (
            f"AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={names},"
            f" Signature={signature}"
        )
        return headers | {"authorization": authorization}

    return sign
