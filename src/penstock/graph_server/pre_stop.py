"""Runs in the container of a graph server before its pod is stopped, and ends the server in order.

    python -I -m penstock.graph_server.pre_stop SECONDS

An algorithm that writes gets up to SECONDS to finish; queries under way get what is left of them.
Only the standard library is used: it has to begin at once.
"""

import http.client
import json
import os
import sys
import time
from pathlib import Path

BLOCKED = 409
_PAUSE = 0.5
_ANSWER_SECONDS = 10.0


def end(host: str, port: int, token: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        left = max(0.0, deadline - time.monotonic())
        if _ask(host, port, token, left, force=left < 2 * _PAUSE) != BLOCKED:
            return
        time.sleep(_PAUSE)


def _ask(host: str, port: int, token: str, seconds: float, *, force: bool) -> int | None:
    """The status of the answer; None if there is no server."""
    connection = http.client.HTTPConnection(host, port, timeout=_ANSWER_SECONDS)
    body = {"reason": "pod_deleted", "grace_period_seconds": seconds, "force": force}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request("POST", "/shutdown", json.dumps(body), headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def main() -> None:
    folder = Path(os.environ["PENSTOCK_SECRETS_DIR"])
    end(
        os.environ["PENSTOCK_INSTANCE_HOST"],
        int(os.environ["PENSTOCK_INSTANCE_PORT"]),
        (folder / "penstock_instance_token").read_text().strip(),
        float(sys.argv[1]),
    )


if __name__ == "__main__":
    main()
