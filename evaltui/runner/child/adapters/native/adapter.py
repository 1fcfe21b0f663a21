"""Drives an `evaltui.Agent`: asks the model, runs the tools it calls, and again until it answers."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from .....core.model.content import Content, FunctionCall, FunctionResponse, Part
from .....core.model.events import Json, Step
from .....text.figures import counted
from ....model_gate import Waits
from ...native.agent import Agent, ToolContext
from ...native.models import Model, ModelRequest, ModelResponse, own_parts
from ...native.scripted import ScriptedModel
from ..base import (
    DEFAULT_APP_NAME,
    DEFAULT_USER_ID,
    AgentInfo,
    AgentInput,
    AgentSession,
    Reporter,
    SessionSpec,
    ToolInfo,
    call_numbers,
    contents_for_model,
    copy_state,
    nested_in,
    plain_json,
    recording,
    removed_keys,
    source_places,
    state_after,
    state_delta,
    step_numbers,
)
from ..frameworks.tools import report_results
from .recording import answer, call_tool, generated, model_exchange

if TYPE_CHECKING:
    from ...native.gemini import FailedAttempt, GeminiModel

MAX_MODEL_CALLS = 50


class NativeAdapter:
    """The way in for agents made of `evaltui.Agent`."""

    input = AgentInput()

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._model = _model_of(agent)

    async def open(self) -> AgentInfo:
        declarations = [tool.declaration for tool in self._agent.tools.values()]
        return AgentInfo(
            name=self._agent.name,
            framework="native",
            model=self._model.name,
            tools=tuple(
                ToolInfo(item.name, item.description, item.parameters_json_schema) for item in declarations
            ),
            places=source_places({name: tool.function for name, tool in self._agent.tools.items()}),
        )

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AgentSession:
        return NativeSession(self._agent, self._model, spec, reporter, past)

    async def close(self) -> None:
        if gemini := _as_gemini(self._model):
            await gemini.close()


def _model_of(agent: Agent) -> Model:
    if not isinstance(agent.model, str):
        return agent.model
    from ...native.gemini import GeminiModel

    return GeminiModel(agent.model)


def _as_gemini(model: Model) -> GeminiModel | None:
    """The model, where it is one that google-genai reaches."""
    if isinstance(model, ScriptedModel):
        # Importing google-genai takes longer than all that such an agent does.
        return None
    from ...native.gemini import GeminiModel

    return model if isinstance(model, GeminiModel) else None


@dataclass(frozen=True)
class _Call:
    """A call the model made. `id` is the model's own one, or made here where it gave none."""

    id: str
    asked: FunctionCall


@dataclass(frozen=True)
class _Result:
    call: _Call
    response: Json
    seconds: float


