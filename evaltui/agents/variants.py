"""Applies the changes of a variant to an agent, in the process that runs it. Runs only in the child
process."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.model.variants import Change, Variant
from ..core.secrets import is_secret
from ..text.values import show_value
from .adapters.base import AgentLoadError
from .own_modules import load_env_file
from .protocol import Message

_LONGEST = 60


class VariantError(AgentLoadError):
    """A variant cannot be applied to the agent, or changes nothing."""


@dataclass
class AppliedChanges:
    """The changes of a variant that were made, and those that were not needed."""

    variant: Variant
    done: list[Message] = field(default_factory=list)
    """The changes made, each with `what`, and `old` and `new` as text."""
    same: list[str] = field(default_factory=list)
    """Sentences on settings that already had the value of the variant."""

    def set(self, what: str, old: Any, new: Any) -> bool:
        """Records a change. Returns False where the value is the same."""
        if old == new:
            self.same.append(f"{what} is {_shown(new)} already")
            return False
        self.done.append({"what": what, "old": _shown(old), "new": _shown(new)})
        return True

    def require_some(self) -> None:
        """Raises VariantError where nothing was changed."""
        if self.variant.changes and not self.done:
            raise VariantError(f"changes nothing: {'; '.join(self.same)}")


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    if callable(value):
        return f"{getattr(value, '__name__', type(value).__name__)}()"
    return show_value(value, _LONGEST) if not isinstance(value, str) else _one_line(value)


def _one_line(text: str) -> str:
    first, *others = text.strip().splitlines() or [""]
    return f"{first[:_LONGEST]}…" if others or len(first) > _LONGEST else first


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
