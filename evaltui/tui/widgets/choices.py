"""Widgets to choose one of several: in a short list, or on one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.message import Message
from textual.widgets import OptionList

from evaltui.text.lines import Line, cells, pad
from evaltui.text.values import visible
from evaltui.tui.textual_private import clicked_option
from evaltui.tui.widgets.lines import OneLine, content


class ChoiceList(OptionList, can_focus=True, inherit_bindings=False):
    """A short list, a line per choice. Its keys are those of the screen around it.

    `draw` returns the line of a choice, counted from 0, with a flag for the current one. The current choice
    is selected by a double click.
    """

    def __init__(self, count: int, draw: Callable[[int, bool], Line], *, id: str | None = None) -> None:
        super().__init__(*([""] * count), id=id, markup=False, compact=True)
        self._draw_choice = draw

    @property
    def current(self) -> int:
        """Number of the current choice, 0-based."""
        return self.highlighted or 0

    def offer(self, count: int, current: int = 0) -> None:
        """Shows other choices."""
        self.set_options([""] * count)
        self.highlighted = current
        self.draw()

    def on_mount(self) -> None:
        self.draw()
        self.app.theme_changed_signal.subscribe(self, lambda theme: self.draw())

    def draw(self) -> None:
        """Draws the choices again, after their texts have changed."""
        for number in range(self.option_count):
            line = self._draw_choice(number, number == self.highlighted)
            self.replace_option_prompt_at_index(number, content(self, line))

    def watch_highlighted(self, highlighted: int | None) -> None:
        super().watch_highlighted(highlighted)
        if self.is_mounted:
            self.draw()

    def on_focus(self) -> None:
        self.draw()

    on_blur = on_focus

    def on_click(self, event: events.Click) -> None:
        option = clicked_option(self, event)
        if option is None or event.chain == 1:
            event.prevent_default()
            self.highlighted = self.highlighted if option is None else option

    def action_step_line(self, step: int) -> None:
        self.highlighted = self.current + step

    def action_step_page(self, step: int) -> None:
        self.action_step_line(step * max(1, self.size.height - 1))

    def action_top(self) -> None:
        self.action_first()

    def action_bottom(self) -> None:
        self.action_last()


LABEL = 11
"""Cells of the label of a line in a dialog."""


class ChoiceLine(OneLine, can_focus=True, inherit_bindings=False):
    """All options side by side, the chosen one as a chip; where they do not fit, only the chosen one. Its
    keys are those of the form around it."""

    class Changed(Message):
        """Another option is chosen."""

        def __init__(self, line: ChoiceLine) -> None:
            super().__init__()
            self.line = line

    def __init__(
        self, label: str, options: Sequence[str], chosen: int = 0, *, id: str, column: int = LABEL
    ) -> None:
        super().__init__(id=id)
        self._label = label
        self._column = column
        self._options = list(options)
        self.chosen = chosen
        """Number of the chosen option, 0-based."""
        self.remark = ""
        """The text after the options."""

    def offer(self, options: Sequence[str]) -> None:
        """Shows other options; the chosen one stays chosen if it is among them."""
        before = self._options[self.chosen] if self._options else ""
        self._options = list(options)
        self.chosen = self._options.index(before) if before in self._options else 0
        self.refresh()

    def step(self, step: int) -> None:
        """Chooses the next (1) or the previous option (-1); wraps at the end."""
        if len(self._options) > 1 and step:
            self.chosen = (self.chosen + step) % len(self._options)
            self.refresh()
            self.post_message(self.Changed(self))

    def _chips(self) -> list[Line]:
        filled = "chip" if self.has_focus else "bold sel"
        return [
            [(f" {visible(option)} ", filled if number == self.chosen else ""), (" ", "")]
            for number, option in enumerate(self._options)
        ]

    def _fits(self, chips: Sequence[Line], width: int) -> bool:
        return self._column + sum(map(cells, chips)) <= width

    def line(self, width: int) -> Line:
        label: Line = [(pad(self._label, self._column), "muted")]
        remark: Line = [(f" {visible(self.remark)}", "muted")]
        chips = self._chips()
        if self._fits(chips, width):
            return [*label, *(span for chip in chips for span in chip), *remark]
        chip = chips[self.chosen] if chips else []
        arrows: list[Line] = [
            [("‹", "accent")],
            [("› ", "accent"), (f"{self.chosen + 1}/{len(chips)}", "muted")],
        ]
        return [*label, *arrows[0], *chip[:1], *arrows[1], *remark]

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.focus()
        chips = self._chips()
        if not self._fits(chips, self.size.width):
            self.step(1)
            return
        left = event.x - self._column
        for number, chip in enumerate(chips):
            if 0 <= left < cells(chip):
                self.step(number - self.chosen)
            left -= cells(chip)

    def on_focus(self) -> None:
        self.refresh()

    on_blur = on_focus
