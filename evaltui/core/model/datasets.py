"""Google's EvaluationDataset, the format of agents-cli, as EvalSet data.

Expectations come from `reference.response`, `reference_trajectory` and the conversation in `agent_data`.
Answers in `responses`, and events in `agent_data` after the prompt, are those of a run and no expectations.
Turns without expectations are not checked; see `UNSPECIFIED`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

from evaltui.core.model.events import Json
from evaltui.core.model.json_values import (
    both_spellings,
    field_of,
    indexed_objects,
    list_at,
    list_or_empty,
    object_or_empty,
    spelling_in,
    spelling_pairs,
    value_at,
)
from evaltui.core.model.problems import (
    UNKNOWN_KEY,
    JsonPath,
    Problem,
    objects_in,
    unknown_keys,
    wrong_kind,
)
from evaltui.text.values import did_you_mean, show_value

OWN_KEY = "evaltui"
UNSPECIFIED = {"unspecified": "not checked"}
"""The value of `OWN_KEY` in a case whose absent responses and calls are not checked."""
CHECKED = {"unspecified": "checked"}
"""The opposite, under `OWN_KEY` of a dataset's case: they are expectations, as in ADK."""
OF_CASE, OF_SET = "case", "set"
"""Members under `OWN_KEY` of a dataset's case: what the format has no place for, of the eval case and, at the
first case, of its set. Turns are named by their index, rubrics by their id."""
ORIGINAL = "dataset_case"
"""Under `OWN_KEY` of a case of a dataset, never in a file: what functions of agents-cli read of it."""

# The members of a dataset's case that an eval case has a place for, "" for a text; None for Google's others.
_PARTS = """
    text thought thought_signature function_call function_response part_metadata inline_data file_data
    executable_code code_execution_result tool_call tool_response media_resolution media_processing
    video_metadata audio_metadata audio_transcription speech_metadata document_metadata spreadsheet_metadata
"""
_PART: Json = dict.fromkeys(_PARTS.split(), ...)
_CONTENT: Json = {"role": "", "parts": [_PART]}
_STEP: Json = {**_CONTENT, "tool_name": "", "tool_input": {"*": ...}}
_MESSAGE: Json = {"author": "", "content": _CONTENT, "turn_id": None, "creation_timestamp": None}
_EVENT: Json = _MESSAGE | {"state_delta": {"*": ...}, "event_time": None, "active_tools": None}
_STATEMENT: Json = {"property": {"description": ""}}
_RUBRIC: Json = {"rubric_id": ..., "content": _STATEMENT, "type": "", "importance": None}
_PLACES: Json = {
    "eval_case_id": ...,
    "prompt": _CONTENT,
    "reference": {"response": _CONTENT},
    "reference_trajectory": [_STEP],
    "conversation_history": [_MESSAGE],
    "agent_data": {"agents": None, "turns": [{"turn_index": ..., "turn_id": None, "events": [_EVENT]}]},
    "user_scenario": {"starting_prompt": "", "conversation_plan": "", "test_case_title": None},
    "session_inputs": {"app_name": "", "user_id": "", "state": {"*": ...}},
    "rubric_groups": {"*": {"group_id": None, "display_name": None, "rubrics": [_RUBRIC]}},
    OWN_KEY: {"unspecified": ..., OF_CASE: {"*": ...}, OF_SET: {"*": ...}},
}
_RECORDED_KEYS = ("responses", "intermediate_events")
_OF_RUNS = both_spellings((*_RECORDED_KEYS, "agent_data"))
_OF_GOOGLE = (*_PLACES, *_RECORDED_KEYS, "system_instruction", "agent_info", "interactions_data_source")
_OF_EVAL_CASES = (
    *("eval_id", "conversation", "conversation_scenario", "session_input", "rubrics", "final_session_state"),
    "creation_timestamp",
)
_RESERVED = both_spellings((*_OF_GOOGLE, *_OF_EVAL_CASES))
_DATASET_ONLY_KEYS = both_spellings(
    ("eval_case_id", "prompt", "agent_data", "user_scenario", "reference", "responses")
)
RUBRIC_TYPES = ("FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY", "TRAJECTORY_QUALITY")
_MAX_VALUE_LENGTH = 100


def is_dataset_case(keys: Collection[str]) -> bool:
    """Whether a case with these keys is one of an EvaluationDataset, not of an EvalSet."""
    own = {"eval_id", "evalId", "conversation", "conversation_scenario", "conversationScenario"}
    return own.isdisjoint(keys) and any(name in keys for name in _DATASET_ONLY_KEYS)


