"""The token and the address errors of commands that listen for connections."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from socket import gaierror

from evaltui.commands.output import UsageError
from evaltui.project.folders import agent_folder
from evaltui.project.settings import env_values, keep_secret
from evaltui.text.values import visible


def token_of(variable: str, agent_dir: Path) -> str:
    """Its value in the environment, else in the `.env` of the agent, a secret from now on.

    Raises UsageError where it is not set.
    """
    value = (env_values(agent_dir) | dict(os.environ)).get(variable, "")
    if not value:
        raise UsageError(
            f"--token-env {visible(variable)}: it is not set. Set it in the environment or in "
            f"{agent_folder(agent_dir) / '.env'}"
        )
    keep_secret([variable])
    return value


def check_token(token: str) -> None:
    """Raises UsageError for a token that no header can have."""
    if not (token.isascii() and token.isprintable()):
        raise UsageError("the token: letters, digits and punctuation of ASCII only")


def address_in_words(error: OSError, host: str, port: int) -> str:
    """The sentence why an address cannot be bound."""
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use; --port 0 takes a free one"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} is not for this user; --port 0 takes a free one"
    if isinstance(error, gaierror):
        return f"--host {host} is not known here: give an address of this machine"
    # Later Pythons give no number.
    if error.errno == errno.EADDRNOTAVAIL or str(error).startswith("could not bind"):
        return f"--host {host} is not an address of this machine"
    return f"{host}:{port}: {error.strerror or error}" if not error.filename else str(error)
