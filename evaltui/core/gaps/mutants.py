"""Mutants: a recorded conversation of a passing case with one change, which its case should notice."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, get_args

from evaltui.core.compare.diff import diff_state
from evaltui.core.gaps.cells import Cell, Tools
from evaltui.core.gaps.changes import (
    REPEATED,
    SWAPPED,
    CallChange,
    answer_changes,
    call_changes,
    leaves,
    other_value,
    with_leaf,
    with_number,
    without_values,
)
from evaltui.core.matching.rules import same_args
from evaltui.core.metrics.answer_rules import ANSWER_RULES
from evaltui.core.metrics.metric import left_out_turns
from evaltui.core.metrics.registry import METRICS
from evaltui.core.metrics.trajectory import (
    allows_more_calls,
    has_full_score,
    ignores_args,
    match_type_of,
)
from evaltui.core.model.case_id import fingerprint
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.content import Content, FunctionCall, FunctionResponse, Part
from evaltui.core.model.criteria import MatchType
from evaltui.core.model.eval_set import (
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    responding_agent,
    scored_text,
    tool_calls,
    tool_responses,
)
from evaltui.core.model.events import ANSWERS, ARGUMENTS, CALLS
from evaltui.core.model.json_values import ABSENT, is_number
from evaltui.core.model.renaming import TRANSFER
from evaltui.core.scoring import FINAL_STATE, Expected, decides_by_judge, metric_input
from evaltui.text.values import show_value

Subject = Literal["calls", "answers", "state", "agents"]
SUBJECTS: tuple[Subject, ...] = get_args(Subject)
TOOL_RESPONSE = "tool response changed"
TOOL_RESPONSE_DROPPED = "tool response dropped"
STATE_CHANGED = "state changed"
STATE_DROPPED = "state key dropped"
OTHER_AGENT = "another agent"
MAX_PER_KIND = 3
"""Mutants of a kind in a turn."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A conversation after one change."""

    kind: str
    subject: Subject
    turn: int | None
    """From 0; None for the final state."""
    before: str
    """The changed part, of a response all of it; "" for nothing."""
    after: str
    turns: Sequence[Invocation]
    final_state: Mapping[str, Any] | None
    cells: Sequence[Cell] = ()
    """The cells of coverage that the change is about."""


