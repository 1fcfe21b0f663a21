"""How far an argument may differ from now on, for which cases, and what that would do to them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from evaltui.core.compare.proposals import Proposal
from evaltui.core.compare.rules import match_in_words
from evaltui.core.jsondoc.edits import EditError
from evaltui.core.model.problems import EvalSetError
from evaltui.text.lines import Line
from evaltui.text.outcomes import GLYPHS, WORDS
from evaltui.text.values import show_value, visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.screens.prompt import Hint, Hints, PromptScreen, QuestionNote, QuestionTitle
from evaltui.tui.widgets.choice_line import ChoiceLine
from evaltui.tui.widgets.lines import CursorLines, OneLine
from evaltui.tui.widgets.painting import fit_for_terminal
from evaltui.workbench.actions import Scope
from evaltui.workbench.relaxing import Effect, Relaxing, match_problem
from evaltui.workbench.workbench import Workbench

_SCOPES = ("this case", "every case")


class RelaxScreen(DialogScreen[bool], inherit_bindings=False):
    """Writes the rule that is chosen into the config, unsaved, and returns whether it has."""

    box = "#relax"
    BINDINGS = bindings(Scope.FORM)
    AUTO_FOCUS = "Proposals"

    def __init__(self, workbench: Workbench, relaxing: Relaxing) -> None:
        super().__init__()
        self._workbench = workbench
        self._relaxing = relaxing
        self._arg_paths = relaxing.arg_paths

    def compose(self) -> ComposeResult:
        relaxing = self._relaxing
        config = relaxing.config_path.name
        with Vertical(id="relax"):
            yield QuestionTitle(f"Relax {relaxing.arg.path or 'the arguments'} of {relaxing.tool}")
            yield Sides(relaxing)
            yield ChoiceLine("what", [_place_name(place) for place in self._arg_paths], id="relax-place")
            yield Proposals(relaxing.proposals(self._arg_paths[0]))
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
        self._look()

    @property
    def _rule(self) -> dict[str, Any] | None:
        chosen = self.query_one(Proposals).chosen
        if chosen is None:
            return None
        place = self._arg_paths[self.query_one("#relax-place", ChoiceLine).chosen]
        everywhere = bool(self.query_one("#relax-scope", ChoiceLine).chosen)
        return self._relaxing.rule(place, chosen.match, everywhere=everywhere)

    # What it would do

    def _look(self) -> None:
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
            self.query_one(Proposals).offer(self._relaxing.proposals(self._arg_paths[message.line.chosen]))
        self._look()

    def on_proposals_moved(self) -> None:
        self._look()

    # Keys

    def action_form_leave(self) -> None:
        self.dismiss(False)

    def action_form_take(self) -> None:
        self._take()

    def action_form_next(self) -> None:
        self._step(1)

    def action_form_previous(self) -> None:
        self._step(-1)

    def action_form_down(self) -> None:
        self.query_one(Proposals).action_line_down()

    def action_form_up(self) -> None:
        self.query_one(Proposals).action_line_up()

    def action_form_left(self) -> None:
        self._choose(-1)

    def action_form_right(self) -> None:
        self._choose(1)

    action_form_toggle = action_form_right

    def action_form_edit(self) -> None:
        self._edit()

    def _choose(self, step: int) -> None:
        line = self.focused
        if not isinstance(line, ChoiceLine):
            line = self.query_one("#relax-scope", ChoiceLine)
        line.step(step)

    def _step(self, step: int) -> None:
        places = [self.query_one("#relax-place"), self.query_one(Proposals), self.query_one("#relax-scope")]
        at = places.index(self.focused) if self.focused in places else 1
        self.set_focus(places[(at + step) % len(places)])

    def _edit(self) -> None:
        chosen = self.query_one(Proposals).chosen
        value = json.dumps(chosen.match if chosen else {"regex": ""}, ensure_ascii=False)
        hint = '"ignore", {"regex": "…"}, {"approx": {"abs": 0.5}}, {"any_of": […]}, "type", "subset"'
        self.app.push_screen(PromptScreen("What matches", value, match_problem, hint), self._edited)

    def _edited(self, text: str | None) -> None:
        if text is not None:
            match = json.loads(text)
            self.query_one(Proposals).add(Proposal(match, match_in_words(match)))

    def _take(self) -> None:
        rule = self._rule
        if rule is None:
            return
        if self._relaxing.apply(rule):
            self.dismiss(True)
        elif self._workbench.notice is not None:
            self.query_one(QuestionNote).show(self._workbench.notice.text)

    def on_proposals_chosen(self) -> None:
        self._take()


def _place_name(place: str) -> str:
    return "all arguments" if place == "*" else place


class Sides(OneLine):
    """The two values that differ."""

    def __init__(self, relaxing: Relaxing) -> None:
        super().__init__()
        self._arg = relaxing.arg

    def line(self, width: int) -> Line:
        room = max(12, (width - 24) // 2)
        missing, extra = self._arg.op == "missing", self._arg.op == "extra"
        return [
            (" expected ", "dim"),
            ("nothing" if extra else show_value(self._arg.expected, room), "dim" if extra else ""),
            ("   actual ", "dim"),
            ("nothing" if missing else show_value(self._arg.actual, room), "dim" if missing else ""),
        ]


class Proposals(CursorLines, can_focus=True, inherit_bindings=False):
    """The ways in which both values count as the same; the current one is chosen, a double click takes it."""

    class Chosen(Message):
        """The user wants this one."""

    class Moved(Message):
        """Another one is chosen."""

    def __init__(self, proposals: list[Proposal]) -> None:
        super().__init__()
        self._proposals = proposals

    @property
    def chosen(self) -> Proposal | None:
        return self._proposals[self.cursor] if self._proposals else None

    def offer(self, proposals: list[Proposal]) -> None:
        self._proposals = proposals
        self.cursor = 0
        self._draw()

    def add(self, proposal: Proposal) -> None:
        """One more, which is chosen then."""
        self._proposals = [proposal, *(one for one in self._proposals if one.match != proposal.match)]
        self.move_to(0)
        self._draw()

    def _draw(self) -> None:
        self.styles.height = max(1, len(self._proposals))
        self.lines_changed(max(1, len(self._proposals)))

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def move_to(self, number: int) -> None:
        before = self.cursor
        super().move_to(number)
        if self.cursor != before or number == 0:
            self.post_message(self.Moved())

    def line(self, number: int) -> Line:
        if not self._proposals:
            return [("   nothing fits both values", "dim")]
        here = number == self.cursor
        mark = "▌" if here and self.has_focus else " "
        radio = "(•) " if here else "( ) "
        words = visible(self._proposals[number].words)
        return [(mark, "accent"), (radio, "accent" if here else "dim"), (words, "bold" if here else "")]

    def open_current(self) -> None:
        self.post_message(self.Chosen())


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
