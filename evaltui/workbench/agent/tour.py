"""The tour of `evaltui demo`: what to press next, and when that is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.actions.action import Scope
from evaltui.workbench.workbench import Workbench

IsDone = Callable[[Workbench, Scope], bool]


class TourStep(NamedTuple):
    """A sentence that says what to do, and the condition that it was done."""

    text: str
    keys: tuple[str, ...]
    """Keys by their names in Textual; a key with a space in it is a text to type."""
    is_done: IsDone
    """Whether the state of the workbench shows that it was done; the scope is where the focus is."""
    shown_keys: str = ""
    """How the keys are shown; "" for their names."""


def _at(eval_id: str) -> IsDone:
    """At a difference of a case."""

    def is_done(workbench: Workbench, _: Scope) -> bool:
        navigation = workbench.navigation
        return navigation.selection.eval_id == eval_id and navigation.difference is not None

    return is_done


def _at_expectation(workbench: Workbench, scope: Scope) -> bool:
    return workbench.navigation.selection.eval_id == "half_refund" and scope in (Scope.CASE, Scope.FIELD)


def _passes(eval_id: str) -> IsDone:
    def is_done(workbench: Workbench, _: Scope) -> bool:
        return any(
            workbench.outcomes.status(CaseId(eval_set.case_path, eval_id)) == "PASSED"
            for eval_set in workbench.sets.listed
        )

    return is_done


def _own_case_passes(workbench: Workbench, _: Scope) -> bool:
    case = workbench.navigation.selection.case
    return case is not None and workbench.outcomes.status(case) == "PASSED"


STEPS = (
    TourStep("Four cases are run: three will fail", (), _at("cancel_order")),
    TourStep(
        "The wording is new. Accept it: it becomes expected",
        ("a", "enter"),
        _passes("cancel_order"),
    ),
    TourStep("Next failing case: the reference varies", ("f", "n"), _at("arrived_broken")),
    TourStep(
        "Relax it: any reference of this form",
        ("x", "down", "enter"),
        _passes("arrived_broken"),
        "x, ↓, enter",
    ),
    TourStep("Next: the case is wrong. Go to what it expects", ("f", "n", "e"), _at_expectation),
    TourStep(
        "Edit 52 to 25: it is scored as you type",
        ("enter", "backspace", "backspace", "2", "5", "enter"),
        _passes("half_refund"),
        "enter, …, enter",
    ),
    TourStep(
        "Save the eval set and its config", ("ctrl+s",), lambda workbench, _: not workbench.editing.unsaved()
    ),
    TourStep(
        "Watch: every save of agent.py runs its cases again", ("w",), lambda workbench, _: workbench.watch.on
    ),
    TourStep(
        'Chat: ask "Where is order 1001?"',
        ("4", "Where is order 1001?", "enter"),
        lambda workbench, _: workbench.has_chatted,
        "4, …, enter",
    ),
    TourStep("Save the chat as a case", ("ctrl+t", "enter"), lambda workbench, _: workbench.chat.has_saved),
    TourStep("Run your case: it passes", ("r",), _own_case_passes),
)
END = "Done: chat, save, run, accept or relax.  Yours: evaltui new DIR"


class Tour:
    """How far a user has come; nothing is pressed by itself."""

    def __init__(self) -> None:
        self.index = 0
        """The current step, 0-based; the number of steps at the end."""

    @property
    def step(self) -> TourStep | None:
        """What is to be done; None at the end."""
        return STEPS[self.index] if self.index < len(STEPS) else None

    def follow(self, workbench: Workbench, scope: Scope) -> None:
        """Goes on as long as the current step is done."""
        while self.step is not None and self.step.is_done(workbench, scope):
            self.index += 1
