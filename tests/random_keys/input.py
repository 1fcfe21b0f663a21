"""What somebody without a plan does at a terminal, as a terminal sends it."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from typing import NamedTuple

LETTERS = [*string.ascii_letters, *string.digits, *"/?*=!.,:;'\"[]{}()<>|+-_ #@$%^&~`\\"]
NAMED = {
    "enter": "\r",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "escape": "\x1b",
    "backspace": "\x7f",
    "delete": "\x1b[3~",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "shift+up": "\x1b[1;2A",
    "shift+down": "\x1b[1;2B",
    "alt+up": "\x1b[1;3A",
    "alt+down": "\x1b[1;3B",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    "f4": "\x1bOS",
    "f5": "\x1b[15~",
    "f6": "\x1b[17~",
}
# What leads somewhere comes more often than it would by chance.
COMMON = ("enter", "tab", "escape", "up", "down", "left", "right")
PANES = "123456"
RUNS = "rsR"
OPENING = "?H=e!*cnNxXaAoO/\x10\x0f\x07\x0b"
# ctrl+c and ctrl+z mean other things to a terminal.
CONTROL = [chr(ord(letter) & 0x1F) for letter in string.ascii_lowercase if letter not in "czq"]
TEXTS = (
    "book",
    "late order",
    '{"by": "price"}',
    "[1, 2, {}]",
    "3.50",
    "null",
    "new_case",
    "x" * 120,
    "Zürich 🛫 \u202e",
    "fail tool:x",
)
PASTES = (
    "one",
    "two\nlines",
    "a\r\nb\r\n\tc",
    '{"a": [1,\n 2]}',
    "",
    "\x00\x07 control",
    "[/b] [link=x]",
    "y" * 5_000,
)
SIZES = ((20, 5), (40, 12), (60, 16), (80, 24), (90, 24), (110, 30), (139, 40), (140, 45), (220, 60))
OUTSIDE = (
    "text",
    "break",
    "restore",
    "delete",
    "empty",
    "drop case",
    "rename case",
    "new set",
    "config",
    "break config",
    "delete config",
    "agent",
    "break agent",
    "forget runs",
)


class Keys(NamedTuple):
    """Keys, sent at once; a lone escape is sent by itself."""

    sent: tuple[str, ...]


class Mouse(NamedTuple):
    """A click, as often as `times`, or a turn of the wheel; a place as a share of the screen."""

    button: int
    x: float
    y: float
    times: int = 1


class Paste(NamedTuple):
    text: str


class Resize(NamedTuple):
    columns: int
    rows: int


class Outside(NamedTuple):
    """Something happens to the files; `number` chooses which of them."""

    what: str
    number: int


class Wait(NamedTuple):
    seconds: float


Action = Keys | Mouse | Paste | Resize | Outside | Wait


def actions(chance: random.Random, count: int) -> Iterator[Action]:
    for _ in range(count):
        kind = chance.random()
        if kind < 0.60:
            yield Keys(tuple(_key(chance) for _ in range(chance.choice((1, 1, 1, 2, 3, 6)))))
        elif kind < 0.65:
            yield Keys(tuple(chance.choice(TEXTS)))
        elif kind < 0.77:
            yield Mouse(0, chance.random(), chance.random(), chance.choice((1, 1, 2)))
        elif kind < 0.80:
            yield Mouse(chance.choice((64, 65)), chance.random(), chance.random(), chance.choice((1, 3)))
        elif kind < 0.83:
            yield Paste(chance.choice(PASTES))
        elif kind < 0.87:
            yield Resize(*chance.choice(SIZES))
        elif kind < 0.92:
            yield Outside(chance.choice(OUTSIDE), chance.randrange(1_000))
        else:
            yield Wait(chance.choice((0.01, 0.05, 0.2)))


def _key(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.30:
        return NAMED[chance.choice(COMMON)]
    if kind < 0.45:
        return chance.choice(OPENING)
    if kind < 0.55:
        return chance.choice(PANES)
    if kind < 0.61:
        return chance.choice(RUNS)
    if kind < 0.70:
        return chance.choice(list(NAMED.values()))
    if kind < 0.77:
        return chance.choice(CONTROL)
    if kind < 0.80:
        return f"\x1b{chance.choice(string.ascii_lowercase)}"
    # Leaving ends the round; it comes often enough.
    return chance.choice([letter for letter in LETTERS if letter != "q" or chance.random() < 0.3])


def mouse_bytes(mouse: Mouse, columns: int, rows: int) -> str:
    """As a terminal reports it: places count from 1, `M` is down, `m` is up."""
    place = f"{1 + int(mouse.x * columns)};{1 + int(mouse.y * rows)}"
    once = f"\x1b[<{mouse.button};{place}M"
    if mouse.button == 0:
        once += f"\x1b[<0;{place}m"
    return once * mouse.times
