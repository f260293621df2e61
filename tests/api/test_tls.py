"""TLS of the control plane, with a real certificate and real processes."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import ssl
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from penstock.api.serving.tls import server_context
from penstock.kit.errors import InvalidInput
from penstock.kit.security_headers import DEFAULTS, TRANSPORT
from penstock.kit.vault import new_key
from penstock.wiring import settings as config
from penstock.wiring.instances import internal_url, public_url
from tests.api.control_plane import OPERATOR, SERVICE
from tests.api.test_server import free_port

if TYPE_CHECKING:
    from pathlib import Path

HSTS = TRANSPORT[0].decode()
READY_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    certificate: Path
    key: Path


def pair(folder: Path, *, password: bytes | None = None, name: str = "server") -> Pair:
    """A certificate of its own for this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(addresses, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encryption = (
        serialization.NoEncryption()
        if password is None
        else serialization.BestAvailableEncryption(password)
    )
    files = Pair(certificate=folder / f"{name}.pem", key=folder / f"{name}.key")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )
    return files


@pytest.mark.parametrize("processes", [1, 2])
async def test_serve_speaks_https_alone_and_tells_browsers_to_stay_with_it(
    database: str, tmp_path: Path, processes: int
) -> None:
    files, port = pair(tmp_path), free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "PENSTOCK_HOME": str(tmp_path / "home"),
        "PENSTOCK_DATABASE_URL": database,
        "PENSTOCK_SERVICE_TOKEN": SERVICE,
        "PENSTOCK_OPERATOR_TOKEN": OPERATOR,
        "PENSTOCK_SECRET_KEY": new_key(),
    }
    command = ["-m", "penstock.cli", "serve", "--port", str(port), "--processes", str(processes)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command, "--tls-cert", files.certificate, "--tls-key", files.key),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    trust = ssl.create_default_context(cafile=files.certificate)
    url = f"https://127.0.0.1:{port}"
    try:
        async with httpx2.AsyncClient(base_url=url, verify=trust, trust_env=False) as client:
            async with asyncio.timeout(READY_SECONDS):
                while True:
                    try:
                        answer = await client.get("/ready")
                    except httpx2.TransportError:
                        await asyncio.sleep(0.05)
                    else:
                        break
            assert answer.status_code == 200
            answers = [answer, await client.get("/no/such/page"), await client.get("/api/jobs")]
            for answer in answers:
                assert answer.headers[HSTS] == TRANSPORT[1].decode()
                strict = {name.decode(): value.decode() for name, value in DEFAULTS}
                assert strict.items() <= dict(answer.headers).items()
        async with httpx2.AsyncClient(trust_env=False) as client:
            with pytest.raises(httpx2.TransportError):
                await client.get(f"http://127.0.0.1:{port}/ready")
        process.send_signal(signal.SIGTERM)
        output, _ = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0
        assert b"Traceback" not in output
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def settings(certificate: Path, key: Path) -> config.Settings:
    return config.Settings(tls_cert=certificate, tls_key=key)


def test_a_certificate_that_cannot_be_served_is_named_in_a_sentence(tmp_path: Path) -> None:
    files, other = pair(tmp_path), pair(tmp_path, name="other")
    locked = pair(tmp_path, name="locked", password=b"secret")
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    context = server_context(settings(files.certificate, files.key))
    assert context is not None
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    with pytest.raises(InvalidInput, match=r"tls_cert: .*missing.pem cannot be read"):
        server_context(settings(tmp_path / "missing.pem", files.key))
    with pytest.raises(InvalidInput, match=r"tls_key: .* cannot be read"):
        server_context(settings(files.certificate, tmp_path))
    for certificate, key in (
        (broken, files.key),
        (files.certificate, broken),
        (files.certificate, other.key),
        (locked.certificate, locked.key),
    ):
        with pytest.raises(InvalidInput, match="are not a certificate and its key"):
            server_context(settings(certificate, key))


def test_a_certificate_without_its_key_is_refused() -> None:
    with pytest.raises(InvalidInput, match="tls_cert and tls_key are set together"):
        config.load(tls_cert="/etc/hosts")
    assert server_context(config.Settings()) is None


def test_workers_and_graph_servers_find_a_control_plane_with_tls(tmp_path: Path) -> None:
    files = pair(tmp_path)
    changes = {"tls_cert": files.certificate, "tls_key": files.key}
    assert public_url(config.Settings(**changes)) == "https://127.0.0.1:8080"
    named = config.Settings(**changes, url="https://penstock.example")
    assert internal_url(named) == "https://penstock.example", "the certificate is for that name"
    assert internal_url(config.Settings(url="https://penstock.example")) == "http://127.0.0.1:8080"
