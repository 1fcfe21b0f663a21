"""Regular expressions of users, run with a time limit.

The `regex` package runs them with a time-out, without blocking other threads. Accepted are the regular
expressions of Python's `re`.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import regex

from ...text.figures import show_number

# Of one scoring, all its rules together, in seconds.
PATIENCE = 2.0
_PROBE_PATIENCE = 0.2
# To compile a repeat takes memory for each copy.
_MAX_COPIES = 20_000
_MAX_PROBES = 8
_MAX_REMEMBERED = 1000

_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(|\)|(?P<repeat>\{(\d*)(?:,(\d*))?\})|.", re.DOTALL)
_PLAIN = re.compile(r"\\(?P<kind>[dsw])|(?<!\\)(?P<plain>[A-Za-z0-9])")
_KIND_SAMPLES = {"d": "0", "s": " ", "w": "a"}

# What ran out of time once is not tried again: a screen scores at every key.
_slow_matches: dict[tuple[str, str], None] = {}


class SlowRegexError(Exception):
    """A regular expression took too long."""


@dataclass
class Patience:
    """The remaining time for the regular expressions of one scoring, in seconds."""

    left: float = PATIENCE

    def matches(self, pattern: str, text: str, *, anywhere: bool = False) -> bool:
        """Whether the whole text matches, or a part `anywhere` in it. Raises SlowRegexError where that takes
        too long."""
        if self.left <= 0 or (pattern, text) in _slow_matches:
            raise SlowRegexError(pattern)
        began = time.monotonic()
        try:
            find = regex.search if anywhere else regex.fullmatch
            match = find(pattern, text, timeout=self.left, concurrent=True)
        except (TimeoutError, MemoryError):
            self.left = 0.0
            _remember(pattern, text)
            raise SlowRegexError(pattern) from None
        self.left -= time.monotonic() - began
        return match is not None


def _remember(pattern: str, text: str) -> None:
    while len(_slow_matches) >= _MAX_REMEMBERED:
        del _slow_matches[next(iter(_slow_matches))]
    _slow_matches[pattern, text] = None


def check_regex(text: str) -> None:
    """Raises ValueError for an invalid or too large regular expression."""
    if (copies := _copies(text)) > _MAX_COPIES:
        most = show_number(_MAX_COPIES)
        raise ValueError(f"is too large: its repeats make {show_number(copies)} copies, at most {most}")
    try:
        re.compile(text)
        regex.compile(text)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None


def is_slow(pattern: str) -> bool:
    """Whether a pattern takes very long on short texts: repeated letters of the pattern with a mismatch at
    the end, and the pattern itself."""
    letters = dict.fromkeys(
        _KIND_SAMPLES[match["kind"]] if match["kind"] else match["plain"]
        for match in _PLAIN.finditer(pattern)
    )
    try:
        for letter in [*letters, "a"][:_MAX_PROBES]:
            Patience(_PROBE_PATIENCE).matches(pattern, f"{letter * 40}\0{pattern}")
    except SlowRegexError:
        return True
    return False


def _copies(pattern: str) -> int:
    """An upper bound for the number of single pieces in a pattern with its counted repeats expanded."""
    sizes, last = [0], 0
    for piece in _PIECE.finditer(pattern):
        if piece[0] == "(":
            sizes.append(0)
            last = 0
        elif piece[0] == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif piece["repeat"] and (count := max(int(piece[2] or 0), int(piece[3] or 0))):
            sizes[-1] += last * (count - 1)
            last *= count
        else:
            sizes[-1] += 1
            last = 1
    return sum(sizes)
