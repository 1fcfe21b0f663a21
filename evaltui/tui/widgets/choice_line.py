"""One of several, chosen on one line."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from evaltui.text.lines import Line, pad
from evaltui.text.values import visible
from evaltui.tui.widgets.lines import OneLine


class ChoiceLine(OneLine, can_focus=True, inherit_bindings=False):
    """`label  ‹ chosen ›  remark`. Its keys are those of the form around it."""

    class Changed(Message):
        """Another one is chosen."""

        def __init__(self, line: ChoiceLine) -> None:
            super().__init__()
            self.line = line

    def __init__(self, label: str, options: Sequence[str], chosen: int = 0, *, id: str) -> None:
        super().__init__(id=id)
        self._label = label
        self._options = list(options)
        self.chosen = chosen
        self.remark = ""

    def offer(self, options: Sequence[str]) -> None:
        """Choose among others; what was chosen stays so where it is one of them."""
        before = self._options[self.chosen] if self._options else ""
        self._options = list(options)
        self.chosen = self._options.index(before) if before in self._options else 0
        self.refresh()

    def step(self, step: int) -> None:
        """The next (1) or the one before (-1), around the end."""
        if len(self._options) > 1:
            self.chosen = (self.chosen + step) % len(self._options)
            self.refresh()
            self.post_message(self.Changed(self))

    def line(self, width: int) -> Line:
        several, here = len(self._options) > 1, self.has_focus
        tone = "accent" if here else "dim"
        chosen = visible(self._options[self.chosen]) if self._options else ""
        return [
            ("▌" if here else " ", "accent"),
            (pad(self._label, 8), "dim"),
            ("‹ " if several else "", tone),
            (chosen, "bold" if here else ""),
            (" ›" if several else "", tone),
            (f"  {visible(self.remark)}", "dim"),
        ]

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.step(1)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()
