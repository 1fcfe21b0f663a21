"""The palette: actions, cases, sets, settings and pages of the guide; and the lists behind its settings."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from textual import on
from textual.fuzzy import Matcher

from evaltui.project.agent_address import AgentAddress
from evaltui.project.agent_source import AgentFacts, agent_facts
from evaltui.project.folders import short_path
from evaltui.project.guide import Section, search
from evaltui.project.interpreters import OWN, InterpreterError, find_interpreter, noted_version
from evaltui.project.run_settings import SettingsError, run_settings
from evaltui.project.settings import recent_agents
from evaltui.project.workspace import open_workspace
from evaltui.runs.listing import newest_run
from evaltui.runs.run_kind import RunKind
from evaltui.runs.store import RunStore
from evaltui.text.figures import UNKNOWN, counted, short_list, show_moment
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, join_ends, pad
from evaltui.text.outcomes import counts_line, glyph
from evaltui.text.values import cut, visible
from evaltui.tui.action_screen import ActionScreen, start_work
from evaltui.tui.dialogs.finding import PreviewScreen, SearchScreen, has_words
from evaltui.tui.dialogs.keys import GuidePage
from evaltui.tui.runs.page import write_run_preview
from evaltui.tui.theme import THEMES
from evaltui.tui.widgets.lines import CursorLines
from evaltui.tui.widgets.writer import LABEL_WIDTH, Page
from evaltui.views.run import ListedRun, run_line, run_table
from evaltui.workbench.actions import Action, Scope, actions_in
from evaltui.workbench.messages import RunsRead
from evaltui.workbench.runs.run_list import RunList
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

# Nobody reads further.
_MAX_CASES = 60
_MAX_TEXT = 60
_MAX_PAGES = 5
# Scores: every word is in the title, in the help, or in the name of a case; scattered letters have less.
_TITLE_SCORE, _NAME_SCORE, _HELP_SCORE, _GUIDE_SCORE = 300.0, 200.0, 150.0, 100.0
_CASES_SECTION, _SETTINGS_SECTION, _GUIDE_SECTION, _UNAVAILABLE_SECTION = (
    "Cases and sets",
    "Settings",
    "Guide",
    "Unavailable",
)


class Entry(NamedTuple):
    """An entry of the palette."""

    score: float
    """The match score; higher is better."""
    section: str
    title: Line
    right: str
    """Its key, or a remark."""
    about: str
    """One line of help."""
    choose: Callable[[], object]
    """Called when it is chosen."""


class Setting(NamedTuple):
    """A palette entry that opens a second page."""

    title: str
    about: str
    choose: Callable[[], object]


class PaletteScreen(SearchScreen[Callable[[], object], Entry]):
    """The palette dialog; returns the chosen action.

    Actions are those of `scope` and the global ones, run on `below`, the screen under it; `reveal` selects a
    case or a set.
    """

    box = "#palette"
    title_text = "Palette"
    placeholder = "type an action, a case, a set or a question"
    clicks_to_choose = 1
    take_word = "run"

    def __init__(
        self,
        workbench: Workbench,
        below: ActionScreen[None],
        scope: Scope,
        reveal: Callable[[Selection], None],
        settings: Sequence[Setting],
    ) -> None:
        super().__init__()
        self._workbench = workbench
        self._below = below
        self._scope = scope
        self._reveal = reveal
        self._settings = settings

    def match_line(self, match: Entry, width: int) -> Line:
        return join_ends([(" ", ""), *match.title], [(match.right, "bold accent"), (" ", "")], width)

    def section_of(self, match: Entry) -> str:
        return match.section

    def about(self, match: Entry) -> str:
        return match.about

    def result_of(self, match: Entry) -> Callable[[], object]:
        return match.choose

    def find(self, query: str) -> list[Entry]:
        """The matches of a query, by section, the section with the best match first.

        An empty query lists the usable actions.
        """
        entries = [
            *self._actions(query),
            *self._cases(query),
            *self._second_pages(query),
            *self._pages(query),
        ]
        best: dict[str, float] = {}
        for entry in entries:
            best[entry.section] = max(entry.score, best.get(entry.section, 0.0))
        order = list(best)
        return sorted(
            entries, key=lambda entry: (-best[entry.section], order.index(entry.section), -entry.score)
        )

    def _actions(self, query: str) -> Iterator[Entry]:
        pane = f"In {self._scope.label}"
        here = [action for action in actions_in(self._scope) if not action.is_move]
        everywhere = [action for action in actions_in(Scope.MAIN) if action not in here]
        # As in the footer: the most useful first.
        here.sort(key=lambda action: (action.rank_in(self._scope) is None, action.rank_in(self._scope) or 0))
        for section, actions in ((pane, here), ("Everywhere", everywhere)):
            for action in actions:
                if action.id != "palette" and (score := _score(query, action.title, action.help)) > 0:
                    yield from self._action(section, action, score, typed=bool(query))

    def _action(self, section: str, action: Action, score: float, *, typed: bool) -> Iterator[Entry]:
        key = key_of(action.id)
        do = partial(self._below.run_action, action.id)
        if reason := self._below.refusal(action.id):
            if typed:
                yield Entry(
                    0.1,
                    _UNAVAILABLE_SECTION,
                    [(action.title, "faint"), (f"  {visible(reason)}", "faint")],
                    key,
                    action.help,
                    do,
                )
        else:
            yield Entry(score, section, [(action.title, "")], key, action.help, do)

    def _cases(self, query: str) -> Iterator[Entry]:
        """The matching sets and cases: every word of the query must be in ids or first texts."""
        for selection, title, about in islice(self._matching(query) if query else (), _MAX_CASES):
            yield Entry(_NAME_SCORE, _CASES_SECTION, title, "", about, partial(self._reveal, selection))

    def _matching(self, query: str) -> Iterator[tuple[Selection, Line, str]]:
        for eval_set in self._workbench.sets.listed:
            set_id = visible(eval_set.eval_set_id)
            if has_words(query, eval_set.eval_set_id):
                about = f"Set of {counted(len(eval_set.cases), 'case')}"
                yield Selection(eval_set.case_path), [("▾ ", "muted"), (set_id, "")], about
            for case in eval_set.cases:
                if has_words(query, f"{case.eval_id}\n{case.outline.first_text}"):
                    first = cut(visible(case.outline.first_text), _MAX_TEXT)
                    selection = Selection(eval_set.case_path, case.eval_id)
                    mark = (
                        glyph(self._workbench.outcomes.status(selection.case)) if selection.case else ("", "")
                    )
                    title: Line = [mark, (f" {visible(case.eval_id)}", ""), (f"  {set_id}", "muted")]
                    yield selection, title, first

    def _second_pages(self, query: str) -> Iterator[Entry]:
        for setting in self._settings:
            if (score := _score(query, setting.title, setting.about)) > 0:
                yield Entry(
                    score, _SETTINGS_SECTION, [(setting.title, "")], "", setting.about, setting.choose
                )

    def _pages(self, query: str) -> Iterator[Entry]:
        """Sections of the guide, below actions and cases with the words in their names."""
        for match in search(query)[:_MAX_PAGES]:
            show = partial(self._show_page, match.section)
            yield Entry(_GUIDE_SCORE, _GUIDE_SECTION, [(match.section.label, "")], "", match.first_line, show)

    def _show_page(self, section: Section) -> None:
        self._below.app.push_screen(GuidePage(section.topic, section.line))


def _score(query: str, title: str, about: str) -> float:
    """The match score: 0 for no match; an empty query matches everything."""
    words = query.casefold().split()
    if not words:
        return 1.0
    if has_words(query, title):
        of_title = title.casefold().rstrip("…").split()
        return _TITLE_SCORE + of_title[0].startswith(words[0]) + (of_title == words)
    if has_words(query, f"{title} {about}"):
        return _HELP_SCORE
    return Matcher(query).match(title)


class SetPreview(NamedTuple):
    """An eval set before validation."""

    eval_set_id: str
    cases: int
    problem: str
    """Why its file is unreadable; "" where it is readable."""


def _agent_line(agent_dir: Path) -> Line:
    facts = agent_facts(agent_dir) if agent_dir.exists() else AgentFacts(problem="No such file or folder")
    if facts.problem:
        return [(f"! {visible(facts.problem)}", "error")]
    return [(visible(" · ".join(filter(None, (facts.framework, facts.model))) or UNKNOWN), "")]


def _python_line(agent_dir: Path) -> Line:
    try:
        interpreter = find_interpreter(agent_dir)
    except (InterpreterError, SettingsError) as error:
        return [(f"! {visible(str(error))}", "error")]
    # An agent that is not open has its Python not started.
    version = sys.version_info[:2] if interpreter == OWN else noted_version(interpreter.path)
    shown = f"Python {'.'.join(map(str, version))}" if version else str(interpreter.path)
    return [(visible(f"{shown} ({interpreter.reason or 'of evaltui'})"), "")]


def _last_run_line(agent_dir: Path) -> Line:
    try:
        store = RunStore.of(agent_dir, run_settings(agent_dir))
        row = newest_run(store, RunKind.of(AgentAddress(agent_dir)))
    except SettingsError:
        row = None
    if row is None:
        return [("No runs yet", "muted")]
    if row.problem:
        return [(f"! {visible(row.problem)}", "error")]
    when = show_moment(row.started, datetime.now(UTC))
    return [(visible(row.title), ""), (f"  {when}  ", "muted"), *counts_line(row.counts)]


def _sets(agent_dir: Path) -> list[SetPreview]:
    return [
        SetPreview(
            eval_set.eval_set_id,
            len(eval_set.cases),
            "" if eval_set.format else "; ".join(problem.message for problem in eval_set.problems[:1]),
        )
        for eval_set in open_workspace(agent_dir).sets
    ]


# What is read of an agent without importing it, by label; the sets after the first one.
_READERS = {"agent": _agent_line, "python": _python_line, "last run": _last_run_line}
# Fewer are named on one line.
_MIN_SETS = 3
_READING_LINE: Line = [("Reading…", "faint")]


@dataclass
class AgentPreview:
    """The parts of an agent that are read so far."""

    lines: dict[str, Line] = field(default_factory=dict)
    sets: list[SetPreview] | None = None
    """None while they are not read."""


def _write_sets(page: Page, sets: Sequence[SetPreview], height: int) -> None:
    count = f"{counted(len(sets), 'eval set')}, {counted(sum(eval_set.cases for eval_set in sets), 'case')}"
    # A heading and an empty line stand above them.
    if height - len(page.lines) - 2 < min(len(sets), _MIN_SETS):
        names = short_list([f"{eval_set.eval_set_id}{' !' if eval_set.problem else ''}" for eval_set in sets])
        page.row(
            (f"  {pad('eval sets', LABEL_WIDTH)}", "muted"), (count, ""), (f"  {visible(names)}", "muted")
        )
        return
    page.section((count, "bold"))
    room = height - len(page.lines)
    shown = sets if len(sets) <= room else sets[: room - 1]
    for eval_set in shown:
        right: Line = [("!", "error")] if eval_set.problem else [(counted(eval_set.cases, "case"), "muted")]
        why: Line = [(f"  {visible(eval_set.problem)}", "error")] if eval_set.problem else []
        page.ends([(f"  {visible(eval_set.eval_set_id)}", ""), *why], right)
    page.more(len(sets) - len(shown))


class ThemeScreen(SearchScreen[str, str]):
    """A dialog for the theme, previewed on the screen below; returns the choice."""

    box = "#themes"
    title_text = "Theme"
    placeholder = "type a name"

    def __init__(self, before: str) -> None:
        super().__init__()
        self._before = before

    def find(self, query: str) -> list[str]:
        own = [theme.name for theme in THEMES]
        others = sorted(name for name in self.app.available_themes if name not in own)
        names = [name for name in (*own, *others) if has_words(query, name)]
        return names if query else sorted(names, key=lambda name: name != self._before)

    def match_line(self, match: str, width: int) -> Line:
        return join_ends(
            [(" ", ""), (match, "")], [("current ", "muted")] if match == self._before else [], width
        )

    def result_of(self, match: str) -> str:
        return match

    @on(CursorLines.Moved)
    def preview(self) -> None:
        if (name := self.current) is not None:
            self.app.theme = name

    def action_close(self) -> None:
        self.app.theme = self._before
        super().action_close()


class AgentScreen(PreviewScreen[Path, Path]):
    """A dialog for an agent that was open before; returns its folder."""

    box = "#agents-before"
    title_text = "Open agent"
    placeholder = "type a name"
    nothing = "No other agent was open before"
    take_word = "open"

    def __init__(self, current: Path) -> None:
        super().__init__()
        self._others = [path for path in recent_agents() if path != current.resolve()]
        self._previews: dict[Path, AgentPreview] = {}

    def find(self, query: str) -> list[Path]:
        return [path for path in self._others if has_words(query, str(path))]

    def match_line(self, match: Path, width: int) -> Line:
        return [(f" {visible(match.name)}", "bold"), (f"  {visible(str(match.parent))}", "muted")]

    def write_preview(self, page: Page, match: Path, height: int) -> None:
        if match not in self._previews:
            self._previews[match] = AgentPreview()
            start_work(self, self._read, match, self._previews[match])
        preview = self._previews[match]
        page.row((visible(match.name), "bold"))
        folder = match.parent if match.is_file() else match
        page.labelled("folder", [(visible(short_path(folder)), "")])
        for label in _READERS:
            page.labelled(label, preview.lines.get(label, _READING_LINE))
        if preview.sets:
            _write_sets(page, preview.sets, height)
        else:
            page.labelled("eval sets", _READING_LINE if preview.sets is None else [("No eval sets", "muted")])

    async def _read(self, path: Path, preview: AgentPreview) -> None:
        for label, read in _READERS.items():
            preview.lines[label] = await asyncio.to_thread(read, path)
            if preview.sets is None:
                preview.sets = await asyncio.to_thread(_sets, path)
            if self.is_here:
                self.draw_about()

    def result_of(self, match: Path) -> Path:
        return match


class PickRunScreen(PreviewScreen[tuple[Path, str], Path]):
    """A dialog for a stored run; returns the run, and its title."""

    box = "#pick-run"
    title_text = "Open run"
    placeholder = "type a name or a day"
    nothing = "No runs yet"
    take_word = "open"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._runs = RunList(lambda: workbench.agent.store, workbench.messages)

    def on_mount(self) -> None:
        self.subscribe_to(self._workbench.messages, RunsRead)
        start_work(self, self._runs.load, group="load")

    async def on_unmount(self) -> None:
        await self._runs.close()

    def follow(self) -> None:
        self.search_again()
        self.draw_about()

    def find(self, query: str) -> list[Path]:
        return [path for path in self._runs.paths or () if has_words(query, self._title(path))]

    def _title(self, path: Path) -> str:
        row = self._runs.row(path)
        return row.title if row else path.name

    def match_line(self, match: Path, width: int) -> Line:
        row = self._runs.row(match)
        if row is None:
            return [(f" {visible(match.name)}", "muted")]
        run = ListedRun(row, datetime.now(UTC))
        return [(" ", ""), *run_line(run, run_table([run], width - 2))]

    def write_preview(self, page: Page, match: Path, height: int) -> None:
        row = self._runs.row(match)
        if row is None:
            page.row(("Reading the run…", "muted"))
        else:
            write_run_preview(page, row, self._runs.details_of(row), datetime.now(UTC), height)

    def result_of(self, match: Path) -> tuple[Path, str]:
        return match, self._title(match)
