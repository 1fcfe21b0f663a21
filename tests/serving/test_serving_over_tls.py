"""The server with a certificate of its own: the same session over TLS, nothing without it, and what is wrong
with files that are no such certificate."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as written
from cryptography.hazmat.primitives.asymmetric import ec
from distributed.security import Security

from evaltui.commands.output import UsageError
from evaltui.commands.parser import parser_of
from evaltui.commands.serve import _tls, load_tls
from evaltui.serving.access import Access
from evaltui.serving.server import serving
from tests.serving.test_attacks_on_serving import CAT, TOKEN, heard


@pytest.fixture
def certificate(tmp_path):
    """The files of a certificate that nobody but the test trusts, and what trusts it."""
    own = Security.temporary()
    (tmp_path / "desk.pem").write_text(own.tls_scheduler_cert)
    (tmp_path / "desk.key").write_text(own.tls_scheduler_key)
    trusting = ssl.create_default_context(cadata=own.tls_ca_file)
    # Its name is that of no host.
    trusting.check_hostname = False
    words = ["--tls-cert", str(tmp_path / "desk.pem"), "--tls-key", str(tmp_path / "desk.key")]
    return _tls(parser_of("serve").parse([str(tmp_path), *words])), trusting


async def test_a_session_over_tls_and_none_without_it(certificate):
    tls, trusting = certificate
    access = Access("127.0.0.1", TOKEN, is_tls=True)
    async with serving(CAT, access, 0, tls) as url, aiohttp.ClientSession() as client:
        assert url.startswith("https://127.0.0.1:")
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await client.get(url)
        with pytest.raises(aiohttp.ClientError):
            await client.get(url.replace("https:", "http:"))
        async with client.get(f"{url}/?t={TOKEN}", ssl=trusting, allow_redirects=False) as first:
            cookie = first.headers["Set-Cookie"]
        assert cookie.endswith("; Secure") or "; Secure;" in cookie
        headers = {"Cookie": cookie.partition(";")[0]}
        plain = {"Origin": url.replace("https:", "http:")}
        async with client.get(f"{url}/ws", ssl=trusting, headers=headers | plain) as refused:
            assert refused.status == 403
        session = client.ws_connect(
            f"{url}/ws?width=80&height=24", ssl=trusting, headers=headers | {"Origin": url}
        )
        async with session as socket:
            await socket.send_json(["stdin", "over tls\r"])
            await heard(socket, "over tls")


def write_certificate(folder: Path, name: str, *, password: bytes = b"") -> None:
    """`NAME.pem` and `NAME.key`, for desk.example and an address, valid until tomorrow."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "desk")])
    names = [x509.DNSName("desk.example"), x509.IPAddress(ip_address("192.0.2.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now + timedelta(days=-1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(written.Encoding.PEM))
    closed = written.BestAvailableEncryption(password) if password else written.NoEncryption()
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(written.Encoding.PEM, written.PrivateFormat.PKCS8, closed)
    )


@pytest.mark.parametrize(
    ("certificate", "key", "said"),
    [
        ("none.pem", "desk.key", "none.pem: No such file or directory"),
        ("desk.pem", "none.key", "none.key: No such file or directory"),
        ("text", "desk.key", "text has no certificate in PEM"),
        ("desk.pem", None, "desk.pem has no key in PEM: give the file of the key, with --tls-key"),
        ("desk.pem", "text", "text has no key in PEM"),
        ("closed.pem", "closed.key", "closed.key has a password: give a key without one"),
        ("desk.pem", "other.key", "other.key is not the key of desk.pem"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_file(certificate, key, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_certificate(tmp_path, "desk")
    write_certificate(tmp_path, "other")
    write_certificate(tmp_path, "closed", password=b"secret")
    (tmp_path / "text").write_text("nothing of the kind")
    with pytest.raises(UsageError) as refused:
        load_tls(Path(certificate), Path(key) if key else None)
    assert str(refused.value) == said
