"""Agents of ours with a Gemini model, from files on disk to verdicts, in real child processes."""

from __future__ import annotations

from pathlib import Path

from eval_data import make_case, make_set, make_turn
from gemini_server import KEY, Answer, Drop, GeminiServer, Hold, Request, calls, chunk, fails, says

from evaltui import CaseResult, EvalConfig, Status, evaluate
from evaltui.core.model.events import Event
from evaltui.runner.plan import Happened, Update

AGENT = """
    from evaltui import Agent

    def area(width: int, height: int) -> int:
        '''The area of a rectangle.'''
        return width * height

    root_agent = Agent("geometer", "gemini-test", instruction="Measure.", tools=[area])
"""
TWO_BY_THREE = {"width": 2, "height": 3}


def asks(eval_id: str, says: str, answer: str, *called: dict[str, object]) -> dict[str, object]:
    return make_case(eval_id, make_turn(says, answer, [{"name": "area", "args": args} for args in called]))


class Run:
    """A run of some cases and what happened in it."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def of(self, agent: Path, *cases: dict[str, object], timeout: float = 60.0) -> list[CaseResult]:
        config = EvalConfig(criteria={"tool_trajectory_avg_score": 1.0, "response_match_score": 0.9})
        run = await evaluate(
            agent, make_set("shapes", *cases), config, workers=1, timeout=timeout, on_update=self._update
        )
        return list(run.cases)

    def of_kind(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def _update(self, update: Update) -> None:
        if isinstance(update, Happened):
            self.events.append(update.event)


async def test_failed_attempts_are_seen_and_the_case_passes(write_agent, gemini):
    gemini.script(
        fails(429, "slow down", retry_delay="0s"),
        calls("area", TWO_BY_THREE),
        Answer([chunk({"text": "It"}), Drop()]),
        fails(500, "oh", retry_delay="0s"),
        says("It is ", "6."),
    )
    run = Run()

    (case,) = await run.of(write_agent(AGENT), asks("two", "2 by 3?", "It is 6.", TWO_BY_THREE))

    assert case.error is None
    assert case.status is Status.PASSED
    first, second = run.of_kind("model_request")
    assert [
        (event.parent, event.data["retrying"], event.data["attempt"]) for event in run.of_kind("error")
    ] == [
        (first.id, True, 1),
        (second.id, True, 1),
        (second.id, True, 2),
    ]
    spent = {metric.name: metric for metric in case.metrics}["token_usage_v1"]
    # Two answers of 9 and 4 tokens each; what failed had counted nothing.
    assert spent.score == 26
    assert gemini.unused == 0


async def test_cases_side_by_side_get_their_own_answers(write_agent, gemini):
    failed: set[str] = set()

    def respond(request: Request) -> Answer:
        width = int(request.contents[0]["parts"][0]["text"])
        if request.results:
            return says(f"{request.results[0]['response']['result']}")
        if request.said not in failed:
            failed.add(request.said)
            return fails(503, retry_delay="0s")
        return calls("area", {"width": width, "height": 2})

    gemini.respond = respond
    run = Run()

    cases = await run.of(
        write_agent(AGENT),
        *(asks(f"case{n}", str(n), str(2 * n), {"width": n, "height": 2}) for n in range(6)),
    )

    assert {case.eval_id: case.status for case in cases} == {f"case{n}": Status.PASSED for n in range(6)}
    assert len(run.of_kind("error")) == 6
    assert len(gemini.requests) == 18


async def test_without_a_key_the_case_says_what_to_do(write_agent, gemini, monkeypatch):
    monkeypatch.delenv("GOOGLE_API_KEY")
    (case,) = await Run().of(write_agent(AGENT), asks("one", "hello", ""))
    assert case.status is Status.ERROR
    assert case.error.message == "GOOGLE_API_KEY is not set. Set it in my_agent/.env or the environment."
    assert gemini.requests == []


async def test_key_and_address_may_be_in_the_env_file_of_the_agent(write_agent, monkeypatch):
    for name in ("GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_ENTERPRISE"):
        monkeypatch.delenv(name, raising=False)
    with GeminiServer() as server:
        server.script(says("Hello."))
        agent = write_agent(AGENT)
        (agent / ".env").write_text(f"GEMINI_API_KEY={KEY}\nGOOGLE_GEMINI_BASE_URL={server.url}\n")
        (case,) = await Run().of(agent, asks("one", "hello", "Hello."))
    assert case.error is None
    assert case.status is Status.PASSED


async def test_a_case_that_takes_too_long_is_ended_wherever_it_waits(write_agent, gemini):
    gemini.respond = lambda request: (
        fails(429, retry_delay="50s")
        if request.said == "wait"
        else Answer([chunk({"text": "Well"}), Hold(), chunk({"text": ", late"})])
    )

    cases = await Run().of(
        write_agent(AGENT), asks("waits", "wait", ""), asks("answers", "answer", ""), timeout=1.5
    )

    assert [case.error.type for case in cases] == ["TimeoutError"] * 2
    # Where a host had to be killed, it says so.
    assert all(case.error.message.endswith("within 1.5 s") for case in cases)


async def test_each_run_says_what_the_agent_and_its_judges_spent(write_agent, gemini):
    gemini.respond = lambda request: says("valid" if "geometer" not in str(request) else "It is 6.")
    prices = {"gemini-test": {"input_mtok": 1, "output_mtok": 10}}
    criteria = {
        "final_response_match_v2": {"threshold": 0.0, "judge_model_options": {"judge_model": "judge-1"}}
    }
    data = {"criteria": criteria, "evaltui": {"prices": prices, "criteria": {"cost_usd": 1, "tokens": 99}}}
    eval_set = make_set("shapes", asks("one", "How large?", "It is 6."))
    run = await evaluate(write_agent(AGENT), eval_set, EvalConfig.model_validate(data), workers=1)
    [case] = run.cases
    assert run.spent is not None
    agent, judge = run.spent.models
    # The server counts 9 tokens of input and 4 of output.
    assert (agent.payer, agent.calls, agent.tokens.input, agent.usd) == ("agent", 1, 9, 49e-6)
    assert (judge.payer, judge.model, judge.calls, judge.unpriced) == ("judge", "judge-1", 5, 5)
    assert judge.tokens.input == 45
    assert case.metric("cost_usd").score == 49e-6
    assert case.metric("tokens").score == 13
