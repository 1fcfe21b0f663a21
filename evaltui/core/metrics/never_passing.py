"""Cases that fail whatever the agent does: answers of no word, which `response_match_score` gives 0."""

from __future__ import annotations

from collections.abc import Collection

from evaltui.core.metrics.metric import effective_threshold
from evaltui.core.metrics.response_match import waiting_turns
from evaltui.core.metrics.rouge import words
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase, scored_text

_METRIC = "response_match_score"
_TURNS_NAMED = 3


def never_passes(case: EvalCase, config: EvalConfig, context: Collection[int]) -> str:
    """Why a case can never pass, and what to do; "" where it can. `context` are turns, from 0, not scored."""
    threshold = next(
        (effective_threshold(metric) for metric in config.metrics() if metric.metric_name == _METRIC), None
    )
    scored = {
        number: scored_text(turn, thoughts=config.evaltui.thoughts == "score")
        for number, turn in enumerate(case.conversation or [])
        if number not in context
    }
    waiting = {id(turn) for turn in waiting_turns(case.conversation or [])}
    needs_none = {number for number, turn in enumerate(case.conversation or []) if id(turn) in waiting}
    wordless = [
        number for number, text in scored.items() if not words(text) and (text or number not in needs_none)
    ]
    if threshold is None or not wordless or (len(scored) - len(wordless)) / len(scored) >= threshold:
        return ""
    named = ", ".join(str(number + 1) for number in wordless[:_TURNS_NAMED])
    more = f" and {len(wordless) - _TURNS_NAMED} more" if len(wordless) > _TURNS_NAMED else ""
    turns = f"turn {named} expects" if len(wordless) == 1 else f"turns {named}{more} expect"
    return (
        f"never passes: {turns} an answer without a word, which {_METRIC} gives 0 (threshold {threshold:g}). "
        f"Mark it as context, or remove {_METRIC} from the config"
    )
