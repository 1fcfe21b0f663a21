"""Masking of keys and passwords in every text that is stored or reported."""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, cached_property, lru_cache, partial
from itertools import chain
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

# No escape changes these.
_CHARACTER_RUN = re.compile(r"[0-9A-Za-z_.~-]+")
# A shorter run of them is in texts for other reasons.
_MIN_SIGN_LENGTH = 6
_PERCENT = re.compile(r"%[0-9A-F]{2}")
# In base64, how many characters depend on what stands before a secret, which begins 0, 1 or 2 bytes behind a
# multiple of 3.
_BASE64_OFFSETS = (0, 2, 3)


@lru_cache(maxsize=512)
def spellings(secret: str) -> tuple[str, ...]:
    """The secret and its other spellings, the shortest first.

    Escapes may be nested: JSON in JSON up to three times, and any two others.
    """
    once = _escape_all([secret], _ESCAPES)
    twice = _escape_all(once, _ESCAPES)
    return _shortest_first({secret, *once, *twice, *_escape_all(twice, _STRING_ESCAPES), *_encodings(secret)})


@lru_cache(maxsize=512)
def signs(secret: str) -> tuple[str, ...]:
    """Texts of which at least one is in every text or JSON with a spelling of the secret."""
    texts = (
        (secret, *_encodings(secret)) if len(_longest_run(secret)) >= _MIN_SIGN_LENGTH else spellings(secret)
    )
    chosen: list[str] = []
    for text in _shortest_first(texts):
        run = _longest_run(text)
        in_json = [run] if len(run) >= _MIN_SIGN_LENGTH else [text, *_escape_all([text], _JSON_ESCAPES)]
        chosen += [candidate for candidate in in_json if not any(sign in candidate for sign in chosen)]
    return tuple(dict.fromkeys(chosen))


def _shortest_first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(texts, key=lambda text: (len(text), text)))


def _longest_run(text: str) -> str:
    return max(_CHARACTER_RUN.findall(text), key=len, default="")


def _encodings(secret: str) -> set[str]:
    """The secret, also in JSON, in base64 and in hexadecimal digits."""
    encoded: set[str] = set()
    for text in {secret, *_escape_all([secret], _JSON_ESCAPES)}:
        data = text.encode("utf-8", "surrogatepass")
        encoded |= {data.hex(), data.hex().upper(), *_base64_texts(data)}
    return encoded


def _escape_all(texts: Iterable[str], escapes: Iterable[Callable[[str], str]]) -> set[str]:
    return {escape(text) for escape in escapes for text in texts}


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _ascii_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _repr(text: str) -> str:
    """The text in repr's spelling with both kinds of quotes, else with bare single quotes."""
    return repr(f'"{text}')[2:-1]


def _ascii(text: str) -> str:
    return ascii(f'"{text}')[2:-1]


def _bytes(text: str) -> str:
    return repr(f'"{text}'.encode("utf-8", "surrogatepass"))[3:-1]