@dataclass(frozen=True)
class RecordedCase:
    """A passing conversation beside the case that it is scored by."""

    expected: Expected
    turns: Sequence[Invocation]
    """The actual turns, as they are scored."""
    final_state: Mapping[str, Any] | None
    tools: Tools = field(default_factory=dict)
    agents: Sequence[str] = ()
    """All known agents."""
    repeat: int = 0
    """The repeat of the run that has the conversation, from 0."""

    @cached_property
    def metrics(self) -> Sequence[EvalMetric]:
        """The metrics that decide and that need no model and no agent."""
        return [metric for metric in self.expected.metrics if is_computed(metric)]

    @cached_property
    def judged_metrics(self) -> Sequence[str]:
        """Names of the metrics that decide by a judge."""
        return [metric.metric_name for metric in self.expected.metrics if is_judged(metric)]

    @cached_property
    def left_out_metrics(self) -> Sequence[str]:
        """Names of the metrics that decide by the user's own function, in the agent's process."""
        return [metric.metric_name for metric in self.expected.metrics if _needs_process(metric)]

    @cached_property
    def seen_by(self) -> Mapping[Subject, frozenset[str]]:
        """The names of the computed metrics that see a change of each subject."""
        infos = [METRICS[metric.metric_name] for metric in self.metrics]
        calls = {info.name for info in infos if info.reads_calls}
        answers = {info.name for info in infos if info.compares == "response"}
        answers |= {ANSWER_RULES} if self.expected.answer_rules else set()
        agents = {ANSWER_RULES} if any(rule.agent for rule in self.expected.answer_rules) else set()
        if not all(scored_text(turn, thoughts=self.expected.score_thoughts) for turn in self.turns):
            # Of a turn without a text, its score is whether a call waits.
            calls |= answers
        has_state = bool(self.expected.case.final_session_state) and not self.expected.adk_verdicts
        names = {
            "calls": calls,
            "answers": answers,
            "state": {FINAL_STATE} if has_state else set(),
            "agents": calls | agents | {info.name for info in infos if info.compares == "texts"},
        }
        return {subject: frozenset(names[subject]) for subject in SUBJECTS}

    @property
    def deciding(self) -> frozenset[str]:
        """The names of the computed metrics that see a change of any subject."""
        return frozenset[str]().union(*self.seen_by.values())

    @cached_property
    def unscored(self) -> Mapping[Subject, Mapping[int, str]]:
        """The turns that are not scored on purpose or not known, from 0, by subject, each with the reason."""
        inputs = metric_input(self.expected, EvalMetric(metric_name=""), self.turns)
        context = left_out_turns(inputs)
        answers = left_out_turns(inputs, compares="responses")
        for rule in self.expected.answer_rules:
            ruled = answers.keys() if rule.turn is None else {rule.turn}
            answers = {turn: why for turn, why in answers.items() if turn in context or turn not in ruled}
        calls = left_out_turns(inputs, checks_calls=True, compares="calls")
        answers = {**self._unknown(ANSWERS, "response unknown"), **answers}
        calls = {**self._unknown(CALLS, "calls unknown"), **calls}
        if not self._compared:
            calls = {**self._unknown(ARGUMENTS, "arguments of calls unknown"), **calls}
        return {"calls": calls, "answers": answers, "state": {}, "agents": context}

    def _unknown(self, part: str, reason: str) -> Mapping[int, str]:
        """The turns in which the agent, or a trace, does not report a part."""
        return {
            number: reason
            for number, turn in enumerate(self.turns)
            if part in turn.untold or (part == CALLS and turn.intermediate_data is None)
        }

    # Changes that are meant so

    @cached_property
    def meant_so(self) -> frozenset[tuple[int | None, str]]:
        """The changes that need not be noticed: the turn, from 0, and the digest of each."""
        here = self.expected.eval_set_id, self.expected.case.eval_id
        marks = self.expected.config.evaltui.meant_so
        return frozenset((mark.turn, mark.digest) for mark in marks if (mark.set, mark.case) == here)

    def digest(self, mutant: Mutant) -> str:
        """The digest of the kind of a change, and of the changed part as it is and as it was changed."""
        sides: Sequence[Any] = mutant.before, mutant.after
        if mutant.subject == "calls" and mutant.turn is not None:
            sides = [
                [(call.name, call.args) for call in tool_calls(turns[mutant.turn].intermediate_data)]
                for turns in (self.turns, mutant.turns)
            ]
        elif mutant.subject == "state":
            states = self.final_state or {}, mutant.final_state or {}
            sides = [
                {key: state[key] for key in state if state[key] != other.get(key, ABSENT)}
                for state, other in (states, states[::-1])
            ]
        return fingerprint(json.dumps([mutant.kind, *sides], sort_keys=True, default=str))

    # What counts as equal

    @cached_property
    def _compared(self) -> Sequence[EvalMetric]:
        return [metric for metric in self.metrics if METRICS[metric.metric_name].compares == "calls"]

    def _is_call(self, metric: EvalMetric, expected: FunctionCall, made: FunctionCall) -> bool:
        name = expected.name or ""
        return name == (made.name or "") and (
            ignores_args(metric) or same_args(name, expected.args, made.args, self.expected.rules)
        )

    def is_same(self, turn: int, call: FunctionCall, changed: FunctionCall) -> bool:
        """Whether a changed call of a turn is by definition the same for every metric that compares calls."""
        reference = self.expected_calls(turn)
        return bool(self._compared) and all(
            self._is_call(metric, call, changed)
            or self._is_call(metric, changed, call)
            or any(
                self._is_call(metric, item, call) and self._is_call(metric, item, changed)
                for item in reference
            )
            for metric in self._compared
        )

    def expected_calls(self, turn: int) -> Sequence[FunctionCall]:
        """The expected calls of a turn."""
        conversation = self.expected.case.conversation or []
        return tool_calls(conversation[turn].intermediate_data) if turn < len(conversation) else []

    def _targets(self, turn: int, calls: Sequence[FunctionCall]) -> frozenset[int]:
        """The places of the calls that are expected; others are allowed and may change."""
        if not self._compared:
            return frozenset(range(len(calls)))
        pairs = [(metric, item) for metric in self._compared for item in self.expected_calls(turn)]
        return frozenset(
            place
            for place, call in enumerate(calls)
            if any(self._is_call(metric, item, call) for metric, item in pairs)
        )

    def _is_allowed(self, turn: int, change: CallChange) -> bool:
        """Whether every metric that compares calls allows those after a change, by definition."""
        reference, rules = self.expected_calls(turn), self.expected.rules
        return bool(self._compared) and all(
            (change.kind == REPEATED and allows_more_calls(metric))
            or (change.kind == SWAPPED and match_type_of(metric) in (MatchType.ANY_ORDER, None))
            or has_full_score(metric, reference, change.calls, rules)
            for metric in self._compared
        )

    # Mutants

    def mutants(self, most: int = MAX_PER_KIND) -> Iterator[Mutant]:
        """The mutants, at most so many of a kind in a turn, the same each time; those that are equal for the
        metrics by definition are not made."""
        for number in range(len(self.turns)):
            yield from self._some(self._of_turn(number), most)
        yield from self._some(self._of_state(), most)

    def mutant(self, turn: int | None, digest: str) -> Mutant | None:
        """The mutant of a turn, from 0, with this digest; None where there is none (any more)."""
        mutants = (mutant for mutant in self.mutants() if mutant.turn == turn)
        return next((mutant for mutant in mutants if self.digest(mutant) == digest), None)

    def _of_turn(self, number: int) -> Iterator[Mutant]:
        if number not in self.unscored["calls"]:
            yield from self._of_calls(number)
        if number not in self.unscored["answers"]:
            yield from self._of_answer(number)
        if number not in self.unscored["agents"]:
            yield from self._of_agent(number)

    def _some(self, mutants: Iterable[Mutant], most: int) -> Iterator[Mutant]:
        by_kind: dict[str, list[Mutant]] = {}
        for mutant in mutants:
            by_kind.setdefault(mutant.kind, []).append(mutant)
        for kind, items in by_kind.items():
            if len(items) > most:
                where = self.expected.eval_set_id, self.expected.case.eval_id, items[0].turn, kind
                places = random.Random(repr(where)).sample(range(len(items)), most)
                items = [items[place] for place in sorted(places)]
            yield from items

    def _with(self, number: int, turn: Invocation) -> Sequence[Invocation]:
        return [*self.turns[:number], turn, *self.turns[number + 1 :]]

    def _of_calls(self, number: int) -> Iterator[Mutant]:
        turn = self.turns[number]
        calls = tool_calls(turn.intermediate_data)
        changes = call_changes(
            calls, self.tools, targets=self._targets(number, calls), is_same=partial(self.is_same, number)
        )
        for change in changes:
            if not self._is_allowed(number, change):
                turns = self._with(number, with_calls(turn, change.calls))
                sides = change.before, change.after
                yield Mutant(change.kind, "calls", number, *sides, turns, self.final_state, change.cells)

    def _of_answer(self, number: int) -> Iterator[Mutant]:
        turn, thoughts = self.turns[number], self.expected.score_thoughts
        text = scored_text(turn, thoughts=thoughts)
        if not text.strip():
            return
        for change in answer_changes(text):
            changed = _with_answer(turn, change.text, score_thoughts=thoughts)
            if scored_text(changed, thoughts=thoughts) == change.text:
                turns = self._with(number, changed)
                yield Mutant(change.kind, "answers", number, text, change.text, turns, self.final_state)
        responses = tool_responses(turn.intermediate_data)
        texts = {text}
        for place, response in enumerate(responses):
            others = [*responses[:place], *responses[place + 1 :]]
            values = [value for _, value in leaves(response.response or {}, ())]
            shorter = without_values(text, values)
            if shorter and shorter not in texts:
                texts.add(shorter)
                changed = _with_answer(_with_responses(turn, others), shorter, score_thoughts=thoughts)
                turns = self._with(number, changed)
                yield Mutant(TOOL_RESPONSE_DROPPED, "answers", number, text, shorter, turns, self.final_state)
            for path, value in leaves(response.response or {}, ()):
                if not is_number(value) or (follows := with_number(text, value)) is None:
                    continue
                changed_text, other = follows
                # The same number may be in several places of responses.
                if changed_text in texts:
                    continue
                texts.add(changed_text)
                data = with_leaf(response.response, path, other)
                others = [*responses]
                others[place] = response.model_copy(update={"response": data})
                changed = _with_answer(_with_responses(turn, others), changed_text, score_thoughts=thoughts)
                turns = self._with(number, changed)
                yield Mutant(TOOL_RESPONSE, "answers", number, text, changed_text, turns, self.final_state)

    def _of_agent(self, number: int) -> Iterator[Mutant]:
        """The turn as if another agent had answered; none where no author is recorded."""
        turn = self.turns[number]
        data, author = turn.intermediate_data, responding_agent(turn)
        others = [agent for agent in self.agents if agent != author]
        if not isinstance(data, InvocationEvents) or not author or not others:
            return
        renamed = [
            event.model_copy(
                update={
                    "author": others[0] if event.author == author else event.author,
                    "content": event.content and _transferred(event.content, author, others[0]),
                }
            )
            for event in data.invocation_events
        ]
        changed = InvocationEvents(invocation_events=renamed)
        turns = self._with(number, turn.model_copy(update={"intermediate_data": changed}))
        cells = (Cell("agent", author),)
        yield Mutant(OTHER_AGENT, "agents", number, author, others[0], turns, self.final_state, cells)

    def _of_state(self) -> Iterator[Mutant]:
        """Changes of those keys of the final state that are expected."""
        expected = self.expected.case.final_session_state
        if not expected or self.final_state is None or not self.seen_by["state"]:
            return
        for key, value in self.final_state.items():
            if key not in expected:
                continue
            rest = {name: other for name, other in self.final_state.items() if name != key}
            other = other_value(value)
            for kind, state, after in (
                (STATE_CHANGED, {**self.final_state, key: other}, f"{key} {show_value(other)}"),
                (STATE_DROPPED, rest, ""),
            ):
                # Not all that is in a value need be expected.
                if diff_state(expected, state):
                    cells = (Cell("state key", key),)
                    yield Mutant(
                        kind, "state", None, f"{key} {show_value(value)}", after, self.turns, state, cells
                    )


