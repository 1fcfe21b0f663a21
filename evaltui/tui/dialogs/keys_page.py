"""The keys of a pane: the most useful first, the rest by subject, then unavailable ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evaltui.text.keys import keys_of
from evaltui.text.lines import Line, cells, cut, pad
from evaltui.text.outcomes import COUNTED, NOT_RUN, WORDS, glyph
from evaltui.text.values import visible
from evaltui.workbench.actions import (
    ACTIONS,
    SUBJECTS,
    Action,
    Scope,
    actions_in,
    chain_of,
    usable_hints,
)
from evaltui.workbench.workbench import Workbench

UNAVAILABLE = "Unavailable here"
_MOST_THAT_MATTER = 10
# Of those that matter, a column.
_ROWS = 5
_SUBJECT_ROWS = 4
_SUBJECT = 12
_KEYS = 14
_TITLE = 26
_NAMED = frozenset(("help", "guide", "quit"))


@dataclass(frozen=True)
class KeysHere:
    """The actions with keys in a pane."""

    matter: Sequence[Action]
    """At most ten usable actions, the most useful first."""
    rest: Mapping[str, Sequence[Action]]
    """The other usable actions, by subject."""
    refused: Mapping[str, tuple[Action, str]]
    """Refused actions by id, each with the reason."""
    elsewhere: Sequence[Action]
    """The actions of other panes."""
    names: Mapping[str, str]
    """Names of the keys, by id of the action."""


def keys_here(workbench: Workbench, scope: Scope) -> KeysHere:
    """The actions of a pane, and the global ones if its keys include those."""
    usable_here = [*actions_in(*chain_of(scope))]
    refused = {
        action.id: (action, visible(why))
        for action in usable_here
        if (why := action.refusal(workbench, scope))
    }
    own = [
        action
        for action in usable_here
        if scope in action.where and not action.is_move and action.id not in refused
    ]
    ranked = usable_hints(workbench, scope)
    matter = list(dict.fromkeys([*(action for action in ranked if action in own), *ranked, *own]))
    matter = [action for action in matter if action.id not in _NAMED][:_MOST_THAT_MATTER]
    rest = {
        name: [
            action
            for action in actions
            if action in usable_here and action.id not in refused and action not in matter
        ]
        for name, actions in SUBJECTS.items()
    }
    elsewhere = [action for action in ACTIONS if action not in usable_here]
    names = {action.id: keys_of(action.id) for action in ACTIONS}
    rest = {name: actions for name, actions in rest.items() if actions}
    return KeysHere(matter, rest, refused, elsewhere, names)


class Cell(NamedTuple):
    """A part of a row: one that can be chosen, or plain text."""

    left: int
    """Its first cell, 0-based."""
    line: Line
    target: str = ""
    """Id of an action, or a subject; "" for plain text."""


@dataclass
class KeyRows:
    """The rows of the help, and the cursor order of their cells."""

    rows: list[list[Cell]] = field(default_factory=list)
    order: list[tuple[int, Cell]] = field(default_factory=list)

    def place(self, row: int, cell: Cell) -> None:
        while len(self.rows) <= row:
            self.rows.append([])
        self.rows[row].append(cell)
        if cell.target:
            self.order.append((row, cell))

    def add(self, *line_cells: Cell) -> None:
        row = len(self.rows)
        self.rows.append([])
        for cell in line_cells:
            self.place(row, cell)


def key_rows(here: KeysHere, opened: Collection[str], width: int) -> KeyRows:
    """The rows: useful actions in two columns, subjects beside them, and unfolded subjects below."""
    drawn = KeyRows()
    beside = width >= 70
    subjects = width - 2 * _SUBJECT if beside else 0
    room = subjects if beside else width
    columns = [here.matter[first : first + _ROWS] for first in range(0, len(here.matter), _ROWS)]
    widths = [_width_of(here, actions) + 2 for actions in columns]
    # The second one begins in the middle, or as far right of it as the first one needs and it can spare.
    middle = max(room // 2, min(widths[0], room + 1 - widths[1])) if len(widths) > 1 else room
    for number, actions in enumerate(columns):
        left, end = (0, middle) if number == 0 else (middle, room + 1)
        _add_column(drawn, here, actions, left, end - left - 2)
    top = 0 if beside else len(drawn.rows) + 1
    for number, (name, actions) in enumerate(here.rest.items()):
        row, left = top + number % _SUBJECT_ROWS, subjects + number // _SUBJECT_ROWS * _SUBJECT
        drawn.place(row, Cell(left, _subject(name, len(actions), opened, _SUBJECT - 5), name))
    if here.refused:
        line = _subject(UNAVAILABLE, len(here.refused), opened, len(UNAVAILABLE) + 2)
        drawn.place(top + _SUBJECT_ROWS, Cell(subjects, line, UNAVAILABLE))
    for name, actions in here.rest.items():
        if name in opened:
            _add_list(drawn, name, [_action_line(here, action, width) for action in actions])
    if UNAVAILABLE in opened:
        refused = [_action_line(here, action, width) for action, _ in here.refused.values()]
        _add_list(drawn, UNAVAILABLE, refused)
    drawn.add()
    legend: Line = []
    for status in (*COUNTED, NOT_RUN):
        legend += [glyph(status), (f" {WORDS[status]}  ", "muted")]
    drawn.add(Cell(0, cut(legend, width)))
    return drawn


def matching_rows(here: KeysHere, query: str, width: int) -> KeyRows:
    """The actions with all words of the query in their title, help or keys.

    The action of a typed key comes first, then the others by title, then unavailable ones, then those of
    other places, which cannot be chosen.
    """
    drawn = KeyRows()
    words = query.casefold().split()
    every = [*here.matter, *(action for actions in here.rest.values() for action in actions)]
    every += [action for action, _ in here.refused.values()]

    def rank(action: Action) -> tuple[bool, bool, bool]:
        is_key = query.strip() in here.names[action.id].split()
        return (
            not is_key,
            action.id in here.refused,
            not all(word in action.title.casefold() for word in words),
        )

    for action in [*sorted(every, key=rank), *here.elsewhere]:
        text = f"{action.title} {action.help} {here.names[action.id]}".casefold()
        if all(word in text for word in words):
            drawn.add(_action_line(here, action, width))
    if not drawn.rows:
        drawn.add(Cell(0, [("No match", "muted")]))
    return drawn


def _width_of(here: KeysHere, actions: Sequence[Action]) -> int:
    """The cells of a column, including the cursor."""
    keys = max(len(here.names[action.id].split(" ")[0]) for action in actions)
    return 1 + keys + 2 + max(len(action.title) for action in actions)


def _add_column(drawn: KeyRows, here: KeysHere, actions: Sequence[Action], left: int, width: int) -> None:
    """Adds a column of actions, each with its first key."""
    keys = [here.names[action.id].split(" ")[0] for action in actions]
    room = max(map(len, keys)) + 2
    for row, (key, action) in enumerate(zip(keys, actions, strict=True)):
        title = pad(action.title, max(1, width - room))
        drawn.place(row, Cell(left, [(pad(key, room), "bold accent"), (title, "")], action.id))


def _subject(name: str, count: int, opened: Collection[str], width: int) -> Line:
    mark = "▾ " if name in opened else "▸ "
    return [
        (mark, "muted"),
        (pad(name, width), "muted" if name == UNAVAILABLE else ""),
        (f"{count}", "muted"),
    ]


def _add_list(drawn: KeyRows, title: str, action_cells: Sequence[Cell]) -> None:
    drawn.add()
    drawn.add(Cell(0, [(title, "bold")]))
    for cell in action_cells:
        drawn.add(cell)


def _action_line(here: KeysHere, action: Action, width: int) -> Cell:
    is_elsewhere = action in here.elsewhere
    why = action.place if is_elsewhere else here.refused.get(action.id, (action, ""))[1]
    line: Line = [
        (pad(here.names[action.id], _KEYS), "faint" if why else "bold accent"),
        (pad(action.title, _TITLE), "faint" if why else ""),
        ("  ", ""),
        (why or action.help, "faint" if why else "muted"),
    ]
    return Cell(0, cut(line, width - 2), "" if is_elsewhere else action.id)


def row_line(row: Sequence[Cell], current: Cell | None) -> Line:
    """A row with the current cell filled; every cell starts with space for the cursor."""
    line: Line = []
    for cell in row:
        line.append((" " * max(0, cell.left - cells(line)), ""))
        here = cell is current
        line.append(("▌" if here else " ", "sel bold accent" if here else ""))
        line += (
            [(text, f"sel {role}".replace("faint", "muted")) for text, role in cell.line]
            if here
            else cell.line
        )
    return line
