"""`evaltui run --watch`: runs the affected cases after each save, until ctrl+c."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from evaltui.commands.chosen_cases import chosen_cases, chosen_in
from evaltui.commands.output import UsageError, agent_to_run, settings_of, width, write_lines, write_stderr
from evaltui.commands.parser import parser_of
from evaltui.core.metrics.preflight import check_lines
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.project.interpreters import look_for_interpreter
from evaltui.project.workspace import Workspace
from evaltui.reports.console import case_lines, counts_text, note_line
from evaltui.runner.interrupts import INTERRUPTED
from evaltui.text.figures import counted, plural, short_list, show_duration, show_number
from evaltui.text.lines import Line
from evaltui.text.values import visible, visible_lines
from evaltui.workbench.files.saves import Reaction, ReactionStep, calls_in_words, error_line, join_names
from evaltui.workbench.messages import WorkbenchMessage
from evaltui.workbench.state import RepeatChoice, Run, RunRef, Selection, Stage
from evaltui.workbench.workbench import Workbench

# What a run that never ends cannot do.
_NOT_WHILE_WATCHING = (
    "initial_session",
    "agent",
    "failed",
    "confidence",
    "max_runs",
    "estimate",
    "shard",
    "durations",
    "store_durations",
    "resume",
    "retry_errors",
    "baseline",
    "fail_on_regression",
    "alpha",
    "require",
    "report",
    "adk_verdicts",
    "exit_zero",
)


def _paths_of(options: argparse.Namespace) -> list[str]:
    """The files and folders of eval sets that the agent's folder does not have."""
    folders = [word for word in options.selectors if Path(word).is_dir()]
    chosen = chosen_cases(options)
    return [*folders, *(str(eval_set.path) for eval_set, _ in chosen if eval_set.origin == "given")]


async def watch(options: argparse.Namespace) -> int:
    """Run the selected cases, then after each save the cases that it affects, until interrupted.

    Raises UsageError and SelectionError. The exit code is for where the system cannot watch the files.
    """
    parser = parser_of("run")
    for name in _NOT_WHILE_WATCHING:
        if getattr(options, name) != parser.get_default(name):
            raise UsageError(f"--{name.replace('_', '-')} cannot be used together with --watch")
    if options.config is not None and not options.config.is_file():
        raise UsageError(f"{options.config} does not exist")
    paths = _paths_of(options)
    # Wrong settings are reported before the run starts.
    settings_of(options)
    agent = agent_to_run(options)
    find_python = partial(look_for_interpreter, agent.folder, options.python)
    workbench = Workbench(agent, paths, vars(options), options.config, find_python=find_python)
    if options.runs is not None:
        workbench.watch.repeated = RepeatChoice(options.runs, options.pass_if or "all")
    try:
        return await _Lines(workbench, options).follow()
    finally:
        await workbench.close()


