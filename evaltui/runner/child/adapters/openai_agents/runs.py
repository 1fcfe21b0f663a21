"""Runs of the Agents SDK, reported through its own hooks: those of agents that are tools, too."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from agents.lifecycle import RunHooksBase
from agents.run import AgentRunner
from agents.tool_context import ToolContext

from .....core.model.events import Step, is_final
from ..base import nested_in
from ..frameworks.tools import response_of
from .items import groups_of, is_output, is_plain, item_json, result_part
from .log import ConversationLog, current_log
from .models import asking_run, output_of, tokens_of
from .tools import watch_tool


class _RunWatch:
    """Reports one run. `inner` are the hooks of who began it, which are called as well.

    A run that neither is the conversation's own (`is_root`) nor is part of a tool call, such as that of a
    guardrail, is no part of the conversation: only what its models are asked is reported.
    """

    def __init__(
        self, log: ConversationLog, inner: RunHooksBase[Any] | None = None, *, is_root: bool
    ) -> None:
        self._log = log
        self._inner = inner or RunHooksBase()
        self._reports = is_root or nested_in.get() is not None
        self.agent = ""
        """The name of the agent that works."""

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        self.agent = agent.name
        for tool in agent.tools:
            watch_tool(tool)
        await self._inner.on_agent_start(context, agent)

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        self.report_outputs(())
        await self._inner.on_agent_end(context, agent, output)

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]
    ) -> None:
        self.agent = agent.name
        self.report_outputs(input_items)
        await self._inner.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        if self._reports:
            self._report_response(agent.name, response)
        await self._inner.on_llm_end(context, agent, response)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        # Those of MCP servers are made anew for each request.
        watch_tool(tool)
        await self._inner.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        if self._reports and isinstance(context, ToolContext):
            self._log.add_result(context.tool_call_id, response_of(result))
        await self._inner.on_tool_end(context, agent, tool, result)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        if self._reports:
            self._log.report_results()
            self._log.report(from_agent.name, None, transfer=to_agent.name)
        await self._inner.on_handoff(context, from_agent, to_agent)

    def _report_response(self, agent: str, response: Any) -> None:
        items = output_of(response)
        first = {"usage": tokens_of(response), "framework": None if is_plain(items) else {"items": items}}
        groups = groups_of(items)
        for number, group in enumerate(groups):
            parts = [self._log.with_event_id(part, agent) for part in group.parts]
            content = group.content | {"parts": parts}
            final = number == len(groups) - 1 and is_final(Step(agent, content))
            self._log.report(agent, content, final=final, **first)
            first = {}

    def report_outputs(self, items: Iterable[Any]) -> None:
        """Reports the results that are there and those among items that are not known yet: of hand-offs, of
        calls that a person rejected, and of tools that the SDK's hooks do not tell the call of."""
        if self._reports:
            for item in filter(is_output, map(item_json, items)):
                result = result_part(item, "")["function_response"]
                self._log.add_result(result["id"], result["response"])
            self._log.report_results()


# The SDK takes nothing else for hooks.
RunWatch: Any = type("RunWatch", (_RunWatch, RunHooksBase), {})


@functools.cache
def watch_runs() -> None:
    """From now on, the runs that tools and guardrails begin are reported, too."""
    runner: Any = AgentRunner
    run, run_streamed = runner.run, runner.run_streamed

    @functools.wraps(run)
    async def watched(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:
        with _watching(options) as watched_options:
            try:
                return await run(self, starting_agent, input, **watched_options)
            finally:
                if isinstance(watch := watched_options.get("hooks"), _RunWatch):
                    watch.report_outputs(())

    @functools.wraps(run_streamed)
    def watched_stream(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:
        # The task that it starts has the context of now.
        with _watching(options) as watched_options:
            return run_streamed(self, starting_agent, input, **watched_options)

    runner.run, runner.run_streamed = watched, watched_stream


@contextmanager
def _watching(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    log, hooks = current_log.get(), options.get("hooks")
    if log is None or not isinstance(hooks, RunHooksBase | None):
        yield options
        return
    watch = hooks if isinstance(hooks, RunWatch) else RunWatch(log, hooks, is_root=False)
    token = asking_run.set(watch)
    try:
        yield options | {"hooks": watch}
    finally:
        asking_run.reset(token)
