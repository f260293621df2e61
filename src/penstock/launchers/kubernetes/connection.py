"""How the API server is reached: the pod's service account, or a kubeconfig file.

Kubernetes replaces the token of a service account, and now and then the CA, while the process runs,
so files are read again when they change.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.kit.errors import InvalidInput
from penstock.kit.watched_file import WatchedFile

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HINT = "Set PENSTOCK_KUBERNETES_KUBECONFIG to a kubeconfig file, or run in a pod."


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Address and credentials of an API server; certificates and keys are PEM."""

    url: str
    namespace: str = "default"
    user: str = "this user"
    token: str | None = field(default=None, repr=False)
    token_file: WatchedFile | None = None
    ca: str | None = None
    ca_file: WatchedFile | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)
    server_name: str | None = None
    verify: bool = True

    def headers(self) -> dict[str, str]:
        token = self.token if self.token_file is None else self.token_file.read()
        return {} if not token else {"Authorization": f"Bearer {token}"}

    def trusted(self) -> str | None:
        """The CA in force; None means the machine's own."""
        return self.ca if self.ca_file is None else self.ca_file.read()

    @property
    def extensions(self) -> dict[str, str]:
        """Of a request: the name that the server's certificate is for, if it is not the URL's."""
        return {} if self.server_name is None else {"sni_hostname": self.server_name}

    def tls(self) -> ssl.SSLContext | bool:
        if not self.url.startswith("https:"):
            return False
        try:
            context = ssl.create_default_context(cadata=self.trusted())
            if not self.verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.certificate is not None and self.key is not None:
                _load_pair(context, self.certificate, self.key)
        except (ssl.SSLError, ValueError) as e:
            raise InvalidInput(
                f"The certificates for {self.url} cannot be used ({e}).", hint=_HINT
            ) from None
        return context


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """The library takes client certificates from files alone; this one has no name."""
    descriptor = os.memfd_create("client-certificate")
    try:
        os.write(descriptor, f"{certificate}\n{key}\n".encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def in_cluster(account: Path = SERVICE_ACCOUNT) -> Connection:
    """As the service account of the pod that this process runs in."""
    host, port = (
        os.environ.get("KUBERNETES_SERVICE_HOST"),
        os.environ.get("KUBERNETES_SERVICE_PORT", "443"),
    )
    if not host or not (account / "token").exists():
        raise InvalidInput("This process is not in a pod with a service account.", hint=_HINT)
    namespace = account / "namespace"
    return Connection(
        url=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        user="the service account of this pod",
        token_file=WatchedFile(account / "token"),
        ca_file=WatchedFile(account / "ca.crt"),
    )


def from_kubeconfig(file: Path, *, context: str | None = None) -> Connection:
    """The current or a named context of a kubeconfig."""
    document = _document(file)
    chosen = context or document.get("current-context")
    if not chosen:
        raise InvalidInput(f"{file} names no current-context.", hint=_HINT)
    entry = _named(file, document, "contexts", "context", chosen)
    cluster = _named(file, document, "clusters", "cluster", entry.get("cluster"))
    user = _named(file, document, "users", "user", entry["user"]) if entry.get("user") else {}
    if "exec" in user or "auth-provider" in user:
        raise InvalidInput(
            f"{file}: user {entry['user']} logs in by a program, which is not supported.",
            hint="Use a token, a token file or a client certificate.",
        )
    if not str(cluster.get("server", "")).startswith(("http://", "https://")):
        raise InvalidInput(f"{file}: cluster {entry.get('cluster')} has no server URL.")
    read = _Reader(file)
    token_file = user.get("tokenFile")
    return Connection(
        url=str(cluster["server"]).rstrip("/"),
        namespace=entry.get("namespace") or "default",
        user=f"user {entry.get('user') or 'without a name'} of {file.name}",
        token=user.get("token"),
        token_file=WatchedFile(read.path(token_file)) if token_file else None,
        ca=read.data(cluster, "certificate-authority-data"),
        ca_file=read.file(cluster, "certificate-authority"),
        certificate=read.pem(user, "client-certificate"),
        key=read.pem(user, "client-key"),
        server_name=cluster.get("tls-server-name"),
        verify=not cluster.get("insecure-skip-tls-verify", False),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Paths in a kubeconfig are relative to its folder."""

    config: Path

    def path(self, name: str) -> Path:
        return self.config.parent / name

    def data(self, entry: Mapping[str, Any], name: str) -> str | None:
        if name not in entry:
            return None
        try:
            return base64.b64decode(entry[name], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError, TypeError):
            raise InvalidInput(f"{self.config}: {name} is not base64.") from None

    def file(self, entry: Mapping[str, Any], name: str) -> WatchedFile | None:
        return (
            WatchedFile(self.path(entry[name]))
            if name in entry and f"{name}-data" not in entry
            else None
        )

    def pem(self, entry: Mapping[str, Any], name: str) -> str | None:
        file = self.file(entry, name)
        return self.data(entry, f"{name}-data") if file is None else file.read()


def _document(file: Path) -> dict[str, Any]:
    # A pod needs no parser of YAML; it comes with the extra `kubernetes`.
    try:
        import yaml
    except ImportError:
        raise InvalidInput(
            "A kubeconfig needs PyYAML.", hint="pip install 'penstock[kubernetes]'"
        ) from None
    try:
        document = yaml.safe_load(file.read_text())
    except OSError as e:
        raise InvalidInput(f"{file} cannot be read ({e.strerror}).", hint=_HINT) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        document = None
    if not isinstance(document, dict) or document.get("kind") != "Config":
        raise InvalidInput(f"{file} is not a kubeconfig.", hint=_HINT)
    return document


def _named(
    file: Path, document: Mapping[str, Any], group: str, kind: str, name: object
) -> dict[str, Any]:
    for entry in document.get(group) or ():
        if entry.get("name") == name:
            fields: dict[str, Any] = entry.get(kind) or {}
            return fields
    raise InvalidInput(f"{file} has no {kind} {name}.", hint=_HINT)
