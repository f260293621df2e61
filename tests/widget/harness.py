"""A notebook's front end in small: the widget's own code in a real page, its messages to and from
the real Python side.

The model in the page keeps the widget protocol: an `update` carries the traits that changed, a
`custom` message what was sent. What Python publishes on its comm goes to the page, in order.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from comm.base_comm import BaseComm

from tests.widget.screen import opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest
    from playwright.async_api import Browser

    from penstock.widget.view import GraphView
    from tests.widget.screen import Screen

_FRONT_END = """async ([code, state]) => {
  const heard = {};
  const tell = (name, ...words) => (heard[name] ?? []).forEach((listener) => listener(...words));
  let changed = {};
  const model = {
    get: (name) => state[name],
    set: (name, value) => { state[name] = changed[name] = value; },
    save_changes: () => {
      toPython({ method: "update", state: changed, buffer_paths: [] });
      changed = {};
    },
    send: (content) => toPython({ method: "custom", content }),
    on: (name, listener) => (heard[name] ??= []).push(listener),
    off: (name, listener) => {
      heard[name] = (heard[name] ?? []).filter((other) => other !== listener);
    },
  };
  window.fromPython = (message) => {
    if (message.method === "custom") return tell("msg:custom", message.content, []);
    Object.assign(state, message.state);
    for (const name of Object.keys(message.state)) tell(`change:${name}`);
  };
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const widget = (await import(url)).default;
  window.takeAway = await widget.render({ model, el: document.body });
}"""


class Line(BaseComm):
    """A comm whose messages wait to be carried to the page."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        super().__init__(*args, **options)

    def publish_msg(self, msg_type: str, data: Any = None, *args: Any, **options: Any) -> None:
        if msg_type == "comm_msg":
            self.outbox.put_nowait(data)


def wire(monkeypatch: pytest.MonkeyPatch) -> None:
    """Widgets that are made from now on speak over a `Line`."""
    monkeypatch.setattr("comm.create_comm", Line)


@asynccontextmanager
async def displayed(view: GraphView, browser: Browser) -> AsyncIterator[Screen]:
    line = view.comm
    assert isinstance(line, Line)
    async with opened(browser) as screen:
        await screen.page.goto("about:blank")
        await screen.page.expose_function("toPython", partial(_deliver, line))
        state = {name: value for name, value in view.get_state().items() if name != "_esm"}
        await screen.page.evaluate(_FRONT_END, [str(view._esm), state])
        carrier = asyncio.create_task(_carry(line, screen))
        await screen.settled()
        try:
            yield screen
        finally:
            carrier.cancel()
        assert screen.faults == []


def _deliver(line: Line, data: dict[str, Any]) -> None:
    line.handle_msg({"content": {"data": data}, "buffers": []})


async def _carry(line: Line, screen: Screen) -> None:
    while True:
        await screen.page.evaluate("(message) => fromPython(message)", await line.outbox.get())
