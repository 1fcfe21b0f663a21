"""The Textual app: starts the workbench, shows its screen, and ends both in order."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePath
from typing import ClassVar

from textual.command import Provider
from textual.theme import Theme

from evaltui.core.recordings.choices import DEFAULT_MODE, RecordMode
from evaltui.core.show import visible
from evaltui.files.user_config import config_file, last_theme, remember_theme
from evaltui.files.workspace import SelectionError, agents_in, select
from evaltui.reports.lines import Line
from evaltui.tui.key_order import KeysInOrder
from evaltui.tui.screens.main import MainScreen
from evaltui.tui.terminal_keys import know_alt_enter
from evaltui.workbench.keymap import read_keymap
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

WRONG_USE = 2
TERMINATED = 128 + signal.SIGTERM
_HERE = Path(__file__).parent
# Seconds.
_AT_ONCE = 0.1


# The first frame does not wait for what is seen only when it is asked for.


def _actions() -> type[Provider]:
    from evaltui.tui.palette import ActionProvider

    return ActionProvider


def _cases() -> type[Provider]:
    from evaltui.tui.palette import CaseProvider

    return CaseProvider


def _themes() -> type[Provider]:
    from evaltui.tui.palette import ThemeProvider

    return ThemeProvider


class WorkbenchApp(KeysInOrder[int]):
    """`set_name` is the id or the file of the set to start in, `watch` whether to follow what is saved."""

    TITLE = "evaltui"
    CSS_PATH: ClassVar[list[str | PurePath]] = [_HERE / "app.tcss", *sorted(_HERE.glob("*/*.tcss"))]
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_actions, _cases, _themes}

    def __init__(self, workbench: Workbench, set_name: str | None = None, *, watch: bool = False) -> None:
        super().__init__()
        self.workbench = workbench
        self._set_name = set_name
        self._watch = watch
        self.refusal: str | None = None

    def get_default_screen(self) -> MainScreen:
        return MainScreen(self.workbench)

    def on_mount(self) -> None:
        know_alt_enter()
        self.animation_level = "none"
        self._use_theme()
        self._use_keymap()
        # Ended from outside, the terminal must not be left behind as it is now.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._terminated)
        # The first frame does not wait for files, and files do not wait for the models.
        self.run_worker(self._start(), exit_on_error=True)

    def _use_theme(self) -> None:
        """The theme that was chosen last; from now on every choice is remembered."""
        theme = last_theme()
        if theme in self.available_themes and "TEXTUAL_THEME" not in os.environ:
            self.theme = theme
        self.theme_changed_signal.subscribe(self, self._remember_theme)

    def _remember_theme(self, theme: Theme) -> None:
        try:
            remember_theme(theme.name)
        except OSError as error:
            self.workbench.say(f"the theme cannot be remembered: {error}")

    def _use_keymap(self) -> None:
        path = config_file("keys.toml")
        keymap = read_keymap(path)
        self.workbench.keys = keymap.keys
        self.set_keymap({action: ",".join(keys) for action, keys in keymap.keys.items()})
        if keymap.problems:
            from evaltui.tui.pages.problems import write_sentences
            from evaltui.tui.screens.details import DetailsScreen

            title: Line = [("Your keys: ", "bold"), (visible(str(path)), "dim")]
            self.push_screen(DetailsScreen(title, partial(write_sentences, sentences=keymap.problems)))

    async def _start(self) -> None:
        opening = asyncio.create_task(self.workbench.open())
        # Sets that are read at once are in the first frame, others do not hold it up.
        with self.batch_update():
            await asyncio.wait([opening], timeout=_AT_ONCE)
        await opening
        if self._set_name and not self._select_set(self._set_name):
            self.exit(return_code=WRONG_USE)
            return
        if self._watch:
            self.workbench.watching.start()
        if isinstance(self.screen, MainScreen):
            self.screen.offer_unsaved()
        await self.workbench.warm_up()
        self.run_worker(self.workbench.restore(), group="restore")
        if not gc.isenabled():
            # The command line has put it off until here.
            gc.freeze()
            gc.enable()

    def _select_set(self, name: str) -> bool:
        if self.workbench.workspace is None:
            return False
        try:
            entry = select(self.workbench.workspace, [name])[0][0]
        except SelectionError as error:
            self.refusal = str(error)
            return False
        self.workbench.select(Selection(entry.path, entry.cases[0].eval_id if entry.cases else None))
        return True

    def _terminated(self) -> None:
        self.run_worker(self._leave(TERMINATED))

    async def _leave(self, code: int) -> None:
        await self.workbench.close()
        self.exit(return_code=code)

    async def action_quit(self) -> None:
        """Leave once the agent's processes have ended."""
        await self._leave(0)

    async def on_unmount(self) -> None:
        await self.workbench.close()


def open_workbench(
    agent_dir: Path,
    set_name: str | None = None,
    *,
    watch: bool = False,
    record_mode: RecordMode = DEFAULT_MODE,
) -> int:
    """Show the workbench until the user leaves it; the exit code of the program."""
    if several := agents_in(agent_dir):
        from evaltui.tui.screens.chooser import ChooserApp

        chosen = ChooserApp(agent_dir, several).run()
        if chosen is None:
            return 0
        agent_dir /= chosen
    given = [set_name] if set_name and Path(set_name).exists() else []
    app = WorkbenchApp(Workbench(agent_dir, given, record_mode), set_name, watch=watch)
    app.run()
    return _refuse(app.refusal) if app.refusal else app.return_code or 0


def _refuse(reason: str) -> int:
    sys.stderr.write(f"evaltui: {reason}\n")
    return WRONG_USE
