"""Debian's Chromium: this machine's, or one unpacked into `.cache/chromium`. Nothing is installed,
no root is needed.

What apt would install beside it is unpacked with it, so that libraries which this machine lacks
come from there too. Debian's packages are known by their signature.
"""

from __future__ import annotations

import os
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from playwright.async_api import async_playwright

from tests.servers import debian
from tests.servers.parts import LOCAL, Part, alone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

CACHE = LOCAL / "chromium"
ROOT = CACHE / "root"
BINARY = ROOT / "usr/lib/chromium/chromium"
FONT_RULES = ("10-hinting-slight", "10-yes-antialias", "45-latin", "49-sansserif", "60-latin")
FLAGS = [
    *(
        "--no-sandbox",
        "--disable-gpu",
        "--use-gl=angle",
        "--use-angle=swiftshader",
        "--enable-unsafe-swiftshader",
    ),
    *(
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ),
    "--disable-quic",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chromium:
    executable: str
    environment: dict[str, str] = field(default_factory=dict)


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A headless browser with an empty profile, which draws WebGL in software."""
    executable = chromium()
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=executable.executable,
            args=FLAGS,
            env={**os.environ, **executable.environment},
        )
        try:
            yield launched
        finally:
            await launched.close()


def chromium() -> Chromium:
    PART.require()
    if installed := shutil.which("chromium"):
        return Chromium(executable=installed)
    return Chromium(executable=str(BINARY), environment=_environment())


def _present() -> bool:
    return shutil.which("chromium") is not None or (CACHE / "unpacked").exists()


def _fetch() -> None:
    with alone(CACHE):
        debian.unpack(["chromium"], CACHE)
        (CACHE / "fonts.conf").write_text(_fonts())
        (CACHE / "unpacked").touch()


PART = Part(name="Chromium", present=_present, fetch=_fetch)


def _fonts() -> str:
    """Fonts and rules of this machine and of what was unpacked; rules that a machine only may
    choose stay out."""
    rules = "".join(
        (
            "<include "
            f'ignore_missing="yes">{root}/usr/share/fontconfig/conf.avail/{name}.conf</include>'
        )
        for name in FONT_RULES
        for root in ("", ROOT)
    )
    folders = (
        f"<dir>/usr/share/fonts</dir><dir>{ROOT}/usr/share/fonts</dir>"
        f"<cachedir>{CACHE}/fonts</cachedir>"
    )
    return f"<fontconfig>{folders}{rules}</fontconfig>"


def _environment() -> dict[str, str]:
    folders = {str(file.parent) for file in ROOT.rglob("*.so*") if file.parent != BINARY.parent}
    return {
        "LD_LIBRARY_PATH": ":".join(sorted(folders)),
        "FONTCONFIG_FILE": str(CACHE / "fonts.conf"),
    }
