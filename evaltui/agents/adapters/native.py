"""Runs an `evaltui.Agent`: asks the model and runs the tools that it calls, until it answers."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter

from ...core.model.content import (
    Content,
    FunctionCall,
    FunctionResponse,
    GroundingMetadata,
    Part,
    UsageMetadata,
)
from ...core.model.events import Json, Step, text_content
from ...core.recordings.entry import UNASKED_CONFIG, JsonRequest
from ...text.figures import counted
from ..native.agent import Agent, ToolContext
from ..native.models import Model, ModelRequest, ModelResponse, ScriptedModel, own_parts, text_of, usage_data
from .base import (
    DEFAULT_APP_NAME,
    DEFAULT_USER_ID,
    AgentAdapter,
    AgentInfo,
    AgentSession,
    Reporter,
    SessionSpec,
    Steps,
    ToolInfo,
    apply_changes,
    call_numbers,
    contents_for_model,
    copy_state,
    new_event_id,
    plain_json,
    source_places,
    state_after,
)
from .calls import Described, ModelCall, ResponseFormat, ToolForm, ask_model, call_tool

if TYPE_CHECKING:
    from google.genai.types import GenerateContentConfig

    from ..native.gemini import FailedAttempt, GeminiModel

MAX_MODEL_CALLS = 50


class NativeAdapter(AgentAdapter):
    """The adapter for agents of the class `evaltui.Agent`."""

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
    from ..native.gemini import GeminiModel

    return GeminiModel(agent.model)


def _as_gemini(model: Model) -> GeminiModel | None:
    """The model, if google-genai reaches it; else None."""
    if isinstance(model, ScriptedModel):
        # Importing google-genai takes longer than a run of such an agent.
        return None
    from ..native.gemini import GeminiModel

    return model if isinstance(model, GeminiModel) else None


@dataclass(frozen=True)
class _Call:
    """A function call of the model. `id` is the model's id, or a new one where it gave none."""

    id: str
    function_call: FunctionCall


