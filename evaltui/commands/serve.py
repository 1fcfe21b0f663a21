"""`evaltui serve`: the workbench in a browser, behind a token."""

from __future__ import annotations

import argparse
import asyncio
import math
import ssl
import sys
from pathlib import Path
from urllib.parse import quote

from evaltui.commands.network import address_in_words, check_token, token_of
from evaltui.commands.output import UsageError, complain, write_lines, write_stderr
from evaltui.project.hosts import is_any, is_loopback
from evaltui.project.packages import MissingExtraError, require_extra
from evaltui.runner.interrupts import INTERRUPTED, run_interruptible
from evaltui.serving.access import Access, new_secret, origin_of
from evaltui.text.figures import counted
from evaltui.text.values import visible

# Characters. Of a token that somebody chose: whoever has it may run the agent.
_MIN_TOKEN = 16
# Further ones are not told: whoever sends them is no help to the user.
_MAX_TOLD = 20


def serve(options: argparse.Namespace) -> int:
    """Serve until it is interrupted; returns the exit code."""
    try:
        require_extra("serve")
        if not options.agent_dir.exists():
            raise UsageError(f"{options.agent_dir} does not exist")
        tls = _tls(options)
        access = _access(options)
        return run_interruptible(_serve(options, access, tls))
    except MissingExtraError as error:
        return complain("serve", error)
    except OSError as error:
        return complain("serve", address_in_words(error, options.host, options.port))


def _access(options: argparse.Namespace) -> Access:
    """Raises UsageError."""
    try:
        origins = tuple(map(origin_of, options.origin))
    except ValueError as error:
        raise UsageError(f"--origin {error}") from error
    token = new_secret()
    if options.token_env is not None:
        token = token_of(options.token_env, options.agent_dir)
        check_token(token)
        if len(token) < _MIN_TOKEN:
            raise UsageError(f"the token is too short: take at least {counted(_MIN_TOKEN, 'character')}")
    access = Access(options.host, token, options.tls_cert is not None, origins)
    if problem := access.problem():
        raise UsageError(problem)
    return access


def _tls(options: argparse.Namespace) -> ssl.SSLContext | None:
    """Raises UsageError."""
    if options.tls_cert is None:
        if options.tls_key is not None:
            raise UsageError("--tls-key needs --tls-cert")
        return None
    return load_tls(options.tls_cert, options.tls_key)


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


async def _serve(options: argparse.Namespace, access: Access, tls: ssl.SSLContext | None) -> int:
    from evaltui.serving.server import Limits, Served, serving

    folder = options.agent_dir.resolve()
    name = visible(folder.name)
    read_only = ["--read-only"] if options.read_only else []
    words = [sys.executable, "-P", "-m", "evaltui", str(folder), *read_only]
    served = Served(words, name, [options.token_env] if options.token_env else [])
    # At a screen on a wall nobody types.
    limits = Limits(idle=math.inf) if options.read_only else Limits()
    async with serving(served, access, options.port, tls, limits, _Refusals()) as url:
        query = "TOKEN" if options.token_env else quote(access.token)
        what = f"{name}, to look at only," if options.read_only else name
        people = "see all of it" if options.read_only else "run the agent"
        # A browser cannot open all addresses of a machine, and only a proxy is to open one without TLS.
        is_for_proxy = is_any(access.host) or not (access.is_tls or is_loopback(access.host))
        first, *others = access.origins if is_for_proxy else (url, *access.origins)
        lines = [
            [(f"serving {what} at ", "bold"), (f"{first}/?t={query}", "bold accent")],
            *([(f"or {origin}/?t={query}", "")] for origin in others),
            [(f"share the address only with people who may {people}; ctrl+c ends all sessions", "muted")],
        ]
        write_lines(lines)
        # Ctrl-C cancels it.
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            write_stderr("evaltui serve: ending sessions…")
    return INTERRUPTED


class _Refusals:
    """Writes each reason for a refusal once."""

    def __init__(self) -> None:
        self._reasons: set[str] = set()

    def __call__(self, reason: str) -> None:
        if reason not in self._reasons and len(self._reasons) < _MAX_TOLD:
            self._reasons.add(reason)
            write_stderr(f"evaltui serve: refused: {reason}")
