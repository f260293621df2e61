"""The cluster's authorities, what they sign, and kubeconfigs that use it."""

from __future__ import annotations

import datetime
import ipaddress
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_VALID = datetime.timedelta(days=2)
_SKEW = datetime.timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: Path
    key: Path


class Authority:
    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _subject(f"{name} authority", ())
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        signed = (
            _builder(self._subject, self._subject, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self.pair = _write(folder, name, signed, self._key)

    def issue(
        self,
        name: str,
        common_name: str,
        *,
        groups: Sequence[str] = (),
        hosts: Sequence[str] = (),
        addresses: Sequence[str] = (),
    ) -> Pair:
        """For a server of these hosts and addresses, and for a client of this name and groups."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(_subject(common_name, groups), self._subject, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        alternatives: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        if alternatives:
            names = x509.SubjectAlternativeName(alternatives)
            builder = builder.add_extension(names, critical=False)
        return _write(self._folder, name, builder.sign(self._key, hashes.SHA256()), key)


def signing_key(folder: Path) -> tuple[Path, Path]:
    """What signs the tokens of service accounts: its private and its public file."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private, public = folder / "accounts.key", folder / "accounts.pub"
    private.write_bytes(_private(key))
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return private, public


def kubeconfig(
    file: Path, user: Pair, authority: Authority, server: str, namespace: str = "default"
) -> Path:
    cluster = {"server": server, "certificate-authority": str(authority.pair.certificate)}
    credentials = {"client-certificate": str(user.certificate), "client-key": str(user.key)}
    context = {"cluster": "test", "user": "test", "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": context}],
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": credentials}],
    }
    file.write_text(json.dumps(document))
    return file


def _subject(common_name: str, groups: Sequence[str]) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
    )


def _write(
    folder: Path, name: str, signed: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> Pair:
    pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
    pair.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(_private(key))
    return pair


def _private(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
