"""Unknown parts of an agent's turns, and the metrics that cannot be computed without them.

A recorded trace, or an agent behind a network, may not report everything: unknown is not empty.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from evaltui.core.metrics import response_match
from evaltui.core.metrics.declaration import MetricInfo, built_in
from evaltui.core.metrics.judges.final_response import final_response_match_v2
from evaltui.core.metrics.judges.hallucinations import judges_texts
from evaltui.core.metrics.judges.user_simulator import per_turn_user_simulator_quality_v1
from evaltui.core.metrics.metric import MetricInput, left_out_turns, not_evaluated
from evaltui.core.metrics.registry import run_metric
from evaltui.core.metrics.trajectory import ignores_args, takes_ignore_args, with_ignored_args
from evaltui.core.model.eval_set import Invocation, user_text
from evaltui.core.model.events import (
    ANSWERS,
    ARGUMENTS,
    CALLS,
    EXPECTATION,
    RESULTS,
    TEXTS,
    TURN,
    USER_MESSAGE,
)
from evaltui.core.model.outcome import MetricResult, Status
from evaltui.text.figures import counted, plural, short_list
from evaltui.text.values import cut, visible


def all_is_known(actual: Sequence[Invocation]) -> bool:
    """Whether the turns have no unknown parts."""
    return not any(turn.untold or turn.intermediate_data is None for turn in actual)


def unknown_result(inputs: MetricInput) -> MetricResult | None:
    """The result of a metric that needs an unknown part of the turns; None where it can be computed."""
    metric = inputs.metric
    if reason := _unknown_content(inputs):
        return not_evaluated(metric, reason)
    if reason := _unknown_arguments(inputs):
        by_name = run_metric(replace(inputs, metric=with_ignored_args(metric)))
        # Other tools fail whatever they were called with.
        return by_name if by_name.status is Status.FAILED else not_evaluated(metric, reason)
    return None


def _unknown_content(inputs: MetricInput) -> str:
    """Why a metric cannot be computed because of an unknown part; "" where it can."""
    info = built_in(inputs.metric)
    is_custom = inputs.metric.custom_function_path is not None
    scored = set(range(len(inputs.actual))) - left_out_turns(inputs).keys()
    # A case made of a conversation with such an agent has all its turns marked: it does not say why.
    checked = scored - left_out_turns(inputs, checks_calls=True).keys() or scored
    if info is not None:
        needs_calls = checked if info.reads_calls else scored & _waiting_turns(info, inputs)
        unknown = [number for number in needs_calls if inputs.actual[number].intermediate_data is None]
        if unknown:
            return _unknown_part_text(inputs, unknown, CALLS, "the agent does not send them")
    for what in _PARTS_OF_FUNCTIONS if is_custom else _parts_read(info, inputs):
        read = scored
        if info is not None and info.judged is not None:
            # A judge is shown what was before, context turns, too.
            is_before = what in _PARTS_OF_JUDGES and info.judged is final_response_match_v2
            read = set(range(max(scored, default=-1) + (not is_before)))
        if unknown := [number for number in read if what in inputs.actual[number].untold]:
            return _unknown_part_text(inputs, unknown, what, "not recorded")
    return ""


_PARTS_OF_FUNCTIONS = (ANSWERS, CALLS, ARGUMENTS, RESULTS, TEXTS, USER_MESSAGE)
_PARTS_OF_JUDGES = (ARGUMENTS, RESULTS)
"""Parts that a judge sees besides messages of user and agent."""


def _waiting_turns(info: MetricInfo, inputs: MetricInput) -> frozenset[int]:
    """Turns whose response is a call that waits for the user, where the metric compares responses."""
    is_compared = info.function is response_match.response_match_score
    return frozenset(response_match.turns_without_text(inputs)) if is_compared else frozenset()


def _parts_read(info: MetricInfo | None, inputs: MetricInput) -> tuple[str, ...]:
    """The parts of a turn, except calls, that a built-in metric reads; arguments of calls are checked
    separately."""
    if info is None:
        return ()
    if info.judged is not None:
        shown = () if info.judged is per_turn_user_simulator_quality_v1 else _PARTS_OF_JUDGES
        return (ANSWERS, USER_MESSAGE, *shown, *((TEXTS,) if judges_texts(inputs.metric) else ()))
    return (ANSWERS,) if info.function is response_match.response_match_score else ()


def _unknown_part_text(inputs: MetricInput, turns: Collection[int], what: str, otherwise: str) -> str:
    numbers = [str(number + 1) for number in sorted(turns)]
    remedies = [remedy for number in sorted(turns) if (remedy := inputs.actual[number].untold.get(what))]
    why = remedies[0] if remedies else otherwise
    named = "is" if what == USER_MESSAGE else "are"
    where = f"{plural(len(numbers), 'turn')} {short_list(numbers)}"
    word = "responses" if what == ANSWERS else what.removeprefix("the ")
    return f"the {word} of {where} {named} unknown: {why}"


def _unknown_arguments(inputs: MetricInput) -> str:
    """Why calls cannot be compared with their arguments; "" where they can, or arguments are ignored."""
    metric = inputs.metric
    if not takes_ignore_args(metric) or not any(turn.untold for turn in inputs.actual):
        return ""
    if ignores_args(metric):
        return ""
    without = left_out_turns(inputs, checks_calls=True, compares="calls")
    unknown = {
        number: turn.untold[ARGUMENTS]
        for number, turn in enumerate(inputs.actual)
        if ARGUMENTS in turn.untold and number not in without
    }
    if not unknown:
        return ""
    turns = f"{plural(len(unknown), 'turn')} {short_list([str(number + 1) for number in unknown])}"
    return f"names compared only: the arguments of {turns} are unknown: {next(iter(unknown.values()))}"


_MAX_MESSAGE_LENGTH = 60
_MORE_HELD = (
    "turns are the same where the user says the same: correct the messages of the case, or import the "
    "conversation as another one (evaltui import)"
)


def differing_turns(actual: Sequence[Invocation]) -> str:
    """Expected turns that are missing in the trace, and unexpected turns in it, with a remedy; "" for
    none."""
    missing = [f"{number + 1} {_message(turn)}" for number, turn in enumerate(actual) if TURN in turn.untold]
    extra = [_message(turn) for turn in actual if EXPECTATION in turn.untold]
    texts = [
        f"{plural(len(missing), 'turn')} {short_list(missing)} not in the trace" if missing else "",
        f"{counted(len(extra), 'turn')} in the trace, not in the case: {short_list(extra)}" if extra else "",
        _MORE_HELD if missing and extra else "",
    ]
    return "; ".join(filter(None, texts))


def _message(turn: Invocation) -> str:
    parts = turn.user_content.parts or []
    files = [file.mime_type or "file" for part in parts if (file := part.inline_data or part.file_data)]
    words = [*user_text(turn.user_content).split(), *(f"[{name}]" for name in files)]
    return f'"{visible(cut(" ".join(words), _MAX_MESSAGE_LENGTH))}"'
