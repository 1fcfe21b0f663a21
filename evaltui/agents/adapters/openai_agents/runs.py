"""Reports runs of the Agents SDK through its hooks, also of agents that are tools.

Each call of a function tool goes through the call recorder.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from agents import FunctionTool, ItemHelpers, ToolErrorFormatterArgs
from agents.lifecycle import RunHooksBase
from agents.run import AgentRunner
from agents.tool_context import ToolContext

from ....core.model.events import Json, Step, is_final, parts_in
from ....core.recordings.entry import ToolCall
from ...call_recorder import ToolOutcome
from ...errors import describe_error
from ..base import Reporter, Steps, current_reporter, nested_in
from ..calls import ToolForm, call_tool
from ..deps import Deps
from ..values import response_of, result_of
from .items import arguments_of, is_output, is_plain, item_json, output_contents, result_part
from .models import current_run, output_of, tokens_of


class OpenCall(NamedTuple):
    """A call without a result."""

    run: str | None
    """The id of the tool call in whose run it was made; None for a call of the conversation itself."""
    tool: str
    agent: str


class ConversationLog:
    """Reports the steps of one conversation, each with the changes of state since the step before.

    `context` is shared by all its runs.
    """

    def __init__(self, reporter: Reporter, context: Deps, past: Sequence[Step]) -> None:
        self.context = context
        self.steps = Steps(reporter, past, context.state)
        self.recorded: dict[str, tuple[Any, Json]] = {}
        """The SDK's value and the recorded response of stubbed calls, by the ids of the calls."""
        self.ended_with_text = False
        """Whether the last step of the conversation's own agents is a text."""
        self._open: dict[str, OpenCall] = {}
        self._results: dict[str, Json] = {}
        for step in past:
            for part in step.parts:
                self.add_call(part, step.author)

    def report(self, agent: str, content: Json | None, *, final: bool = False, **more: Any) -> None:
        """Reports a step, see `Steps.report`."""
        self.steps.report(agent, content, final=final, **more)
        if nested_in.get() is None:
            self.ended_with_text = final and any("text" in part for part in parts_in(content))

    def add_call(self, part: Json, agent: str) -> None:
        """A call in a part is then open, until there is its result."""
        if call := part.get("function_call"):
            self._open[call["id"]] = OpenCall(nested_in.get(), call["name"], agent)
        elif result := part.get("function_response"):
            self._open.pop(result["id"], None)

    def add_result(self, call_id: str, response: Json) -> None:
        """Stores the result of a call for `report_results`; a second result of a call is ignored."""
        if call_id in self._open:
            sdk_value, recorded = self.recorded.pop(call_id, (None, response))
            self._results.setdefault(call_id, recorded if response == response_of(sdk_value) else response)

    def report_results(self) -> None:
        """Reports the stored results of the current run, in the order of their calls."""
        done = [
            call_id
            for call_id, call in self._open.items()
            if call.run == nested_in.get() and call_id in self._results
        ]
        if done:
            calls = [self._open.pop(call_id) for call_id in done]
            parts = [
                {
                    "function_response": {
                        "id": call_id,
                        "name": call.tool,
                        "response": self._results.pop(call_id),
                    }
                }
                for call_id, call in zip(done, calls, strict=True)
            ]
            self.report(calls[0].agent, {"role": "user", "parts": parts})


# The log of the conversation that the current task works for.
current_log: ContextVar[ConversationLog | None] = ContextVar("evaltui_agents_log", default=None)


