"""Applying an edit of an eval case to the EvaluationDataset case behind it.

Members that the edit does not concern, unknown keys included, stay unchanged. The result is read again and
compared with the edit, so that data that the format cannot hold is not lost silently.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from evaltui.core.matching.pairing import common_ends
from evaltui.core.model.datasets import (
    OWN_KEY,
    calls_of,
    columns,
    content_of,
    dataset_turns,
    from_dataset_case,
    is_recorded,
    rubric_places,
    turn_of,
)
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import field_of, list_at, object_or_empty, spelling_in, value_at
from evaltui.core.model.problems import JsonPath, errors_in
from evaltui.documents.dataset_meaning import (
    DETAILS,
    call_of,
    events_of_lists,
    meaning_of_case,
    meaning_of_turn,
    names_at,
    parts_of,
    path_in,
    unfit,
    with_kept,
)
from evaltui.documents.edits import EditError

_NEW_GROUP = "adk_rubrics"
_Placed = tuple[JsonPath, Json]
"""An event with its path in the case, () for a new one."""
_REFERENCES = ("reference", "reference_trajectory")
_OF_EVENTS = ("calls", "responses", "between", "response")
# What the format has no place for, by the part of a case: the first that fits.
_LIMITS: tuple[tuple[str, str], ...] = (
    ("user_persona", "a persona of the simulated user"),
    ("final_session_state", "the state after the last turn"),
    ("session_id", "the id of a session"),
    ("calls", "a turn before the last that calls no tool: without calls it is not checked"),
    ("responses", "responses of tools in a turn whose calls stand in reference_trajectory"),
    ("between", "texts before the response of a turn whose calls stand in reference_trajectory"),
    ("conversation.response", "a turn without a response whose last event is a text"),
    ("turn_rubrics", "rubrics of a single turn"),
)
_OF_RUN = (
    "the case holds the events of a run, so that its messages cannot be changed; remove agent_data and "
    "responses first"
)


def dataset_case(case: Json, eval_case: Json) -> Json:
    """The case of a dataset for an eval case; `case` is its previous data, {} for a new one.

    Raises EditError for data that an EvaluationDataset cannot hold.
    """
    written = _written(case, eval_case)
    if isinstance(case.get(OWN_KEY), dict):
        written = with_kept(written, eval_case)
    for path in unfit(eval_case, written):
        if not any(step in DETAILS for step in path):
            raise EditError(_refusal(path, case))
    return written


def exported_case(eval_case: Json) -> tuple[Json, list[tuple[JsonPath, str]]]:
    """An eval case as a new case of a dataset, and the paths of what that does not hold, with reasons.

    What the format has no place for is kept under `OWN_KEY`, where reading brings it back from there.
    Raises EditError where the case cannot be one of a dataset.
    """
    written = with_kept(_written({}, eval_case), eval_case)
    paths = list(unfit(eval_case, written))
    if any(path[0] == "conversation" and len(path) == 2 for path in paths):
        raise EditError("an EvaluationDataset cannot hold an event of the user within a turn")
    paths.reverse()
    reasons = {path_in(eval_case, names_at(path)): _refusal(path, {}) for path in paths}
    return written, sorted(reasons.items(), key=lambda item: list(map(str, item[0])))


def _written(case: Json, eval_case: Json) -> Json:
    """A case of a dataset with as much of an eval case as the format has a place for."""
    before = from_dataset_case(case, "")[0] if case else {}
    before_edit, after_edit = meaning_of_case(before), meaning_of_case(eval_case)
    written = copy.deepcopy(case)
    if before_edit["eval_id"] != after_edit["eval_id"]:
        _put(written, "eval_case_id", after_edit["eval_id"])
    if before_edit["scenario"] != after_edit["scenario"]:
        _write_scenario(written, after_edit["scenario"])
    if before_edit["session"] != after_edit["session"]:
        _write_session(written, after_edit["session"])
    if before_edit["rubrics"] != after_edit["rubrics"]:
        _write_rubrics(written, after_edit["rubrics"])
    if before_edit["conversation"] != after_edit["conversation"]:
        _Conversation(case, written).write(after_edit["conversation"])
    for name in columns(written).keys() - after_edit["others"].keys():
        del written[name]
    written |= columns(after_edit["others"])
    if errors := errors_in(from_dataset_case(written, "")[1]):
        raise EditError(f"an EvaluationDataset cannot hold this: {errors[0].message}")
    return written


def _refusal(path: JsonPath, case: Json) -> str:
    if path[0] == "conversation" and is_recorded(case):
        return _OF_RUN
    dotted = ".".join(str(step) for step in path if isinstance(step, str))
    what = next((words for part, words in _LIMITS if part in dotted), ".".join(names_at(path)))
    return f"an EvaluationDataset cannot hold {what}"


def _write_scenario(case: Json, scenario: Json | None) -> None:
    if scenario is None:
        case.pop(spelling_in("user_scenario", case), None)
        return
    holder = _holder(case, "user_scenario")
    for name in ("starting_prompt", "conversation_plan"):
        if name in scenario:
            _put(holder, name, scenario[name])
        else:
            holder.pop(spelling_in(name, holder), None)
    for name in ("prompt", "reference", "reference_trajectory", "conversation_history"):
        case.pop(spelling_in(name, case), None)


def _write_session(case: Json, session: Json) -> None:
    """Writes the session: keys of the state where they stand, in a seeded event or the inputs."""
    state = session.get("state", {})
    inputs = field_of(case, "session_inputs") or {}
    seeded: set[str] = set()
    for path in _seeds(case):
        delta = value_at(case, path)
        for key in list(delta):
            if key in state:
                delta[key] = state[key]
            else:
                del delta[key]
        seeded |= delta.keys()
    rest = {key: value for key, value in state.items() if key not in seeded}
    if not inputs and not rest and not (session.get("app_name") or session.get("user_id")):
        return
    holder = _holder(case, "session_inputs")
    for name in ("app_name", "user_id"):
        if session.get(name) or spelling_in(name, holder) in holder:
            _put(holder, name, session.get(name) or "")
    if rest or spelling_in("state", holder) in holder:
        holder["state"] = rest


def _seeds(case: Json) -> Iterator[JsonPath]:
    """The state changes before the first message of the user."""
    for path, event in _events_in(case):
        if isinstance(field_of(event, "state_delta"), dict):
            yield (*path, spelling_in("state_delta", event))
        if event.get("author") == "user" and event.get("content"):
            return


def _write_rubrics(case: Json, rubrics: Mapping[str, Json]) -> None:
    places = rubric_places(case)
    by_id = dict(rubrics)
    key = spelling_in("rubric_groups", case)
    old_groups = list(case.get(key) or ())
    for rubric_id, path in reversed(places.items()):
        holder = value_at(case, path[:-1])
        if (rubric := by_id.pop(rubric_id, None)) is None:
            del holder[path[-1]]
            continue
        content = _holder(holder[path[-1]], "content")
        _holder(content, "property")["description"] = rubric["text"]
        if rubric["type"] and rubric["type"] != path[1]:
            holder[path[-1]]["type"] = rubric["type"]
    for rubric_id, rubric in by_id.items():
        groups = _holder(case, key)
        kind = rubric["type"]
        # As Google's converter of eval sets does, but for a case with groups of its own.
        name = kind if kind in groups or not old_groups else old_groups[0]
        name = name or _NEW_GROUP
        new: Json = {"rubric_id": rubric_id, "content": {"property": {"description": rubric["text"]}}}
        if kind:
            new["type"] = kind
        _holder(groups, name).setdefault("rubrics", []).append(new)


class _Conversation:
    """Writes turns to the members of the case that have them.

    A single message is `prompt`, with expectations in `reference` and `reference_trajectory`. Earlier
    messages are in `conversation_history`, or all messages in the events of `agent_data`, where the last turn
    may have its expectations as events.
    """

    def __init__(self, case: Json, written: Json) -> None:
        self._old = case
        self._written = written
        self._turns = dataset_turns(case)
        messages = {turn.path for turn in self._turns}
        self._after: dict[JsonPath, list[_Placed]] = {path: [] for path in ((), *messages)}
        """The events after each message, those without a content as well; before the first one at ()."""
        message: JsonPath = ()
        for path, event in _events_in(case):
            if path in messages:
                message = path
            else:
                self._after[message].append((path, event))

    def write(self, turns: Sequence[Json]) -> None:
        """Writes turns. Raises EditError for no turns."""
        if not turns:
            raise EditError("an EvaluationDataset cannot hold a case without a message of the user")
        if is_recorded(self._old):
            self._write_reference(turns[-1])
            return
        pairs = self._pairs(turns)
        has_history = bool(list_at(self._old, (spelling_in("conversation_history", self._old),)))
        has_events = any(_group_of(turn.path) is not None for turn in self._turns)
        if has_events or (len(turns) > 1 and not has_history):
            self._write_events(turns, pairs)
        else:
            self._write_prompt(turns, pairs)

    def _pairs(self, turns: Sequence[Json]) -> list[int | None]:
        """The previous index of each turn; None for a new one."""
        old = [turn.content["parts"] for turn in self._turns]
        if len(old) == len(turns):
            return list(range(len(old)))
        head, tail = common_ends([turn["user"] for turn in turns], old)
        middle: list[int | None] = [None] * (len(turns) - head - tail)
        return [*range(head), *middle, *range(len(old) - tail, len(old))]

    def _write_prompt(self, turns: Sequence[Json], pairs: Sequence[int | None]) -> None:
        *earlier, last = zip(turns, pairs, strict=True)
        if earlier or spelling_in("conversation_history", self._written) in self._written:
            history = [event for turn, pair in earlier for _, event in self._events(turn, pair, turn)]
            _put(self._written, "conversation_history", history)
        self._put_prompt(*last)
        self._write_reference(last[0])

    def _write_events(self, turns: Sequence[Json], pairs: Sequence[int | None]) -> None:
        last_pair = pairs[-1]
        of_last = self._turns[last_pair].events if last_pair is not None else []
        for_reference = [
            name for name in _REFERENCES if not of_last or spelling_in(name, self._old) in self._old
        ]
        in_events, elsewhere = dict(turns[-1]), set[str]()
        if "reference" in for_reference:
            in_events["response"] = None
            elsewhere |= {"response"}
        if "reference_trajectory" in for_reference:
            in_events |= {"calls": None, "responses": [], "between": [], "events": None}
            elsewhere |= {"calls", "responses", "between"}
        new = list(self._after[()])
        for number, (turn, pair) in enumerate(zip(turns, pairs, strict=True)):
            is_last = number == len(turns) - 1
            expected = in_events if is_last else turn
            (path, message), *events = self._events(turn, pair, expected, elsewhere if is_last else ())
            # A message that was in no conversation turn begins one of its own.
            new += [(path if _group_of(path) is not None else ("new", "", number), message), *events]
        self._put_turns(new)
        self._written.pop(spelling_in("prompt", self._written), None)
        self._write_reference(turns[-1], for_reference)

    def _put_turns(self, events: Iterable[_Placed]) -> None:
        """Writes events as conversation turns: at their places, new ones after the event before them."""
        data = _holder(self._written, "agent_data")
        old: list[Json] = data.get("turns") or []
        without_events = [number for number, turn in enumerate(old) if not turn.get("events")]
        new: list[Json] = []
        numbers: list[int | None] = []
        last: JsonPath = ()
        for path, event in events:
            if not new or (path and path[:3] != last):
                last, number = path[:3], _group_of(path)
                while number is not None and without_events and without_events[0] < number:
                    new.append(old[without_events[0]])
                    numbers.append(without_events.pop(0))
                new.append(
                    {**(old[number] if number is not None else {"turn_index": len(new)}), "events": []}
                )
                numbers.append(number)
            new[-1]["events"].append(event)
        new += (old[number] for number in without_events)
        if [*numbers, *without_events] != [*range(len(old))]:
            for index, turn in enumerate(new):
                if spelling_in("turn_index", turn) in turn:
                    turn[spelling_in("turn_index", turn)] = index
        data["turns"] = new

    def _events(
        self, turn: Json, pair: int | None, expected: Json, elsewhere: Collection[str] = ()
    ) -> list[_Placed]:
        """The events of a turn: its message and its expectations; equal events stay unchanged. Keys in
        `elsewhere` hold expectations outside of events."""
        parts = turn["user"]
        if pair is None:
            message: Json = {"author": "user", "content": {"role": "user", "parts": parts}}
            return [((), message), *self._expected_events(expected, ())]
        old = self._turns[pair]
        source = value_at(self._old, old.path)
        message = {"author": "user", "content": source} if old.path == ("prompt",) else source
        after = self._after[old.path]
        meaning = meaning_of_turn(turn_of(old.content, old.events))
        if any(meaning[name] != expected[name] for name in _OF_EVENTS if name not in elsewhere):
            with_content = [placed for placed in after if placed[0] in old.paths]
            others = [placed for placed in after if placed[0] not in old.paths]
            after = [*others, *self._expected_events(expected, with_content)]
        return [(old.path, _with_parts(message, parts)), *after]

    def _expected_events(self, turn: Json, sources: Sequence[_Placed]) -> Iterator[_Placed]:
        author = self._author()
        between = (
            {"author": item["author"] or author, "content": _model([item["part"]])}
            for item in turn["between"]
        )
        lists = {"tool_uses": turn["calls"], "tool_responses": turn["responses"]}
        new = [*between, *events_of_lists(lists, author)]
        if turn["events"] and not sources:
            # They have the order, too.
            new = [
                {"author": event.get("author"), "content": event.get("content")} for event in turn["events"]
            ]
        if turn["response"]:
            new.append({"author": author, "content": _model(turn["response"])})
        unused = list(sources)
        for event in new:
            parts = list(parts_of(event))
            kinds = [kind for kind, _ in parts]
            like = next((placed for placed in unused if list(parts_of(placed[1])) == parts), None) or next(
                (placed for placed in unused if [kind for kind, _ in parts_of(placed[1])] == kinds), None
            )
            if like is None:
                yield (), event
                continue
            unused.remove(like)
            is_same = list(parts_of(like[1])) == parts
            yield like if is_same else (like[0], _with_parts(like[1], event["content"]["parts"]))

    def _author(self) -> str:
        authors = [event["author"] for turn in self._turns for event in turn.events]
        agents = object_or_empty(value_at(field_of(self._old, "agent_data"), ("agents",)))
        return next(iter([*reversed(authors), *agents]), "model")

    def _put_prompt(self, turn: Json, pair: int | None) -> None:
        before = self._old.get("prompt")
        if pair is None or (content_of(before) or {}).get("parts") != turn["user"]:
            self._written["prompt"] = _like(before, turn["user"], "user")

    def _write_reference(self, turn: Json, names: Collection[str] = _REFERENCES) -> None:
        """Writes the expectations of the last turn under these keys: the response, the calls."""
        if "reference" in names:
            self._write_response(turn["response"])
        if "reference_trajectory" in names:
            self._write_trajectory(turn["calls"])

    def _write_response(self, response: list[Json] | None) -> None:
        case = self._written
        key = spelling_in("reference", case)
        reference = case.get(key) if isinstance(case.get(key), dict) else None
        stated = reference.get("response") if reference is not None else None
        if response and (content_of(stated) or {}).get("parts") != response:
            case[key] = {**(reference or {}), "response": _like(stated, response, "model")}
        elif not response and reference is not None:
            rest = {name: value for name, value in reference.items() if name != "response"}
            if rest:
                case[key] = rest
            else:
                del case[key]

    def _write_trajectory(self, calls: list[Json] | None) -> None:
        case = self._written
        if calls is None:
            case.pop(spelling_in("reference_trajectory", case), None)
            return
        steps = list(list_at(case, (spelling_in("reference_trajectory", case),)))
        new = []
        for call in calls:
            same = next((step for step in steps if list(map(call_of, calls_of(step))) == [call]), None)
            if same is not None:
                steps.remove(same)
            new.append(same or _model([{"function_call": call}]))
        _put(case, "reference_trajectory", new)


def _events_in(case: Json) -> Iterator[_Placed]:
    """The messages of the history and the events of `agent_data`."""
    history, data = spelling_in("conversation_history", case), spelling_in("agent_data", case)
    for index, message in enumerate(list_at(case, (history,))):
        yield (history, index), message
    for number, turn in enumerate(list_at(case, (data, "turns"))):
        for index, event in enumerate(list_at(turn, ("events",))):
            yield (data, "turns", number, "events", index), event


def _group_of(path: JsonPath) -> int | None:
    """The number of the conversation turn of `agent_data` that a path is in; None for another path."""
    number = path[2] if path[1:2] == ("turns",) else None
    return number if isinstance(number, int) else None


def _with_parts(event: Json, parts: list[Json]) -> Json:
    """An event with other parts and the same other keys."""
    content = event.get("content")
    if (content_of(content) or {}).get("parts") == parts:
        return event
    return {**event, "content": {**object_or_empty(content), "parts": parts}}


def _model(parts: list[Json]) -> Json:
    return {"role": "model", "parts": parts}


def _like(before: Any, parts: list[Json], role: str) -> Any:
    """A content written as it was before: as a text, or as an object whose other keys stay."""
    if isinstance(before, str) and len(parts) == 1 and parts[0].keys() == {"text"}:
        return parts[0]["text"]
    return {**(before if isinstance(before, dict) else {"role": role}), "parts": parts}


def _holder(data: Json, name: str) -> Json:
    """The object at a key, which is created if it is missing."""
    key = spelling_in(name, data)
    if not isinstance(data.get(key), dict):
        data[key] = {}
    holder: Json = data[key]
    return holder


def _put(data: Json, name: str, value: Any) -> None:
    data[spelling_in(name, data)] = value