def _bare_quotes(escape: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: escape(text).replace("\\'", "'")


def _slashes(text: str) -> str:
    return _ascii_json(text).replace("/", "\\/")


def _lower_url(text: str) -> str:
    return _PERCENT.sub(lambda match: match.group().lower(), quote(text, safe="", errors="surrogatepass"))


def _html(quotes: Mapping[str, str]) -> Callable[[str], str]:
    entities = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", **quotes})
    return lambda text: text.translate(entities)


_JSON_ESCAPES = (_json, _ascii_json)
_STRING_ESCAPES = (*_JSON_ESCAPES, _repr, _bare_quotes(_repr))
_ESCAPES: tuple[Callable[[str], str], ...] = (
    *_STRING_ESCAPES,
    _ascii,
    _bare_quotes(_ascii),
    _bytes,
    _bare_quotes(_bytes),
    _slashes,
    # Python's two, and JavaScript's encodeURIComponent.
    *(partial(quote, safe=safe, errors="surrogatepass") for safe in ("", "/", "!'()*")),
    partial(quote_plus, errors="surrogatepass"),
    _lower_url,
    # Of a text, of an attribute, and as Jinja2 does it.
    _html({}),
    _html({'"': "&quot;", "'": "&#x27;"}),
    _html({'"': "&#34;", "'": "&#39;"}),
)


def _base64_texts(data: bytes) -> Iterator[str]:
    """The characters of a base64 text that depend on `data` only, for each offset."""
    for before, shared in enumerate(_BASE64_OFFSETS):
        whole = (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(bytes(before) + data).decode()[shared:whole]
            yield from (text, quote(text, safe=""))


T = TypeVar("T")

_SECRET_NAME = re.compile(
    r"key|token|secret|passw|passphrase|credential|bearer|private|(_|^)(pwd|pat|dsn)$", re.IGNORECASE
)
# Of settings, which are numbers and words.
_HARMLESS_NAME = re.compile(
    r"max|limit|budget|count|size|tokenizer|keyboard|keymap|^pwd$|^oldpwd$", re.IGNORECASE
)
# A shorter value may be a word that texts have for other reasons.
_MIN_SECRET = 8
# Of a value that is known to be one.
_MIN_DISTINCT = 4

# What looks like nothing but a key of Google, OpenAI, GitHub, GitLab, Slack, AWS, or a JSON web token.
_KEY = (
    r"AIza[\w-]{35}|ya29\.[\w-]{20,}|sk-[\w-]{20,}|gh[pousr]_[0-9A-Za-z]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|(?:xox[a-z]|xapp)-[0-9A-Za-z-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"
    r"|eyJ[\w-]{6,}\.eyJ[\w-]{4,}(?:\.[\w-]*)?"
)
_PRIVATE_KEY = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
_PASSWORD = r"(?<=:)(?!<password>@)[^\s/@\"'<>]+(?=@)"
_BEARER = r"(?=[^\s\"']*\d)[\w.~+/=-]{12,}"
_SHAPES = re.compile(
    rf"(?P<private>{_PRIVATE_KEY})|(?<![0-9A-Za-z])(?P<key>{_KEY})"
    # The user may be seen, as in `postgres://shop:<password>@db`.
    rf"|(?P<user>://[^\s/:@\"'<>]*:){_PASSWORD}|(?P<scheme>\b[Bb]earer\s+){_BEARER}"
)
# One of these is in each of the above: looking for them is fast. In JSON, what is before a key may be `\n`.
# By what all of a group have in them: a text mostly lacks it, and a single letter is found fastest.
_SIGNS = {
    "A": ("PRIVATE KEY", "AIza", "AKIA", "ASIA"),
    "J": ("eyJ",),
    "/": ("://",),
    "gh": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    "-": ("sk-", "glpat-", "xapp-"),
    "x": ("xox",),
    "_": ("github_pat_",),
    "9": ("ya29.",),
    "r": ("earer",),
}
_MAYBE = re.compile(rf"PRIVATE KEY|{_KEY}|://[^\s/:@]*:[^\s/@]+@|[Bb]earer")
# What JSON has for a character, which may be a letter of a key.
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|[^/])")

_OPEN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:(?!.*-----END ).*)")
# The key of a certificate has some 3,000 characters.
_MAX_PRIVATE_KEY_LENGTH = 16_000

# Fields that name a case, a set or a file are no text of an agent, and are looked up by.
_NAMES = frozenset({"eval_id", "eval_set_id", "path", "case_path", "config_path", "passed_over", "log"})
HOLDS_TEXT = {"holds text": True}
"""Metadata of a field with such a name that holds a text of an agent all the same."""


def _has_sign(text: str) -> bool:
    for common, these in _SIGNS.items():
        if common in text:
            for sign in these:
                if sign in text:
                    return True
    return False


