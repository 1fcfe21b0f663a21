"""Finding by a few letters: actions, cases, sets and themes in the palette, and any case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.fuzzy import Matcher
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from evaltui.text.lines import Line, cells, pad
from evaltui.text.lines import cut as cut_line
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut, visible
from evaltui.tui.action_screen import ActionScreen
from evaltui.tui.screens.prompt import QuestionInput, QuestionKeys, QuestionScreen, QuestionTitle
from evaltui.tui.textual_private import once
from evaltui.tui.widgets.lines import CursorLines
from evaltui.workbench.actions import ACTIONS, Scope, keys_of
from evaltui.workbench.fuzzy import Jump, rank_cases
from evaltui.workbench.keymap import key_name
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# Seconds without a key after which the query is looked for.
_PAUSE = 0.04
# Nobody reads further.
_MAX_CASES = 60
# More than what scattered letters can score: here every word was found as it was typed.
_WHOLE_WORDS = 100.0
_MAX_TEXT = 60


class Entry(NamedTuple):
    """Something that can be chosen."""

    score: float
    line: Line
    choose: Callable[[], object]


class Palette:
    """Finds actions, cases, sets and themes.

    Actions are those of `scope` and of everywhere, run on `screen`; `reveal` selects a case or a set.
    """

    def __init__(
        self,
        workbench: Workbench,
        screen: ActionScreen[None],
        scope: Scope,
        reveal: Callable[[Selection], None],
    ) -> None:
        self._workbench = workbench
        self._screen = screen
        self._scopes = {scope, Scope.MAIN}
        self._reveal = reveal

    def entries(self, query: str) -> list[Entry]:
        """What a query finds, the best first; an empty one finds actions and themes."""
        found = [*self._actions(query), *self._cases(query), *self._themes(query)]
        return sorted(found, key=lambda entry: entry.score, reverse=True)

    def _actions(self, query: str) -> Iterator[Entry]:
        """Those that are valid where the focus is; those that are refused say why."""
        workbench = self._workbench
        for action in ACTIONS:
            if action.id == "palette" or not self._scopes & set(action.where):
                continue
            if (score := _score(query, f"{action.title} {action.help}")) <= 0:
                continue
            line: Line = [(action.help, ""), (f"  {key_name(keys_of(action, workbench)[0])}", "bold")]
            if reason := action.refusal(workbench):
                line.append((f"  not now: {visible(reason)}", "dim"))
            yield Entry(score, line, partial(self._screen.run_action, action.id))

    def _cases(self, query: str) -> Iterator[Entry]:
        """Sets and cases: every word of the query is looked for in ids and first texts."""
        words = query.casefold().split()
        found = self._matching(words) if words else iter(())
        for selection, line in islice(found, _MAX_CASES):
            yield Entry(_WHOLE_WORDS, line, partial(self._reveal, selection))

    def _matching(self, words: list[str]) -> Iterator[tuple[Selection, Line]]:
        for eval_set in self._workbench.sets.listed:
            set_id = visible(eval_set.eval_set_id)
            if all(word in eval_set.eval_set_id.casefold() for word in words):
                yield Selection(eval_set.case_path), [("set ", "dim"), (set_id, "")]
            for case in eval_set.cases:
                text = f"{case.eval_id}\n{case.summary.first_text}".casefold()
                if all(word in text for word in words):
                    first = cut(visible(case.summary.first_text), _MAX_TEXT)
                    name: Line = [("case ", "dim"), (visible(case.eval_id), "")]
                    line: Line = [*name, (f"  {set_id}  {first}", "dim")]
                    yield Selection(eval_set.case_path, case.eval_id), line

    def _themes(self, query: str) -> Iterator[Entry]:
        app = self._screen.app
        for name in sorted(app.available_themes):
            if (score := _score(query, f"theme {name}")) > 0:
                line: Line = [("theme ", "dim"), (name, "")]
                yield Entry(score, line, partial(setattr, app, "theme", name))


def _score(query: str, text: str) -> float:
    """0 where it does not match; nothing typed matches everything."""
    return Matcher(query).match(text) if query else 1.0


class PaletteScreen(QuestionScreen[Callable[[], object]]):
    """Returns what is to be done."""

    box = "#palette"

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self._soon: Timer | None = None
        self._looked_for: str | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="palette"):
            yield QuestionTitle("Commands")
            yield QuestionInput(placeholder="an action, a case, a set or a theme")
            yield PaletteLines(id="palette-lines")
            yield QuestionKeys("take", "leave_question", "next_answer", "previous_answer")

    def on_mount(self) -> None:
        self._look()

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._soon is not None:
            self._soon.stop()
        self._soon = once(self, _PAUSE, self._look_again)

    def _look_again(self) -> None:
        if self.is_here:
            self._look()

    def _look(self) -> None:
        query = self.query_one(QuestionInput).value.strip()
        if query != self._looked_for:
            self._looked_for = query
            self.query_one(PaletteLines).show(self._palette.entries(query))

    @property
    def answers(self) -> PaletteLines:
        # What was typed just now counts.
        self._look()
        return self.query_one(PaletteLines)

    def action_take(self) -> None:
        if (entry := self.answers.current) is not None:
            self.dismiss(entry.choose)

    def on_palette_lines_chosen(self, message: PaletteLines.Chosen) -> None:
        self.dismiss(message.entry.choose)


class PaletteLines(CursorLines, can_focus=False, inherit_bindings=False):
    """What was found; a click chooses."""

    class Chosen(Message):
        """The user clicked something."""

        def __init__(self, entry: Entry) -> None:
            super().__init__()
            self.entry = entry

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._entries: Sequence[Entry] = ()

    @property
    def current(self) -> Entry | None:
        return self._entries[self.cursor] if self._entries else None

    def show(self, found: Sequence[Entry]) -> None:
        self._entries = found
        self.lines_changed(max(1, len(found)))
        self.move_to(0)

    def on_resize(self) -> None:
        self.lines_changed(max(1, len(self._entries)))

    def line_classes(self, number: int) -> tuple[str, ...]:
        return super().line_classes(number) if self._entries else ()

    def line(self, number: int) -> Line:
        if not self._entries:
            return [(" No match", "dim")]
        return [("▌" if number == self.cursor else " ", "accent"), (" ", ""), *self._entries[number].line]

    def open_current(self) -> None:
        """A click chooses already."""

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number < len(self._entries):
            self.post_message(self.Chosen(self._entries[number]))


# Nobody reads further.
_MOST = 500


class FindCaseScreen(QuestionScreen[Selection]):
    """Returns the case that was chosen."""

    box = "#find-case"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._soon: Timer | None = None
        self._looked_for = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="find-case"):
            yield QuestionTitle("Go to a case")
            yield QuestionInput(placeholder="letters of its id, its set or its text")
            yield FoundCases(self._workbench)
            yield QuestionKeys("take", "leave_question", "next_answer", "previous_answer")

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._soon is not None:
            self._soon.stop()
        self._soon = once(self, _PAUSE, self._look)

    def _look(self) -> None:
        if not self.is_here:
            return
        query = self.query_one(QuestionInput).value
        if query != self._looked_for:
            self._looked_for = query
            found = rank_cases(query, self._workbench.sets.listed, _MOST)
            self.query_one(FoundCases).show(query, found)

    @property
    def answers(self) -> FoundCases:
        # What was typed just now counts.
        self._look()
        return self.query_one(FoundCases)

    def action_take(self) -> None:
        if (jump := self.answers.current) is not None:
            self.dismiss(Selection(*jump.key))

    def on_found_cases_chosen(self, message: FoundCases.Chosen) -> None:
        self.dismiss(message.selection)


class FoundCases(CursorLines, can_focus=False, inherit_bindings=False):
    class Chosen(Message):
        """The user wants to go to a case."""

        def __init__(self, selection: Selection) -> None:
            super().__init__()
            self.selection = selection

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._query = ""
        self._found: Sequence[Jump] = ()

    def show(self, query: str, found: Sequence[Jump]) -> None:
        self._query, self._found = query, found
        self.lines_changed(max(1, len(found)))
        self.move_to(0)

    @property
    def current(self) -> Jump | None:
        return self._found[self.cursor] if self._found else None

    def on_resize(self) -> None:
        self.lines_changed(max(1, len(self._found)))

    def line_classes(self, number: int) -> tuple[str, ...]:
        return super().line_classes(number) if self._found else ()

    def line(self, number: int) -> Line:
        if not self._found:
            return [(f" {self._why_none()}", "dim")]
        jump = self._found[number]
        here = ("▌" if number == self.cursor else " ", "accent")
        name_width = min(48, max(12, self.line_width * 2 // 5))
        name = cut_line(_marked(jump), name_width)
        filled = (" " * (name_width - cells(name) + 2), "")
        set_id = (pad(visible(jump.set_id), min(20, self.line_width // 5)), "dim")
        text = (f"  {visible(jump.text)}", "dim")
        return [
            here,
            glyph(self._workbench.outcomes.status(jump.key)),
            (" ", ""),
            *name,
            filled,
            set_id,
            text,
        ]

    def _why_none(self) -> str:
        if self._query.strip():
            return "no case is like this"
        return f"{sum(len(eval_set.cases) for eval_set in self._workbench.sets.listed):,} cases to look in"

    def open_current(self) -> None:
        if (jump := self.current) is not None:
            self.post_message(self.Chosen(Selection(*jump.key)))


def _marked(jump: Jump) -> Line:
    """The id with the letters that were typed."""
    name = visible(jump.key.eval_id)
    if name != jump.key.eval_id:
        return [(name, "")]
    places = set(jump.marked)
    return [(letter, "accent" if number in places else "") for number, letter in enumerate(name)]
