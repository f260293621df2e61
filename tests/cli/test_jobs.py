from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from penstock.cli.home import Home
from penstock.client import Client

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


def enqueue(up: Cli, **payload: object) -> int:
    home = Home(up.home)
    running = home.running()
    assert running is not None
    with Client(running.url, home.secret("operator_token")) as ps:
        return ps.jobs.create("probe", payload).id


def test_a_job_is_listed_shown_and_cancelled(up: Cli) -> None:
    job = enqueue(up, steps=1000, seconds_per_step=0.05)
    assert job in [j["id"] for j in up("job", "list", "--json").json["data"]]
    assert f"Job {job}" in up("job", "show", str(job)).out
    assert up("job", "cancel", str(job), "--reason", "enough").code == 0
    shown = up("job", "show", str(job), "--json").json
    assert shown["status"] == "cancelled"
    assert shown["error"]["message"] == "enough"
    again = up("job", "cancel", str(job))
    assert again.code == 0


def test_retrying_a_cancelled_job_makes_a_new_one(up: Cli) -> None:
    job = enqueue(up, steps=1000, seconds_per_step=0.05)
    up("job", "cancel", str(job))
    retried = up("job", "retry", str(job), "--json").json
    assert retried["id"] != job
    assert up("job", "show", str(retried["id"]), "--json").json["retry_of"] == job
    up("job", "cancel", str(retried["id"]))


def test_a_job_that_is_not_there_is_exit_code_3(up: Cli) -> None:
    missing = up("job", "show", "999999999")
    assert missing.code == 3
    assert "There is no job 999999999" in missing.err
    assert missing.out == ""


def test_retrying_a_job_that_runs_is_refused_with_exit_code_4(up: Cli) -> None:
    job = enqueue(up, steps=1000, seconds_per_step=0.05)
    assert up("job", "retry", str(job)).code == 4
    up("job", "cancel", str(job))


def test_draining_refuses_new_jobs_and_says_so(up: Cli) -> None:
    assert up("drain", "on", "--reason", "upgrade").code == 0
    try:
        assert up("drain", "--json").json["draining"] is True
        findings = {f["what"]: f for f in up("doctor", "--json").json}
        assert "draining" in findings["a job"]["says"]
    finally:
        assert up("drain", "off").code == 0
    assert up("drain", "--json").json["draining"] is False


def test_queue_names_the_worker(up: Cli) -> None:
    assert "worker-1" in up("queue").out


def test_a_wrong_call_is_exit_code_2_with_one_sentence(up: Cli) -> None:
    wrong = up("job", "show", "seven")
    assert wrong.code == 2
    assert wrong.out == ""
    assert "--help" in wrong.err


def test_nobody_there_is_exit_code_5_and_says_what_to_do(cli: Cli) -> None:
    lonely = cli("job", "list")
    assert lonely.code == 5
    assert "penstock up" in lonely.err


def test_an_url_that_does_not_answer_is_exit_code_5(cli: Cli) -> None:
    assert cli("job", "list", PENSTOCK_URL="http://127.0.0.1:9").code == 5


def test_a_wrong_token_is_refused(up: Cli) -> None:
    running = Home(up.home).running()
    assert running is not None
    assert up("job", "list", PENSTOCK_URL=running.url, PENSTOCK_API_KEY="wrong").code == 4


def test_migrate_prints_its_sql_without_a_database(cli: Cli) -> None:
    printed = cli("migrate", "--print")
    assert printed.code == 0
    assert "CREATE TABLE penstock.live" in printed.out
    assert cli("migrate", "--print", "--json").json["migrations"][0]["room"] == "jobs"


def test_migrate_without_a_database_says_which_setting_is_missing(cli: Cli) -> None:
    refused = cli("migrate")
    assert refused.code == 2
    assert "PENSTOCK_DATABASE_URL" in refused.err


def test_migrate_twice_applies_once(cli: Cli, pg: object, database: str) -> None:
    done = cli("migrate", "--json", PENSTOCK_DATABASE_URL=database)
    assert done.code == 0
    assert done.json == {"applied": []}


def test_migrate_grants_the_role_of_an_autoscaler(
    cli: Cli, pg: object, database: str, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("a long password\n")
    options = ("migrate", "--scaling-role", "keda_cli", "--scaling-password-file", str(password))
    done = cli(*options, "--json", PENSTOCK_DATABASE_URL=database)
    assert done.json["scaling_role"]["name"] == "keda_cli"
    assert "reads penstock.scaling alone" in cli(*options, PENSTOCK_DATABASE_URL=database).out
    password.unlink()
    refused = cli(*options, PENSTOCK_DATABASE_URL=database)
    assert refused.code == 2
    assert "cannot be read" in refused.err


def test_a_password_without_a_role_is_refused(cli: Cli, database: str, tmp_path: Path) -> None:
    refused = cli(
        "migrate", "--scaling-password-file", str(tmp_path), PENSTOCK_DATABASE_URL=database
    )
    assert refused.code == 2
    assert "--scaling-role" in refused.err


def test_a_wrong_setting_is_named_in_a_sentence(cli: Cli) -> None:
    refused = cli("worker", PENSTOCK_WORKER_SLOTS="many")
    assert refused.code == 2
    assert "worker_slots" in refused.err
    assert "Traceback" not in refused.err


def test_importing_penstock_and_its_command_line_loads_no_server() -> None:
    script = (
        "import sys, penstock, penstock.cli; print([m for m in ('fastapi', 'asyncpg', 'pyarrow', "
        "'uvicorn', 'pydantic', 'sqlglot') if m in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert loaded.strip() == "[]"


def test_a_job_is_followed_to_its_end(up: Cli) -> None:
    assert up("doctor", "--json").code == 0
    job = up(
        "job", "list", "--kind", "probe", "--status", "succeeded", "--limit", "1", "--json"
    ).json["data"][0]["id"]
    events = up("job", "tail", str(job), "--json").json
    assert (events["id"], events["status"], events["changes"][-1]["status"]) == (
        job,
        "succeeded",
        "succeeded",
    )
    assert "succeeded" in up("job", "tail", str(job)).out


def test_a_worker_that_runs_once_says_how_it_ended(up: Cli) -> None:
    token = (up.home / "secrets" / "service_token").read_text().strip()
    url = up("status", "--json").json["url"]
    there = {"PENSTOCK_URL": url, "PENSTOCK_SERVICE_TOKEN": token, "PENSTOCK_WORKER_PORT": "0"}
    done = up("worker", "--once", "--wait", "0.1", "--queues", "nobodys", "--json", **there)
    assert done.json == {"exit_code": done.code}
