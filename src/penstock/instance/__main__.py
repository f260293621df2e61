"""`python -m penstock.instance`."""

import sys

from penstock.kit.loading import loading

with loading():
    from penstock.instance.process import main

if __name__ == "__main__":
    sys.exit(main())