def checks_unspecified(case: Mapping[str, Any]) -> bool:
    """Whether absent responses and calls of a case are expectations, as in ADK; not in a dataset."""
    own = case.get(OWN_KEY)
    return not isinstance(own, dict) or own.get("unspecified") != UNSPECIFIED["unspecified"]


def without_original(case: Json) -> Json:
    """A case as a file may have it."""
    own = case.get(OWN_KEY)
    if not isinstance(own, dict) or ORIGINAL not in own:
        return case
    rest = {name: value for name, value in own.items() if name != ORIGINAL}
    others = {name: value for name, value in case.items() if name != OWN_KEY}
    return {**case, OWN_KEY: rest} if rest else others


def is_dataset(data: Any) -> bool:
    """Whether JSON data is an EvaluationDataset, valid or not."""
    if not isinstance(data, dict) or data.keys() & {"eval_set_id", "evalSetId"}:
        return False
    cases = field_of(data, "eval_cases")
    return isinstance(cases, list) and any(is_dataset_case(case) for _, case in indexed_objects(cases))


def from_dataset(data: Json, name: str) -> tuple[Json, list[Problem]]:
    """A dataset as an eval set with the id `name`; problems have paths of the dataset."""
    key = spelling_in("eval_cases", data)
    problems = unknown_members(data)
    cases = []
    for index, (case, eval_id) in enumerate(zip(data[key], case_ids(data[key]), strict=True)):
        converted, of_case = from_dataset_case(case, eval_id)
        problems += (replace(problem, path=(key, index, *problem.path)) for problem in of_case)
        if isinstance(case, dict):
            cases.append(converted)
    members = next((of_set for _, case in indexed_objects(data[key]) if (of_set := _own(case, OF_SET))), {})
    return {"eval_set_id": name, "name": name} | members | {"eval_cases": cases}, problems


def unknown_members(data: Json) -> list[Problem]:
    """Problems of the members of a dataset, beside its cases, that nothing reads."""
    names = ("eval_cases", "candidate_name", "eval_dataset_df")
    return [UNKNOWN_KEY.at(*finding) for finding in unknown_keys(data, spelling_pairs(names))]


def case_ids(cases: Sequence[Any]) -> list[str]:
    """The ids of the cases of a dataset; a case without an id is named by its index."""
    names = [field_of(case, "eval_case_id") for case in cases]
    used = set(map(str, names))
    for index, name in enumerate(names):
        if not isinstance(name, str):
            names[index] = next(name for n in count(index + 1) if (name := f"case_{n}") not in used)
            used.add(names[index])
    return names


def from_dataset_case(case: Any, eval_id: str) -> tuple[Any, list[Problem]]:
    """A case of a dataset as a case of an eval set; problems have paths of the dataset's case."""
    if not isinstance(case, dict):
        return case, [wrong_kind((), case, dict)]
    converter = _Case(case)
    return converter.to_eval_case(eval_id), converter.problems


class DatasetTurn(NamedTuple):
    """A message of the user and the agents' events after it, with their places in the case."""

    content: Json
    path: JsonPath
    """The path of the message, a content or an event with one."""
    events: list[Json]
    """Author and content of each event of agents."""
    paths: list[JsonPath]
    """The paths of `events`."""


def dataset_turns(case: Json) -> list[DatasetTurn]:
    """The turns of a case of a dataset."""
    return _Case(case).turns({})


def rubric_places(case: Json) -> dict[str, JsonPath]:
    """The places of the rubrics of a case, by their ids in the eval case."""
    return {rubric["rubric_id"]: path for path, rubric in _Case(case).rubrics()}


