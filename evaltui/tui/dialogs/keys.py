"""Dialogs for keys and the guide: the keys of a pane, guide pages, and jumps to panes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.message import Message
from textual.widgets import Input

from evaltui.project import guide
from evaltui.project.guide import Section, search
from evaltui.text.keys import key_of, keys_of
from evaltui.text.lines import Line, cells, cut, pad
from evaltui.text.markdown import markdown_lines
from evaltui.text.outcomes import COUNTED_STATUSES, NOT_RUN, WORDS, glyph
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.dialogs.details import DetailsScreen
from evaltui.tui.dialogs.finding import SearchScreen
from evaltui.tui.dialogs.prompt import CANCEL, Dialog, DialogKeys, Hint, QuestionInput, QuestionScreen
from evaltui.tui.widgets.lines import LineView, OneLine
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.actions import (
    ACTIONS,
    ACTIONS_BY_ID,
    SUBJECTS,
    Action,
    RefusedById,
    Scope,
    actions_in,
    chain_of,
    usable_hints,
)

UNAVAILABLE_TITLE = "Unavailable here"
_MAX_FIRST = 10
# Of those that matter, a column.
_ROWS = 5
_SUBJECT_ROWS = 4
_SUBJECT_WIDTH = 12
_KEYS_WIDTH = 14
_TITLE_WIDTH = 26
_ALWAYS_LISTED = frozenset(("help", "guide", "quit"))


@dataclass(frozen=True)
class PaneKeys:
    """The actions with keys in a pane."""

    matter: Sequence[Action]
    """At most ten usable actions, the most useful first."""
    rest: Mapping[str, Sequence[Action]]
    """The other usable actions, by subject."""
    refused: Mapping[str, tuple[Action, str]]
    """Refused actions by id, each with the reason."""
    elsewhere: Sequence[Action]
    """The actions of other panes."""


def keys_here(scope: Scope, refuses: RefusedById) -> PaneKeys:
    """The actions of a pane, and the global ones if its keys include those."""
    usable_here = [*actions_in(*chain_of(scope))]
    refused = {action.id: (action, visible(why)) for action in usable_here if (why := refuses(action.id))}
    own = [
        action
        for action in usable_here
        if scope in action.where and not action.is_move and action.id not in refused
    ]
    ranked = usable_hints(scope, refuses)
    matter = list(dict.fromkeys([*(action for action in ranked if action in own), *ranked, *own]))
    matter = [action for action in matter if action.id not in _ALWAYS_LISTED][:_MAX_FIRST]
    rest = {
        name: [
            action
            for action in actions
            if action in usable_here and action.id not in refused and action not in matter
        ]
        for name, actions in SUBJECTS.items()
    }
    elsewhere = [action for action in ACTIONS if action not in usable_here]
    rest = {name: actions for name, actions in rest.items() if actions}
    return PaneKeys(matter, rest, refused, elsewhere)


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


def key_rows(here: PaneKeys, opened: Collection[str], width: int) -> KeyRows:
    """The rows: useful actions in two columns, subjects beside them, and unfolded subjects below."""
    drawn = KeyRows()
    beside = width >= 70
    subjects = width - 2 * _SUBJECT_WIDTH if beside else 0
    room = subjects if beside else width
    columns = [here.matter[first : first + _ROWS] for first in range(0, len(here.matter), _ROWS)]
    widths = [_width_of(actions) + 2 for actions in columns]
    # The second one begins in the middle, or as far right of it as the first one needs and it can spare.
    middle = max(room // 2, min(widths[0], room + 1 - widths[1])) if len(widths) > 1 else room
    for number, actions in enumerate(columns):
        left, end = (0, middle) if number == 0 else (middle, room + 1)
        _add_column(drawn, actions, left, end - left - 2)
    top = 0 if beside else len(drawn.rows) + 1
    for number, (name, actions) in enumerate(here.rest.items()):
        row, left = top + number % _SUBJECT_ROWS, subjects + number // _SUBJECT_ROWS * _SUBJECT_WIDTH
        drawn.place(row, Cell(left, _subject(name, len(actions), opened, _SUBJECT_WIDTH - 5), name))
    if here.refused:
        line = _subject(UNAVAILABLE_TITLE, len(here.refused), opened, len(UNAVAILABLE_TITLE) + 2)
        drawn.place(top + _SUBJECT_ROWS, Cell(subjects, line, UNAVAILABLE_TITLE))
    for name, actions in here.rest.items():
        if name in opened:
            _add_list(drawn, name, [_action_line(here, action, width) for action in actions])
    if UNAVAILABLE_TITLE in opened:
        refused = [_action_line(here, action, width) for action, _ in here.refused.values()]
        _add_list(drawn, UNAVAILABLE_TITLE, refused)
    drawn.add()
    legend: Line = []
    for status in (*COUNTED_STATUSES, NOT_RUN):
        legend += [glyph(status), (f" {WORDS[status]}  ", "muted")]
    drawn.add(Cell(0, cut(legend, width)))
    return drawn


def matching_rows(here: PaneKeys, query: str, width: int) -> KeyRows:
    """The actions with all words of the query in their title, help or keys.

    The action of a typed key comes first, then the others by title, then unavailable ones, then those of
    other places, which cannot be chosen.
    """
    drawn = KeyRows()
    words = query.casefold().split()
    every = [*here.matter, *(action for actions in here.rest.values() for action in actions)]
    every += [action for action, _ in here.refused.values()]

    def rank(action: Action) -> tuple[bool, bool, bool]:
        is_key = query.strip() in keys_of(action.id).split()
        return (
            not is_key,
            action.id in here.refused,
            not all(word in action.title.casefold() for word in words),
        )

    for action in [*sorted(every, key=rank), *here.elsewhere]:
        text = f"{action.title} {action.help} {keys_of(action.id)}".casefold()
        if all(word in text for word in words):
            drawn.add(_action_line(here, action, width))
    if not drawn.rows:
        drawn.add(Cell(0, [("No match", "muted")]))
    return drawn


def _width_of(actions: Sequence[Action]) -> int:
    """The cells of a column, including the cursor."""
    keys = max(len(key_of(action.id)) for action in actions)
    return 1 + keys + 2 + max(len(action.title) for action in actions)


def _add_column(drawn: KeyRows, actions: Sequence[Action], left: int, width: int) -> None:
    """Adds a column of actions, each with its first key."""
    keys = [key_of(action.id) for action in actions]
    room = max(map(len, keys)) + 2
    for row, (key, action) in enumerate(zip(keys, actions, strict=True)):
        title = pad(action.title, max(1, width - room))
        drawn.place(row, Cell(left, [(pad(key, room), "bold accent"), (title, "")], action.id))


def _subject(name: str, count: int, opened: Collection[str], width: int) -> Line:
    mark = "▾ " if name in opened else "▸ "
    return [
        (mark, "muted"),
        (pad(name, width), "muted" if name == UNAVAILABLE_TITLE else ""),
        (f"{count}", "muted"),
    ]


def _add_list(drawn: KeyRows, title: str, action_cells: Sequence[Cell]) -> None:
    drawn.add()
    drawn.add(Cell(0, [(title, "bold")]))
    for cell in action_cells:
        drawn.add(cell)


def _action_line(here: PaneKeys, action: Action, width: int) -> Cell:
    is_elsewhere = action in here.elsewhere
    why = action.place if is_elsewhere else here.refused.get(action.id, (action, ""))[1]
    line: Line = [
        (pad(keys_of(action.id), _KEYS_WIDTH), "faint" if why else "bold accent"),
        (pad(action.title, _TITLE_WIDTH), "faint" if why else ""),
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


# Of a search among the keys.
_MAX_PAGES = 5


class HelpScreen(QuestionScreen[str]):
    """The keys of a pane; returns the chosen action. The keys of the main screen are off until it is
    closed."""

    box = "#help"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.PROMPT),
        *bindings(Scope.MAIN, "guide"),
        # The field would have them first.
        Binding("right", "next_item", id="next_item", priority=True),
        Binding("left", "previous_item", id="previous_item", priority=True),
    ]

    def __init__(self, scope: Scope, refuses: RefusedById) -> None:
        super().__init__()
        self._scope = scope
        self._keys = keys_here(scope, refuses)

    def compose(self) -> ComposeResult:
        with Dialog(f"Keys for {self._scope.label}", id="help"):
            yield QuestionInput(placeholder="type to filter")
            yield HelpLines(self._keys, id="help-lines")
            yield DialogKeys(lambda: [Hint("confirm", "run"), Hint("guide"), CANCEL])

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one(HelpLines).show(event.value.strip())

    @property
    def answers(self) -> HelpLines:
        return self.query_one(HelpLines)

    def action_confirm(self) -> None:
        lines = self.answers
        lines.show(self.query_one(QuestionInput).value.strip())
        lines.choose()

    def action_step_item(self, step: int) -> None:
        field = self.query_one(QuestionInput)
        if not field.value:
            self.answers.step_column(step)
        elif step > 0:
            field.action_cursor_right()
        else:
            field.action_cursor_left()

    def action_guide(self) -> None:
        self.app.push_screen(GuidePage(guide.topic(self._scope.topic)))

    def on_help_lines_chosen(self, message: HelpLines.Chosen) -> None:
        self.dismiss(message.action)


class HelpLines(LineView, can_focus=False, inherit_bindings=False):
    """The rows of the help, with a cursor for the cells that can be chosen."""

    class Chosen(Message):
        """The user chose an action."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, here: PaneKeys, *, id: str) -> None:
        super().__init__(id=id)
        self._here = here
        self._query = ""
        self._opened: set[str] = set()
        self._drawn = KeyRows()
        self._pages: dict[str, Section] = {}
        self._cursor = 0

    def show(self, query: str) -> None:
        """Shows the matches of a query; everything for an empty one."""
        if query != self._query:
            self._query = query
            self._cursor = 0
            self._write()

    def _write(self) -> None:
        width = max(30, self.size.width - 1)
        self._drawn = (
            matching_rows(self._here, self._query, width)
            if self._query
            else key_rows(self._here, self._opened, width)
        )
        matches = search(self._query)[:_MAX_PAGES] if self._query else ()
        self._pages = {f"guide: {match.section.label}": match.section for match in matches}
        if self._pages:
            pages = [Cell(0, [(page.label, "")], target) for target, page in self._pages.items()]
            _add_list(self._drawn, "Guide", pages)
        self.lines_changed(len(self._drawn.rows))
        self._move_to(self._cursor)

    on_resize = _write

    @property
    def current(self) -> Cell | None:
        return self._drawn.order[self._cursor][1] if self._drawn.order else None

    def line(self, number: int) -> Line:
        return row_line(self._drawn.rows[number], self.current)

    def _move_to(self, number: int) -> None:
        self._cursor = max(0, min(number, len(self._drawn.order) - 1))
        if self._drawn.order:
            row = self._drawn.order[self._cursor][0]
            # Below the last row that can be chosen stands what is only read.
            last = self._cursor == len(self._drawn.order) - 1
            self.show_line(len(self._drawn.rows) - 1 if last else row)
        self.refresh()

    def action_step_line(self, step: int) -> None:
        self._move_to(self._cursor + step)

    def step_column(self, step: int) -> None:
        """Goes to the next (1) or previous (-1) column, to the nearest row."""
        if not self._drawn.order:
            return
        row, current = self._drawn.order[self._cursor]
        beside = [
            (step * (cell.left - current.left), abs(at - row), number)
            for number, (at, cell) in enumerate(self._drawn.order)
            if step * (cell.left - current.left) > 0
        ]
        if beside:
            self._move_to(min(beside)[2])

    def action_step_page(self, step: int) -> None:
        self._move_to(self._cursor + step * max(1, self.size.height - 2))

    def choose(self) -> None:
        """Chooses the current action; folds or unfolds the current subject, and goes to the first action
        inside."""
        cell = self.current
        if cell is None:
            return
        if cell.target in ACTIONS_BY_ID:
            self.post_message(self.Chosen(cell.target))
            return
        if section := self._pages.get(cell.target):
            self.app.push_screen(GuidePage(section.topic, section.line))
            return
        self._opened ^= {cell.target}
        self._write()
        if cell.target in self._opened:
            heading = [bool(row) and row[0].line[0][0] == cell.target for row in self._drawn.rows].index(True)
            self._move_to(next(n for n, (row, _) in enumerate(self._drawn.order) if row > heading))

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y
        for number, (at, cell) in enumerate(self._drawn.order):
            if at == row and cell.left <= event.x <= cell.left + cells(cell.line):
                self._cursor = number
                self.choose()
                return


