"""Pages: lines for a width, with JSON, problems and errors among them, and the widget that shows a page."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import Problem, Severity, format_path
from evaltui.project.agent_source import SourcePlace, frames_of
from evaltui.text.figures import counted, show_number
from evaltui.text.glyphs import EMPTY_BAR, ascii_only
from evaltui.text.lines import Line, Span, cells, cut, join_ends, pad, with_role, wrap, wrap_behind
from evaltui.text.syntax import code_lines
from evaltui.text.values import told_apart, type_names, visible, visible_block
from evaltui.text.word_diff import diff_words
from evaltui.tui.widgets.lines import ScrolledLines, plain_text
from evaltui.views.difference import DifferenceAt

if TYPE_CHECKING:
    from evaltui.core.model.outcome import ErrorInfo

# Longer lines are hard to read, and their end is far from what it belongs to.
MAX_WIDTH = 110
MIN_WIDTH = 24
# Less of a line's left end says nothing.
_MIN_LEFT_WIDTH = 20
# The column that holds labels such as `user` and `answer 0.92`.
LABEL_WIDTH = 12


NO_SIDES: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Difference:
    """The lines of a page about a difference."""

    at: DifferenceAt
    """Its place in the result."""
    first: int
    """Its first line, 0-based."""
    last: int
    """The line after its last one."""


class RepeatAt(NamedTuple):
    """The place of a repeat's glyph on a page; all counted from 0."""

    repeat: int
    line: int
    first: int
    """Its first cell."""
    last: int
    """The cell after its last one."""


class Link(NamedTuple):
    """A part of a page that keys move to, and that enter or a click opens."""

    opens: CaseId | str
    """The case to open; else the name of a metric, or "" for the history of the case."""
    first: int
    """Its first line, 0-based."""
    last: int
    """The line after its last one."""
    start: int = 0
    """Its first cell, which is left empty for a marker."""
    end: int | None = None
    """The cell after its last one; None for that of the line."""


@dataclass(frozen=True)
class Folding:
    """The open parts of a page."""

    all_open: bool = False
    toggled: frozenset[str] = frozenset()
    """The parts that are not folded or open as by default."""

    def is_open(self, key: str, *, usual: bool) -> bool:
        return (usual or self.all_open) != (key in self.toggled)


def fold_mark(is_open: bool) -> Span:
    """The mark before the title of a part that folds."""
    return "▾ " if is_open else "▸ ", "faint"


DEFAULT_FOLDING, OPEN_FOLDING = Folding(), Folding(all_open=True)


