"""Running a case or a set several times: how often, what must pass, and what it costs."""

from __future__ import annotations

from evaltui.core.model.case_id import CaseId
from evaltui.text.figures import counted
from evaltui.workbench.open_sets import OpenSets
from evaltui.workbench.outcomes import Outcomes
from evaltui.workbench.state import Repeated, Run, Selection

_USUAL = "5 all"
# Whoever wants more has a script.
_MOST = 1000


def parse_repeated(text: str) -> Repeated:
    """`5`, `5 majority` or `5 0.6`. Raises ValueError with a sentence for anything else."""
    number, _, policy = text.strip().partition(" ")
    if not number.isdecimal() or not 1 <= int(number) <= _MOST:
        raise ValueError(f"Start with a number from 1 to {_MOST}, e.g. {_USUAL}")
    match policy.strip():
        case "" | "all":
            return Repeated(int(number), "all")
        case "majority":
            return Repeated(int(number), "majority")
        case share:
            return Repeated(int(number), _share(share))


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ValueError("The pass rule is all, majority or a pass rate above 0 up to 1, e.g. 0.6")
    return share


def repeat_problem(text: str) -> str | None:
    """Why a text says nothing of the kind, as a sentence."""
    try:
        parse_repeated(text)
    except ValueError as error:
        return str(error)
    return None


def repeat_title(sets: OpenSets, selection: Selection) -> str:
    """The question, with what would be run."""
    key = selection.case
    if key is not None:
        return key.eval_id
    eval_set = sets.by_case_path(selection.path)
    count, name = (len(eval_set.cases), eval_set.eval_set_id) if eval_set else (0, "the set")
    return f"{name}, {counted(count, 'case')}"


def repeat_cost(sets: OpenSets, outcomes: Outcomes, selection: Selection, runs: int) -> str:
    """`15 executions, 30 live model calls`, as in the last run; those of cases that never ran are unknown."""
    case, eval_set = selection.case, sets.by_case_path(selection.path)
    cases = (
        [case]
        if case
        else [CaseId(eval_set.case_path, one.eval_id) for one in eval_set.cases]
        if eval_set
        else []
    )
    known = [
        scored.calls for one in cases if (scored := outcomes.get(one)) is not None and scored.calls.known
    ]
    executions = counted(len(cases) * runs, "execution")
    if len(known) < len(cases):
        return f"{executions}, unknown number of model calls"
    calls = sum(one.live for one in known) * runs
    return f"{executions}, {counted(calls, 'live model call')} as in the last run"


def usual_repeat(sets: OpenSets, selection: Selection, last: Run | None) -> str:
    """What was asked for last, or what the config of the set says, or five times."""
    if last is not None and last.repeated is not None:
        runs, pass_if = last.repeated
        return f"{runs} {pass_if}"
    opened = sets.opened(sets.file_of(selection.path)) if selection.path else None
    if opened is not None and opened.config is not None and opened.config.config.evaltui.repeats.runs > 1:
        repeats = opened.config.config.evaltui.repeats
        return f"{repeats.runs} {repeats.pass_if}"
    return _USUAL
