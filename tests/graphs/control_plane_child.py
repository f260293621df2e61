"""A control plane with a stand-in for graph servers, as a process that can be killed.

python -m tests.graphs.control_plane_child DSN HOME PORT [SETTINGS]

SETTINGS is a JSON object of more settings, such as those of the Kubernetes launcher.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.api.serving.server import bind, listening
from penstock.kit import logging
from penstock.launchers.subprocess import SubprocessLauncher
from penstock.wiring.control_plane import build_control_plane
from tests.graphs.deployment import settings
from tests.graphs.fleet import Names, stand_in


async def main(dsn: str, home: Path, port: int, more: dict[str, Any]) -> None:
    logging.configure(level="WARNING", process="plane")
    launcher = None
    if "launcher" not in more:
        launcher = SubprocessLauncher(home / "instances", command=stand_in(home / "control.json"))
    config = settings(home, port=port, **more)
    with bind("127.0.0.1", port) as listener:
        async with build_control_plane(config, dsn, launcher=launcher) as built:
            services = replace(built, authenticators=(*built.authenticators, Names()))
            async with listening(services, listener):
                await asyncio.Event().wait()


if __name__ == "__main__":
    more_settings = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), more_settings))
