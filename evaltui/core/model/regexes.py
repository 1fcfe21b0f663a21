"""Regular expressions of the user's, run such that none of them hangs anything.

The `regex` package runs them with a time-out, and lets other threads go on meanwhile. What it takes for a
regular expression is what Python's `re` takes.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from ...text.figures import show_number

# Of one scoring, all its rules together, in seconds.
PATIENCE = 2.0
_PROBE_PATIENCE = 0.2
# To compile a repeat takes memory for each copy.
_MOST_COPIES = 20_000
_MOST_PROBES = 8
_MOST_REMEMBERED = 1000

_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(|\)|(?P<repeat>\{(\d*)(?:,(\d*))?\})|.", re.DOTALL)
_PLAIN = re.compile(r"\\(?P<kind>[dsw])|(?<!\\)(?P<plain>[A-Za-z0-9])")
_OF_KIND = {"d": "0", "s": " ", "w": "a"}

# What ran out of time once is not tried again: a screen scores at every key.
_slow: dict[tuple[str, str], None] = {}


class SlowRegexError(Exception):
    """A regular expression that took too long."""


@dataclass
class Patience:
    """How long the regular expressions of one scoring may still take, in seconds."""

    left: float = PATIENCE

    def matches(self, pattern: str, text: str, *, anywhere: bool = False) -> bool:
        """Whether the whole text matches, or a part `anywhere` in it. Raises SlowRegexError where that takes
        too long."""
        # Takes its time to be imported, and few configs need it.
        import regex

        if self.left <= 0 or (pattern, text) in _slow:
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
    while len(_slow) >= _MOST_REMEMBERED:
        del _slow[next(iter(_slow))]
    _slow[pattern, text] = None


def check_regex(text: str) -> None:
    """Raises ValueError where a text is not a regular expression, or too large for one."""
    if (copies := _copies(text)) > _MOST_COPIES:
        most = show_number(_MOST_COPIES)
        raise ValueError(f"is too large: its repeats make {show_number(copies)} copies, at most {most}")
    import regex

    try:
        re.compile(text)
        regex.compile(text)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None


def is_slow(pattern: str) -> bool:
    """Whether it takes very long on a short text: a few dozen times one of its letters, then what it cannot
    have, and the pattern itself: what it looks for first is in there."""
    letters = dict.fromkeys(
        _OF_KIND[match["kind"]] if match["kind"] else match["plain"] for match in _PLAIN.finditer(pattern)
    )
    try:
        for letter in [*letters, "a"][:_MOST_PROBES]:
            Patience(_PROBE_PATIENCE).matches(pattern, f"{letter * 40}\0{pattern}")
    except SlowRegexError:
        return True
    return False


def _copies(pattern: str) -> int:
    """How many single pieces a pattern has once its counted repeats are written out, at most."""
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