def dataset_place(case: Json, path: JsonPath) -> JsonPath:
    """The path in a dataset's case for a path in the eval case, or for the nearest place around it."""
    names = {
        "eval_id": "eval_case_id",
        "conversation_scenario": "user_scenario",
        "session_input": "session_inputs",
    }
    match path:
        case ("conversation", int(number), *rest) if number < len(turns := dataset_turns(case)):
            turn, is_last = turns[number], number == len(turns) - 1
            expectations = {"final_response": "reference", "intermediate_data": "reference_trajectory"}
            if rest and rest[0] in expectations:
                key = spelling_in(expectations[str(rest[0])], case)
                if is_last and key in case:
                    return (key, *(("response", *rest[1:]) if key == "reference" else ()))
                return turn.paths[-1 if rest[0] == "final_response" else 0] if turn.paths else turn.path
            return (*turn.path, *(() if turn.path == ("prompt",) else ("content",)), *rest[1:])
        case ("rubrics", int(number), *_):
            return [*rubric_places(case).values(), ()][min(number, len(rubric_places(case)))]
        case (str(name), *rest) if name in names:
            return (spelling_in(names[name], case), *rest)
    # A member of the dataset itself, such as one that is given twice.
    return path if path and path[0] in case else ()


def is_recorded(case: Json) -> bool:
    """Whether a case has a recorded run: it has both a prompt and turns."""
    return _Case(case).is_recorded


def has_runs(data: Any) -> bool:
    """Whether an agent was run with a case of a dataset, or its responses are there."""
    cases = indexed_objects(field_of(data, "eval_cases"))
    return any(is_recorded(case) or bool(field_of(case, "responses")) for _, case in cases)


class RecordedCase(NamedTuple):
    """A case with a recorded run."""

    eval_case_id: str
    turns: list[DatasetTurn]
    has_events: bool
    """Whether the calls of its last turn are recorded, not only its response."""
    number: int = 0
    """Number of its response in the case, from 0."""
    has_other_response: bool = False
    """Whether `responses` has another text than its events, which count."""


def recorded_cases(data: Json) -> Iterator[RecordedCase]:
    """The recorded runs of the cases of a dataset: each response of a case is one."""
    key = spelling_in("eval_cases", data)
    for index, case in indexed_objects(data[key]):
        turns = dataset_turns(case)
        if not turns:
            continue
        name = str(field_of(case, "eval_case_id") or f"case_{index + 1}")
        *earlier, last = turns
        responses = [content_of(field_of(item, "response")) for item in list_at(case, ("responses",))]
        if last.events:
            differs = bool(responses) and _text_of(responses[0]) not in (
                "",
                _text_of(last.events[-1]["content"]),
            )
            yield RecordedCase(name, turns, has_events=True, has_other_response=differs)
        if not any(responses):
            continue
        for number, content in enumerate(responses):
            if number or not last.events:
                # A response that is missing among others is one of a run that failed.
                events = [{"author": "model", "content": content}] if content is not None else []
                run = [*earlier, last._replace(events=events, paths=[])]
                yield RecordedCase(name, run, has_events=False, number=number)


def _text_of(content: Json | None) -> str:
    return "".join(part["text"] for part in _texts(content or {"parts": []})).strip()


def columns(case: Json) -> Json:
    """The members of a case that neither format knows, such as columns of the user's own; both keep them."""
    return {name: value for name, value in case.items() if name not in _RESERVED}


def other_members(eval_case: Json) -> Json:
    """The members of an eval case that google-adk does not know, without those of evaltui."""
    names = both_spellings((OWN_KEY, *_OF_EVAL_CASES))
    return {name: value for name, value in eval_case.items() if name not in names}


def left_out_warnings(data: Any) -> Iterator[Problem]:
    """Warnings for the members of a dataset that an eval set has no place for, with their values."""
    if not is_dataset(data):
        return
    key = spelling_in("eval_cases", data)
    for name in (name for name in data if name != key):
        yield _left_out((name,), data[name])
    for index, case in indexed_objects(data[key]):
        is_actual = is_recorded(case)
        for path, value in _without_place(case, _PLACES, ()):
            if path[0] in _RESERVED and not (is_actual and path[0] == spelling_in("agent_data", case)):
                yield _left_out((key, index, *path), value)
        if is_actual:
            yield _left_out((key, index, spelling_in("agent_data", case)), field_of(case, "agent_data"))


def _left_out(path: JsonPath, value: Any) -> Problem:
    why = "actual, not expected" if path[-1] in _OF_RUNS else "an eval set has no place for it"
    return Problem.warning(path, f"{why}; left out: {show_value(value, _MAX_VALUE_LENGTH)}")


def _without_place(data: Any, places: Any, path: JsonPath) -> Iterator[tuple[JsonPath, Any]]:
    """The members that have no place in `places`, each with its path."""
    if isinstance(data, dict) and isinstance(places, dict):
        names = both_spellings(places)
        for name, value in data.items():
            place = places.get(names.get(name, "*"))
            if place is None:
                yield (*path, name), value
            else:
                yield from _without_place(value, place, (*path, name))
    elif isinstance(data, list) and isinstance(places, list):
        for index, item in enumerate(data):
            yield from _without_place(item, places[0], (*path, index))


