"""What a case has of recordings: the results that it knows itself, and what stays when it was run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from google.genai import types

from evaltui.core.model.eval_set import EvalCase, Invocation, tool_calls, tool_responses
from evaltui.core.model.modes import Modes
from evaltui.core.recordings.entry import Entry, ModelCall, ToolCall, written


def stubs_of_case(case: EvalCase) -> list[ToolCall]:
    """The calls that a case expects and has a response for, in order."""
    return [
        ToolCall(case.eval_id, 0, turn, call.name or "", call.args or {}, response.response or {})
        for turn, invocation in enumerate(case.conversation or [])
        for call, response in _answered(invocation)
    ]


def _answered(invocation: Invocation) -> Iterator[tuple[types.FunctionCall, types.FunctionResponse]]:
    """Each call with its response: by id, else the first of that name which is not taken."""
    left = tool_responses(invocation.intermediate_data)
    calls = tool_calls(invocation.intermediate_data)
    ids = {call.id for call in calls if call.id}
    for call in calls:
        own = [one for one in left if call.id and one.id == call.id]
        unnamed = [one for one in left if one.name == call.name and one.id not in ids]
        for response in (own or unnamed)[:1]:
            left.remove(response)
            yield call, response


def merged(old: Sequence[Entry], made: Sequence[Entry], modes: Modes, *, complete: bool) -> list[Entry]:
    """The entries of one case and repeat after a run of it.

    `made` are those that the run used or made, in order. They replace what the run was to keep; of a run
    that did not come to its end, only the answers to what it did ask, and no answer by an error. What the run
    was not to keep (models while only tools are recorded, tools that are called live) stays. Where the same
    answers came, the order stays too: what runs side by side comes in another one each time.
    """
    replaced = [entry for entry in old if _is_kept_by(entry, modes)]
    kept = [entry for entry in old if not _is_kept_by(entry, modes)]
    # What a stubbed tool took from the recording is in there already.
    made = [entry for entry in made if _is_kept_by(entry, modes)]
    if not complete:
        made = _without_worse(made, replaced)
        kept += _not_asked_again(replaced, made)
    elif Counter(map(written, made)) == Counter(map(written, replaced)):
        return list(old)
    return sorted([*made, *kept], key=lambda entry: entry.turn)


def _without_worse(made: Sequence[Entry], before: Sequence[Entry]) -> list[Entry]:
    """Without the errors of what was answered before: a key that is missing today is no reason to forget."""
    answered = {entry.keys[0] for entry in before if entry.error is None}
    return [entry for entry in made if entry.error is None or entry.keys[0] not in answered]


def _not_asked_again(before: Sequence[Entry], made: Sequence[Entry]) -> list[Entry]:
    asked = Counter(entry.keys[0] for entry in made)
    left: list[Entry] = []
    for entry in before:
        if asked[entry.keys[0]]:
            asked[entry.keys[0]] -= 1
        else:
            left.append(entry)
    return left


def _is_kept_by(entry: Entry, modes: Modes) -> bool:
    if isinstance(entry, ModelCall):
        return modes.keeps_models
    return modes.of_tool(entry.tool) == "record"
