"""The demo's page from made-up results: whatever stands in the data stays text, and a browser
fetches nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from penstock.cli.demo import page
from penstock.cli.demo.books import Books, Break, Rule, Side
from penstock.cli.demo.lake import Kept, Look
from penstock.cli.demo.result import Played
from penstock.cli.demo.rings import Ring, Rings
from penstock.cli.demo.worker_kills import Story
from penstock.client.models import JobInfo
from tests.servers.chromium import browser

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.client.shapes import Attempt

HOSTILE = "<img src=x onerror=alert(1)></script>'\"&"


@pytest.fixture
def played() -> Played:
    return Played(storm=_storm(), rings=_rings(), books=_books(), lake=_lake(), seconds=1.0)


def test_whatever_stands_in_the_data_stays_text(played: Played) -> None:
    written = page.written(played)
    assert "<img" not in written
    assert written.count("</script>") == written.count("<script")
    assert "&lt;img src=x onerror=alert(1)&gt;" in written


def test_a_side_that_does_not_add_up_does_not_tie() -> None:
    good = _books()
    assert good.good
    short = Side(
        rows=2,
        matched=1,
        read_amount=Decimal("3.00"),
        matched_amount=Decimal("1.00"),
        breaks=_breaks("1.99"),
    )
    assert not short.ties


async def test_a_browser_draws_it_in_both_themes_and_asks_for_nothing(
    played: Played, tmp_path: Path
) -> None:
    file = tmp_path / "demo.html"
    file.write_text(page.written(played))
    asked: list[str] = []
    wrong: list[str] = []
    async with browser() as chromium:
        for theme in ("light", "dark"):
            tab = await chromium.new_page(color_scheme=theme)
            tab.on("request", lambda request: asked.append(request.url))
            tab.on("pageerror", lambda error: wrong.append(str(error)))
            tab.on("dialog", lambda dialog: wrong.append(dialog.message))
            await tab.goto(file.as_uri())
            await tab.locator(".graph canvas").first.wait_for()
            assert await tab.locator("main > section").count() == 5
            await tab.close()
    assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {file.as_uri()}
    assert wrong == []


def _rings() -> Rings:
    nodes = {
        f"Account:{i}": {"_id": f"Account:{i}", "_label": "Account", "name": HOSTILE}
        for i in range(3)
    }
    edges = {
        str(i): {
            "_id": str(i),
            "_type": "SENT_MUCH",
            "_src": f"Account:{i}",
            "_dst": f"Account:{(i + 1) % 3}",
        }
        for i in range(3)
    }
    ring = Ring(accounts=3, people=[HOSTILE], passed=1.0, device=HOSTILE, nodes=nodes, edges=edges)
    return Rings(found=[ring], nodes=3, edges=3, seconds_to_graph=1.0)


def _books() -> Books:
    side = Side(
        rows=2,
        matched=1,
        read_amount=Decimal("3.00"),
        matched_amount=Decimal("1.00"),
        breaks=_breaks("2.00"),
    )
    rules = (Rule(name=HOSTILE, matches=1, left=Decimal(1), right=Decimal(1)),)
    return Books(
        run_id=1,
        sides={"left": side, "right": side},
        rules=rules,
        evidence_sha256=HOSTILE,
        seconds=1.0,
    )


def _breaks(amount: str) -> tuple[Break, ...]:
    return (
        Break(
            record=HOSTILE,
            amount=Decimal(amount),
            reason=HOSTILE,
            nearest=HOSTILE,
            difference="",
            days="",
        ),
    )


def _lake() -> Kept:
    before = Look(sizes=(10, 20), manifests=2, rows=1, total=1)
    return Kept(before=before, after=Look(sizes=(30,), manifests=1, rows=1, total=1))


def _storm() -> Story:
    moment = datetime.now(UTC).isoformat()
    attempt: Attempt = {
        "attempt_no": 1,
        "worker": HOSTILE,
        "how": HOSTILE,
        "attempt_id": HOSTILE,
        "claimed_at": moment,
        "ended_at": moment,
        "detail": None,
    }
    job = JobInfo(id=1, status="succeeded", attempts=(attempt, attempt))
    return Story(jobs=[job], killed=HOSTILE, frozen="b")
