"""The request, response and interface of models, and one that answers by rules, without a network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from ...core.model.content import (
    Content,
    FunctionCall,
    FunctionResponse,
    GroundingMetadata,
    Part,
    UsageMetadata,
)
from ...core.model.eval_set import answer_text
from ...core.model.events import Json
from ...text.figures import show_number
from ...text.values import cut
from ..model_gate import size_of
from .declarations import FunctionDeclaration

if TYPE_CHECKING:
    from google.genai.types import GenerateContentConfig


@dataclass(frozen=True)
class ModelRequest:
    """A request to a model.

    `contents` is the whole conversation, the newest content last. `config` holds all other settings; the
    fields beside it win over its fields.
    """

    system_instruction: str
    contents: Sequence[Content]
    tools: Sequence[FunctionDeclaration]
    config: GenerateContentConfig | None = None


@dataclass(frozen=True)
class ModelResponse:
    """A response of a model.

    `finish_reason` is a name of genai's FinishReason or, where the prompt was refused, BlockedReason.
    """

    parts: Sequence[Part] = ()
    usage: UsageMetadata | None = None
    grounding: GroundingMetadata | None = None
    model_version: str | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class Model(Protocol):
    """A model that answers requests. `name` is shown to users."""

    @property
    def name(self) -> str: ...

    async def generate(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelResponse:
        """The complete response, whose parts may also be google-genai's. Pieces of its text may be passed to
        `on_text` as they arrive."""
        ...


def own_parts(parts: Iterable[BaseModel]) -> list[Part]:
    """The parts of a response as evaltui's own `Part`; some may be google-genai's."""
    return [
        part if isinstance(part, Part) else Part.model_validate_json(part.model_dump_json(exclude_none=True))
        for part in parts
    ]


def text_of(response: ModelResponse) -> str:
    """The text for the user, without thoughts."""
    return "".join(part.text for part in response.parts if part.text and not part.thought)


def size_of_request(request: ModelRequest) -> int:
    """The size of a request in characters."""
    contents = [content.model_dump(exclude_none=True) for content in request.contents]
    return len(request.system_instruction) + size_of([*contents, *(tool.as_json() for tool in request.tools)])


def usage_data(response: ModelResponse) -> Json | None:
    """The token counts of a response as JSON; None where they are unknown."""
    return response.usage.model_dump(mode="json", exclude_none=True) if response.usage else None


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
        """When it applies, in words: `"set the kitchen to 19 degrees"`, `a result of find_order`."""
        message = "" if self.user is None else f'"{example_of(self.user)}"'
        if self.after_tool is None:
            return message
        return f"a result of {self.after_tool}{message and f' after {message}'}"

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


# What stands for a part of a regular expression that many texts match, in this order.
_STANDS_FOR = (
    (r"\(\?[aiLmsux-]+\)|\\[bBAZ]|(?<!\\)[\^$]", ""),
    (r"(?:\\d|\[0-9\])(?:[+*]|\{\d+(?:,\d*)?\})?", "19"),
    (r"\\s[+*]?", " "),
    (r"\\w[+*]\??", "a1"),
    (r"(?:\.|\\S)[+*]\??", "…"),
)
_GROUP = re.compile(r"\((?:\?:|\?P<\w+>)?([^()|]*)(?:\|[^()]*)?\)[?*+]?")


def example_of(pattern: str) -> str:
    """A text in which a regular expression is found; the expression itself where it is too much of one."""
    text, groups = pattern, 1
    for part, example in _STANDS_FOR:
        text = re.sub(part, example, text)
    while groups:
        text, groups = _GROUP.subn(r"\1", text)
    text = text.partition("|")[0]
    text = re.sub(r"\[([^\]\\^])[^\]]*\][+*?]?", r"\1", text)
    text = re.sub(r"[^\w\s\\]\?", "", re.sub(r"(\w)\?", r"\1", text))
    text = re.sub(r"\\(\W)", r"\1", text)
    looks_around = re.search(r"\(\?(?:[=!]|<[=!])", pattern)
    return text if not looks_around and re.search(pattern, text) else pattern


# Rules that an error message lists, at most.
_MAX_RULES = 5
# Characters of a user's message in an error message, at most.
_MAX_CHARACTERS = 80


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
        input_text = f'"{cut(message, _MAX_CHARACTERS)}"'
        if results:
            input_text = f"a result of {results[-1].name} after {input_text}"
        rules = [str(rule) for rule in self.rules if bool(rule.after_tool) is bool(results)]
        rules = list(dict.fromkeys(rules))
        more = [f"{show_number(len(rules) - _MAX_RULES)} more"] if len(rules) > _MAX_RULES else []
        *listed, last = [*rules[:_MAX_RULES], *more] or ["nothing"]
        answers = f"{', '.join(listed)} and {last}" if listed else last
        raise LookupError(f"the scripted model does not know {input_text}. It knows {answers}")


def _last_results(contents: Sequence[Content]) -> list[FunctionResponse]:
    parts = (contents[-1].parts or []) if contents else []
    return [part.function_response for part in parts if part.function_response]


def _last_message(contents: Sequence[Content]) -> str:
    texts = (answer_text(content.parts) for content in reversed(contents) if content.role == "user")
    return next((text for text in texts if text), "")
