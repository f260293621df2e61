from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

from penstock import connect
from penstock.client.address import find
from penstock.client.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Cli


def test_people_come_in_with_keys_until_they_are_revoked(up: Cli) -> None:
    assert "There are no users" in up("user", "list").out
    created = up("user", "add", "ann", "--email", "ann@example.com", "--json").json
    assert (created["username"], created["role"]) == ("ann", "analyst")
    assert up("user", "add", "ann").code == 4
    assert up("user", "role", "ann", "admin", "--json").json["role_changed_by"] == "operator"
    key = up("key", "create", "ann", "--name", "notebook", "--days", "1").out.strip()
    assert key.startswith("pst_")
    url = up("status", "--json").json["url"]
    shown = up("user", "list", "--json", PENSTOCK_URL=url, PENSTOCK_API_KEY=key).json["data"]
    assert [user["username"] for user in shown] == ["ann"]
    [listed] = up("key", "list", "ann", "--json").json["data"]
    assert (listed["name"], key.startswith(listed["prefix"])) == ("notebook", True)
    assert "notebook" in up("key", "list", "ann").out
    assert up("key", "revoke", "ann", str(listed["id"]), "--json").json == {"revoked": 1}
    refused = up("user", "list", PENSTOCK_URL=url, PENSTOCK_API_KEY=key)
    assert (refused.code, "Unknown or revoked token" in refused.err) == (4, True)
    assert up("user", "deactivate", "ann", "--json").json["is_active"] is False
    assert up("user", "list", "--active", "--json").json["data"] == []


def token_of(up: Cli) -> str:
    return (up.home / "secrets" / "operator_token").read_text().strip()


@contextmanager
def browser(url: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=url, trust_env=False) as client:
        yield client


def test_programs_of_the_same_machine_name_nobody_and_need_the_token_of_the_home(up: Cli) -> None:
    url = up("status", "--json").json["url"]
    with browser(url) as client:
        for headers in (
            {"X-Username": "bob"},
            {"X-Username": "operator", "X-User-Role": "ops"},
            {},
        ):
            assert client.get("/api/data-sources", headers=headers).status_code == 401
        operator = {"Authorization": f"Bearer {token_of(up)}"}
        assert client.get("/api/data-sources", headers=operator).status_code == 200
        for name, value in (
            ("Host", "evil.example"),
            ("X-Forwarded-For", "127.0.0.1"),
            ("Via", "1.1 proxy"),
        ):
            assert (
                client.get("/api/data-sources", headers=operator | {name: value}).status_code == 403
            )


def test_a_notebook_connects_without_any_argument(up: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PENSTOCK_URL", "PENSTOCK_API_KEY", "PENSTOCK_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PENSTOCK_HOME", str(up.home))
    with connect() as ps:
        assert isinstance(ps.users.all(), list)
    url = up("status", "--json").json["url"]
    monkeypatch.setenv("PENSTOCK_URL", url)
    with connect() as ps:
        assert isinstance(ps.users.all(), list), "the address of the home's own control plane"


def test_a_login_link_signs_one_browser_in_as_operator(up: Cli) -> None:
    link = up("login", "--json").json["url"]
    url = up("status", "--json").json["url"]
    assert link.startswith(f"{url}/login?token=")
    with browser(url) as first, browser(url) as second:
        opened = first.get(link)
        assert (opened.status_code, "Signed in" in opened.text) == (200, True)
        cookie = opened.headers["set-cookie"]
        assert all(
            word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200")
        )
        assert first.get("/api/audit").status_code == 200
        assert second.get(link).status_code == 401
        assert second.get("/api/audit").status_code == 401


def test_up_prints_a_login_link_and_no_log_has_it(up: Cli) -> None:
    again = up("up", "--detach", "--json").json
    assert again["login_url"].startswith(again["url"])
    assert "login_url" not in up("up", "--detach", "--no-login-link", "--json").json
    assert "login?token=" in up("up", "--detach").out
    assert not [file for file in (up.home / "logs").iterdir() if "login?token=" in file.read_text()]


def test_a_rotated_operator_token_ends_the_old_one_with_its_sessions(up: Cli) -> None:
    link = up("login", "--json").json["url"]
    unopened = up("login", "--json").json["url"]
    old = token_of(up)
    url = up("status", "--json").json["url"]
    with browser(url) as client:
        assert client.get(link).status_code == 200
        file = Path(up("key", "rotate-operator", "--json").json["file"])
        assert (file.read_text(), file.stat().st_mode & 0o777) == (token_of(up), 0o600)
        assert token_of(up) != old
        assert client.get("/api/audit").status_code == 401
        assert client.get(unopened).status_code == 401
        assert (
            client.get("/api/audit", headers={"Authorization": f"Bearer {old}"}).status_code == 401
        )
    assert up("user", "list").code == 0, "the command line reads the new one"
    assert sorted(entry.name for entry in file.parent.iterdir()) == [
        "operator_token",
        "secret_key",
        "service_token",
    ]


def test_doctor_warns_of_an_insecure_setting_and_does_not_fail_for_it(up: Cli) -> None:
    assert [
        finding for finding in up("doctor", "--json").json if finding["severity"] == "warning"
    ] == []
    findings = up("doctor", "--json", PENSTOCK_FAILED_LOGINS_PER_MINUTE="0")
    [warning] = [finding for finding in findings.json if finding["severity"] == "warning"]
    assert (findings.code, warning["what"], warning["ok"]) == (0, "rate limits", False)
    assert (
        "failed_logins_per_minute is 0" in up("doctor", PENSTOCK_FAILED_LOGINS_PER_MINUTE="0").out
    )


def test_the_token_of_a_control_plane_that_ended_is_sent_to_nobody(
    short_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its port may be somebody else's by now."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    home = tmp_path / "home"
    for folder, name, text in (
        ("run", "up.json", f'{{"url": "http://127.0.0.1:1", "pid": {ended.pid}}}'),
        ("secrets", "operator_token", "secret"),
    ):
        (home / folder).mkdir(parents=True)
        (home / folder / name).write_text(text)
    for name in ("PENSTOCK_URL", "PENSTOCK_API_KEY", "PENSTOCK_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    with pytest.raises(Unreachable):
        connect()
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:1")
    assert find(None, None, None).token is None


def test_a_source_is_shared_and_taken_back(up: Cli) -> None:
    import penstock

    url = up("status", "--json").json["url"]
    up("user", "add", "sharon")
    key = up("key", "create", "sharon").out.strip()
    config = {"host": "127.0.0.1", "port": 9, "user": "u", "database": "d"}
    with penstock.connect(url, api_key=key) as ps:
        source = ps.sources.create("sharons", "mysql", config).id
        up("user", "add", "ben")
        added = up("share", "add", "source", str(source), "ben", "--role", "edit", "--json").json
        assert (added["username"], added["role"]) == ("ben", "edit")
        assert [share["username"] for share in ps.shares.all("source", source)] == ["ben"]
        assert ps.shares.put("source", source, "*")["role"] == "use"
        assert "Everybody" in up("share", "list", "source", str(source)).out
        assert up("share", "remove", "source", str(source), "*", "--json").json == {"deleted": True}
        assert ps.shares.delete("source", source, "ben") == {"deleted": True}
        assert ps.shares.all("source", source) == []
