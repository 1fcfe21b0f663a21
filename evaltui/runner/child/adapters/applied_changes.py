"""What of a variant has been changed, told by whoever changes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....core.model.variants import Variant
from ....text.values import show_value
from ...protocol import Message
from .base import AgentLoadError

_LONGEST = 60


class VariantError(AgentLoadError):
    """A variant that the agent does not fit, or that changes nothing."""


@dataclass
class AppliedChanges:
    """What of a variant has been changed, and what was as it wants it before."""

    variant: Variant
    done: list[Message] = field(default_factory=list)
    """Each with `what`, and `old` and `new` as text."""
    same: list[str] = field(default_factory=list)
    """What has the wanted value already."""

    def set(self, what: str, old: Any, new: Any) -> bool:
        """Note a change; whether it is one."""
        if old == new:
            self.same.append(f"{what} is {_shown(new)} already")
            return False
        self.done.append({"what": what, "old": _shown(old), "new": _shown(new)})
        return True

    def require_some(self) -> None:
        """Raises VariantError where the agent is as it was."""
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
