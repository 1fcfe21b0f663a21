"""A line of a recording (a model's answer, a tool's result, or a shared text), and its key.

The key of a request is made of its content without parts that differ in every run: call ids become numbers,
today's date with a time becomes `<today>`. Other dates belong to the content, because a changed date is
another question.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from ...text.values import cut
from ..model.events import Json, parts_in
from ..model.renaming import NameKind, Renaming
from ..secrets import Secrets

# Parts of a request's config that say how it is sent, not what is asked. Headers, and with them keys, are in
# there too: nobody may look.
UNASKED_CONFIG = frozenset({"http_options", "labels"})
# What a model wants back as it was, and what no two answers share.
_OPAQUE = ("thought_signature",)
_CALLS = ("function_call", "function_response")

_CLOCK = (
    r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp](?:[Mm]\b|\.[Mm]\.))?(?: ?UTC| ?GMT|Z|[+-]\d\d:?\d\d)?"
)
_DATES = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y%m%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%B {day}, %Y",
    "%b {day}, %Y",
    "{day} %B %Y",
    "{day} %b %Y",
    "{day}. %B %Y",
)


def with_numbered_calls(contents: Iterable[Json]) -> list[Json]:
    """Contents as JSON with call ids numbered in order of appearance, without signatures."""
    numbers: dict[str, str] = {}
    return [
        {**content, "parts": [_plain_part(part, numbers) for part in parts_in(content)]}
        for content in contents
    ]


def _plain_part(part: Json, numbers: dict[str, str]) -> Json:
    plain = {name: value for name, value in part.items() if name not in _OPAQUE}
    for name in _CALLS:
        call = plain.get(name)
        if isinstance(call, dict) and call.get("id"):
            plain[name] = {**call, "id": numbers.setdefault(call["id"], str(len(numbers) + 1))}
    return plain


def without_today(text: str, now: datetime) -> str:
    """The text with `<today>` for today's date, here or in UTC, in common formats, with the time after it.

    `now` must have a time zone.
    """
    return _today(now.date(), now.astimezone(UTC).date()).sub("<today>", text)


@lru_cache(maxsize=4)
def _today(*days: date) -> re.Pattern[str]:
    return re.compile("|".join(_pattern(day) for day in sorted(set(days))))


def _pattern(day: date) -> str:
    # In the language that the agent's own strftime uses, which runs in the same process.
    weekday = f"(?:{re.escape(day.strftime('%A'))}|{re.escape(day.strftime('%a'))})"
    numbers = dict.fromkeys((f"{day.day:02}", str(day.day)))
    dates = dict.fromkeys(
        re.escape(day.strftime(form.format(day=number))) for form in _DATES for number in numbers
    )
    # As `ctime` and `date` have it.
    dates[rf"{re.escape(day.strftime('%b'))} +{day.day} {_CLOCK}(?: [A-Z]{{3,4}})? {day.year}"] = None
    return rf"(?:{weekday},? )?(?<!\d)(?:{'|'.join(dates)})(?!\d)(?:(?:T|,? (?:at )?){_CLOCK})?"


@dataclass(frozen=True)
class JsonRequest:
    """A request to a model as JSON data."""

    model: str
    contents: Sequence[Json]
    instruction: Any = ""
    tools: Sequence[Json] = ()
    config: Json = field(default_factory=dict)
    """Further settings that affect the answer."""


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of a request and of its parts."""

    key: str
    """Fingerprint of the whole request."""
    exact: str
    """Fingerprint of the request with dates unchanged, which finds a request with a date that was today's
    only by chance."""
    instruction: str
    tools: str
    contents: tuple[str, ...]
    """Fingerprint of each content."""
    request: JsonRequest
    """The request without volatile parts."""
    masked: str = ""
    """Fingerprint of the request without secrets, "" for a request without any: see `fingerprints_without`.
    """

    @property
    def keys(self) -> tuple[str, ...]:
        """The possible keys of a recorded answer, the most reliable first."""
        return tuple(dict.fromkeys(filter(None, (self.key, self.exact, self.masked))))


