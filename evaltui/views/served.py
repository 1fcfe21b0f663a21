"""Models that answered: where another one did than was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.served import ServedModel
from evaltui.text.figures import counted

_Answered = tuple[CaseSummary, ServedModel]


def other_models(cases: Iterable[CaseSummary]) -> Iterator[str]:
    """A note for each model that another one answered for in live calls, with the first place.

    Replayed calls are passed over: they do not tell which model answers now.
    """
    by_names: dict[tuple[str, str], dict[tuple[str, str], list[_Answered]]] = {}
    sets = set()
    for case in cases:
        sets.add(case.id.path)
        for served in case.served:
            if served.live and served.is_other:
                by_payer = by_names.setdefault((served.model, served.version), {})
                by_payer.setdefault((served.payer, served.metric), []).append((case, served))
    for (model, version), by_payer in by_names.items():
        parts = (_part(group, names_sets=len(sets) > 1) for group in by_payer.values())
        yield f"{model} was served by {version}: {'; '.join(parts)}"


def _part(group: Sequence[_Answered], *, names_sets: bool) -> str:
    """`agent, 7 calls, the first in case c08, turn 1, call 2`"""
    case, first = group[0]
    what = "vote" if first.metric else "call"
    number = counted(sum(served.live for _, served in group), what)
    payer = f"judge of {first.metric}" if first.metric else first.payer
    name = f"{case.eval_set_id}:{case.eval_id}" if names_sets else case.eval_id
    run = f", run {first.repeat + 1}" if case.runs > 1 else ""
    turn = "" if first.turn is None else f", turn {first.turn + 1}"
    return f"{payer}, {number}, the first in case {name}{run}{turn}, {what} {first.call}"
