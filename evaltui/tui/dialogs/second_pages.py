"""Second pages of the palette: a theme, another agent, a kept run, each with a preview of the current one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import ScreenResultType

from evaltui.files.settings import recent_agents
from evaltui.runs.store import RunStore
from evaltui.text.lines import Line, both_ends
from evaltui.text.values import visible
from evaltui.tui.dialogs.finding import Found, SearchScreen, has_words
from evaltui.tui.runs.page import write_run_preview
from evaltui.tui.start.agent_preview import write_agent
from evaltui.tui.theme import THEMES
from evaltui.tui.widgets.lines import CursorLines
from evaltui.tui.widgets.page_lines import PageLines
from evaltui.tui.widgets.writer import Page
from evaltui.views.run import ListedRun, run_line, run_table
from evaltui.workbench.agent.agent_preview import AgentPreview, read_preview
from evaltui.workbench.runs.run_list import RunList

# The width from which on a preview stands beside its list.
_BESIDE = 140


class ThemeScreen(SearchScreen[str, str]):
    """Returns the theme that was chosen; the current row is previewed on everything below."""

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

    def found_line(self, found: str, width: int) -> Line:
        return both_ends(
            [(" ", ""), (found, "")], [("current ", "muted")] if found == self._before else [], width
        )

    def result_of(self, found: str) -> str:
        return found

    @on(CursorLines.Moved)
    def preview(self) -> None:
        if (name := self.current) is not None:
            self.app.theme = name

    def action_close(self) -> None:
        self.app.theme = self._before
        super().action_close()


class PreviewScreen(SearchScreen[ScreenResultType, Found], Generic[ScreenResultType, Found]):
    """Shows beside its list, or below it, what the current one is."""

    @abstractmethod
    def write_preview(self, page: Page, found: Found, height: int) -> None:
        """Writes what one of those that were found is, in so many lines."""

    def shown(self) -> ComposeResult:
        with Container(classes="previewed"):
            yield self.found_lines()
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
    """Returns the folder of an agent that was open before."""

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

    def found_line(self, found: Path, width: int) -> Line:
        return [(f" {visible(found.name)}", "bold"), (f"  {visible(str(found.parent))}", "muted")]

    def write_preview(self, page: Page, found: Path, height: int) -> None:
        if found not in self._previews:
            self._previews[found] = AgentPreview()
            self.run_worker(self._read(found))
        write_agent(page, found, self._previews[found], datetime.now(UTC), height)

    async def _read(self, path: Path) -> None:
        async for preview in read_preview(path):
            self._previews[path] = preview
            if self.is_here:
                self.draw_about()

    def result_of(self, found: Path) -> Path:
        return found


class PickRunScreen(PreviewScreen[tuple[Path, str], Path]):
    """Returns a kept run, and what it is called."""

    box = "#pick-run"
    title_text = "Open run"
    placeholder = "type a name or a day"
    nothing = "No runs yet"
    take_word = "open"

    def __init__(self, store: Callable[[], RunStore]) -> None:
        super().__init__()
        self._runs = RunList(store, self._follow)

    def on_mount(self) -> None:
        self.run_worker(self._runs.load(), group="load", exclusive=True)

    async def on_unmount(self) -> None:
        await self._runs.close()

    def _follow(self) -> None:
        if self.is_here:
            self.search_again()
            self.draw_about()

    def find(self, query: str) -> list[Path]:
        return [path for path in self._runs.paths or () if has_words(query, self._title(path))]

    def _title(self, path: Path) -> str:
        row = self._runs.row(path)
        return row.title if row else path.name

    def found_line(self, found: Path, width: int) -> Line:
        row = self._runs.row(found)
        if row is None:
            return [(f" {visible(found.name)}", "muted")]
        run = ListedRun(row, datetime.now(UTC))
        return [(" ", ""), *run_line(run, run_table([run], width - 2))]

    def write_preview(self, page: Page, found: Path, height: int) -> None:
        row = self._runs.row(found)
        if row is None:
            page.row(("Reading the run…", "muted"))
        else:
            write_run_preview(page, row, self._runs.failures_of(row), datetime.now(UTC), height)

    def result_of(self, found: Path) -> tuple[Path, str]:
        return found, self._title(found)
