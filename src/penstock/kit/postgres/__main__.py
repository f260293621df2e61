"""`python -m penstock.kit.postgres run FOLDER`: a server in the foreground, until a signal; its DSN
is the first line.

`… template FILE` writes the archive that PENSTOCK_PG_TEMPLATE may name.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

from penstock.kit import logging
from penstock.kit.errors import PenstockError
from penstock.kit.postgres import template
from penstock.kit.postgres.binaries import locate
from penstock.kit.postgres.cluster import Cluster
from penstock.kit.postgres.paths import written_by
from penstock.kit.postgres.settings import ClusterSettings


async def run(chosen: argparse.Namespace) -> int:
    asked = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, asked.set)
    settings = ClusterSettings(server=dict(chosen.set), template=chosen.template)
    binaries = locate(chosen.major or written_by(chosen.path))
    async with Cluster(chosen.path, binaries, settings=settings) as cluster:
        sys.stdout.write(f"{cluster.dsn()}\n")
        sys.stdout.flush()
        return await _until(asked, cluster)


async def _until(asked: asyncio.Event, cluster: Cluster) -> int:
    ends = {asyncio.ensure_future(asked.wait()), asyncio.ensure_future(cluster.wait())}
    _, pending = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for end in pending:
        end.cancel()
        with suppress(asyncio.CancelledError):
            await end
    return 0 if asked.is_set() else 1


async def write_template(chosen: argparse.Namespace) -> int:
    await template.write(chosen.path, locate(chosen.major))
    return 0


def _setting(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m penstock.kit.postgres")
    verbs = parser.add_subparsers(required=True)
    for verb, does in (("run", run), ("template", write_template)):
        added = verbs.add_parser(verb)
        added.set_defaults(does=does)
        added.add_argument("path", type=Path)
        added.add_argument("--major")
        if does is run:
            added.add_argument(
                "--set", type=_setting, action="append", default=[], metavar="NAME=VALUE"
            )
            added.add_argument("--template", type=Path)
    return parser.parse_args()


def main() -> int:
    logging.configure(form="text")
    chosen = _arguments()
    try:
        code: int = asyncio.run(chosen.does(chosen))
    except PenstockError as e:
        sys.stderr.write(f"{e.message}\n{e.hint or ''}\n")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
