"""The dialogs of rules, for an argument that may differ and for a response, with the effect of the rule."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic

from textual import on
from textual.app import ComposeResult
from textual.widget import Widget

from evaltui.core.compare.proposals import Proposal
from evaltui.core.gaps.drafts import Draft
from evaltui.core.matching.rules import match_in_words
from evaltui.core.metrics.answer_rules import check_in_words
from evaltui.core.model.answer_rule import RuleScope
from evaltui.core.model.outcome import Status
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.editing.config import Rule
from evaltui.documents.edits import EditError
from evaltui.text.figures import UNKNOWN, show_number
from evaltui.text.glyphs import ascii_only
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, cut
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
)
from evaltui.tui.result.rows import mark_words
from evaltui.tui.widgets.choices import LABEL, ChoiceLine, ChoiceList
from evaltui.tui.widgets.lines import DrawnLine
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.views.gaps import gap_row
from evaltui.workbench.gaps.drafting import GapDrafting, Proof, ScopedDraft
from evaltui.workbench.result.answer_checking import AnswerChecking, check_problem
from evaltui.workbench.result.relaxing import Effect, Relaxing, Trial, Tried, match_problem
from evaltui.workbench.workbench import Workbench

_SCOPES: Mapping[RuleScope, str] = {"case": "This case", "set": "This set", "all": "All sets"}
# Rows besides the line of places, the rules and the effect.
_OTHER_ROWS = 9


class RuleScreen(FormScreen[bool], Generic[Tried]):
    """Writes the chosen rule into the config, unsaved; returns whether it has.

    `go_on` goes to the next difference, where this case would still fail.
    """

    box = "#relax"
    action_id = "relax"
    """The action that opens it."""
    next_key = "n"
    """The key that goes to the next difference; "" for none."""
    passed = "fixed"
    """The word for this case where it passes with the rule."""
    AUTO_FOCUS = "#relax-proposals"
    verb = "relax"
    nothing = "No suggested rule passes"
    title_text: str
    edit_hint: str
    """The forms of a rule as JSON."""
    json_problem: Callable[[str], str | None]
    empty_rule: ClassVar[dict[str, Any]]
    """A rule to edit where none is proposed."""

    def __init__(
        self, workbench: Workbench, trial: Trial[Tried], arg_paths: Sequence[str], go_on: Callable[[], object]
    ) -> None:
        super().__init__()
        self._workbench = workbench
        self._trial = trial
        self._go_on = go_on
        self._arg_paths = arg_paths
        self._proposals = list(self.proposals(arg_paths[0]))
        self._effect: Effect | None = None
        self._problem = ""

    @abstractmethod
    def about(self) -> list[Span]:
        """Writes the subject of the rule."""

    @abstractmethod
    def side(self, number: int, width: int) -> Line:
        """Writes the expected (0) or the actual (1) value."""

    @abstractmethod
    def proposals(self, place: str) -> list[Proposal]:
        """Proposes rules for a place of the argument."""

    @abstractmethod
    def proposal(self, proposal: Proposal) -> Line:
        """Writes a proposed rule."""

    def unavailable(self) -> list[Line]:
        """Writes the kinds of rule that are not proposed, each with the reason."""
        return []

    @abstractmethod
    def rule(self, place: str, match: Any, scope: RuleScope) -> Tried:
        """Makes the rule as it is tried."""

    def json_of(self, proposal: Proposal) -> Any:
        """The JSON of a proposed rule, as it is edited."""
        return proposal.match

    def typed(self, value: Any) -> Proposal:
        """The rule of typed JSON."""
        return Proposal(value, match_in_words(value))

    def write_proof(self, page: Page) -> None:
        """Writes what else is known of the rule, above its effect on results."""

    def compose(self) -> ComposeResult:
        title = f"{key_of(self.action_id)} {self.title_text}"
        with Dialog(title, self.about(), id="relax", can_be_undone=True):
            for number in range(2):
                yield DrawnLine(partial(self.side, number))
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
        rule = [Hint("confirm", self.verb), Hint("line_down", "rule", "↑↓")] if self._proposals else []
        scope, edit = Hint("next_item", "scope", "←→"), Hint("form_edit", "edit rule")
        return [*rule, scope, edit, CANCEL]

    def on_resize(self) -> None:
        self._fit()

    def _proposal_line(self, number: int, is_current: bool) -> Line:
        label = f"{'rule' if number == 0 else '':{LABEL - 1}}"
        if not self._proposals:
            return [(label, "muted"), (f" {self.nothing}", "muted")]
        return [
            (label, "muted"),
            ("▌" if is_current and self.choices.has_focus else " ", "bold accent"),
            ("● " if is_current else "○ ", "accent" if is_current else "muted"),
            *self.proposal(self._proposals[number]),
        ]

    def _write_unavailable(self, page: Page) -> None:
        for line in self.unavailable():
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
    def _rule(self) -> Tried | None:
        chosen = self._chosen
        if chosen is None or chosen.match is None:
            return None
        place = self._arg_paths[self.query_one("#relax-place", ChoiceLine).chosen]
        scope = list(_SCOPES)[self.query_one("#relax-scope", ChoiceLine).chosen]
        return self.rule(place, chosen.match, scope)

    # What it would do

    @on(ChoiceList.OptionHighlighted)
    def _show_effect_soon(self) -> None:
        start_work(self, self._find_effect, group="effect")

    async def _find_effect(self) -> None:
        rule = self._rule
        self._effect, self._problem = None, ""
        if rule is None:
            self._problem = self._chosen.words if self._chosen else self.nothing
            self._fit()
            return
        try:
            async for effect in self._trial.effects(rule):
                if not self.is_here:
                    return
                self._effect = effect
                self._fit()
        except (EditError, EvalSetError, OSError) as error:
            self._problem = str(error)
            self._fit()

    def _write_effect(self, page: Page) -> None:
        page.section(("Effect", "bold"))
        self.write_proof(page)
        rule, trial = self._rule, self._trial
        if self._problem or rule is None:
            page.row((visible(self._problem), "warning"))
            return
        if self._effect is None:
            page.row(("◐ scoring…", "muted"))
        else:
            run, name = trial.scored.run.name, trial.case.eval_id
            before, key = trial.scored.result, self.next_key
            write_relaxed(page, name, before, self._effect, run, key, self.passed)
        try:
            changes = trial.changes(rule)
        except (EditError, EvalSetError, OSError):
            return
        for path, lines in changes:
            added = sum(line.op == "+" for line in lines)
            page.section((visible(path.name), "bold"), (f" +{added}", "success"))
            write_line_changes(page, lines)

    def on_choice_line_changed(self, message: ChoiceLine.Changed) -> None:
        if message.line.id == "relax-place":
            self._offer(self.proposals(self._arg_paths[message.line.chosen]))
        self._show_effect_soon()

    # Keys

    @on(ChoiceList.OptionSelected)
    def action_confirm(self) -> None:
        rule = self._rule
        if rule is None:
            return
        if self._trial.apply(rule):
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
        value = json.dumps(self.json_of(chosen) if chosen else self.empty_rule, ensure_ascii=False)

        def edited(text: str) -> None:
            new = self.typed(json.loads(text))
            others = [proposal for proposal in self._proposals if proposal.match != new.match]
            self._offer([new, *others])

        title = f"{key_of('form_edit')} Edit"
        ask(self, PromptScreen(title, value, self.json_problem, self.edit_hint, "rule as JSON"), edited)


class RelaxScreen(RuleScreen[Rule]):
    """Lets an argument differ."""

    title_text = "Relax"
    edit_hint = '"ignore", {"regex": "…"}, {"approx": {"abs": 0.5}}, {"any_of": […]}, "type", "subset"'
    json_problem = staticmethod(match_problem)
    empty_rule: ClassVar = {"regex": ""}

    def __init__(self, workbench: Workbench, relaxing: Relaxing, go_on: Callable[[], object]) -> None:
        self._relaxing = relaxing
        super().__init__(workbench, relaxing, relaxing.arg_paths, go_on)

    def about(self) -> list[Span]:
        path = visible(self._relaxing.arg.path) or "arguments"
        return [(f"{visible(self._relaxing.tool)} › {path}", "muted")]

    def side(self, number: int, width: int) -> Line:
        arg = self._relaxing.arg
        label, value = (("expected", arg.expected), ("actual", arg.actual))[number]
        if arg.op == ("extra", "missing")[number]:
            return [(f"{label:{LABEL}}", "muted"), ("no such argument", "muted")]
        shown = value_line(value, max(12, width - LABEL - 12))
        return [(f"{label:{LABEL}}", "muted"), *shown, (f"   {type_name(value)}", "muted")]

    def proposals(self, place: str) -> list[Proposal]:
        return self._relaxing.proposals(place)

    def proposal(self, proposal: Proposal) -> Line:
        return rule_line(proposal.match)

    def unavailable(self) -> list[Line]:
        return unavailable_rules([proposal.match for proposal in self._proposals])

    def rule(self, place: str, match: Any, scope: RuleScope) -> Rule:
        return self._relaxing.rule(place, match, scope)


class CheckScreen(RuleScreen[Rule]):
    """Checks what a response must have; the last row goes to the metric by which it failed.

    `open_metric` opens the criteria at a metric by its name, `failed_by`; "" for none.
    """

    title_text = "Check response"
    verb = "check"
    nothing = "No check proposed"
    edit_hint = (
        '"contains": […], "not_contains": […], "regex": "…", "numbers": "equal", '
        '"json_schema": {…}, "agent": "…"'
    )
    json_problem = staticmethod(check_problem)
    empty_rule: ClassVar = {"contains": [""]}

    def __init__(
        self,
        workbench: Workbench,
        checking: AnswerChecking,
        go_on: Callable[[], object],
        failed_by: str,
        open_metric: Callable[[str], object],
    ) -> None:
        self._checking = checking
        self._failed_by = failed_by
        self._open_metric = open_metric
        super().__init__(workbench, checking, ("",), go_on)

    def about(self) -> list[Span]:
        return [(f"turn {self._checking.turn + 1}", "muted")]

    def side(self, number: int, width: int) -> Line:
        label, text = (("expected", self._checking.expected), ("actual", self._checking.actual))[number]
        shown = cut([(visible(" ".join(text.split())), "")], max(12, width - LABEL))
        return [(f"{label:{LABEL}}", "muted"), *(shown if text else [("no response", "muted")])]

    def proposals(self, place: str) -> list[Proposal]:
        metric = [Proposal(None, f"threshold of {self._failed_by}…")] if self._failed_by else []
        return [*self._checking.proposals(), *metric]

    def proposal(self, proposal: Proposal) -> Line:
        return [(check_in_words(proposal.match) if proposal.match else proposal.words, "")]

    def action_confirm(self) -> None:
        if self._chosen is not None and self._chosen.match is None:
            self.dismiss(False)
            self._open_metric(self._failed_by)
        else:
            super().action_confirm()

    def rule(self, place: str, match: Any, scope: RuleScope) -> Rule:
        return self._checking.rule(match, scope)


def _rate(counts: tuple[int, int]) -> str:
    """`3/14`"""
    return "/".join(map(show_number, counts))


class DraftScreen(RuleScreen[ScopedDraft]):
    """Offers what would notice a change of a recorded conversation."""

    action_id = "draft"
    title_text = "Draft a check"
    verb = "accept"
    nothing = "Nothing here notices this change"
    next_key = ""
    passed = "passes"
    edit_hint = CheckScreen.edit_hint
    json_problem = staticmethod(check_problem)
    empty_rule = CheckScreen.empty_rule

    def __init__(self, workbench: Workbench, drafting: GapDrafting) -> None:
        self._drafting = drafting
        self._proof: Proof | None = None
        super().__init__(workbench, drafting, ("",), lambda: None)

    def about(self) -> list[Span]:
        return [(visible(self._drafting.kind.kind), "muted")]

    def _hints(self) -> list[Hint]:
        draft = self._draft
        if draft is None or draft.check is not None:
            return super()._hints()
        return [hint for hint in super()._hints() if hint.action not in ("next_item", "form_edit")]

    def side(self, number: int, width: int) -> Line:
        row = gap_row(self._drafting.gap)
        label, text = (("recorded", row.before), ("changed", row.after))[number]
        words = mark_words(row.words, "exp-hi strike", marks=ascii_only()) if number and row.words else None
        shown = words or [(visible(" ".join(text.split())) or UNKNOWN, "")]
        return [(f"{label:{LABEL}}", "muted"), *cut(shown, max(12, width - LABEL))]

    def proposals(self, place: str) -> list[Proposal]:
        return [Proposal(draft, str(draft)) for draft in self._drafting.drafts]

    def proposal(self, proposal: Proposal) -> Line:
        draft: Draft = proposal.match
        kinds = {"check": draft.check, "calls": draft.calls, "criterion": draft.options}
        kind = next((kind for kind, value in kinds.items() if value is not None), "judged")
        return [(f"{kind:11}", "muted"), (visible(proposal.words), "")]

    def rule(self, place: str, match: Any, scope: RuleScope) -> ScopedDraft:
        return self._drafting.scoped(match, scope)

    async def _find_effect(self) -> None:
        self._proof, draft, rule = None, self._draft, self._rule
        self.query_one("#relax-scope").display = draft is not None and draft.check is not None
        await super()._find_effect()
        if draft is None or rule is None or draft.rubric or not self.is_here:
            return
        try:
            self._proof = await self._drafting.proof(rule)
        except (EvalSetError, OSError, ValueError) as error:
            self._problem = str(error)
        self._fit()

    @property
    def _draft(self) -> Draft | None:
        chosen = self._chosen
        return chosen.match if chosen else None

    def write_proof(self, page: Page) -> None:
        proof = self._proof
        if proof is None:
            return
        counts = f"{_rate(proof.in_case)} of this kind in the case"
        if proof.in_set is not None:
            counts += f", {_rate(proof.in_set)} in the set"
        mark = ("✓ ", "success") if proof.is_noticed else ("✗ ", "error")
        word = "notices this change" if proof.is_noticed else "does not notice this change"
        page.row(mark, (word, ""), (f"   {counts}", "muted"))
        passes = proof.passing == proof.results
        mark = ("✓ ", "success") if passes else ("✗ ", "error")
        word = "still passes" if passes else "no longer passes"
        results = f"{_rate((proof.passing, proof.results))} passing results of the case"
        page.row(mark, (word, "" if passes else "error"), (f"   {results}", "muted"))

    def action_form_edit(self) -> None:
        draft = self._draft
        if draft is not None and draft.check is None:
            self.query_one(QuestionNote).show("Only checks can be edited here")
            return
        super().action_form_edit()

    def json_of(self, proposal: Proposal) -> Any:
        return proposal.match.check

    def typed(self, value: Any) -> Proposal:
        draft = Draft(check=value)
        return Proposal(draft, str(draft))
