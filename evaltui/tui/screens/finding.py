"""Search dialogs: the palette of actions, cases, sets and themes, and the list of cases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import ClassVar, Generic, NamedTuple, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.fuzzy import Matcher
from textual.screen import ScreenResultType
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
from evaltui.workbench.case_list import Jump, rank_cases
from evaltui.workbench.keymap import key_name
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# Seconds without a key after which the query is looked for.
_PAUSE = 0.04
# Nobody reads further: cases in the palette, and in the list of cases.
_MAX_CASES = 60
_MOST_FOUND = 500
# More than what scattered letters can score: here every word was found as it was typed.
_WHOLE_WORDS = 100.0
_MAX_TEXT = 60


Found = TypeVar("Found")


class Entry(NamedTuple):
    """Something that can be chosen."""

    score: float
    """How well it matches the query; more is better."""
    line: Line
    choose: Callable[[], object]
    """Called when it is chosen."""


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
                line.append((f"  not now: {visible(reason)}", "muted"))
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
                yield Selection(eval_set.case_path), [("set ", "muted"), (set_id, "")]
            for case in eval_set.cases:
                text = f"{case.eval_id}\n{case.outline.first_text}".casefold()
                if all(word in text for word in words):
                    first = cut(visible(case.outline.first_text), _MAX_TEXT)
                    name: Line = [("case ", "muted"), (visible(case.eval_id), "")]
                    line: Line = [*name, (f"  {set_id}  {first}", "muted")]
                    yield Selection(eval_set.case_path, case.eval_id), line

    def _themes(self, query: str) -> Iterator[Entry]:
        app = self._screen.app
        for name in sorted(app.available_themes):
            if (score := _score(query, f"theme {name}")) > 0:
                line: Line = [("theme ", "muted"), (name, "")]
                yield Entry(score, line, partial(setattr, app, "theme", name))


def _score(query: str, text: str) -> float:
    """0 where it does not match; nothing typed matches everything."""
    return Matcher(query).match(text) if query else 1.0


class FoundLines(CursorLines, can_focus=False, inherit_bindings=False):
    """A line for each thing that was found, or one that says why there is none."""

    def __init__(self, draw: Callable[[int, int], Line], nothing: Callable[[], str], clicks: int) -> None:
        super().__init__()
        self._draw_found = draw
        self._nothing = nothing
        self._count = 0
        self.clicks_to_open = clicks

    def show(self, count: int) -> None:
        self._count = count
        self.lines_changed(max(1, count))
        self.move_to(0)

    def row_role(self, number: int) -> str:
        return super().row_role(number) if self._count else ""

    def line(self, number: int) -> Line:
        if not self._count:
            return [(f" {self._nothing()}", "muted")]
        marker = ("▌" if number == self.cursor else " ", "bold accent")
        return [marker, *self._draw_found(number, self.line_width)]


class SearchScreen(QuestionScreen[ScreenResultType], Generic[ScreenResultType, Found]):
    """Looks for what is typed, soon after the last key, and returns the choice."""

    title_text: ClassVar[str]
    placeholder: ClassVar[str]
    nothing = "No match"
    """What is shown where nothing is found."""
    clicks_to_choose = 2

    def __init__(self) -> None:
        super().__init__()
        self.found: Sequence[Found] = ()
        """What was found, the best first."""
        self.query_text: str | None = None
        """What was looked for last; None at first."""
        self._timer: Timer | None = None

    @abstractmethod
    def find(self, query: str) -> Sequence[Found]:
        """What a query finds, the best first."""

    @abstractmethod
    def found_line(self, found: Found, width: int) -> Line:
        """The line of something that was found, without the cursor."""

    @abstractmethod
    def result_of(self, found: Found) -> ScreenResultType:
        """What choosing it returns."""

    def compose(self) -> ComposeResult:
        with Vertical(id=(self.box or "").removeprefix("#")):
            yield QuestionTitle(self.title_text)
            yield QuestionInput(placeholder=self.placeholder)
            yield FoundLines(
                lambda number, width: self.found_line(self.found[number], width),
                lambda: self.nothing,
                self.clicks_to_choose,
            )
            yield QuestionKeys("take", "leave_question", "next_answer", "previous_answer")

    def on_mount(self) -> None:
        self._search()

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = once(self, _PAUSE, lambda: self._search() if self.is_here else None)

    def _search(self) -> None:
        query = self.query_one(QuestionInput).value.strip()
        if query != self.query_text:
            self.query_text = query
            self.found = self.find(query)
            self.query_one(FoundLines).show(len(self.found))

    @property
    def answers(self) -> FoundLines:
        # What was typed just now counts.
        self._search()
        return self.query_one(FoundLines)

    def action_take(self) -> None:
        self._search()
        self._choose()

    @on(CursorLines.Opened)
    def _choose(self) -> None:
        number = self.query_one(FoundLines).cursor
        if number < len(self.found):
            self.dismiss(self.result_of(self.found[number]))


class PaletteScreen(SearchScreen[Callable[[], object], Entry]):
    """Returns what is to be done."""

    box = "#palette"
    title_text = "Commands"
    placeholder = "an action, a case, a set or a theme"
    clicks_to_choose = 1

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette

    def find(self, query: str) -> list[Entry]:
        return self._palette.entries(query)

    def found_line(self, found: Entry, width: int) -> Line:
        return [(" ", ""), *found.line]

    def result_of(self, found: Entry) -> Callable[[], object]:
        return found.choose


class FindCaseScreen(SearchScreen[Selection, Jump]):
    """Returns the case that was chosen."""

    box = "#find-case"
    title_text = "Go to a case"
    placeholder = "letters of its id, its set or its text"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench

    def find(self, query: str) -> list[Jump]:
        listed = self._workbench.sets.listed
        all_cases = f"{sum(len(eval_set.cases) for eval_set in listed):,} cases to look in"
        self.nothing = "no case is like this" if query else all_cases
        return rank_cases(query, listed, _MOST_FOUND)

    def found_line(self, found: Jump, width: int) -> Line:
        name_width = min(48, max(12, width * 2 // 5))
        name = cut_line(_marked(found), name_width)
        return [
            glyph(self._workbench.outcomes.status(found.case)),
            (" ", ""),
            *name,
            (" " * (name_width - cells(name) + 2), ""),
            (pad(visible(found.set_id), min(20, width // 5)), "muted"),
            (f"  {visible(found.text)}", "muted"),
        ]

    def result_of(self, found: Jump) -> Selection:
        return Selection(*found.case)


def _marked(jump: Jump) -> Line:
    """The id with the letters that were typed."""
    name = visible(jump.case.eval_id)
    if name != jump.case.eval_id:
        return [(name, "")]
    places = set(jump.marked)
    return [(letter, "bold accent" if number in places else "") for number, letter in enumerate(name)]
