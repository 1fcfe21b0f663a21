"""The parts of an ADK agent: its sub-agents, its toolsets and its description."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.registry import LLMRegistry
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import BaseNode

from ....core.model.events import Json
from ....core.model.variants import Change
from ....text.values import did_you_mean
from ...errors import message_of
from ...model_config import field_of, with_field
from ...variants import AppliedChanges, VariantError
from ..base import AgentLoadError, ToolInfo, close_quietly, plain_json


def find_agent(root: BaseNode, name: str) -> BaseNode:
    """The agent of that name at or below `root`, the first in depth-first order.

    Raises AgentLoadError with the most similar name, else all names.
    """
    agents = {agent.name: agent for agent in reversed([root, *agents_below(root)])}
    if name in agents:
        return agents[name]
    hint = did_you_mean(name, agents) or f". Known: {', '.join(agents)}"
    raise AgentLoadError(f"no agent {name!r}{hint}")


def agents_below(root: BaseNode) -> list[BaseAgent]:
    """The agents to which `root` may transfer the conversation, at any depth."""
    return [node for node in _walk(root, _parts) if isinstance(node, BaseAgent) and node is not root]


def _llm_agents(root: BaseNode) -> list[LlmAgent]:
    """The agents with a model at or below `root`, in depth-first order, also in agent tools."""
    agents: list[LlmAgent] = [node for node in _walk(root, _parts_and_tools) if isinstance(node, LlmAgent)]
    return agents


def _walk(root: BaseNode, parts: Callable[[BaseNode], list[BaseNode]]) -> Iterator[BaseNode]:
    pending, seen = [root], set[int]()
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            pending += reversed(parts(node))


def _parts(node: BaseNode) -> list[BaseNode]:
    graph = getattr(node, "graph", None)
    return [*getattr(node, "sub_agents", []), *(graph.nodes if graph else [])]


def _parts_and_tools(node: BaseNode) -> list[BaseNode]:
    return _parts(node) + [agent for tool in _tools(node) for agent in _agents_in_tool(tool)]


def _tools(node: BaseNode) -> list[Any]:
    return list(getattr(node, "tools", None) or [])


def _agents_in_tool(tool: object) -> list[BaseNode]:
    candidates = [tool, getattr(tool, "agent", None), getattr(tool, "node", None)]
    return [candidate for candidate in candidates if isinstance(candidate, BaseNode)]


def model_name(root: BaseNode) -> str:
    """The name of an agent's model, which may be inherited from a parent agent; "" where there is none."""
    agent: BaseAgent | None = root if isinstance(root, BaseAgent) else None
    while agent is not None:
        if isinstance(agent, LlmAgent) and agent.model:
            return agent.model if isinstance(agent.model, str) else agent.model.model
        agent = agent.parent_agent
    return ""


class Toolsets:
    """The toolsets of a whole tree of agents, opened and closed once, both in the task of the caller."""

    def __init__(self) -> None:
        self._tools: dict[int, list[BaseTool]] = {}
        # Each with its own `close`, where the object has one in place of its class's.
        self._opened: list[tuple[BaseToolset, Any]] = []

    async def open(self, root: BaseNode) -> list[str]:
        """Opens every toolset at or below `root`, also in agent tools. Returns the errors as sentences."""
        wrong: list[str] = []
        for node in _walk(root, _parts_and_tools):
            for toolset in _tools(node):
                if isinstance(toolset, BaseToolset) and id(toolset) not in self._tools:
                    wrong += await self._open(toolset, node.name)
        return wrong

    async def _open(self, toolset: BaseToolset, agent: str) -> list[str]:
        name = type(toolset).__name__
        if vars(toolset).get("close") is not _stay_open:
            self._opened.append((toolset, vars(toolset).get("close")))
            # AgentTool closes the toolsets of its agent after each call, in a task of its own.
            vars(toolset)["close"] = _stay_open
        self._tools[id(toolset)] = []
        try:
            self._tools[id(toolset)] = await toolset.get_tools_with_prefix()
        except Exception as error:
            # The agent runs without these tools, as in ADK, and its cases show the effect.
            return [
                f"{name} of agent {agent} could not be opened: {type(error).__name__}: {message_of(error)}"
            ]
        wrong: list[str] = []
        for tool in self._tools[id(toolset)]:
            for inner in _agents_in_tool(tool):
                wrong += await self.open(inner)
        return wrong

    def describe_tools(self, agent: BaseNode) -> tuple[ToolInfo, ...]:
        return tuple(_describe(tool) for union in _tools(agent) for tool in self._resolve(union))

    def functions(self, agent: BaseNode) -> dict[str, Any]:
        """The functions of an agent's function tools, by the tools' names."""
        unions = [union for union in _tools(agent) if not isinstance(union, BaseToolset)]
        tools = [tool for union in unions for tool in self._resolve(union)]
        return {tool.name: tool.func for tool in tools if isinstance(tool, FunctionTool)}

    def _resolve(self, union: Any) -> list[Any]:
        if isinstance(union, BaseToolset):
            return self._tools[id(union)]
        if isinstance(union, (BaseTool, BaseNode)):
            return [union]
        return [FunctionTool(func=union)]

    async def close(self) -> None:
        """Closes the toolsets. An error is written to stderr only, since the results are complete by then."""
        while self._opened:
            toolset, own_close = self._opened.pop()
            # The creator of an agent object may go on using it.
            vars(toolset).pop("close", None)
            if own_close is not None:
                vars(toolset)["close"] = own_close
            await close_quietly(type(toolset).__name__, toolset.close)


