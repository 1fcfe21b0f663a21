"""Header and status line: the agent, the current counts, the run, and the reaction to a save."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evaltui.core.conversation.responding import asker_of, expected_call
from evaltui.core.model.errors import NO_PYTHON
from evaltui.text.figures import counted, show_clock, show_duration, show_elapsed, show_number
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells
from evaltui.text.outcomes import COUNTED_STATUSES, ROLES, RUNNING, count_text, counts_line, glyph
from evaltui.text.plots import stacked_bar
from evaltui.text.values import cut, visible
from evaltui.tui.widgets.fields import first_words
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.files.saves import Reaction, ReactionStep, calls_in_words, error_line, join_names
from evaltui.workbench.state import Run, Stage
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.core.model.outcome import ErrorInfo
    from evaltui.runs.listing import RunRow

FRAMEWORKS = {
    "adk": "ADK agent",
    "native": "native agent",
    "function": "function",
    "adk_api": "ADK api_server",
    "a2a": "A2A agent",
    "langgraph": "LangGraph graph",
    "openai-agents": "OpenAI agent",
    "pydantic-ai": "Pydantic AI agent",
}
_GAP = ("   ", "")
_BETWEEN_FACTS = " · "
_BAR_WIDTH = 32
_MIN_BAR = 8
_MAX_ERROR = 90


def header_ends(workbench: Workbench, name: str, width: int) -> tuple[Line, Line]:
    """The header: the agent at the left, as much of it as fits; modes, unsaved changes and counts at the
    right.

    `name` is the agent's folder or its URL.
    """
    right: Line = []
    if workbench.read_only:
        right += [("read-only", "warning"), _GAP]
    if workbench.watch.on:
        right += [("●", "accent"), (" watch", "muted"), _GAP]
    if workbench.is_listening:
        right += [("●", "accent"), (" listening", "muted"), _GAP]
    if unsaved := len(workbench.editing.unsaved()):
        right += [("●", "warning"), (f" {unsaved} unsaved", "muted"), _GAP]
    right += [*counts_line(workbench.outcomes.counts()), (" ", "")]
    info = workbench.agent.info or {}
    url = workbench.agent.address.url
    left: Line = [(" ", ""), (visible(name), "bold accent"), ("  ", "")]
    if workbench.agent.settings_problem:
        left.append(("! settings cannot be used", "error"))
    elif (failed := workbench.agent.error) is not None:
        cannot = f"cannot be {'loaded' if url else 'imported'}"
        left.append((f"! {'no usable Python' if failed.type == NO_PYTHON else cannot}", "error"))
    else:
        root, framework = str(info.get("name") or ""), str(info.get("framework") or "")
        shown_names = (name, name.rpartition("/")[2], "root_agent")
        facts = [root if root not in shown_names else "", FRAMEWORKS.get(framework, framework)]
        facts.append(str(info.get("model") or ""))
        if not url:
            recordings = f"recordings {workbench.agent.settings.record}"
            facts += [recordings, _python(workbench)]
        if error := workbench.sets.config_error:
            left += [(f"! {visible(cut(error, _MAX_ERROR))}", "error"), _GAP]
        if workbench.agent.lacks_key:
            left += [("! GOOGLE_API_KEY is not set", "warning"), _GAP]
        shown = [visible(fact) for fact in facts if fact]
        room = width - cells(left) - cells(right) - 2
        left.append((_BETWEEN_FACTS.join(first_words(shown, room, len(_BETWEEN_FACTS))), "muted"))
    return left, right


def _python(workbench: Workbench) -> str:
    """The agent's Python and why it was chosen: `Python 3.12 (.venv)`; "" before it is known."""
    check = workbench.agent.python_check
    version_text = str((workbench.agent.info or {}).get("python") or (check.version if check else ""))
    reason = workbench.agent.address.interpreter.reason
    version = ".".join(version_text.split(".")[:2])
    return f"Python {version}{f' ({visible(reason)})' if reason else ''}" if version else ""


def status_line(workbench: Workbench, width: int) -> Line:
    """The status line: unsaved changes that a crash would lose, waiting requests to the user, then the
    run."""
    if problem := workbench.editing.recovery_problem:
        save = key_of("save")
        lost: Line = [(f"! No crash recovery: {visible(problem)}", "warning"), _GAP, (save, "bold accent")]
        lost.append((" saves", "muted"))
        return [*lost, _GAP, *_state_line(workbench, max(0, width - cells(lost) - cells([_GAP])))]
    return _state_line(workbench, width)


def _state_line(workbench: Workbench, width: int) -> Line:
    if not workbench.has_chat or not (waiting := workbench.chat.waiting()):
        return run_line(workbench, width)

    asks = workbench.chat.transcript.asks if workbench.chat.transcript is not None else ""
    call = next((call_waiting for call_waiting in waiting if call_waiting.id == asks), None) or expected_call(
        waiting
    )
    if call is None:
        return run_line(workbench, width)
    waits: Line = [
        ("● ", "warning"),
        (visible(asker_of(call)), "bold"),
        (" is waiting for your response", ""),
    ]
    return [*waits, _GAP, *run_line(workbench, max(0, width - cells(waits) - cells([_GAP])))]


