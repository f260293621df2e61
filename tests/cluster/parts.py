"""What the test cluster is made of: programs built from Go modules and Debian's packages, each in a
folder of this machine's cache that is named after its version; and the images of this checkout."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from tests.deploy import cluster_schemas, image
from tests.servers import debian
from tests.servers.parts import REPOSITORY, SHARED, Missing, Part, alone, new_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

KUBERNETES_VERSION = "1.35.4"
KUBERNETES_PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)
PROGRAMS = Path(__file__).with_name("programs")
IMAGE_NAMES = {
    "platform": "localhost/penstock:0.1.0",
    "graph-server": "localhost/penstock-graph-server:0.1.0",
}
"""As the chart calls them, if nothing else is said."""
_BUILT = SHARED / "cluster"
_DEBIAN = ["containerd", "runc", "containernetworking-plugins"]
_GO = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath"}
_PROGRESS_SECONDS = 20.0
_console = Console(soft_wrap=True, highlight=False, markup=False, stderr=True)


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(REPOSITORY)}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _sources(folder: Path) -> Iterable[Path]:
    return (
        file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts
    )


def kubernetes() -> Path:
    """The folder of the programs of Kubernetes, and of `pause`."""
    return _BUILT / "kubernetes" / f"{KUBERNETES_VERSION}-{_digest(_sources(PROGRAMS))}"


def packages() -> Path:
    """The root that Debian's packages are unpacked in."""
    return _BUILT / "debian" / "12" / "root"


def images() -> Path:
    """The folder of the images of this checkout, NAME.tar each."""
    files = [
        *_sources(REPOSITORY / "src"),
        image.BUILDER,
        REPOSITORY / "pyproject.toml",
        REPOSITORY / "uv.lock",
    ]
    return _BUILT / "images" / _digest(files)


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A folder to build into, which becomes the target; other versions of it go."""
    with alone(target.parent), new_folder(target) as work:
        for version in target.parent.iterdir():
            if version.is_dir() and version != work:
                shutil.rmtree(version)
        yield work


def _build_kubernetes() -> None:
    with _replacing(kubernetes()) as work:
        version = f"v{KUBERNETES_VERSION}"
        major, minor, _ = KUBERNETES_VERSION.split(".")
        stamps = {
            "k8s.io/component-base/version.gitVersion": version,
            "k8s.io/component-base/version.gitMajor": major,
            "k8s.io/component-base/version.gitMinor": minor,
            "k8s.io/client-go/pkg/version.gitVersion": version,
        }
        _go_build("Kubernetes", PROGRAMS, "./kubernetes", work / "kubernetes", stamps)
        _go_build("pause", PROGRAMS, "./pause", work / "pause", {})
        for name in KUBERNETES_PROGRAMS:
            (work / name).symlink_to("kubernetes")


def _unpack_packages() -> None:
    with _replacing(packages().parent) as work:
        debian.unpack(_DEBIAN, work)
        for name in ("cache", "state"):
            shutil.rmtree(work / name)


def _build_images() -> None:
    with _replacing(images()) as work:
        for name in image.IMAGES:
            _console.print(f"[build] image {name} ...")
            image.build_archive(name, work / f"{name}.tar", name=IMAGE_NAMES[name])


def _go_build(
    title: str, source: Path, package: str, target: Path, stamps: Mapping[str, str]
) -> None:
    """Compiles, at the lowest priority, and says now and then how far it is."""
    _require_go()
    environment = {**os.environ, **_GO}
    deps = subprocess.run(
        ["go", "list", "-deps", package],
        capture_output=True,
        text=True,
        cwd=source,
        env=environment,
        check=False,
    )
    if deps.returncode != 0:
        raise Missing(f"the modules of {title} cannot be fetched: {deps.stderr.strip()[-300:]}")
    total, compiled, reported = len(deps.stdout.split()), 0, time.monotonic()
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())])
    command = ["nice", "-n", "19", "go", "build", "-v", "-ldflags", flags, "-o", str(target)]
    last: deque[str] = deque(maxlen=20)
    with subprocess.Popen(
        [*command, package], stderr=subprocess.PIPE, text=True, cwd=source, env=environment
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            last.append(line)
            compiled += 1
            if time.monotonic() - reported > _PROGRESS_SECONDS:
                reported = time.monotonic()
                _console.print(f"[build] {title}: {compiled} of at most {total} packages")
    if process.returncode != 0:
        output = "".join(last)[-1500:]
        raise Missing(f"{title} cannot be built ({process.returncode}): {output}")


def _require_go() -> None:
    if shutil.which("go") is None:
        raise Missing("there is no Go here; Kubernetes is built with Go 1.26 or newer")


def _in(folder: Path, *names: str) -> bool:
    return all((folder / name).is_file() for name in names)


PARTS = (
    cluster_schemas.HELM,
    image.PART,
    Part(
        name="containerd, runc and the network plugins of Debian",
        present=lambda: _in(packages(), "usr/bin/containerd", "usr/sbin/runc"),
        fetch=_unpack_packages,
    ),
    Part(
        name=f"Kubernetes {KUBERNETES_VERSION}",
        present=lambda: _in(kubernetes(), *KUBERNETES_PROGRAMS, "pause"),
        fetch=_build_kubernetes,
    ),
    Part(
        name="images of this checkout",
        present=lambda: _in(images(), *(f"{name}.tar" for name in image.IMAGES)),
        fetch=_build_images,
    ),
)


def require() -> None:
    """All parts, fetched or built one after another; raises `Missing`."""
    for part in PARTS:
        if not part.present():
            _console.print(f"[build] {part.name} ...")
            started = time.monotonic()
            part.fetch()
            part.require()
            _console.print(f"[build] {part.name}: {time.monotonic() - started:.0f} s")
