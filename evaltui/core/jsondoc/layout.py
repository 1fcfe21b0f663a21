"""JSON text with other white space between its tokens, each of which stays as it is spelled."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:,]|[^][{}:,\s"]+')
_INDENT = "  "


def laid_out(text: str) -> str:
    """Valid JSON text over several lines, an item on each."""
    return "".join(_lines(_TOKEN.findall(text)))


def _lines(tokens: list[str]) -> Iterator[str]:
    depth = 0
    for number, token in enumerate(tokens):
        follows = tokens[number + 1] if number + 1 < len(tokens) else ""
        is_empty = (token, follows) in (("{", "}"), ("[", "]"))
        if token in "}]":
            depth -= (tokens[number - 1], token) not in (("{", "}"), ("[", "]"))
        yield token + " " if token == ":" else token
        if token in "{[" and not is_empty:
            depth += 1
            yield "\n" + _INDENT * depth
        elif token == ",":
            yield "\n" + _INDENT * depth
        elif follows in ("}", "]") and not is_empty:
            yield "\n" + _INDENT * (depth - 1)


def in_one_line(text: str, model: str) -> str:
    """Valid JSON text on one line, spaced as the model, which is on one."""
    between = {mark: _space_behind(mark, model) for mark in ":,"}
    return "".join(token + between.get(token, "") for token in _TOKEN.findall(text))


def _space_behind(mark: str, model: str) -> str:
    found = [token.start() for token in _TOKEN.finditer(model) if token[0] == mark]
    return " " if not found or model[found[0] + 1 : found[0] + 2] == " " else ""
