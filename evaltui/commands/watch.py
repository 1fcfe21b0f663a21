"""`evaltui run --watch`: runs the affected cases after each save, until ctrl+c."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial

from evaltui.commands.chosen_cases import chosen_cases
from evaltui.commands.output import UsageError, agent_to_run, settings_of, width, write_lines, write_stderr
from evaltui.core.metrics.preflight import check_lines
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.project.interpreters import look_for_interpreter
from evaltui.reports.console import case_lines, counts_text
from evaltui.runner.interrupts import INTERRUPTED
from evaltui.text.figures import counted, plural, show_duration, show_number
from evaltui.text.lines import Line
from evaltui.text.values import visible, visible_lines
from evaltui.workbench.files.saves import Reaction, ReactionStep, calls_in_words, error_line, join_names
from evaltui.workbench.messages import WorkbenchMessage
from evaltui.workbench.state import RepeatChoice, Run, RunRef, Selection, Stage
from evaltui.workbench.workbench import Workbench

# What a run that never ends cannot do, and what it would be without the option.
_NOT_WHILE_WATCHING: dict[str, object] = {
    "initial_session": None,
    "agent": None,
    "failed": False,
    "confidence": None,
    "max_runs": None,
    "estimate": False,
    "shard": None,
    "durations": None,
    "store_durations": None,
    "resume": None,
    "retry_errors": None,
    "baseline": None,
    "fail_on_regression": False,
    "alpha": None,
    "require": (),
    "report": [],
    "adk_verdicts": False,
    "exit_zero": False,
}


async def watch(options: argparse.Namespace) -> int:
    """Run the selected cases, then after each save the cases that it affects, until interrupted.

    Raises UsageError and SelectionError. The exit code is for where the system cannot watch the files.
    """
    for name, default in _NOT_WHILE_WATCHING.items():
        if getattr(options, name) != default:
            raise UsageError(f"--{name.replace('_', '-')} cannot be used together with --watch")
    if options.config is not None and not options.config.is_file():
        raise UsageError(f"{options.config} does not exist")
    chosen = chosen_cases(options)
    paths = [str(eval_set.path) for eval_set, _ in chosen if eval_set.origin == "given"]
    # Wrong settings are reported before the run starts.
    settings_of(options)
    agent = agent_to_run(options)
    find_python = partial(look_for_interpreter, agent.folder, options.python)
    workbench = Workbench(agent, paths, vars(options), options.config, find_python=find_python)
    if options.runs is not None:
        workbench.watch.repeated = RepeatChoice(options.runs, options.pass_if or "all")
    try:
        return await _Lines(workbench, {eval_set.case_path: ids for eval_set, ids in chosen}).follow()
    finally:
        await workbench.close()


class _Lines:
    """Tells what happens in a workbench. `chosen` are the cases that count, by their sets, None for all."""

    def __init__(self, workbench: Workbench, chosen: dict[str, tuple[str, ...] | None]) -> None:
        self._workbench = workbench
        self._chosen = chosen
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

    def _plain(self, text: str) -> str:
        return self._workbench.agent.secrets.mask_text(text)

    def _counts(self, case: CaseId) -> bool:
        ids = self._chosen.get(case.path)
        return case.path in self._chosen and (ids is None or case.eval_id in ids)

    def _entered(self) -> None:
        """Waits for the enter key, or for the end of the input."""
        if not _typed_line():
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._end(INTERRUPTED)
        elif self._workbench.watch.waiting().cases:
            self._workbench.watch.run_waiting()

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
            yield [("note  ", "warning"), (visible(self._plain(notice.text)), "")]
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
                stale = list(self._stale())
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
            yield from ([("note  ", "warning"), (visible(self._plain(remark)), "")] for remark in run.remarks)
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
        current = (case for case in workbench.sets.every_case() if case not in stale)
        results = (workbench.outcomes.get(case) for case in current)
        line = counts_text(Counter(scored.status for scored in results if scored is not None)) or [
            ("no case run", "warning")
        ]
        yield [*line, (f"  {when}", "muted")]
        yield from self._stale()

    def _problems(self) -> Iterator[Line]:
        """Why chosen sets cannot be run."""
        sets = self._workbench.sets
        chosen = (eval_set for eval_set in sets.listed if eval_set.case_path in self._chosen)
        reasons = (
            problem.stops(eval_set.path) for eval_set in chosen for problem in sets.errors(eval_set)[:1]
        )
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


def _typed_line() -> str:
    try:
        return sys.stdin.readline()
    except OSError:
        # Linux says EIO where the terminal is gone.
        return ""
