"""The demo, played once: what it found, what it wrote, and what is there to explore afterwards."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.cli.demo import _stage, setup
from penstock.cli.home import Home
from penstock.client import Client
from tests.cli.conftest import Cli

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def home(short_dir: Path) -> Cli:
    return Cli(short_dir / "demo")


@pytest.fixture(scope="module")
def played(home: Cli) -> dict[str, Any]:
    ran = home(
        "demo", "--json", "--page", str(home.home.parent / "pages" / "demo.html"), timeout=240
    )
    assert ran.code == 0, ran.err
    document: dict[str, Any] = ran.json
    return document


@pytest.fixture(scope="module")
def page(played: dict[str, Any]) -> str:
    return Path(played["page"]).read_text()


@pytest.fixture(scope="module")
def afterwards(home: Cli, played: dict[str, Any]) -> Iterator[Cli]:
    assert home("up", "--detach", "--port", "0").code == 0
    yield home
    home("down")


def test_it_loses_no_job_to_killed_and_frozen_workers(played: dict[str, Any]) -> None:
    story = played["storm"]
    assert played["ok"]
    assert story["ended_once"] == story["jobs"]
    assert story["killed"]["held"]
    assert story["frozen"]["held"]
    assert story["stale_writes_refused"] >= 1


def test_it_finds_the_planted_rings(played: dict[str, Any]) -> None:
    rings = played["rings"]["found"]
    assert [ring["accounts"] for ring in rings] == [8, 6, 5]
    assert all(ring["device"] for ring in rings)


def test_its_books_tie(played: dict[str, Any]) -> None:
    books = played["books"]
    assert books["ok"]
    assert books["rules"] == {
        "to the cent": 3950,
        "bank charges taken off": 333,
        "paid in parts": 250,
    }
    assert {side: side_totals["rows"] for side, side_totals in books["sides"].items()} == {
        "left": 5000,
        "right": 5160,
    }
    assert books["sides"]["left"]["breaks"]["no_key"] == 100


def test_it_tidies_the_table(played: dict[str, Any]) -> None:
    lake = played["lake"]
    assert (lake["before"]["files"], lake["after"]["files"]) == (40, 1)
    assert lake["before"]["total"] == lake["after"]["total"]


def test_its_page_shows_every_act(page: str) -> None:
    for words in (
        "8 accounts",
        "never paid",
        "It ties on both sides",
        "584,781.47",
        "40 → 1",
        "18 of 18",
        "lapsed",
    ):
        assert words in page


def test_its_page_is_well_formed_and_asks_for_nothing(page: str) -> None:
    seen = Links()
    seen.feed(page)
    seen.close()
    assert seen.open == []
    assert all(link.startswith("#") for link in seen.links)


def test_afterwards_everything_is_there_to_explore(afterwards: Cli) -> None:
    assert [row["name"] for row in afterwards("mapping", "list", "--json").json] == ["Fraud rings"]
    assert [row["status"] for row in afterwards("snapshot", "list", "--json").json] == ["ready"]
    assert [row["recipe_id"] for row in afterwards("recipe", "list", "--json").json] == [
        "invoices-vs-payments"
    ]
    assert [row["status"] for row in afterwards("run", "list", "--json").json] == ["completed"]
    assert afterwards("table", "health", "lake.shop.events", "--json").code == 0


def test_played_again_it_makes_no_second_mapping_or_recipe(afterwards: Cli) -> None:
    home = Home(afterwards.home)
    with Client(_address(home), home.secret("operator_token")) as ps:
        put = setup.put(ps, home)
    assert (put.mapping_id, put.recipe_id) == (1, "invoices-vs-payments")
    assert len(afterwards("mapping", "list", "--json").json) == 1
    assert len(afterwards("source", "list", "--json").json) == 1


def test_a_running_penstock_is_not_stormed(afterwards: Cli) -> None:
    home = Home(afterwards.home)
    with _stage(home, free=home.running() is None) as stage:
        assert stage.folder != home.folder
        assert stage.folder.parent.is_dir()
    assert not stage.folder.parent.exists()


def _address(home: Home) -> str:
    running = home.running()
    assert running is not None
    return running.url


class Links(HTMLParser):
    """What a page would fetch, and which of its elements are never closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [
            value or "" for name, value in attrs if name in ("href", "src", "action", "data")
        ]
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag, f"</{tag}> closes another element"
