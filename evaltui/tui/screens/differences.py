"""Dialogs about differences: accepting the actual calls and responses, or relaxing an argument."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from evaltui.core.compare.proposals import Proposal as RuleProposal
from evaltui.core.compare.rules import match_in_words
from evaltui.core.jsondoc.edits import EditError
from evaltui.core.model.problems import EvalSetError
from evaltui.text.glyphs import text_for_terminal
from evaltui.text.lines import Line, cells, with_role
from evaltui.text.outcomes import GLYPHS, WORDS
from evaltui.text.syntax import value_line
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, ask, bindings
from evaltui.tui.pages.file_versions import write_file_change
from evaltui.tui.pages.writer import Page
from evaltui.tui.screens.prompt import (
    FormScreen,
    Hint,
    Hints,
    PromptScreen,
    QuestionNote,
    QuestionTitle,
    moves,
)
from evaltui.tui.widgets.choices import ChoiceLine, ChoiceList
from evaltui.tui.widgets.lines import DrawnLine, LineView, PageLines, Title
from evaltui.workbench.acceptable import Choice
from evaltui.workbench.accepting import Proposal, accept, propose
from evaltui.workbench.actions import Scope
from evaltui.workbench.background import Progress
from evaltui.workbench.relaxing import Effect, Relaxing, match_problem
from evaltui.workbench.workbench import Workbench

# Seconds between looks at how far reading has come.
_TICK = 0.25
_HINTS = (Hint("accept_it", "accept"), Hint("leave_it", "leave it"))
_GAP = "   "
# Of the dialog: title, choices, keys, and space between them.
_OTHER_LINES = 11
_LEAST_LINES = 3


class AcceptScreen(DialogScreen[None], inherit_bindings=False):
    """Shows what each choice would change; nothing is changed before `enter`, nor what was not shown."""

    box = "#accept"
    BINDINGS = bindings(Scope.ACCEPT)
    AUTO_FOCUS = "AcceptLines"

    def __init__(self, workbench: Workbench, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._workbench = workbench
        self._choices = choices
        self._current = 0
        self._proposals: dict[int, Proposal] = {}
        self._progress = Progress()

    def compose(self) -> ComposeResult:
        with Vertical(id="accept"):
            yield Title(self._title)
            yield AcceptLines(self._write_proposal)
            yield AcceptChoices([choice.title for choice in self._choices])
            yield AcceptHints(self._workbench, lambda: _HINTS)

    def on_mount(self) -> None:
        self._choose(0)
        self.set_interval(_TICK, lambda: None if self._current in self._proposals else self.on_resize())

    def on_resize(self) -> None:
        self.query_one(AcceptLines).write_page()

    def _title(self) -> Line:
        cases = self._choices[self._current].cases
        name = visible(cases[0].eval_id) if len(cases) == 1 else f"{len(cases)} cases"
        return [("Accept", "bold"), (" into ", ""), (name, "bold")]

    def _write_proposal(self, page: Page) -> None:
        proposal = self._proposals.get(self._current)
        if proposal is None:
            page.row((f"reading what the agent did …{self._progress}", "muted"))
            return
        for remark in proposal.remarks:
            page.text([(visible(remark), "warning")], [("! ", "warning")])
        if proposal.problem:
            page.text([(visible(proposal.problem), "")], [("! ", "warning")])
        for change in proposal.changes:
            page.blank()
            write_file_change(page, change)

    def action_leave_it(self) -> None:
        self.dismiss()

    def action_accept_more(self) -> None:
        self._choose(self._current + 1)

    def action_accept_less(self) -> None:
        self._choose(self._current - 1)

    def _choose(self, number: int) -> None:
        self._current = number % len(self._choices)
        self.query_one(Title).refresh()
        self.query_one(AcceptChoices).show(self._current)
        self.query_one(AcceptLines).show(self._write_proposal)
        if self._current not in self._proposals:
            self.run_worker(self._propose(self._current), group="propose", exclusive=True)

    async def _propose(self, number: int) -> None:
        self._progress = Progress()
        self._proposals[number] = await propose(
            self._workbench.editing, self._choices[number], self._progress
        )
        if number == self._current and self.is_here:
            self.query_one(AcceptLines).show(self._write_proposal)

    def action_accept_it(self) -> None:
        proposal = self._proposals.get(self._current)
        if proposal is None or proposal.problem:
            return
        if accept(self._workbench.editing, proposal):
            self.dismiss()
        else:
            self._proposals.clear()
            self._choose(self._current)

    def on_accept_choices_chosen(self, message: AcceptChoices.Chosen) -> None:
        self._choose(message.number)


class AcceptLines(PageLines, inherit_bindings=False):
    """The lines of the files that would be other ones, as high as there is room for."""

    BINDINGS = moves()

    def write_page(self) -> None:
        super().write_page()
        self.styles.height = max(_LEAST_LINES, min(self.line_count, self.screen.size.height - _OTHER_LINES))


class AcceptChoices(LineView, can_focus=False, inherit_bindings=False):
    """What can be accepted, from the least to the most."""

    class Chosen(Message):
        """The user clicked one."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, titles: Sequence[str]) -> None:
        super().__init__()
        self._titles = titles
        self._current = 0
        self._rows: list[list[int]] = []

    def show(self, current: int) -> None:
        self._current = current
        self.refresh()

    def on_resize(self) -> None:
        """As many in a line as there is room for."""
        self._rows = []
        left = 0
        for number in range(len(self._titles)):
            size = cells(self._choice(number))
            if not self._rows or size > left:
                self._rows.append([])
                left = self.size.width - 1
            self._rows[-1].append(number)
            left -= size
        self.styles.height = len(self._rows)
        self.lines_changed(len(self._rows))

    def line(self, number: int) -> Line:
        return [(" ", ""), *(span for choice in self._rows[number] for span in self._choice(choice))]

    def _choice(self, number: int) -> Line:
        if number == self._current:
            return [("(•) ", "bold accent"), (self._titles[number], "bold accent"), (_GAP, "")]
        return [("( ) ", "muted"), (self._titles[number], ""), (_GAP, "")]

    def on_click(self, event: events.Click) -> None:
        left = event.x - 1
        for number in self._rows[event.y] if event.y < len(self._rows) else ():
            if 0 <= left < cells(self._choice(number)):
                self.post_message(self.Chosen(number))
            left -= cells(self._choice(number))


