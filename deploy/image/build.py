"""Make a container image of Penstock without Docker: from Debian's packages and our wheel.

    python deploy/image/build.py platform --out penstock.tar
    python deploy/image/build.py graph-server --out graph-server.tar

The image `platform` serves, works and migrates; `graph-server` is what the pods of instances run.
One image of both would be larger than 600 MB, and a graph server needs no drivers of databases.

The result is an OCI image in a tar, which `ctr -n k8s.io images import penstock.tar` takes, as do
`skopeo copy oci-archive:…` and `podman load`. It needs apt-get and dpkg-deb (any Debian 12), strip
(binutils) and uv; nothing is installed on this machine. Three layers, so that a
change of Penstock changes the last one alone: Debian's Python, the libraries, Penstock itself.
Order, owners, modes and times of files are fixed: the same packages give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
MOST_MEGABYTES = 600
USER = 10001
_NAMES = {"platform": "penstock", "graph-server": "penstock-graph-server"}
DEBIAN = ("ca-certificates", "libgomp1", "libstdc++6", "media-types", "python3.11", "tzdata")
"""Python, and what the libraries link to; everything that these depend on comes along."""
IMAGES = {
    "platform": (
        "server",
        "nats",
        "worker",
        "reconcile",
        "iceberg",
        "postgres",
        "mysql",
        "bigquery",
        "spark",
    ),
    "graph-server": ("graph", "ryugraph"),
}
"""The extras of each. Left out: a PostgreSQL of its own (`embedded`), and FalkorDB, a server that
PENSTOCK_INSTANCE_FALKORDB_URL names or that `--extra falkordb` adds."""
SITE = "usr/local/lib/python3.11/dist-packages"
"""Where Debian's Python looks by itself."""
UNNEEDED = frozenset({"debconf", "dpkg", "openssl", "perl-base", "tar"})
"""Packages for the installation of others."""
NOT_IN_DEBIAN_LAYER = (
    "etc/apt", "usr/share/doc", "usr/share/info", "usr/share/lintian", "usr/share/locale",
    "usr/share/man", "usr/share/bug", "usr/share/menu", "usr/share/pixmaps",
    "usr/share/applications", "usr/lib/python3.11/test", "usr/lib/python3.11/idlelib",
    "usr/lib/python3.11/tkinter", "usr/lib/python3.11/lib2to3", "usr/lib/python3.11/pydoc_data",
    "usr/lib/python3.11/ensurepip", "usr/lib/x86_64-linux-gnu/gconv", "usr/share/perl5",
    "usr/lib/x86_64-linux-gnu/perl-base", "usr/bin/perl", "usr/share/gcc",
    "usr/lib/x86_64-linux-gnu/audit",
)  # fmt: skip
NOT_IN_LIBRARIES = (
    "bin", "pyarrow/include", "pyarrow/tests", "pyarrow/src", "pyarrow/includes",
    "numpy/_core/include", "scipy/_lib/_uarray/tests", "include", "share",
)  # fmt: skip
NOT_ANYWHERE = frozenset({"__pycache__", "tests", ".lock"})
NOT_SUFFIXES = (".pyc", ".pyi", ".pyx", ".pxd", ".h", ".hpp", ".a")
_INSTALLED = re.compile(
    r"^Inst (?P<name>\S+) \((?P<version>\S+) .*\[(?P<arch>\w+)\]\)", re.MULTILINE
)
COMMANDS = {
    "platform": ("penstock", "from penstock.cli import main"),
    "graph-server": (
        "penstock-graph-server",
        "from penstock.kit.process_startup import loading\n\n"
        "with loading():\n    from penstock.graph_server.process import main",
    ),
}
"""The entry point of each image, and how it finds its `main`."""
ENVIRONMENT = (
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "LANG=C.UTF-8",
    "HOME=/tmp",
    "PENSTOCK_HOME=/tmp/penstock",
    "PENSTOCK_HOST=0.0.0.0",
    "PENSTOCK_WORKER_HOST=0.0.0.0",
    "PYTHONDONTWRITEBYTECODE=1",
    "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One tar, compressed; `diff_id` is the digest of what it unpacks to."""

    blob: Path
    digest: str
    diff_id: str
    unpacked: int
    """Bytes of its files."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("image", choices=sorted(IMAGES))
    parser.add_argument("--out", type=Path, required=True, help="the tar to write")
    parser.add_argument("--name", help="name:tag; without it localhost/penstock[-graph-server]:dev")
    parser.add_argument("--extra", action="append", default=[], help="one more extra of Penstock")
    parser.add_argument("--cache", type=Path, help="keep Debian's packages here")
    parser.add_argument("--level", type=int, default=6, help="of the compression, 1 to 9")
    parser.add_argument("--offline", action="store_true", help="take all from the caches")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="penstock-image-") as scratch:
        return build(options, Path(scratch))


def build(options: argparse.Namespace, scratch: Path) -> int:
    cache, extras = options.cache or scratch / "debs", (*IMAGES[options.image], *options.extra)
    parts = (
        ("Debian's Python", lambda root: debian_layer(root, cache, offline=options.offline)),
        ("libraries", lambda root: library_layer(root, extras, offline=options.offline)),
        ("Penstock", lambda root: penstock_layer(root, options.image)),
    )
    layers = []
    for number, (title, fill) in enumerate(parts):
        root = scratch / f"root-{number}"
        root.mkdir()
        fill(root)
        layers.append(pack(root, scratch / f"layer-{number}.tar.gz", options.level))
        say(f"{title}: {layers[-1].unpacked / 1e6:.0f} MB")
        shutil.rmtree(root)
    megabytes = sum(layer.unpacked for layer in layers) / 1e6
    name = options.name or f"localhost/{_NAMES[options.image]}:dev"
    write_image(options.out, name, COMMANDS[options.image][0], layers, scratch)
    say(
        f"{options.out}: {megabytes:.0f} MB unpacked, {options.out.stat().st_size / 1e6:.0f} packed"
    )
    if megabytes >= MOST_MEGABYTES:
        say(f"This is more than {MOST_MEGABYTES} MB: leave out an extra.")
        return 1
    return 0


# what is in the layers


def debian_layer(root: Path, cache: Path, *, offline: bool) -> None:
    """Python with all that it depends on, from an empty system: no shell, no package manager."""
    for package in debian_packages(cache, offline=offline):
        run("dpkg-deb", "-x", str(package), str(root))
    _merge_usr(root)
    for name in NOT_IN_DEBIAN_LAYER:
        remove(root / name)
    remove(root / "usr/bin/python3")
    for name in ("python", "python3"):
        (root / "usr/bin" / name).symlink_to("python3.11")
    for name in ("dev", "proc", "sys", "tmp"):
        (root / name).mkdir(exist_ok=True)
    _certificates(root)
    etc = root / "etc"
    shell = "/usr/sbin/nologin"
    (etc / "passwd").write_text(
        f"root:x:0:0:root:/root:{shell}\npenstock:x:{USER}:{USER}::/tmp:{shell}\n"
    )
    (etc / "group").write_text(f"root:x:0:\npenstock:x:{USER}:\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    run("/sbin/ldconfig", "-r", str(root))
    remove(root / "var/cache/ldconfig")


def debian_packages(cache: Path, *, offline: bool) -> list[Path]:
    """What apt would install into an empty system, downloaded; apt checks the signatures."""
    archives, state = cache / "archives", cache / "state"
    for folder in (archives / "partial", state / "lists/partial"):
        folder.mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    apt = (
        "apt-get", "-qq", "-o", f"Dir::State={state}", "-o", f"Dir::State::status={state}/status",
        "-o", f"Dir::Cache={cache}", "-o", "APT::Sandbox::User=", "-o", "Debug::NoLocking=1",
        "-o", "APT::Install-Recommends=0",
    )  # fmt: skip
    if not offline:
        run(*apt, "update")
        run(*apt, "-y", "--download-only", "install", *DEBIAN)
    simulated = _INSTALLED.finditer(run(*apt, "--simulate", "install", *DEBIAN))
    return sorted(
        archives / f"{one['name']}_{one['version'].replace(':', '%3a')}_{one['arch']}.deb"
        for one in simulated
        if one["name"] not in UNNEEDED
    )


def _merge_usr(root: Path) -> None:
    """/bin, /lib and the like are links into /usr, as Debian's base has them."""
    for name in ("bin", "lib", "lib64", "sbin"):
        folder, target = root / name, root / "usr" / name
        target.mkdir(parents=True, exist_ok=True)
        if folder.is_dir() and not folder.is_symlink():
            shutil.copytree(folder, target, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(folder)
        folder.symlink_to(f"usr/{name}")


def _certificates(root: Path) -> None:
    """One file of all authorities, as update-ca-certificates makes it."""
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    files = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    bundle.write_text("".join(file.read_text() for file in files))


def library_layer(root: Path, extras: Sequence[str], *, offline: bool) -> None:
    """What `uv.lock` says of the extras, for Debian's Python."""
    asked = [part for extra in extras for part in ("--extra", extra)]
    export = (uv(), "export", "-q", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes")
    requirements = root.with_name("requirements.txt")
    requirements.write_text(run(*export, *asked, cwd=ROOT))
    site = root / SITE
    # Copies: `strip` writes in place, and a linked file is that of every environment, whose running
    # processes then crash.
    run(
        uv(), "pip", "install", "-q", "--link-mode", "copy", "--no-deps",
        "--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_36",
        *(["--offline"] if offline else []), "--target", str(site), "-r", str(requirements),
        cwd=ROOT,
    )  # fmt: skip
    for name in NOT_IN_LIBRARIES:
        remove(site / name)
    for library in (site / "pyarrow").glob("libarrow_*.so*"):
        if library.name.startswith(("libarrow_flight", "libarrow_python_flight")):
            library.unlink()
    for binding in (site / "pyarrow").glob("_flight*.so"):
        binding.unlink()
    _prune(site)


def _prune(site: Path) -> None:
    """Tests, sources, compiled Python and symbols for debuggers; but those of libraries that were
    patched when their wheel was made stay as they are, for `strip` may break them."""
    for folder, folders, files in os.walk(site):
        here = Path(folder)
        for name in [name for name in folders if name in NOT_ANYWHERE]:
            remove(here / name)
            folders.remove(name)
        for name in files:
            if name in NOT_ANYWHERE or name.endswith(NOT_SUFFIXES):
                (here / name).unlink()
            elif ".so" in name and not here.name.endswith(".libs"):
                run("strip", "--strip-unneeded", str(here / name))


def penstock_layer(root: Path, image: str) -> None:
    """Our own wheel, and the command."""
    wheels = root.with_name("wheels")
    run(uv(), "build", "-q", "--wheel", "--out-dir", str(wheels), cwd=ROOT)
    [wheel] = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root / SITE)
    _prune(root / SITE)
    commands = root / "usr/local/bin"
    commands.mkdir(parents=True)
    name, imports = COMMANDS[image]
    (commands / name).write_text(
        f"#!/usr/bin/python3.11\nimport sys\n\n{imports}\n\nsys.exit(main())\n"
    )
    (commands / name).chmod(0o755)


# the image


def pack(root: Path, target: Path, level: int = 6) -> Layer:
    """The folder as a compressed tar whose bytes depend on names, modes and contents alone."""
    plain, unpacked = hashlib.sha256(), 0
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=level, mtime=0) as packed,
        tarfile.open(fileobj=Both(packed, plain), mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in entries(root):
            member = archive.gettarinfo(path, arcname=path.relative_to(root).as_posix())
            member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
            member.mode = _mode(member)
            if member.islnk():  # a second name of a file that is in the archive: a file as well
                member.type, member.linkname, member.size = tarfile.REGTYPE, "", path.stat().st_size
            unpacked += member.size
            if member.isreg():
                with path.open("rb") as content:
                    archive.addfile(member, content)
            else:
                archive.addfile(member)
    return Layer(
        blob=target,
        digest=hashlib.sha256(target.read_bytes()).hexdigest(),
        diff_id=plain.hexdigest(),
        unpacked=unpacked,
    )


class Both:
    """Writes to the file and into the digest."""

    def __init__(self, file: gzip.GzipFile, digest: hashlib._Hash) -> None:
        self._file, self._digest = file, digest

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        return self._file.write(data)


def _mode(member: tarfile.TarInfo) -> int:
    """Readable for everybody and writable for nobody but root; no set-uid programs."""
    if member.name == "tmp":
        return 0o1777
    return 0o755 if member.isdir() or member.mode & 0o100 else 0o644


def entries(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from entries(path)


def write_image(out: Path, name: str, command: str, layers: Sequence[Layer], scratch: Path) -> None:
    config = document({
        "architecture": "amd64",
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": list(ENVIRONMENT),
            "Entrypoint": [command],
            "Cmd": ["serve"] if command == "penstock" else [],
            "WorkingDir": "/tmp",
            "ExposedPorts": {"8080/tcp": {}, "9090/tcp": {}, "8000/tcp": {}},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one.diff_id}" for one in layers]},
    })  # fmt: skip
    packed = "application/vnd.oci.image.layer.v1.tar+gzip"
    manifest = document({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("application/vnd.oci.image.config.v1+json", config),
        "layers": [
            {"mediaType": packed, "digest": f"sha256:{one.digest}", "size": one.blob.stat().st_size}
            for one in layers
        ],
    })  # fmt: skip
    labels = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name.rpartition(":")[2],
    }
    platform = {"architecture": "amd64", "os": "linux"}
    described_manifest = described("application/vnd.oci.image.manifest.v1+json", manifest)
    index = document({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described_manifest | {"platform": platform, "annotations": labels}],
    })  # fmt: skip
    blobs = {hashlib.sha256(blob).hexdigest(): blob for blob in (config, manifest)}
    unfinished = scratch / "image.tar"
    with tarfile.open(unfinished, "w", format=tarfile.PAX_FORMAT) as archive:
        put(archive, "oci-layout", document({"imageLayoutVersion": "1.0.0"}))
        put(archive, "index.json", index)
        for digest, blob in sorted(blobs.items()):
            put(archive, f"blobs/sha256/{digest}", blob)
        for layer in layers:
            member = tarfile.TarInfo(f"blobs/sha256/{layer.digest}")
            member.size = layer.blob.stat().st_size
            with layer.blob.open("rb") as content:
                archive.addfile(member, content)
    shutil.move(unfinished, out)


def put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, BytesIO(data))


def document(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def described(media_type: str, blob: bytes) -> dict[str, object]:
    digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
    return {"mediaType": media_type, "digest": digest, "size": len(blob)}


# the machine


def uv() -> str:
    own = ROOT / ".cache/bootstrap/bin/uv"
    program = str(own) if own.is_file() else shutil.which("uv")
    if program is None:
        raise SystemExit("uv is not here; ./bootstrap.sh gets it")
    return program


def run(*command: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit(f"{command[0]} is not here; this needs a Debian 12") from None
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)[:200]} failed:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def say(text: str) -> None:
    sys.stderr.write(f"[image] {text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
