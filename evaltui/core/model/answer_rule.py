"""Checks of answers, as the `evaltui` block of a config has them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, StrictInt, StrictStr, model_validator

from .arg_rule import Regex
from .base_model import DataModel
from .json_schemas import check_schema

RuleScope = Literal["case", "set", "all"]
"""The cases that a rule is for: one, those of a set, or all that its config scores."""

_Texts = Annotated[list[Annotated[StrictStr, Field(min_length=1)]], Field(min_length=1)]


class AnswerRule(DataModel):
    """Check of the answer of a turn, of all answers of a case or a set, or of every answer.

    Texts are compared as whole words, without regard to case and to how white space is written.
    """

    model_config = ConfigDict(extra="forbid")
    contains: _Texts | None = None
    """Texts that the answer must have, all of them."""
    not_contains: _Texts | None = None
    """Texts that the answer must not have."""
    regex: Annotated[Regex, Field(min_length=1)] | None = None
    """A regular expression that matches somewhere in the answer."""
    numbers: Literal["equal"] | None = None
    """`equal`: the answer has the numbers, dates and units of the expected one, and no others."""
    json_schema: Annotated[dict[str, Any], AfterValidator(check_schema)] | None = None
    """A JSON Schema that the answer, read as JSON, fits."""
    agent: Annotated[StrictStr, Field(min_length=1)] | None = None
    """The name of the agent that gives the answer."""
    set: StrictStr | None = None
    """The id of the only set that it is for; None for all."""
    case: StrictStr | None = None
    """The id of the only case that it is for; None for all."""
    turn: Annotated[StrictInt, Field(ge=0)] | None = None
    """The only turn that it is for, counted from 0; None for all."""

    @model_validator(mode="after")
    def _checks_something(self) -> AnswerRule:
        if all(getattr(self, name) is None for name in CHECKS):
            raise ValueError(f"needs one of {', '.join(CHECKS)}")
        if self.turn is not None and (self.set is None or self.case is None):
            raise ValueError("names a turn, so it needs the ids of its set and its case")
        return self


CHECKS = ("contains", "not_contains", "regex", "numbers", "json_schema", "agent")
"""The keys of a rule that check something, in the order in which they are told."""
