"""Every command has `--json`, and what it then prints is what `documents.py` promises.

Commands that only ask are tried here against a control plane that answers from its own description;
the others are held to their documents where they are run for real, by way of `Cli.document`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from tools.shapes import description

from penstock.api.schema.examples import Examples
from penstock.cli import output, overview
from penstock.cli.commands import COMMANDS, GROUPS
from penstock.cli.documents import DOCUMENTS
from penstock.cli.tree import app
from tests.cli.schema import check
from tests.client.server import Answer, answering

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORDS = [command.words for command in COMMANDS]
CALLS = {
    "status": [],
    "queue": [],
    "drain": [],
    "drain on": [],
    "job list": [],
    "job show": ["1"],
    "job cancel": ["1"],
    "job retry": ["1"],
    "source list": [],
    "mapping list": [],
    "mapping show": ["1"],
    "mapping infer": ["1"],
    "mapping delete": ["1"],
    "snapshot list": [],
    "snapshot show": ["1"],
    "snapshot create": ["1", "now", "--no-wait"],
    "snapshot retry": ["1"],
    "snapshot cancel": ["1"],
    "snapshot delete": ["1"],
    "instance list": [],
    "instance show": ["1"],
    "instance start": ["1", "--no-wait"],
    "source add": ["shop", "duckdb", "--set", "database=/x"],
    "recipe list": [],
    "recipe show": ["october"],
    "recipe explain": ["october"],
    "upload list": [],
    "upload usage": [],
    "upload delete": ["0" * 32],
    "run start": ["october", "--no-wait"],
    "run list": [],
    "run show": ["1"],
    "run cancel": ["1"],
    "table list": [],
    "table health": ["lake.shop.orders"],
    "table recommend": ["lake.shop.orders"],
    "table history": ["lake.shop.orders"],
    "maintain": ["lake.shop.orders", "compact", "--dry-run"],
    "share add": ["source", "3", "ben"],
    "share list": ["mapping", "7"],
    "share remove": ["recipe", "daily", "ben"],
    "user add": ["ann"],
    "user list": [],
    "user role": ["ann", "admin"],
    "user deactivate": ["ann"],
    "key create": ["ann"],
    "key list": ["ann"],
    "key revoke": ["ann"],
}


class Described:
    """Answers every request with the example that the API's description has for it."""

    def __init__(self) -> None:
        self._paths = {
            self._pattern(path): operations for path, operations in description()["paths"].items()
        }
        self._examples = Examples(description()["components"]["schemas"])

    @staticmethod
    def _pattern(path: str) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{[^}]*\}", "[^/]+", path))

    def answer(self, method: str, path: str) -> Answer:
        place = path.partition("?")[0]
        for pattern, operations in self._paths.items():
            if pattern.fullmatch(place) and method.lower() in operations:
                responses = operations[method.lower()]["responses"]
                status = next(code for code in responses if code.startswith("2"))
                schema = responses[status]["content"]["application/json"]["schema"]
                return Answer(status=int(status), body=self._examples.of(schema))
        raise AssertionError(f"{method} {path} is not described")


@pytest.fixture(scope="module")
def described() -> Iterator[str]:
    with answering(by=Described().answer) as deployment:
        yield deployment.url


@pytest.fixture
def asking(described: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENSTOCK_URL", described)
    monkeypatch.setenv("PENSTOCK_API_KEY", "key")
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))


def _function(words: str) -> Any:
    [target] = [command.target for command in COMMANDS if command.words == words]
    module, name = target.split(":")
    return getattr(importlib.import_module(f"penstock.cli.{module}"), name)


def test_every_command_has_a_document_and_no_document_outlives_its_command() -> None:
    assert DOCUMENTS.keys() == set(WORDS)
    assert len(WORDS) == len(set(WORDS))


@pytest.mark.parametrize("words", WORDS)
def test_every_command_takes_json(words: str) -> None:
    taken = inspect.signature(_function(words)).parameters["json"]
    assert taken.default is False


@pytest.mark.parametrize("words", CALLS)
def test_json_is_as_promised_and_nothing_else_is_on_stdout(
    asking: None, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    assert output.guarded(app, [*words.split(), *CALLS[words], "--json"]) == 0
    printed = capsys.readouterr()
    check(json.loads(printed.out), DOCUMENTS[words.removesuffix(" on")])
    assert printed.err == ""


@pytest.mark.parametrize(
    "words", [w for w in CALLS if w.split()[-1] in ("list", "show", "status", "queue", "health")]
)
def test_people_can_read_it_without_colour(
    asking: None, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    assert output.guarded(app, [*words.split(), *CALLS[words]]) == 0
    printed = capsys.readouterr().out
    assert printed.strip()
    assert "\033" not in printed


def test_what_others_wrote_gives_no_orders(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {
        "run_id": 1,
        "name": "[red]x[/red] \x1b[2J",
        "status": "failed",
        "error": {"message": "[/] \x1b[2J"},
    }
    with answering(Answer(body={"data": named})) as deployment:
        monkeypatch.setenv("PENSTOCK_URL", deployment.url)
        assert output.guarded(app, ["run", "show", "1"]) == 0
    printed = capsys.readouterr().out
    assert r"[red]x[/red] \x1b[2J" in printed
    assert "\x1b" not in printed


def test_the_overviews_name_every_command() -> None:
    everything = overview.asked([])
    assert everything == overview.asked(["--help"]) == overview.asked(["-h"])
    for words in WORDS:
        group, _, name = words.rpartition(" ")
        assert f"  {name} " in str(overview.asked([group]) if group else everything)
    assert all(f"  {group} " in str(everything) for group in GROUPS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["job", "list"],
        ["nonsense"],
        ["job", "list", "--limit", "--help"],
        ["job", "lits", "--help"],
    ],
)
def test_what_a_command_answers_is_no_overview(arguments: list[str]) -> None:
    assert overview.asked(arguments) is None
