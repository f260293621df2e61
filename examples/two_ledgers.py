"""Two CSV files of your own, matched by recipe: evidence that ties, and a report to mail around."""

import tempfile
from pathlib import Path

import penstock

folder = Path(tempfile.mkdtemp(prefix="penstock-ledgers-"))
(folder / "invoices.csv").write_text("id,amount\nA1,100.00\nA2,250.10\nA3,80.00\nA4,19.99\n")
(folder / "payments.csv").write_text(
    "id,invoice,amount\nP1,A1,100.00\nP2,A2,249.90\nP3,A3,40.00\nP4,A3,40.00\n"
)

with penstock.connect() as ps:
    same = {"left": "id", "op": "eq", "right": "invoice"}
    run = ps.reconcile.run(
        {
            "name": "My ledgers",
            "sources": {
                "left": {
                    "upload": ps.reconcile.upload(folder / "invoices.csv"),
                    "primary_key": ["id"],
                },
                "right": {
                    "upload": ps.reconcile.upload(folder / "payments.csv"),
                    "primary_key": ["id"],
                },
            },
            "rules": [
                {
                    "name": "within twenty cents",
                    "conditions": [
                        same,
                        {
                            "left": "amount",
                            "op": "tolerance",
                            "right": "amount",
                            "absolute": "0.20",
                        },
                    ],
                },
                {
                    "name": "in parts",
                    "pattern": "1:N",
                    "conditions": [
                        same,
                        {"left": "amount", "op": "sum_within", "right": "amount", "absolute": 0},
                    ],
                },
            ],
        }
    ).wait()
    for side, totals in run.totals.items():
        print(
            f"{side}: {totals['matched']} of {totals['rows']} matched, breaks: {totals['reasons']}"
        )
    run.report(folder / "report.html")
    print(f"The report is in {folder / 'report.html'}")
