"""A stand-in for a language model, so that this sample runs without network, keys or cost.

It answers by rules instead of thinking. Everything around it is what a real agent has: replace
`model=ScriptedLlm(...)` by the name of a model, such as `model="gemini-2.5-flash"`, and the rest stays as
it is.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types


@dataclass(frozen=True)
class Rule:
    """What to do when the user's message matches `user`, and, if `after` is given, when that tool returned.

    `{name}` in `say` and in the arguments of `call` is filled from the named groups of `user` and from what
    the tool returned.
    """

    user: str = ""
    after: str = ""
    say: str = ""
    call: str = ""
    args: dict[str, str] = field(default_factory=dict)

    def answer(self, message: str, tool: str, result: dict[str, Any]) -> types.Part | None:
        match = re.search(self.user, message, re.IGNORECASE)
        if match is None or tool != self.after:
            return None
        known = {**match.groupdict(), **result}
        if not self.call:
            return types.Part(text=self.say.format(**known))
        filled = {name: value.format(**known) for name, value in self.args.items()}
        args = {name: int(value) if value.isdigit() else value for name, value in filled.items()}
        return types.Part(function_call=types.FunctionCall(name=self.call, args=args))


class ScriptedLlm(BaseLlm):
    """Answers with the first rule that applies; it is an error when none does."""

    model: str = "scripted"
    rules: list[Rule]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        message = _last_user_message(llm_request.contents)
        tool, result = _last_tool_result(llm_request.contents)
        answers = (rule.answer(message, tool, result) for rule in self.rules)
        answer = next((part for part in answers if part is not None), None)
        if answer is None:
            raise LookupError(f"no rule for {message!r}" + (f" after {tool}" if tool else ""))
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=sum(len(content.parts or []) * 12 for content in llm_request.contents),
            candidates_token_count=12,
        )
        yield LlmResponse(
            content=types.Content(role="model", parts=[answer]),
            usage_metadata=usage,
            model_version="scripted-1",
        )


def _last_user_message(contents: list[types.Content]) -> str:
    for content in reversed(contents):
        texts = [part.text for part in content.parts or [] if part.text]
        # What other agents of the conversation did, ADK tells as a message of the user.
        if content.role == "user" and texts and not texts[0].startswith("For context:"):
            return texts[0]
    return ""


def _last_tool_result(contents: list[types.Content]) -> tuple[str, dict[str, Any]]:
    last = contents[-1].parts or []
    for part in last:
        if part.function_response:
            return part.function_response.name or "", part.function_response.response or {}
    return "", {}
