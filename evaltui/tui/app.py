"""The Textual app: starts the workbench, shows its screen, and ends both in order."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any, ClassVar

from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.widgets import Input, TextArea

from evaltui.core.model.problems import SelectionError
from evaltui.documents.files import is_there
from evaltui.project.agent_address import AgentAddress
from evaltui.project.agents import agents_in
from evaltui.project.folders import may_be_agent
from evaltui.project.interpreters import (
    AUTO,
    choose_interpreter,
    interpreter_to_compare,
    look_for_interpreter,
)
from evaltui.project.settings import config_file, last_theme, last_view, remember_agent, remember_view
from evaltui.project.templates import create_demo
from evaltui.project.workspace import select, set_files
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import KeysInOrder, start_work
from evaltui.tui.exchange import copy
from evaltui.tui.main.screen import MainScreen
from evaltui.tui.pane import CopiedText
from evaltui.tui.textual_private import know_alt_enter
from evaltui.tui.widgets.writer import write_sentences
from evaltui.workbench.cases.open_sets import choose_config
from evaltui.workbench.keymap import read_keymap, use_keys
from evaltui.workbench.state import Opening, Selection
from evaltui.workbench.workbench import Workbench

WRONG_USE = 2
_FOLDER = Path(__file__).parent
# Seconds.
_AT_ONCE_SECONDS = 0.2


def _call_dialog(name: str) -> Callable[..., Any]:
    def method(screen: MainScreen, *arguments: Any) -> Any:
        from evaltui.tui.main import dialogs

        return getattr(dialogs, name)(screen, *arguments)

    return method


# The methods of the main screen that its first frame does not need.
for _name in (
    "action_help",
    "action_guide",
    "action_palette",
    "action_find_case",
    "action_jump",
    "action_open_source",
    "action_quit",
    "action_runs",
    "action_matrix",
    "action_gaps",
    "action_sessions",
    "action_preflight",
    "action_run_repeatedly",
    "action_criteria",
    "action_chat_from_here",
    "action_new_chat",
    "action_save_as_case",
    "action_import_traces",
    "action_move",
    "action_accept",
    "action_new_case",
    "action_new_set",
    "action_rename",
    "action_convert",
    "action_edit_json",
    "action_tag_case",
    "action_mark_failing",
    "action_group_failures",
    "action_step_difference",
    "action_back_to_result",
    "action_show_in_trace",
    "action_show_expected",
    "ask_pending",
    "on_recent_runs_compare_runs",
    "on_result_view_metric_asked",
    "on_chat_view_moved",
    "on_trace_view_moved",
):
    setattr(MainScreen, _name, _call_dialog(_name))


class WorkbenchApp(KeysInOrder[int]):
    """The app of the workbench.

    `set_name` is the id or the file of the first set, `watch` turns watch mode on. With `tour` a line leads
    through the demo. `remember` stores the opened agent for the next start.
    """

    TITLE = "evaltui"
    # Textual's own key leaves at once.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "ask_to_quit", show=False, priority=True, system=True),
        # On the screens that lie over the main one.
        Binding("ctrl+c", "cancel_run", show=False, priority=True, system=True, id="cancel_run"),
    ]
    # The styles of the first frame; `ActionScreen` has those of all others.
    CSS_PATH: ClassVar[list[str | PurePath]] = [
        _FOLDER / "app.tcss",
        _FOLDER / "main" / "bars.tcss",
    ]
    # There is one of our own.
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        workbench: Workbench,
        set_name: str | None = None,
        *,
        watch: bool = False,
        tour: bool = False,
        remember: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._remember = remember
        self._tour = tour
        self.workbench: Workbench = workbench
        self._set_name = set_name
        self._watch = watch
        self.refusal: str | None = None
        self.next_agent: Path | None = None
        """Folder of the agent that is opened next; None to quit."""
        theme = last_theme()
        if theme in self.available_themes and "TEXTUAL_THEME" not in os.environ:
            self.begin_with_theme(theme)

    def get_default_screen(self) -> MainScreen:
        screen = MainScreen(self.workbench, tour=self._tour)
        if not (self._tour or self._set_name):
            screen.show_view(last_view(self.workbench.agent.dir))
        return screen

    def on_mount(self) -> None:
        know_alt_enter()
        self.animation_level = "none"
        self._use_keymap()
        # The first frame does not wait for files, and files do not wait for the models.
        start_work(self, self._start)

    def _use_keymap(self) -> None:
        path = config_file("keys.toml")
        keymap = read_keymap(path)
        use_keys(keymap.keys)
        self.set_keymap({action: ",".join(keys) for action, keys in keymap.keys.items()})
        if keymap.problems:
            from evaltui.tui.dialogs.details import DetailsScreen

            title: Line = [("Your keys: ", "bold"), (visible(str(path)), "muted")]
            self.push_screen(DetailsScreen(title, partial(write_sentences, sentences=keymap.problems)))

    async def _start(self) -> None:
        # They are read once the first frame is seen.
        self.workbench.outcomes.is_loading = True
        opening = asyncio.create_task(self.workbench.open())
        # Sets that are read at once are in the first frame, others do not hold it up.
        with self.batch_update():
            await asyncio.wait([opening], timeout=_AT_ONCE_SECONDS)
        await opening
        if self._set_name and not self._select_set(self._set_name):
            self.exit(return_code=WRONG_USE)
            return
        if (notice := self.workbench.messages.notice) is not None:
            # It was said before there was a screen to read it on.
            self.workbench.say(notice.text)
        if self._watch:
            self.workbench.watch.start()
        # Threads would take their time from the first frame.
        main = self.screen_stack[0]
        if isinstance(main, MainScreen):
            await main.seen.wait()
            await main.offer_unsaved()
        if self._remember is not None:
            with suppress(OSError):
                await asyncio.to_thread(self._remember)
        await self.workbench.runs.warm_up()
        start_work(self, self._check_python)
        if self._tour and isinstance(main, MainScreen):
            start_work(self, main.begin_tour)
        if self.workbench.read_only:
            self.workbench.following.start()
        else:
            start_work(self, self.workbench.restore)
        if not gc.isenabled():
            # The command line has put it off until here.
            gc.freeze()
            gc.enable()

    def on_app_focus(self) -> None:
        """Shows changes on disk and runs of others when the app gets the focus again."""
        if self.workbench.sets.is_read:
            start_work(self, self.workbench.look_again)

    async def _check_python(self) -> None:
        agent = self.workbench.agent
        await agent.check_python()
        check = agent.python_check
        if check is not None and check.install and agent.error is None:
            self.workbench.say(f"{visible(check.problem)}   {key_of('preflight')} shows what installs it")

    def _select_set(self, name: str) -> bool:
        if self.workbench.sets.workspace is None:
            return False
        try:
            eval_set = select(self.workbench.sets.workspace, [name])[0][0]
        except SelectionError as error:
            self.refusal = str(error)
            return False
        self.workbench.navigation.select(
            Selection(eval_set.case_path, eval_set.cases[0].eval_id if eval_set.cases else None)
        )
        return True

    def copy_text(self, text: str) -> None:
        selected = CopiedText("the selected text", text)
        self.workbench.say(copy(self, self.workbench, selected))

    @property
    def is_at_work(self) -> bool:
        bench = self.workbench
        return bench.is_running or bench.is_listening or (bench.has_chat and bench.chat.busy)

    async def leave(self, code: int) -> None:
        self.leaving = True
        if isinstance(main := self.screen_stack[0], MainScreen):
            self.next_agent = main.next_agent
            if not self.workbench.read_only:
                with suppress(OSError):
                    remember_view(self.workbench.agent.dir, main.view())
        await self.workbench.close()
        self.exit(return_code=code)

    async def action_ask_to_quit(self) -> None:
        """Quits; unsaved work is asked about first."""
        main = self.screen_stack[0]
        if isinstance(main, MainScreen):
            await main.action_quit()

    def action_cancel_run(self) -> None:
        """Cancels the run, unless the main screen does, or a field copies its selection."""
        field = self.focused
        if isinstance(self.screen, MainScreen) or (
            isinstance(field, Input | TextArea) and field.selected_text
        ):
            raise SkipAction
        self.workbench.runs.cancel()

    async def action_quit(self) -> None:
        """Quits after the agent's processes have ended."""
        await self.leave(0)

    async def on_unmount(self) -> None:
        await self.workbench.close()


