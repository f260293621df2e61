"""A graph server whose engine is `hostile.engine`; everything else is as it is."""

import sys

from penstock.graph_server import process
from penstock.graph_server.engine import child

if __name__ == "__main__":
    setattr(child, "_MODULE", "tests.graph_server.hostile.engine")  # noqa: B010 - the one thing that differs
    sys.exit(process.main())
