"""Replaying a recorded repeat of a case: the n-th equal request gets the n-th answer.

A request without a recorded answer is compared with the recorded ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...text.figures import counted, plural, show_number
from ...text.values import cut, show_change, show_value, visible
from ..model.events import Json
from ..model.json_values import ABSENT, side_by_side
from .entry import (
    FUNCTION_CODE,
    JUDGE_OF,
    Entry,
    Fingerprints,
    ModelCall,
    Shared,
    ToolCall,
    call_key,
    describe,
    request_of,
)

_MAX_QUOTE = 60
_MAX_SETTINGS = 3


def nearest_call(prints: Fingerprints, agent: str, recorded: Sequence[ModelCall]) -> ModelCall:
    """The recorded call that differs least from a request: in the fewest parts, as late as possible.
    `recorded` must not be empty."""
    return max(recorded, key=lambda entry: _likeness(prints, agent, entry))


def _likeness(prints: Fingerprints, agent: str, entry: ModelCall) -> tuple[float, int]:
    before = entry.content_prints
    same = _common_length(prints.contents, before)
    contents = same / max(len(prints.contents), len(before), 1)
    request = prints.request
    of_request = request.model, _instruction_id(prints), _tools_id(prints), request.config, agent
    of_entry = entry.model, entry.instruction, entry.tools, entry.config, entry.agent
    settings = sum(setting == other for setting, other in zip(of_entry, of_request, strict=True))
    return settings + 3 * contents, same


def _instruction_id(prints: Fingerprints) -> str:
    return prints.instruction if prints.request.instruction else ""


def _tools_id(prints: Fingerprints) -> str:
    return prints.tools if prints.request.tools else ""


def differences(
    prints: Fingerprints, entry: ModelCall, shared: Mapping[str, Shared], beginnings: Mapping[str, str]
) -> Iterator[str]:
    """The differences between a request and a recorded call, each a phrase. `beginnings` are those of
    recorded contents, by fingerprint."""
    now, before = prints.request, request_of(entry, shared)
    if now.model != before.model:
        yield f"model is {now.model}, was {before.model}"
    if _instruction_id(prints) != entry.instruction:
        yield f"the system instruction {_change(now.instruction, before.instruction)}"
    if _tools_id(prints) != entry.tools:
        yield _tools_change(now.tools, before.tools)
    if now.config != before.config:
        yield from _settings_changes(now.config, before.config)
    if list(prints.contents) != entry.content_prints:
        yield _contents_change(prints, entry.content_prints, beginnings)


def _change(now: object, before: object) -> str:
    if not now or not before:
        return "was removed" if before else "is new"
    was, is_now = show_change(before, now, _MAX_QUOTE)
    return f"is {is_now}, was {was}"


def _tools_change(now: Sequence[Json], before: Sequence[Json]) -> str:
    has, had = (
        {str(tool.get("name") or show_value(tool)): tool for tool in tools} for tools in (now, before)
    )
    added, gone = [name for name in has if name not in had], [name for name in had if name not in has]
    changed = [name for name in has if name in had and has[name] != had[name]]
    changes = [
        f"{what} {', '.join(names)}"
        for what, names in (("new", added), ("gone", gone), ("declaration changed", changed))
        if names
    ]
    return f"tools: {'; '.join(changes) or 'declared otherwise'}"


def _settings_changes(now: Json, before: Json) -> Iterator[str]:
    changed = [(path, was, is_now) for path, was, is_now in side_by_side(before, now) if was != is_now]
    for path, was, is_now in changed[:_MAX_SETTINGS]:
        name = ".".join(map(str, path)) or "config"
        if name == FUNCTION_CODE:
            yield "the code of the function changed"
        elif was is ABSENT or is_now is ABSENT:
            yield f"{name} is {'new' if was is ABSENT else 'removed'}"
        else:
            yield f"{name} {_change(is_now, was) if is_now and was else f'is {is_now!r}, it was {was!r}'}"
    if len(changed) > _MAX_SETTINGS:
        yield f"{show_number(len(changed) - _MAX_SETTINGS)} more settings differ"


def _contents_change(prints: Fingerprints, before: Sequence[str], beginnings: Mapping[str, str]) -> str:
    """The first differing content in words, counted from 1."""
    first = _common_length(prints.contents, before)
    if first == len(before):
        return f"content {first + 1} is new: {_cut_quote(describe(prints.request.contents[first]))}"
    was = beginnings.get(before[first], "another one")
    if first == len(prints.contents):
        return f"content {first + 1} is missing: {_cut_quote(was)}"
    is_now = describe(prints.request.contents[first])
    if was == is_now:
        return f"content {first + 1} starts like the recorded one, {_cut_quote(was)}, then differs"
    was, is_now = show_change(was, is_now, 2 * _MAX_QUOTE)
    return f"content {first + 1} is {is_now}, was {was}"


def _cut_quote(text: str) -> str:
    return f'"{cut(visible(text), _MAX_QUOTE)}"'


def _common_length(mine: Sequence[str], theirs: Sequence[str]) -> int:
    pairs = zip(mine, theirs, strict=False)
    shorter = min(len(mine), len(theirs))
    return next((number for number, (mark, other) in enumerate(pairs) if mark != other), shorter)


def _has_failed(entry: Entry) -> bool:
    """Whether an entry is a model call that raised, or returned only an error code."""
    if entry.error is not None or isinstance(entry, ToolCall):
        return entry.error is not None
    last = entry.responses[-1] if entry.responses else {}
    is_empty = not (last.get("parts") or last.get("content"))
    # Of google-adk an error code; of an `evaltui.Agent` a response without parts.
    reason = last.get("error_code") or ("parts" in last and last.get("finish_reason") not in (None, "STOP"))
    return is_empty and bool(reason)


class Playback:
    """The entries of a case and repeat. Each is returned once, by its index in `entries`."""

    def __init__(self, entries: Sequence[Entry], shared: Mapping[str, Shared]) -> None:
        self.entries = entries
        self._shared = shared
        self._by_key: dict[str, list[int]] = {}
        for number, entry in enumerate(entries):
            for key in entry.keys:
                self._by_key.setdefault(key, []).append(number)
        self._used: set[int] = set()

    def model_call(self, prints: Fingerprints, *, errors: bool) -> int | None:
        """The index of the next recorded answer to a request; `errors` includes recorded errors. None for
        none."""
        number = self._next(prints.keys)
        if number is None:
            return None
        entry = self.entries[number]
        return number if errors or not _has_failed(entry) else None

    def tool_call(self, tool: str, *args: Json) -> int | None:
        """The index of the next recorded result of a call; `args` are the possible spellings of its
        arguments. None for none."""
        return self._next([call_key(tool, variant) for variant in args])

    def _next(self, keys: Sequence[str]) -> int | None:
        for key in dict.fromkeys(keys):
            for number in self._by_key.get(key, ()):
                if number not in self._used:
                    self._used.add(number)
                    return number
        return None

    def why_no_answer(self, prints: Fingerprints, agent: str, earlier: Sequence[Fingerprints] = ()) -> str:
        """The differences between a request and the nearest recorded one, in words.

        `earlier` are fingerprints of the request with earlier names.
        """
        recorded = [entry for entry in self.entries if isinstance(entry, ModelCall)]
        if not recorded:
            what = "judge response" if agent.startswith(JUDGE_OF) else "model call"
            return f"no {what} recorded for this repeat"
        times = sum(not set(prints.keys).isdisjoint(entry.keys) for entry in recorded)
        if times:
            return f"recorded {_times_text(times)}, now requested once more"
        prints = max(
            [prints, *earlier],
            key=lambda either: _likeness(either, agent, nearest_call(either, agent, recorded)),
        )
        beginnings = {mark: text for entry in recorded for mark, text in entry.said.items()}
        entry = nearest_call(prints, agent, recorded)
        return "; ".join(differences(prints, entry, self._shared, beginnings))

    def why_no_result(self, tool: str, args: Json) -> str:
        """The recorded calls of a tool in words, for a call that is not recorded."""
        key = call_key(tool, args)
        recorded = [entry for entry in self.entries if isinstance(entry, ToolCall) and entry.tool == tool]
        times = sum(key in entry.keys for entry in recorded)
        if times:
            return f"this call was recorded {_times_text(times)}, now made once more"
        if not recorded:
            return f"no call of {tool} recorded for this repeat"
        others = dict.fromkeys(show_value(entry.args) for entry in recorded)
        return f"recorded are calls with {', '.join(others)}"


def _times_text(number: int) -> str:
    """A number of times in words: `once`, `2 times`."""
    return plural(number, "once", counted(number, "time"))
