"""The addresses of agents behind a network, and the headers that are sent to them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from evaltui.core.secrets import Secrets
from evaltui.project.settings import env_values, keep_secret

_URL = re.compile(r"(a2a:)?https?://|a2a:", re.IGNORECASE)
_NO_SCHEME = re.compile(r"(localhost|[\w-]+(\.[\w-]+)+|\[[0-9a-fA-F:]+\]):\d+(/\S*)?")
# As RFC 9110 has the names of headers.
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# They say what the request is; httpx sets them.
_NOT_GIVEN = frozenset(
    ("host", "content-length", "content-type", "transfer-encoding", "connection", "accept")
)


def is_url(word: str) -> bool:
    """Whether a word names an agent behind a network, and no file."""
    return _URL.match(word) is not None


def url_hint(word: str) -> str:
    """A hint for an address without its scheme: `. Did you mean http://localhost:8000/my_app?`; "" for
    others."""
    return f". Did you mean http://{word}?" if _NO_SCHEME.fullmatch(word) else ""


def checked_url(url: str) -> str:
    """The URL without a slash at its end.

    Raises ValueError for one that cannot be asked, and for one with credentials, which it does not repeat.
    """
    prefix = "a2a:" if url[:4].lower() == "a2a:" else ""
    address = url[len(prefix) :]
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"the address of the agent cannot be read: {error}") from error
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "the address of the agent holds credentials. Give them in a variable: "
            "--header-env Authorization=VARIABLE"
        )
    if parts.query or parts.fragment or "?" in address or "#" in address:
        raise ValueError(
            "the address of the agent has a query or a fragment. Remove it; a credential is given in a "
            "variable: --header-env NAME=VARIABLE"
        )
    if parts.scheme not in ("http", "https") or not host or re.search(r"\s", address):
        raise ValueError(
            f"{url} is not the address of an agent, such as {prefix}http://127.0.0.1:8000/my_app"
        )
    return prefix + address.rstrip("/")


def checked_headers(texts: Iterable[str], home: Path) -> tuple[tuple[str, str], ...]:
    """Pairs of a header and its variable, of texts NAME=VARIABLE; from now on their values are secrets.

    Raises ValueError for what is none, and for a variable that is neither set nor in the `.env` of `home`.
    """
    headers = tuple(_header(text) for text in texts)
    if not headers:
        return ()
    values = env_values(home) | dict(os.environ)
    for name, variable in headers:
        value = values.get(variable)
        if not value:
            raise ValueError(
                f"--header-env {name}={_shown(variable)}: {_shown(variable)} is not set. Set it in the "
                f"environment or in {home / '.env'}"
            )
        if not (value.isascii() and value.isprintable()):
            raise ValueError(
                f"--header-env {name}={variable}: the value of {variable} cannot be sent in a header"
            )
    keep_secret(variable for _, variable in headers)
    return headers


def _header(text: str) -> tuple[str, str]:
    name, _, variable = text.partition("=")
    if not (_HEADER.fullmatch(name) and _VARIABLE.fullmatch(variable)):
        raise ValueError(
            "--header-env takes NAME=VARIABLE: a header, and the name of a variable with its value"
        )
    if name.lower() in _NOT_GIVEN:
        raise ValueError(f"--header-env: the header {name} is set by evaltui")
    return name, variable


def _shown(variable: str) -> str:
    # Somebody may have typed the value instead.
    return Secrets().mask_text(variable)
