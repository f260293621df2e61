"""Makes the documentation's pictures from a demo page: `python -m tools.screenshot
penstock-demo.html`.

Each picture is a piece of the page in one of its two themes, as Chromium draws it, in as few
colours as it needs.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.servers.chromium import browser

if TYPE_CHECKING:
    from playwright.async_api import Browser, FloatRect

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SETTLED_MS = 6000
"""How long the drawing of a graph is given to come to rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """`parts` are the elements that it shows, from the first to the last."""

    name: str
    parts: tuple[str, ...]
    theme: Literal["light", "dark"] = "light"


TAKEN = (
    Picture(name="demo.png", parts=("h1", ".graph")),
    Picture(name="demo-dark.png", parts=("h1", ".graph"), theme="dark"),
    Picture(name="books.png", parts=("#books h2", "#books .ok")),
    Picture(name="lake.png", parts=("#lake",)),
    Picture(name="storm.png", parts=("#storm svg",)),
)


async def take(page: Path, folder: Path) -> list[Path]:
    async with browser() as chromium:
        return [await _take(chromium, page, picture, folder / picture.name) for picture in TAKEN]


async def _take(chromium: Browser, page: Path, picture: Picture, file: Path) -> Path:
    tab = await chromium.new_page(
        viewport={"width": 1180, "height": 900}, color_scheme=picture.theme
    )
    await tab.goto(page.as_uri())
    await tab.wait_for_timeout(SETTLED_MS if ".graph" in picture.parts else 500)
    boxes = [box for part in picture.parts if (box := await tab.locator(part).first.bounding_box())]
    await tab.screenshot(path=file, full_page=True, clip=_around(boxes))
    await tab.close()
    return file


def _around(boxes: list[FloatRect]) -> FloatRect:
    left, top = min(box["x"] for box in boxes) - 24, min(box["y"] for box in boxes) - 24
    right = max(box["x"] + box["width"] for box in boxes) + 24
    bottom = max(box["y"] + box["height"] for box in boxes) + 24
    return {
        "x": max(left, 0),
        "y": max(top, 0),
        "width": right - max(left, 0),
        "height": bottom - max(top, 0),
    }


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for file in asyncio.run(take(Path(sys.argv[1]).absolute(), PICTURES)):
        print(f"{file} {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
