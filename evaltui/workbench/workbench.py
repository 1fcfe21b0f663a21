"""The workbench: its controllers, connected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.model.case_id import CaseId
from evaltui.project.agent_address import AgentAddress
from evaltui.workbench.agent.agent_state import AgentState, Console
from evaltui.workbench.agent.first_minute import RetryOnSave, is_first_minute
from evaltui.workbench.agent.watch import Following, Watch
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.cases.navigation import Navigation
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.messages import FilesChanged, Messages
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.runs.run_controller import RunController

if TYPE_CHECKING:
    from evaltui.project.interpreters import Interpreter
    from evaltui.runs.execution import RunService
    from evaltui.workbench.case.draft import Draft, Drafting
    from evaltui.workbench.case.selected_case import SelectedCase
    from evaltui.workbench.chat.controller import ChatController
    from evaltui.workbench.gaps.drafting import GapDrafts
    from evaltui.workbench.gaps.search import Gaps
    from evaltui.workbench.trace.sessions import ReceivedSessions


class Workbench:
    """The application without a screen.

    `paths` are eval sets from elsewhere, files and folders, besides those of the agent. `config` is one
    config for all sets, instead of their own. `options` are run-wide settings that go before those of the
    project, by the fields of `RunSettings`. `run_service` is for tests, see `RunController`; for
    `find_python` see `AgentState`. Everything is called from the event loop's thread, and every change is
    published there.
    """

    def __init__(
        self,
        agent: Path | AgentAddress,
        paths: Sequence[str | Path] = (),
        options: Mapping[str, Any] | None = None,
        config: Path | None = None,
        run_service: RunService | None = None,
        find_python: Callable[[], Interpreter] | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self.read_only = read_only
        """Whether edits, writing, runs, chats and receiving sessions are off."""
        self.messages = messages = Messages()
        """The messages about changes, to which screens and controllers subscribe."""
        self.say = messages.say
        self.console = Console()
        """The output of the agent."""
        address = agent if isinstance(agent, AgentAddress) else AgentAddress(agent)
        self.agent = AgentState(address, options or {}, messages, lambda: self.is_running, find_python)
        self.agent.read_only = read_only
        self.retry = RetryOnSave(self.agent, lambda: self.watch.on, messages)
        """Imports the agent again once it is mended."""
        self.sets = OpenSets(
            address.folder, paths, config, messages, read_only=read_only, in_project=not address.url
        )
        self.outcomes = Outcomes(self.agent, self.sets, messages)
        self.navigation = Navigation(self.sets, self.outcomes, messages)
        self.editing = Editing(self.sets, self.outcomes, self.navigation, messages)
        self.runs = RunController(self.agent, self.editing, self.console, self.open, messages, run_service)
        watched = (*paths, *([config] if config else []))
        self.following = Following(self.agent, self.outcomes, watched, self.open, messages)
        """Shows the changes of other programs, without editing or running."""
        self.watch = Watch(self.agent, self.editing, self.runs, watched, self.open, messages)

    @cached_property
    def drafting(self) -> Drafting:
        """The draft of the open field, created late because the first frame does not need it."""
        from evaltui.workbench.case.draft import Drafting

        return Drafting(self.selected, self.editing, self.messages)

    @cached_property
    def selected(self) -> SelectedCase:
        """The rows of the selected case."""
        from evaltui.workbench.case.selected_case import SelectedCase

        return SelectedCase(self.agent, self.sets, self.navigation, self.editing)

    @property
    def draft(self) -> Draft | None:
        """The draft; None where no field is open."""
        draft = self.drafting.draft if "drafting" in vars(self) else None
        return draft if draft and draft.is_typed else None

    @cached_property
    def chat(self) -> ChatController:
        """The conversation with the agent, created late because the first frame does not need it."""
        from evaltui.workbench.chat.controller import ChatController

        return ChatController(self.agent, self.sets, self.outcomes, self.console, self.messages)

    @cached_property
    def received(self) -> ReceivedSessions:
        """The sessions that agents send; listening starts on request."""
        from evaltui.workbench.trace.sessions import ReceivedSessions

        return ReceivedSessions(self.agent, self.sets, self.messages)

    @cached_property
    def gaps(self) -> Gaps:
        """The gaps of eval sets, created late because the first frame does not need them."""
        from evaltui.workbench.gaps.search import Gaps

        def runs_now() -> object:
            return None if self.is_running else self.runs_now

        return Gaps(self.agent, self.sets, self.navigation, runs_now, self.messages)

    @cached_property
    def gap_drafts(self) -> GapDrafts:
        """Drafts of what would notice gaps, created late because only their page needs them."""
        from evaltui.workbench.gaps.drafting import GapDrafts

        return GapDrafts(self.agent, self.editing, self.gaps)

    @property
    def is_listening(self) -> bool:
        """Whether agents can send sessions now."""
        return "received" in vars(self) and bool(self.received.url)

    @property
    def has_chat(self) -> bool:
        """Whether the chat was used: it is imported when it is first needed."""
        return "chat" in vars(self)

    @property
    def has_chatted(self) -> bool:
        """Whether a turn of the conversation has ended."""
        if not self.has_chat:
            return False
        transcript = self.chat.transcript
        return transcript is not None and bool(transcript.turns) and not self.chat.busy

    @property
    def is_unused(self) -> bool:
        """Whether the workbench has no run, no conversation and no output yet."""
        results = self.outcomes.counts_of() or self.outcomes.last_run or self.outcomes.previous_run
        return not (results or self.is_running or self.has_chatted or self.console.total)

    @property
    def is_running(self) -> bool:
        """Whether any run is in progress."""
        return self.runs.is_busy

    async def open(self) -> None:
        """Lists the eval sets, also again; results of cases that still exist are kept."""
        before = {(eval_set.path, eval_set.stamp) for eval_set in self.sets.listed}
        is_first = not self.sets.is_read
        await self.editing.merge_outside_changes()
        await self.agent.compare_files(during_run=self.is_running)
        await self.sets.read()
        await self.outcomes.compare_recordings()
        if self.agent.error is not None or self.agent.address.problem or is_first_minute(self.sets):
            self.agent.load_again()
        self.outcomes.keep_only(set(self.sets.every_case()))
        self.outcomes.rescore([eval_set.path for eval_set in self.sets.listed])
        self.navigation.select_nearest(self.navigation.selection)
        self.messages.publish(FilesChanged())
        changed = [listed for listed in self.sets.listed if (listed.path, listed.stamp) not in before]
        cases = (CaseId(listed.case_path, case.eval_id) for listed in changed for case in listed.cases)
        if not is_first and any(self.outcomes.results.get(case) is None for case in cases):
            # Such as of a set that is there again, which another branch of git does not have.
            await self.outcomes.restore()

    async def reload(self) -> None:
        """Lists the eval sets again, and the runs of other processes."""
        await self.open()
        await self._read_runs()

    async def look_again(self) -> None:
        """Reloads; while files are watched, only what is not followed."""
        if not self.agent.followed:
            await self.reload()
            return
        await self.outcomes.compare_files()
        await self._read_runs()

    async def _read_runs(self) -> None:
        run = self.runs.current
        await self.following.read_runs(run.log if run is not None and run.over else None)

    async def restore(self) -> None:
        """Shows the last stored result of each case."""
        await self.following.note_runs()
        await self.outcomes.restore()

    def step_back(self) -> None:
        """Clears the marks, the search of the trace, the filter, then closes the earlier run; one of them per
        call."""
        navigation = self.navigation
        if navigation.marking:
            navigation.clear_marks()
        elif navigation.trace_search:
            navigation.search_trace("")
        elif navigation.filtered.filter:
            navigation.set_filter("")
        else:
            self.outcomes.leave_previous_run()

    @property
    def runs_now(self) -> object:
        """A value that changes when a run starts or ends, here or in another process that is followed."""
        run = self.runs.current
        return self.following.version, run and (run.number, run.log, run.over)

    async def close(self) -> None:
        """Ends all running work and the agent's processes; running saves are finished."""
        if "drafting" in vars(self):
            # Before anything that takes time: whoever ends the process may not wait.
            self.drafting.write()
        await self.editing.finished()
        if "received" in vars(self):
            await self.received.stop()
        if "gaps" in vars(self):
            await self.gaps.close()
        await self.watch.stop()
        await self.following.close()
        await self.retry.close()
        await self.chat.close()
        await self.outcomes.close()
        await self.runs.close()
        await self.agent.close()
