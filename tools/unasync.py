"""Writes the synchronous client from the asynchronous one: `python -m tools.unasync`.

The two differ in a handful of words, so one is written by hand and the other by this; a test fails
when they drift.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[1] / "src" / "penstock" / "client"
WORDS = (
    (r"async def (__a)(enter|exit)__", r"def __\2__"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b_async\b", "_sync"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\baiter_lines\b", "iter_lines"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"import (.*)Awaitable, Callable", r"import \1Callable"),
    (r"for item in ([^\n(]+(?:\([^()]*\))?):\n +yield item\n", r"yield from \1\n"),
    (r"\[\s*item\s+for item in ([^\[\]]+?)\s*\]\n", r"list(\1)\n"),
    (r"import anyio\.to_thread\n", ""),
    (r"anyio\.to_thread\.run_sync\(([^,\n]+?), ([^)\n]*)\)", r"\1(\2)"),
    (r"anyio\.to_thread\.run_sync\(([^,\n]+?)\)", r"\1()"),
    (r"\banyio\b", "time"),
    (r"\bhttpx2\.AsyncClient\b", "httpx2.Client"),
    (r"\bAsync([A-Z])", r"\1"),
    (
        r"The asynchronous core\. The synchronous face beside it is written",
        "The synchronous face, written",
    ),
    (r"from it by `python", "from `_async` by `python"),
)


def written(text: str) -> str:
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return _formatted(text.replace("import time\n\nimport time\n", "import time\n"))


def _formatted(text: str) -> str:
    """As ruff writes it."""
    for command in (
        ["check", "--fix-only", "--select", "I,F811", "--quiet"],
        ["format", "--quiet"],
    ):
        run = [
            sys.executable,
            "-m",
            "ruff",
            *command,
            "--stdin-filename",
            "src/penstock/client/_sync/x.py",
            "-",
        ]
        text = subprocess.run(
            run, input=text, capture_output=True, text=True, check=True, cwd=CLIENT.parents[2]
        ).stdout
    return text


def main() -> None:
    folder = CLIENT / "_sync"
    folder.mkdir(exist_ok=True)
    for file in sorted((CLIENT / "_async").glob("*.py")):
        (folder / file.name).write_text(written(file.read_text()))


if __name__ == "__main__":
    main()
