"""What was different between two runs besides what the agent did, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaltui.core.compare.run_summary import CaseSummary, Circumstances, Json, RunSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.text.values import show_change

_MOST_DETAILS = 3


def other_expectation(
    before: CaseSummary, after: CaseSummary, then: Circumstances, now: Circumstances
) -> Iterator[str]:
    if before.expects and after.expects and before.expects != after.expects:
        yield "the case was changed"
    # Where all runs agree, every policy says the same.
    if before.policy != after.policy and before.status is after.status is Status.FLAKY:
        yield f"policy {before.policy} → {after.policy}"
    if then.adk_verdicts != now.adk_verdicts:
        yield f"--adk-verdicts was {'left out' if then.adk_verdicts else 'added'}"
    changes = list(config_changes(_config_of(then, before), _config_of(now, after)))
    # What the config says of judges need not be said twice.
    yield from changes or _other_judges(before, after)


def _other_judges(before: CaseSummary, after: CaseSummary) -> Iterator[str]:
    for metric, judge in after.judges.items():
        if before.judges.get(metric, judge) != judge:
            yield f"{metric} was judged by {before.judges[metric]}, now by {judge}"


def _config_of(circumstances: Circumstances, case: CaseSummary) -> Json | None:
    config = circumstances.configs.get(case.id.path)
    return None if config is None else config_of(config, case.eval_set_id, case.eval_id)


def config_of(config: Json, eval_set_id: str, eval_id: str) -> Json:
    """What a case is scored by: the config of its set without what is about other cases, and without how
    often cases are run."""
    own = {
        name: [one for one in value if _is_about(one, eval_set_id, eval_id)]
        if isinstance(value, list)
        else value
        for name, value in config.get("evaltui", {}).items()
        if name != "repeats"
    }
    return {**config, "evaltui": {name: value for name, value in own.items() if value != []}}


def _is_about(rule: Any, eval_set_id: str, eval_id: str) -> bool:
    if not isinstance(rule, dict):
        return True
    return rule.get("set") in (None, eval_set_id) and rule.get("case") in (None, eval_id)


def config_changes(before: Json | None, after: Json | None) -> Iterator[str]:
    """What is different between two configs, in words; nothing where one of them is not known."""
    if before is None or after is None or before == after:
        return
    mine, theirs = dict(_leaves(before)), dict(_leaves(after))
    changed = [path for path in {**mine, **theirs} if mine.get(path, ...) != theirs.get(path, ...)]
    for path in changed[:_MOST_DETAILS]:
        if path not in mine:
            yield f"config: {path} is new"
        elif path not in theirs:
            yield f"config: {path} is gone"
        else:
            yield f"config: {path} {' → '.join(show_change(mine[path], theirs[path], 24))}"
    if len(changed) > _MOST_DETAILS:
        yield f"config: {len(changed) - _MOST_DETAILS} more changes"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else str(name))
    else:
        yield path, value


def what_changed(base: RunSummary, candidate: RunSummary, key: CaseId | None = None) -> tuple[str, ...]:
    """What was different between two runs besides what the agent did, in words: the agent's files, its model,
    and what a case is scored by; without a `key` what every case of a set is."""
    then, now = base.circumstances, candidate.circumstances
    found = [*_agent_changes(then, now)]
    if key is None:
        labels = {one.id.path: one.eval_set_id for run in (base, candidate) for one in run.cases.values()}
        for path in dict.fromkeys([*then.configs, *now.configs]):
            label = labels.get(path, path)
            name = label if list(labels.values()).count(label) == 1 else path
            # No case has this id: rules for single cases are left out.
            configs = [
                None if config is None else config_of(config, label, "")
                for config in (then.configs.get(path), now.configs.get(path))
            ]
            found += [f"{name}: {text}" for text in config_changes(*configs)]
        if then.adk_verdicts != now.adk_verdicts:
            found.append(f"--adk-verdicts was {'left out' if then.adk_verdicts else 'added'}")
    elif (before := base.cases.get(key)) and (after := candidate.cases.get(key)):
        found += other_expectation(before, after, then, now)
    return tuple(found)


def _agent_changes(then: Circumstances, now: Circumstances) -> Iterator[str]:
    if then.files and now.files:
        changed = [
            name for name in {**then.files, **now.files} if then.files.get(name) != now.files.get(name)
        ]
        words = [f"{name}{_new_or_gone(name, then.files, now.files)}" for name in sorted(changed)]
        more = [f"{len(words) - _MOST_DETAILS} more files"] if len(words) > _MOST_DETAILS else []
        if words:
            yield f"agent: {', '.join([*words[:_MOST_DETAILS], *more])}"
    for what, mine, theirs in (("agent", then.agent, now.agent), ("model", then.model, now.model)):
        if mine and theirs and mine != theirs:
            yield f"{what} {mine} → {theirs}"


def _new_or_gone(name: str, then: Mapping[str, str], now: Mapping[str, str]) -> str:
    if name not in then:
        return " (new)"
    return "" if name in now else " (gone)"
