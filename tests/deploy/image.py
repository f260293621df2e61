"""Our images, built from the caches that `make fetch` fills, unpacked and run without Docker."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.servers.parts import REPOSITORY, SHARED, Part, alone, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import ModuleType

BUILDER = REPOSITORY / "deploy/image/build.py"
IMAGES = ("platform", "graph-server")
_BUILD_SECONDS = 280

_ENTER = """
set -e
root=$1 user=$2; shift 2
mount --bind "$root" "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do mkdir -p "$root$1"; mount --bind "$1" "$root$1"; shift; done
shift
mount -o remount,ro,bind "$root"
exec /usr/sbin/chroot $user "$root" "$@"
"""


def _cache() -> Path:
    locked = hashlib.sha256((REPOSITORY / "uv.lock").read_bytes())
    return SHARED / f"image-{locked.hexdigest()[:16]}"


def _fetch() -> None:
    """Debian's packages, and every library in uv's cache; the images themselves are thrown away."""
    with alone(SHARED), tempfile.TemporaryDirectory() as scratch:
        debs = SHARED / "image-debs"
        for image in IMAGES:
            command = [sys.executable, str(BUILDER), image, "--out", f"{scratch}/{image}.tar"]
            run([*command, "--cache", str(debs)], f"the image {image} cannot be built")
        for old in SHARED.glob("image-????????????????"):
            shutil.rmtree(old)
        _cache().mkdir()


PART = Part(name="packages of the images", present=lambda: _cache().is_dir(), fetch=_fetch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    archive: Path
    root: Path
    config: dict[str, Any]
    said: str
    """What the builder said."""

    def inside(self, *command: str, binds: Sequence[Path] = ()) -> list[str]:
        """The command in the image, as its user, where only /tmp and the binds can be written."""
        is_root = os.geteuid() == 0
        unshare = [shutil.which("unshare") or "unshare", "--mount", "--propagation", "private"]
        user = f"--userspec={self.config['User']}" if is_root else ""
        return [
            *(unshare if is_root else [*unshare, "--user", "--map-root-user"]),
            *("/bin/sh", "-c", _ENTER, "sh", str(self.root), user),
            *(str(path) for path in binds),
            *("--", *command),
        ]

    @property
    def environment(self) -> dict[str, str]:
        return dict(entry.split("=", 1) for entry in self.config["Env"])

    def give(self, folder: Path) -> None:
        """The folder and what is in it to the user of the image."""
        if os.geteuid() == 0:
            user, _, group = self.config["User"].partition(":")
            for path in (folder, *folder.rglob("*")):
                os.chown(path, int(user), int(group))


def build(image: str, folder: Path) -> Image:
    archive = folder / f"{image}.tar"
    output = build_archive(image, archive)
    root = folder / image
    return Image(archive=archive, root=root, config=unpack(archive, root), said=output)


def build_archive(image: str, archive: Path, *, name: str | None = None) -> str:
    """The image alone; what the builder said."""
    PART.require()
    done = subprocess.run(
        [
            *(sys.executable, str(BUILDER), image, "--out", str(archive), "--level", "1"),
            *("--offline", "--cache", str(SHARED / "image-debs")),
            *(() if name is None else ("--name", name)),
        ],
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@cache
def builder() -> ModuleType:
    """The script that builds the images, as a module."""
    spec = importlib.util.spec_from_file_location("image_builder", BUILDER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def unpack(archive: Path, root: Path) -> dict[str, Any]:
    """As a container runtime does it: every digest is checked. Returns the configuration."""
    root.mkdir()
    with tarfile.open(archive) as layout:

        def blob(descriptor: dict[str, Any]) -> bytes:
            name = descriptor["digest"].replace(":", "/")
            file = layout.extractfile(f"blobs/{name}")
            assert file is not None
            data = file.read()
            assert f"sha256:{hashlib.sha256(data).hexdigest()}" == descriptor["digest"]
            assert len(data) == descriptor["size"]
            return data

        index_file = layout.extractfile("index.json")
        assert index_file is not None
        [entry] = json.load(index_file)["manifests"]
        manifest = json.loads(blob(entry))
        config: dict[str, Any] = json.loads(blob(manifest["config"]))
        for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
            _unpack_layer(blob(layer), diff_id, root)
    settings: dict[str, Any] = config["config"]
    return settings


def _unpack_layer(packed: bytes, diff_id: str, root: Path) -> None:
    plain = gzip.decompress(packed)
    assert f"sha256:{hashlib.sha256(plain).hexdigest()}" == diff_id
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        archive.extractall(root, filter="fully_trusted")