def _unread(data: Any, places: Any, path: JsonPath) -> Iterator[Problem]:
    """Problems of the members of a case that neither format knows, and of those of another kind."""
    kind = type(places)
    # A text is a content of one part.
    if kind not in (dict, list, str) or data is None or (isinstance(data, str) and "parts" in places):
        return
    if not isinstance(data, kind):
        yield wrong_kind(path, data, kind)
    elif isinstance(data, list):
        for index, item in enumerate(data):
            yield from _unread(item, places[0], (*path, index))
    elif isinstance(data, dict):
        names = both_spellings(places)
        if path and "*" not in places:
            for finding in unknown_keys(data, spelling_pairs(places), path):
                yield UNKNOWN_KEY.at(*finding)
        for name, value in data.items():
            yield from _unread(value, places.get(names.get(name, "*")), (*path, name))


def by_name(items: list[Any]) -> dict[str, Json]:
    """The turns or rubrics of a list by the names that they have under `OWN_KEY`."""
    return {str(field_of(item, "rubric_id") or index): item for index, item in indexed_objects(items)}


def add_kept(value: Json, members: Json) -> None:
    """Adds to an eval case, or a part of it, what evaltui keeps of it.

    Anything that the dataset states otherwise stays as stated: it may have been changed since.
    """
    for name, item in members.items():
        stated = value.get(name)
        if isinstance(stated, list) and isinstance(item, dict):
            entries = by_name(stated)
            for key, entry in item.items():
                if key in entries and isinstance(entry, dict):
                    add_kept(entries[key], entry)
        elif name in _STATED:
            if _STATED[name](stated) == _STATED[name](item):
                value[name] = item
        elif stated is None:
            value[name] = item
        elif isinstance(stated, dict) and isinstance(item, dict):
            add_kept(stated, item)


def _own(case: Json, name: str) -> Json:
    """A member of what evaltui keeps at a case; empty where there is none."""
    return object_or_empty(field_of(field_of(case, OWN_KEY), name))


def _calls_in(data: Any) -> list[Json]:
    """The calls in intermediate data of either shape."""
    uses, events = (list_or_empty(field_of(data, name)) for name in ("tool_uses", "invocation_events"))
    of_events = [call for event in events for call in calls_of(field_of(event, "content"))]
    return [*uses, *of_events]


# Of these members, what a dataset states: they are kept whole, and count as long as it states that.
_STATED: Mapping[str, Callable[[Any], Any]] = {
    "intermediate_data": _calls_in,
    "final_response": lambda content: _texts(content_of(content) or {"parts": []}),
}