class NativeSession(AgentSession):
    """One conversation: its contents and its state."""

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
        self._steps = Steps(reporter, past, self.state_now)
        self._contents = [
            Content.model_validate_json(json.dumps(content)) for content in contents_for_model(past)
        ]
        self._call_numbers = call_numbers(past)

    async def send(self, content: Json) -> None:
        """Runs a turn. Raises any error of tools and of the model; the turn is then removed from the
        contents, but its changes of state stay."""
        before = len(self._contents)
        try:
            await self._turn(content)
        except BaseException:
            # A model refuses a conversation with calls without results, so it could not continue.
            del self._contents[before:]
            raise

    def state_now(self) -> Json:
        """The current state. Raises TypeError that names the key of a value that JSON cannot hold."""
        return copy_state(self._context.state)

    async def state(self) -> Json:
        return self.state_now()

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
                self._steps.report_late_changes(self._agent.name)
                return
            results = await self._run_tools(calls)
            content_with_ids = _results_content(calls, results, [call.id for call in calls])
            self._steps.report(self._agent.name, plain_json(content_with_ids))
            self._contents.append(_results_content(calls, results, [call.function_call.id for call in calls]))
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
        # A scripted model costs nothing, and its rules are part of the agent.
        is_scripted, gemini = isinstance(self._model, ScriptedModel), _as_gemini(self._model)
        call = ModelCall(
            self._model.name,
            self._agent.name,
            partial(_json_request, self._model.name, request),
            (self._model, request),
            # A model of google-genai goes through the gate with each attempt.
            is_gated=not is_scripted and gemini is None,
            is_recorded=not is_scripted,
            # Failed attempts are reported by `on_failed`, and the last error ends the turn.
            reports_errors=False,
            id=new_event_id(),
        )
        pieces: list[str] = []

        def on_text(text: str) -> None:
            pieces.append(text)
            self._report_piece(text)

        async def ask() -> ModelResponse:
            if gemini:
                report_failed = partial(self._report_failed_attempt, call.id)
                response = await gemini.generate(request, on_text, on_failed=report_failed, waits=call.waits)
            else:
                response = await self._model.generate(request, on_text)
            return replace(response, parts=own_parts(response.parts))

        def read(data: Json) -> ModelResponse:
            response = _response_from_json(data)
            for piece in _pieces(response, data.get("pieces", [])):
                self._report_piece(piece)
            return response

        def write(response: ModelResponse) -> Json:
            return _response_to_json(response) | _lengths(response, pieces)

        return await ask_model(call, ask, ResponseFormat(write, read, _described))

    def _report_piece(self, text: str) -> None:
        # Partial text is shown at once, and is not part of the record.
        self._reporter.event(
            "text",
            text_content("model", text),
            agent=self._agent.name,
            data={"partial": True},
        )

    def _report_failed_attempt(self, request_id: str, failed: FailedAttempt) -> None:
        # The event has no step id, so it is not part of the record.
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
        self._steps.report(
            self._agent.name,
            content,
            final=not calls,
            usage=usage_data(response),
            grounding=plain_json(response.grounding) if response.grounding else None,
            model_version=response.model_version,
            error_code=response.finish_reason if failed else None,
            error_message=response.finish_message if failed else None,
        )

    async def _run_tools(self, calls: Sequence[_Call]) -> list[Json]:
        """Runs all tools in parallel; returns the results in the order of the calls. The first exception
        cancels the others."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._run_tool(call)) for call in calls]
        except BaseExceptionGroup as failed:
            # Raised without its group, so that the traceback is the tool's.
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _run_tool(self, call: _Call) -> Json:
        name = call.function_call.name or ""
        if name not in self._agent.tools:
            raise ValueError(
                f"the model called tool {name!r}, which agent {self._agent.name!r} does not have; "
                f"it has {', '.join(self._agent.tools) or 'no tools'}"
            )
        args = call.function_call.args or {}
        response: Json = await call_tool(
            call,
            name,
            lambda: args,
            call.id,
            partial(self._agent.tools[name].call, args, self._context),
            ToolForm(state=self.state_now, apply=partial(apply_changes, self._context.state)),
        )
        return response


def _model_content(parts: Sequence[Part]) -> Json | None:
    return plain_json(Content(role="model", parts=list(parts))) if parts else None


def _results_content(calls: Sequence[_Call], results: Sequence[Json], ids: Sequence[str | None]) -> Content:
    responses = [
        FunctionResponse(id=call_id, name=call.function_call.name, response=result)
        for call, result, call_id in zip(calls, results, ids, strict=True)
    ]
    return Content(role="user", parts=[Part(function_response=response) for response in responses])


def _json_request(model: str, request: ModelRequest) -> JsonRequest:
    return JsonRequest(
        model=model,
        instruction=request.system_instruction,
        tools=[tool.as_json() for tool in request.tools],
        contents=[plain_json(content) for content in request.contents],
        config=_config(request.config),
    )


def _described(response: ModelResponse) -> Described:
    about = {"model_version": response.model_version, "finish_reason": response.finish_reason}
    data = {name: value for name, value in about.items() if value is not None}
    return Described(_model_content(response.parts), usage_data(response), data)


def _config(config: GenerateContentConfig | None) -> Json:
    """The fields of a config on which the answer depends."""
    if config is None:
        return {}
    data: Json = config.model_dump(mode="json", exclude_none=True, exclude=set(UNASKED_CONFIG))
    return data


def _response_to_json(response: ModelResponse) -> Json:
    data: Json = {
        item.name: plain_json(value) if isinstance(value, BaseModel) else value
        for item in fields(response)
        if (value := getattr(response, item.name)) is not None
    }
    return data | {"parts": [plain_json(part) for part in response.parts]}


def _response_from_json(data: Json) -> ModelResponse:
    def read(name: str, kind: Any) -> Any:
        # Bytes are base64 in JSON only.
        return TypeAdapter(kind).validate_json(json.dumps(data[name])) if name in data else None

    return ModelResponse(
        parts=read("parts", list[Part]),
        usage=read("usage", UsageMetadata),
        grounding=read("grounding", GroundingMetadata),
        model_version=data.get("model_version"),
        finish_reason=data.get("finish_reason"),
        finish_message=data.get("finish_message"),
    )


def _lengths(response: ModelResponse, streamed: Sequence[str]) -> Json:
    """The lengths of the pieces in which the text was streamed; of an answer that restarted, those of its
    last attempt."""
    text, lengths = text_of(response), list[int]()
    for piece in reversed(streamed):
        if not text.endswith(piece):
            return {}
        text = text.removesuffix(piece)
        lengths.insert(0, len(piece))
        if not text:
            return {"pieces": lengths}
    return {}


def _pieces(response: ModelResponse, lengths: Sequence[int]) -> list[str]:
    text = text_of(response)
    return [text[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]
