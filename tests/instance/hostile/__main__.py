"""A graph server whose engine is `hostile.engine`; everything else is as it is."""

import sys

from penstock.instance import process
from penstock.instance.engine import child

if __name__ == "__main__":
    setattr(child, "_MODULE", "tests.instance.hostile.engine")  # noqa: B010 - the one thing that differs
    sys.exit(process.main())