def is_computed(metric: EvalMetric) -> bool:
    """Whether a metric decides and needs neither a model nor the agent's process, and sees conversations."""
    return not metric.is_defined and _is_computed_by_name(metric.metric_name)


def is_decided_again(name: str) -> bool:
    """Whether a result of this name, of a metric or of the checks of a case, is computed again here."""
    return name in (FINAL_STATE, ANSWER_RULES) or _is_computed_by_name(name)


def _is_computed_by_name(name: str) -> bool:
    info = METRICS.get(name)
    return info is not None and info.function is not None and info.gates and not info.lower_is_better


def is_judged(metric: EvalMetric) -> bool:
    """Whether a metric decides by a judge that sees the conversation of a case."""
    return decides_by_judge(metric) and not metric.is_informational


def _needs_process(metric: EvalMetric) -> bool:
    return metric.is_defined and not metric.is_informational and not decides_by_judge(metric)


def with_calls(turn: Invocation, calls: Sequence[FunctionCall]) -> Invocation:
    """The turn with these calls, and those responses that belong to one."""
    ids = {call.id for call in calls}
    responses = [
        response
        for response in tool_responses(turn.intermediate_data)
        if response.id in ids or not response.id
    ]
    return _with_tools(turn, calls, responses)


def _with_responses(turn: Invocation, responses: Sequence[FunctionResponse]) -> Invocation:
    return _with_tools(turn, tool_calls(turn.intermediate_data), responses)


