"""The screens before the workbench, for a folder with several agents, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from evaltui.documents.files import is_there, typed_path
from evaltui.project.agent_source import AgentFacts, agent_facts
from evaltui.project.folders import short_path
from evaltui.project.run_settings import SettingsError, run_settings
from evaltui.project.settings import recent_agents
from evaltui.project.templates import (
    FRAMEWORKS,
    KINDS,
    StarterKind,
    TemplateError,
    create_starter,
    remark_of,
    starter_files,
    starter_problem,
)
from evaltui.runs.listing import read_row, stored_runs
from evaltui.runs.store import RunStore
from evaltui.text.figures import counted, short_list
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, join_ends, pad
from evaltui.text.outcomes import counts_line
from evaltui.text.values import visible
from evaltui.tui.action_screen import ActionApp, ActionScreen, ask, bindings, start_work
from evaltui.tui.dialogs.prompt import (
    CANCEL,
    Dialog,
    DialogKeys,
    FormScreen,
    Hint,
    PromptScreen,
    QuestionNote,
    dialog_name,
)
from evaltui.tui.widgets.choices import LABEL, ChoiceLine, ChoiceList
from evaltui.tui.widgets.lines import ActionLine, DrawnLine
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.actions import ACTIONS_BY_ID, Scope
from evaltui.workbench.state import READ_ONLY, Opening


class StarterScreen(FormScreen[bool]):
    """Creates the starter and returns whether it did; no file is written before `enter`."""

    box = "#starter"
    AUTO_FOCUS = "#starter-kind"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def compose(self) -> ComposeResult:
        folder: Line = [(visible(str(self._folder.resolve())), "muted")]
        with Dialog(dialog_name("create_starter"), folder, id="starter"):
            yield ChoiceLine("framework", [FRAMEWORKS[kind] for kind in KINDS], id="starter-kind")
            yield PageLines(self._write, can_focus=False, indent=0, id="starter-files")
            yield QuestionNote("A scripted model answers offline. Existing files are never overwritten.")
            yield DialogKeys(
                lambda: [
                    Hint("confirm", "create"),
                    Hint("next_item", "framework", "←→"),
                    CANCEL,
                ]
            )

    def on_mount(self) -> None:
        self._show_refusal()

    def fields(self) -> Iterable[Widget]:
        return [self.query_one(ChoiceLine)]

    @property
    def _kind(self) -> StarterKind:
        return KINDS[self.query_one(ChoiceLine).chosen]

    def _write(self, page: Page) -> None:
        files = starter_files(self._kind)
        width = max(map(len, files))
        for name, text in files.items():
            label = "creates" if not page.lines else ""
            head: Line = [(f"{label:{LABEL}}", "muted"), ("+ ", "success"), (pad(name, width), "bold")]
            page.row(*head, (f"  {remark_of(name, text)}", "muted"))

    @on(ChoiceLine.Changed)
    def _show_refusal(self) -> None:
        self.query_one(PageLines).write_page()
        self.query_one(QuestionNote).show(starter_problem(self._folder, self._kind))

    def action_confirm(self) -> None:
        try:
            create_starter(self._folder, self._kind)
        except TemplateError as error:
            self.query_one(QuestionNote).show(str(error))
        else:
            self.dismiss(True)


_TUI = Path(__file__).parents[1]
_MAX_FOUND = 3
# Actions besides opening a listed agent, with a remark each.
_STARTER_ACTIONS = (
    ("create_starter", "Agent, 3 eval cases, config; runs offline"),
    ("open_demo", "The loop in a minute, in a temporary folder"),
)
_OPEN_FOLDER = ("open_folder", "An agent, or a folder of agents")
_AGENT_FILES = "agent.py, __init__.py or root_agent.yaml with root_agent or app"


class Choice(NamedTuple):
    """A line of the list: an agent to open, or another action."""

    line: Callable[[int], Line]
    """Draws the line in a width."""
    opens: Path | str
    """The path of an agent, or the id of an action."""


class ChooserApp(ActionApp[Opening]):
    """The app before the workbench; returns what the user opens, None for nothing."""

    TITLE = "evaltui"
    CSS_PATH: ClassVar[list[str | PurePath]] = [
        _TUI / "app.tcss",
        _TUI / "widgets" / "fields.tcss",
        _TUI / "dialogs" / "prompt.tcss",
        *(_TUI / "start" / f"{name}.tcss" for name in ("chooser", "starter")),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, folder: Path, agents: Sequence[str], *, read_only: bool = False) -> None:
        super().__init__()
        self._folder = folder
        self._agents = agents
        self._read_only = read_only

    def get_default_screen(self) -> ChooserScreen:
        return ChooserScreen(self._folder, self._agents, read_only=self._read_only)


class ChooserScreen(ActionScreen[None], inherit_bindings=False):
    """Lists the agents of a folder; for a folder without agents, the possible actions."""

    BINDINGS = bindings(Scope.CHOOSER)
    AUTO_FOCUS = "#agents"

    def __init__(self, folder: Path, agents: Sequence[str], *, read_only: bool = False) -> None:
        super().__init__()
        self._folder = folder
        self._agents = agents
        self._read_only = read_only
        self._facts: dict[str, AgentFacts] = {}
        self._outcomes: dict[str, Line] = {}
        recent = [] if agents or read_only else recent_agents()
        self._recent = [path for path in recent if path != folder.resolve()]
        self._message = ""
        self._actions = [_OPEN_FOLDER] if agents else [*_STARTER_ACTIONS, _OPEN_FOLDER]
        self._choices = [
            *(Choice(partial(self._agent_line, name), folder / name) for name in agents),
            *(Choice(partial(_action_line, *way), way[0]) for way in self._actions),
            *(Choice(partial(_recent_line, path), path) for path in self._recent),
        ]

    def compose(self) -> ComposeResult:
        yield DrawnLine(self._header, id="chooser-header")
        with Vertical(id="chooser"):
            yield PageLines(self._write, can_focus=False, id="chooser-page")
            yield ChoiceList(len(self._choices), self._line, id="agents")
        yield DrawnLine(lambda width: [(f" {self._message}", "warning")], id="chooser-status")
        yield ChooserKeys(["open", *(action for action, _ in self._actions), "leave"])

    def on_mount(self) -> None:
        self.query_one("#chooser").border_title = "Agents" if self._agents else "Start"
        start_work(self, self._read_agents)

    def on_resize(self) -> None:
        self.query_one(ChoiceList).draw()

    def _header(self, width: int) -> Line:
        agents = counted(len(self._agents), "agent") if self._agents else "no agent"
        left: Line = [(" evaltui", "bold accent"), (f"  {visible(short_path(self._folder))}", "muted")]
        return join_ends(left, [(agents, "bold" if self._agents else "warning"), (" ", "")], width)

    # The page above the list

    def _write(self, page: Page) -> None:
        page.lines.append([])
        if self._agents:
            page.text([("Which agent?", "bold"), ("  One is opened at a time.", "muted")])
        else:
            page.text([("! ", "bold warning"), (f"No agent in {visible(short_path(self._folder))}", "bold")])
            page.lines.append([])
            page.labelled("looked for", [(_AGENT_FILES, "")])
            page.labelled("found", [(_folder_contents(self._folder), "")])
        page.section(("Open" if self._agents else "Next", "bold"))

    # The list

    def _agent_line(self, name: str, width: int) -> Line:
        longest = min(30, max(map(len, self._agents)))
        line: Line = [(pad(visible(_path_end(name, longest)), longest), "bold")]
        facts = self._facts.get(name)
        if facts is not None and facts.problem:
            line.append((f"  ! {visible(facts.problem)}", "error"))
        elif facts is not None:
            sets = counted(facts.sets, "eval set") if facts.sets else "no eval sets"
            frameworks = max(len(facts.framework) for facts in self._facts.values())
            models = max(len(facts.model) for facts in self._facts.values())
            line += [
                ("  ", ""),
                (pad(facts.framework, frameworks), "muted"),
                (pad(f"  {visible(facts.model)}", min(24, models) + 2) if models else "", "muted"),
                (f"  {sets}", "muted"),
            ]
        return join_ends(line, self._outcomes.get(name, []), width)

    def _line(self, number: int, is_current: bool) -> Line:
        width = max(20, self.query_one(PageLines).page.width - 1)
        marker = ("▌ " if is_current else "  ", "bold accent")
        return [marker, *self._choices[number].line(width)]

    async def _read_agents(self) -> None:
        """Reads the facts of each agent, after the list is on the screen."""
        choices = self.query_one(ChoiceList)
        for name in self._agents:
            self._facts[name] = await asyncio.to_thread(agent_facts, self._folder / name)
            choices.draw()
        for name in self._agents:
            self._outcomes[name] = await asyncio.to_thread(_last_outcome, self._folder / name)
            choices.draw()

    # Actions

    def refusal(self, action_id: str) -> str | None:
        # Whoever may look at one folder need not be shown every other.
        if self._read_only and (ACTIONS_BY_ID[action_id].acts or action_id == "open_folder"):
            return READ_ONLY
        if action_id != "create_starter":
            return None
        if self._agents:
            return "This folder holds agents already. Name a folder of its own: evaltui new DIR"
        reasons = [starter_problem(self._folder, kind) for kind in KINDS]
        return reasons[0] if all(reasons) else None

    def refuse(self, action_id: str) -> bool:
        reason = self.refusal(action_id)
        self._message = visible(reason or "")
        self.query_one("#chooser-status").refresh()
        return bool(reason)

    def follow(self) -> None:
        self.query_one(ChooserKeys).refresh()

    on_screen_suspend = follow

    def action_leave(self) -> None:
        self.app.exit()

    @on(ChoiceList.OptionSelected)
    async def action_open(self) -> None:
        opens = self._choices[self.query_one(ChoiceList).current].opens
        if isinstance(opens, Path):
            self.app.exit(Opening(opens))
        else:
            await self.run_action(opens)

    def action_create_starter(self) -> None:
        created = Opening(self._folder, starter=True)
        ask(self, StarterScreen(self._folder), lambda _: self.app.exit(created))

    def action_open_demo(self) -> None:
        self.app.exit(Opening(self._folder, demo=True))

    def action_open_folder(self) -> None:
        hint = "Path, relative to the current folder"
        question = PromptScreen(dialog_name("open_folder"), "", _folder_problem, hint, is_path=True)
        ask(self, question, lambda text: self.app.exit(Opening(_path_of(text))))


class ChooserKeys(ActionLine):
    """The footer."""

    def __init__(self, actions: Sequence[str]) -> None:
        super().__init__()
        self._actions = actions

    def parts(self, width: int) -> list[tuple[str, Line]]:
        if self.screen is not self.app.screen:
            return []
        return [
            (action, [(f" {key_of(action)}", "bold accent"), (f" {ACTIONS_BY_ID[action].short} ", "muted")])
            for action in self._actions
        ]


def _path_end(name: str, width: int) -> str:
    """The end of a path in `width` cells, in whole parts; at least the last one."""
    parts = name.split("/")
    ends = (name if not first else f"…/{'/'.join(parts[first:])}" for first in range(len(parts)))
    return next((end for end in ends if len(end) <= width), f"…/{parts[-1]}")


def _action_line(action: str, remark: str, width: int) -> Line:
    key, title = key_of(action), ACTIONS_BY_ID[action].title
    return [(pad(key, 4), "bold accent"), (pad(title, 24), "bold"), (f"  {remark}", "muted")]


def _recent_line(path: Path, width: int) -> Line:
    return [("    ", ""), (pad("Recent agent", 24), "muted"), (f"  {visible(short_path(path))}", "")]


def _folder_contents(folder: Path) -> str:
    """The content of a folder without agent, in a few words."""
    try:
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        return visible(f"unreadable: {error.strerror or error}")
    if not names:
        return "nothing; the folder is empty"
    code = [name for name in names if name.endswith(".py")]
    shown = code or names
    what = counted(len(code), "Python file") if code else counted(len(names), "entry", "entries")
    return visible(f"{what}: {short_list(shown, _MAX_FOUND)}")


def _last_outcome(agent_dir: Path) -> Line:
    """The counts of the last run, which may be of a few cases; empty where they are unknown."""
    try:
        store = RunStore.of(agent_dir, run_settings(agent_dir))
    except SettingsError:
        return []
    runs = stored_runs(store)
    return [("last run  ", "muted"), *counts_line(read_row(runs[0]).counts)] if runs else []


def _path_of(text: str) -> Path:
    return typed_path(text.strip())


def _folder_problem(text: str) -> str | None:
    """Why a folder cannot be opened; None where it can."""
    return None if text.strip() and is_there(_path_of(text)) else "No such file or folder"