def run_line(workbench: Workbench, width: int) -> Line:
    """The run in progress, or the end of the last one; in watch mode, the reaction to a save."""
    if (more := workbench.runs.more) is not None:
        return [glyph(RUNNING), (f" {visible(str(more))}", "")]
    run, reaction = workbench.runs.current, workbench.watch.last
    past = workbench.outcomes.previous_run
    if past is not None:
        key = key_of("step_back")
        return [
            (visible(past.title), "bold"),
            (f": {past.extent}" if past.extent else "", "warning"),
            _GAP,
            (key, "bold accent"),
            (" back to the last results", "muted"),
        ]
    is_over = run is None or run.over
    if reaction is not None and reaction.run is None and is_over and (run is None or reaction.at > run.at):
        after = _stale_line(workbench, width) if reaction.step is ReactionStep.DONE else []
        return [*_reaction_line(reaction, workbench.agent.error), *after]
    if run is None and workbench.outcomes.last_run is not None:
        return [*_stored_run_line(workbench.outcomes.last_run), *_stale_line(workbench, width)]
    if run is None:
        return _no_run_yet(workbench)
    of_save = reaction if reaction is not None and reaction.run == run.number else None
    if not run.over:
        calls: Line = [_GAP, (calls_in_words(of_save.calls), "muted")] if of_save else []
        return [*_progress_line(run, width), *calls, *_unready_line(run)]
    remarks = [span for remark in run.remarks for span in (_GAP, (visible(remark), "warning"))]
    ended = _rerun_line(of_save) if of_save and run.stage is Stage.FINISHED else _end_line(run, width)
    return [
        *ended,
        *_unready_line(run),
        *remarks,
        *_stale_line(workbench, width),
    ]


def _no_run_yet(workbench: Workbench) -> Line:
    cases = sum(len(eval_set.cases) for eval_set in workbench.sets.listed)
    if not cases:
        return _loaded_line(workbench.agent)
    if workbench.outcomes.is_loading:
        return [("Loading results…", "muted")]
    if workbench.outcomes.counts_of():
        return []
    key = key_of("run_all")
    what = f"all {counted(cases, 'case')}" if cases > 1 else "the case"
    return [("No run yet", "muted"), _GAP, (key, "bold accent"), (f" runs {what}", "muted")]


def _loaded_line(agent: AgentState) -> Line:
    """The loading time: `✓ Agent loaded in 0.8 s`."""
    if agent.loaded_in is None or agent.error is not None:
        return []
    return [("✓ ", "success"), ("Agent loaded", ""), (f" in {show_duration(agent.loaded_in)}", "muted")]


def _stored_run_line(row: RunRow) -> Line:
    """The newest run of earlier sessions: `✗ Run 18 of today 14:05: 7 passed, 5 failed in 14.5 s`."""
    title = f"R{row.title[1:]}"
    if row.number:
        # What has no number is called by its moment.
        title += f" of {show_clock(row.started, datetime.now(UTC))}"
    if row.problem:
        return [("! ", "error"), (f"{title} is unreadable", "")]
    done = f"{show_number(row.totals.cases)} of {show_number(row.selected)}"
    if row.ending == "going on":
        # Only this much of it stays true while it is shown.
        return [("◐ ", "accent"), (f"{title}: started in another process", "")]
    if row.ending == "interrupted":
        how = "stopped" if row.stopped else "interrupted"
        return [("– ", "warning"), (f"{title}: {how} after {done}", "")]
    not_evaluated = row.totals.counts.get("NOT_EVALUATED", 0) + row.not_run
    return _tally_line({**row.totals.counts, "NOT_EVALUATED": not_evaluated}, title, row.seconds)


