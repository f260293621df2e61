"""Every command there is: its words, where it is, and what it does in one sentence.

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
    "recipe": "Recipes: how two ledgers are held against each other.",
    "run": "Runs of recipes, and their reports.",
    "upload": "Uploaded files: what recipes read beside data sources.",
    "table": "Iceberg tables: how they are.",
}
COMMANDS = tuple(
    Command(*each)
    for each in (
        ("up", "up:up", "Start everything on this machine."),
        ("down", "up:down", "Stop what `up` started."),
        ("status", "up:status", "Say what runs here."),
        ("login", "login:login", "Print a link that signs a browser in."),
        (
            "doctor",
            "doctor:doctor",
            "Look for whatever is missing or insecure, and say how to mend it.",
        ),
        ("demo", "demo:demo", "Storm the job engine, then find the rings in a bank."),
        ("config", "settings:config", "Show the settings in force, and where each comes from."),
        ("completion", "completion:completion", "Print the completion for a shell."),
        ("serve", "processes:serve", "Run the control plane."),
        ("worker", "processes:worker", "Run a worker."),
        ("migrate", "processes:migrate", "Bring the database's schema up to date."),
        ("rekey", "keys:rekey", "Seal the credentials of data sources with another key."),
        ("export", "export:export", "Write the rows of a query as Parquet."),
        ("query", "graphs:query", "Ask a graph in Cypher."),
        ("algo", "graphs:algo", "Run an algorithm on a graph."),
        (
            "evidence",
            "reconcile:evidence",
            "Write a run's evidence: csv, parquet, arrow, xlsx, json.",
        ),
        ("maintain", "tables:maintain", "Maintain an Iceberg table."),
        ("queue", "jobs:queue", "Say how the queues stand, and who works on them."),
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
        ("snapshot cancel", "graphs:cancel_snapshot", "Stop a snapshot that is being made."),
        ("snapshot delete", "graphs:delete_snapshot", "Delete a snapshot and its files."),
        ("instance list", "graphs:list_instances", "List instances, newest first."),
        ("instance show", "graphs:show_instance", "Show an instance and what happened to it."),
        ("instance start", "graphs:start_instance", "Start a graph of a mapping."),
        ("instance stop", "graphs:stop_instance", "Terminate an instance."),
        ("recipe list", "reconcile:list_recipes", "List saved recipes."),
        ("recipe show", "reconcile:show_recipe", "Show a recipe."),
        ("recipe save", "reconcile:save_recipe", "Save a recipe from a JSON file."),
        ("recipe validate", "reconcile:validate_recipe", "Find every fault of a recipe."),
        ("recipe explain", "reconcile:explain_recipe", "Show the SQL that a recipe becomes."),
        ("run start", "reconcile:start_run", "Run a recipe and say how the two sides agree."),
        ("run list", "reconcile:list_runs", "List runs, newest first."),
        ("run show", "reconcile:show_run", "Show a run with its totals."),
        ("run cancel", "reconcile:cancel_run", "End a run at once."),
        ("run report", "reconcile:report", "Write a run's report as one HTML file."),
        ("upload add", "uploads:add_upload", "Upload a file for recipes to read."),
        ("upload list", "uploads:list_uploads", "List uploads, newest first."),
        ("upload usage", "uploads:show_usage", "Show what your uploads take, and may take."),
        ("upload delete", "uploads:delete_upload", "Delete an upload and its file."),
        ("table list", "tables:list_tables", "List tables."),
        ("table health", "tables:health", "Say how a table is, and why."),
        ("table recommend", "tables:recommendation", "Say what would do a table good."),
        ("table history", "tables:history", "Say what was done to a table."),
        ("share add", "shares:add", "Share a source, mapping or recipe."),
        ("share list", "shares:list_", "List who something is shared with."),
        ("share remove", "shares:remove", "Stop sharing with a user."),
        ("user add", "people:add_user", "Add a user."),
        ("user list", "people:list_users", "List users, newest first."),
        ("user role", "people:change_role", "Give a user another role."),
        ("user deactivate", "people:deactivate", "Let a user in no more; what they own stays."),
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
