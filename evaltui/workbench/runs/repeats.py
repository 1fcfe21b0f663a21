"""Repeats of a case or a set: their number, the pass policy, and their cost."""

from __future__ import annotations

from evaltui.core.compare.repeats import RunsUntilDecided, pass_if_of
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.confidence import Confidence
from evaltui.core.model.config import PassIf
from evaltui.text.figures import counted
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.state import RepeatChoice, Run, Selection

_DEFAULT_REPEATS = "5 all"
_CONFIDENT_REPEATS = "50 all 0.95"
# Whoever wants more has a script.
_MAX_RUNS = 1000


def parse_repeated(text: str) -> RepeatChoice:
    """Parses `5`, `5 majority`, `5 0.6`, or with a confidence `50 all 0.95`. Raises ValueError with a
    sentence for anything else."""
    number, *others = text.split() or [""]
    if not number.isdecimal() or not 1 <= int(number) <= _MAX_RUNS:
        raise ValueError(f"Start with a number from 1 to {_MAX_RUNS}, e.g. {_DEFAULT_REPEATS}")
    if len(others) > 2:
        raise ValueError(f"Give a number, a pass rule and a confidence, e.g. {_CONFIDENT_REPEATS}")
    repeated = RepeatChoice(int(number), _policy(others[0]) if others else "all")
    return _with_confidence(repeated, others[1]) if len(others) > 1 else repeated


def _policy(text: str) -> PassIf:
    try:
        policy = pass_if_of(text)
    except ValueError:
        policy = 0.0
    if isinstance(policy, float) and not 0 < policy <= 1:
        raise ValueError("The pass rule is all, majority or a pass rate above 0 up to 1, e.g. 0.6")
    return policy


def _with_confidence(repeated: RepeatChoice, text: str) -> RepeatChoice:
    try:
        confident = repeated._replace(confidence=float(text))
        confidence = confidence_of(confident)
    except ValueError:
        confidence = None
    if confidence is None:
        raise ValueError("The confidence is a number above 0.5 and below 1, e.g. 0.95")
    fewest = RunsUntilDecided(repeated.pass_if, confidence).test.runs_to_pass
    if repeated.runs < fewest:
        raise ValueError(f"With this confidence no case passes in fewer than {counted(fewest, 'run')}")
    return confident


def confidence_of(repeated: RepeatChoice) -> Confidence | None:
    """The confidence; None for a fixed number of runs. Raises ValueError for an invalid confidence."""
    return None if repeated.confidence is None else Confidence(repeated.confidence, repeated.runs)


def repeat_problem(text: str) -> str | None:
    """Why a text is no valid number of repeats, as a sentence."""
    try:
        parse_repeated(text)
    except ValueError as error:
        return str(error)
    return None


def more_problem(text: str) -> str | None:
    """Why a text is no valid number of more repeats, as a sentence."""
    return None if text.isdecimal() and 1 <= int(text) <= _MAX_RUNS else f"A number from 1 to {_MAX_RUNS}"


def repeat_title(sets: OpenSets, selection: Selection) -> str:
    """The title of the dialog: the cases that would be run."""
    key = selection.case
    if key is not None:
        return key.eval_id
    eval_set = sets.by_case_path(selection.path)
    count, name = (len(eval_set.cases), eval_set.eval_set_id) if eval_set else (0, "the set")
    return f"{name}, {counted(count, 'case')}"


def repeat_cost(sets: OpenSets, outcomes: Outcomes, selection: Selection, repeated: RepeatChoice) -> str:
    """The cost: `15 executions, 30 live model calls`, as in the last run; unknown for cases that were never
    run."""
    runs, most = repeated.runs, "at most " if repeated.confidence else ""
    case, eval_set = selection.case, sets.by_case_path(selection.path)
    cases = (
        [case]
        if case
        else [CaseId(eval_set.case_path, stored.eval_id) for stored in eval_set.cases]
        if eval_set
        else []
    )
    calls_of_cases = [
        scored.calls
        for case_id in cases
        if (scored := outcomes.get(case_id)) is not None and scored.calls.is_known
    ]
    executions = f"{most}{counted(len(cases) * runs, 'execution')}"
    if len(calls_of_cases) < len(cases):
        return f"{executions}, unknown number of model calls"
    calls = sum(model_calls.live for model_calls in calls_of_cases) * runs
    return f"{executions}, {counted(calls, 'live model call')} as in the last run"


def usual_repeat(sets: OpenSets, selection: Selection, last: Run | None) -> str:
    """The last used repeats, else those of the config of the set, else five."""
    if last is not None and last.repeated is not None:
        return " ".join(str(part) for part in last.repeated if part is not None)
    opened = sets.opened(sets.file_of(selection.path)) if selection.path else None
    if opened is not None and opened.config is not None and opened.config.config.evaltui.repeats.runs > 1:
        repeats = opened.config.config.evaltui.repeats
        return f"{repeats.runs} {repeats.pass_if}"
    return _DEFAULT_REPEATS
