"""What a request's model calls wait at the gate, and for how long that may go on."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evaltui import EvalConfig, EvalSet
from evaltui.agents.protocol import FilesOpened
from evaltui.core.model.limits import Budget, Limit
from evaltui.runner import execution
from evaltui.runner.gate import Gate, SharedByGates
from evaltui.runner.gated_requests import GatedRequest, answered
from evaltui.runner.limiter import Call
from evaltui.runner.plan import (
    RunPlan,
)
from evaltui.runner.starting import HostSettings
from evaltui.runs.evaluation import plan_for


class Clock:
    """Stands still until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Told:
    """A request of a host, and what it is answered."""

    def __init__(self, gate: Gate, timeout: float = 20.0) -> None:
        self.request = GatedRequest(gate, timeout)
        self.goes: dict[int, bool] = {}

    def ask(self, number: int, **more: Any) -> None:
        self._tell({"number": number, "model": "gemini", "size": 400, **more})

    def over(self, number: int, **more: Any) -> None:
        self._tell({"number": number, "over": True, **more})

    def _tell(self, message: dict[str, Any]) -> None:
        self.request.on_message(message, lambda go: self.goes.update({go["number"]: go["goes"]}))


async def test_a_call_waits_until_another_request_is_done_with_its_own():
    clock = Clock()
    gate = Gate([Limit("*", concurrent=1)], clock)
    one, other = Told(gate), Told(gate)
    one.ask(0)
    other.ask(0)
    other.ask(1)
    assert (one.goes, other.goes) == ({0: True}, {})

    clock.now += 5.0
    one.over(0, usage={"total_token_count": 30})

    assert other.goes == {0: True}
    assert other.request.throttled == 5.0
    # Its second call waits still.
    clock.now += 2.0
    assert other.request.throttled == 7.0
    assert one.request.throttled == 0.0


async def test_a_request_that_ends_gives_back_what_it_has():
    gate = Gate([Limit("*", concurrent=2)], Clock())
    lost, next_one = Told(gate), Told(gate)
    for number in range(4):
        lost.ask(number)
    next_one.ask(0)
    assert not next_one.goes

    lost.request.close()

    assert next_one.goes == {0: True}
    # What a host tells of a request that is over is heard by nobody.
    lost.over(0)


async def test_waiting_after_refusals_comes_to_an_end():
    gate = Gate([Limit("*", rpm=1000)], Clock())
    told = Told(gate, timeout=20.0)
    told.ask(0)
    told.over(0, refused={"retry_after": 15.0})
    told.ask(1, again={"retry_after": 15.0})
    assert 1 not in told.goes

    told.over(1)
    told.ask(2, again={"retry_after": 15.0})

    assert told.goes[2] is False
    gate.close()


async def test_the_window_of_a_limit_goes_on_in_the_next_run_of_a_matrix():
    clock, shared, limits = Clock(), SharedByGates(), [Limit("*", rpm=1)]
    gate = Gate(limits, clock, shared=shared)
    first = Told(gate)
    first.ask(0)
    first.over(0, usage={"total_token_count": 30})
    first.request.close()
    gate.close()
    clock.now += 30.0
    gate = Gate(limits, clock, shared=shared)
    second = Told(gate)
    second.ask(0)
    assert second.goes == {}
    clock.now += 31.0
    second.ask(1)
    assert second.goes == {0: True}
    gate.close()


async def test_a_call_that_nobody_wants_any_more_takes_no_place():
    gate = Gate([Limit("*", concurrent=1)], Clock())
    told = Told(gate)
    told.ask(0)
    told.ask(1)
    told.ask(2)

    told.over(1)
    told.over(0)

    assert told.goes == {0: True, 2: True}