class _Case:
    """A case of a dataset."""

    def __init__(self, case: Json) -> None:
        self._case = case
        self.problems: list[Problem] = []
        """Paths are relative to the case."""

    def to_eval_case(self, eval_id: str) -> Json:
        """The case as one of an eval set; `eval_id` is the id for a case without one."""
        case: Json = {"eval_id": self._member("eval_case_id", str) or eval_id}
        scenario = self._member("user_scenario", dict)
        state: Json = {}
        if scenario is not None:
            case["conversation_scenario"] = {
                name: field_of(scenario, name)
                for name in ("starting_prompt", "conversation_plan")
                if field_of(scenario, name) is not None
            }
        else:
            case["conversation"] = self._conversation(state)
        if session := self._session(state):
            case["session_input"] = session
        if rubrics := [rubric for _, rubric in self.rubrics()]:
            case["rubrics"] = rubrics
        case |= columns(self._case)
        add_kept(case, _own(self._case, OF_CASE))
        self._name_ignored()
        is_checked = field_of(field_of(self._case, OWN_KEY), "unspecified") == CHECKED["unspecified"]
        return case | {OWN_KEY: {**({} if is_checked else UNSPECIFIED), ORIGINAL: self._original()}}

    def _name_ignored(self) -> None:
        """Adds the problems of members that nothing reads, or whose kind nothing reads."""
        places = {problem.path for problem in self.problems}
        for problem in _unread(self._case, _PLACES, ()):
            if problem.path not in places:
                self.problems.append(problem)
        for name in self._case.keys() & both_spellings(_OF_EVAL_CASES).keys():
            if name not in ("creation_timestamp", "creationTimestamp"):
                self._warn((name,), f"a key of eval sets, ignored; write it under {OWN_KEY}.{OF_CASE}")
        stated = field_of(field_of(self._case, OWN_KEY), "unspecified")
        if stated not in (None, *UNSPECIFIED.values(), *CHECKED.values()):
            self._warn((OWN_KEY, "unspecified"), 'ignored: it must be "checked" or "not checked"')

    def _original(self) -> Json:
        """The members of the dataset's case that no run has written."""
        return {name: value for name, value in self._case.items() if name not in _OF_RUNS}

    def _conversation(self, state: Json) -> list[Json]:
        turns = self.turns(state)
        conversation = [turn_of(turn.content, turn.events) for turn in turns]
        if conversation:
            if self.is_recorded:
                # Its last turn is what an agent did.
                conversation[-1] = turn_of(turns[-1].content, [])
            self._expect(conversation[-1])
        else:
            message = "no message of the user: prompt, agent_data.turns and user_scenario are missing"
            self.problems.append(Problem.error((), message))
        return conversation

    def turns(self, state: Json) -> list[DatasetTurn]:
        """The turns of the case; state changes before the first message are added to `state`."""
        turns: list[DatasetTurn] = []
        for event, path in self._events():
            delta, stated = field_of(event, "state_delta"), field_of(event, "content")
            content, is_user = content_of(stated), (author := event.get("author")) == "user"
            # Of agents there are events without a content.
            is_lost = (is_user and not delta) or stated not in (None, {}) or content_of(event)
            if content is None and is_lost:
                self.problems.append(Problem.error(path, "must have a content with parts"))
            if not is_user and isinstance(author, str) and author.casefold() == "user":
                self._warn((*path, "author"), f'{author!r} is read as an agent; the user is "user"')
            if isinstance(delta, dict) and not turns:
                state |= delta
            elif delta and (is_user or not content):
                self._warn(path, "state changes between turns have no place in an eval set; left out")
            if is_user and content:
                turns.append(DatasetTurn(content, path, [], []))
            elif content and turns:
                turns[-1].events.append({"author": str(event.get("author") or "model"), "content": content})
                turns[-1].paths.append(path)
            elif content:
                self._warn(path, "before the first message of the user; left out")
        return turns

    @property
    def is_recorded(self) -> bool:
        """Whether the case has a recorded run: it has both a prompt and turns."""
        events = any(field_of(turn, "events") for _, turn in indexed_objects(self._agent_turns()))
        return events and bool(field_of(self._case, "responses") or field_of(self._case, "prompt"))

    def _agent_turns(self) -> list[Any]:
        return list_or_empty(field_of(self._member("agent_data", dict), "turns"))

    def _events(self) -> Iterator[tuple[Json, JsonPath]]:
        """Messages before the prompt, the prompt, and the events of `agent_data`, each with its path."""
        path: JsonPath
        key = spelling_in("conversation_history", self._case)
        for message, where in objects_in(
            self._member("conversation_history", list) or [], (key,), self.problems
        ):
            yield message | {"author": _author(message)}, where
        prompt = field_of(self._case, "prompt")
        if prompt is not None:
            yield {"author": "user", "content": prompt}, ("prompt",)
        agent_data, is_first = spelling_in("agent_data", self._case), True
        for number, turn in indexed_objects(self._agent_turns()):
            events, path = list_or_empty(field_of(turn, "events")), (agent_data, "turns", number, "events")
            for event, where in objects_in(events, path, self.problems):
                # The output of a run may hold the prompt twice.
                if not (
                    is_first and prompt and event.get("author") == "user" and event.get("content") == prompt
                ):
                    yield event, where
                is_first = is_first and event.get("author") != "user"

    def _expect(self, turn: Json) -> None:
        """Adds the expectations of the case to its last turn."""
        reference = self._member("reference", dict) or {}
        stated = field_of(reference, "response")
        response = content_of(stated)
        if response is not None:
            turn["final_response"] = response
        elif stated is not None or content_of(reference):
            where: JsonPath = (spelling_in("reference", self._case),)
            self.problems.append(Problem.error(where, "must have a response with parts"))
        trajectory = self._member("reference_trajectory", list)
        if trajectory is not None:
            calls = []
            for index, step in enumerate(trajectory):
                if not (of_step := calls_of(step)):
                    where = (spelling_in("reference_trajectory", self._case), index)
                    self.problems.append(Problem.error(where, "must be a content with a function_call"))
                calls += of_step
            turn["intermediate_data"] = {"tool_uses": calls}

    def _session(self, state: Json) -> Json | None:
        session = self._member("session_inputs", dict)
        if session is None and not state:
            return None
        return {
            "app_name": str(field_of(session, "app_name") or ""),
            "user_id": str(field_of(session, "user_id") or ""),
            "state": object_or_empty(field_of(session, "state")) | state,
        }

    def rubrics(self) -> Iterator[tuple[JsonPath, Json]]:
        """The rubrics of all groups in the form of an eval case, each with its path in the dataset's case."""
        ids: set[str] = set()
        for group, value in (self._member("rubric_groups", dict) or {}).items():
            for index, rubric in indexed_objects(list_at(value, ("rubrics",))):
                text = value_at(field_of(field_of(rubric, "content"), "property"), ("description",))
                where = (spelling_in("rubric_groups", self._case), group, "rubrics", index)
                if not isinstance(text, str):
                    self._warn(where, "no content.property.description; left out")
                    continue
                rubric_id = str(field_of(rubric, "rubric_id") or f"{group}_{index + 1}")
                rubric_id = f"{group}.{rubric_id}" if rubric_id in ids else rubric_id
                ids.add(rubric_id)
                kinds = [kind for kind in (rubric.get("type"), group) if kind in RUBRIC_TYPES]
                stated = str(rubric.get("type") or "")
                if not kinds and (hint := did_you_mean(stated.upper(), RUBRIC_TYPES)):
                    self._warn((*where, "type"), f"judged as a rubric without a type{hint}")
                yield (
                    where,
                    {
                        "rubric_id": rubric_id,
                        "rubric_content": {"text_property": text},
                        **({"type": kinds[0]} if kinds else {}),
                    },
                )

    def _member(self, name: str, kind: type[Any]) -> Any:
        """A field of the case; None for a missing field and, with a problem, for a field of another type."""
        value = field_of(self._case, name)
        if value is None or isinstance(value, kind):
            return value
        path = (spelling_in(name, self._case),)
        if path not in (problem.path for problem in self.problems):
            self.problems.append(wrong_kind(path, value, kind))
        return None

    def _warn(self, path: JsonPath, message: str) -> None:
        self.problems.append(Problem.warning(path, message))


