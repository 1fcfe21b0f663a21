"""What fields in which text is typed have in common. The first frame has none, nor Textual's text area."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from evaltui.workbench.actions import Scope


class TextField:
    """A widget in which text is typed; `scope` is that of its keys."""

    scope: ClassVar[Scope] = Scope.TEXT

    @property
    @abstractmethod
    def typed(self) -> str:
        """The text in it."""

    def takes_enter(self) -> bool:
        """Whether the key begins a line in it."""
        return False
