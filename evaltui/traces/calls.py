"""The calls of tools in a turn, as answers of models and spans of tools tell of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evaltui.core.model.events import spoken_texts
from evaltui.core.model.json_values import ABSENT
from evaltui.traces.layouts.operation import Json, Operation, as_result, calls_in, responses_in
from evaltui.traces.trace_turn import Work


def answer_of(operation: Operation) -> list[Json] | None:
    """The parts of a model's answer; None where nobody recorded it.

    A streamed answer is recorded piece by piece and then as a whole, perhaps with a thought in front that was
    not streamed: then the pieces are the answer.
    """
    outputs = operation.outputs
    if outputs is None:
        return None
    parts = [part for content in outputs for part in content["parts"] if "function_response" not in part]
    if operation.whole or len(outputs) < 2:
        return parts
    pieces, last = "".join(spoken_texts(outputs[:-1])), "".join(spoken_texts(outputs[-1:]))
    if not pieces or not last.endswith(pieces):
        # Pieces without a whole, or several answers.
        text = "".join(spoken_texts(outputs))
        return [*([{"text": text}] if text else []), *({"function_call": call} for call in calls_in(outputs))]
    calls = calls_in(outputs[-1:]) or calls_in(outputs)
    return [{"text": pieces}, *({"function_call": call} for call in calls)]


def may_hold_thoughts(operation: Operation) -> bool:
    """Whether texts of an answer may be thoughts, whose mark this layout does not keep."""
    if operation.whole or operation.outputs is None or not operation.is_adk:
        return False
    last_texts = spoken_texts(operation.outputs[-1:])
    pieces = "".join(spoken_texts(operation.outputs[:-1]))
    # Pieces that are less than the whole are the answer alone.
    is_all = not pieces or pieces == "".join(last_texts)
    return len(last_texts) > 1 and is_all and (operation.usage or {}).get("thoughts_token_count") != 0


_TRANSFERS = "transfer_to_"
RENAMED = (
    "a call that a model asks for has no span, and a span of a tool with another name may be of it: give the "
    "span the name of the tool"
)


@dataclass(slots=True)
class TurnCall:
    """A call of a tool. What nobody tells of it is ABSENT."""

    name: str
    id: str
    """Unique in its turn."""
    arguments: Any
    result: Any = ABSENT
    own_id: str = ""
    """Id of the call in the model's answer."""
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
        self._tries: dict[int, list[Work]] = {}
        self._answered: dict[int, list[TurnCall]] = {}
        self._calls_by_model: dict[int, list[TurnCall]] = {}
        models = [work for work in works if work.operation.kind == "model"]
        tools = [work for work in works if work.operation.kind == "tool" and not work.operation.is_output]
        for model in models:
            parts = answer_of(model.operation) or []
            self._calls_by_model[id(model)] = [
                self._announce(part, model) for part in parts if "function_call" in part
            ]
            self._parts[id(model)] = parts
        # A call with the arguments of another tool is of that one, where the model of this one is missing.
        for is_of in (_has_id, _has_arguments, _has_name):
            for tool in tools:
                claimed = (
                    self._of.get(id(tool))
                    or self._claim(tool, models, is_of)
                    or self._tried_again(tool, models)
                )
                if claimed is not None:
                    self._add_try(tool, claimed)
        for tool in tools:
            if id(tool) not in self._of and tool.operation.name:
                self._add_try(tool, self._tried_again(tool, models) or self._unannounced(tool))
        self.start_times = {
            self._of[id(tool)].id: tool.span.start for tool in reversed(tools) if id(tool) in self._of
        }
        """Start times of tools by the ids of their calls."""
        last = max(works, key=lambda work: (work.span.start, work.span.end), default=None)
        last_call = self._of.get(id(last))
        self.ends_unasked = last_call is not None and not last_call.is_announced
        """Whether the last span is of a tool that no model asks for."""
        strangers = self._find_results(models)
        unannounced = sum(not self._of[id(tries[0])].is_announced for tries in self._tries.values())
        self.has_results_of_others = strangers > unannounced
        """Whether requests have results of calls that neither an answer nor a span tells of."""
        self.lacks_models = strangers > 0 and all(self._calls_by_model[id(model)] for model in models[:-1])
        """Whether requests have results of calls, with spans or without, that no answer asks for, although
        each answer but the last asks for calls."""
        self.lacks_results = any(
            call.result is ABSENT and not call.has_span and not call.is_transfer
            for model in models[:-1]
            for call in self._calls_by_model[id(model)]
        )
        """Whether a model was asked again after a call without a span, of which nobody tells the result."""
        self.may_be_renamed = self._may_be_renamed(tools, models)
        """Whether a span of a tool that no model asks for may be of a call that has no span."""
        for model in models:
            named = iter(self._calls_by_model[id(model)])
            self._parts[id(model)] = [
                {"function_call": next(named).as_json()} if "function_call" in part else part
                for part in self._parts[id(model)]
            ]

    def _may_be_renamed(self, tools: Sequence[Work], models: Sequence[Work]) -> bool:
        unasked = [tool for tool in tools if id(tool) in self._of and not self._of[id(tool)].is_announced]
        hidden = [
            (asking, answering)
            for answering in models
            for call in self.answered_by(answering)
            for asking in models
            if call in self._calls_by_model[id(asking)] and not call.is_transfer
        ]
        return any(
            asking.span.end <= tool.span.start and tool.span.end <= answering.span.start
            for tool in unasked
            for asking, answering in hidden
        )

    def in_order(self, works: Sequence[Work]) -> list[Work]:
        """The works as they began, but no call of a tool before the answer that asks for it."""
        asked_by = {id(call): model for model, calls in self._calls_by_model.items() for call in calls}
        late: dict[int, list[Work]] = {}
        done: set[int] = set()
        ordered: list[Work] = []
        for work in works:
            model = asked_by.get(id(self._of[id(work)])) if id(work) in self._of else None
            if model is not None and model not in done:
                late.setdefault(model, []).append(work)
                continue
            done.add(id(work))
            ordered += [work, *late.pop(id(work), ())]
        return ordered

    def of(self, tool: Work) -> TurnCall | None:
        """The call that a span of a tool tells of; None where nothing tells its name."""
        return self._of.get(id(tool))

    def tries_of(self, call: TurnCall) -> list[Work]:
        """The tools that were run for a call, in their order: one that failed may have been tried again."""
        return self._tries[id(call)]

    def parts_of(self, model: Work) -> list[Json]:
        """The parts of a model's answer, its calls as they are known."""
        return self._parts[id(model)]

    def answered_by(self, model: Work) -> list[TurnCall]:
        """The calls without a span whose results the request of a model has."""
        return self._answered.get(id(model), [])

    def _announce(self, part: Json, model: Work) -> TurnCall:
        function_call = part["function_call"]
        own = str(function_call.get("id") or "")
        call = TurnCall(
            function_call["name"],
            self._unique(
                own
                if len(own) > len(function_call["name"]) + 4
                else f"{own or function_call['name']}:{model.span.span_id}"
            ),
            function_call.get("args", ABSENT),
            own_id=own,
            is_announced=True,
        )
        self.announced.append(call)
        return call

    def _unique(self, base_id: str) -> str:
        number, unique_id = 1, base_id
        while unique_id in self._ids:
            number += 1
            unique_id = f"{base_id}.{number}"
        self._ids.add(unique_id)
        return unique_id

    def _claim(
        self,
        tool: Work,
        models: Sequence[Work],
        is_of: Callable[[TurnCall, Operation], bool],
    ) -> TurnCall | None:
        operation = tool.operation
        unclaimed = [
            (model.span.start <= tool.span.start, call)
            for model in models
            for call in self._calls_by_model[id(model)]
            if not call.has_span and is_of(call, operation)
        ]
        # Clocks of several machines may not agree, so what began later comes second, not never.
        unclaimed.sort(key=lambda candidate: not candidate[0])
        if not operation.name:
            unclaimed.sort(key=lambda candidate: not candidate[1].is_transfer)
        # Calls at once may end, and begin, in any order.
        call = unclaimed[0][1] if unclaimed else None
        if call is None:
            return None
        if operation.call_id and operation.call_id != call.id:
            self._ids.discard(call.id)
            call.id = self._unique(operation.call_id)
        if call.arguments is ABSENT or (call.arguments == {} and operation.arguments is not ABSENT):
            call.arguments = operation.arguments
        call.has_span = True
        return call

    def _add_try(self, tool: Work, call: TurnCall) -> None:
        """Takes a span of a tool for one of a call; the last one has its result."""
        if id(tool) not in self._of:
            self._of[id(tool)] = call
            self._tries.setdefault(id(call), []).append(tool)
            call.result = tool.operation.result

    def _tried_again(self, tool: Work, models: Sequence[Work]) -> TurnCall | None:
        """The call whose id the span of a tool has, too, without a model asked since."""
        operation = tool.operation
        for first, *_ in self._tries.values() if operation.call_id else ():
            call = self._of[id(first)]
            if (
                first.operation.call_id == operation.call_id
                and _has_name(call, operation)
                and (call.arguments == operation.arguments or ABSENT in (call.arguments, operation.arguments))
                and not any(first.span.start < model.span.start <= tool.span.start for model in models)
            ):
                return call
        return None

    def _unannounced(self, tool: Work) -> TurnCall:
        operation = tool.operation
        own_id = self._unique(operation.call_id or tool.span.span_id)
        return TurnCall(operation.name, own_id, operation.arguments, operation.result, has_span=True)

    def _find_results(self, models: Sequence[Work]) -> int:
        """Results in requests. What the first request of an agent has before the user's message is of earlier
        turns.

        Returns how many calls, with results or without, no model is known to have asked for.
        """
        before: dict[str, Sequence[Json]] = {}
        ids = {call.own_id for call in self.announced if call.own_id}
        unanswered: list[TurnCall] = []
        strangers = 0
        for model in models:
            if (inputs := model.operation.inputs) is not None:
                sent = before.get(model.agent)
                new = _since_user(inputs) if sent is None else inputs[len(sent) :]
                responses = responses_in(new if sent is None else inputs)[len(responses_in(sent or ())) :]
                self._answered[id(model)], others = _answer(unanswered, responses)
                others = [*others, *_without_results(new, self.announced)]
                if sent is None and model is not models[0]:
                    # Another agent may have had it: without an id nobody knows.
                    others = [response for response in others if response.get("id")]
                # Other histories, such as those of several agents without names, tell nothing of this one.
                if sent is None or inputs[: len(sent)] == sent:
                    strangers += sum(response.get("id") not in ids for response in others)
                before[model.agent] = inputs
            unanswered += self._calls_by_model[id(model)]
        return strangers


