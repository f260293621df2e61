"""Debian's Chromium: this machine's, or one unpacked into `.cache/chromium`. Nothing is installed, no root is needed.

What apt would install beside it is unpacked with it, so that libraries which this machine lacks come from there too.
Debian's packages are known by their signature.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import async_playwright

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

CACHE = Path(__file__).parents[2] / ".cache" / "chromium"
ROOT = CACHE / "root"
BINARY = ROOT / "usr/lib/chromium/chromium"
FONT_RULES = ("10-hinting-slight", "10-yes-antialias", "45-latin", "49-sansserif", "60-latin")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-quic",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chromium:
    executable: str
    environment: dict[str, str] = field(default_factory=dict)


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A headless browser with an empty profile, which draws WebGL in software."""
    found = chromium()
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=found.executable, args=FLAGS, env={**os.environ, **found.environment}
        )
        try:
            yield launched
        finally:
            await launched.close()


def chromium() -> Chromium:
    """Skips the test, and says why, where there is none and Debian's archive cannot be asked."""
    if installed := shutil.which("chromium"):
        return Chromium(executable=installed)
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (CACHE / "unpacked").exists():
            _unpack()
        (CACHE / "fonts.conf").write_text(_fonts())
    return Chromium(executable=str(BINARY), environment=_environment())


def _unpack() -> None:
    apt = shutil.which("apt-get") or pytest.skip("there is no Chromium here, and no apt to fetch Debian's")
    for name in ("state/lists/partial", "cache/archives/partial"):
        (CACHE / name).mkdir(parents=True, exist_ok=True)
    options = {
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "1",
        "Dir::Cache": CACHE / "cache",
        "Dir::State": CACHE / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
    }
    own = [apt, *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]
    for words in (["update"], ["install", "-y", "--no-install-recommends", "--download-only", "chromium"]):
        done = subprocess.run([*own, "-qq", *words], capture_output=True, text=True, timeout=250, check=False)
        if done.returncode != 0:
            pytest.skip(f"there is no Chromium here, and apt cannot fetch it: {done.stderr.strip()[-200:]}")
    for package in (CACHE / "cache" / "archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(ROOT)], check=True)
        package.unlink()
    (CACHE / "unpacked").touch()


def _fonts() -> str:
    """Fonts and rules of this machine and of what was unpacked; rules that a machine only may choose stay out."""
    rules = "".join(
        f'<include ignore_missing="yes">{root}/usr/share/fontconfig/conf.avail/{name}.conf</include>'
        for name in FONT_RULES
        for root in ("", ROOT)
    )
    folders = f"<dir>/usr/share/fonts</dir><dir>{ROOT}/usr/share/fonts</dir><cachedir>{CACHE}/fonts</cachedir>"
    return f"<fontconfig>{folders}{rules}</fontconfig>"


def _environment() -> dict[str, str]:
    folders = {str(file.parent) for file in ROOT.rglob("*.so*") if file.parent != BINARY.parent}
    return {"LD_LIBRARY_PATH": ":".join(sorted(folders)), "FONTCONFIG_FILE": str(CACHE / "fonts.conf")}
