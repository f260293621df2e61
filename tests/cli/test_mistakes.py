"""A mistake gets one sentence and the next command to try; the exit code says which kind it was."""

from __future__ import annotations

import builtins
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from penstock.cli import output, overview
from penstock.cli.tree import app
from penstock.client.errors import BY_CODE, Failed
from tests.client.server import Answer, answering

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_URL", raising=False)
    monkeypatch.setattr("penstock.client._sync.transport.FIRST_PAUSE", 0.0)


def _said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = output.guarded(app, list(arguments))
    printed = capsys.readouterr()
    assert printed.out == ""
    return code, " ".join(printed.err.split())


@pytest.mark.parametrize(
    ("typed", "sentence", "next_command"),
    [
        (["jbo"], 'Did you mean "job"?', "penstock --help"),
        (["job", "shwo"], 'Did you mean "show"?', "penstock job --help"),
        (["job", "show"], "--job-id requires an argument", "penstock job show --help"),
        (
            ["job", "show", "seven"],
            'unable to convert "seven" into int',
            "penstock job show --help",
        ),
        (
            ["job", "list", "--statsu", "failed"],
            "Did you mean --status?",
            "penstock job list --help",
        ),
        (["job", "list", "--status", "broken"], "queued", "penstock job list --help"),
        (["maintain", "nonsense"], "neither db.table nor catalog.db.table", ""),
    ],
)
def test_a_wrong_call_says_what_was_meant(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    typed: list[str],
    sentence: str,
    next_command: str,
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:9")
    code, stderr = _said(capsys, *typed)
    assert code == 2
    assert sentence in stderr
    assert stderr.endswith(next_command)


@pytest.mark.parametrize("command", [["mapping", "create"], ["recipe", "save"]])
@pytest.mark.parametrize(
    ("text", "sentence"), [("[1]", "is not a JSON object"), ("{", "is not JSON")]
)
def test_a_file_that_is_no_json_object_is_refused_with_a_sentence(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: list[str],
    text: str,
    sentence: str,
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:9")
    file = tmp_path / "document.json"
    file.write_text(text)
    code, stderr = _said(capsys, *command, str(file))
    assert code == 2
    assert sentence in stderr


@pytest.mark.parametrize(
    "command", [["job", "list"], ["mapping", "list"], ["run", "list"], ["table", "list"]]
)
def test_where_nothing_runs_the_next_command_is_up(
    capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    code, stderr = _said(capsys, *command)
    assert code == 5
    assert "penstock up" in stderr


@pytest.mark.parametrize(
    ("status", "code", "exits", "hint"),
    [
        (400, "SAME_VERSION", 2, ""),
        (401, "AUTHENTICATION_REQUIRED", 4, "penstock key create"),
        (401, "INVALID_TOKEN", 4, "PENSTOCK_API_KEY"),
        (403, "PERMISSION_DENIED", 4, "penstock user role"),
        (404, "RESOURCE_NOT_FOUND", 3, ""),
        (409, "CONFLICT", 4, ""),
        (409, "RESOURCE_LOCKED", 4, ""),
        (413, "PAYLOAD_TOO_LARGE", 2, ""),
        (422, "VALIDATION_FAILED", 2, ""),
        (429, "RATE_LIMITED", 5, ""),
        (500, "INTERNAL", 1, ""),
        (503, "DRAINING", 5, ""),
        (408, "QUERY_TIMEOUT", 5, ""),
    ],
)
def test_an_answer_has_its_exit_code(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    code: str,
    exits: int,
    hint: str,
) -> None:
    body = {"error": {"code": code, "message": "It is so.", "details": {}}}
    with answering(Answer(status=status, body=body, headers={"Retry-After": "0"})) as deployment:
        monkeypatch.setenv("PENSTOCK_URL", deployment.url)
        assert _said(capsys, "mapping", "show", "1") == (
            exits,
            f"✗ It is so. {_HINT[hint]}".strip(),
        )
    assert code in BY_CODE


_HINT = {
    "": "",
    "penstock key create": output._HINTS[401],
    "PENSTOCK_API_KEY": output._HINTS[401],
    "penstock user role": output._HINTS[403],
}


def test_the_servers_own_hint_comes_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {
        "error": {
            "code": "PERMISSION_DENIED",
            "message": "No [x].",
            "details": {"hint": "Ask Ann."},
        }
    }
    with answering(Answer(status=403, body=body)) as deployment:
        monkeypatch.setenv("PENSTOCK_URL", deployment.url)
        assert _said(capsys, "mapping", "show", "1") == (4, "✗ No [x]. Ask Ann.")


def test_credentials_go_as_they_are_written_or_from_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    tested = {
        "id": 1,
        "ok": True,
        "message": "fine",
        "seconds": 0.1,
        "tested_at": "2026-11-16T00:00:00Z",
    }
    with answering(Answer(body={"data": tested})) as deployment:
        monkeypatch.setenv("PENSTOCK_URL", deployment.url)
        add = ["source", "add", "shop", "postgres", "--set", "port=5432", "--secret", "pin=0042"]
        assert output.guarded(app, [*add, "--secret", f"password=@{file}"]) == 0
    sent = deployment.asked[0].body
    assert (sent["config"], sent["credentials"]) == (
        {"port": 5432},
        {"pin": "0042", "password": "hunter2"},
    )
    assert "hunter2" not in capsys.readouterr().out
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:9")
    for wrong in ("password", f"password=@{tmp_path / 'none'}"):
        assert _said(capsys, "source", "add", "shop", "postgres", "--secret", wrong)[0] == 2


def test_work_that_failed_is_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {
        "id": 1,
        "kind": "probe",
        "status": "failed",
        "error": {"code": "X", "message": "no luck"},
    }
    with answering(Answer(body={"data": job})) as deployment:
        monkeypatch.setenv("PENSTOCK_URL", deployment.url)
        assert output.guarded(app, ["job", "tail", "1", "--json"]) == 1
    assert output.exit_code(Failed("x", code="JOB_FAILED", status=200).status) == 1


def test_a_package_that_is_missing_is_named_with_its_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("penstock.kit"):
            raise ModuleNotFoundError("No module named 'pydantic'", name="pydantic")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    code, stderr = _said(capsys, "config")
    assert (code, stderr) == (
        2,
        "✗ This command needs pydantic, which is not installed. pip install 'penstock[up]'",
    )


def test_a_reader_that_leaves_early_is_no_fault() -> None:
    done = subprocess.run(
        f"{sys.executable} -m penstock.cli migrate --print | head -1",
        shell=True,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


def test_every_exit_code_is_documented_in_the_help() -> None:
    for code in (
        0,
        output.FAILED,
        output.USAGE,
        output.MISSING,
        output.REFUSED,
        output.UNAVAILABLE,
        130,
    ):
        assert f"{code} " in overview.CODES
