"""Second pages of the palette: a theme, another agent, a stored run, with a preview of the current choice."""

from __future__ import annotations

import asyncio
import sys
from abc import abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import ScreenResultType

from evaltui.project.agent_address import AgentAddress
from evaltui.project.agent_source import AgentFacts, agent_facts
from evaltui.project.folders import short_path
from evaltui.project.interpreters import OWN, InterpreterError, find_interpreter, noted_version
from evaltui.project.run_settings import SettingsError, run_settings
from evaltui.project.settings import recent_agents
from evaltui.project.workspace import open_workspace
from evaltui.runs.listing import RunRow, newest_run
from evaltui.runs.run_header import RunKind
from evaltui.runs.store import RunStore
from evaltui.text.figures import UNKNOWN, counted, show_moment, show_number, some_of
from evaltui.text.lines import Line, both_ends, pad
from evaltui.text.outcomes import counts
from evaltui.text.values import visible
from evaltui.tui.dialogs.finding import Match, SearchScreen, has_words
from evaltui.tui.runs.page import write_run_preview
from evaltui.tui.theme import THEMES
from evaltui.tui.widgets.lines import CursorLines
from evaltui.tui.widgets.writer import LABEL, Page, PageLines
from evaltui.views.run import ListedRun, run_line, run_table
from evaltui.workbench.messages import RunsRead
from evaltui.workbench.runs.run_list import RunList
from evaltui.workbench.workbench import Workbench


class SetPreview(NamedTuple):
    """An eval set before validation."""

    eval_set_id: str
    cases: int
    problem: str
    """Why its file is unreadable; "" where it is readable."""


@dataclass(frozen=True)
class AgentPreview:
    """The preview of an agent; None for parts that are not read yet."""

    facts: AgentFacts | None = None
    sets: tuple[SetPreview, ...] | None = None
    python: str | None = None
    """The Python, such as `Python 3.12 (.venv)`; its path where no file has its version."""
    python_problem: str = ""
    """Why no Python was found for it; "" where one was."""
    last_run: RunRow | None = None
    """None also for no run."""
    is_complete: bool = False


async def read_preview(agent_dir: Path) -> AsyncIterator[AgentPreview]:
    """Previews of an agent, each with more details; the agent is not imported."""
    preview = AgentPreview()
    for read in (_with_source, _with_sets, _with_python, _with_last_run):
        preview = await asyncio.to_thread(read, preview, agent_dir)
        yield preview


def _with_source(preview: AgentPreview, agent_dir: Path) -> AgentPreview:
    facts = agent_facts(agent_dir) if agent_dir.exists() else AgentFacts(problem="No such file or folder")
    return replace(preview, facts=facts)


def _with_sets(preview: AgentPreview, agent_dir: Path) -> AgentPreview:
    sets = (
        SetPreview(
            eval_set.eval_set_id,
            len(eval_set.cases),
            "" if eval_set.format else "; ".join(problem.message for problem in eval_set.problems[:1]),
        )
        for eval_set in open_workspace(agent_dir).sets
    )
    return replace(preview, sets=tuple(sets))


def _with_python(preview: AgentPreview, agent_dir: Path) -> AgentPreview:
    try:
        interpreter = find_interpreter(agent_dir)
    except (InterpreterError, SettingsError) as error:
        return replace(preview, python_problem=str(error))
    # An agent that is not open has its Python not started.
    version = sys.version_info[:2] if interpreter == OWN else noted_version(interpreter.path)
    shown = f"Python {'.'.join(map(str, version))}" if version else str(interpreter.path)
    return replace(preview, python=f"{shown} ({interpreter.reason or 'of evaltui'})")


def _with_last_run(preview: AgentPreview, agent_dir: Path) -> AgentPreview:
    try:
        store = RunStore.of(agent_dir, run_settings(agent_dir))
    except SettingsError:
        return replace(preview, is_complete=True)
    return replace(preview, last_run=newest_run(store, RunKind.of(AgentAddress(agent_dir))), is_complete=True)


# Fewer are named on one line.
_LEAST_SETS = 3
_READING: Line = [("Reading…", "faint")]


def write_agent(page: Page, path: Path, preview: AgentPreview, now: datetime, height: int) -> None:
    """Writes an agent in a number of lines: its folder, framework, model and Python, its last result, its
    sets."""
    page.row((visible(path.name), "bold"))
    page.labelled("folder", [(visible(short_path(path.parent if path.is_file() else path)), "")])
    page.labelled("agent", _agent(preview))
    page.labelled("python", _python(preview))
    page.labelled("last run", _last_run(preview.last_run, now) if preview.is_complete else _READING)
    if preview.sets is None:
        page.labelled("eval sets", _READING)
    elif not preview.sets:
        page.labelled("eval sets", [("No eval sets", "muted")])
    else:
        _write_sets(page, preview.sets, height)


