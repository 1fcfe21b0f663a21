"""The effect of a change on results, and the rules that can relax a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaltui.core.compare.explain import first_reasons
from evaltui.core.model.outcome import CaseResult, MetricResult, Status
from evaltui.text.figures import counted, show_score
from evaltui.text.lines import Line, join_ends
from evaltui.text.outcomes import ROLES, WORDS, glyph
from evaltui.text.syntax import color_json, value_line
from evaltui.text.values import visible
from evaltui.tui.result.verdict import short_names
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.result.relaxing import Effect

_MAX_CHANGES = 4
_KIND_WIDTH = 13


def write_result(
    page: Page, name: str, before: CaseResult, after: CaseResult, go_key: str = "", fixed: str = "fixed"
) -> None:
    """Writes a case before and after: fixed, or still failing with the failing metric and the key to it."""
    name = visible(name)
    if after.passed:
        page.row(glyph(after.status), (f" {name}", "bold"), (f"  {fixed}", "success"))
        return
    word = f"now {WORDS[after.status]}" if before.passed else "still fails"
    head: Line = [glyph(after.status), (f" {name}", "bold"), (f"  {word}", ROLES[after.status])]
    page.row(*head, ("  ", ""), *_worst_metric(before, after))
    reasons, more = first_reasons(after)
    keys: Line = [(go_key, "bold accent"), (" go there", "muted")] if go_key else []
    for number, reason in enumerate(reasons):
        turn = f"turn {reason.turn}  " if reason.turn is not None else ""
        line: Line = [("    ", ""), (turn, "muted"), *color_json(reason.text)]
        page.lines.append(join_ends(line, keys if number == 0 else [], page.width))
    page.more(more, 4)


def _worst_metric(before: CaseResult, after: CaseResult) -> Line:
    """The change of the worst metric: `trajectory stays 0.50, threshold 1.00`."""
    failed = next((metric for metric in after.metrics if metric.status is Status.FAILED), None)
    if failed is None or failed.score is None or failed.threshold is None:
        return []
    by_name: Mapping[str, MetricResult] = {metric.name: metric for metric in before.metrics}
    old = by_name[failed.name].score if failed.name in by_name else None
    moves = "stays" if old == failed.score else f"{show_score(old)} →"
    (name,) = short_names([failed.name], shortest=True)
    threshold = f", threshold {show_score(failed.threshold)}"
    return [(f"{name} {moves} {show_score(failed.score)}{threshold}", "muted")]


def write_relaxed(
    page: Page, name: str, before: CaseResult, effect: Effect, run: str, go_key: str, passed: str = "fixed"
) -> None:
    """Writes the effect of a rule on this case, which is `passed` if it passes with it, and on others."""
    if effect.result is None:
        page.row(("No run log for this case; run it again", "warning"))
    else:
        write_result(page, name, before, effect.result, go_key, passed)
    for change in effect.changes[:_MAX_CHANGES]:
        fixed = change.after == Status.PASSED
        word = "fixed" if fixed else f"now {WORDS[change.after]}"
        page.row(
            glyph(change.after),
            (f" {visible(change.case.eval_id)}", "bold"),
            (f"  {word}", ROLES[change.after]),
        )
    page.more(len(effect.changes) - _MAX_CHANGES)
    scored: Line = [(f"scored on {visible(run)}, no model calls", "faint")]
    state: Line = [("✓ ", "success"), ("No other case changes", "")] if not effect.changes else []
    if not effect.is_complete:
        state = [("◐ ", "accent"), (f"{effect.seen}/{counted(effect.cases, 'case')} scored", "muted")]
    elif effect.unknown:
        state = [("– ", "warning"), (f"{counted(effect.unknown, 'case')} without a run log", "muted")]
    page.lines.append(join_ends(state, scored, page.width))


# Rules

_KIND_LABELS: Mapping[str, str] = {
    "any_of": "One of",
    "case_insensitive": "Any case",
    "approx": "Approximate",
    "subset": "Subset",
    "regex": "Regex",
    "type": "Same type",
    "ignore": "Ignore",
}
_KIND_MEANINGS = {
    "case_insensitive": "upper and lower case alike",
    "subset": "at least the expected members",
    "type": "any value of this type",
    "ignore": "any value, or none",
}
_WHY_UNAVAILABLE = {
    "any_of": "one side has no value",
    "case_insensitive": "differs in more than case, or is not text",
    "approx": "numbers only",
    "subset": "objects and lists with the expected members only",
    "regex": "the values have no form in common",
    "type": "the types differ",
}


def rule_line(match: Any) -> Line:
    """A rule's kind and its parameter: `One of       19, "19"`."""
    kind = match if isinstance(match, str) else next(iter(match), "") if isinstance(match, dict) else ""
    name = f"{_KIND_LABELS.get(kind, 'Rule'):{_KIND_WIDTH}}"
    match match:
        case {"any_of": list(values)}:
            parts = [span for value in values for span in ((", ", "muted"), *value_line(value))]
            return [(name, "bold"), *parts[1:]]
        case {"regex": str(regex)}:
            return [(name, "bold"), (visible(regex), "string")]
        case {"approx": {"abs": tolerance}}:
            return [(name, "bold"), ("± ", "number"), *value_line(tolerance)]
        case str():
            return [(name, "bold"), (_KIND_MEANINGS.get(match, ""), "muted")]
    return [(name, "bold"), *value_line(match)]


def unavailable_rules(matches: Sequence[Any]) -> list[Line]:
    """The kinds of rule that cannot relax a difference, each with the reason; `matches` are those that
    can."""
    there = {match if isinstance(match, str) else next(iter(match), "") for match in matches if match}
    missing = [kind for kind in _KIND_LABELS if kind not in there and kind in _WHY_UNAVAILABLE]
    return [
        [("○ ", "faint"), (f"{_KIND_LABELS[kind]:{_KIND_WIDTH}}", "faint"), (_WHY_UNAVAILABLE[kind], "faint")]
        for kind in missing
    ]


def type_name(value: Any) -> str:
    """The JSON type of a value in words."""
    names = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
