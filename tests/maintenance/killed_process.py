"""A worker process that stops at the step it is told: dies there by SIGKILL, or hangs there as in a
driver.

`python -m tests.maintenance.killed_process` imports all it needs once, then forks a worker for
every JSON line on its input and answers with its pid and, when it is over, how it ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from penstock.jobs.control_plane import client_factory
from penstock.maintenance.control_plane import MaintenanceControlPlane
from penstock.maintenance.engines import embedded  # noqa: F401 - loaded once for all
from penstock.maintenance.handlers import Maintainer
from penstock.maintenance.payloads import MAINTENANCE, REMOTE
from penstock.wiring import settings as config
from penstock.wiring.worker import run_worker
from penstock.worker import Handlers

EXPIRY_STEPS = (
    "expiry_planned",
    "deletion_recorded",
    "expiry_committed",
    "data_deleted",
    "manifests_deleted",
    "lists_deleted",
    "record_removed",
)
STEPS = (
    *EXPIRY_STEPS,
    "files_written",
    "files_verified",
    "manifests_written",
    "metadata_written",
    "committed",
    "storage_listed",
    "orphans_found",
    "orphans_moved",
    "action_told",
)


def tell(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def work(order: dict[str, str]) -> int:
    def step(name: str) -> None:
        if name == order.get("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        if name == order.get("hang"):
            tell(hangs=name)
            time.sleep(600)  # longer than a test may take: nobody waited for its end

    settings = config.Settings(
        url=order["url"], service_token=order["token"], worker_port=0, log_level="WARNING"
    )
    maintainer = Maintainer(client_factory(settings, MaintenanceControlPlane), step=step)
    handlers = Handlers({MAINTENANCE: maintainer, REMOTE: maintainer})
    wait, name = float(order.get("wait", 20)), order.get("name")
    return run_worker(
        settings, handlers=handlers, queues=[MAINTENANCE], name=name, once=True, wait=wait
    )


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(work(json.loads(line)))
        tell(pid=pid)
        _, status = os.waitpid(pid, 0)
        tell(code=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