class Lines(MutableSequence[Line]):
    """The lines of a page. A deferred line is built when it is first read."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self._lines: list[Line | Callable[[], Line]] = list(lines)

    def put_off(self, make: Callable[[], Line]) -> None:
        """Adds a deferred line, which `make` builds at most once."""
        self._lines.append(make)

    @property
    def ends_empty(self) -> bool:
        """Whether the last line is empty; a deferred line counts as not empty."""
        return bool(self._lines) and self._lines[-1] == []

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, place: int) -> Line: ...

    @overload
    def __getitem__(self, place: slice) -> list[Line]: ...

    def __getitem__(self, place: int | slice) -> Line | list[Line]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        line = self._lines[place]
        if callable(line):
            line = self._lines[place] = line()
        return line

    def __setitem__(self, place: Any, line: Any) -> None:
        self._lines[place] = line

    def __delitem__(self, place: int | slice) -> None:
        del self._lines[place]

    def insert(self, index: int, value: Line) -> None:
        self._lines.insert(index, value)


class Frame(NamedTuple):
    """A frame of a traceback on a page."""

    place: SourcePlace
    first: int
    """Its first line on the page, 0-based."""
    last: int
    """The line after its last one."""


@dataclass
class Page:
    """Lines for a width, with the places of their parts."""

    width: int
    """Cells of a line, between `MIN_WIDTH` and `widest`."""
    widest: int = MAX_WIDTH
    marks: bool = field(default_factory=ascii_only)
    """Whether changed words are in marks, for output without colours."""
    lines: Lines = field(default_factory=Lines)
    turns: dict[int, int] = field(default_factory=dict)
    """The first line of each turn, by turn; both 0-based."""
    differences: list[Difference] = field(default_factory=list)
    repeats: list[RepeatAt] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    sides: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The end of the left side and the start of the right one, in characters, by line."""
    folds: dict[int, str] = field(default_factory=dict)
    """The fold keys for clicks, by line."""
    frames: list[Frame] = field(default_factory=list)
    full_texts: dict[int, str] = field(default_factory=dict)
    """The full texts of cut lines, by line."""
    unfolded: Collection[str] = ()
    """The differences that are shown in full, by `fold_of`."""

    def __post_init__(self) -> None:
        self.width = max(MIN_WIDTH, min(self.width, self.widest))

    def add_page(self, other: Page) -> None:
        """Takes over the lines and places of another page with the same width."""
        self.lines, self.turns, self.differences = other.lines, other.turns, other.differences
        self.repeats, self.folds = other.repeats, other.folds
        self.links, self.sides, self.full_texts = other.links, other.sides, other.full_texts
        self.frames = other.frames

    @contextmanager
    def difference(self, at: DifferenceAt, sides: Mapping[str, Any] = NO_SIDES) -> Iterator[None]:
        """Registers the lines written in its block as a difference; when it is unfolded, its `sides` follow
        in full."""
        first = len(self.lines)
        yield
        if sides and fold_of(at) in self.unfolded:
            write_sides(self, sides)
        self.differences.append(Difference(at, first, len(self.lines)))

    def fold(self, key: str, left: Sequence[Span], right: Sequence[Span] = ()) -> None:
        """Writes a line with two texts that a click folds and opens."""
        self.folds[len(self.lines)] = key
        self.ends(left, right)

    def part(self, *, is_open: bool) -> None:
        """Writes an empty line before a part that folds, unless the part above is folded, too."""
        if is_open or len(self.lines) - 1 not in self.folds:
            self.blank()

    def open_part(self, folding: Folding, key: str, *, usual: bool) -> bool:
        """Begins a part that folds; returns whether it is open."""
        is_open = folding.is_open(key, usual=usual)
        self.part(is_open=is_open)
        return is_open

    def blank(self) -> None:
        """Writes an empty line, unless there is one or the page is empty."""
        if self.lines and not self.lines.ends_empty:
            self.lines.append([])

    def more(self, count: int, indent: int = 2) -> None:
        """Writes how many more there are, if any."""
        if count > 0:
            self.row((f"{' ' * indent}and {show_number(count)} more", "muted"))

    def row(self, *spans: Span) -> None:
        """Writes a line, cut where it is too long."""
        self._add(cut(list(spans), self.width), spans)

    def _add(self, line: Line, full: Sequence[Span]) -> None:
        """Adds a line, and stores the full text of a cut one."""
        text = plain_text(full).strip()
        if text not in plain_text(line):
            self.full_texts[len(self.lines)] = text
        self.lines.append(line)

    def section(self, *title: Span) -> None:
        """Writes a label and a thin rule on one line, below an empty one."""
        self.blank()
        self.row(*title, (f" {EMPTY_BAR * max(0, self.width - cells(title) - 1)}", "line"))

    def ends(self, left: Sequence[Span], right: Sequence[Span]) -> None:
        """Writes a line with two texts; the left one is cut, the right one dropped if there is no room."""
        ending = [*right, (" ", "")] if right else []
        self._add(join_ends(left, ending, self.width, least=min(self.width, _MIN_LEFT_WIDTH)), left)

    def text(self, spans: Sequence[Span], first: Sequence[Span] = ()) -> None:
        """Writes a wrapped text behind `first`, or below it where that leaves too little room."""
        if cells(first) > self.width // 2:
            self.hanging([*first, *spans], 4)
            return
        self.lines += wrap_behind(first, spans, self.width)

    def hanging(self, spans: Sequence[Span], indent: int) -> None:
        """Writes a wrapped text whose continuation lines start behind `indent` cells."""
        for number, line in enumerate(wrap(spans, max(8, self.width - indent), extra_lead=indent)):
            self.lines.append(line if number == 0 else [(" " * indent, ""), *line])

    def block(self, spans: Sequence[Span], indent: int) -> None:
        """Writes a wrapped text behind `indent` cells."""
        self.text(spans, [(" " * indent, "")])

    def labelled(self, label: str, spans: Sequence[Span], role: str = "muted") -> None:
        """Writes a text behind a label in the column that all labels share."""
        self.text(spans, [("  " + pad(label, LABEL_WIDTH), role)])


_MAX_PROBLEMS = 200
_MAX_TRACEBACK = 400


def write_problems(page: Page, problems: Sequence[Problem], path: Path) -> None:
    """Writes every problem with its place; with the file where it is another than the page's own."""
    for problem in problems[:_MAX_PROBLEMS]:
        grave = problem.severity is Severity.ERROR
        mark = ("  ! ", "error") if grave else ("  · ", "warning")
        page.text([(visible(problem.message), "")], [mark])
        place = [f"line {problem.line}"] if problem.line else []
        place += [visible(format_path(problem.path))] if problem.path else []
        if problem.file and Path(problem.file) != path:
            place.insert(0, visible(problem.file))
        if place:
            page.block([(", ".join(place), "muted")], 4)
    if len(problems) > _MAX_PROBLEMS:
        more = show_number(len(problems) - _MAX_PROBLEMS)
        page.row((f"    and {more} more: `evaltui lint` shows them all", "muted"))


def write_sentences(page: Page, sentences: Sequence[str]) -> None:
    """Writes sentences, one per line."""
    for sentence in sentences:
        page.text([(visible(sentence), "")], [("  · ", "warning")])


