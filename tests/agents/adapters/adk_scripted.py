"""A scripted model, and a conversation as the host drives it, for the tests of the ADK adapter."""

import asyncio
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr

from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.agents.adapters.base import Reporter, SessionSpec
from evaltui.agents.case_run import run_turn


def say(text, **fields):
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), **fields)


def call(*calls):
    """`("name", {args})` or `("name", {args}, "id")` each."""
    parts = [
        types.Part(
            function_call=types.FunctionCall(name=name, args=args, id=more[0] if more else f"call-{name}")
        )
        for name, args, *more in calls
    ]
    return LlmResponse(content=types.Content(role="model", parts=parts))


class ScriptedLlm(BaseLlm):
    """Answers by what came last: the user's text, "tool()" when that tool returned, else "anything".

    An exception as answer is raised; a list is streamed.
    """

    model: str = "scripted"
    answers: dict[str, Any]
    _requests: list[Any] = PrivateAttr(default_factory=list)

    async def generate_content_async(self, llm_request, stream=False):
        self._requests.append(llm_request)
        await asyncio.sleep(0)
        part = llm_request.contents[-1].parts[-1]
        came = f"{part.function_response.name}()" if part.function_response else part.text
        answer = self.answers[came] if came in self.answers else self.answers["anything"]
        if isinstance(answer, Exception):
            raise answer
        for response in answer if isinstance(answer, list) else [answer]:
            yield response.model_copy(deep=True)


def user(text):
    return {"role": "user", "parts": [{"text": text}]}


class Chat:
    """One session and everything that it reported."""

    def __init__(self, adapter, spec=None):
        self.events = []
        self.reporter = Reporter(self.events.append)
        self._opening = adapter.new_session(spec or SessionSpec(), self.reporter)
        self.session = None

    async def send(self, *messages):
        self.session = self.session or await self._opening
        for message in messages:
            turn = 0 if self.reporter.turn is None else self.reporter.turn + 1
            content = message if isinstance(message, dict) else user(message)
            await run_turn(self.session, AdkAdapter.input, self.reporter, turn, content)
        return self.events

    def of(self, kind):
        return [event for event in self.events if event.kind == kind]

    def texts(self):
        return ["".join(part.get("text", "") for part in event.content["parts"]) for event in self.of("text")]

    def called(self, kind="tool_call"):
        field = "function_call" if kind == "tool_call" else "function_response"
        return [event.content["parts"][0][field]["name"] for event in self.of(kind)]


async def chat(adapter, *messages, spec=None):
    talk = Chat(adapter, spec)
    await talk.send(*messages)
    return talk
