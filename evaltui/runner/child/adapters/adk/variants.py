"""What a variant changes of agents of google-adk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.registry import LLMRegistry

from .....core.model.variants import Change
from .....text.values import did_you_mean
from ..applied_changes import AppliedChanges, VariantError
from ..generation_config import field_of, with_field
from .agents import llm_agents, model_name


def change_agents(found: Any, changes: Sequence[Change], applied: AppliedChanges) -> None:
    """Changes the LLM agents of a tree, those of agent tools too. Raises VariantError."""
    root: Any = found.root_agent if isinstance(found, App) else found
    agents = llm_agents(root)
    if not agents:
        raise VariantError(f"{changes[0].key}: {root.name} has no LLM agent")
    for change in changes:
        match change.kind:
            case "model":
                _check_model(change, agents)
                for agent in _meant(change, agents):
                    _set_model(agent, str(change.value), applied)
            case "config":
                for agent in agents:
                    _set_field(agent, change, applied)
            case _:
                _set_instruction(_one(root, change, agents), str(change.value), applied)


def _meant(change: Change, agents: Sequence[LlmAgent]) -> list[LlmAgent]:
    """The agents of the name that a change has, all without one. Raises VariantError."""
    if not change.name:
        return list(agents)
    if found := [agent for agent in agents if agent.name == change.name]:
        return found
    names = list(dict.fromkeys(agent.name for agent in agents))
    hint = did_you_mean(change.name, names) or f". LLM agents: {', '.join(names)}"
    raise VariantError(f"{change.key}: no LLM agent {change.name!r}{hint}")


def _one(root: Any, change: Change, agents: Sequence[LlmAgent]) -> LlmAgent:
    """The agent whose instruction is meant. Raises VariantError where it has to be named."""
    first, *others = found = _meant(change, agents)
    if change.name or not others or root is first:
        return first
    names = ", ".join(agent.name for agent in found)
    raise VariantError(
        f"{root.name} has no instruction. Name the agent: instruction.AGENT=FILE. Known: {names}"
    )


def _check_model(change: Change, agents: Sequence[LlmAgent]) -> None:
    """Raises VariantError for a model that google-adk does not know."""
    if all(isinstance(agent.model, BaseLlm) for agent in _meant(change, agents)):
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
        # LiteLlm and others hold more than a name: keys, addresses, retries.
        agent.model = before.model_copy(update={"model": name})
    else:
        agent.model = before if isinstance(before, BaseLlm) else name


def _set_field(agent: LlmAgent, change: Change, applied: AppliedChanges) -> None:
    config = with_field(agent.generate_content_config, change.name, change.value)
    before, after = (field_of(one, change.name) for one in (agent.generate_content_config, config))
    if applied.set(f"{agent.name}.{change.key}", before, after):
        try:
            agent.generate_content_config = LlmAgent.validate_generate_content_config(config)
        except ValueError as error:
            raise VariantError(f"{change.key}: google-adk: {error}") from error


def _set_instruction(agent: LlmAgent, text: str, applied: AppliedChanges) -> None:
    if applied.set(f"{agent.name}.instruction", agent.instruction, text):
        agent.instruction = text