def fingerprints(request: JsonRequest, now: datetime) -> Fingerprints:
    """The fingerprints of a request. Raises TypeError or ValueError for data that is no JSON."""
    data: Json = {
        "model": request.model,
        "instruction": request.instruction or "",
        # In which order tools are declared means nothing, and differs where they come from elsewhere.
        "tools": sorted(request.tools, key=_canonical_json),
        "config": request.config,
        "contents": with_numbered_calls(request.contents),
    }
    exact = _canonical_json(data)
    plain = without_today(exact, now)
    if plain != exact:
        data = json.loads(plain)
    return Fingerprints(
        key=_hash(plain, 16),
        exact=_hash(exact, 16),
        instruction=_hash(_canonical_json(data["instruction"]), 8),
        tools=_hash(_canonical_json(data["tools"]), 8),
        contents=tuple(_hash(_canonical_json(content), 8) for content in data["contents"]),
        request=JsonRequest(**data),
    )


def fingerprints_without(request: JsonRequest, secrets: Secrets, now: datetime) -> Fingerprints:
    """Fingerprints that store no secret and do not depend on the environment.

    Earlier answers of models and tools in the request are masked, because a replay gets them from a masked
    recording. Everything stored is masked; `masked` is the fingerprint of the whole masked request, which
    finds a request with another secret value, and old recordings. Raises TypeError or ValueError for data
    that is no JSON.
    """
    plain = asdict(request)
    clean = secrets.without(plain)
    without_secrets = fingerprints(JsonRequest(**clean), now)
    if clean is plain:
        return without_secrets
    pairs = zip(request.contents, clean["contents"], strict=True)
    contents = [new if _is_answer(old) else old for old, new in pairs]
    whole = fingerprints(replace(request, contents=contents), now)
    return replace(without_secrets, key=whole.key, exact=whole.exact, masked=without_secrets.key)


def _is_answer(content: Json) -> bool:
    """Whether a content is a model's answer or a tool's result."""
    parts = parts_in(content)
    return content.get("role") == "model" or any("function_response" in part for part in parts)


def call_key(tool: str, args: Json, *, nested: bool = False) -> str:
    """A key that is equal for calls of one tool with equal arguments, by the agent or inside a tool
    (`nested`)."""
    return f"{tool} {_canonical_json(args)}{' nested' if nested else ''}"


def _canonical_json(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _hash(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


# What stands for an agent's name where a judge was asked; the metric follows.
JUDGE_OF = "judge of "
# The member of a request's config with the digest of a function's code that answers in place of a model.
FUNCTION_CODE = "function_code"
# Enough to see which message is meant.
_MAX_DESCRIPTION_LENGTH = 120
_UNSAFE_CHARACTERS = re.compile("[\ud800-\udfff\u2028\u2029\x85]")


@dataclass(frozen=True)
class ModelCall:
    """A recorded request to a model with its responses."""

    case: str
    repeat: int
    turn: int
    model: str
    key: str
    contents: str
    """Fingerprints of the contents."""
    agent: str = ""
    """The agent of the request, or a judge: see `JUDGE_OF`."""
    exact: str = ""
    """Further keys, `exact` and `masked`: see `Fingerprints`."""
    masked: str = ""
    instruction: str = ""
    """The id of a `Shared` line."""
    tools: str = ""
    """The id of a `Shared` line."""
    config: Json = field(default_factory=dict)
    said: Json = field(default_factory=dict)
    """The beginnings, by fingerprint, of contents that no earlier entry of the case has."""
    responses: list[Json] = field(default_factory=list)
    """The responses in the framework's format, several for a streamed answer."""
    error: Json | None = None
    """The error after the responses; None for none."""
    served: str = ""
    """The model that the responses name; "" where they name none."""
    recorded: str = ""
    """The day in UTC on which it was recorded, `2026-11-30`; "" in older recordings."""

    @property
    def version(self) -> str:
        """The model that answered: `served`, in older recordings as the responses have it."""
        versions = (response.get("model_version") for response in reversed(self.responses))
        return self.served or next((name for name in versions if isinstance(name, str)), "")

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.key, self.exact, self.masked)))

    @property
    def content_prints(self) -> list[str]:
        return self.contents.split()

    @property
    def shared(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.instruction, self.tools)))


