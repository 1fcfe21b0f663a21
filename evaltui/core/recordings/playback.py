"""What was recorded of a run of a case, handed out again: asked the same the n-th time, the n-th answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaltui.core.model.events import Json
from evaltui.core.recordings.difference import differences, nearest
from evaltui.core.recordings.entry import JUDGE_OF, Entry, ModelCall, Shared, ToolCall
from evaltui.core.recordings.request import Fingerprints, call_key
from evaltui.text.values import show_value


class Playback:
    """The entries of one case and repeat. Each is handed out once, and known by its number in `entries`."""

    def __init__(self, entries: Sequence[Entry], shared: Mapping[str, Shared]) -> None:
        self.entries = entries
        self._shared = shared
        self._by_key: dict[str, list[int]] = {}
        for number, entry in enumerate(entries):
            for key in entry.keys:
                self._by_key.setdefault(key, []).append(number)
        self._used: set[int] = set()

    def model_call(self, prints: Fingerprints, *, errors: bool) -> int | None:
        """The next recorded answer to a request; one that was an error only with `errors`."""
        found = self._next(prints.keys)
        if found is None:
            return None
        entry = self.entries[found]
        return found if errors or entry.error is None else None

    def tool_call(self, tool: str, *args: Json) -> int | None:
        """The next recorded result of a call, whose arguments may have been kept in any of these ways."""
        return self._next([call_key(tool, one) for one in args])

    def _next(self, keys: Sequence[str]) -> int | None:
        for key in dict.fromkeys(keys):
            for number in self._by_key.get(key, ()):
                if number not in self._used:
                    self._used.add(number)
                    return number
        return None

    def why_no_answer(self, prints: Fingerprints, agent: str) -> str:
        """What is different between a request and the nearest one that was recorded."""
        recorded = [entry for entry in self.entries if isinstance(entry, ModelCall)]
        if not recorded:
            what = "answer of a judge" if agent.startswith(JUDGE_OF) else "model call"
            return f"no {what} is recorded for this run of the case"
        times = sum(not set(prints.keys).isdisjoint(entry.keys) for entry in recorded)
        if times:
            return f"it was made {_times(times)} when this was recorded, and now once more"
        said = {mark: text for entry in recorded for mark, text in entry.said.items()}
        entry = nearest(prints, agent, recorded)
        return "; ".join(differences(prints, entry, self._shared, said))

    def why_no_result(self, tool: str, args: Json) -> str:
        """What is recorded of a tool instead of a call."""
        key = call_key(tool, args)
        recorded = [entry for entry in self.entries if isinstance(entry, ToolCall) and entry.tool == tool]
        times = sum(key in entry.keys for entry in recorded)
        if times:
            return f"this call was recorded {_times(times)}, and is now made once more"
        if not recorded:
            return f"no call of {tool} is recorded for this run of the case"
        others = dict.fromkeys(show_value(entry.args) for entry in recorded)
        return f"recorded are calls with {', '.join(others)}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
