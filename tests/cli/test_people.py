from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_people_come_in_with_keys_until_they_are_revoked(up: Cli) -> None:
    assert "There are no users" in up("user", "list").out
    made = up("user", "add", "ann", "--email", "ann@example.com", "--json").json
    assert (made["username"], made["role"]) == ("ann", "analyst")
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
    assert (refused.code, "not known" in refused.err) == (4, True)
    assert up("user", "deactivate", "ann", "--json").json["is_active"] is False
    assert up("user", "list", "--active", "--json").json["data"] == []


def test_programs_of_the_same_machine_may_say_who_they_are(up: Cli) -> None:
    import httpx2

    url = up("status", "--json").json["url"]
    with httpx2.Client(base_url=url, trust_env=False) as client:
        assert client.get("/api/data-sources", headers={"X-Username": "bob"}).status_code == 200
        assert client.get("/api/audit", headers={"X-Username": "bob", "X-User-Role": "ops"}).status_code == 403
        elsewhere = {"X-Username": "bob", "Host": "evil.example"}
        assert client.get("/api/data-sources", headers=elsewhere).status_code == 401