def _author(message: Json) -> str:
    """The author of a message in the history; `user` for the role of the user."""
    content = content_of(field_of(message, "content")) or {"parts": []}
    has_results = any(field_of(part, "function_response") for part in content["parts"])
    if content.get("role") == "user" and not has_results:
        return "user"
    return str(message.get("author") or "model")


def turn_of(user: Json, events: Sequence[Json]) -> Json:
    """A turn that expects the events of agents: the calls, and the last text as the response."""
    turn: Json = {"user_content": user}
    last = next((n for n in reversed(range(len(events))) if _texts(events[n]["content"])), None)
    if last is not None:
        content = events[last]["content"]
        turn["final_response"] = {"role": content.get("role") or "model", "parts": _texts(content)}
        others = [part for part in content["parts"] if part not in _texts(content)]
        between = [{**events[last], "content": {**content, "parts": others}}] if others else []
        events = [*events[:last], *between, *events[last + 1 :]]
    if any(calls_of(event["content"]) for event in events):
        turn["intermediate_data"] = {"invocation_events": list(events)}
    return turn


def _texts(content: Json) -> list[Json]:
    return [part for part in content["parts"] if part.get("text") and not part.get("thought")]


def calls_of(content: Any) -> list[Json]:
    if isinstance(content, dict) and isinstance(content.get("tool_name"), str):
        return [{"name": content["tool_name"], "args": content.get("tool_input") or {}}]
    parts = (content_of(content) or {"parts": []})["parts"]
    return [call for part in parts if isinstance(call := field_of(part, "function_call"), dict)]


def content_of(value: Any) -> Json | None:
    """The content for a value with parts that are objects; a text becomes a content with one part; None for
    others."""
    if isinstance(value, str) and value:
        return {"parts": [{"text": value}]}
    if not isinstance(value, dict) or not isinstance(value.get("parts"), list):
        return None
    parts = value["parts"]
    return value if parts and all(isinstance(part, dict) for part in parts) else None