class RunWatch(RunHooksBase):  # type: ignore[misc]
    """Reports one run.

    A run that is neither the conversation's own (`is_root`) nor part of a tool call, such as that of a
    guardrail, is not part of the conversation: only its model requests are reported.
    """

    def __init__(self, log: ConversationLog, *, is_root: bool) -> None:
        self._log = log
        self._reports = is_root or nested_in.get() is not None
        self.agent = ""
        """The name of the agent that is running."""

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        self.report_outputs(())

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]
    ) -> None:
        self.agent = agent.name
        self.report_outputs(input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        if self._reports:
            self._report_response(agent.name, response)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        # Here, since tools of MCP servers are created again for each request.
        watch_tool(tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        if self._reports and isinstance(context, ToolContext):
            self._log.add_result(context.tool_call_id, response_of(result))

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        if self._reports:
            self._log.report_results()
            self._log.report(from_agent.name, None, transfer=to_agent.name)

    def _report_response(self, agent: str, response: Any) -> None:
        items = output_of(response)
        first = {"usage": tokens_of(response), "framework": None if is_plain(items) else {"items": items}}
        contents = output_contents(items)
        for number, content in enumerate(contents, 1):
            for part in content["parts"]:
                self._log.add_call(part, agent)
            final = number == len(contents) and is_final(Step(agent, content))
            self._log.report(agent, content, final=final, **first)
            first = {}

    def report_outputs(self, items: Iterable[Any]) -> None:
        """Reports the stored results and new ones among items: of hand-offs, of calls that a person rejected,
        and of tools for which the SDK's hooks have no call."""
        if self._reports:
            for item in filter(is_output, map(item_json, items)):
                result = result_part(item, "")["function_response"]
                self._log.add_result(result["id"], result["response"])
            self._log.report_results()


@functools.cache
def watch_runs() -> None:
    """Wraps the runner, so that runs of tools and guardrails are reported too."""
    runner: Any = AgentRunner
    run, run_streamed = runner.run, runner.run_streamed

    @functools.wraps(run)
    async def watched(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:
        with _watching(options) as watched_options:
            try:
                return await run(self, starting_agent, input, **watched_options)
            finally:
                if isinstance(watch := watched_options.get("hooks"), RunWatch):
                    watch.report_outputs(())

    @functools.wraps(run_streamed)
    def watched_stream(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:
        # The task that it starts copies the current context.
        with _watching(options) as watched_options:
            return run_streamed(self, starting_agent, input, **watched_options)

    runner.run, runner.run_streamed = watched, watched_stream


@contextmanager
def _watching(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    log, hooks = current_log.get(), options.get("hooks")
    if log is None or not isinstance(hooks, RunWatch | None):
        yield options
        return
    watch = hooks or RunWatch(log, is_root=False)
    token = current_run.set(watch)
    try:
        yield options | {"hooks": watch}
    finally:
        current_run.reset(token)


_Invoke = Callable[..., Awaitable[Any]]

# The key of the text that the SDK sends to a model, where the recorded result would give another text.
_SHOWN = "shown"
_WATCHED = "__evaltui_watched__"


def watch_tool(tool: object) -> None:
    """Wraps a tool, so that its calls go through the call recorder of their task.

    Where the SDK calls an object of its own that wraps the function, the class of that object is wrapped: the
    SDK reads the object and its class when it decides on approvals.
    """
    if not isinstance(tool, FunctionTool):
        return
    invoke, kind = tool.on_invoke_tool, type(tool.on_invoke_tool)
    if hasattr(invoke, _WATCHED) or hasattr(kind.__call__, _WATCHED):
        return
    if inspect.isfunction(kind.__call__):
        kind.__call__ = _watched(kind.__call__, lambda args: args[1:])
    else:
        tool.on_invoke_tool = _watched(invoke, lambda args: args)


def _watched(invoke: _Invoke, call_args: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> _Invoke:
    async def watched(*args: Any) -> Any:
        context, arguments = call_args(args)
        log = current_log.get()
        if log is None or not isinstance(context, ToolContext):
            return await invoke(*args)
        return await _call(log, context, arguments, functools.partial(invoke, *args))

    # A partial function has no name.
    functools.update_wrapper(watched, invoke)
    setattr(watched, _WATCHED, True)
    return watched


async def _call(
    log: ConversationLog, context: ToolContext[Any], arguments: str, invoke: Callable[[], Awaitable[Any]]
) -> Any:
    tool = _tool_of(context)
    return await call_tool(
        id(context),
        context.tool_name,
        lambda: arguments_of(arguments),
        context.tool_call_id,
        invoke,
        ToolForm(
            functools.partial(_outcome, context, tool),
            functools.partial(_read, log, context.tool_call_id),
            log.context.state,
            log.context.apply,
            is_recorded=tool is None or agent_in(tool) is None,
        ),
    )


def _outcome(context: ToolContext[Any], tool: FunctionTool | None, result: Any) -> ToolOutcome:
    shown = _shown(context, result) if tool is None or tool.output_json_schema is None else {}
    return ToolOutcome(response_of(result), actions=shown)


def _tool_of(context: ToolContext[Any]) -> FunctionTool | None:
    tools = () if context.agent is None else context.agent.tools
    return next(
        (tool for tool in tools if isinstance(tool, FunctionTool) and tool.name == context.tool_name), None
    )


def _shown(context: ToolContext[Any], result: Any) -> Json:
    """The text of a result that a model gets, where the recorded result would give another text."""
    if context.tool_call is None:
        return {}
    of_result, of_recorded = (
        ItemHelpers.tool_call_output_item(context.tool_call, value)["output"]
        for value in (result, result_of(response_of(result)))
    )
    return {_SHOWN: of_result} if isinstance(of_result, str) and of_result != of_recorded else {}


def _read(log: ConversationLog, call_id: str, recorded: ToolCall) -> Any:
    value = recorded.actions.get(_SHOWN, result_of(recorded.result))
    log.recorded[call_id] = value, recorded.result
    return value


def report_error(args: ToolErrorFormatterArgs[Any]) -> None:
    """A hook of the SDK for errors of tools: reports the error; the model gets the SDK's default text."""
    reporter = current_reporter.get()
    if reporter is not None and args.error is not None:
        agent = getattr(getattr(args.run_context, "agent", None), "name", "")
        reporter.event("error", agent=agent, data=describe_error(args.error), parent=nested_in.get() or "")


def agent_in(tool: object) -> Any:
    """The agent that a tool runs; None for any other tool."""
    return getattr(tool, "_agent_instance", None)
