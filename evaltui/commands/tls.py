"""The certificate and key of a server, with the reasons why they are unusable or browsers refuse them."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

from evaltui.commands.output import UsageError

# By the codes of OpenSSL.
_REFUSALS = {9: "is not valid yet", 10: "has expired", 62: "is not for {}", 64: "is not for {}"}


def load_tls(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """The TLS context of a server. Raises UsageError with the file that cannot be used."""
    cert_text = _read(certificate)
    key_file, key_text = (certificate, cert_text) if key is None else (key, _read(key))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Without a terminal in which somebody could type it, a password is none.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:
        if b"-----BEGIN CERTIFICATE-----" not in cert_text:
            raise UsageError(f"{certificate} has no certificate in PEM") from error
        if b"PRIVATE KEY-----" not in key_text:
            hint = ": give the file of the key, with --tls-key" if key is None else ""
            raise UsageError(f"{key_file} has no key in PEM{hint}") from error
        if b"ENCRYPTED" in key_text:
            raise UsageError(f"{key_file} has a password: give a key without one") from error
        if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            raise UsageError(f"{key_file} is not the key of {certificate}") from error
        raise UsageError(f"{certificate}: {error}") from error
    return context


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


def refusal_of(certificate: Path, context: ssl.SSLContext, host: str) -> str:
    """Why browsers refuse a certificate at a name or an address, whomever they trust; "" where they may not.

    A client that trusts this certificate says so, over no network.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    browser = client.wrap_bio(to_client, to_server, server_hostname=host)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for side in (browser, server, browser):
        try:
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
        except ssl.SSLCertVerificationError as error:
            if (reason := _REFUSALS.get(error.verify_code)) is not None:
                return f"{certificate} {reason.format(host)}: browsers warn of it"
    return ""