def _with_tools(
    turn: Invocation, calls: Sequence[FunctionCall], responses: Sequence[FunctionResponse]
) -> Invocation:
    """The turn with these calls, and responses of tools, before its texts."""
    data: IntermediateData | InvocationEvents
    if isinstance(turn.intermediate_data, InvocationEvents):
        events = turn.intermediate_data.invocation_events
        parts = [Part.model_construct(function_call=call) for call in calls]
        parts += [Part.model_construct(function_response=response) for response in responses]
        author = next((event.author for event in events), "agent")
        tools = InvocationEvent.model_construct(author=author, content=Content.model_construct(parts=parts))
        data = InvocationEvents.model_construct(invocation_events=[tools, *map(_without_tools, events)])
    else:
        lists = turn.intermediate_data or IntermediateData()
        data = lists.model_copy(update={"tool_uses": list(calls), "tool_responses": list(responses)})
    return turn.model_copy(update={"intermediate_data": data})


def _without_tools(event: InvocationEvent) -> InvocationEvent:
    parts = (event.content and event.content.parts) or []
    texts = [part for part in parts if not part.function_call and not part.function_response]
    if event.content is None or len(texts) == len(parts):
        return event
    return event.model_copy(update={"content": event.content.model_copy(update={"parts": texts})})


def _with_answer(turn: Invocation, text: str, *, score_thoughts: bool) -> Invocation:
    """The turn with another response. Thoughts that are not scored stay, but for those without a response,
    where the text before them would be scored."""
    response, data = turn.final_response or Content(role="model"), turn.intermediate_data
    thoughts = [part for part in response.parts or [] if part.thought and text and not score_thoughts]
    changed = response.model_copy(update={"parts": [*thoughts, Part(text=text)]})
    if not text and isinstance(data, InvocationEvents):
        # Of a response without a text, no event is recorded.
        events = [event for event in data.invocation_events if event.content is not None]
        data = data.model_copy(update={"invocation_events": events})
    return turn.model_copy(update={"final_response": changed, "intermediate_data": data})


def _transferred(content: Content, agent: str, other: str) -> Content:
    """The content with transfers to another agent."""
    parts = []
    for part in content.parts or []:
        call = part.function_call
        if call is not None and call.name == TRANSFER and (call.args or {}).get("agent_name") == agent:
            args = {**(call.args or {}), "agent_name": other}
            changed = call.model_copy(update={"args": args})
            parts.append(part.model_copy(update={"function_call": changed}))
        else:
            parts.append(part)
    return content.model_copy(update={"parts": parts})