class _Lines:
    """Tells what happens in a workbench. `options` choose the cases that count."""

    def __init__(self, workbench: Workbench, options: argparse.Namespace) -> None:
        self._workbench = workbench
        self._options = options
        self._workspace: Workspace | None = None
        self._last_chosen: dict[str, tuple[str, ...] | None] = {}
        self._reaction: Reaction | None = None
        self._reported: dict[CaseId, tuple[RunRef, Status]] = {}
        self._run: Run | None = None
        self._notice: object = None
        self._unready = ""
        self._ended = asyncio.Event()
        self._code = 0

    async def follow(self) -> int:
        workbench = self._workbench
        await workbench.open()
        # A single case is selected while nobody has chosen: here it is the cases that were named.
        workbench.navigation.select(
            Selection(workbench.sets.listed[0].case_path if workbench.sets.listed else None)
        )
        keys = [case for case in workbench.sets.every_case() if self._counts(case)]
        named = [case for case in keys if self._chosen.get(case.path) is not None]
        if named:
            workbench.navigation.marking.toggle(named)
        await workbench.runs.warm_up()
        workbench.messages.subscribe(self._changed, WorkbenchMessage)
        workbench.watch.limit(self._counts)
        workbench.watch.start()
        await workbench.watch.ready()
        many = counted(len(keys), "case")
        write_lines(
            [[(f"watching {visible(workbench.agent.dir.resolve().name)}: {many}; ctrl+c ends", "muted")]]
        )
        if sys.stdin.isatty():
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._entered)
        workbench.watch.run("the selection", keys)
        await self._ended.wait()
        return self._code

    @property
    def _chosen(self) -> dict[str, tuple[str, ...] | None]:
        """The cases that count, by their sets, None for all; where sets do not have them any more, those from
        before."""
        workspace = self._workbench.sets.workspace
        if workspace is not None and workspace is not self._workspace:
            self._workspace = workspace
            with suppress(SelectionError, EvalSetError):
                chosen = chosen_in(workspace, self._options)
                self._last_chosen = {eval_set.case_path: eval_ids for eval_set, eval_ids in chosen}
        return self._last_chosen

    def _plain(self, text: str) -> str:
        return self._workbench.agent.secrets.mask_text(text)

    def _counts(self, case: CaseId) -> bool:
        chosen = self._chosen
        ids = chosen.get(case.path)
        return case.path in chosen and (ids is None or case.eval_id in ids)

    def _entered(self) -> None:
        """Waits for the enter key, or for the end of the input."""
        if not _typed_line():
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._end(INTERRUPTED)
        elif self._workbench.is_running:
            pass
        elif cases := {*self._workbench.watch.waiting().cases, *self._not_run()}:
            self._workbench.watch.run("stale and new cases", cases)

    def _changed(self, _: WorkbenchMessage) -> None:
        if self._ended.is_set():
            return
        try:
            write_lines(self._news())
        except BrokenPipeError:
            # Whoever watched has left, as with Ctrl-C.
            self._end(INTERRUPTED)
        except OSError as error:
            write_stderr(f"evaltui run: stdout cannot be written: {error.strerror or error}")
            self._end(3)
        if not self._workbench.watch.on:
            self._end(3)

    def _end(self, code: int) -> None:
        self._code = code
        self._ended.set()

    def _news(self) -> Iterator[Line]:
        workbench = self._workbench
        notice = workbench.messages.notice
        if notice is not None and notice is not self._notice:
            self._notice = notice
            yield note_line(self._plain(notice.text))
        reaction, before = workbench.watch.last, self._reaction
        self._reaction = reaction
        if reaction is not None and reaction is not before:
            yield from self._of_save(reaction)
        scoring = reaction is not None and reaction.step is ReactionStep.SCORING
        if workbench.runs.current is not None and not scoring:
            yield from self._of_run(workbench.runs.current)

    def _of_save(self, reaction: Reaction) -> Iterator[Line]:
        what = f"{visible(join_names(reaction.changed))} changed"
        after = f"{show_duration(reaction.seconds)} after the save" if reaction.seconds is not None else ""
        error = self._workbench.agent.secrets.masked(self._workbench.agent.error)
        match reaction.step:
            case ReactionStep.RUNNING:
                many = counted(reaction.cases, "case")
                yield [(f"{what}: runs {many}, {calls_in_words(reaction.calls)}", "bold")]
            case ReactionStep.BROKEN if error is not None:
                yield [(what, "bold")]
                yield [("! ", "error"), (visible(error_line(error)), "error")]
                yield from ([(f"    {line}", "muted")] for line in visible_lines(error.traceback))
                yield [("Previous results kept; retries on save", "muted")]
            case ReactionStep.DONE if reaction.run is None:
                stale = [*self._stale(), *self._without_result()]
                done = f"{reaction.rescored} rescored without the agent" if reaction.rescored else ""
                problems = list(self._problems())
                done = done or ("no case run" if stale or problems else "nothing to run")
                yield [(f"{what}: {done}", "bold"), (f"  {after}", "muted")]
                yield from problems
                yield from self._verdicts()
                yield from stale
            case ReactionStep.DONE:
                yield from self._sum(after)

    def _of_run(self, run: Run) -> Iterator[Line]:
        if run.unready != self._unready and (run.checks or run.over):
            self._unready = run.unready
            if run.unready:
                yield from check_lines(run.checks, width())
        yield from self._verdicts()
        if run is not self._run and run.over:
            self._run = run
            yield from map(note_line, map(self._plain, run.remarks))
            reaction = self._workbench.watch.last
            if reaction is None or reaction.run != run.number:
                took = f"in {show_duration(run.seconds)}" if run.stage is Stage.FINISHED else ""
                yield from self._sum(took)

    def _verdicts(self) -> Iterator[Line]:
        """Lines for the cases that ran, or whose outcome changed, since the last call."""
        new = []
        for path in self._workbench.outcomes.results.paths():
            for case, scored in self._workbench.outcomes.results.of(path):
                verdict = scored.run, scored.status
                if self._reported.get(case) != verdict:
                    self._reported[case] = verdict
                    new.append(scored.result)
        yield from case_lines(self._workbench.agent.secrets.masked(new), width())

    def _sum(self, when: str) -> Iterator[Line]:
        workbench = self._workbench
        stale = workbench.outcomes.stale()
        current = (case for case in workbench.sets.every_case() if self._counts(case) and case not in stale)
        results = (workbench.outcomes.get(case) for case in current)
        # Results may be stale as soon as they are there, where a file of the agent changed meanwhile.
        nothing = "no current result" if stale else "no case run"
        line = counts_text(Counter(scored.status for scored in results if scored is not None)) or [
            (nothing, "warning")
        ]
        yield [*line, (f"  {when}", "muted")]
        yield from self._problems()
        yield from self._stale()
        yield from self._without_result()

    def _problems(self) -> Iterator[Line]:
        """Why chosen sets cannot be run."""
        sets, chosen = self._workbench.sets, self._chosen
        reasons = [
            problem.stops(eval_set.path)
            for eval_set in sets.listed
            if eval_set.case_path in chosen
            for problem in sets.errors(eval_set)[:1]
        ]
        reasons += [f"{path} does not exist" for path in chosen if sets.by_case_path(path) is None]
        # A config stops all of its sets.
        for reason in dict.fromkeys(map(self._plain, reasons)):
            yield [("! ", "error"), (visible(reason), "error")]

    def _stale(self) -> Iterator[Line]:
        """The number of stale results that are not renewed by themselves."""
        waiting = self._workbench.watch.waiting()
        if waiting.cases:
            many = f"{show_number(len(waiting.cases))} stale"
            then = f": enter runs {plural(len(waiting.cases), 'it', 'them')}" if sys.stdin.isatty() else ""
            yield [(f"{many}{then} ({calls_in_words(waiting.calls)})", "muted")]

    def _not_run(self) -> list[CaseId]:
        """The cases without a result, such as those of new and renamed sets."""
        sets, outcomes = self._workbench.sets, self._workbench.outcomes
        return [case for case in sets.every_case() if self._counts(case) and outcomes.get(case) is None]

    def _without_result(self) -> Iterator[Line]:
        if cases := self._not_run():
            names = short_list([f"{case.path}: {case.eval_id}" for case in cases])
            then = ": enter runs them" if sys.stdin.isatty() else ""
            yield [(visible(f"{show_number(len(cases))} not run{then} ({names})"), "warning")]


def _typed_line() -> str:
    try:
        return sys.stdin.readline()
    except OSError:
        # Linux says EIO where the terminal is gone.
        return ""
