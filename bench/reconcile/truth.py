"""The reference result, computed without Penstock's code: every pair of one reference, in whole
cents, compared with the evidence.

`… truth.py LEFT RIGHT MATCHED` prints the number of pairs, and how many are in only one of the two.
"""

from __future__ import annotations

import json
import sys

import duckdb

CENTS = 2
_CENTS = "CAST(amount * 100 AS BIGINT)"


def unlike(left: str, right: str, matched: str) -> dict[str, int]:
    with duckdb.connect() as db:
        for name, file in (("l", left), ("r", right)):
            db.execute(f"CREATE TABLE {name} AS SELECT id, ref, {_CENTS} AS cents FROM '{file}'")
        db.execute(
            "CREATE TABLE truth AS SELECT l.id AS a, r.id AS b FROM l, r"
            " WHERE l.ref = r.ref"
            f" AND greatest(l.cents, r.cents) - least(l.cents, r.cents) <= {CENTS}"
        )
        db.execute(f"CREATE TABLE found AS SELECT left_id AS a, right_id AS b FROM '{matched}'")
        counts = {
            "pairs": "SELECT count(*) FROM truth",
            "missed": "SELECT count(*) FROM (FROM truth EXCEPT ALL FROM found)",
            "wrong": "SELECT count(*) FROM (FROM found EXCEPT ALL FROM truth)",
            "contested": "SELECT count(*) FROM (SELECT a FROM truth GROUP BY a HAVING count(*) > 1"
            " UNION ALL SELECT b FROM truth GROUP BY b HAVING count(*) > 1)",
        }
        return {name: db.execute(sql).fetchall()[0][0] for name, sql in counts.items()}


if __name__ == "__main__":
    print(json.dumps(unlike(*sys.argv[1:])))