def _agent(preview: AgentPreview) -> Line:
    facts = preview.facts
    if facts is None:
        return _READING
    if facts.problem:
        return [(f"! {visible(facts.problem)}", "error")]
    return [(visible(" · ".join(filter(None, (facts.framework, facts.model))) or UNKNOWN), "")]


def _python(preview: AgentPreview) -> Line:
    if preview.python_problem:
        return [(f"! {visible(preview.python_problem)}", "error")]
    return _READING if preview.python is None else [(visible(preview.python), "")]


def _last_run(row: RunRow | None, now: datetime) -> Line:
    if row is None:
        return [("No runs yet", "muted")]
    if row.problem:
        return [(f"! {visible(row.problem)}", "error")]
    return [
        (visible(row.title), ""),
        (f"  {show_moment(row.started, now)}  ", "muted"),
        *counts(row.totals.counts),
    ]


def _write_sets(page: Page, sets: tuple[SetPreview, ...], height: int) -> None:
    count = f"{counted(len(sets), 'eval set')}, {counted(sum(eval_set.cases for eval_set in sets), 'case')}"
    # A heading and an empty line stand above them.
    if height - len(page.lines) - 2 < min(len(sets), _LEAST_SETS):
        names = some_of([f"{eval_set.eval_set_id}{' !' if eval_set.problem else ''}" for eval_set in sets])
        page.row((f"  {pad('eval sets', LABEL)}", "muted"), (count, ""), (f"  {visible(names)}", "muted"))
        return
    page.section((count, "bold"))
    room = height - len(page.lines)
    shown = sets if len(sets) <= room else sets[: room - 1]
    for eval_set in shown:
        right: Line = [("!", "error")] if eval_set.problem else [(counted(eval_set.cases, "case"), "muted")]
        why: Line = [(f"  {visible(eval_set.problem)}", "error")] if eval_set.problem else []
        page.ends([(f"  {visible(eval_set.eval_set_id)}", ""), *why], right)
    if len(shown) < len(sets):
        page.row((f"  and {show_number(len(sets) - len(shown))} more", "muted"))


# The width from which on a preview stands beside its list.
_BESIDE = 140


class ThemeScreen(SearchScreen[str, str]):
    """A dialog for the theme, previewed on the screen below; returns the choice."""

    box = "#themes"
    title_text = "Theme"
    placeholder = "type a name"
    clicks_to_choose = 2

    def __init__(self, before: str) -> None:
        super().__init__()
        self._before = before

    def find(self, query: str) -> list[str]:
        own = [theme.name for theme in THEMES]
        others = sorted(name for name in self.app.available_themes if name not in own)
        names = [name for name in (*own, *others) if has_words(query, name)]
        return names if query else sorted(names, key=lambda name: name != self._before)

    def match_line(self, match: str, width: int) -> Line:
        return both_ends(
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


class PreviewScreen(SearchScreen[ScreenResultType, Match], Generic[ScreenResultType, Match]):
    """A search dialog with a preview of the current match, beside or below the list."""

    @abstractmethod
    def write_preview(self, page: Page, match: Match, height: int) -> None:
        """Writes the preview of a match in a number of lines."""

    def shown(self) -> ComposeResult:
        with Container(classes="previewed"):
            yield self.match_lines()
            yield PageLines(self._write, can_focus=False, indent=0)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= _BESIDE, "-beside")
        # What is as high as its room is written once that is known.
        self.call_after_refresh(self.draw_about)

    def draw_about(self) -> None:
        self.query_one(PageLines).write_page()

    def _write(self, page: Page) -> None:
        if self.current is not None:
            self.write_preview(page, self.current, self.query_one(PageLines).size.height)


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
            self.run_worker(self._read(match))
        write_agent(page, match, self._previews[match], datetime.now(UTC), height)

    async def _read(self, path: Path) -> None:
        async for preview in read_preview(path):
            self._previews[path] = preview
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
        self.run_worker(self._runs.load(), group="load", exclusive=True)

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
            write_run_preview(page, row, self._runs.failures_of(row), datetime.now(UTC), height)

    def result_of(self, match: Path) -> tuple[Path, str]:
        return match, self._title(match)
