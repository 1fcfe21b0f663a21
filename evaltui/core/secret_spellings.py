"""Spellings of a secret in a text: escaped, quoted for URLs and HTML, in base64 or hexadecimal digits."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus

# No escape changes these.
_RUN = re.compile(r"[0-9A-Za-z_.~-]+")
# A shorter run of them is in texts for other reasons.
_SHORTEST_SIGN = 6
_PERCENT = re.compile(r"%[0-9A-F]{2}")
# In base64, how many characters depend on what stands before a secret, which begins 0, 1 or 2 bytes behind a
# multiple of 3.
_SHARED = (0, 2, 3)


@lru_cache(maxsize=512)
def spellings(secret: str) -> tuple[str, ...]:
    """The secret and its other spellings, the shortest first.

    Escapes may be within each other: JSON in JSON up to three times, and any two of the others.
    """
    once = _escaped([secret], _ESCAPES)
    twice = _escaped(once, _ESCAPES)
    return _shortest_first({secret, *once, *twice, *_escaped(twice, _IN_STRINGS), *_encoded(secret)})


@lru_cache(maxsize=512)
def signs(secret: str) -> tuple[str, ...]:
    """Texts of which one is in every text, and in all JSON, that holds a spelling of the secret."""
    texts = (secret, *_encoded(secret)) if len(_longest_run(secret)) >= _SHORTEST_SIGN else spellings(secret)
    chosen: list[str] = []
    for text in _shortest_first(texts):
        run = _longest_run(text)
        in_json = [run] if len(run) >= _SHORTEST_SIGN else [text, *_escaped([text], _IN_JSON)]
        chosen += [candidate for candidate in in_json if not any(sign in candidate for sign in chosen)]
    return tuple(dict.fromkeys(chosen))


def _shortest_first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(texts, key=lambda text: (len(text), text)))


def _longest_run(text: str) -> str:
    return max(_RUN.findall(text), key=len, default="")


def _encoded(secret: str) -> set[str]:
    """The secret, and the secret in JSON, in base64 and in hexadecimal digits."""
    encoded: set[str] = set()
    for text in {secret, *_escaped([secret], _IN_JSON)}:
        data = text.encode("utf-8", "surrogatepass")
        encoded |= {data.hex(), data.hex().upper(), *_in_base64(data)}
    return encoded


def _escaped(texts: Iterable[str], escapes: Iterable[Callable[[str], str]]) -> set[str]:
    return {escape(text) for escape in escapes for text in texts}


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _ascii_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _repr(text: str) -> str:
    """The text as repr writes it where it has both kinds of quotes; else the single ones are bare."""
    return repr(f'"{text}')[2:-1]


def _ascii(text: str) -> str:
    return ascii(f'"{text}')[2:-1]


def _bytes(text: str) -> str:
    return repr(f'"{text}'.encode("utf-8", "surrogatepass"))[3:-1]


def _bare_quotes(escape: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: escape(text).replace("\\'", "'")


def _slashes(text: str) -> str:
    return _ascii_json(text).replace("/", "\\/")


def _url(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def _path(text: str) -> str:
    return quote(text, errors="surrogatepass")


def _form(text: str) -> str:
    return quote_plus(text, errors="surrogatepass")


def _component(text: str) -> str:
    """Encodes as JavaScript's encodeURIComponent."""
    return quote(text, safe="!'()*", errors="surrogatepass")


def _lower_url(text: str) -> str:
    return _PERCENT.sub(lambda match: match.group().lower(), _url(text))


_HTML = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}


def _html(text: str) -> str:
    return text.translate(_HTML)


def _html_attribute(text: str) -> str:
    return text.translate({**_HTML, ord('"'): "&quot;", ord("'"): "&#x27;"})


def _html_template(text: str) -> str:
    """Escapes as Jinja2."""
    return text.translate({**_HTML, ord('"'): "&#34;", ord("'"): "&#39;"})


_IN_JSON = (_json, _ascii_json)
_IN_STRINGS = (*_IN_JSON, _repr, _bare_quotes(_repr))
_ESCAPES = (
    *_IN_STRINGS,
    _ascii,
    _bare_quotes(_ascii),
    _bytes,
    _bare_quotes(_bytes),
    _slashes,
    _url,
    _path,
    _form,
    _component,
    _lower_url,
    _html,
    _html_attribute,
    _html_template,
)


def _in_base64(data: bytes) -> Iterator[str]:
    """The characters that depend on `data` alone, wherever it begins in what is encoded."""
    for before, shared in enumerate(_SHARED):
        whole = (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(bytes(before) + data).decode()[shared:whole]
            yield from (text, quote(text, safe=""))
