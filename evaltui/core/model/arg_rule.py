"""Rules for arguments that may differ, and paths of arguments, as in the `evaltui` block of a config."""

from __future__ import annotations

import ast
import re
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictStr,
    Tag,
    model_validator,
)

from ...text.values import did_you_mean, value_in_words
from .base_model import DataModel
from .problems import JsonPath, format_path
from .regexes import check_regex

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
    """The steps of a path: keys, indices, and ANY_INDEX for `[*]`; none for `*`, which stands for all
    arguments.

    A name with a dot or a bracket is in brackets and quotes. Raises ValueError with a sentence.
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
        return _unquote(step["quoted"])
    return step["key"]


def _unquote(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except SyntaxError as error:
        raise ValueError(f"has a name that cannot be read, {text}: {error.msg}") from None


def arg_path_text(path: ArgPath) -> str:
    """The text of a path, which `parse_arg_path` reads."""
    text = ""
    for step in path:
        part = "[*]" if step is ANY_INDEX else format_path((step,))
        text += f".{part}" if text and not part.startswith("[") else part
    return text or ALL_ARGS


def json_path_of(text: str) -> JsonPath:
    """The JSON path in `ArgDiff.path`; () for all arguments."""
    steps = parse_arg_path(text or ALL_ARGS)
    return tuple(step for step in steps if isinstance(step, str | int))


def covers(pattern: ArgPath, path: JsonPath) -> bool:
    """Whether a pattern matches a path or the start of it."""
    return len(pattern) <= len(path) and all(
        step == there or (step is ANY_INDEX and isinstance(there, int))
        for step, there in zip(pattern, path, strict=False)
    )


def _check_name(text: str) -> str:
    if not text:
        raise ValueError("must be the name of a tool, is empty")
    return text


def _check_path(text: str) -> str:
    parse_arg_path(text)
    return text


def _check_regex(text: str) -> str:
    check_regex(text)
    return text


Regex = Annotated[StrictStr, AfterValidator(_check_regex)]


class Approx(DataModel):
    """The allowed distance of a number from the expected one: `abs`, or the share `rel` of the expected
    number."""

    model_config = ConfigDict(extra="forbid")
    abs: Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)] | None = None
    """The greatest difference."""
    rel: Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)] | None = None
    """The greatest difference divided by the expected number, such as 0.1."""

    @model_validator(mode="after")
    def _says_how_far(self) -> Approx:
        if self.abs is None and self.rel is None:
            raise ValueError('needs abs, rel or both, such as {"abs": 0.5}')
        return self


class MatchBy(DataModel):
    """A match with a parameter: exactly one of these."""

    model_config = ConfigDict(extra="forbid")
    regex: Regex | None = None
    """The whole text matches this regular expression."""
    approx: Approx | None = None
    """The allowed distance of a number."""
    any_of: list[Any] | None = None
    """The allowed values."""

    @model_validator(mode="after")
    def _is_one(self) -> MatchBy:
        present = [name for name in MatchBy.model_fields if getattr(self, name) is not None]
        if len(present) != 1:
            has = " and ".join(present) or "none of them"
            raise ValueError(f"needs exactly one of regex, approx and any_of, has {has}")
        if self.any_of == []:
            raise ValueError("any_of needs at least one value")
        return self


MatchWord = Literal["ignore", "type", "subset", "case_insensitive"]


def _check_word(value: Any) -> Any:
    words = get_args(MatchWord)
    if value in words:
        return value
    hint = did_you_mean(value, words) if isinstance(value, str) else ""
    raise ValueError(
        f"must be {', '.join(words[:-1])} or {words[-1]}, or an object with regex, approx or any_of, "
        f"is {value_in_words(value)}{hint}"
    )


def _kind_of_match(value: Any) -> str:
    # Told apart by this, so that what is wrong is said of the one that was meant.
    return "by" if isinstance(value, dict | MatchBy) else "word"


Match = Annotated[
    Annotated[MatchWord, BeforeValidator(_check_word), Tag("word")] | Annotated[MatchBy, Tag("by")],
    Discriminator(_kind_of_match),
]


class ArgRule(DataModel):
    """Rule for values of a tool's argument that count as equal, in a case, in a set, or everywhere.

    `core.matching.rules` describes the matches, and which of several rules applies.
    """

    model_config = ConfigDict(extra="forbid")
    tool: Annotated[StrictStr, AfterValidator(_check_name)]
    """The name of the tool."""
    arg: Annotated[StrictStr, AfterValidator(_check_path)]
    """The path of the argument, such as `query`, `filter.as_of` or `items[*].id`; `*` is all arguments."""
    match: Match
    """The allowed difference."""
    set: StrictStr | None = None
    """The id of the set that the rule applies to; None for all sets."""
    case: StrictStr | None = None
    """The id of the case that the rule applies to; None for all cases."""
