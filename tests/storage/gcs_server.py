"""A server that speaks the part of Google Cloud Storage's XML API that obstore uses.

No emulator that can be had serves it: gcp-storage-emulator knows only the JSON API and ignores
preconditions, and fake-gcs-server refuses the XML `PUT` and `POST ?uploads` that obstore sends. So
this one follows the public XML reference, rule by rule: `x-goog-if-generation-match`, generations,
ETags that are no MD5 for assembled objects, multipart uploads that ignore preconditions and replace
what is there, parts of 5 MiB and more but for the last, ranges with 206 and 416, listings in pages,
404 for deleting what is not there, bearer tokens that may read or write. It has never met the real
service; what holds here holds as far as that reference does.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4
from xml.etree import ElementTree
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITER, READER = "writer-token", "reader-token"
MIN_PART = 5 * 1024 * 1024
PAGE = 40


@dataclass(frozen=True, slots=True)
class Kept:
    data: bytes
    generation: int
    etag: str
    modified: datetime


@dataclass(slots=True)
class Unfinished:
    key: str
    started: datetime
    parts: dict[int, tuple[str, bytes]] = field(default_factory=dict)


@dataclass(slots=True)
class Bucket:
    objects: dict[str, Kept] = field(default_factory=dict)
    uploads: dict[str, Unfinished] = field(default_factory=dict)


class Refusal(Exception):
    def __init__(self, status: int, code: str) -> None:
        self.status = status
        self.code = code


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    """Many uploads end at once; a queue of five would refuse some."""


class GcsServer:
    def __init__(self, *buckets: str) -> None:
        self.buckets = {name: Bucket() for name in buckets}
        self.lock = threading.Lock()
        self.generations = count(1_700_000_000_000_000)
        self._http = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"gcs": self}))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> GcsServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def keep(self, bucket: Bucket, key: str, data: bytes, etag: str) -> Kept:
        stored = Kept(data, next(self.generations), etag, datetime.now(UTC))
        bucket.objects[key] = stored
        return stored


class _Handler(BaseHTTPRequestHandler):
    gcs: GcsServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def _serve(self) -> None:
        target = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(target.query, keep_blank_values=True).items()}
        name, _, key = unquote(target.path).lstrip("/").partition("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            with self.gcs.lock:
                self._authorize()
                bucket = self.gcs.buckets.get(name)
                if bucket is None:
                    raise Refusal(404, "NoSuchBucket")
                status, headers, answer = self._answer(bucket, name, key, query, body)
        except Refusal as refusal:
            status, headers = refusal.status, {"Content-Type": "application/xml"}
            answer = f"<?xml version='1.0'?><Error><Code>{refusal.code}</Code></Error>".encode()
        self._send(status, headers, answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815

    def _authorize(self) -> None:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token not in (WRITER, READER):
            raise Refusal(401, "AuthenticationRequired")
        if token == READER and self.command not in ("GET", "HEAD"):
            raise Refusal(403, "AccessDenied")

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for header, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _answer(
        self, bucket: Bucket, name: str, key: str, query: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        match self.command:
            case "GET" if not key and "uploads" in query:
                return 200, {}, _uploads_page(bucket, query)
            case "GET" if not key:
                return 200, {}, _objects_page(bucket, name, query)
            case "GET" | "HEAD":
                return self._read(_found(bucket, key))
            case "PUT" if "uploadId" in query:
                return self._put_part(_upload(bucket, key, query), int(query["partNumber"]), body)
            case "PUT":
                return self._put(bucket, key, body)
            case "POST" if "uploads" in query:
                return _initiate(bucket, name, key)
            case "POST" if "uploadId" in query:
                return self._complete(bucket, name, key, query, body)
            case "DELETE" if "uploadId" in query:
                _upload(bucket, key, query)
                del bucket.uploads[query["uploadId"]]
                return 204, {}, b""
            case "DELETE":
                _found(bucket, key)
                del bucket.objects[key]
                return 204, {}, b""
        raise Refusal(400, "InvalidArgument")

    def _read(self, stored: Kept) -> tuple[int, dict[str, str], bytes]:
        headers = _headers(stored)
        span_match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not span_match:
            return 200, headers | {"Content-Length": str(len(stored.data))}, stored.data
        first, last = (
            int(span_match[1]),
            min(int(span_match[2] or len(stored.data) - 1), len(stored.data) - 1),
        )
        if first >= len(stored.data):
            raise Refusal(416, "InvalidRange")
        span = {"Content-Range": f"bytes {first}-{last}/{len(stored.data)}"}
        return 206, headers | span, stored.data[first : last + 1]

    def _put(self, bucket: Bucket, key: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        generation = self.headers.get("x-goog-if-generation-match")
        there = bucket.objects.get(key)
        if generation is not None and int(generation) != (there.generation if there else 0):
            raise Refusal(412, "PreconditionFailed")
        return 200, _headers(self.gcs.keep(bucket, key, body, md5(body).hexdigest())), b""

    def _put_part(
        self, upload: Unfinished, number: int, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        etag = md5(body).hexdigest()
        upload.parts[number] = (etag, body)
        return 200, {"ETag": f'"{etag}"'}, b""

    def _complete(
        self, bucket: Bucket, name: str, key: str, query: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        upload = _upload(bucket, key, query)
        requested = [
            (int(part.findtext("{*}PartNumber") or 0), (part.findtext("{*}ETag") or "").strip('"'))
            for part in ElementTree.fromstring(body).iter()
            if part.tag.endswith("Part")
        ]
        if requested != sorted(requested):
            raise Refusal(400, "InvalidPartOrder")
        if not requested or any(
            upload.parts.get(number, ("",))[0] != etag for number, etag in requested
        ):
            raise Refusal(400, "InvalidPart")
        pieces = [upload.parts[number][1] for number, _ in requested]
        if any(len(piece) < MIN_PART for piece in pieces[:-1]):
            raise Refusal(400, "EntityTooSmall")
        stored = self.gcs.keep(bucket, key, b"".join(pieces), f"{uuid4().hex}-{len(pieces)}")
        del bucket.uploads[query["uploadId"]]
        fields = (
            f"<Bucket>{name}</Bucket><Key>{escape(key)}</Key><ETag>&quot;{stored.etag}&quot;</ETag>"
        )
        return 200, _headers(stored), _xml("CompleteMultipartUploadResult", fields)


def _found(bucket: Bucket, key: str) -> Kept:
    if key not in bucket.objects:
        raise Refusal(404, "NoSuchKey")
    return bucket.objects[key]


def _upload(bucket: Bucket, key: str, query: dict[str, str]) -> Unfinished:
    upload = bucket.uploads.get(query["uploadId"])
    if upload is None or upload.key != key:
        raise Refusal(404, "NoSuchUpload")
    return upload


def _initiate(bucket: Bucket, name: str, key: str) -> tuple[int, dict[str, str], bytes]:
    upload_id = uuid4().hex
    bucket.uploads[upload_id] = Unfinished(key, datetime.now(UTC))
    fields = f"<Bucket>{name}</Bucket><Key>{escape(key)}</Key><UploadId>{upload_id}</UploadId>"
    return 200, {}, _xml("InitiateMultipartUploadResult", fields)


def _objects_page(bucket: Bucket, name: str, query: dict[str, str]) -> bytes:
    after = query.get("continuation-token") or query.get("start-after") or ""
    keys = sorted(k for k in bucket.objects if k.startswith(query.get("prefix", "")) and k > after)
    page, more = keys[:PAGE], len(keys) > PAGE
    rows = "".join(
        f"<Contents><Key>{escape(k)}</Key><Size>{len(bucket.objects[k].data)}</Size>"
        f"<LastModified>{bucket.objects[k].modified.isoformat()}</LastModified>"
        f"<ETag>&quot;{bucket.objects[k].etag}&quot;</ETag></Contents>"
        for k in page
    )
    token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
    fields = (
        f"<Name>{name}</Name><KeyCount>{len(page)}</KeyCount>"
        f"<IsTruncated>{str(more).lower()}</IsTruncated>"
    )
    return _xml("ListBucketResult", fields + token + rows)


def _uploads_page(bucket: Bucket, query: dict[str, str]) -> bytes:
    after = (query.get("key-marker", ""), query.get("upload-id-marker", ""))
    uploads = sorted(
        (u.key, i) for i, u in bucket.uploads.items() if u.key.startswith(query.get("prefix", ""))
    )
    rest = [pair for pair in uploads if pair > after]
    page, more = rest[:PAGE], len(rest) > PAGE
    rows = "".join(
        f"<Upload><Key>{escape(k)}</Key><UploadId>{i}</UploadId>"
        f"<Initiated>{bucket.uploads[i].started.isoformat()}</Initiated></Upload>"
        for k, i in page
    )
    marks = f"<NextKeyMarker>{escape(page[-1][0])}</NextKeyMarker>" if more else ""
    marks += f"<NextUploadIdMarker>{page[-1][1]}</NextUploadIdMarker>" if more else ""
    return _xml(
        "ListMultipartUploadsResult", f"<IsTruncated>{str(more).lower()}</IsTruncated>{marks}{rows}"
    )


def _headers(stored: Kept) -> dict[str, str]:
    return {
        "ETag": f'"{stored.etag}"',
        "Last-Modified": format_datetime(stored.modified, usegmt=True),
        "x-goog-generation": str(stored.generation),
    }


def _xml(root: str, fields: str) -> bytes:
    declaration = "<?xml version='1.0' encoding='UTF-8'?>"
    return f"{declaration}<{root} xmlns='{_NAMESPACE}'>{fields}</{root}>".encode()


_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