async def _stay_open() -> None:
    pass


def _describe(tool: BaseTool | BaseNode) -> ToolInfo:
    return ToolInfo(tool.name, tool.description, _parameters(tool) if isinstance(tool, BaseTool) else None)


def _parameters(tool: BaseTool) -> Json | None:
    try:
        declaration = tool._get_declaration()
        if declaration and declaration.parameters:
            return plain_json(declaration.parameters.json_schema)
        return declaration.parameters_json_schema if declaration else None
    except Exception:
        # A tool that cannot be declared is still listed by its name; the error is shown in the first turn.
        return None


def change_agents(agent: Any, changes: Sequence[Change], applied: AppliedChanges) -> None:
    """Applies the changes to the LLM agents of a tree, also in agent tools. Raises VariantError."""
    root: Any = agent.root_agent if isinstance(agent, App) else agent
    agents = _llm_agents(root)
    if not agents:
        raise VariantError(f"{changes[0].key}: {root.name} has no LLM agent")
    for change in changes:
        match change.kind:
            case "model":
                _check_model(change, agents)
                for llm_agent in _agents_named(change, agents):
                    _set_model(llm_agent, str(change.value), applied)
            case "config":
                for llm_agent in agents:
                    _set_field(llm_agent, change, applied)
            case _:
                _set_instruction(_instructed_agent(root, change, agents), str(change.value), applied)


def _agents_named(change: Change, agents: Sequence[LlmAgent]) -> list[LlmAgent]:
    """The agents of the name in a change; all agents without a name. Raises VariantError."""
    if not change.name:
        return list(agents)
    if matches := [agent for agent in agents if agent.name == change.name]:
        return matches
    names = list(dict.fromkeys(agent.name for agent in agents))
    hint = did_you_mean(change.name, names) or f". LLM agents: {', '.join(names)}"
    raise VariantError(f"{change.key}: no LLM agent {change.name!r}{hint}")


def _instructed_agent(root: Any, change: Change, agents: Sequence[LlmAgent]) -> LlmAgent:
    """The agent whose instruction is changed. Raises VariantError where the change must name one."""
    first, *others = matches = _agents_named(change, agents)
    if change.name or not others or root is first:
        return first
    names = ", ".join(agent.name for agent in matches)
    raise VariantError(
        f"{root.name} has no instruction. Name the agent: instruction.AGENT=FILE. Known: {names}"
    )


def _check_model(change: Change, agents: Sequence[LlmAgent]) -> None:
    """Checks the model of a change. Raises VariantError for a model that google-adk does not know."""
    if all(isinstance(agent.model, BaseLlm) for agent in _agents_named(change, agents)):
        return
    try:
        LLMRegistry.resolve(str(change.value))
    except (ValueError, ImportError) as error:
        first = str(error).partition("\n")[0]
        raise VariantError(f"{change.key}={change.value}: google-adk: {first}") from error


def _set_model(agent: LlmAgent, name: str, applied: AppliedChanges) -> None:
    before = agent.model
    is_new = applied.set(f"{agent.name}.model", model_name(agent) or None, name)
    if is_new and isinstance(before, BaseLlm):
        # LiteLlm and other models have more than a name: keys, addresses, retries.
        agent.model = before.model_copy(update={"model": name})
    else:
        agent.model = before if isinstance(before, BaseLlm) else name


def _set_field(agent: LlmAgent, change: Change, applied: AppliedChanges) -> None:
    config = with_field(agent.generate_content_config, change.name, change.value)
    before, after = (field_of(side, change.name) for side in (agent.generate_content_config, config))
    if applied.set(f"{agent.name}.{change.key}", before, after):
        try:
            agent.generate_content_config = LlmAgent.validate_generate_content_config(config)
        except ValueError as error:
            raise VariantError(f"{change.key}: google-adk: {error}") from error


def _set_instruction(agent: LlmAgent, text: str, applied: AppliedChanges) -> None:
    if applied.set(f"{agent.name}.instruction", agent.instruction, text):
        agent.instruction = text