def _progress_line(run: Run, width: int) -> Line:
    """The progress of a run: `◐ Run 19 all sets ━━━━━━━━───── 7/16  4 in flight  0:07, about 9 s left`."""
    name: Line = [("◐ ", "accent"), (f"Run {run.number}", "bold"), (f" {visible(run.title)}", "muted")]
    clock = show_elapsed(run.seconds)
    if run.stage in (Stage.READING, Stage.STARTING):
        workers = [_GAP, (run.scale.in_words, "muted")] if run.scale is not None else []
        return [*name, _GAP, (run.stage, ""), _GAP, (clock, ""), *workers]
    if run.stage is Stage.CANCELLING:
        name[1] = (f"Cancelling run {run.number}", "bold")
    total = len(run.selected)
    parts = [(run.counts[status], ROLES[status]) for status in COUNTED_STATUSES]
    bar = stacked_bar([*parts, (len(run.running), "accent")], total, _BAR_WIDTH if width >= 120 else _MIN_BAR)
    left = None if run.stage is Stage.CANCELLING else run.seconds_left
    clock += f", about {show_duration(max(1, round(left)))} left" if left is not None else ""
    line: Line = [
        *name,
        ("  ", ""),
        *bar,
        ("  ", ""),
        (f"{show_number(len(run.done))}/{show_number(total)}", "bold"),
    ]
    if run.scale is not None:
        where = run.scale.in_words
        fits = cells([*line, _GAP, (clock, ""), _GAP, (where, "")]) <= width - 2
        facts = [clock, where if fits else run.scale.in_short]
    else:
        facts = [f"{show_number(len(run.running))} in flight" if run.running else "", clock]
    calls = (
        f"{show_number(run.calls.replayed)} replayed" if run.calls.replayed else "",
        f"{show_number(run.calls.live)} live" if run.calls.live else "",
    )
    facts.append(", ".join(call for call in calls if call))
    if run.traffic.throttled:
        facts.append(f"throttled {show_duration(run.traffic.throttled)}")
    return [*line, *(span for fact in facts if fact for span in (_GAP, (fact, "muted")))]


def _end_line(run: Run, width: int) -> Line:
    """The end of a run: `✗ Run 18 finished: 7 passed, 5 failed in 14.5 s`."""
    if run.stage is Stage.FAILED:
        return [("! ", "error"), (f"Run {run.number} failed to start", "")]
    done = f"after {show_number(len(run.done))} of {show_number(len(run.selected))}"
    if run.is_stopped:
        # A remark says why.
        note = "; finished results are kept" if width >= 120 else ""
        return [("– ", "warning"), (f"Run {run.number} stopped {done}{note}", "")]
    if run.stage is Stage.CANCELLED:
        return [("– ", "warning"), (f"Run {run.number} cancelled {done}; finished results are kept", "")]
    return _tally_line(run.counts, f"Run {run.number}{' finished' if width >= 120 else ''}", run.seconds)


def _tally_line(by_status: Mapping[str, int], title: str, seconds: float | None) -> Line:
    """The counts of a run: `✗ Run 18: 7 passed, 5 failed in 14.5 s`."""
    counts = {status: number for status in COUNTED_STATUSES if (number := by_status.get(status, 0))}
    worst = next(
        (status for status in ("ERROR", "FAILED", "FLAKY", "NOT_EVALUATED") if status in counts), "PASSED"
    )
    mark, role = glyph("FAILED" if worst == "ERROR" and "FAILED" in counts else worst)
    tally = ", ".join(count_text(status, number) for status, number in counts.items())
    what: Line = [(f"{mark} ", role), (f"{title}: {tally or 'no cases'}", "")]
    return [*what, (f" in {show_duration(seconds)}", "muted")] if seconds is not None else what


def _unready_line(run: Run) -> Line:
    """The metrics that cannot be computed as they should."""
    if not run.unready:
        return []
    key = key_of("preflight")
    return [_GAP, (visible(run.unready), "warning"), (f"  {key}", "bold accent"), (" why", "muted")]


def _reaction_line(reaction: Reaction, error: ErrorInfo | None) -> Line:
    """The reaction to a save without a run, or before one."""
    saved: Line = [("● ", "accent"), (f"{visible(join_names(reaction.changed))} saved", "")]
    if reaction.step in (ReactionStep.IMPORTING, ReactionStep.SCORING):
        return [("◐ ", "accent"), *saved[1:], _GAP, (str(reaction.step), "muted")]
    if reaction.step is ReactionStep.BROKEN and error is not None:
        return [
            (f"! {visible(error_line(error))}", "error"),
            _GAP,
            ("previous results kept; retries on save", "muted"),
        ]
    done = f"{counted(reaction.rescored, 'case')} rescored" if reaction.rescored else "nothing to run"
    return [*saved, _GAP, (done, "muted"), *_after_save_line(reaction)]


def _rerun_line(reaction: Reaction) -> Line:
    """The reaction after its run: `● agent.py saved   5 cases rerun   verdict after 0.4 s`."""
    saved: Line = [("● ", "accent"), (f"{visible(join_names(reaction.changed))} saved", "")]
    return [*saved, _GAP, (f"{counted(reaction.cases, 'case')} rerun", ""), *_after_save_line(reaction)]


def _after_save_line(reaction: Reaction) -> Line:
    if reaction.seconds is None:
        return []
    return [_GAP, (f"verdict after {show_duration(reaction.seconds)}", "muted")]


def _stale_line(workbench: Workbench, width: int) -> Line:
    """The stale cases, and the cost of running them; in a wide line, the key that runs them."""
    waiting = workbench.watch.waiting()
    if not waiting.cases:
        return []
    what = f"{show_number(len(waiting.cases))} stale, {calls_in_words(waiting.calls)}"
    # In a narrow one, the footer has it.
    key = [_GAP, (key_of("run_waiting"), "bold accent"), (" run stale", "muted")] if width >= 120 else []
    return [_GAP, (what, "muted"), *key]