def _has_id(call: TurnCall, operation: Operation) -> bool:
    return bool(operation.call_id) and call.own_id == operation.call_id


def _has_arguments(call: TurnCall, operation: Operation) -> bool:
    return _has_name(call, operation) and call.arguments == operation.arguments


def _has_name(call: TurnCall, operation: Operation) -> bool:
    return operation.name in ("", call.name)


def _since_user(inputs: Sequence[Json]) -> list[Json]:
    """The contents with calls and results after the last message of the user, or the last text of a model."""
    contents: list[Json] = []
    for content in reversed(inputs):
        if not responses_in([content]) and not calls_in([content]):
            break
        contents = [content, *contents]
    return contents


def _without_results(contents: Sequence[Json], announced: Sequence[TurnCall]) -> list[Json]:
    """The calls in contents that have no result there, without those that an answer asks for."""
    calls, responses = calls_in(contents), responses_in(contents)
    ids = {str(response.get("id") or response.get("name")) for response in responses}
    ids |= {call.own_id or call.name for call in announced}
    names = {call.name for call in announced}
    if len(calls) <= len(responses):
        return []
    return [
        call
        for call in calls
        if not {str(call.get("id")), call["name"]} & ids and (call.get("id") or call["name"] not in names)
    ]


def _answer(unanswered: list[TurnCall], responses: Sequence[Json]) -> tuple[list[TurnCall], Sequence[Json]]:
    """Give calls their results: by their ids, else in order. Returns those that no span tells of, and the
    responses to other calls."""
    answered: list[TurnCall] = []
    others: list[Json] = []
    own_ids = {call.own_id for call in unanswered if call.own_id}
    for response in responses:
        response_id, name = str(response.get("id") or ""), response.get("name")
        call = next(
            (candidate for candidate in unanswered if response_id and candidate.own_id == response_id), None
        )
        if call is None and response_id not in own_ids:
            call = next((candidate for candidate in unanswered if name in (None, candidate.name)), None)
        if call is None:
            others.append(response)
            continue
        unanswered.remove(call)
        if call.result is ABSENT:
            call.result = as_result(response.get("response", ABSENT))
            if not call.has_span and call.result is not ABSENT:
                answered.append(call)
    return answered, others
