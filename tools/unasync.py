"""Writes the synchronous client from the asynchronous one.

The two differ in a handful of words, so one is written by hand and the other by this. It needs
nothing but Python, for a build has nothing else; `tools.generate` calls it.
"""

from __future__ import annotations

import re

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
        r"The asynchronous client, from which `tools.generate` writes the synchronous one\.",
        "The synchronous client.",
    ),
    (r"(?s)\A(.*^import time\n)(.*?)^import time\n", r"\1\2"),
)
"""Applied one after the other; the last drops what was anyio where `time` is imported already."""


def synchronous(text: str) -> str:
    """A module of the asynchronous client as one of the synchronous client."""
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text
