"""Runs cases against one backend, in a process of its own: two embedded engines cannot live in one.

`python -m tests.graphdb.child BACKEND FOLDER URL CASE…` prints one JSON line a case.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from penstock.graphdb.registry import Opening, open_engine
from tests.graphdb.cases import CASES


def main() -> None:
    backend, root, url, *names = sys.argv[1:]
    for name in names:
        folder = Path(root) / name
        (folder / "engine").mkdir(parents=True)
        error = ""
        try:
            opening = Opening(
                folder=folder / "engine", memory_bytes=128 * 1024**2, threads=2, url=url or None
            )
            engine = open_engine(backend, opening)
            CASES[name](engine, folder)
            if not name.startswith("fatal"):
                engine.close()
        except Exception:
            error = traceback.format_exc()
        sys.stdout.write(json.dumps({"case": name, "error": error}) + "\n")
        sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