async def test_the_time_of_a_request_stands_still_while_it_waits():
    gate = Gate([Limit("*", concurrent=1)])
    first, second = Told(gate, timeout=0.01), Told(gate, timeout=0.01)
    first.ask(0)
    second.ask(0)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[None] = loop.create_future()
    loop.call_later(0.1, answer.set_result, None)

    assert await answered(answer, 0.01, second.request)
    assert not await answered(loop.create_future(), 0.01, first.request)


@given(
    st.integers(1, 3_000),
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 4_000), st.booleans()), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_no_more_is_spent_than_the_budget_and_what_was_under_way(amount, calls, chance):
    """Calls are asked for and end in any order, with any tokens, or without telling them."""

    async def spend() -> None:
        gate = Gate([], Clock(), Budget(amount, "tok"))
        under_way: list[tuple[Call, int]] = []
        spent = begun_at_most = 0.0

        def end(tells: bool) -> None:
            nonlocal spent
            gated, tokens = under_way.pop(chance.randrange(len(under_way)))
            spent += tokens if tells else 0
            gate.end(gated, {"prompt_token_count": tokens} if tells else None)

        for size, tokens, tells in calls:
            told: list[str] = []
            before = gate.ledger.spent
            gated = gate.ask("m", size, partial(told.append, "goes"), partial(told.append, "stops"))
            if told == ["goes"]:
                # Estimates are whole tokens.
                estimated = sum(round(one.tokens) - 1 for one, _ in under_way)
                assert before + max(estimated, 0) < amount
                under_way.append((gated, tokens))
            elif not told:
                # Those under way may use up the rest.
                assert under_way
                gate.withdraw(gated)
            else:
                assert before >= amount
            begun_at_most = max(begun_at_most, len(under_way))
            while under_way and chance.random() < 0.4:
                end(tells)
        while under_way:
            end(True)
        assert spent < amount + 4_000 * max(begun_at_most, 1)
        assert (gate.stopped is not None) == (gate.ledger.spent >= amount)

    asyncio.run(spend())


class WaitingHost:
    """Runs a case whose second model call waits for 100 seconds of the gate's clock."""

    alive = True
    opened = FilesOpened()

    def __init__(self, plan: RunPlan, clock: Clock) -> None:
        self.settings = HostSettings(plan.agent, 60.0)
        self.host = self
        self.loading = asyncio.get_running_loop().create_future()
        self.loading.set_result({"name": "waits"})
        self._clock = clock

    def listen(self, on_console: Any) -> None: ...

    async def request(
        self, message: Any, timeout: float, on_event: Any, on_recorded: Any, gated: GatedRequest
    ) -> Any:
        for number in (0, 1):
            gated.on_message({"number": number, "model": "gemini", "size": 4}, lambda go: None)
        self._clock.now += 100.0
        gated.on_message({"number": 0, "over": True}, lambda go: None)
        for kind, role, text in (("user", "user", "hi"), ("text", "model", "ho")):
            content = {"role": role, "parts": [{"text": text}]}
            on_event(json.dumps({"kind": kind, "t": 0.0, "turn": 0, "content": content}))
        return {"state": {}}

    async def end(self) -> None: ...

    async def kill(self) -> None: ...


async def test_the_seconds_of_a_case_are_without_those_that_its_calls_waited(write_agent, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(execution, "gate_of", lambda plan: Gate(plan.settings.limits, clock))
    case = {"eval_id": "one", "conversation": [{"user_content": {"role": "user", "parts": [{"text": "hi"}]}}]}
    eval_set = EvalSet.model_validate({"eval_set_id": "a", "eval_cases": [case]})
    limits = {"*": {"concurrent": 1}}
    agent = write_agent("root_agent = print\n")
    plan = plan_for(agent, eval_set, EvalConfig(criteria={"response_match_score": 1.0}), limits=limits)

    result = await execution.run_plan(plan, lambda update: None, first=WaitingHost(plan, clock))

    (repeat,) = result.cases[0].repeats
    assert repeat.error is None
    assert repeat.throttled == 100.0
    # What it took by a clock that did not wait.
    assert -100.0 < repeat.seconds < -50.0
