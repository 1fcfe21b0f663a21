"""How often cases are to be run, as the user types it."""

from __future__ import annotations

from evaltui.workbench.open_sets import OpenSets
from evaltui.workbench.state import Repeated, Run, Selection

EXAMPLE = "how often, then what must pass: all, majority or a share such as 0.6"
_USUAL = "5 all"
# Whoever wants more has a script.
_MOST = 1000


def parse_repeated(text: str) -> Repeated:
    """`5`, `5 majority` or `5 0.6`. Raises ValueError with a sentence for anything else."""
    number, _, policy = text.strip().partition(" ")
    if not number.isdecimal() or not 1 <= int(number) <= _MOST:
        raise ValueError(f"it begins with a number from 1 to {_MOST}: {_USUAL}")
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
        raise ValueError("what must pass is all, majority, or a share above 0 and up to 1 such as 0.6")
    return share


def problem_of(text: str) -> str | None:
    """Why a text says nothing of the kind, as a sentence."""
    try:
        parse_repeated(text)
    except ValueError as error:
        return str(error)
    return None


def title_of(sets: OpenSets, selection: Selection) -> str:
    """The question, with what would be run."""
    key = selection.case
    if key is not None:
        return f"Run {key.eval_id} several times"
    eval_set = sets.by_case_path(selection.path)
    count, name = (len(eval_set.cases), eval_set.eval_set_id) if eval_set else (0, "the set")
    return f"Run every case of {name} several times ({count} cases)"


def proposal(sets: OpenSets, selection: Selection, last: Run | None) -> str:
    """What was asked for last, or what the config of the set says, or five times."""
    if last is not None and last.repeated is not None:
        runs, pass_if = last.repeated
        return f"{runs} {pass_if}"
    opened = sets.opened(sets.file_of(selection.path)) if selection.path else None
    if opened is not None and opened.config is not None and opened.config.config.evaltui.repeats.runs > 1:
        repeats = opened.config.config.evaltui.repeats
        return f"{repeats.runs} {repeats.pass_if}"
    return _USUAL