def open_workbench(
    agent: AgentAddress,
    set_name: str | None = None,
    *,
    watch: bool = False,
    read_only: bool = False,
    config: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> int:
    """Shows the workbench until the user quits; returns the exit code.

    `config` is a file for all sets, or `own` for each its own; None for the last choice. `options` are run-
    wide settings, by the fields of `RunSettings`.
    """
    is_named = bool(agent.url or agent.module)
    opening = Opening(agent.folder) if is_named else _choose(agent.folder, read_only=read_only)
    if isinstance(opening, int):
        return opening
    if opening.demo:
        return open_demo()
    agent_dir = opening.path
    paths = [set_name] if set_name and is_there(Path(set_name)) else []
    options = options or {}
    try:
        chosen = choose_config(agent_dir, config, remembers=not read_only)
        python = options.get("python")
        choose = interpreter_to_compare if read_only else choose_interpreter
        interpreter = choose(agent_dir, python)
    except ValueError as error:
        return _refuse(str(error))
    agent = replace(agent, folder=agent_dir, interpreter=interpreter)
    # As it was found before, whatever the current folder is by then.
    again = python if python in (None, AUTO) else str(interpreter.path)
    find = interpreter_to_compare if read_only else look_for_interpreter
    find_python = partial(find, agent_dir, again)
    workbench = Workbench(agent, paths, options, chosen.path, find_python=find_python, read_only=read_only)
    if chosen.note:
        workbench.say(chosen.note)
    if opening.starter:
        workbench.say(f"Starter created: 3 cases   {key_of('run')} run case   {key_of('watch')} watch")
    if problem := agent.problem or workbench.agent.read_settings():
        workbench.say(problem)
    remember = None if is_named or read_only else partial(remember_agent, agent_dir)
    app = WorkbenchApp(workbench, set_name, watch=watch, remember=remember)
    app.run_to_the_end()
    if app.next_agent is not None:
        # Another agent may have another Python.
        return open_workbench(AgentAddress(app.next_agent), options=dict(options) | {"python": None})
    return _refuse(app.refusal) if app.refusal else app.return_code or 0


def _choose(folder: Path, *, read_only: bool) -> Opening | int:
    """The agent of a folder; with several or none, the user's choice.

    The exit code where no agent is opened.
    """
    opening = Opening(folder)
    while not opening.demo:
        agents = agents_in(opening.path)
        if len(agents) == 1:
            return opening._replace(path=opening.path / agents[0])
        # Eval sets can be edited without their agent.
        if not agents and (may_be_agent(opening.path) or _has_sets(opening.path)):
            return opening
        from evaltui.tui.start.chooser import ChooserApp

        chooser = ChooserApp(opening.path, agents, read_only=read_only)
        chosen = chooser.run_to_the_end()
        if chosen is None:
            return chooser.return_code or 0
        opening = chosen
    return opening


def _has_sets(folder: Path) -> bool:
    """Whether a folder itself has eval sets, not only the project above it."""
    return any(path.resolve().is_relative_to(folder.resolve()) for path in set_files(folder))


def open_demo() -> int:
    """Shows the demo, in a temporary folder; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="evaltui-demo-", ignore_cleanup_errors=True) as folder:
        app = WorkbenchApp(Workbench(create_demo(Path(folder))), tour=True)
        app.run_to_the_end()
        return app.return_code or 0


def _refuse(reason: str) -> int:
    sys.stderr.write(f"evaltui: {reason}\n")
    return WRONG_USE
