"""Another writer, in a process of its own: `python -m tests.maintenance.writer URI WAREHOUSE ROLE
SECONDS START`.

It tells on its output which rows it appended or deleted, each after its commit, and nothing that it
did not commit.
"""

from __future__ import annotations

import json
import random
import sys
import time

from pyiceberg.exceptions import CommitFailedException

from penstock.maintenance.errors import CommitConflict
from penstock.maintenance.tables.catalog.catalogs import CatalogConfig, open_catalog
from tests.maintenance.tables import SampleTable


def main(uri: str, warehouse: str, role: str, seconds: float, start: int) -> None:
    config = CatalogConfig(name="lake", type="sql", uri=uri, properties={"warehouse": warehouse})
    sample, rng, written = SampleTable(open_catalog(config)), random.Random(start), []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if role == "append":
                sample.append(start, 20)
                written += range(start, start + 20)
                start += 20
            else:
                there = sorted(set(sample.ids()))
                chosen = rng.sample(there, min(3, len(there)))
                if chosen:
                    sample.delete(chosen)
                    written += chosen
        except (CommitFailedException, CommitConflict):
            start += 20  # refused for certain: these rows are not there, and are not tried again
    sys.stdout.write("\n" + json.dumps(written))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]))