@dataclass(frozen=True)
class ToolCall:
    """A recorded tool call with its result or error."""

    case: str
    repeat: int
    turn: int
    tool: str
    args: Json
    result: Any = None
    error: Json | None = None
    state: Json = field(default_factory=dict)
    """Values that the tool set in the session state."""
    removed: tuple[str, ...] = ()
    """Keys that the tool removed from the session state."""
    actions: Json = field(default_factory=dict)
    """Further actions that the tool requested from its framework."""
    models: int = 0
    """Number of model calls inside the call, which a replay of its result does not make."""
    nested: bool = False
    """Whether it was made inside another tool call, which a replay may not make."""
    ended: int = 0
    """The place of its end among the ends of calls that ran side by side; 0 for a call by itself."""

    @property
    def keys(self) -> tuple[str, ...]:
        return (call_key(self.tool, self.args, nested=self.nested),)

    @property
    def shared(self) -> tuple[str, ...]:
        return ()


class SideBySide:
    """The tool calls of a conversation that run side by side on one state, and the order of their ends."""

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._beside: set[int] = set()
        self._ends = 0
        self._states: dict[int, Json] = {}
        self._last_changes: dict[str, int] = {}

    def start(self, place: int) -> None:
        self._running.add(place)
        if len(self._running) > 1:
            self._beside |= self._running

    def state_before_end(self, place: int, after: Json) -> Json:
        """The state when the last call beside that at a place ended; `after`, its state at its own end, where
        none has."""
        self._states |= dict.fromkeys(self._running - {place}, after)
        return self._states.pop(place, after)

    def end(self, place: int, *, changes: bool) -> int:
        """The value of `ToolCall.ended` for a call that began at a place; `changes`: the state."""
        self._running.discard(place)
        self._ends += 1
        return self._ends if changes and place in self._beside else 0

    def changes(self, call: ToolCall) -> tuple[Json, Sequence[str]]:
        """The keys that a replayed call sets and removes, without those that a call beside it changed later
        when both were recorded: a replay makes calls in the order in which they began."""
        if not call.ended:
            return call.state, call.removed
        last = self._last_changes
        keys = [key for key in (*call.state, *call.removed) if last.get(key, 0) < call.ended]
        last |= dict.fromkeys(keys, call.ended)
        return {key: call.state[key] for key in keys if key in call.state}, [
            key for key in keys if key in call.removed
        ]


@dataclass(frozen=True)
class Shared:
    """A system instruction (`text`), or declarations of tools, that several requests share."""

    id: str
    text: Any = None
    tools: list[Json] | None = None


Entry = ModelCall | ToolCall
RecordedCall = TypeVar("RecordedCall", ModelCall, ToolCall)

Line = Entry | Shared | Renaming
"""A line of a recording; a renaming tells that the requests before it had the old name."""

_KINDS: dict[str, type[Line]] = {
    "model": ModelCall,
    "tool": ToolCall,
    "shared": Shared,
    "renamed": Renaming,
}
# What a line is there for, unless it has an error.
_ANSWERS = {"model": "responses", "tool": "result"}
_FIELD_TYPES = {name: get_type_hints(kind) for name, kind in _KINDS.items()}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def entry_to_json(line: Line) -> Json:
    """JSON data of a line: `kind` first, then the fields in order, without empty fields other than the
    answer."""
    name = _NAMES[type(line)]
    data: Json = {"kind": name}
    answer = "" if getattr(line, "error", None) else _ANSWERS.get(name)
    for item in fields(line):
        value = getattr(line, item.name)
        empty = item.default_factory() if item.default_factory is not MISSING else item.default
        if value != empty or item.name == answer:
            data[item.name] = list(value) if isinstance(value, tuple) else value
    return data


class NewerRecordingError(ValueError):
    """A line has a kind or key that this version does not know."""


