"""The table of commands: name, import path and a one-sentence summary.

Plain data, so that `penstock --help` and the completion need not load what the commands need.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    words: str
    target: str
    says: str


GROUPS = {
    "job": "Look at jobs and steer them.",
    "source": "Data sources: where mappings read from.",
    "mapping": "Mappings: which tables become which graph.",
    "snapshot": "Snapshots: a mapping's rows at one moment.",
    "instance": "Instances: graphs to ask.",
    "share": "Who may use or edit what is somebody else's.",
    "user": "Users and their roles.",
    "key": "API keys.",
    "recipe": "Recipes: rules that reconcile two ledgers.",
    "run": "Runs of recipes, and their reports.",
    "upload": "Uploaded files: what recipes read beside data sources.",
    "table": "Inspect Iceberg tables.",
}
COMMANDS = tuple(
    Command(*command)
    for command in (
        ("up", "up:up", "Start everything on this machine."),
        ("down", "up:down", "Stop what `up` started."),
        ("status", "up:status", "Show what runs here."),
        ("login", "login:login", "Print a link that signs a browser in."),
        (
            "doctor",
            "doctor:doctor",
            "Find missing requirements and insecure settings, with fixes.",
        ),
        ("demo", "demo:demo", "Stress-test the job engine, then find fraud rings."),
        ("config", "settings:config", "Show the settings in force and their origins."),
        ("completion", "completion:completion", "Print the completion for a shell."),
        ("serve", "processes:serve", "Run the control plane."),
        ("worker", "processes:worker", "Run a worker."),
        ("migrate", "processes:migrate", "Bring the database's schema up to date."),
        ("rekey", "keys:rekey", "Seal the credentials of data sources with another key."),
        ("export", "export:export", "Write the rows of a query as Parquet."),
        ("query", "graphs:query", "Query a graph in Cypher."),
        ("algo", "graphs:algo", "Run an algorithm on a graph."),
        (
            "evidence",
            "reconcile:evidence",
            "Write a run's evidence: csv, parquet, arrow, xlsx, json.",
        ),
        ("maintain", "tables:maintain", "Maintain an Iceberg table."),
        ("queue", "jobs:queue", "Show queues and their workers."),
        ("drain", "jobs:drain", "Stop or resume taking new jobs."),
        ("job list", "jobs:list_jobs", "List jobs, newest first."),
        ("job show", "jobs:show", "Show one job with its attempts."),
        ("job tail", "jobs:tail", "Follow a job until it is over."),
        ("job cancel", "jobs:cancel", "End a job at once and for good."),
        ("job retry", "jobs:retry", "Run a failed or cancelled job again, as a new job."),
        ("source list", "graphs:list_sources", "List data sources."),
        ("source add", "graphs:add_source", "Add a data source, and try it."),
        ("mapping list", "graphs:list_mappings", "List mappings, newest first."),
        ("mapping show", "graphs:show_mapping", "Show a mapping with its definitions."),
        ("mapping create", "graphs:create_mapping", "Create a mapping from a JSON file."),
        ("mapping infer", "graphs:infer_mapping", "Propose a mapping from the keys of a schema."),
        (
            "mapping delete",
            "graphs:delete_mapping",
            "Delete a mapping that no snapshot depends on.",
        ),
        ("snapshot list", "graphs:list_snapshots", "List snapshots, newest first."),
        ("snapshot show", "graphs:show_snapshot", "Show a snapshot with its counts and progress."),
        ("snapshot create", "graphs:create_snapshot", "Export a mapping's tables as they are now."),
        ("snapshot retry", "graphs:retry_snapshot", "Export again what failed."),
        ("snapshot cancel", "graphs:cancel_snapshot", "Cancel a snapshot in progress."),
        ("snapshot delete", "graphs:delete_snapshot", "Delete a snapshot and its files."),
        ("instance list", "graphs:list_instances", "List instances, newest first."),
        ("instance show", "graphs:show_instance", "Show an instance and what happened to it."),
        ("instance start", "graphs:start_instance", "Start a graph of a mapping."),
        ("instance stop", "graphs:stop_instance", "Terminate an instance."),
        ("recipe list", "reconcile:list_recipes", "List saved recipes."),
        ("recipe show", "reconcile:show_recipe", "Show a recipe."),
        ("recipe save", "reconcile:save_recipe", "Save a recipe from a JSON file."),
        ("recipe validate", "reconcile:validate_recipe", "List all errors of a recipe."),
        ("recipe explain", "reconcile:explain_recipe", "Show the SQL that a recipe becomes."),
        ("run start", "reconcile:start_run", "Run a recipe and show the totals of both sides."),
        ("run list", "reconcile:list_runs", "List runs, newest first."),
        ("run show", "reconcile:show_run", "Show a run with its totals."),
        ("run cancel", "reconcile:cancel_run", "End a run at once."),
        ("run report", "reconcile:report", "Write a run's report as one HTML file."),
        ("upload add", "uploads:add_upload", "Upload a file for recipes to read."),
        ("upload list", "uploads:list_uploads", "List uploads, newest first."),
        ("upload usage", "uploads:show_usage", "Show the size and quota of your uploads."),
        ("upload delete", "uploads:delete_upload", "Delete an upload and its file."),
        ("table list", "tables:list_tables", "List tables."),
        ("table health", "tables:health", "Show a table's health, with reasons."),
        ("table recommend", "tables:recommendation", "Recommend maintenance for a table."),
        ("table history", "tables:history", "Show a table's maintenance history."),
        ("share add", "shares:add", "Share a source, mapping or recipe."),
        ("share list", "shares:list_", "List who something is shared with."),
        ("share remove", "shares:remove", "Stop sharing with a user."),
        ("user add", "people:add_user", "Add a user."),
        ("user list", "people:list_users", "List users, newest first."),
        ("user role", "people:change_role", "Give a user another role."),
        ("user deactivate", "people:deactivate", "Deactivate a user; what they own stays."),
        ("key create", "people:create_key", "Make an API key; it is printed once."),
        ("key list", "people:list_keys", "List a user's API keys."),
        (
            "key rotate-operator",
            "login:rotate_operator",
            "Replace the operator token of this machine.",
        ),
        ("key revoke", "people:revoke_key", "Revoke one API key, or all of a user."),
    )
)
