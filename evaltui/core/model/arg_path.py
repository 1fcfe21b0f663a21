"""The path of an argument in a rule: `query`, `filter.as_of`, `items[0]`, `items[*].id`, `['odd.key']`."""

from __future__ import annotations

import ast
import re
from enum import Enum
from functools import lru_cache
from typing import Literal

from evaltui.core.model.problems import JsonPath, format_path

# All arguments of a call together.
ALL_ARGS = "*"


class _AnyIndex(Enum):
    ANY_INDEX = "*"


ANY_INDEX = _AnyIndex.ANY_INDEX
ArgPath = tuple[str | int | Literal[_AnyIndex.ANY_INDEX], ...]

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_STEP = re.compile(
    rf"\[(?:(?P<index>\d+)|(?P<any>\*)|(?P<quoted>{_QUOTED}))\]|(?P<dot>\.?)(?P<key>[^.\[\]*]+)"
)


@lru_cache(maxsize=4096)
def parse_arg_path(text: str) -> ArgPath:
    """The steps of a path: keys, indices, and ANY_INDEX for `[*]`; none for `*`, which is all arguments.

    A name that has a dot or a bracket in it stands in brackets and quotes. Raises ValueError, in a sentence.
    """
    if text == ALL_ARGS:
        return ()
    steps: list[str | int | Literal[_AnyIndex.ANY_INDEX]] = []
    at = 0
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None or (step["key"] is not None and bool(step["dot"]) != bool(steps)):
            raise ValueError(
                f"is not the path of an argument from its character {at + 1} on; "
                "paths are such as query, filter.as_of, items[0], items[*].id, ['a.b'], or * for all"
            )
        steps.append(_step(step))
        at = step.end()
    if not steps or not isinstance(steps[0], str):
        raise ValueError("must begin with the name of an argument, or be * for all arguments")
    return tuple(steps)


def _step(step: re.Match[str]) -> str | int | Literal[_AnyIndex.ANY_INDEX]:
    if step["any"]:
        return ANY_INDEX
    if step["index"]:
        return int(step["index"])
    if step["quoted"]:
        return _unquoted(step["quoted"])
    return step["key"]


def _unquoted(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except SyntaxError as error:
        raise ValueError(f"has a name that cannot be read, {text}: {error.msg}") from None


def arg_path_text(path: ArgPath) -> str:
    """A path as it is written in a rule: what `parse_arg_path` reads."""
    if not path:
        return ALL_ARGS
    text, plain = "", list[str | int]()
    for step in path:
        if step is ANY_INDEX:
            text, plain = f"{text}{_after(text, plain)}[*]", []
        else:
            plain.append(step)
    return text + _after(text, plain)


def _after(text: str, path: list[str | int]) -> str:
    """Further steps behind what is written already."""
    more = format_path(tuple(path))
    return f".{more}" if text and more and not more.startswith("[") else more


def reaches(pattern: ArgPath, path: JsonPath) -> bool:
    """Whether a pattern names this place or one around it."""
    return len(pattern) <= len(path) and all(
        step == there or (step is ANY_INDEX and isinstance(there, int))
        for step, there in zip(pattern, path, strict=False)
    )