def entry_from_json(data: Any) -> Line:
    """The line in JSON data.

    Raises ValueError for other data, NewerRecordingError for an unknown kind or key of a later version, which
    may change the meaning.
    """
    name = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(name, str):
        raise ValueError("`kind` is missing")
    if (kind := _KINDS.get(name)) is None:
        raise NewerRecordingError(f"unknown kind {name!r}")
    values = {item.name: data[item.name] for item in fields(kind) if item.name in data}
    if unknown := sorted(data.keys() - values.keys() - {"kind"}):
        raise NewerRecordingError(f"unknown key {unknown[0]!r} in a {name} line")
    for key, value in values.items():
        if not _fits(value, _FIELD_TYPES[name][key]):
            raise ValueError(f"{key} has a value of the wrong type")
    if values.get("what", "tool") not in get_args(NameKind):
        raise NewerRecordingError(f"unknown kind of name {values['what']!r}")
    if "removed" in values:
        values["removed"] = tuple(values["removed"])
    try:
        line = kind(**values)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if (answer := _ANSWERS.get(name)) and answer not in values and not values.get("error"):
        raise ValueError(f"neither {answer} nor error")
    return line


def _fits(value: Any, kind: Any) -> bool:
    """Whether JSON data has the type of a field."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return any(_fits(value, alternative) for alternative in arguments)
    if origin in (list, tuple):
        return isinstance(value, list) and all(_fits(item, arguments[0]) for item in value)
    if origin is Literal:
        return isinstance(value, str)
    # In Python, true is an int as well.
    return kind is Any or (
        isinstance(value, origin or kind) and not (kind is int and isinstance(value, bool))
    )


def finite(entry: RecordedCall) -> RecordedCall:
    """An entry as it is. Raises ValueError for NaN and Infinity, which would be read as texts."""
    try:
        json.dumps(entry_to_json(entry), allow_nan=False)
    except ValueError:
        raise ValueError("NaN and Infinity are no numbers of JSON") from None
    return entry


def line_text(line: Line) -> str:
    """The text of a line, without its line end."""
    data = entry_to_json(line)
    text = json.dumps(data, ensure_ascii=False)
    # A lone surrogate cannot be written as UTF-8, and at these some readers break lines.
    return json.dumps(data) if _UNSAFE_CHARACTERS.search(text) else text


def answer_text(entry: Entry) -> str:
    """The answer in an entry as JSON, with what it did to the state."""
    if isinstance(entry, ModelCall):
        return _canonical_json([entry.responses, entry.error])
    return _canonical_json([entry.result, entry.error, entry.state, entry.removed, entry.actions])


def shared_lines(prints: Fingerprints) -> list[Shared]:
    """The shared lines to which an entry with these fingerprints refers."""
    request = prints.request
    lines = [Shared(prints.instruction, text=request.instruction)] if request.instruction else []
    return [*lines, Shared(prints.tools, tools=list(request.tools))] if request.tools else lines


def new_contents(prints: Fingerprints, recorded: Collection[str]) -> Json:
    """The beginnings of contents that are not in `recorded` yet, by fingerprint."""
    pairs = zip(prints.contents, prints.request.contents, strict=True)
    return {mark: describe(content) for mark, content in pairs if mark not in recorded}


def describe(content: Json) -> str:
    """A content in a few words: its author, texts, calls and results."""
    parts = [_describe_part(part) for part in parts_in(content)]
    return cut(f"{content.get('role') or 'model'}: {' · '.join(parts)}", _MAX_DESCRIPTION_LENGTH)


def _describe_part(part: Json) -> str:
    if call := part.get("function_call"):
        return f"calls {call.get('name')} {json.dumps(call.get('args') or {}, ensure_ascii=False)}"
    if result := part.get("function_response"):
        return f"{result.get('name')} returned {json.dumps(result.get('response'), ensure_ascii=False)}"
    if "text" in part:
        return str(part["text"])
    return next((name for name in part), "nothing")


def request_of(call: ModelCall, shared: Mapping[str, Shared]) -> JsonRequest:
    """The request of an entry, as far as it was recorded, which is without contents."""
    instruction, tools = shared.get(call.instruction), shared.get(call.tools)
    return JsonRequest(
        call.model,
        (),
        (instruction.text if instruction else "") or "",
        (tools.tools if tools else None) or (),
        call.config,
    )