def write_error(
    page: Page, error: ErrorInfo, folding: Folding = OPEN_FOLDING, *, is_told: bool = False
) -> None:
    """Writes an error and its place in the user's code, without the first line and the place where they are
    shown above; then the traceback, which may be folded."""
    text = error.text.partition("\n")[2] if is_told else error.text
    if text.strip():
        page.block([(visible_block(text.rstrip("\n")), "error")], 2)
    if error.where and not is_told:
        page.block([("at ", "muted"), (visible(error.where), "bold")], 2)
    if error.traceback.strip() in ("", error.text.strip()):
        return
    page.blank()
    trace = error.traceback.rstrip("\n").split("\n")
    is_open = folding.is_open("traceback", usual=False)
    if folding is not OPEN_FOLDING:
        frames = sum(line.lstrip().startswith('File "') for line in trace)
        head: Line = [fold_mark(is_open), ("Traceback", "bold")]
        page.fold("traceback", head, [(counted(frames, "frame"), "muted")])
    if not is_open:
        return
    if len(trace) > _MAX_TRACEBACK:
        page.row((f"  … {counted(len(trace) - _MAX_TRACEBACK, 'line')} above left out", "muted"))
        trace = trace[-_MAX_TRACEBACK:]
    write_code(page, "\n".join(trace), "pytb")


def write_json(page: Page, value: Any, indent: int = 2) -> None:
    """Writes a value as JSON, like `write_code`."""
    write_code(page, json.dumps(value, indent=2, ensure_ascii=False, default=repr), "json", indent)


def write_code(page: Page, text: str, lexer: str, indent: int = 2) -> None:
    """Writes code behind `indent` cells; continuation lines are indented once more."""
    for line in code_lines(text, lexer):
        above = len(page.lines)
        first = line[0][0] if line else ""
        margin = indent + len(first) - len(first.lstrip(" "))
        page.hanging([(" " * indent, ""), *line], min(margin + 2, page.width // 2))
        if lexer == "pytb":
            places = frames_of(plain_text(line))
            page.frames += [Frame(place, above, len(page.lines)) for place in places]


def fold_of(at: DifferenceAt) -> str:
    """The fold key of a difference."""
    return f"difference {at}"


def write_sides(page: Page, sides: Mapping[str, Any]) -> None:
    """Writes both sides of a difference in full, with the differing words tinted."""
    texts = {side: _side_text(value) for side, value in sides.items()}
    if len(texts) > 1:
        texts = dict(zip(texts, told_apart(*texts.values()), strict=True))
    parts = diff_words(texts.get("expected", ""), texts.get("actual", "")) if len(texts) > 1 else ()
    kinds = type_names(*sides.values()) if len(sides) == 2 else None
    for number, (side, text) in enumerate(texts.items()):
        page.row((f"      {side}", "muted"), (f"  {kinds[number]}" if kinds else "", "faint"))
        lexer = "markdown" if isinstance(sides[side], str) and "\n" in text else "json"
        spans: Line = [span for line in code_lines(text, lexer) for span in (*line, ("\n", ""))][:-1]
        place = 0
        own, tint = ("removed", "exp-hi") if side == "expected" else ("added", "act-hi")
        for op, part in parts:
            if op == own:
                spans = with_role(tint, spans, place, place + len(part))
            place += len(part) if op in ("same", own) else 0
        page.block(spans, 8)


def _side_text(value: Any) -> str:
    """The text of a side: JSON; a string of several lines without quotes."""
    if isinstance(value, str) and "\n" in value.strip():
        return visible_block(value)
    return visible_block(json.dumps(value, indent=2, ensure_ascii=False, default=repr))


class PageView(ScrolledLines, can_focus=True, inherit_bindings=False):
    """A widget that writes a page and draws it."""

    widest = MAX_WIDTH
    """The maximum cells of a line of the page."""
    indent = " "
    """The cells before each line."""
    free = 1
    """Cells that stay free at the right of each line."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.page = Page(80)
        """The shown page."""

    @abstractmethod
    def write(self, page: Page) -> object: ...

    def write_page(self) -> None:
        """Writes the page anew, after a change of what it tells."""
        page = self._empty_page()
        self.write(page)
        # Only a page that is whole is drawn.
        self.page = page
        self.lines_changed(len(page.lines))

    def _empty_page(self) -> Page:
        return Page(self.size.width - len(self.indent) - self.free, self.widest)

    def line(self, number: int) -> Line:
        return [(self.indent, ""), *self.page.lines[number]]

    def full_text(self, number: int) -> str:
        return self.page.full_texts.get(number) or super().full_text(number)


class PageLines(PageView, inherit_bindings=False):
    """A page written by a function, again for every width."""

    def __init__(
        self,
        write: Callable[[Page], object],
        *,
        can_focus: bool = True,
        indent: int = 1,
        free: int | None = None,
        widest: int = MAX_WIDTH,
        id: str | None = None,
    ) -> None:
        """`free` cells stay free at the right of each line; two besides the indent unless it is given."""
        super().__init__(id=id)
        self.can_focus = can_focus
        self.indent = " " * indent
        self.free = 2 - indent if free is None else free
        self.widest = widest
        self._write = write

    def write(self, page: Page) -> object:
        return self._write(page)

    def show(self, write: Callable[[Page], object]) -> None:
        """Shows another page from its start."""
        self._write = write
        self.write_page()
        self.scroll_home(animate=False)

    def on_resize(self) -> None:
        if not self.page.lines or self.page.width != self._empty_page().width:
            self.write_page()
