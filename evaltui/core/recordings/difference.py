"""How a request differs from one that was recorded, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evaltui.core.model.events import Json
from evaltui.core.model.json_values import ABSENT, side_by_side
from evaltui.core.recordings.entry import ModelCall, Shared, asked_of, describe
from evaltui.core.recordings.request import Fingerprints
from evaltui.text.values import cut, show_change, show_value, visible

_SHOWN = 60
_MOST_SETTINGS = 3


def nearest(prints: Fingerprints, agent: str, recorded: Sequence[ModelCall]) -> ModelCall:
    """Of these, at least one, that which differs least: in as few respects, and as late, as possible."""
    return max(recorded, key=lambda entry: _likeness(prints, agent, entry))


def _likeness(prints: Fingerprints, agent: str, entry: ModelCall) -> tuple[float, int]:
    before = entry.content_prints
    same = _same_at_first(prints.contents, before)
    contents = same / max(len(prints.contents), len(before), 1)
    settings = sum(
        (
            entry.agent == agent,
            entry.model == prints.asked.model,
            entry.instruction == _instruction_id(prints),
            entry.tools == _tools_id(prints),
            entry.config == prints.asked.config,
        )
    )
    return settings + 3 * contents, same


def _instruction_id(prints: Fingerprints) -> str:
    return prints.instruction if prints.asked.instruction else ""


def _tools_id(prints: Fingerprints) -> str:
    return prints.tools if prints.asked.tools else ""


def differences(
    prints: Fingerprints, entry: ModelCall, shared: Mapping[str, Shared], said: Mapping[str, str]
) -> Iterator[str]:
    """Everything that differs, a phrase each. `said` has how recorded contents begin, by fingerprint."""
    now, before = prints.asked, asked_of(entry, shared)
    if now.model != before.model:
        yield f"the model is {now.model}, it was {before.model}"
    if _instruction_id(prints) != entry.instruction:
        yield f"the system instruction {_change(now.instruction, before.instruction)}"
    if _tools_id(prints) != entry.tools:
        yield _tools_change(now.tools, before.tools)
    if now.config != before.config:
        yield from _settings_changes(now.config, before.config)
    if list(prints.contents) != entry.content_prints:
        yield _contents_change(prints, entry.content_prints, said)


def _change(now: object, before: object) -> str:
    if not now or not before:
        return "is gone" if before else "is new"
    was, is_now = show_change(before, now, _SHOWN)
    return f"is {is_now}, it was {was}"


def _tools_change(now: Sequence[Json], before: Sequence[Json]) -> str:
    has, had = (
        {str(tool.get("name") or show_value(tool)): tool for tool in tools} for tools in (now, before)
    )
    added, gone = [name for name in has if name not in had], [name for name in had if name not in has]
    changed = [name for name in has if name in had and has[name] != had[name]]
    said = [
        f"{what} {', '.join(names)}"
        for what, names in (("new", added), ("gone", gone), ("declared otherwise", changed))
        if names
    ]
    return f"tools: {'; '.join(said) or 'declared otherwise'}"


def _settings_changes(now: Json, before: Json) -> Iterator[str]:
    changed = [(path, was, is_now) for path, was, is_now in side_by_side(before, now) if was != is_now]
    for path, was, is_now in changed[:_MOST_SETTINGS]:
        name = ".".join(map(str, path)) or "config"
        if was is ABSENT or is_now is ABSENT:
            yield f"{name} is {'new' if was is ABSENT else 'gone'}"
        else:
            yield f"{name} {_change(is_now, was) if is_now and was else f'is {is_now!r}, it was {was!r}'}"
    if len(changed) > _MOST_SETTINGS:
        yield f"{len(changed) - _MOST_SETTINGS} more settings differ"


def _contents_change(prints: Fingerprints, before: Sequence[str], said: Mapping[str, str]) -> str:
    """The first content that differs, counted from 1."""
    first = _same_at_first(prints.contents, before)
    if first == len(before):
        return f"content {first + 1} is new: {_shown(describe(prints.asked.contents[first]))}"
    was = said.get(before[first], "another one")
    if first == len(prints.contents):
        return f"content {first + 1} is missing: {_shown(was)}"
    is_now = describe(prints.asked.contents[first])
    if was == is_now:
        return f"content {first + 1} begins like the recorded one, {_shown(was)}, and goes on otherwise"
    was, is_now = show_change(was, is_now, 2 * _SHOWN)
    return f"content {first + 1} is {is_now}, it was {was}"


def _shown(text: str) -> str:
    return f'"{cut(visible(text), _SHOWN)}"'


def _same_at_first(mine: Sequence[str], theirs: Sequence[str]) -> int:
    pairs = zip(mine, theirs, strict=False)
    shorter = min(len(mine), len(theirs))
    return next((number for number, (one, other) in enumerate(pairs) if one != other), shorter)
