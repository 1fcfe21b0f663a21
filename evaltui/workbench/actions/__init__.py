"""The registry of everything that can be done: it feeds the key bindings, the footer, `?` and the palette."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evaltui.workbench.actions.action import FOCUS_CHAINS, LISTS, Action, Scope, chain_of, topic_of
from evaltui.workbench.actions.cases import TREE
from evaltui.workbench.actions.chat import CHAT
from evaltui.workbench.actions.editing import ACCEPTING, CASE
from evaltui.workbench.actions.files import FILES
from evaltui.workbench.actions.matrix import MATRIX
from evaltui.workbench.actions.running import RUNNING, WATCHING
from evaltui.workbench.actions.runs import RUNS
from evaltui.workbench.actions.screen import GO, LISTED, LOOK
from evaltui.workbench.actions.sessions import SESSIONS
from evaltui.workbench.actions.start import START
from evaltui.workbench.workbench import Workbench

__all__ = [
    "ACTIONS",
    "BY_ID",
    "FOCUS_CHAINS",
    "LISTS",
    "SUBJECTS",
    "Action",
    "Scope",
    "actions_in",
    "chain_of",
    "hints",
    "keys_of",
    "place_of",
    "topic_of",
    "usable_hints",
]

_MOST_HINTS = 8

SUBJECTS: Mapping[str, tuple[Action, ...]] = {
    "Run": (*RUNNING, *RUNS, *MATRIX, *SESSIONS, *WATCHING),
    "Edit": (*ACCEPTING, *TREE, *CASE),
    "Chat": CHAT,
    "Go": GO,
    "Look": (*LOOK, *START),
    "Files": FILES,
    "Lists": LISTED,
}
"""Every action, by what it is about."""

ACTIONS: tuple[Action, ...] = tuple(one for actions in SUBJECTS.values() for one in actions)

BY_ID = {action.id: action for action in ACTIONS}


def actions_in(scope: Scope) -> Iterator[Action]:
    return (action for action in ACTIONS if scope in action.where)


def place_of(action: Action) -> str:
    """Where its keys work, as a title."""
    places = [place for place in action.where if place is not Scope.START] or action.where
    if Scope.CASES in places and len(places) > 1:
        return "in every list"
    return ", ".join(places)


def keys_of(action: Action, workbench: Workbench) -> tuple[str, ...]:
    """The keys of an action: those that the user has chosen, else its own."""
    return workbench.keys.get(action.id, action.keys)


def usable_hints(workbench: Workbench, scope: Scope) -> list[Action]:
    """Actions with a rank that can be done now, the most useful first."""
    wheres = set(chain_of(scope))
    here = [action for action in ACTIONS if action.rank is not None and wheres & set(action.where)]
    ranked = sorted(here, key=lambda action: _place_in_footer(action, scope))
    return [action for action in ranked if action.refusal(workbench) is None]


_FIRST = {
    Scope.RESULT: (
        "accept",
        "relax",
        "next_difference",
        "next_failing",
        "run",
        "show_expected",
        "run_all",
        "chat_from_here",
    ),
    Scope.CASE: ("edit_field", "add_below", "run", "undo"),
    Scope.TRACE: ("open_details", "back_to_result", "next_difference", "run"),
}
"""What the footer shows first in some places, after what goes before everything: `ctrl+c cancel`."""


def _place_in_footer(action: Action, scope: Scope) -> int:
    first = _FIRST.get(scope, ())
    rank = action.rank or 0
    if action.id in first:
        return 1 + first.index(action.id)
    return rank if rank < 1 else rank + len(first)


def hints(workbench: Workbench, scope: Scope) -> list[Action]:
    """What the footer shows now, the most useful first; at most eight."""
    return usable_hints(workbench, scope)[:_MOST_HINTS]