class GuidePage(DetailsScreen):
    """A page of the guide, from a line of its text on; `search` opens the list of all pages."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.DETAILS), *bindings(Scope.MAIN, "guide")]

    def __init__(self, topic: guide.Topic, line: int = 0, search: Callable[[], object] | None = None) -> None:
        more = f"   {key_of('guide')} all pages" if search else ""
        title: Line = [("Guide", "bold"), (f" › {topic.title}", ""), (more, "muted")]
        super().__init__(title, partial(_write_topic, topic))
        self._search = search
        self._above = _join_paragraphs("\n".join(topic.text.splitlines()[:line]))

    def on_mount(self) -> None:
        self.call_after_refresh(self._scroll)

    def _scroll(self) -> None:
        lines = self.query_one(PageLines)
        above = len(markdown_lines(self._above, lines.page.width)) if self._above else 0
        lines.scroll_to(y=above, animate=False, force=True)

    def action_guide(self) -> None:
        if self._search:
            self.dismiss()
            self.app.call_later(self._search)


def _write_topic(topic: guide.Topic, page: Page) -> None:
    page.lines += markdown_lines(_join_paragraphs(topic.text), page.width)


# Lines of Markdown that begin something of their own, or are code.
_LINE_OF_ITS_OWN = re.compile(r"\s*(?:[-*+#>|]|\d+[.)] )|\s*$")


def _join_paragraphs(text: str) -> str:
    """A text without the line breaks inside its paragraphs."""
    flowing: list[str] = []
    in_code = False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        goes_on = flowing and not (fence or in_code or _LINE_OF_ITS_OWN.match(line))
        if goes_on and flowing[-1].strip() and not flowing[-1].lstrip().startswith(("#", "|", "```")):
            flowing[-1] += f" {line.strip()}"
        else:
            flowing.append(line)
        in_code ^= fence
    return "\n".join(flowing)


class GuideEntry(NamedTuple):
    """A row of the guide's list."""

    name: str
    about: str
    choose: Callable[[], object]


