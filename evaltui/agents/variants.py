"""Applies the changes of a variant to an agent, in the process that runs it. Runs only in the child
process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.model.variants import Change, Variant
from ..core.secrets import is_secret
from ..text.values import did_you_mean
from .adapters.changes import AppliedChanges, VariantError
from .own_modules import load_env_file
from .protocol import Message

if TYPE_CHECKING:
    from .native.agent import Agent


def apply_environment(load: Message) -> AppliedChanges | None:
    """Sets the environment variables of the variant of a message `load`; returns None without a variant.

    Called before the agent is imported. Raises AgentLoadError.
    """
    variant = load["variant"]
    if variant is None:
        return None
    applied = AppliedChanges(Variant.from_json(variant), list(variant["done"]))
    # The variant changes variables of these files; the agent's own file wins.
    for folder in (load["agent_dir"], load["home"]):
        load_env_file(Path(folder))
    for change in applied.variant.of_kind("env"):
        name, value = change.name, str(change.value)
        before = os.environ.get(name)
        if before == value:
            applied.same.append(f"{name} has this value already")
        else:
            shown = {"old": before, "new": value}
            hidden = {side: f"<{name}>" for side, text in shown.items() if text and is_secret(name, text)}
            applied.done.append({"what": change.key, "new": value, "old": before or "not set", **hidden})
            os.environ[name] = value
    return applied


def sets_environment(load: Message) -> bool:
    """Whether the variant of a message `load` changes environment variables."""
    variant = load["variant"]
    return variant is not None and any(Change(key, None).kind == "env" for key in variant["changes"])


def change_agent(applied: AppliedChanges, agent: Any, framework: str) -> None:
    """Applies the variant's changes of model, config and instruction to the agent object. Raises VariantError
    where the agent has no such setting."""
    of_object = [
        change for change in applied.variant.changes if change.kind in ("model", "config", "instruction")
    ]
    if of_object and framework == "adk":
        from .adapters.adk.agents import change_agents

        change_agents(agent, of_object, applied)
    elif of_object and framework == "native":
        _change_native_agent(agent, of_object, applied)
    elif of_object:
        what = f"an agent of {framework}" if framework else "a function"
        raise VariantError(
            f"{of_object[0].key} cannot be changed in {what}, only env, git and agent can: read the model or "
            "prompt from an environment variable"
        )
    applied.require_some()


def _change_native_agent(agent: Agent, changes: Sequence[Change], applied: AppliedChanges) -> None:
    """Applies changes to a native agent. Raises VariantError for an unknown agent or field name."""
    from .adapters.changes import field_of, with_field

    for change in changes:
        if change.kind != "config" and change.name not in ("", agent.name):
            hint = did_you_mean(change.name, [agent.name]) or f". The agent is {agent.name}"
            raise VariantError(f"{change.key}: no agent {change.name!r}{hint}")
        match change.kind:
            case "model":
                before = agent.model if isinstance(agent.model, str) else agent.model.name
                if applied.set(f"{agent.name}.model", before, str(change.value)):
                    agent.model = str(change.value)
            case "config":
                config = with_field(agent.config, change.name, change.value)
                before, after = (field_of(side, change.name) for side in (agent.config, config))
                if applied.set(f"{agent.name}.{change.key}", before, after):
                    agent.config = config
            case _:
                if applied.set(f"{agent.name}.instruction", agent.instruction, str(change.value)):
                    agent.instruction = str(change.value)
