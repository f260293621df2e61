"""A real S3 on this machine: SeaweedFS, with one bucket."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from tests.servers.process import free_ports, running

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Weed:
    endpoint: str
    filer: str
    bucket: str
    access_key: str = "penstock"
    blind_key: str = "blind"
    """Of somebody who may read and write, and not list."""
    secret_key: str = "penstock-secret"

    def ready(self) -> bool:
        """Whether it takes requests; makes the bucket when it does."""
        try:
            answered = httpx2.get(f"{self.endpoint}/status", timeout=2).is_success
            return answered and httpx2.post(
                f"{self.filer}/buckets/{self.bucket}/", timeout=2
            ).status_code in (201, 409)
        except httpx2.TransportError:
            return False

    def objects(self) -> set[str]:
        """The keys in the bucket's root."""
        listed = httpx2.get(
            f"{self.filer}/buckets/{self.bucket}/?limit=10000",
            headers={"Accept": "application/json"},
        )
        return {entry["FullPath"].rpartition("/")[2] for entry in listed.json()["Entries"] or []}


@contextmanager
def weed(
    folder: Path, bucket: str, *, address: str = "127.0.0.1"
) -> Iterator[tuple[Weed, subprocess.Popen[bytes]]]:
    """The server, started but perhaps not ready yet."""
    master, volume, filer, s3, *grpc = free_ports(8)
    it = Weed(endpoint=f"http://{address}:{s3}", filer=f"http://{address}:{filer}", bucket=bucket)
    rights = {it.access_key: ["Admin", "Read", "Write", "List"], it.blind_key: ["Read", "Write"]}
    identities = [
        {
            "name": key,
            "credentials": [{"accessKey": key, "secretKey": it.secret_key}],
            "actions": actions,
        }
        for key, actions in rights.items()
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": identities}))
    ports = zip(("master", "volume", "filer", "s3"), (master, volume, filer, s3), grpc, strict=True)
    command = [
        str(Path(sys.executable).with_name("weed")),
        "server",
        f"-dir={folder}",
        f"-ip={address}",
        f"-ip.bind={address}",
        "-master.electionTimeout=1s",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=20",
        "-s3",
        f"-s3.config={folder / 's3.json'}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-s3.localSocket={folder / 's3.sock'}",
        f"-filer.localSocket={folder / 'filer.sock'}",
        *(
            flag
            for name, http, rpc in ports
            for flag in (f"-{name}.port={http}", f"-{name}.port.grpc={rpc}")
        ),
    ]
    with running(command, log=folder / "weed.log", cwd=folder) as process:
        yield it, process
