"""Whether run logs are of one plan, so that their cases may stand in one log."""

from __future__ import annotations

from collections.abc import Iterator

from evaltui.core.compare.run_comparison import config_changes
from evaltui.core.model.modes import DEFAULT_MODE
from evaltui.files.agent_files import changed_files, different_files, is_source
from evaltui.runs.run_header import RunHeader
from evaltui.runs.shards import ShardsOfRun
from evaltui.text.values import show_value


def differences(first: RunHeader, other: RunHeader) -> Iterator[str]:
    """The differences in words; none for logs that may be merged."""
    if first.of_traces is not other.of_traces:
        yield "only one of them is of traces"
    options = _options(first), _options(other)
    for word in options[0]:
        before, now = (values[word] for values in options)
        if before != now:
            yield f"{word} {_in_words(before)} → {_in_words(now)}"
    # Data an agent may change itself while it works.
    yield from (f"{name} changed" for name in different_files(first.files, other.files) if is_source(name))
    if first.shards and other.shards:
        # Each shard looks at all conversations, wherever the files are on its machine.
        for mine, theirs in ((first.trace_files, other.trace_files), (other.trace_files, first.trace_files)):
            yield from (f"{name} changed" for name, digest in mine.items() if digest not in theirs.values())
    if first.settings.record == "replay":
        changed = changed_files(first.recordings, other.recordings)
        yield from (f"recordings of {path} changed" for path in changed if _has_both(path, first, other))
    sets = {eval_set.path: eval_set for eval_set in other.sets}
    for eval_set in first.sets:
        same = sets.get(eval_set.path)
        if same is None:
            continue
        if same.eval_set_id != eval_set.eval_set_id:
            yield f"{eval_set.path} has the set id {eval_set.eval_set_id} → {same.eval_set_id}"
        yield from (
            f"{eval_set.path}: {change}" for change in config_changes(eval_set.scored_by, same.scored_by)
        )
    yield from _divided_otherwise(first.shards, other.shards)


def _options(header: RunHeader) -> dict[str, object]:
    """The options that runs of one plan have in common, by words; nothing for those that were not given."""
    settings, confidence = header.settings, header.settings.confidence
    return {
        "URL": header.url or None,
        "file": header.kind.file or None,
        "agent": header.agent_name,
        "module": header.module or None,
        "variant": header.variant.to_json() if header.variant else None,
        "runs": settings.runs,
        "pass-if": settings.pass_if,
        "confidence": confidence.level if confidence else None,
        "max-runs": confidence.max_runs if confidence else None,
        "ADK's verdicts": settings.adk_verdicts or None,
        "record": settings.record if settings.record != DEFAULT_MODE else None,
        "tools": settings.tools,
        "case-from": header.case_from or None,
    }


def _has_both(path: str, first: RunHeader, other: RunHeader) -> bool:
    """Whether both runs have cases of a set."""
    return all(any(eval_set.path == path for eval_set in header.sets) for header in (first, other))


def _in_words(value: object) -> str:
    return "not given" if value is None else show_value(value)


def _divided_otherwise(first: ShardsOfRun | None, other: ShardsOfRun | None) -> Iterator[str]:
    if first is None or other is None:
        if first is not other:
            yield "only one of them is of a shard"
        return
    if first.count != other.count:
        yield f"{first.count} shards → {other.count}"
    if first.divided_by != other.divided_by:
        yield "divided by other durations"
    for path in dict.fromkeys([*first.sets, *other.sets]):
        before, now = first.sets.get(path), other.sets.get(path)
        if before != now:
            yield (
                f"selected cases of {path} changed" if before and now else f"only one of them selects {path}"
            )