class Secrets:
    """Masks secrets: values of variables such as GOOGLE_API_KEY become `<NAME>`; texts with the form of a key
    or password become `<key>`, `<private key>` or `<password>`.

    Values of variables in `named` are secrets with any name, also without their scheme: for `Bearer abcd`,
    also `abcd`. Values are masked in all their `spellings`. Masks stay unchanged.
    """

    _masks_shapes = True

    def __init__(self, *environments: Mapping[str, str], named: Collection[str] = ()) -> None:
        self._names_by_value = {
            value: name
            for environment in environments
            for name, value in sorted(environment.items())
            if is_secret(name, value)
        }
        for environment in environments:
            for name in sorted(named):
                value = environment.get(name, "")
                self._names_by_value |= {
                    secret: name
                    for secret in (value, value.rpartition(" ")[2])
                    if len(secret) >= _MIN_DISTINCT
                }
        names = map(re.escape, sorted({*self._names_by_value.values(), "key", "private key", "password"}))
        self._marks = re.compile(f"<(?:{'|'.join(names)})>")
        self._signs = tuple(dict.fromkeys(chain.from_iterable(map(signs, self._names_by_value))))

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """The name of each spelling, the longest first, because one may be the start of another."""
        # A value is called by its own name where it is also how another one is spelled.
        names = {
            text: name for value, name in self._names_by_value.items() for text in spellings(value)
        } | self._names_by_value
        return {text: names[text] for text in sorted(names, key=len, reverse=True)}

    @cached_property
    def _spellings_by_letter(self) -> dict[str, list[str]]:
        by_letter: dict[str, list[str]] = {}
        for text in self._spellings:
            by_letter.setdefault(text[0], []).append(text)
        return by_letter

    @cached_property
    def _letters(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(self._spellings))

    @cached_property
    def named(self) -> Secrets:
        """Masks only known values, each with its own name, because one `<key>` is like another."""
        named = copy.copy(self)
        named._masks_shapes = False
        return named

    def has_marks(self, text: str) -> bool:
        """Whether a text may contain a mask."""
        return "<" in text and self._marks.search(text) is not None

    def mask_text(self, text: str) -> str:
        """The text with secrets masked; the same object for a text without secrets."""
        if (values := self._values_in(text)) is not None:
            text = values.sub(self._name, text)
        if self._masks_shapes and _has_sign(text):
            text = _SHAPES.sub(_mark_of_match, text)
        return text

    def mask_pieces(self, pieces: Sequence[str], unsettled: int = 0) -> list[str]:
        """Consecutive texts with secrets masked, including secrets that are cut over several of them.

        The mask is in the text in which the secret starts. The last `unsettled` characters are unchanged.
        """
        masked = list(pieces)
        if (values := self._values_in("".join(masked))) is not None:
            masked = _masked_pieces(masked, values, self._name, unsettled)
        if _has_sign("".join(masked)):
            masked = _masked_pieces(masked, _SHAPES, _mark_of_match, unsettled)
        return masked

    def open_tail(self, text: str) -> int:
        """Number of characters at the end of a text that may be the start of a secret: a known value or a
        private key."""
        key_start = text.rfind("-----BEGIN ") if "PRIVATE KEY-----" in text else -1
        if (
            key_start >= 0
            and len(text) - key_start < _MAX_PRIVATE_KEY_LENGTH
            and _OPEN_KEY.fullmatch(text, key_start)
        ):
            return len(text) - key_start
        if not self._names_by_value or text[-1:] not in self._letters:
            return 0
        values = self._values_in(text)
        whole = [match.span() for match in values.finditer(text)] if values is not None else []
        longest = len(next(iter(self._spellings)))
        for start in range(max(0, len(text) - longest + 1), len(text)):
            if any(first < start < end for first, end in whole):
                continue
            for spelling in self._spellings_by_letter.get(text[start], ()):
                if spelling.startswith(text[start:]) and spelling != text[start:]:
                    return len(text) - start
        return 0

    def secrets_in(self, text: str) -> tuple[str, ...]:
        """The secrets in a text, in order."""
        values = self._values_in(text)
        known_values = values.findall(text) if values is not None else []
        return (*known_values, *(match.group() for match in _SHAPES.finditer(text)))

    def _values_in(self, text: str) -> re.Pattern[str] | None:
        """The pattern of the spellings in a text; None for none."""
        for sign in self._signs:
            if sign in text:
                there = [re.escape(spelling) for spelling in self._spellings if spelling in text]
                return re.compile("|".join(there)) if there else None
        return None

    def _name(self, match: re.Match[str]) -> str:
        return f"<{self._spellings[match.group()]}>"

    def may_hold_secret(self, text: str) -> bool:
        """Whether JSON text may contain a secret; fast, with false positives but without false negatives."""
        # Every line of a log comes by: a loop takes half as long as a generator.
        for sign in self._signs:
            if sign in text:
                return True
        return _has_sign(text) and _MAYBE.search(_ESCAPE.sub("_", text)) is not None

    def mask_json(self, text: str, write: Callable[[Any], str]) -> str:
        """The text of JSON data with secrets masked; `write` serializes changed data."""
        if not self.may_hold_secret(text):
            return text
        data = json.loads(text)
        masked = self.masked(data)
        return text if masked is data else write(masked)

    def without(self, data: Any) -> Any:
        """JSON data with secrets masked; the same object without secrets. Raises TypeError or ValueError for
        other data."""
        text = json.dumps(data, ensure_ascii=False)
        clean = self.mask_json(text, json.dumps)
        return data if clean is text else json.loads(clean)

    def masked(self, data: T) -> T:
        """Data with secrets masked in texts of JSON, dataclasses and models; the same object without secrets.

        Fields of dataclasses, named tuples and models with ids of cases and sets, or paths, are not masked.
        """
        masked: T = self._masked(data)
        return masked

    def _masked(self, data: Any) -> Any:
        # A report of many cases asks for little else.
        if type(data) is str:
            return self.mask_text(data)
        if data is None or type(data) in _WITHOUT_TEXT or isinstance(data, Enum):
            return data
        if isinstance(data, str):
            return self.mask_text(data)
        if isinstance(data, Mapping):
            return self._masked_mapping(data)
        if hasattr(data, "_asdict"):
            items = data._asdict().items()
            changes = self._changes({name: value for name, value in items if name not in _NAMES})
            return data._replace(**changes) if changes else data
        if isinstance(data, list | tuple):
            new = [self._masked(item) for item in data]
            if all(item is old for item, old in zip(new, data, strict=True)):
                return data
            return type(data)(new)
        if dataclasses.is_dataclass(data) and not isinstance(data, type):
            changes = self._changes({name: getattr(data, name) for name in _names_in(type(data))})
            return dataclasses.replace(data, **changes) if changes else data
        if hasattr(data, "model_copy"):
            changes = self._changes({name: value for name, value in data if name not in _NAMES})
            return data.model_copy(update=changes) if changes else data
        return data

    def _masked_mapping(self, data: Mapping[Any, Any]) -> Mapping[Any, Any]:
        changes = self._changes(data)
        if not changes and all(self._masked(key) is key for key in data if isinstance(key, str)):
            return data
        return {
            (self.mask_text(key) if isinstance(key, str) else key): changes.get(key, value)
            for key, value in data.items()
        }

    def _changes(self, data: Mapping[Any, Any]) -> dict[Any, Any]:
        """The values of a mapping that change when they are masked."""
        new = {name: self._masked(value) for name, value in data.items()}
        return {name: value for name, value in new.items() if value is not data[name]}