class AcceptHints(Hints):
    """Keys, and the way back."""

    def line(self, width: int) -> Line:
        keys: Line = [*super().line(width), (" ", ""), ("left right", "bold"), (" choose ", "muted")]
        note: Line = [(" undo takes it back ", "muted")]
        return [*keys, *note] if cells(keys) + cells(note) <= width else keys


_SCOPES = ("this case", "every case")


class RelaxScreen(FormScreen):
    """Writes the rule that is chosen into the config, unsaved, and returns whether it has."""

    box = "#relax"
    AUTO_FOCUS = "#relax-proposals"

    def __init__(self, workbench: Workbench, relaxing: Relaxing) -> None:
        super().__init__()
        self._workbench = workbench
        self._relaxing = relaxing
        self._arg_paths = relaxing.arg_paths
        self._proposals = list(relaxing.proposals(self._arg_paths[0]))

    def compose(self) -> ComposeResult:
        relaxing = self._relaxing
        config = relaxing.config_path.name
        with Vertical(id="relax"):
            yield QuestionTitle(f"Relax {relaxing.arg.path or 'the arguments'} of {relaxing.tool}")
            yield DrawnLine(self._sides, id="relax-sides")
            places = ["all arguments" if path == "*" else path for path in self._arg_paths]
            yield ChoiceLine("what", places, id="relax-place")
            yield ChoiceList(max(1, len(self._proposals)), self._proposal_line, id="relax-proposals")
            yield ChoiceLine("for", _SCOPES, id="relax-scope")
            yield EffectText()
            yield QuestionNote(f"saved in {config}; the eval set stays as it is")
            yield Hints(
                self._workbench,
                lambda: [
                    Hint("form_take", "relax"),
                    Hint("form_next", "next"),
                    Hint("form_edit", "edit"),
                    Hint("form_leave", "leave"),
                ],
            )

    def on_mount(self) -> None:
        self._show_effect_soon()

    def _sides(self, width: int) -> Line:
        """The two values that differ."""
        arg = self._relaxing.arg
        room = max(12, (width - 24) // 2)
        missing, extra = arg.op == "missing", arg.op == "extra"
        return [
            (" expected ", "muted"),
            *([("nothing", "muted")] if extra else with_role("exp", value_line(arg.expected, room))),
            ("   actual ", "muted"),
            *([("nothing", "muted")] if missing else with_role("act", value_line(arg.actual, room))),
        ]

    def _proposal_line(self, number: int, is_current: bool) -> Line:
        if not self._proposals:
            return [("   nothing fits both values", "muted")]
        return [
            ("▌" if is_current and self.choices.has_focus else " ", "bold accent"),
            ("(•) " if is_current else "( ) ", "bold accent" if is_current else "muted"),
            (visible(self._proposals[number].words), "bold" if is_current else ""),
        ]

    @property
    def choices(self) -> ChoiceList:
        return self.query_one(ChoiceList)

    @property
    def _chosen(self) -> RuleProposal | None:
        return self._proposals[self.choices.current] if self._proposals else None

    def _offer(self, proposals: Sequence[RuleProposal]) -> None:
        self._proposals = [*proposals]
        self.choices.offer(max(1, len(self._proposals)))

    @property
    def _rule(self) -> dict[str, Any] | None:
        chosen = self._chosen
        if chosen is None:
            return None
        place = self._arg_paths[self.query_one("#relax-place", ChoiceLine).chosen]
        everywhere = bool(self.query_one("#relax-scope", ChoiceLine).chosen)
        return self._relaxing.rule(place, chosen.match, everywhere=everywhere)

    # What it would do

    @on(ChoiceList.OptionHighlighted)
    def _show_effect_soon(self) -> None:
        self.run_worker(self._show_effect(), group="effect", exclusive=True)

    async def _show_effect(self) -> None:
        rule = self._rule
        shown = self.query_one(EffectText)
        if rule is None:
            shown.say("nothing that can be proposed lets this pass: e types a rule")
            return
        shown.say("…")
        try:
            async for effect in self._relaxing.effects(rule):
                if not self.is_here:
                    return
                shown.say(" · ".join(_effect_in_words(effect)))
        except (EditError, EvalSetError, OSError) as error:
            shown.say(str(error))

    def on_choice_line_changed(self, message: ChoiceLine.Changed) -> None:
        if message.line.id == "relax-place":
            self._offer(self._relaxing.proposals(self._arg_paths[message.line.chosen]))
        self._show_effect_soon()

    # Keys

    @on(ChoiceList.OptionSelected)
    def action_form_take(self) -> None:
        rule = self._rule
        if rule is None:
            return
        if self._relaxing.apply(rule):
            self.dismiss(True)
        elif self._workbench.notice is not None:
            self.query_one(QuestionNote).show(self._workbench.notice.text)

    def action_form_down(self) -> None:
        self.choices.action_line_down()

    def action_form_up(self) -> None:
        self.choices.action_line_up()

    def choose(self, step: int) -> None:
        line = self.focused
        if not isinstance(line, ChoiceLine):
            line = self.query_one("#relax-scope", ChoiceLine)
        line.step(step)

    def fields(self) -> Iterator[Widget]:
        yield from (self.query_one("#relax-place"), self.choices, self.query_one("#relax-scope"))

    def action_form_edit(self) -> None:
        chosen = self._chosen
        value = json.dumps(chosen.match if chosen else {"regex": ""}, ensure_ascii=False)
        hint = '"ignore", {"regex": "…"}, {"approx": {"abs": 0.5}}, {"any_of": […]}, "type", "subset"'

        def edited(text: str) -> None:
            match = json.loads(text)
            others = [one for one in self._proposals if one.match != match]
            self._offer([RuleProposal(match, match_in_words(match)), *others])

        ask(self, PromptScreen("What matches", value, match_problem, hint), edited)


class EffectText(Static):
    """What the rule would do to this case and to others."""

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def say(self, text: str) -> None:
        self.update(Content(text_for_terminal(visible(text))))


def _effect_in_words(effect: Effect) -> list[str]:
    words: list[str] = []
    if effect.result is None:
        words.append("there is no log of this case's run, so what it would do here is not known")
    else:
        status = effect.result.status
        words.append(f"with this rule: this case {GLYPHS[status]} {WORDS[status]}")
    if not effect.cases:
        return words
    kinds = Counter((change.before, change.after) for change in effect.changes)
    changed = [
        f"{count} other case{'s' if count > 1 else ''} {GLYPHS[before]} → {GLYPHS[after]}"
        for (before, after), count in kinds.most_common()
    ]
    words += changed or ["no other case changes" if effect.is_complete else ""]
    if not effect.is_complete:
        words.append(f"{effect.seen} of {effect.cases} looked at")
    if effect.unknown:
        words.append(f"{effect.unknown} without a log are not known")
    return [word for word in words if word]
