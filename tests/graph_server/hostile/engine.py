"""An engine process that runs what the query names: `ATTEMPT name targets`, as if its library had
been taken over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from penstock.graph_server.engine import engine_work, process
from tests.graph_server.hostile.attempts import Targets, tried

if TYPE_CHECKING:
    from penstock.graph_server.engine.engine_work import Question, Turn


class HostileWork(engine_work.Work):
    def query(self, asked: Question, turn: Turn) -> bytes:
        first, _, rest = asked.text.partition(" ")
        if first != "ATTEMPT":
            return super().query(asked, turn)
        name, _, targets = rest.partition(" ")
        return orjson.dumps({"rows": [[tried(name, Targets.unpack(targets))]]})


if __name__ == "__main__":
    setattr(process, "Work", HostileWork)  # noqa: B010 - it stands in for a taken over library
    process.main()