_WITHOUT_TEXT = (bool, int, float)


@cache
def _names_in(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that may contain secrets."""
    fields = (field for field in dataclasses.fields(kind) if field.init)
    return tuple(field.name for field in fields if field.name not in _NAMES or field.metadata == HOLDS_TEXT)


def is_secret(name: str, value: str) -> bool:
    """Whether the name of an environment variable looks like that of a secret."""
    return bool(_SECRET_NAME.search(name)) and not _HARMLESS_NAME.search(name) and len(value) >= _MIN_SECRET


def _mark_of_match(match: re.Match[str]) -> str:
    if match["private"]:
        return "<private key>"
    return f"{match['user']}<password>" if match["user"] else f"{match['scheme'] or ''}<key>"


def _masked_pieces(
    pieces: Sequence[str],
    pattern: re.Pattern[str],
    instead: Callable[[re.Match[str]], str],
    unsettled: int,
) -> list[str]:
    """The pieces with matches of a pattern replaced in the text that they make up."""
    text = "".join(pieces)
    matches = [
        (match.span(), instead(match))
        for match in pattern.finditer(text)
        if match.end() <= len(text) - unsettled
    ]
    place, masked = 0, []
    for piece in pieces:
        piece_start, place = place, place + len(piece)
        at, new = piece_start, []
        for (start, end), mark in matches:
            if start < place and end > piece_start:
                new += [text[at:start], mark] if start >= piece_start else []
                at = min(end, place)
        masked.append("".join([*new, text[at:place]]))
    return masked
