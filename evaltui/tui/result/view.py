"""The result pane: the results of the selected case or set."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual import events
from textual.message import Message
from textual.timer import Timer

from evaltui.core.compare.judged import was_judged
from evaltui.core.model.case_id import CaseId
from evaltui.project.agent_source import SourcePlace, error_line
from evaltui.text.figures import show_number
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span
from evaltui.text.outcomes import RUNNING, glyph
from evaltui.tui.action_screen import ask, bindings, start_work
from evaltui.tui.chat.save_case import SaveCaseScreen
from evaltui.tui.dialogs.accept import AcceptScreen
from evaltui.tui.dialogs.relax import CheckScreen, RelaxScreen
from evaltui.tui.pane import CopiedText, LinkedPage
from evaltui.tui.result.case_result import card_of
from evaltui.tui.result.selected import View, page_title, shown_state, write_page
from evaltui.tui.widgets.writer import Folding, Link, Page, fold_of
from evaltui.views.cause import failing_differences, judging_metric
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.actions import Scope
from evaltui.workbench.case.case_plan import show_errors
from evaltui.workbench.case.editors import place_of_agent, place_of_tool
from evaltui.workbench.result.acceptable import choices_in_result
from evaltui.workbench.result.answer_checking import AnswerChecking
from evaltui.workbench.result.relaxing import Relaxing
from evaltui.workbench.result.results import result_as_json
from evaltui.workbench.state import CaseOutcome, Selection
from evaltui.workbench.workbench import Workbench

# What tells in a line that there is more to show of it.
_CUT_ENDINGS = "…{["
_NO_DIFFERENCES_NOTICE = "No difference in calls, response or state"


# Seconds between two looks at what runs.
_TICK_SECONDS = 0.5
# A screen of fewer cells has one pane, and its metrics below the differences.
_SMALL_SCREEN = 90
# The section of the metrics, and what folds within turns and is none.
_METRICS, _IN_TURNS = "metrics", ("turn", "calls", "arguments")
# Lines of an unfolded metric that are brought into view.
_CARD_ROWS = 10
# The tints of the selected difference.
_STRONGER_ROLES = {"exp": "exp-hi", "act": "act-hi"}


def _stronger_role(role: str) -> str:
    """The stronger role for a text of the selected difference: on a strong tint, red and green are not
    readable."""
    words = role.split()
    if not _STRONGER_ROLES.keys() & set(words):
        return role
    return " ".join(
        _STRONGER_ROLES.get(word, word) for word in words if word not in ("error", "success", "muted")
    )


class ResultView(LinkedPage, can_focus=True, inherit_bindings=False):
    BINDINGS = bindings(Scope.RESULT)
    widest = 180

    class CaseMade(Message):
        """A conversation was saved as a case, which is selected."""

    class MetricAsked(Message):
        """The user opens the criterion of a metric."""

        def __init__(self, metric: str) -> None:
            super().__init__()
            self.metric = metric

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        # Where the selected difference was seen last: when it is gone, the next one has its number.
        self._last: tuple[CaseId | None, int] = (None, 0)
        self._marked = range(0)
        # The case and its difference that was accepted last, until another one is selected.
        self._accepted: tuple[CaseId | None, DifferenceAt] | None = None
        # Runs while the selected case does.
        self._clock: Timer | None = None

    def heading(self) -> Line:
        """The case, the run, and the number of the selected difference: the last words are the most
        specific."""
        title, origin = page_title(self._workbench)
        line: Line = [*title, *([("   ", ""), *origin] if origin else [])]
        at = self._workbench.navigation.difference
        differences = self._differences if at else []
        if at in differences:
            number = (show_number(differences.index(at) + 1), "bold")
            count = (f"/{show_number(len(differences))}", "muted")
            line += [("   ", ""), ("difference ", "muted"), number, count]
        return line

    def source(self) -> SourcePlace | None:
        """The source of the differing call; else of the error; else the instruction, where a response
        differs."""
        bench = self._workbench
        scored, at = bench.outcomes.get(bench.navigation.selection.case), bench.navigation.difference
        error = bench.agent.error or (scored.shown.error if scored else None)
        if scored and at and at.turn is not None and at.row is not None:
            row = scored.shown.turns[at.turn].calls[at.row]
            call = row.actual or row.expected
            return place_of_tool(bench.agent, call.name) if call else None
        if error is not None:
            return error_line(bench.agent.dir, error)
        return place_of_agent(bench.agent) if at is not None else None

    def mark(self) -> Span | None:
        case, outcomes = self._workbench.navigation.selection.case, self._workbench.outcomes
        if case is None:
            return None
        status, scored, now = outcomes.status(case), outcomes.get(case), outcomes.freshness(case)
        if status == RUNNING or scored is None or now is None:
            return glyph(status)
        mark, role = glyph(scored.status)
        return mark, "faint" if now.is_stale else role

    def shown_state(self) -> object:
        return shown_state(self._workbench), self._view

    def write(self, page: Page) -> None:
        page.unfolded = self._view.folding.toggled
        write_page(page, self._workbench, self._view)

    @property
    def _view(self) -> View:
        navigation = self._workbench.navigation
        folding = Folding(navigation.shows_equal_calls, navigation.toggled)
        return View(folding, self.size.height, is_small=self.app.size.width < _SMALL_SCREEN)

    def page_to_copy(self) -> Page:
        """The page as it is shown, with marks around the changed words."""
        page = Page(self.page.width, self.widest, marks=True)
        self.write(page)
        return page

    # Differences

    @property
    def _scored(self) -> CaseOutcome | None:
        return self._workbench.outcomes.get(self._workbench.navigation.selection.case)

    @property
    def _differences(self) -> list[DifferenceAt]:
        """The differences of the shown result that count."""
        return failing_differences(self._scored.shown) if self._scored else []

    @property
    def _current(self) -> int | None:
        """The index of the selected difference on the page."""
        at = self._workbench.navigation.difference
        if at is None:
            return None
        return next(
            (number for number, difference in enumerate(self.page.differences) if difference.at == at), None
        )

    def follow(self) -> None:
        super().follow()
        run = self._workbench.runs.current
        case = self._workbench.navigation.selection.case
        runs = run is not None and not run.over and (case is None or case in run.running)
        if runs and self._clock is None:
            self._clock = self.set_interval(_TICK_SECONDS, self.follow)
        elif not runs and self._clock is not None:
            self._clock.stop()
            self._clock = None
        if self._accepted is not None:
            self._leave_accepted()
        marked = self._lines_of_current()
        if marked != self._marked:
            self._marked = marked
            self.refresh()

    def _lines_of_current(self) -> range:
        current = self._current
        if current is None:
            return range(0)
        self._last = self._workbench.navigation.selection.case, current
        difference = self.page.differences[current]
        return range(difference.first, difference.last)

    def step_difference(self, step: int) -> None:
        """Goes to the next (1) or the previous (-1) difference and selects it; wraps at the end with a
        message."""
        differences = self._differences
        if not differences:
            self._workbench.say(_NO_DIFFERENCES_NOTICE)
            return
        at = self._workbench.navigation.difference
        number = differences.index(at) + step if at in differences else self._neighbour_index(step)
        if not 0 <= number < len(differences):
            number = 0 if step > 0 else len(differences) - 1
            self._workbench.say("Wrapped to the first" if step > 0 else "Wrapped to the last")
        self.leave_link()
        # At once, for the key that comes next; a page that was hidden has its lines only later.
        self._workbench.navigation.select_difference(differences[number])
        self.call_after_refresh(self._show_difference)

    def select_a_difference(self) -> None:
        """Selects the first difference where none is selected."""
        differences = self._differences
        if differences and self._workbench.navigation.difference is None:
            self._workbench.navigation.select_difference(differences[0])

    def _leave_accepted(self) -> None:
        """Selects the difference after an accepted one, once the case has been scored again."""
        differences = self._differences
        case, at = self._accepted or (None, None)
        if case == self._workbench.navigation.selection.case and at in differences:
            return
        self._accepted = None
        if differences and self._workbench.navigation.difference in (None, at):
            number = min(self._neighbour_index(1), len(differences) - 1)
            self._workbench.navigation.select_difference(differences[number])
            self.call_after_refresh(self._show_difference)

    def _show_difference(self) -> None:
        self.follow()
        if (current := self._current) is not None:
            difference = self.page.differences[current]
            self.show_line(difference.last - 1)
            self.show_line(difference.first)

    def _neighbour_index(self, step: int) -> int:
        """The index of the difference in the place of the selected one, else of the first visible one; with a
        `step` of -1, of the one before."""
        case, last = self._last
        if case == self._workbench.navigation.selection.case:
            return last if step > 0 else last - 1
        top = self.scroll_offset.y
        above = sum(difference.first < top for difference in self.page.differences)
        return above if step > 0 else above - 1

    def action_open_details(self) -> None:
        """Unfolds a metric, or the current difference, where it stands, and folds it again."""
        if reason := self.refusal("open_details"):
            self._workbench.say(reason)
        elif (link := self.link) is not None:
            self.open_link(link)
        elif (at := self._workbench.navigation.difference) is not None and self._current is not None:
            self._toggle_part(fold_of(at))
            self.call_after_refresh(self._show_difference)
        else:
            for name in self._judged:
                self._toggle_card(name)

    def refusal(self, action_id: str) -> str | None:
        if action_id != "open_details" or self.link is not None:
            return None
        at, current = self._workbench.navigation.difference, self._current
        if at is None or current is None:
            hint = f"No difference selected   {key_of('next_difference')} next difference"
            return None if self._judged else hint if self.page.differences else _NO_DIFFERENCES_NOTICE
        if at.kind == "judgement" or fold_of(at) in self._workbench.navigation.toggled:
            return None
        difference = self.page.differences[current]
        lines = (self.page.lines[number] for number in range(difference.first, difference.last))
        # Cut, or on one line what takes several.
        has_more = any(mark in text for line in lines for text, _ in line for mark in _CUT_ENDINGS)
        return None if has_more else "Nothing more to show"

    def _toggle_card(self, metric: str) -> None:
        self._toggle_part(card_of(metric))
        line = next((line for line, key in self.page.folds.items() if key == card_of(metric)), None)
        if line is not None:
            self.show_line(min(line + _CARD_ROWS, self.line_count - 1))
            self.show_line(line)

    @property
    def _judged(self) -> list[str]:
        """The metrics with findings of a judge."""
        scored = self._scored
        return [metric.name for metric in scored.shown.metrics if was_judged(metric)] if scored else []

    def open_link(self, link: Link) -> None:
        """Opens the case, the metric, or the history of the case of a link."""
        if isinstance(link.opens, CaseId):
            self._workbench.navigation.show(Selection(*link.opens))
        elif link.opens:
            self._toggle_card(link.opens)
        else:
            self.jump("history")

    def on_click(self, event: events.Click) -> None:
        """Shows the clicked repeat, or goes to the clicked difference; a second click shows all of it."""
        line = self.scroll_offset.y + event.y
        # The first cell is the margin of the marker.
        cell = event.x - 1
        if self.click_link(line, cell):
            return
        for repeat in self.page.repeats:
            if repeat.line == line and repeat.first <= cell < repeat.last:
                self._workbench.navigation.show_repeat(repeat.repeat)
                return
        if (key := self.page.folds.get(line)) is not None:
            self._toggle_part(key)
            return
        pointed = (shown for shown in self.page.differences if shown.first <= line < shown.last)
        if (difference := next(pointed, None)) is not None:
            self.leave_link()
            self._workbench.navigation.select_difference(difference.at)
            self.follow()
            if event.chain == 2:
                self.action_open_details()

    def _toggle_part(self, key: str) -> None:
        self._workbench.navigation.toggled ^= {key}
        self.follow()

    def sections(self) -> Iterator[tuple[str, int]]:
        """The turns, the metrics and the folded parts below the turns."""
        yield from super().sections()
        if self.page.links and not self._lists_cases:
            yield _METRICS, self.page.links[0].first
        for line, key in self.page.folds.items():
            if key.split()[0] not in _IN_TURNS:
                yield key, line

    def jump(self, section: str) -> None:
        """Goes to a section; a folded one is opened, or folded again."""
        line = dict(self.sections()).get(section)
        if section.split()[0] in _IN_TURNS or line is None:
            super().jump(section)
        elif section == _METRICS:
            self.go_to_link(self.page.links[0])
        else:
            self._toggle_part(section)
            self.scroll_to(y=line, animate=False, force=True)

    def line(self, number: int) -> Line:
        if number not in self._marked:
            return super().line(number)
        line = self.page.lines[number]
        return [("▌", "bold accent"), *((text, _stronger_role(role)) for text, role in line)]

    def row_role(self, number: int) -> str:
        """The role of a row; rows with their own tint have none."""
        if number not in self._marked:
            return super().row_role(number)
        return "" if any(_stronger_role(role) != role for _, role in self.page.lines[number]) else "current"

    def action_accept(self) -> None:
        screen = AcceptScreen(self._workbench, choices_in_result(self._workbench.editing))
        case, at = self._workbench.navigation.selection.case, self._workbench.navigation.difference

        def leave(accepted: bool | None) -> None:
            self._accepted = (case, at) if accepted and at else None
            self.follow()

        self.app.push_screen(screen, leave)

    def action_relax(self) -> None:
        case, at = self._workbench.navigation.selection.case, self._workbench.navigation.difference
        if case is None or at is None:
            return
        bench, go_on = self._workbench, partial(self.step_difference, 1)

        def open_metric(name: str) -> None:
            self.post_message(self.MetricAsked(name))

        metric = (judging_metric(self._scored.shown, at) if self._scored else None) or ""
        if at.kind == "answer":
            with show_errors(bench.say):
                checking = AnswerChecking(bench.agent, bench.editing, case, at.turn or 0)
                self.app.push_screen(CheckScreen(bench, checking, go_on, metric, open_metric))
            return
        if at.kind != "argument":
            open_metric(metric)
            return

        relaxing = Relaxing(bench.agent, bench.editing, case, at)
        self.app.push_screen(RelaxScreen(bench, relaxing, go_on))

    def action_save_as_case(self) -> None:
        """Saves the conversation of a result as a case; reading a long log takes some time."""
        case = self._workbench.navigation.selection.case
        if case is not None:
            start_work(self, self._make_case, case, group="make a case")

    async def _make_case(self, case: CaseId) -> None:
        try:
            origin = await self._workbench.chat.origin(case)
            screen = SaveCaseScreen(self._workbench, origin.last_run())
        except (OSError, ValueError) as error:
            self._workbench.say(f"Cannot save as case: {error}")
            return
        if self.screen.is_active:
            # Else something else is being done by now.
            ask(self, screen, lambda _: self.post_message(self.CaseMade()))

    def action_toggle_fold(self) -> None:
        self._workbench.navigation.toggle_equal_calls()

    def copied_json(self) -> CopiedText | None:
        case = self._workbench.navigation.selection.case
        scored = self._workbench.outcomes.get(case)
        if case is None or scored is None:
            return None
        stale = "stale " if self._workbench.outcomes.is_stale(case) else ""
        return CopiedText(f"the {stale}result of {case.eval_id} as JSON", result_as_json(scored.result))