class NativeSession:
    """One conversation: its contents, its state, and how far both have been reported."""

    def __init__(
        self, agent: Agent, model: Model, spec: SessionSpec, reporter: Reporter, past: Sequence[Step]
    ) -> None:
        self._agent = agent
        self._model = model
        self._reporter = reporter
        self._context = ToolContext(
            state=state_after(spec.state, past),
            session_id=spec.session_id or uuid.uuid4().hex,
            user_id=spec.user_id or DEFAULT_USER_ID,
            app_name=spec.app_name or DEFAULT_APP_NAME,
        )
        self._reported_state = copy_state(self._context.state)
        self._contents = [
            Content.model_validate_json(json.dumps(content)) for content in contents_for_model(past)
        ]
        self._reported_contents = 0
        self._call_numbers = call_numbers(past)
        self._step_numbers = step_numbers(past)

    async def send(self, content: Json) -> None:
        """Raises what tools and the model raise; but for the state, the turn is then forgotten."""
        before = len(self._contents)
        try:
            with recording(self._reporter):
                await self._turn(content)
        except BaseException:
            # A model refuses a conversation with unanswered calls in it, so that it could not go on.
            del self._contents[before:]
            self._reported_contents = min(self._reported_contents, before)
            raise

    async def state(self) -> Json:
        return copy_state(self._context.state)

    async def close(self) -> None: ...

    async def _turn(self, content: Json) -> None:
        message = Content.model_validate_json(json.dumps({"role": "user"} | content))
        self._contents.append(message)
        for _ in range(MAX_MODEL_CALLS):
            response = await self._ask()
            calls = [
                _Call(part.function_call.id or f"call-{next(self._call_numbers)}", part.function_call)
                for part in response.parts
                if part.function_call
            ]
            self._report_response(response, calls)
            if response.parts:
                self._contents.append(Content(role="model", parts=list(response.parts)))
            if not calls:
                self._report_late_changes()
                return
            results = await self._run_tools(calls)
            self._report_results(results)
            self._contents.append(_results_content(results, [result.call.asked.id for result in results]))
        raise RuntimeError(
            f"agent {self._agent.name!r} made {counted(MAX_MODEL_CALLS, 'model call')} in one turn "
            "without a response; endless loop?"
        )

    async def _ask(self) -> ModelResponse:
        instruction = self._agent.instruction
        request = ModelRequest(
            system_instruction=instruction(self._context) if callable(instruction) else instruction,
            contents=tuple(self._contents),
            tools=tuple(tool.declaration for tool in self._agent.tools.values()),
            config=self._agent.config,
        )
        exchange = model_exchange(self._model, request, self._agent.name)
        mark = exchange.mark if exchange else {}
        request_id = self._report_request(request, mark)
        started, waits = time.monotonic(), Waits()
        if gemini := _as_gemini(self._model):
            report_failed = partial(self._report_failed_attempt, request_id)
            ask = partial(gemini.generate, request, on_failed=report_failed, waits=waits)
        else:
            ask = partial(generated, self._model, request, waits)
        response = await answer(exchange, ask, self._report_piece)
        response = replace(response, parts=own_parts(response.parts))
        self._reporter.event(
            "model_response",
            _model_content(response.parts),
            agent=self._agent.name,
            data=_given(model_version=response.model_version, finish_reason=response.finish_reason)
            | mark
            | waits.mark,
            usage=plain_json(response.usage) if response.usage else None,
            duration=time.monotonic() - started - waits.seconds,
            parent=request_id,
        )
        return response

    def _report_request(self, request: ModelRequest, mark: Json) -> str:
        known = self._reported_contents
        self._reported_contents = len(request.contents)
        return self._reporter.event(
            "model_request",
            agent=self._agent.name,
            data={
                "model": self._model.name,
                "system_instruction": request.system_instruction,
                "tools": [tool.as_json() for tool in request.tools],
                "contents": [plain_json(content) for content in request.contents[known:]],
                "contents_before": known,
                **mark,
            },
        )

    def _report_piece(self, text: str) -> None:
        # Without a step id it is shown while it comes and is no part of the record.
        self._reporter.event(
            "text",
            {"role": "model", "parts": [{"text": text}]},
            agent=self._agent.name,
            data={"partial": True},
        )

    def _report_failed_attempt(self, request_id: str, failed: FailedAttempt) -> None:
        # Without a step id it is no part of the record; the turn goes on.
        self._reporter.event(
            "error",
            agent=self._agent.name,
            data={
                "type": type(failed.error).__name__,
                "message": str(failed),
                "code": getattr(failed.error, "code", None),
                "retrying": True,
                "attempt": failed.number,
                "wait": round(failed.wait, 3),
                "text_is_void": failed.text_is_void,
            },
            usage=plain_json(failed.usage) if failed.usage else None,
            duration=failed.seconds,
            parent=request_id,
        )

    def _report_response(self, response: ModelResponse, calls: Sequence[_Call]) -> None:
        content = _model_content(response.parts)
        ids = iter(calls)
        for part in content["parts"] if content else []:
            if "function_call" in part:
                part["function_call"]["id"] = next(ids).id
        failed = not response.parts and response.finish_reason not in (None, "STOP")
        self._reporter.step(
            Step(
                author=self._agent.name,
                content=content,
                final=not calls,
                usage=plain_json(response.usage) if response.usage else None,
                grounding=plain_json(response.grounding) if response.grounding else None,
                model_version=response.model_version,
                id=self._next_step(),
                timestamp=time.time(),
                error_code=response.finish_reason if failed else None,
                error_message=response.finish_message if failed else None,
            )
        )

    async def _run_tools(self, calls: Sequence[_Call]) -> list[_Result]:
        """All at once, results in the order of the calls; the first exception ends the others."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._run_tool(call)) for call in calls]
        except BaseExceptionGroup as failed:
            # The user wants the traceback of the tool, not one of a group.
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _run_tool(self, call: _Call) -> _Result:
        name = call.asked.name or ""
        if name not in self._agent.tools:
            raise ValueError(
                f"the model called tool {name!r}, which agent {self._agent.name!r} does not have; "
                f"it has {', '.join(self._agent.tools) or 'no tools'}"
            )
        # Each call runs in a task of its own, so this ends with it.
        nested_in.set(call.id)
        started = time.monotonic()
        response = await call_tool(self._agent.tools[name], call.asked.args or {}, self._context, call.id)
        return _Result(call, response, time.monotonic() - started)

    def _report_results(self, results: Sequence[_Result]) -> None:
        content = plain_json(_results_content(results, [result.call.id for result in results]))
        step = self._step_with_changes(content)
        seconds = {result.call.id: result.seconds for result in results}
        report_results(self._reporter, step, seconds)

    def _report_late_changes(self) -> None:
        """Instructions that are functions may change the state too."""
        if self._context.state != self._reported_state:
            self._reporter.step(self._step_with_changes(None))

    def _step_with_changes(self, content: Json | None) -> Step:
        before, self._reported_state = self._reported_state, copy_state(self._context.state)
        return Step(
            author=self._agent.name,
            content=content,
            id=self._next_step(),
            timestamp=time.time(),
            state=state_delta(before, self._reported_state) or None,
            removed=removed_keys(before, self._reported_state),
        )

    def _next_step(self) -> str:
        return f"step-{next(self._step_numbers)}"


def _model_content(parts: Sequence[Part]) -> Json | None:
    return plain_json(Content(role="model", parts=list(parts))) if parts else None


def _results_content(results: Sequence[_Result], call_ids: Sequence[str | None]) -> Content:
    parts = [
        Part(
            function_response=FunctionResponse(
                id=call_id, name=result.call.asked.name, response=result.response
            )
        )
        for result, call_id in zip(results, call_ids, strict=True)
    ]
    return Content(role="user", parts=parts)


def _given(**values: str | None) -> Json:
    return {name: value for name, value in values.items() if value is not None}
