"""The calls of tools in a turn, as answers of models and spans of tools tell of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaltui.core.model.json_values import ABSENT
from evaltui.traces.layouts.operation import Json, Operation, as_result, calls_in, responses_in, texts
from evaltui.traces.tree import Work


def answer_of(operation: Operation) -> list[Json] | None:
    """The parts of a model's answer; None where nobody recorded it.

    A streamed answer is recorded piece by piece and then as a whole, perhaps with a thought in front that was
    not streamed: then the pieces are the answer.
    """
    outputs = operation.outputs
    if outputs is None:
        return None
    parts = [part for one in outputs for part in one["parts"] if "function_response" not in part]
    if operation.whole or len(outputs) < 2:
        return parts
    pieces, last = "".join(texts(outputs[:-1])), "".join(texts(outputs[-1:]))
    if not pieces or not last.endswith(pieces):
        # Pieces without a whole, or several answers.
        text = "".join(texts(outputs))
        return [*([{"text": text}] if text else []), *({"function_call": one} for one in calls_in(outputs))]
    calls = calls_in(outputs[-1:]) or calls_in(outputs)
    return [{"text": pieces}, *({"function_call": one} for one in calls)]


def may_hold_thoughts(operation: Operation) -> bool:
    """Whether texts of an answer may be thoughts, whose mark this layout does not keep."""
    if operation.whole or operation.outputs is None or not operation.is_adk:
        return False
    said = texts(operation.outputs[-1:])
    pieces = "".join(texts(operation.outputs[:-1]))
    # Pieces that are less than the whole are the answer alone.
    is_all = not pieces or pieces == "".join(said)
    return len(said) > 1 and is_all and (operation.usage or {}).get("thoughts_token_count") != 0


_TRANSFERS = "transfer_to_"


@dataclass(slots=True)
class TurnCall:
    """A call of a tool. What nobody tells of it is ABSENT."""

    name: str
    id: str
    """Unique in its turn."""
    arguments: Any
    result: Any = ABSENT
    own_id: str = ""
    """As the model's answer has it."""
    is_announced: bool = False
    """Whether a model's answer has it, at the place where it was asked for."""
    has_span: bool = False

    @property
    def is_transfer(self) -> bool:
        """Whether the call hands over to another agent, which returns nothing."""
        return self.name.startswith(_TRANSFERS)

    def as_json(self) -> Json:
        call: Json = {"name": self.name, "id": self.id}
        return call if self.arguments is ABSENT else {**call, "args": self.arguments}


