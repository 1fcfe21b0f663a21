"""The dialog that relaxes an argument: a rule that allows a difference, and the effect of the rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.widget import Widget

from evaltui.core.compare.proposals import Proposal
from evaltui.core.matching.rules import match_in_words
from evaltui.core.model.outcome import Status
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.edits import EditError
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span
from evaltui.text.syntax import value_line
from evaltui.text.values import visible
from evaltui.tui.action_screen import ask, start_work
from evaltui.tui.dialogs.effects import rule_line, type_name, unavailable_rules, write_relaxed
from evaltui.tui.dialogs.file_versions import write_line_changes
from evaltui.tui.dialogs.prompt import (
    CANCEL,
    Dialog,
    DialogKeys,
    FormScreen,
    Hint,
    PromptScreen,
    QuestionNote,
    dialog_name,
)
from evaltui.tui.widgets.choices import LABEL, ChoiceLine, ChoiceList
from evaltui.tui.widgets.lines import DrawnLine
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.result.relaxing import Effect, Relaxing, RuleScope, match_problem
from evaltui.workbench.workbench import Workbench

_SCOPES: Mapping[RuleScope, str] = {"case": "This case", "set": "This set", "all": "All sets"}
# Rows besides the line of places, the rules and the effect.
_OTHER_ROWS = 9


class RelaxScreen(FormScreen[bool]):
    """Writes the chosen rule into the config, unsaved; returns whether it has.

    `go_on` goes to the next difference, where this case would still fail.
    """

    box = "#relax"
    AUTO_FOCUS = "#relax-proposals"

    def __init__(self, workbench: Workbench, relaxing: Relaxing, go_on: Callable[[], object]) -> None:
        super().__init__()
        self._workbench = workbench
        self._relaxing = relaxing
        self._go_on = go_on
        self._arg_paths = relaxing.arg_paths
        self._proposals = list(relaxing.proposals(self._arg_paths[0]))
        self._effect: Effect | None = None
        self._problem = ""

    def compose(self) -> ComposeResult:
        relaxing = self._relaxing
        arg = relaxing.arg
        about: list[Span] = [(f"{visible(relaxing.tool)} › {visible(arg.path) or 'arguments'}", "muted")]
        with Dialog(dialog_name("relax"), about, id="relax", can_be_undone=True):
            yield DrawnLine(lambda width: self._side("expected", arg.expected, arg.op == "extra", width))
            yield DrawnLine(lambda width: self._side("actual", arg.actual, arg.op == "missing", width))
            places = ["all arguments" if path == "*" else path for path in self._arg_paths]
            place = ChoiceLine("argument", places, id="relax-place")
            place.display = len(places) > 1
            yield place
            yield ChoiceList(max(1, len(self._proposals)), self._proposal_line, id="relax-proposals")
            yield PageLines(
                self._write_unavailable, can_focus=False, indent=0, free=0, id="relax-unavailable"
            )
            yield ChoiceLine("scope", list(_SCOPES.values()), id="relax-scope")
            yield PageLines(self._write_effect, indent=0, free=1, id="relax-effect")
            yield QuestionNote()
            yield DialogKeys(self._hints)

    def on_mount(self) -> None:
        self._show_effect_soon()

    def _hints(self) -> list[Hint]:
        rule = [Hint("confirm", "relax"), Hint("line_down", "rule", "↑↓")] if self._proposals else []
        scope, edit = Hint("next_item", "scope", "←→"), Hint("form_edit", "edit rule")
        return [*rule, scope, edit, CANCEL]

    def on_resize(self) -> None:
        self._fit()

    def _side(self, label: str, value: Any, is_absent: bool, width: int) -> Line:
        if is_absent:
            return [(f"{label:{LABEL}}", "muted"), ("no such argument", "muted")]
        shown = value_line(value, max(12, width - LABEL - 12))
        return [(f"{label:{LABEL}}", "muted"), *shown, (f"   {type_name(value)}", "muted")]

    def _proposal_line(self, number: int, is_current: bool) -> Line:
        label = f"{'rule' if number == 0 else '':{LABEL - 1}}"
        if not self._proposals:
            return [(label, "muted"), (" No suggested rule passes", "muted")]
        return [
            (label, "muted"),
            ("▌" if is_current and self.choices.has_focus else " ", "bold accent"),
            ("● " if is_current else "○ ", "accent" if is_current else "muted"),
            *rule_line(self._proposals[number].match),
        ]

    def _write_unavailable(self, page: Page) -> None:
        for line in unavailable_rules([proposal.match for proposal in self._proposals]):
            page.row((" " * LABEL, ""), *line)

    @property
    def choices(self) -> ChoiceList:
        return self.query_one(ChoiceList)

    @property
    def _chosen(self) -> Proposal | None:
        return self._proposals[self.choices.current] if self._proposals else None

    def _offer(self, proposals: Sequence[Proposal]) -> None:
        self._proposals = [*proposals]
        self.choices.offer(max(1, len(self._proposals)))
        self._fit()

    def _fit(self) -> None:
        """Shows as many rows of the effect and of unavailable rules as fit."""
        places = 2 if self.query_one("#relax-place").display else 0
        room = self.query_one(Dialog).room(_OTHER_ROWS + places + max(1, len(self._proposals)))
        effect, unavailable = (
            self.query_one("#relax-effect", PageLines),
            self.query_one("#relax-unavailable", PageLines),
        )
        for page in (effect, unavailable):
            page.write_page()
        effect.styles.height = min(effect.line_count, room)
        unavailable.display = room - effect.line_count >= unavailable.line_count
        unavailable.styles.height = unavailable.line_count

    @property
    def _rule(self) -> dict[str, Any] | None:
        chosen = self._chosen
        if chosen is None:
            return None
        place = self._arg_paths[self.query_one("#relax-place", ChoiceLine).chosen]
        scope = list(_SCOPES)[self.query_one("#relax-scope", ChoiceLine).chosen]
        return self._relaxing.rule(place, chosen.match, scope)

    # What it would do

    @on(ChoiceList.OptionHighlighted)
    def _show_effect_soon(self) -> None:
        start_work(self, self._find_effect, group="effect")

    async def _find_effect(self) -> None:
        rule = self._rule
        self._effect, self._problem = None, ""
        if rule is None:
            self._problem = "No suggested rule passes"
            self._fit()
            return
        try:
            async for effect in self._relaxing.effects(rule):
                if not self.is_here:
                    return
                self._effect = effect
                self._fit()
        except (EditError, EvalSetError, OSError) as error:
            self._problem = str(error)
            self._fit()

    def _write_effect(self, page: Page) -> None:
        page.section(("Effect", "bold"))
        rule, relaxing = self._rule, self._relaxing
        if self._problem or rule is None:
            page.row((visible(self._problem), "warning"))
            return
        if self._effect is None:
            page.row(("◐ scoring…", "muted"))
        else:
            run, name = relaxing.scored.run.name, relaxing.case.eval_id
            write_relaxed(page, name, relaxing.scored.result, self._effect, run, "n")
        try:
            changes = relaxing.change(rule)
        except (EditError, EvalSetError, OSError):
            return
        added = sum(line.op == "+" for line in changes)
        page.section((visible(relaxing.config_path.name), "bold"), (f" +{added}", "success"))
        write_line_changes(page, changes)

    def on_choice_line_changed(self, message: ChoiceLine.Changed) -> None:
        if message.line.id == "relax-place":
            self._offer(self._relaxing.proposals(self._arg_paths[message.line.chosen]))
        self._show_effect_soon()

    # Keys

    @on(ChoiceList.OptionSelected)
    def action_confirm(self) -> None:
        rule = self._rule
        if rule is None:
            return
        if self._relaxing.apply(rule):
            self.dismiss(True)
        elif self._workbench.messages.notice is not None:
            self.query_one(QuestionNote).show(self._workbench.messages.notice.text)

    def _moved_in(self) -> ChoiceList | PageLines:
        """The lines that the up and down keys move in: the effect while it has the focus, else the rules."""
        return self.focused if isinstance(self.focused, PageLines) else self.choices

    def action_step_line(self, step: int) -> None:
        self._moved_in().action_step_line(step)

    def action_step_item(self, step: int) -> None:
        line = self.focused
        if not isinstance(line, ChoiceLine):
            line = self.query_one("#relax-scope", ChoiceLine)
        line.step(step)

    def fields(self) -> Iterator[Widget]:
        place, scope, effect = (self.query_one(f"#relax-{name}") for name in ("place", "scope", "effect"))
        yield from (*([place] if place.display else []), self.choices, scope, effect)

    def action_step_difference(self, _: int) -> None:
        result = self._effect.result if self._effect else None
        if result is not None and result.status is not Status.PASSED:
            self.dismiss(False)
            self._go_on()

    def action_form_edit(self) -> None:
        chosen = self._chosen
        value = json.dumps(chosen.match if chosen else {"regex": ""}, ensure_ascii=False)
        hint = '"ignore", {"regex": "…"}, {"approx": {"abs": 0.5}}, {"any_of": […]}, "type", "subset"'

        def edited(text: str) -> None:
            match = json.loads(text)
            others = [proposal for proposal in self._proposals if proposal.match != match]
            self._offer([Proposal(match, match_in_words(match)), *others])

        ask(
            self,
            PromptScreen(f"{key_of('form_edit')} Edit", value, match_problem, hint, "rule as JSON"),
            edited,
        )
