"""The dialogs of the main screen, and the actions on their results."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.documents.recovery import recoverable
from evaltui.project.folders import agent_folder
from evaltui.project.settings import remember_theme
from evaltui.runner.python_check import python_lines
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import ActionScreen, ask
from evaltui.tui.exchange import open_source
from evaltui.tui.pane import Beside, Pane
from evaltui.tui.textual_private import TextField
from evaltui.workbench.actions import ACTIONS, Scope
from evaltui.workbench.cases.navigation import CaseOrder
from evaltui.workbench.state import Repeated, Selection
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.core.model.case_id import CaseId
    from evaltui.documents.open_file import FileConflict
    from evaltui.documents.recovery import Recovered
    from evaltui.traces.conversations import RecordedConversation
    from evaltui.tui.result.view import ResultView
    from evaltui.tui.runs.screen import RunTarget
    from evaltui.tui.widgets.writer import Page
    from evaltui.workbench.runs.run_list import Sides


_ORDERS = (
    (CaseOrder.OUTCOME, "Order cases by outcome", "Failing cases first"),
    (CaseOrder.TIME, "Order cases by time", "Slowest cases first"),
    (CaseOrder.COST, "Order cases by cost", "Cases with the most tokens first"),
    (CaseOrder.FILE, "Order cases by file", "Cases as in their file"),
)


class MainDialogs(ActionScreen[None], inherit_bindings=False):
    """The actions that open a dialog. Dialogs are imported on demand, because the first frame does not need
    them."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self.workbench = workbench
        self._shown_conflicts: list[FileConflict] = []
        self.next_agent: Path | None = None
        """Folder of the agent that is opened after this one is closed."""
        # What an earlier session left, until it is asked about.
        self._recovered: list[Recovered] = []

    @property
    @abstractmethod
    def scope(self) -> Scope:
        """The scope of the keys."""

    @abstractmethod
    def go_to(self, pane: str) -> None:
        """Shows and focuses a pane."""

    @abstractmethod
    def go_to_entry(self, pane: str) -> None:
        """Shows a pane, and focuses its input."""

    @abstractmethod
    def show_result(self) -> None:
        """Shows the result pane, after a run was started."""

    def reveal(self, selection: Selection) -> None:
        """Selects a case or set, and makes sure that the list shows it."""
        self.workbench.navigation.set_filter("")
        self.workbench.navigation.select(selection)
        self.go_to("cases")

    def action_move(self, step: int) -> None:
        """Moves the selected cases in their set."""
        from evaltui.workbench.cases import set_editing

        set_editing.move(self.workbench.editing, step)

    def action_step_repeat(self, step: int) -> None:
        self.workbench.navigation.step_repeat(step)

    # Keys and names

    def action_help(self) -> None:
        from evaltui.tui.dialogs.keys import HelpScreen

        ask(self, HelpScreen(self.scope, self.refusal), self.run_action)

    def action_guide(self) -> None:
        """Opens the page of the guide about the pane; from there, all pages."""
        from evaltui.project.guide import topic
        from evaltui.tui.dialogs.keys import GuidePage, GuideScreen

        scope = self.scope
        search = GuideScreen(scope, self.refusal, self.run_action)
        self.app.push_screen(
            GuidePage(topic(scope.topic), search=lambda: ask(self, search, lambda choose: choose()))
        )

    def action_palette(self) -> None:
        from evaltui.tui.dialogs.palette import PaletteScreen, Setting

        navigation = self.workbench.navigation
        another = Setting(
            "Open agent…", "Open another agent; unsaved changes are asked about first", self._choose_agent
        )
        settings = (
            Setting("Theme…", "Choose the colours, with a preview", self._choose_theme),
            # Whoever may look at one agent need not be shown every folder.
            *(() if self.workbench.read_only else (another,)),
            Setting("Open run…", "Show the results of an earlier run", self._choose_run),
            *(Setting(title, about, partial(navigation.order_by, order)) for order, title, about in _ORDERS),
        )
        palette = PaletteScreen(self.workbench, self, self.scope, self.reveal, settings)
        ask(self, palette, lambda choose: choose())

    def _choose_theme(self) -> None:
        from evaltui.tui.dialogs.palette import ThemeScreen

        ask(self, ThemeScreen(self.app.theme), self._use_theme)

    def _use_theme(self, theme: str) -> None:
        self.app.theme = theme
        try:
            if not self.workbench.read_only:
                remember_theme(theme)
        except OSError as error:
            self.workbench.say(f"Cannot remember the theme: {error}")

    def _choose_run(self) -> None:
        from evaltui.tui.dialogs.palette import PickRunScreen
        from evaltui.tui.runs.screen import RunTarget

        def show(run: tuple[Path, str]) -> None:
            if reason := self.workbench.outcomes.refuses_to_open():
                self.workbench.say(reason)
            else:
                self.run_worker(self._show_run(RunTarget(*run)), group="runs", exclusive=True)

        ask(self, PickRunScreen(self.workbench), show)

    def _choose_agent(self) -> None:
        from evaltui.tui.dialogs.palette import AgentScreen

        async def leave_for(path: Path) -> None:
            self.next_agent = path
            await self.action_quit()

        ask(self, AgentScreen(self.workbench.agent.dir), leave_for)

    def action_find_case(self) -> None:
        from evaltui.tui.dialogs.finding import FindCaseScreen

        ask(self, FindCaseScreen(self.workbench), self.workbench.navigation.show)

    def action_open_source(self) -> None:
        """Opens the source of the current item in the focused pane."""
        around = self.focused.ancestors_with_self if self.focused else []
        pane = next((node for node in around if isinstance(node, Pane | Beside)), None)
        place = pane.source() if pane is not None else None
        self.workbench.say(open_source(self.app, self.workbench.agent.dir, place))

    # Leaving

    async def action_quit(self) -> None:
        """Quits once all is saved; unsaved changes, and text that is in no case yet, are asked about
        first."""
        from evaltui.tui.dialogs.unsaved import UnsavedScreen

        if isinstance(self.app.screen, UnsavedScreen):
            return
        await self.workbench.editing.finished()
        if self.app.screen is self:
            self.leave_field()
        typed = self._typed_elsewhere()
        if self.workbench.editing.unsaved() or self.workbench.draft or typed:
            self.app.push_screen(UnsavedScreen(self.workbench, typed), self._leave_as_chosen)
        else:
            self._leave()

    def _typed_elsewhere(self) -> str:
        """The text in a field over this screen that is stored nowhere else."""
        field = self.app.screen.focused
        is_above = self.app.screen is not self and self.workbench.draft is None
        return field.typed if is_above and isinstance(field, TextField) else ""

    def _leave(self) -> None:
        self.run_worker(self.app.action_quit())

    async def _leave_as_chosen(self, choice: str | None) -> None:
        editing = self.workbench.editing
        if choice == "discard":
            self.workbench.drafting.drop()
            await editing.discard()
        elif choice is None or not self.leave_field() or not await editing.save_all():
            self.next_agent = None
            return
        elif editing.unsaved():
            # Changed while the rest was saved.
            await self.action_quit()
            return
        self._leave()

    # Runs

    def action_runs(self) -> None:
        from evaltui.tui.runs.screen import RunsScreen

        ask(self, RunsScreen(self.workbench), self._show_target)

    def action_matrix(self) -> None:
        from evaltui.tui.matrix.screen import MatrixScreen

        ask(self, MatrixScreen(self.workbench), self._show_target)

    def action_sessions(self) -> None:
        from evaltui.tui.sessions import SessionsScreen

        def show(target: RunTarget | None) -> None:
            if target is None:
                self.go_to("case")
            else:
                self._show_target(target)

        ask(self, SessionsScreen(self.workbench), lambda left: show(left.target))

    def compare_runs(self, sides: Sides) -> None:
        from evaltui.tui.compare.screen import ComparisonScreen
        from evaltui.tui.runs.screen import RunTarget

        ask(
            self,
            ComparisonScreen(self.workbench, sides),
            lambda chosen: self._show_target(RunTarget(*chosen)),
        )

    def _show_target(self, target: RunTarget) -> None:
        self.run_worker(self._show_run(target), group="runs", exclusive=True)

    async def _show_run(self, target: RunTarget) -> None:
        workbench = self.workbench
        if target.resumes:
            if await workbench.runs.resume(target.path):
                self.show_result()
            return
        workbench.say(f"Reading {target.title}…")
        if not await workbench.outcomes.open_run(target.path, target.title):
            return
        if target.case is None:
            self.go_to("cases")
        elif case := workbench.sets.find_case(target.case, target.eval_set_id):
            workbench.navigation.select(Selection(*case))
            self.go_to("result")
        else:
            workbench.say(f"{target.case.eval_id} is no longer in an eval set")

    def action_preflight(self) -> None:
        from evaltui.core.metrics.preflight import check_lines
        from evaltui.tui.dialogs.details import DetailsScreen

        run, check = self.workbench.runs.current, self.workbench.agent.python_check
        title: Line = [("Python", "bold")]
        if run is not None and run.checks:
            title = [("Metrics", "bold"), (f" ─ run {run.number}: {visible(run.title)}", "")]

        def write(page: Page) -> None:
            if check is not None:
                page.lines += python_lines(check)
            if check is not None and run is not None and run.checks:
                page.blank()
            if run is not None and run.checks:
                page.lines += check_lines(run.checks, page.width, every=True)

        self.app.push_screen(DetailsScreen(title, write))

    def action_run_repeatedly(self) -> None:
        from evaltui.tui.dialogs.prompt import RepeatScreen
        from evaltui.workbench.runs.repeats import repeat_cost, repeat_title, usual_repeat

        workbench = self.workbench
        sets, selection = workbench.sets, workbench.navigation.selection
        usual = usual_repeat(sets, selection, workbench.runs.current)

        def run(repeated: Repeated) -> None:
            workbench.runs.run_case(repeated)
            self.show_result()

        def cost(repeated: Repeated) -> str:
            return repeat_cost(sets, workbench.outcomes, selection, repeated)

        ask(self, RepeatScreen(repeat_title(sets, selection), usual, cost), run)

    def action_criteria(self) -> None:
        self._show_criteria("")

    def on_result_view_metric_asked(self, message: ResultView.MetricAsked) -> None:
        self._show_criteria(message.metric)

    def _show_criteria(self, metric: str) -> None:
        """Opens the criteria of the selected set, at a metric."""
        if (path := self.workbench.navigation.file) is not None:
            from evaltui.tui.criteria.screen import CriteriaScreen

            ask(self, CriteriaScreen(self.workbench, path, metric), self._show_case_of_criteria)

    def _show_case_of_criteria(self, case: CaseId) -> None:
        self.workbench.navigation.show(Selection(*case))
        self.go_to("result")

    # Questions that come up by themselves

    async def offer_unsaved(self) -> None:
        """Offers the unsaved changes of an earlier session, once no other screen is open."""

        if self.workbench.read_only:
            return
        self._recovered = await asyncio.to_thread(recoverable, agent_folder(self.workbench.agent.dir))
        self.draw_soon()

    def ask(self) -> None:
        """Opens the next pending question, unless another one is open."""
        if not self.takes_input:
            return
        if self._recovered:
            from evaltui.tui.dialogs.unsaved import RecoveryScreen

            recovered, self._recovered = self._recovered, []
            self.app.push_screen(RecoveryScreen(self.workbench, recovered), self._show_draft)
        else:
            self._ask_about_conflicts()

    def _show_draft(self, _: object) -> None:
        """Shows the field of a recovered text."""
        if self.workbench.draft is not None:
            self.go_to("case")

    def _ask_about_conflicts(self) -> None:
        """Opens the next conflict that was not shown yet."""
        new = [clash for clash in self.workbench.editing.conflicts if clash not in self._shown_conflicts]
        # Nobody is asked while typing: what is typed next would be taken for the answer.
        if new and self.app.screen is self and not isinstance(self.focused, TextField):
            from evaltui.tui.dialogs.merge_conflict import MergeConflictScreen

            self._shown_conflicts.append(new[0])
            self.app.push_screen(MergeConflictScreen(self.workbench, new[0]))

    # Conversations

    def action_chat_from_here(self) -> None:
        """Asks for the turn of the case where the chat starts; without a case, starts a new chat."""
        case, chat = self.workbench.navigation.selection.case, self.workbench.chat
        if case is not None:
            from evaltui.tui.chat.begin import ChatFromScreen

            self.app.push_screen(ChatFromScreen(self.workbench, case), self._show_chat)
            return
        if chat.transcript is None:
            chat.new()
        self._show_chat(True)

    def action_new_chat(self) -> None:
        from evaltui.tui.chat.begin import NewChatScreen

        self.app.push_screen(NewChatScreen(self.workbench), self._show_chat)

    def _show_chat(self, started: bool | None) -> None:
        if started:
            self.go_to_entry("chat")

    def action_save_as_case(self) -> None:
        from evaltui.tui.chat.save_case import SaveCaseScreen

        if (transcript := self.workbench.chat.transcript) is None:
            return
        try:
            screen = SaveCaseScreen(self.workbench, transcript)
        except ValueError as error:
            self.workbench.say(f"Cannot save as case: {error}")
            return
        self.app.push_screen(screen, lambda saved: saved and self.go_to("case"))

    def action_import_traces(self) -> None:
        """Asks for a file of traces, then for its conversations, then for the turns of a single one."""
        from evaltui.tui.sessions import ask_for_traces, choose_conversations

        def read(path: str) -> None:
            choosing = choose_conversations(self, self.workbench, path, self._save_imported)
            self.run_worker(choosing, group="import", exclusive=True)

        ask_for_traces(self, read)

    def _save_imported(self, conversations: Sequence[RecordedConversation]) -> None:
        from evaltui.tui.chat.save_case import SaveCaseScreen
        from evaltui.workbench.chat.imported import save_all, transcript_of

        if len(conversations) > 1:
            save_all(self.workbench.agent, self.workbench.editing, conversations)
            return
        try:
            transcript, missing = transcript_of(conversations[0])
            screen = SaveCaseScreen(self.workbench, transcript)
        except ValueError as error:
            self.workbench.say(f"Cannot save as case: {error}")
            return
        self.workbench.say(missing)
        self.app.push_screen(screen, lambda saved: saved and self.go_to("case"))


def _on_workbench(do: Callable[[Workbench], object]) -> Callable[[MainDialogs], None]:
    def action(screen: MainDialogs) -> None:
        do(screen.workbench)

    return action


# What the registry does without a screen is an action of this one.
for _action in ACTIONS:
    if _action.do is not None:
        setattr(MainDialogs, _action.method, _on_workbench(_action.do))
