from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = (
    "import os; from penstock.kit.priority import lower_priority; lower_priority();"
    "print(os.getpriority(os.PRIO_PROCESS, 0))"
)


def test_a_process_that_computes_for_users_yields_to_the_others() -> None:
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    assert int(done.stdout) == min(19, ours + 4)
