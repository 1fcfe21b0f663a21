"""Whether a verdict is current: the only place that decides this."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.modes import Modes, ToolMode, modes_of
from evaltui.core.model.problems import EvalSetError
from evaltui.runner.recording_files import Recordings, read_recordings, recordings_path
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.state import CaseOutcome, SameConfig

if TYPE_CHECKING:
    from evaltui.core.model.config import EvalConfig
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.project.eval_set_file import EvalSetFile


class State(StrEnum):
    """The state of a verdict, compared with agent, case and config."""

    FRESH = "fresh"
    """All are the same as in the run."""
    RESCORED = "rescored"
    """The agent had the same input in the run; the result is scored by the current case and config."""
    THEN = "then"
    """The verdict is that of an opened run."""
    STALE = "stale"
    """Only another run can give the current verdict."""


class Freshness(NamedTuple):
    """The state of a verdict, and the changes since its run."""

    state: State
    reasons: tuple[str, ...] = ()
    """The changes since the run: files of the agent, `case`, `config`, `set`, `recording`, `prices`,
    `settings`, or the name of a mode; `traces` alone where the agent was not run."""

    @property
    def is_stale(self) -> bool:
        return self.state is State.STALE


EXPECTATIONS = ("case", "config", "set")
"""The reasons that concern eval data, not the agent."""
TRACES_REASON = "traces"
_COST = "cost_usd"
FRESH = Freshness(State.FRESH)
_OPENED = Freshness(State.THEN)


def freshness(
    result: CaseOutcome,
    case: StoredCase | None,
    config: SameConfig | None,
    agent: AgentState,
    eval_set: EvalSetFile | None,
    *,
    changed_recordings: Mapping[RecordingOf, bool],
    broken: Collection[str] = (),
    is_rescored: bool = False,
    is_opened: bool = False,
) -> Freshness:
    """The freshness of a result.

    `case`, `config` and `eval_set` are the current ones; they are None before they are read, and where they
    are `broken`. `is_rescored` tells whether the result is about to be scored again: it may not be scored by
    the current case yet. `changed_recordings` is the last comparison of recordings. `is_opened` tells whether
    the result is that of an opened earlier run.
    """
    if result.of_traces and not is_opened:
        return Freshness(State.STALE, (TRACES_REASON,))
    is_case = case is None or case is result.stored
    is_config = config is None or config.config is result.config
    is_set = eval_set is None or eval_set.eval_set_id == result.figures.eval_set_id
    has_other_recording = _has_other_recording(result, case, eval_set, changed_recordings)
    is_same = is_case and is_config and is_set and not has_other_recording
    is_same = is_same and not (_different_mode(result, agent) or agent.settings_problem)
    is_same = is_same and result.prices == agent.settings.prices and not result.changed_files
    if result.code == agent.code_version and is_same and _is_of_its_run(result) and not broken:
        return _OPENED if is_opened else FRESH
    # No run begins with settings that cannot be read.
    settings = ["settings"] if agent.settings_problem else []
    reasons = [*files_changed(result, agent), *settings, *broken]
    if case is not None and has_other_input(result, case, config, agent):
        reasons.append("case")
    if config is not None and _changes_the_run(result, case, config.config):
        reasons.append("config")
    tools = (result.config if config is None else config.config).evaltui.tools
    if (mode := _different_mode(result, agent)) or (has_other_recording and _modes_now(agent, tools).uses):
        reasons.append(mode or "recording")
    if result.prices is not None and _is_priced(result.config if config is None else config.config):
        reasons += [] if result.prices == agent.settings.prices else ["prices"]
    is_then = is_opened and (result.unscored or not any(_scoring_changes(result)))
    if is_then or (not reasons and (result.unscored or not is_rescored)):
        reasons += _unscored_changes(result, case, config)
        # Its rules and marks name the set.
        reasons += [] if is_set else ["set"]
    if is_then or reasons:
        return Freshness(State.THEN if is_then else State.STALE, tuple(dict.fromkeys(reasons)))
    otherwise = () if result.unscored else tuple(_scoring_changes(result))
    return Freshness(State.RESCORED, otherwise) if otherwise else FRESH


def _is_of_its_run(result: CaseOutcome) -> bool:
    return result.ran is None and not result.unscored and not result.undecided


def files_changed(result: CaseOutcome, agent: AgentState) -> Iterator[str]:
    """The files of the agent that changed since the run."""
    then = result.changed_files
    if result.code != agent.code_version or then:
        names = dict.fromkeys([*then, *agent.files_changed_since(result.code, result.run.started)])
        # Of those that differed when the run was read, the change may have been taken back since.
        files = [name for name in names if name not in then or agent.differs_from_run(name, then[name])]
        yield from files or (["agent"] if result.code < 0 else [])


def has_other_input(
    result: CaseOutcome, case: StoredCase, config: SameConfig | None, agent: AgentState
) -> bool:
    """Whether the input of the agent for a case differs from that in the run, as far as it is known."""
    before = result.stored if result.ran is None else result.ran[0]
    if before is not None and (before is case or before.says_the_same(case)):
        return False
    modes = _modes_now(agent, (result.config if config is None else config.config).evaltui.tools)
    try:
        return _input_fingerprint(case, modes.stubs) != (
            result.agent_input if before is None else _input_fingerprint(before, modes.stubs)
        )
    except ValueError:
        # No agent can be given this.
        return True


def _modes_now(agent: AgentState, by_tool: Mapping[str, ToolMode]) -> Modes:
    # Nothing is recorded of an agent behind a network.
    record = "off" if agent.address.url else agent.settings.record
    return modes_of(record, agent.settings.tools, by_tool)


def _different_mode(result: CaseOutcome, agent: AgentState) -> str:
    """The mode that makes models or tools answer differently than in the run; "" for none.

    The next run replays what a run has recorded.
    """
    then, now = result.modes, _modes_now(agent, {})
    if then is None or then == now:
        return ""
    if then.replays != now.replays and then.models != "record":
        return "record mode"
    if then.tools == now.tools or "stub" not in (then.tools, now.tools) or then.tools == "record":
        return ""
    return "tool mode"


@lru_cache(1024)
def _input_fingerprint(case: StoredCase, stubs: bool) -> str:
    """The fingerprint of the agent's input for a case. Raises ValueError for an invalid case."""

    from evaltui.core.recordings.given import agent_input_fingerprint

    return agent_input_fingerprint(case.model(), Modes(tools="stub" if stubs else "live"))


