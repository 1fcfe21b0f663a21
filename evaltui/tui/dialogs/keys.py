"""Dialogs for keys and the guide: the keys of a pane, guide pages, and jumps to panes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Offset

from evaltui.project import guide
from evaltui.project.guide import search
from evaltui.text.keys import key_of, keys_of
from evaltui.text.lines import Line, cells, cut, pad
from evaltui.text.markdown import markdown_lines
from evaltui.text.outcomes import COUNTED_STATUSES, NOT_RUN, WORDS, glyph
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.dialogs.details import DetailsScreen
from evaltui.tui.dialogs.finding import SearchScreen, has_words
from evaltui.tui.dialogs.prompt import CANCEL, Hint
from evaltui.tui.widgets.lines import OneLine
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.actions import (
    ACTIONS,
    SUBJECTS,
    Action,
    RefusedById,
    Scope,
    actions_in,
    chain_of,
    usable_hints,
)

_MAX_FIRST = 10
_KEYS_WIDTH = 14
_TITLE_WIDTH = 26
_UNAVAILABLE, _ELSEWHERE, _GUIDE = "Unavailable here", "Elsewhere", "Guide"
_ALWAYS_LISTED = frozenset(("help", "guide", "quit"))


class HelpEntry(NamedTuple):
    """An action, or a place in the guide."""

    section: str
    name: str
    """The title of the action, topic or section."""
    about: str
    """Its help; for a refused action why, for an action of other panes their name."""
    opens: Action | tuple[guide.Topic, int]
    """The action, or a topic with a line of its text, from 0."""

    @property
    def keys(self) -> str:
        return keys_of(self.opens.id) if isinstance(self.opens, Action) else ""


def keys_here(scope: Scope, refuses: RefusedById) -> list[HelpEntry]:
    """The actions of a pane, at most ten useful ones first, then by subject; then the refused ones, and those
    of other panes. The global actions are included if the keys of the pane are."""
    usable_here = [*actions_in(*chain_of(scope))]
    refused = {action.id: visible(why) for action in usable_here if (why := refuses(action.id))}
    usable = [action for action in usable_here if action.id not in refused]
    own = [action for action in usable if scope in action.where and not action.is_move]
    ranked = usable_hints(scope, refuses)
    useful = list(dict.fromkeys([*(action for action in ranked if action in own), *ranked, *own]))
    useful = [action for action in useful if action.id not in _ALWAYS_LISTED][:_MAX_FIRST]
    sections = {f"In {scope.label}": useful}
    for name, actions in SUBJECTS.items():
        sections[name] = [action for action in actions if action in usable and action not in useful]
    sections[_UNAVAILABLE] = [action for action in usable_here if action.id in refused]
    sections[_ELSEWHERE] = [action for action in ACTIONS if action not in usable_here]
    return [
        HelpEntry(
            section,
            action.title,
            action.place if section == _ELSEWHERE else refused.get(action.id, action.help),
            action,
        )
        for section, actions in sections.items()
        for action in actions
    ]


def matching_keys(entries: Sequence[HelpEntry], query: str) -> list[HelpEntry]:
    """The actions with all words of the query in their title, help or keys.

    The action of a typed key comes first, then the others by title, then unavailable ones, then those of
    other panes.
    """
    matching = [entry for entry in entries if has_words(query, f"{entry.name} {entry.about} {entry.keys}")]
    return sorted(
        matching,
        key=lambda entry: (
            entry.section == _ELSEWHERE,
            query not in entry.keys.split(),
            entry.section == _UNAVAILABLE,
            not has_words(query, entry.name),
        ),
    )


# Of a search among the keys.
_MAX_PAGES = 5


class HelpScreen(SearchScreen[str, HelpEntry]):
    """The keys of a pane and the pages of the guide; returns the chosen action. The keys of the main screen
    are off until it is closed."""

    box = "#help"
    placeholder = "search keys and topics"
    clicks_to_choose = 1
    take_word = "run"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.PROMPT), *bindings(Scope.MAIN, "guide")]

    def __init__(self, scope: Scope, refuses: RefusedById, *, pages: bool = False) -> None:
        """`pages` lists the topics of the guide where nothing is typed."""
        super().__init__()
        self.title_text = _GUIDE if pages else f"Keys for {scope.label}"
        self._scope = scope
        self._keys = keys_here(scope, refuses)
        self._pages = pages

    def hints(self) -> list[Hint]:
        return [Hint("confirm", self.take_word), Hint("guide"), CANCEL]

    def find(self, query: str) -> list[HelpEntry]:
        if query:
            matching = matching_keys(self._keys, query)
            of_others = sum(entry.section == _ELSEWHERE for entry in matching)
            here = len(matching) - of_others
            return [*matching[:here], *self._sections(query), *matching[here:]]
        if not self._pages:
            return [entry for entry in self._keys if entry.section not in (_UNAVAILABLE, _ELSEWHERE)]
        topics = sorted(guide.topics(), key=lambda topic: topic.name != self._scope.topic)
        return [HelpEntry("", topic.title, topic.summary, (topic, 0)) for topic in topics]

    def _sections(self, query: str) -> Iterator[HelpEntry]:
        """The sections of the guide that match a query, the best first."""
        for match in search(query)[: None if self._pages else _MAX_PAGES]:
            topic, section = match.section.topic, match.section
            yield HelpEntry(_GUIDE, section.title, match.first_line or topic.title, (topic, section.line))

    def match_line(self, match: HelpEntry, width: int) -> Line:
        if not isinstance(match.opens, Action):
            return cut([(f" {pad(match.name, _TITLE_WIDTH)}  ", ""), (match.about, "muted")], width)
        is_faint = match.section in (_UNAVAILABLE, _ELSEWHERE)
        line: Line = [
            (f" {pad(match.keys, _KEYS_WIDTH)}", "faint" if is_faint else "bold accent"),
            (pad(match.name, _TITLE_WIDTH), "faint" if is_faint else ""),
            (f"  {match.about}", "faint" if is_faint else "muted"),
        ]
        return cut(line, width)

    def section_of(self, match: HelpEntry) -> str:
        is_shown = not self.query_text or match.section in (_GUIDE, _ELSEWHERE)
        return match.section if is_shown else ""

    def about_current(self, width: int) -> Line:
        """The glyphs of the outcomes."""
        legend: Line = []
        for status in (*COUNTED_STATUSES, NOT_RUN):
            legend += [glyph(status), (f" {WORDS[status]}  ", "muted")]
        return cut(legend, width)

    def choose(self, match: HelpEntry) -> None:
        if not isinstance(match.opens, Action):
            self.app.push_screen(GuidePage(*match.opens))
        elif match.section != _ELSEWHERE:
            self.dismiss(match.opens.id)

    def action_guide(self) -> None:
        self.app.push_screen(GuidePage(guide.topic(self._scope.topic)))


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

    def action_close(self) -> None:
        self.dismiss(None)


class JumpLabel(OneLine):
    def __init__(self, jump: Jump) -> None:
        super().__init__()
        self.jump = jump
        self.styles.width = self.width

    @property
    def width(self) -> int:
        """In cells."""
        return cells(self.line(0))

    def line(self, width: int) -> Line:
        return [(f" {self.jump.key} ", "chip")]

    def on_click(self) -> None:
        self.screen.dismiss(self.jump.target)
