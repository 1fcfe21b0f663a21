"""Many real calls of a run against a service with a quota: none of them ends in an error."""

from __future__ import annotations

from eval_data import make_case, make_set, make_turn
from gemini_server import Answer, GeminiServer, Request, calls, says
from quotas import Quota

from evaltui import EvalConfig, Status, evaluate

AGENT = """
    from evaltui import Agent

    def look() -> str:
        '''Looks.'''
        return "well"

    root_agent = Agent("parrot", "gemini-test", tools=[look])
"""


def respond(request: Request) -> Answer:
    return says("well") if request.results else calls("look", {})


async def test_a_quota_costs_time_and_no_errors(write_agent, gemini: GeminiServer, thorough: bool):
    """By two hosts, 16 cases at once, with no limit but that the service refuses."""
    cases, most, seconds = (250, 60, 1.0) if thorough else (30, 6, 0.3)
    quota = gemini.respond = Quota(most, seconds, respond)
    turn = make_turn("how is it?", "well", ["look"])
    eval_set = make_set("many", *(make_case(f"case_{number}", turn) for number in range(cases)))
    config = EvalConfig(criteria={"response_match_score": 1.0, "tool_trajectory_avg_score": 1.0})
    limits = {"*": {"concurrent": 1000}}

    result = await evaluate(write_agent(AGENT), eval_set, config, parallel=16, workers=2, limits=limits)

    assert result.status is Status.PASSED
    accepted = len(gemini.requests) - quota.refused
    assert accepted == 2 * cases
    assert quota.refused
    # It learns how many the service bears at once.
    assert quota.refused < (accepted / 4 if thorough else accepted)
    print(f"{accepted} calls, {quota.refused} refused")
