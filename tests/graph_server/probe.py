"""Asks for `/health` until something is said to it, then tells how long each answer took."""

from __future__ import annotations

import json
import select
import socket
import sys
import time

PAUSE_SECONDS = 0.003


def main(path: str) -> None:
    took = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
            began = time.perf_counter()
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: instance\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(4096)
            took.append(time.perf_counter() - began)
    sys.stdout.write(json.dumps(took))


if __name__ == "__main__":
    main(sys.argv[1])
