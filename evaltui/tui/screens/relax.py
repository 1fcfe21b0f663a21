"""How far an argument may differ from now on, for which cases, and what that would do to them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from evaltui.core.compare.proposals import Proposal
from evaltui.core.compare.rules import match_in_words
from evaltui.core.jsondoc.edits import EditError
from evaltui.core.model.problems import EvalSetError
from evaltui.text.lines import Line
from evaltui.text.outcomes import GLYPHS, WORDS
from evaltui.text.values import show_value, visible
from evaltui.tui.screens.prompt import FormScreen, Hint, Hints, PromptScreen, QuestionNote, QuestionTitle
from evaltui.tui.widgets.choices import ChoiceLine, ChoiceList
from evaltui.tui.widgets.lines import DrawnLine
from evaltui.tui.widgets.painting import fit_for_terminal
from evaltui.workbench.relaxing import Effect, Relaxing, match_problem
from evaltui.workbench.workbench import Workbench

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
            yield ChoiceLine("what", [_place_name(place) for place in self._arg_paths], id="relax-place")
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
            (" expected ", "dim"),
            ("nothing" if extra else show_value(arg.expected, room), "dim" if extra else ""),
            ("   actual ", "dim"),
            ("nothing" if missing else show_value(arg.actual, room), "dim" if missing else ""),
        ]

    def _proposal_line(self, number: int, is_current: bool) -> Line:
        if not self._proposals:
            return [("   nothing fits both values", "dim")]
        return [
            ("▌" if is_current and self.choices.has_focus else " ", "accent"),
            ("(•) " if is_current else "( ) ", "accent" if is_current else "dim"),
            (visible(self._proposals[number].words), "bold" if is_current else ""),
        ]

    @property
    def choices(self) -> ChoiceList:
        return self.query_one(ChoiceList)

    @property
    def _chosen(self) -> Proposal | None:
        return self._proposals[self.choices.current] if self._proposals else None

    def _offer(self, proposals: Sequence[Proposal]) -> None:
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
                shown.show(effect)
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
        self.app.push_screen(PromptScreen("What matches", value, match_problem, hint), self._edited)

    def _edited(self, text: str | None) -> None:
        if text is not None:
            match = json.loads(text)
            others = [one for one in self._proposals if one.match != match]
            self._offer([Proposal(match, match_in_words(match)), *others])


def _place_name(place: str) -> str:
    return "all arguments" if place == "*" else place


class EffectText(Static):
    """What the rule would do to this case and to others."""

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def say(self, text: str) -> None:
        self.update(Content(fit_for_terminal(visible(text))))

    def show(self, effect: Effect) -> None:
        self.say(" · ".join(_effect_in_words(effect)))


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