class GuideScreen(SearchScreen[Callable[[], object], GuideEntry]):
    """Lists the keys of the pane and the topics; a search finds sections and actions. Returns the choice."""

    box = "#guide"
    title_text = "Guide"
    placeholder = "search keys and topics"
    clicks_to_choose = 1

    def __init__(self, scope: Scope, refuses: RefusedById, do: Callable[[str], object]) -> None:
        super().__init__()
        self._scope = scope
        self._refuses = refuses
        self._do = do

    def find(self, query: str) -> Sequence[GuideEntry]:
        if not query:
            here = self._scope.topic
            first = GuideEntry("Keys", f"Keys for {self._scope.label}", partial(self._do, "help"))
            topics = sorted(guide.topics(), key=lambda topic: topic.name != here)
            return [
                first,
                *(GuideEntry(topic.title, topic.summary, partial(self._open, topic)) for topic in topics),
            ]
        keys = keys_here(self._scope, self._refuses)
        cells = matching_rows(keys, query, 200).order
        actions = [ACTIONS_BY_ID[cell.target] for _, cell in cells]
        return [
            *(
                GuideEntry(f"{keys_of(action.id)}  {action.title}", action.help, partial(self._do, action.id))
                for action in actions
            ),
            *(
                GuideEntry(
                    match.section.title,
                    match.first_line or match.section.topic.title,
                    partial(self._open, match.section.topic, match.section.line),
                )
                for match in search(query)
            ),
        ]

    def _open(self, topic: guide.Topic, line: int = 0) -> None:
        self.app.push_screen(GuidePage(topic, line))

    def match_line(self, match: GuideEntry, width: int) -> Line:
        name = min(34, width * 2 // 5)
        return cut([(" ", ""), (pad(match.name, name), ""), (f"  {match.about}", "muted")], width)

    def result_of(self, match: GuideEntry) -> Callable[[], object]:
        return match.choose


class Jump(NamedTuple):
    """A target to jump to, a pane or a section in it, and the place of its label."""

    target: str
    key: str
    at: Offset
    """The screen cell at which its label starts."""


class JumpScreen(DialogScreen[str | None], inherit_bindings=False):
    """Labels the panes and sections; returns the chosen target."""

    BINDINGS = bindings(Scope.LEAVING, "close")

    def __init__(self, jumps: Sequence[Jump]) -> None:
        super().__init__()
        self._jumps = jumps

    def compose(self) -> ComposeResult:
        for jump in self._jumps:
            label = JumpLabel(jump)
            label.styles.offset = jump.at
            yield label

    def on_key(self, event: events.Key) -> None:
        for jump in self._jumps:
            if event.key == jump.key:
                event.stop()
                self.dismiss(jump.target)

    def on_resize(self, event: events.Resize) -> None:
        # The labels belong to a screen of another size.
        if event.size != self._first_size:
            self.dismiss(None)

    def on_mount(self) -> None:
        self._first_size = self.app.size


class JumpLabel(OneLine):
    def __init__(self, jump: Jump) -> None:
        super().__init__()
        self.jump = jump
        self.styles.width = cells(self.line(0))

    def line(self, width: int) -> Line:
        return [(f" {self.jump.key} ", "chip")]

    def on_click(self) -> None:
        self.screen.dismiss(self.jump.target)
