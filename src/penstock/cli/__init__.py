"""`penstock …`: the user half speaks HTTP, the operator half is loaded only when it is called."""

from __future__ import annotations

import sys

from cyclopts import App

from penstock import __version__
from penstock.cli import output

app = App(name="penstock", version=__version__, help=__doc__, help_format="plaintext", result_action="return_value")
job = App(name="job", help="Look at jobs and steer them.")
app.command(job)

for target, name, text in (
    ("penstock.cli.up:up", "up", "Start everything on this machine."),
    ("penstock.cli.up:down", "down", "Stop what `up` started."),
    ("penstock.cli.up:status", "status", "Say what runs here."),
    ("penstock.cli.doctor:doctor", "doctor", "Look for whatever is missing, and say how to mend it."),
    ("penstock.cli.demo:demo", "demo", "Run jobs, kill a worker, freeze another, and show what became of their jobs."),
    ("penstock.cli.processes:serve", "serve", "Run the control plane."),
    ("penstock.cli.processes:worker", "worker", "Run a worker."),
    ("penstock.cli.processes:migrate", "migrate", "Bring the database's schema up to date."),
    ("penstock.cli.keys:rekey", "rekey", "Seal the credentials of data sources with another key."),
    ("penstock.cli.export:export", "export", "Write the rows of a query as Parquet."),
    ("penstock.cli.jobs:queue", "queue", "Say how the queues stand, and who works on them."),
    ("penstock.cli.jobs:drain", "drain", "Stop or resume taking new jobs."),
):
    app.command(target, name=name, help=text)
for target, name, text in (
    ("penstock.cli.jobs:list_jobs", "list", "List jobs, newest first."),
    ("penstock.cli.jobs:show", "show", "Show one job with its attempts."),
    ("penstock.cli.jobs:cancel", "cancel", "End a job at once and for good."),
    ("penstock.cli.jobs:retry", "retry", "Run a failed or cancelled job again, as a new job."),
):
    job.command(target, name=name, help=text)


def main(arguments: list[str] | None = None) -> None:
    sys.exit(output.guarded(app, sys.argv[1:] if arguments is None else arguments))
