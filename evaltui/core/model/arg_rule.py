"""A rule of the `evaltui` block: which arguments of which tool may differ, and how far."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictStr,
    Tag,
    model_validator,
)

from evaltui.core.model.arg_path import parse_arg_path
from evaltui.core.model.regexes import check_regex
from evaltui.text.wording import did_you_mean, in_words


def _a_name(text: str) -> str:
    if not text:
        raise ValueError("must be the name of a tool, is empty")
    return text


def _a_path(text: str) -> str:
    parse_arg_path(text)
    return text


def _a_regex(text: str) -> str:
    check_regex(text)
    return text


class Approx(BaseModel):
    """How far a number may be from the expected one: by `abs`, or by the share `rel` of the expected one."""

    model_config = ConfigDict(extra="forbid")
    abs: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    rel: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _says_how_far(self) -> Approx:
        if self.abs is None and self.rel is None:
            raise ValueError('needs abs, rel or both, such as {"abs": 0.5}')
        return self


class MatchBy(BaseModel):
    """A way to match that needs a value: exactly one of these."""

    model_config = ConfigDict(extra="forbid")
    regex: Annotated[StrictStr, AfterValidator(_a_regex)] | None = None
    approx: Approx | None = None
    any_of: list[Any] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> MatchBy:
        given = [name for name in MatchBy.model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            has = " and ".join(given) or "none of them"
            raise ValueError(f"needs exactly one of regex, approx and any_of, has {has}")
        if self.any_of == []:
            raise ValueError("any_of needs at least one value")
        return self


MatchWord = Literal["ignore", "type", "subset", "case_insensitive"]


def _a_word(value: Any) -> Any:
    words = get_args(MatchWord)
    if value in words:
        return value
    hint = did_you_mean(value, words) if isinstance(value, str) else ""
    raise ValueError(
        f"must be {', '.join(words[:-1])} or {words[-1]}, or an object with regex, approx or any_of, "
        f"is {in_words(value)}{hint}"
    )


def _kind_of_match(value: Any) -> str:
    # Told apart by this, so that what is wrong is said of the one that was meant.
    return "by" if isinstance(value, dict | MatchBy) else "word"


Match = Annotated[
    Annotated[MatchWord, BeforeValidator(_a_word), Tag("word")] | Annotated[MatchBy, Tag("by")],
    Discriminator(_kind_of_match),
]


class ArgRule(BaseModel):
    """What counts as the same for an argument of a tool, in a case, in a set, or everywhere.

    `arg` is a path as in `arg_path`. What each match means, and which rule applies, is told in `rules`.
    """

    model_config = ConfigDict(extra="forbid")
    tool: Annotated[StrictStr, AfterValidator(_a_name)]
    arg: Annotated[StrictStr, AfterValidator(_a_path)]
    match: Match
    set: StrictStr | None = None
    case: StrictStr | None = None
