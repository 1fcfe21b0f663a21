"""Replays and records the model and tool calls of one repeat of a case, in the agent's host.

New entries are sent to the parent process. Adapters find the recorder of their task in
`current_call_recorder`, and ask it before each model or tool call. Judges have recorders in the parent.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any, Literal

from ..core.model.errors import ErrorKind
from ..core.model.events import Json, parts_in
from ..core.model.json_values import ABSENT, side_by_side
from ..core.model.modes import Modes
from ..core.model.renaming import Renaming
from ..core.recordings.entry import (
    FUNCTION_CODE,
    JUDGE_OF,
    Entry,
    Fingerprints,
    JsonRequest,
    ModelCall,
    Shared,
    SideBySide,
    ToolCall,
    call_key,
    describe,
    entry_from_json,
    entry_to_json,
    fingerprints_without,
    finite,
    new_contents,
    request_of,
    shared_lines,
)
from ..core.recordings.renaming import under_earlier_names
from ..core.secrets import Secrets
from ..text.figures import counted, plural, show_number
from ..text.values import common_length, cut, show_change, show_value, visible
from .errors import CallNotMadeError, error_from_json, error_to_json, message_of

_MAX_QUOTE = 60
_MAX_SETTINGS = 3


def nearest_call(prints: Fingerprints, agent: str, recorded: Sequence[ModelCall]) -> ModelCall:
    """The recorded call that differs least from a request: in the fewest parts, as late as possible.
    `recorded` must not be empty."""
    return max(recorded, key=lambda entry: _likeness(prints, agent, entry))


def _likeness(prints: Fingerprints, agent: str, entry: ModelCall) -> tuple[float, int]:
    before = entry.content_prints
    same = common_length(prints.contents, before)
    contents = same / max(len(prints.contents), len(before), 1)
    request = prints.request
    of_request = request.model, *_ids(prints), request.config, agent
    of_entry = entry.model, entry.instruction, entry.tools, entry.config, entry.agent
    settings = sum(setting == other for setting, other in zip(of_entry, of_request, strict=True))
    return settings + 3 * contents, same


def _ids(prints: Fingerprints) -> tuple[str, str]:
    """The fingerprints of the instruction and of the tools, each "" for none."""
    request = prints.request
    return prints.instruction if request.instruction else "", prints.tools if request.tools else ""


def differences(
    prints: Fingerprints, entry: ModelCall, shared: Mapping[str, Shared], beginnings: Mapping[str, str]
) -> Iterator[str]:
    """The differences between a request and a recorded call, each a phrase. `beginnings` are those of
    recorded contents, by fingerprint."""
    now, before, (instruction, tools) = prints.request, request_of(entry, shared), _ids(prints)
    if now.model != before.model:
        yield f"model is {now.model}, was {before.model}"
    if instruction != entry.instruction:
        yield f"the system instruction {_change(now.instruction, before.instruction)}"
    if tools != entry.tools:
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
            yield "the code of the function changed, or a prompt that it names"
        elif was is ABSENT or is_now is ABSENT:
            yield f"{name} is {'new' if was is ABSENT else 'removed'}"
        else:
            yield f"{name} {_change(is_now, was) if is_now and was else f'is {is_now!r}, it was {was!r}'}"
    if len(changed) > _MAX_SETTINGS:
        yield f"{show_number(len(changed) - _MAX_SETTINGS)} more settings differ"


def _contents_change(prints: Fingerprints, before: Sequence[str], beginnings: Mapping[str, str]) -> str:
    """The first differing content in words, counted from 1."""
    first = common_length(prints.contents, before)
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

    def tool_call(self, tool: str, *args: Json, nested: bool = False) -> int | None:
        """The index of the next recorded result of a call; `args` are the possible spellings of its
        arguments. None for none."""
        return self._next([call_key(tool, variant, nested=nested) for variant in args])

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

    def why_no_result(self, tool: str, args: Json, *, nested: bool = False) -> str:
        """The recorded calls of a tool in words, for a call that is not recorded."""
        key = call_key(tool, args, nested=nested)
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


# Errors of the caller, not of the model: a key that is missing, a request that cannot be made, or was not.
_MISTAKES = (ValueError, TypeError, ImportError, AttributeError, NameError, CallNotMadeError)


class NotRecordedError(RuntimeError):
    """A recording lacks a request, and no model or tool may be called."""

    error_kind = ErrorKind.CONFIG


@dataclass(frozen=True)
class CaseRecording:
    """The recording of a case and repeat, as its host gets it."""

    case: str
    repeat: int
    file: str
    """Its name in messages."""
    modes: Modes
    entries: Sequence[Entry] = ()
    shared: Sequence[Shared] = ()
    stubs: Sequence[ToolCall] = ()
    """Tool results in the case itself."""
    renamed: Sequence[Renaming] = ()
    """Names that requests had when they were recorded."""

    def to_json(self) -> Json:
        lines = {name: getattr(self, name) for name in _LINES}
        return {
            "case": self.case,
            "repeat": self.repeat,
            "file": self.file,
            "modes": asdict(self.modes),
            **{name: list(map(entry_to_json, entries)) for name, entries in lines.items()},
        }

    @classmethod
    def from_json(cls, data: Json) -> CaseRecording:
        lines = {name: list(map(entry_from_json, data[name])) for name in _LINES}
        return cls(**{**data, **lines, "modes": Modes(**data["modes"])})


_LINES = ("entries", "shared", "stubs", "renamed")


class CallRecorder:
    """Answers calls from a recording, and records new ones."""

    def __init__(
        self, recorded: CaseRecording, send: Callable[[Json], object], secrets: Secrets | None = None
    ) -> None:
        """`send` gets a message for each call, or a `note` for the user.

        A message has `at`, the place of the call in the run, and either `used`, the index of the replayed
        entry, or `entry` and `shared`, the new lines. `secrets` are by default those of this process.
        """
        self._recorded = recorded
        self._send = send
        self.modes = recorded.modes
        shared = {line.id: line for line in recorded.shared}
        self._playback = Playback(recorded.entries, shared)
        # A call inside a tool leaves the results of the case to the agent's own calls.
        self._case_stubs = {nested: Playback(recorded.stubs, {}) for nested in (False, True)}
        self._secrets = secrets or Secrets(os.environ)
        self._places = itertools.count()
        self._sent_shared = set(shared)
        self._known_contents: set[str] = set()
        self._call_ids: dict[str, str] = {}
        self._missed: list[NotRecordedError] = []
        self.side_by_side = SideBySide()
        self.turn = 0
        """The current turn of the case, from 0."""

    def check(self) -> None:
        """Raises the NotRecordedError of a missing entry again, because the agent may have caught it."""
        if self._missed:
            raise self._missed[0] from None

    def model_call(self, request: JsonRequest, agent: str = "") -> ModelExchange:
        """The exchange for a request; an empty one where models are neither recorded nor replayed."""
        if self.modes.models == "off":
            return ModelExchange()
        place = next(self._places)
        try:
            prints = self._prints(request)
        except (TypeError, ValueError) as error:
            return self.unrecordable(f"a request to model {request.model}", error)
        if self.modes.models != "record":
            for variant in chain([prints], self._earlier(request)):
                match = self._playback.model_call(variant, errors=self.modes.models == "replay")
                if match is not None:
                    return self._replayed(place, match)
        if self.modes.models == "replay":
            why = self._playback.why_no_answer(prints, agent, list(self._earlier(request)))
            return ModelExchange(missed=self._miss(f"{_whose(agent)} in turn {self.turn + 1} is not in", why))
        # Now, since answers to requests side by side come in another order each time.
        entry = self._unanswered(prints, agent)

        def keep(responses: Sequence[Json], error: Exception | None, version: str) -> None:
            day = datetime.now(UTC).date().isoformat()
            self._keep(place, prints, replace(entry, served=version, recorded=day), responses, error)

        return ModelExchange(keep=keep)

    def _prints(self, request: JsonRequest) -> Fingerprints:
        return fingerprints_without(request, self._secrets, datetime.now().astimezone())

    def _earlier(self, request: JsonRequest) -> Iterator[Fingerprints]:
        """The fingerprints of the request under each earlier name of an agent or tool."""
        return map(self._prints, under_earlier_names(request, self._recorded.renamed))

    def _replayed(self, place: int, number: int) -> ModelExchange:
        entry = self._playback.entries[number]
        assert isinstance(entry, ModelCall)
        self._known_contents |= entry.said.keys()
        for response in entry.responses:
            self._number_calls(response)
        self._send({"at": place, "used": number})
        return ModelExchange(copy.deepcopy(entry.responses), entry.error, is_replayed=True)

    def _unanswered(self, prints: Fingerprints, agent: str) -> ModelCall:
        request, ids = prints.request, {line.id for line in shared_lines(prints)}
        contents = new_contents(prints, self._known_contents)
        self._known_contents |= contents.keys()
        return ModelCall(
            case=self._recorded.case,
            repeat=self._recorded.repeat,
            turn=self.turn,
            agent=agent,
            model=request.model,
            key=prints.key,
            exact=prints.exact if prints.exact != prints.key else "",
            masked=prints.masked,
            instruction=prints.instruction if prints.instruction in ids else "",
            tools=prints.tools if prints.tools in ids else "",
            config=request.config,
            contents=" ".join(prints.contents),
            said=contents,
        )

    def _keep(
        self,
        place: int,
        prints: Fingerprints,
        entry: ModelCall,
        responses: Sequence[Json],
        error: Exception | None,
    ) -> None:
        if isinstance(error, _MISTAKES):
            return
        try:
            masked = self._secrets.without(self._joined_masked(list(map(self._number_calls, responses))))
            entry = finite(replace(entry, responses=masked, error=self._error(error)))
        except (TypeError, ValueError) as unfit:
            self.unrecordable(f"an answer of model {entry.model}", unfit)
            return
        shared = [line for line in shared_lines(prints) if line.id not in self._sent_shared]
        self._sent_shared |= {line.id for line in shared}
        self._send_entry(place, entry, shared)

    def _send_entry(self, place: int, entry: Entry, shared: Sequence[Shared] = ()) -> None:
        lines = [entry_to_json(line) for line in shared]
        self._send({"at": place, "entry": entry_to_json(entry), "shared": lines})

    def _plain(self, value: Any) -> Any:
        # Frameworks that record have loaded it; an agent that is a callable needs no pydantic.
        from pydantic_core import to_jsonable_python

        return self._secrets.without(to_jsonable_python(value))

    def _error(self, error: Exception | None) -> Json | None:
        if error is None:
            return None
        described: Json = self._secrets.without(error_to_json(error))
        return described

    def _joined_masked(self, responses: list[Json]) -> list[Json]:
        """The responses without secrets that are split over several of them."""
        texts = [part["text"] for part in _text_parts(responses)]
        masked = self._secrets.mask_pieces(texts)
        if masked == texts:
            return responses
        responses = copy.deepcopy(responses)
        for part, text in zip(_text_parts(responses), masked, strict=True):
            part["text"] = text
        return responses

    def _number_calls(self, response: Json) -> Json:
        """A response with numbered call ids in place of random ones, so that recordings are equal."""
        for call in [part["function_call"] for part in _parts(response) if part.get("function_call")]:
            if call_id := call.get("id"):
                call["id"] = self._call_ids.setdefault(call_id, self._free_id(call_id))
        return response

    def _free_id(self, call_id: str) -> str:
        if call_id.startswith("recorded-"):
            return call_id
        ids = set(self._call_ids.values())
        return next(free for n in itertools.count(1) if (free := f"recorded-{n}") not in ids)

    def tool_call(self, tool: str, args: Json, *, nested: bool = False) -> ToolExchange | None:
        """The exchange for a call; None for a live tool, and where the call cannot be recorded."""
        mode = self.modes.of_tool(tool)
        if mode == "live":
            return None
        place = next(self._places)
        try:
            # Tools may change their arguments.
            plain: Json = copy.deepcopy(self._secrets.without(args))
        except (TypeError, ValueError) as error:
            if mode == "stub":
                return ToolExchange(missed=self._miss(f"a call of {tool} cannot be in", str(error)))
            self.unrecordable(f"a call of {tool}", error)
            return None
        if mode == "record":
            self.side_by_side.start(place)
            case, repeat = self._recorded.case, self._recorded.repeat
            call = ToolCall(case, repeat, self.turn, tool, plain, nested=nested)
            before_end = partial(self.side_by_side.state_before_end, place)
            return ToolExchange(keep=partial(self._keep_tool, place, call), state_before_end=before_end)
        sources: tuple[tuple[Playback, Literal["recording", "case"], bool], ...]
        sources = (self._playback, "recording", nested), (self._case_stubs[nested], "case", False)
        for playback, source, is_nested in sources:
            # The case has its calls as they are made, a recording has them without secrets.
            match = playback.tool_call(tool, args, plain, nested=is_nested)
            if match is not None:
                if source == "recording":
                    self._send({"at": place, "used": match})
                entry = playback.entries[match]
                assert isinstance(entry, ToolCall)
                return ToolExchange(copy.deepcopy(entry), source)
        why = self._playback.why_no_result(tool, plain, nested=nested)
        called = f"tool {tool} was called with {show_value(plain, 200)} and is stubbed, but the call is in"
        neither = f"{called} neither the case's own tool responses nor"
        return ToolExchange(missed=self._miss(neither, why))

    def _keep_tool(self, place: int, call: ToolCall, outcome: ToolOutcome) -> None:
        ended = self.side_by_side.end(place, changes=bool(outcome.state or outcome.removed))
        try:
            if outcome.unrecordable:
                raise ValueError(outcome.unrecordable)
            done = {"result": outcome.result, "state": outcome.state, "actions": outcome.actions}
            done = self._plain(done) | {"removed": outcome.removed, "models": outcome.models}
            entry = finite(replace(call, error=self._error(outcome.error), ended=ended, **done))
        except (TypeError, ValueError) as unfit:
            self.unrecordable(f"the result of {call.tool}", unfit)
            return
        self._send_entry(place, entry)

    def _miss(self, what: str, why: str) -> NotRecordedError:
        error = NotRecordedError(
            f"{what} {self._recorded.file}: {why}. --record auto requests the missing ones"
        )
        self._missed.append(error)
        return error

    def unrecordable(self, what: str, error: Exception) -> ModelExchange:
        """The exchange for a call that cannot be recorded: a live call, or in a replay an error."""
        if self.modes.models == "replay":
            return ModelExchange(missed=self._miss(f"{what} cannot be in", message_of(error)))
        self._send({"note": f"case {self._recorded.case}: {what} is not recorded: {message_of(error)}"})
        return ModelExchange()


def _text_parts(responses: Sequence[Json]) -> list[Json]:
    parts = (part for response in responses for part in _parts(response))
    return [part for part in parts if isinstance(part.get("text"), str)]


def _parts(response: Json) -> list[Json]:
    """The parts of a response of google-adk or of an `evaltui.Agent`."""
    return parts_in(response.get("content") or response)


def _whose(agent: str) -> str:
    if agent.startswith(JUDGE_OF):
        return f"the request of the {agent}"
    return f"the model call of {agent}" if agent else "a model call"


@dataclass(frozen=True, kw_only=True)
class _Exchange:
    """The recording of a call, or an error for a missing entry."""

    missed: NotRecordedError | None = None
    """The error to raise for a missing entry."""

    def check(self) -> None:
        """Raises the error of a missing entry."""
        if self.missed is not None:
            raise self.missed


@dataclass(frozen=True)
class ModelExchange(_Exchange):
    """The recording of a model request: its responses and error, and a function that records new ones."""

    responses: Sequence[Json] = ()
    error: Json | None = None
    is_replayed: bool = False
    keep: Callable[[Sequence[Json], Exception | None, str], None] = lambda responses, error, version: None
    """Records new responses, the error, and the model that the responses name."""

    @property
    def mark(self) -> Json:
        """Data for the events of a request; empty where a model answers."""
        return {"replayed": True} if self.is_replayed else {"missed": True} if self.missed else {}

    def end(self) -> None:
        """Raises the recorded error of the model."""
        if self.error is not None:
            raise error_from_json(self.error)


@dataclass(frozen=True)
class ToolOutcome:
    """The outcome of a tool call; see `ToolCall`."""

    result: Any = None
    error: Exception | None = None
    state: Json = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    actions: Json = field(default_factory=dict)
    models: int = 0
    unrecordable: str = ""
    """Why it is not recorded, a clause; "" where it is."""


@dataclass(frozen=True)
class ToolExchange(_Exchange):
    """The recording of a tool call: the recorded call, and a function that records a new outcome."""

    recorded: ToolCall | None = None
    source: Literal["", "recording", "case"] = ""
    keep: Callable[[ToolOutcome], None] = lambda outcome: None
    """Records a new outcome."""
    state_before_end: Callable[[Json], Json] = lambda after: after
    """See `SideBySide`."""


# The call recorder of the current task, if its run of a case is recorded.
current_call_recorder: ContextVar[CallRecorder | None] = ContextVar("evaltui_tape", default=None)


@contextmanager
def recording_calls(recorder: CallRecorder | None) -> Iterator[None]:
    """Sets the recorder for all calls of this task and its children."""
    token = current_call_recorder.set(recorder)
    try:
        yield
    finally:
        current_call_recorder.reset(token)
