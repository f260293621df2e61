"""`python -m penstock.graph_server`."""

import sys

from penstock.kit.process_startup import loading

with loading():
    from penstock.graph_server.process import main

if __name__ == "__main__":
    sys.exit(main())
