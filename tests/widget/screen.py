"""A browser's page with a drawing: where its nodes are, what colour a pixel has, what it asked the
network for."""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from playwright.async_api import Browser, ConsoleMessage, Error, Page

Point = tuple[float, float]
DEADLINE_MS = 20_000

_VIEW = "document.querySelector('.penstock-graph').view"
# A promise, not a function for the page to evaluate again and again: the page's policy forbids
# that.
_HOLDS = """([condition, deadline]) => new Promise((done, fail) => {
  const end = performance.now() + deadline;
  const look = () => {
    if (condition()) done();
    else if (performance.now() > end) fail(new Error("it never held"));
    else requestAnimationFrame(look);
  };
  look();
})"""
_PIXELS = """async ([data, points]) => {
  const picture = await createImageBitmap(await (await fetch(data)).blob());
  const context = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  context.drawImage(picture, 0, 0);
  const hex = (value) => value.toString(16).padStart(2, "0");
  const pixel = (x, y) => [...context.getImageData(x, y, 1, 1).data.slice(0, 3)];
  return points.map(([x, y]) => "#" + pixel(x, y).map(hex).join(""));
}"""


@dataclass(kw_only=True)
class Screen:
    page: Page
    darkroom: Page
    asked: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    async def show(self, path: Path, content: str) -> None:
        """Open a file, offline, and wait until its first drawing has settled."""
        path.write_text(content, encoding="utf-8")
        await self.page.goto(path.as_uri())
        await self.settled()

    async def settled(self) -> None:
        await self.page.wait_for_selector(
            ".penstock-graph[data-layout=settled]", timeout=DEADLINE_MS
        )

    async def position(self, node_id: str) -> Point:
        point = await self.page.evaluate(f"(id) => {_VIEW}.positionOf(id)", node_id)
        return point["x"], point["y"]

    async def zoom(self) -> float:
        ratio: float = await self.page.evaluate(f"() => {_VIEW}.zoomRatio")
        return ratio

    async def holds(self, condition: str) -> None:
        """Wait until an expression of `view` is true."""
        await self.page.evaluate(
            f"([deadline]) => ({_HOLDS})([() => {{ const view = {_VIEW}; return {condition}; }}, "
            "deadline])",
            [DEADLINE_MS],
        )

    async def colours(self, points: Sequence[Point]) -> list[str]:
        return await self.colours_in(await self.page.screenshot(), points)

    async def colours_in(self, png: bytes, points: Sequence[Point]) -> list[str]:
        data = f"data:image/png;base64,{base64.b64encode(png).decode()}"
        whole = [(round(x), round(y)) for x, y in points]
        colours: list[str] = await self.darkroom.evaluate(_PIXELS, [data, whole])
        return colours

    async def click(self, node_id: str, **options: Any) -> None:
        await self.page.mouse.click(*await self.position(node_id), **options)

    def heard(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(message.text)

    def failed(self, error: Error) -> None:
        self.faults.append(str(error))


@asynccontextmanager
async def opened(browser: Browser, **options: Any) -> AsyncIterator[Screen]:
    """A page of a new profile without a network; whatever it asks for is written down, and what it
    does wrong."""
    context = await browser.new_context(
        viewport={"width": 900, "height": 600}, reduced_motion="reduce", **options
    )
    await context.set_offline(True)
    screen = Screen(page=await context.new_page(), darkroom=await context.new_page())
    screen.page.on("request", lambda request: screen.asked.append(request.url))
    screen.page.on("console", screen.heard)
    screen.page.on("pageerror", screen.failed)
    await screen.page.bring_to_front()
    try:
        yield screen
    finally:
        await context.close()