class TurnCalls:
    """The calls in a turn, or in a call of a tool. Ids are no help where an answer and a span have others:
    then a span is that of the first call of its name which has none."""

    def __init__(self, works: Sequence[Work]) -> None:
        self.announced: list[TurnCall] = []
        self._ids: set[str] = set()
        self._parts: dict[int, list[Json]] = {}
        self._of: dict[int, TurnCall] = {}
        self._answered: dict[int, list[TurnCall]] = {}
        asked = self._asked = dict[int, list[TurnCall]]()
        models = [work for work in works if work.operation.kind == "model"]
        tools = [work for work in works if work.operation.kind == "tool"]
        for model in models:
            parts = answer_of(model.operation) or []
            asked[id(model)] = [self._announce(part, model) for part in parts if "function_call" in part]
            self._parts[id(model)] = parts
        for tool in tools:
            if (call := self._claim(tool, models, asked)) is not None:
                self._of[id(tool)] = call
        self.begins = {self._of[id(tool)].id: tool.span.begin for tool in tools if id(tool) in self._of}
        """By the ids of calls, when their tools began."""
        strangers = self._find_results(models, asked)
        unannounced = sum(not call.is_announced for call in self._of.values())
        self.has_results_of_others = strangers > unannounced
        """Whether requests have results of calls that neither an answer nor a span tells of."""
        self.lacks_models = strangers > 0 and all(asked[id(model)] for model in models[:-1])
        """Whether requests have results of calls, with spans or without, that no answer asks for, although
        each answer but the last asks for calls."""
        self.lacks_results = any(
            call.result is ABSENT and not call.has_span and not call.is_transfer
            for model in models[:-1]
            for call in asked[id(model)]
        )
        """Whether a model was asked again after a call without a span, of which nobody tells the result."""
        for model in models:
            named = iter(asked[id(model)])
            self._parts[id(model)] = [
                {"function_call": next(named).as_json()} if "function_call" in part else part
                for part in self._parts[id(model)]
            ]

    def in_order(self, works: Sequence[Work]) -> list[Work]:
        """As they began, but no call of a tool before the answer that asks for it."""
        asked_by = {id(call): model for model, calls in self._asked.items() for call in calls}
        late: dict[int, list[Work]] = {}
        done: set[int] = set()
        found: list[Work] = []
        for work in works:
            model = asked_by.get(id(self._of[id(work)])) if id(work) in self._of else None
            if model is not None and model not in done:
                late.setdefault(model, []).append(work)
                continue
            done.add(id(work))
            found += [work, *late.pop(id(work), ())]
        return found

    def of(self, tool: Work) -> TurnCall | None:
        """The call that a span of a tool tells of; None where nothing tells its name."""
        return self._of.get(id(tool))

    def parts_of(self, model: Work) -> list[Json]:
        """The parts of a model's answer, its calls as they are known."""
        return self._parts[id(model)]

    def answered_by(self, model: Work) -> list[TurnCall]:
        """The calls without a span whose results the request of a model has."""
        return self._answered.get(id(model), [])

    def _announce(self, part: Json, model: Work) -> TurnCall:
        said = part["function_call"]
        own = str(said.get("id") or "")
        call = TurnCall(
            said["name"],
            self._unique(
                own if len(own) > len(said["name"]) + 4 else f"{own or said['name']}:{model.span.span_id}"
            ),
            said.get("args", ABSENT),
            own_id=own,
            is_announced=True,
        )
        self.announced.append(call)
        return call

    def _unique(self, wanted: str) -> str:
        number, found = 1, wanted
        while found in self._ids:
            number += 1
            found = f"{wanted}.{number}"
        self._ids.add(found)
        return found

    def _claim(self, tool: Work, models: Sequence[Work], asked: dict[int, list[TurnCall]]) -> TurnCall | None:
        operation = tool.operation
        unclaimed = [
            (model.span.begin <= tool.span.begin, call)
            for model in models
            for call in asked[id(model)]
            if not call.has_span
        ]
        wanted = operation.call_id
        call = next((one for _, one in unclaimed if wanted and one.own_id == wanted), None)
        # Clocks of several machines may not agree, so what began later comes second, not never.
        unclaimed.sort(key=lambda one: not one[0])
        named = [one for _, one in unclaimed if operation.name in ("", one.name)]
        if not operation.name:
            named.sort(key=lambda one: not one.is_transfer)
        # Calls at once may end, and begin, in any order.
        same = (one for one in named if one.arguments == operation.arguments)
        call = call or next(same, None) or next(iter(named), None)
        if call is None and not operation.name:
            return None
        if call is None:
            call = TurnCall(
                operation.name,
                self._unique(wanted or tool.span.span_id),
                operation.arguments,
                operation.result,
            )
        else:
            if wanted and wanted != call.id:
                self._ids.discard(call.id)
                call.id = self._unique(wanted)
            if call.arguments is ABSENT or (call.arguments == {} and operation.arguments is not ABSENT):
                call.arguments = operation.arguments
            call.result = operation.result
        call.has_span = True
        return call

    def _find_results(self, models: Sequence[Work], asked: dict[int, list[TurnCall]]) -> int:
        """Results in requests. What the first request of an agent has before the user's message is of earlier
        turns.

        Returns how many are of no call that a model is known to have asked for.
        """
        before: dict[str, Sequence[Json]] = {}
        ids = {call.own_id for call in self.announced if call.own_id}
        unanswered: list[TurnCall] = []
        strangers = 0
        for model in models:
            if (inputs := model.operation.inputs) is not None:
                sent = before.get(model.agent)
                came = (
                    _since_user(inputs) if sent is None else responses_in(inputs)[len(responses_in(sent)) :]
                )
                self._answered[id(model)], others = _answer(unanswered, came)
                if sent is None and model is not models[0]:
                    # Another agent may have had it: without an id nobody knows.
                    others = [one for one in others if one.get("id")]
                # Other histories, such as those of several agents without names, tell nothing of this one.
                if sent is None or inputs[: len(sent)] == sent:
                    strangers += sum(one.get("id") not in ids for one in others)
                before[model.agent] = inputs
            unanswered += asked[id(model)]
        return strangers


def _since_user(inputs: Sequence[Json]) -> list[Json]:
    """The results of tools after the last message of the user, or the last answer of a model."""
    found: list[Json] = []
    for content in reversed(inputs):
        came = responses_in([content])
        if not came and not calls_in([content]):
            break
        found = [*came, *found]
    return found


def _answer(unanswered: list[TurnCall], responses: Sequence[Json]) -> tuple[list[TurnCall], Sequence[Json]]:
    """Give calls their results: by their ids, else in order. Returns those that no span tells of, and the
    responses to other calls."""
    answered: list[TurnCall] = []
    others: list[Json] = []
    own_ids = {call.own_id for call in unanswered if call.own_id}
    for response in responses:
        given, name = str(response.get("id") or ""), response.get("name")
        call = next((one for one in unanswered if given and one.own_id == given), None)
        if call is None and given not in own_ids:
            call = next((one for one in unanswered if name in (None, one.name)), None)
        if call is None:
            others.append(response)
            continue
        unanswered.remove(call)
        if call.result is ABSENT:
            call.result = as_result(response.get("response", ABSENT))
            if not call.has_span and call.result is not ABSENT:
                answered.append(call)
    return answered, others
