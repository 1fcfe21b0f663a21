"""A scripted model, which answers by rules: no network, no cost, the same answer each time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....core.model.content import Content, FunctionCall, FunctionResponse, Part
from ....core.model.eval_set import answer_text
from ....core.model.events import Json
from ....text.figures import show_number
from ....text.values import cut
from .models import ModelRequest, ModelResponse


@dataclass(frozen=True)
class Situation:
    """The input of a rule.

    `message` is the user's last message, `results` the tool responses since the last answer, in the order of
    their calls. `situation[1]` and `situation["name"]` are groups of the rule's `user` pattern.
    """

    message: str
    results: tuple[Json, ...]
    match: re.Match[str] | None

    def __getitem__(self, group: int | str) -> str:
        if self.match is None:
            raise LookupError(f"no group {group!r}: the rule has no `user` pattern")
        return self.match[group]


ScriptedCall = tuple[str, Mapping[str, Any]]
Calls = ScriptedCall | list[ScriptedCall]


@dataclass(frozen=True)
class Rule:
    """A rule of a scripted model: a condition and an answer.

    `user` is a regular expression that is searched in the user's last message. With `after_tool` the rule
    applies when the last tool result is of that tool, else when the last message is the user's. The answer is
    `reply`, a text, or `call`, `(tool name, arguments)` or a list of these for parallel calls; either may be
    a function of the `Situation`.
    """

    user: str | None = None
    after_tool: str | None = None
    reply: str | Callable[[Situation], str] | None = None
    call: Calls | Callable[[Situation], Calls] | None = None

    def __post_init__(self) -> None:
        if self.user is None and self.after_tool is None:
            raise ValueError("a rule needs `user`, `after_tool` or both to say when it applies")
        if (self.reply is None) == (self.call is None):
            raise ValueError("a rule needs exactly one of `reply` and `call`")
        if self.user is not None:
            re.compile(self.user)

    def __str__(self) -> str:
        when = [("user", self.user), ("after_tool", self.after_tool)]
        return ", ".join(f"{key}={value!r}" for key, value in when if value is not None)

    def applies(self, message: str, results: Sequence[FunctionResponse]) -> Situation | None:
        """The situation, if the rule applies; else None."""
        if self.after_tool != (results[-1].name if results else None):
            return None
        match = re.search(self.user, message) if self.user is not None else None
        if self.user is not None and match is None:
            return None
        return Situation(message, tuple(result.response or {} for result in results), match)

    def answer(self, situation: Situation) -> list[Part]:
        if self.reply is not None:
            text = self.reply(situation) if callable(self.reply) else self.reply
            return [Part(text=text)]
        calls = (self.call(situation) if callable(self.call) else self.call) or []
        return [
            Part(function_call=FunctionCall(name=name, args=dict(args)))
            for name, args in (calls if isinstance(calls, list) else [calls])
        ]


# Rules that an error message lists, at most.
_MOST_RULES = 5
# Characters of a user's message in an error message, at most.
_MOST_CHARACTERS = 80


class ScriptedModel:
    """A model that answers with the first rule that applies; an error where none does."""

    name = "scripted model, offline"

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = list(rules)

    async def generate(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelResponse:
        """Raises LookupError where no rule applies."""
        results = _last_results(request.contents)
        message = _last_message(request.contents)
        for rule in self.rules:
            situation = rule.applies(message, results)
            if situation is not None:
                return ModelResponse(rule.answer(situation), model_version="scripted", finish_reason="STOP")
        input_text = f"the user's message {cut(message, _MOST_CHARACTERS)!r}"
        if results:
            tool = results[-1].name
            input_text = f"a result of tool {tool!r} after {input_text}"
        rules = [f"  {rule}" for rule in self.rules if bool(rule.after_tool) is bool(results)] or ["  none"]
        more = [f"  and {show_number(len(rules) - _MOST_RULES)} more"] if len(rules) > _MOST_RULES else []
        listed = "\n".join([*rules[:_MOST_RULES], *more])
        what = "results of tools" if results else "messages"
        raise LookupError(
            f"no rule of the scripted model applies to {input_text}. It knows these {what} only:\n{listed}"
        )


def _last_results(contents: Sequence[Content]) -> list[FunctionResponse]:
    parts = (contents[-1].parts or []) if contents else []
    return [part.function_response for part in parts if part.function_response]


def _last_message(contents: Sequence[Content]) -> str:
    texts = (answer_text(content.parts) for content in reversed(contents) if content.role == "user")
    return next((text for text in texts if text), "")
