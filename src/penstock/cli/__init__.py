"""`penstock …`: the user half speaks HTTP, the operator half is loaded only when it is called."""

from __future__ import annotations

import sys

from cyclopts import App

from penstock import __version__
from penstock.cli import output

app = App(name="penstock", version=__version__, help=__doc__, help_format="plaintext", result_action="return_value")
job = App(name="job", help="Look at jobs and steer them.")
source = App(name="source", help="Data sources: where mappings read from.")
mapping = App(name="mapping", help="Mappings: which tables become which graph.")
snapshot = App(name="snapshot", help="Snapshots: a mapping's rows at one moment.")
instance = App(name="instance", help="Instances: graphs to ask.")
user = App(name="user", help="Users and their roles.")
key = App(name="key", help="API keys.")
recipe = App(name="recipe", help="Recipes: how two ledgers are held against each other.")
run = App(name="run", help="Runs of recipes, and their reports.")
table = App(name="table", help="Iceberg tables: how they are.")
for group in (job, source, mapping, snapshot, instance, user, key, recipe, run, table):
    app.command(group)

for target, name, text in (
    ("penstock.cli.up:up", "up", "Start everything on this machine."),
    ("penstock.cli.up:down", "down", "Stop what `up` started."),
    ("penstock.cli.up:status", "status", "Say what runs here."),
    ("penstock.cli.doctor:doctor", "doctor", "Look for whatever is missing, and say how to mend it."),
    ("penstock.cli.demo:demo", "demo", "Storm the job engine, then find the rings in a bank."),
    ("penstock.cli.processes:serve", "serve", "Run the control plane."),
    ("penstock.cli.processes:worker", "worker", "Run a worker."),
    ("penstock.cli.processes:migrate", "migrate", "Bring the database's schema up to date."),
    ("penstock.cli.keys:rekey", "rekey", "Seal the credentials of data sources with another key."),
    ("penstock.cli.export:export", "export", "Write the rows of a query as Parquet."),
    ("penstock.cli.graphs:query", "query", "Ask a graph in Cypher."),
    ("penstock.cli.graphs:algo", "algo", "Run an algorithm on a graph."),
    ("penstock.cli.reconcile:evidence", "evidence", "Write a run's evidence: csv, parquet, arrow, xlsx, json."),
    ("penstock.cli.tables:maintain", "maintain", "Maintain an Iceberg table."),
    ("penstock.cli.jobs:queue", "queue", "Say how the queues stand, and who works on them."),
    ("penstock.cli.jobs:drain", "drain", "Stop or resume taking new jobs."),
):
    app.command(target, name=name, help=text)
for group, room, target, name, text in (
    (job, "jobs", "list_jobs", "list", "List jobs, newest first."),
    (job, "jobs", "show", "show", "Show one job with its attempts."),
    (job, "jobs", "cancel", "cancel", "End a job at once and for good."),
    (job, "jobs", "retry", "retry", "Run a failed or cancelled job again, as a new job."),
    (source, "graphs", "list_sources", "list", "List data sources."),
    (source, "graphs", "add_source", "add", "Add a data source, and try it."),
    (mapping, "graphs", "list_mappings", "list", "List mappings, newest first."),
    (mapping, "graphs", "show_mapping", "show", "Show a mapping with its definitions."),
    (mapping, "graphs", "create_mapping", "create", "Create a mapping from a JSON file."),
    (mapping, "graphs", "infer_mapping", "infer", "Propose a mapping from the keys of a schema."),
    (mapping, "graphs", "delete_mapping", "delete", "Delete a mapping that no snapshot depends on."),
    (snapshot, "graphs", "list_snapshots", "list", "List snapshots, newest first."),
    (snapshot, "graphs", "show_snapshot", "show", "Show a snapshot with its counts and progress."),
    (snapshot, "graphs", "create_snapshot", "create", "Export a mapping's tables as they are now."),
    (snapshot, "graphs", "retry_snapshot", "retry", "Export again what failed."),
    (snapshot, "graphs", "cancel_snapshot", "cancel", "Stop a snapshot that is being made."),
    (snapshot, "graphs", "delete_snapshot", "delete", "Delete a snapshot and its files."),
    (instance, "graphs", "list_instances", "list", "List instances, newest first."),
    (instance, "graphs", "show_instance", "show", "Show an instance and what happened to it."),
    (instance, "graphs", "start_instance", "start", "Start a graph of a mapping."),
    (instance, "graphs", "stop_instance", "stop", "Terminate an instance."),
    (recipe, "reconcile", "list_recipes", "list", "List saved recipes."),
    (recipe, "reconcile", "show_recipe", "show", "Show a recipe."),
    (recipe, "reconcile", "save_recipe", "save", "Save a recipe from a JSON file."),
    (recipe, "reconcile", "validate_recipe", "validate", "Find every fault of a recipe."),
    (recipe, "reconcile", "explain_recipe", "explain", "Show the SQL that a recipe becomes."),
    (run, "reconcile", "start_run", "start", "Run a recipe and say how the two sides agree."),
    (run, "reconcile", "list_runs", "list", "List runs, newest first."),
    (run, "reconcile", "show_run", "show", "Show a run with its totals."),
    (run, "reconcile", "cancel_run", "cancel", "End a run at once."),
    (run, "reconcile", "report", "report", "Write a run's report as one HTML file."),
    (table, "tables", "list_tables", "list", "List tables."),
    (table, "tables", "health", "health", "Say how a table is, and why."),
    (table, "tables", "recommendation", "recommend", "Say what would do a table good."),
    (table, "tables", "history", "history", "Say what was done to a table."),
    (user, "people", "add_user", "add", "Add a user."),
    (user, "people", "list_users", "list", "List users, newest first."),
    (user, "people", "change_role", "role", "Give a user another role."),
    (user, "people", "deactivate", "deactivate", "Let a user in no more; what they own stays."),
    (key, "people", "create_key", "create", "Make an API key; it is printed once."),
    (key, "people", "list_keys", "list", "List a user's API keys."),
    (key, "people", "revoke_key", "revoke", "Revoke one API key, or all of a user."),
):
    group.command(f"penstock.cli.{room}:{target}", name=name, help=text)


def main(arguments: list[str] | None = None) -> None:
    sys.exit(output.guarded(app, sys.argv[1:] if arguments is None else arguments))
