"""The registry of everything that can be done: it feeds the key bindings, the footer, `?` and the palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from evaltui.workbench.actions.action import FOCUS_CHAINS, Action, Scope, chain_of
from evaltui.workbench.actions.chat import CHAT
from evaltui.workbench.actions.edit import EDIT
from evaltui.workbench.actions.files import FILES
from evaltui.workbench.actions.run import RUN
from evaltui.workbench.actions.screen import GO, LIST_ACTIONS, LOOK

__all__ = [
    "ACTIONS",
    "BY_ID",
    "FOCUS_CHAINS",
    "SUBJECTS",
    "Action",
    "RefusedById",
    "Scope",
    "actions_in",
    "chain_of",
    "hints",
    "usable_hints",
]

_MAX_HINTS = 8

SUBJECTS: Mapping[str, tuple[Action, ...]] = {
    "Run": RUN,
    "Edit": EDIT,
    "Chat": CHAT,
    "Go": GO,
    "Look": LOOK,
    "Files": FILES,
    "Lists": LIST_ACTIONS,
}
"""The tables of actions, by subject."""

ACTIONS: tuple[Action, ...] = tuple(action for table in SUBJECTS.values() for action in table)

ACTIONS_BY_ID = {action.id: action for action in ACTIONS}


def actions_in(*scopes: Scope) -> Iterator[Action]:
    """The actions whose keys work in one of the places."""
    return (action for action in ACTIONS if not {*scopes}.isdisjoint(action.where))


RefusedById = Callable[[str], str | None]
"""Why the action of an id cannot be done now on a screen, as a sentence; None where it can."""


def usable_hints(scope: Scope, refuses: RefusedById) -> list[Action]:
    """Actions with a rank that can be done now, the most useful first."""
    ranks = [(action.rank_in(scope), action) for action in actions_in(*chain_of(scope))]
    ranked = sorted(((rank, action) for rank, action in ranks if rank is not None), key=lambda pair: pair[0])
    return [action for _, action in ranked if refuses(action.id) is None]


def hints(scope: Scope, refuses: RefusedById) -> list[Action]:
    """The keys that the footer shows now, the most useful first; at most eight."""
    return usable_hints(scope, refuses)[:_MAX_HINTS]
