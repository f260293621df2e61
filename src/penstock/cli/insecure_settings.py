"""Rules that find insecure settings of a deployment, for `penstock doctor`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from penstock.graph_server.settings import GraphServerSettings
from penstock.kit.config import LEAST_SECRET, is_loopback
from penstock.sources.transport import is_unencrypted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic import JsonValue, SecretStr

    from penstock.wiring.settings import Settings

GROUP_AND_OTHERS = 0o077
OTHERS = 0o007
OTHERS_LIST_OR_WRITE = 0o026
"""Read and write for others, write for the group; passing through is what other accounts of ours
need."""
PLACEHOLDERS = (
    "change",
    "default",
    "example",
    "operator",
    "password",
    "penstock",
    "secret",
    "service",
    "test",
    "token",
)
WIDEST_PREFIXES = {4: 8, 6: 32}
TOKENS = ("operator_token", "service_token", "trusted_proxy_secret")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    name: str
    type: str
    config: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    settings: Settings
    home: Path
    client_url: str | None = None
    """Where clients of this environment send their key; None: to this machine."""
    sources: Sequence[SourceFacts] = ()
    graph_servers: GraphServerSettings = field(default_factory=GraphServerSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    name: str
    sentences: Callable[[Deployment], Iterator[str]]
    mend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    name: str
    sentence: str
    mend: str


def warnings(deployment: Deployment) -> list[Warned]:
    return [
        Warned(name=rule.name, sentence=sentence, mend=rule.mend)
        for rule in RULES
        for sentence in rule.sentences(deployment)
    ]


def _headers_without_secret(it: Deployment) -> Iterator[str]:
    if it.settings.trusted_headers and it.settings.trusted_proxy_secret is None:
        yield (
            "X-Username is believed from an address without a secret, so any program there can "
            "name any user."
        )


def _wide_proxies(it: Deployment) -> Iterator[str]:
    for network in it.settings.proxy_networks:
        if network.prefixlen < WIDEST_PREFIXES[network.version]:
            yield f"trusted_proxies has {network}, which is far more than the addresses of a proxy."


def _not_local_only(it: Deployment) -> Iterator[str]:
    if it.settings.local_only is False and is_loopback(it.settings.host):
        yield (
            "local_only is off on a loopback address, so requests that came through a proxy count "
            "as local."
        )


def _plain_http(it: Deployment) -> Iterator[str]:
    if not is_loopback(it.settings.host) and urlsplit(it.settings.url or "").scheme != "https":
        yield (
            f"The control plane listens on {it.settings.host} over plain HTTP, so tokens can be "
            "read on the way."
        )


def _plain_client(it: Deployment) -> Iterator[str]:
    url = urlsplit(it.client_url or "")
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        yield f"Clients here send their key to {url.hostname} over plain HTTP."


def _no_sealing_key(it: Deployment) -> Iterator[str]:
    if it.settings.database_url is not None and it.settings.secret_key is None:
        yield (
            "There is no secret_key, so instances and data sources have nothing that seals their "
            "credentials."
        )


def _weak_tokens(it: Deployment) -> Iterator[str]:
    for name in TOKENS:
        secret = _plain(getattr(it.settings, name))
        if secret is None:
            continue
        if len(secret) < LEAST_SECRET:
            yield f"{name} has fewer than {LEAST_SECRET} characters and can be guessed."
        elif any(word in secret.lower() for word in PLACEHOLDERS):
            yield f"{name} looks like a default or an example."


def _shared_tokens(it: Deployment) -> Iterator[str]:
    values = [value for name in TOKENS if (value := _plain(getattr(it.settings, name))) is not None]
    if len(set(values)) < len(values):
        yield (
            "Two of operator_token, service_token and trusted_proxy_secret are the same, so one "
            "gives the other away."
        )


def _readable_home(it: Deployment) -> Iterator[str]:
    if it.home.is_dir() and it.home.stat().st_mode & OTHERS_LIST_OR_WRITE:
        yield f"Other accounts of this machine can look into {it.home}."


def _readable_secrets(it: Deployment) -> Iterator[str]:
    folder = it.home / "secrets"
    files = [folder, *sorted(folder.iterdir())] if folder.is_dir() else []
    for file in files:
        if file.stat().st_mode & GROUP_AND_OTHERS:
            yield f"Other accounts of this machine may read {file}."


def _readable_token_file(it: Deployment) -> Iterator[str]:
    file = it.settings.operator_token_file
    if file is not None and file.is_file() and file.stat().st_mode & OTHERS:
        yield f"Other accounts of this machine may read the operator token in {file}."


def _rate_limits_off(it: Deployment) -> Iterator[str]:
    for name in (
        "user_requests_per_second",
        "address_requests_per_second",
        "failed_logins_per_minute",
    ):
        if not getattr(it.settings, name):
            yield f"{name} is 0, so nothing limits it."


def _private_sources(it: Deployment) -> Iterator[str]:
    if it.settings.private_sources and not is_loopback(it.settings.host):
        yield (
            "allow_private_sources is on, so users of data sources reach this server's files and "
            "private networks."
        )


def _private_provider(it: Deployment) -> Iterator[str]:
    if it.settings.oidc_allow_private and it.settings.oidc_issuer is not None:
        yield (
            "oidc_allow_private is on, so the addresses that the identity provider names may be "
            "private ones."
        )


def _plain_provider(it: Deployment) -> Iterator[str]:
    for name in ("oidc_issuer", "oidc_jwks_url"):
        if _is_plain_http(getattr(it.settings, name)):
            yield f"{name} is plain HTTP, so whoever is on the way can sign in as anybody."


def _plain_storage(it: Deployment) -> Iterator[str]:
    if it.settings.storage_allow_http or _is_plain_http(it.settings.storage_endpoint):
        yield (
            "The storage may be reached over plain HTTP, so results and keys can be read on the "
            "way."
        )


def _plain_database(it: Deployment) -> Iterator[str]:
    for name in ("database_url", "database_direct_url"):
        url = _plain(getattr(it.settings, name))
        if url is not None and not _is_encrypted_database(url):
            yield (
                f"{name} does not demand TLS (sslmode=require or better) of a database that is "
                "elsewhere."
            )


def _plain_catalogs(it: Deployment) -> Iterator[str]:
    for name, values in it.settings.catalogs.items():
        if _is_plain_http(values.get("uri")):
            yield f"The catalog {name} is reached over plain HTTP."
    for name, values in it.settings.maintenance_engines.items():
        if _is_plain_http(values.get("url")):
            yield f"The engine {name} is reached over plain HTTP."


def _old_keys(it: Deployment) -> Iterator[str]:
    if (
        it.settings.secret_keys_old is not None
        and it.settings.secret_keys_old.get_secret_value().strip()
    ):
        yield "secret_keys_old still opens credentials that were sealed with replaced keys."


def _long_sessions(it: Deployment) -> Iterator[str]:
    if it.settings.session_seconds > 86_400:
        yield (
            f"Browsers stay signed in as operator for {it.settings.session_seconds // 86_400} "
            "days or longer."
        )


def _no_isolation(it: Deployment) -> Iterator[str]:
    if it.graph_servers.isolation == "off":
        yield (
            "Graph engines run without isolation, so the guard alone is between a query and this "
            "machine."
        )


def _unencrypted_sources(it: Deployment) -> Iterator[str]:
    for source in it.sources:
        if is_unencrypted(source.type, source.config):
            yield f"Data source {source.name} may send its credentials without TLS."


RULES = (
    Rule(
        name="trusted headers",
        sentences=_headers_without_secret,
        mend="Set PENSTOCK_TRUSTED_PROXY_SECRET.",
    ),
    Rule(
        name="trusted proxies",
        sentences=_wide_proxies,
        mend="Name the proxy alone in PENSTOCK_TRUSTED_PROXIES.",
    ),
    Rule(name="local only", sentences=_not_local_only, mend="Unset PENSTOCK_LOCAL_ONLY."),
    Rule(
        name="plain HTTP",
        sentences=_plain_http,
        mend="Put a proxy with TLS in front and set PENSTOCK_URL to its https address.",
    ),
    Rule(name="client", sentences=_plain_client, mend="Set PENSTOCK_URL to an https address."),
    Rule(
        name="sealing key",
        sentences=_no_sealing_key,
        mend="PENSTOCK_SECRET_KEY=$(penstock rekey --new-key)",
    ),
    Rule(name="tokens", sentences=_weak_tokens, mend="Make one: openssl rand -base64 32"),
    Rule(name="shared tokens", sentences=_shared_tokens, mend="Give each a secret of its own."),
    Rule(name="home", sentences=_readable_home, mend="chmod go-w,o-r the folder."),
    Rule(
        name="secrets",
        sentences=_readable_secrets,
        mend="chmod -R go= the folder with the secrets.",
    ),
    Rule(name="operator token", sentences=_readable_token_file, mend="chmod o= the file."),
    Rule(
        name="rate limits",
        sentences=_rate_limits_off,
        mend="Unset it, or set it to what users need.",
    ),
    Rule(
        name="private networks",
        sentences=_private_sources,
        mend="Set PENSTOCK_ALLOW_PRIVATE_SOURCES=false.",
    ),
    Rule(
        name="identity provider",
        sentences=_private_provider,
        mend="Set PENSTOCK_OIDC_ALLOW_PRIVATE=false.",
    ),
    Rule(name="identity provider", sentences=_plain_provider, mend="Use its https address."),
    Rule(
        name="storage",
        sentences=_plain_storage,
        mend="Use an https endpoint, and unset PENSTOCK_STORAGE_ALLOW_HTTP.",
    ),
    Rule(
        name="database", sentences=_plain_database, mend="Add sslmode=verify-full to the address."
    ),
    Rule(name="catalogs", sentences=_plain_catalogs, mend="Use https addresses."),
    Rule(
        name="old keys",
        sentences=_old_keys,
        mend="penstock rekey, then unset PENSTOCK_SECRET_KEYS_OLD.",
    ),
    Rule(name="sessions", sentences=_long_sessions, mend="Lower PENSTOCK_SESSION_SECONDS."),
    Rule(name="isolation", sentences=_no_isolation, mend="Unset PENSTOCK_INSTANCE_ISOLATION."),
    Rule(
        name="source",
        sentences=_unencrypted_sources,
        mend="Change its sslmode or tls to one that demands TLS, or its address to https.",
    ),
)


def _plain(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def _is_plain_http(url: str | None) -> bool:
    parts = urlsplit(url or "")
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def _is_encrypted_database(url: str) -> bool:
    """Or one of this machine: a socket, or a loopback address."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    hosts = [
        host
        for text in (parts.netloc.rpartition("@")[2], *query.get("host", []))
        for host in text.split(",")
    ]
    names = [host.rsplit(":", 1)[0].strip("[]") for host in hosts if host]
    if all(name.startswith(("/", "%2F", "%2f")) or is_loopback(name) for name in names):
        return True
    return query.get("sslmode", ["prefer"])[-1] in ("require", "verify-ca", "verify-full")