def _changes_the_run(result: CaseOutcome, case: StoredCase | None, config: EvalConfig) -> bool:
    """Whether a config changes the run itself: by its stubbed tools, its simulated user, more repeats than
    the result has, or the prices of calls whose cost is limited."""
    before = result.config if result.ran is None else result.ran[1]
    if before is None or before is config:
        return False
    is_simulated = case is not None and case.outline.turns is None
    simulators = before.user_simulator_config, config.user_simulator_config
    runs = config.evaltui.repeats.runs
    return (
        before.evaltui.tools != config.evaltui.tools
        or before.evaltui.repeats.runs != runs > result.figures.runs
        or (is_simulated and simulators[0] != simulators[1])
        or (_is_priced(config) and before.evaltui.prices != config.evaltui.prices)
    )


def _is_priced(config: EvalConfig) -> bool:
    """Whether a config limits the cost of calls."""
    return _COST in config.criteria or _COST in config.evaltui.criteria


def _unscored_changes(
    result: CaseOutcome, case: StoredCase | None, config: SameConfig | None
) -> Iterator[str]:
    """The changes that the result is not scored by yet."""
    ran_case, ran_config = result.ran if result.unscored and result.ran else (result.stored, result.config)
    if result.undecided:
        yield from _scoring_changes(result)
    is_case = case is None or case is result.stored or case.says_the_same(result.stored)
    if ran_case is None or not is_case:
        yield "case"
    if ran_config is None or not (config is None or config(result.config)):
        yield "config"


def _scoring_changes(result: CaseOutcome) -> Iterator[str]:
    """The differences between the data that scored a result and the data of its run."""
    if result.logged is not None and result.logged.figures.eval_set_id != result.figures.eval_set_id:
        yield "set"
    case, config = result.ran or (result.stored, result.config)
    is_config = config is result.config or (config is not None and SameConfig(result.config)(config))
    if case is None or (result.undecided and is_config) or not case.says_the_same(result.stored):
        yield "case"
    if not is_config:
        yield "config"


RecordingOf = tuple[CaseId, str, str]
"""A case, the id of its set, and the fingerprints of its recordings in a run."""


def _has_other_recording(
    result: CaseOutcome,
    case: StoredCase | None,
    eval_set: EvalSetFile | None,
    changed: Mapping[RecordingOf, bool],
) -> bool:
    """Whether the recording of a result's run has changed since, as compared last."""
    if not result.recorded or eval_set is None or case is None:
        return False
    set_id, then = eval_set.eval_set_id, (result.logged or result.ref).figures
    # Recordings are by the ids of set and case: those of a renamed one have not been compared yet.
    is_renamed = (set_id, case.eval_id) != (then.eval_set_id, then.eval_id)
    return changed.get((CaseId(eval_set.case_path, case.eval_id), set_id, result.recorded), is_renamed)


def changed_recordings(
    results: Iterable[tuple[CaseId, CaseOutcome]], sets: Mapping[str, EvalSetFile | None]
) -> dict[RecordingOf, bool]:
    """In a thread: whether the recordings of the cases have changed since their run."""

    recordings: dict[str, Recordings | None] = {}
    for path, eval_set in sets.items():
        if eval_set is not None:
            try:
                recordings[path] = read_recordings(recordings_path(eval_set.path, eval_set.eval_set_id))
            except EvalSetError:
                # No run replays it as it is, such as with conflict markers of git.
                recordings[path] = None
    changed: dict[RecordingOf, bool] = {}
    for case, scored in results:
        if (eval_set := sets.get(case.path)) is not None:
            file, runs = recordings[case.path], range(scored.figures.runs)
            now = None if file is None else " ".join(file.fingerprint(case.eval_id, run) for run in runs)
            changed[case, eval_set.eval_set_id, scored.recorded] = scored.recorded != now
    return changed
