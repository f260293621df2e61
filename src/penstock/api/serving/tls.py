"""TLS served by the control plane itself, from the operator's certificate and key."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.kit.settings import TlsSettings


def server_context(settings: TlsSettings) -> ssl.SSLContext | None:
    """The TLS context, with TLS 1.2 as minimum; None for plain HTTP behind a TLS proxy."""
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None or key is None:
        return None
    for name, file in (("tls_cert", certificate), ("tls_key", key)):
        try:
            file.read_bytes()
        except OSError as e:
            raise InvalidInput(
                f"Setting {name}: {file} cannot be read: {e.strerror}.",
                hint="It must be a PEM file that the control plane's user can read.",
            ) from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, ValueError) as e:
        raise InvalidInput(
            f"Settings tls_cert and tls_key: {certificate} and {key} are not a certificate and its"
            f" key ({getattr(e, 'reason', None) or e}).",
            hint="Both must be PEM, the certificate with its chain, the key without a password.",
        ) from None
    return context


def _no_password() -> str:
    """Called for an encrypted key; without it OpenSSL would prompt at the terminal."""
    raise ValueError("the key is encrypted")
