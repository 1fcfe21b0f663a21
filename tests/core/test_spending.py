"""Tokens and costs add up, and what is not known stays unknown."""

from datetime import UTC, datetime

import pytest

from evaltui.core.compare.run_summary import summarize
from evaltui.core.cost.metering import MeteredCall, calls_in, spending_on, tokens_of
from evaltui.core.cost.prices import OWN_PRICE_SOURCE, Prices
from evaltui.core.model.config import EvaltuiBlock
from evaltui.core.model.events import MODEL_CALLS, SIMULATED_USER, Event, Step, split_step
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status
from evaltui.core.model.spending import Cost, ModelSpending, Spending, Tokens, total
from evaltui.text.figures import show_money

THEN = datetime(2026, 11, 1, tzinfo=UTC)


def own(**prices):
    return Prices(EvaltuiBlock.model_validate({"prices": prices}).prices)


OWN_PRICES = own(
    m={"input_mtok": 1, "output_mtok": 10, "cached_input_mtok": 0.1},
    free={"input_mtok": 0, "output_mtok": 0},
)
USAGE = {
    "prompt_token_count": 1000,
    "cached_content_token_count": 400,
    "candidates_token_count": 70,
    "thoughts_token_count": 30,
    "total_token_count": 1100,
}
TOKENS = Tokens(1000, 400, 30, 100)
COST = (600 * 1 + 400 * 0.1 + 100 * 10) / 1_000_000


def request(number=1, model="m", turn=0, **data):
    return Event(
        "model_request",
        agent=data.pop("agent", "a"),
        data={"model": model, **data},
        id=f"r{number}",
        turn=turn,
    )


def response(number=1, usage=USAGE, **data):
    return Event("model_response", agent="a", data=data, usage=usage, parent=f"r{number}", turn=0)


def spent(*events, judged=()):
    calls, counts = calls_in(events)
    return spending_on([*calls, *judged], OWN_PRICES) + counts


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, None),
        ({}, None),
        ({"total_token_count": 9}, None),
        (USAGE, TOKENS),
        ({"prompt_token_count": 5, "tool_use_prompt_token_count": 3}, Tokens(8, None, None, 0)),
        ({"prompt_token_count": 5, "total_token_count": 9}, Tokens(5, None, None, 4)),
        ({"candidates_token_count": 4}, Tokens(None, None, None, 4)),
        ({"prompt_token_count": 5.0, "candidates_token_count": 1}, Tokens(5, None, None, 1)),
        ({"prompt_token_count": "5"}, None),
        ({"prompt_token_count": -5}, None),
        ({"prompt_token_count": True}, None),
        ({"prompt_token_count": float("nan")}, None),
        ({"prompt_token_count": 10**30}, None),
    ],
)
def test_tokens_are_read_from_genais_usage(usage, tokens):
    assert tokens_of(usage) == tokens


def test_a_call_is_metered_by_its_request_and_response():
    assert spent(request(), response()) == Spending(
        (ModelSpending("agent", "m", 1, tokens=TOKENS, usd=COST, prices=OWN_PRICE_SOURCE),)
    )


def test_pieces_of_one_response_are_counted_once():
    first = response(usage={"prompt_token_count": 1000, "candidates_token_count": 5})
    assert spent(request(), first, response()).tokens == TOKENS


def test_a_replayed_call_costs_nothing_and_shows_what_it_saved():
    found = spent(request(replayed=True), response(replayed=True))
    assert (found.usd, found.calls, found.tokens) == (0, 0, Tokens())
    assert (found.cost.saved_usd, found.replayed, found.saved_tokens) == (COST, 1, TOKENS)


def test_failed_attempts_count_as_far_as_they_tell_of_tokens():
    retried = Event("error", data={"retrying": True}, usage=USAGE, parent="r1")
    silent = Event("error", data={"retrying": True}, parent="r1")
    found = spent(request(), retried, silent, response())
    assert (found.calls, found.usd, found.tokens.input) == (1, 2 * COST, 2000)
    assert spent(request(), retried, Event("error", parent="r1")).usd == COST
    assert spent(request(), Event("error", usage=USAGE, parent="r1")).usd == COST


def test_a_call_that_was_refused_costs_nothing_and_one_without_end_an_unknown_amount():
    refused = spent(request(), Event("error", data={"type": "ModelError"}, parent="r1"))
    assert (refused.calls, refused.usd, refused.cost.unpriced) == (1, 0, 0)
    open_end = spent(request())
    assert (open_end.calls, open_end.usd, open_end.cost.unpriced, open_end.unmetered) == (1, None, 1, 1)


def test_a_request_that_a_replay_did_not_have_is_no_call():
    assert spent(request(missed=True)) == Spending()


def test_calls_without_price_or_tokens_are_counted_and_never_zero():
    found = spent(request(), response(), request(2, "other"), response(2), request(3), response(3, None))
    assert (found.usd, found.cost.unpriced, found.unmetered, found.cost.is_exact) == (COST, 2, 1, False)
    assert spent(request(1, "other"), response()).usd is None
    assert spent(request(1, "free"), response(1, None)).usd == 0


def test_a_scripted_model_costs_nothing_unless_it_has_a_price():
    assert spent(request(1, "scripted (rules)"), response()).usd == 0
    own = Prices(
        EvaltuiBlock.model_validate({"prices": {"scripted": {"input_mtok": 1, "output_mtok": 1}}}).prices
    )
    assert own.price_of("scripted", TOKENS, THEN) == 0.0011


def test_payers_are_told_apart():
    user = request(2, agent=SIMULATED_USER)
    found = spent(
        request(), response(), user, response(2), judged=[MeteredCall("judge", "m", (TOKENS, None))]
    )
    assert [(one.payer, one.calls) for one in found.models] == [
        ("agent", 1),
        ("simulated user", 1),
        ("judge", 1),
    ]
    assert found.costs == {"agent": Cost(COST), "simulated user": Cost(COST), "judge": Cost(COST, unpriced=1)}


def test_steps_tell_of_calls_that_nobody_saw_where_they_happened():
    hidden = Event("user", data={"untold": [MODEL_CALLS]}, turn=0)
    step = Event("text", data={"step": "s", "model_version": "m"}, usage=USAGE, turn=0)
    assert spent(hidden, step) == spent(request(), response())
    assert spent(request(), response(), step) == spent(request(), response())
    assert spent(hidden) == Spending(unseen=1)
    assert spent(hidden, request(), response()).unseen == 0


def test_steps_tell_of_calls_of_agents_beside_those_whose_requests_are_seen():
    def step(agent, usage):
        return Event("text", agent=agent, data={"step": agent}, usage=usage, turn=0)

    seen = request(agent="desk"), response()
    assert spent(*seen, step("desk", {"total_token_count": 9})) == spent(*seen)
    # The same call under another name.
    assert spent(*seen, step("node", USAGE)) == spent(*seen)
    own = spent(*seen, step("own", {"prompt_token_count": 7}))
    assert [(models.model, models.calls, models.tokens.input) for models in own.models] == [
        ("m", 1, spent(*seen).models[0].tokens.input),
        ("", 1, 7),
    ]


def test_tokens_of_a_step_without_content_count():
    step = Step("desk", {"role": "model", "parts": []}, usage=USAGE, model_version="m", id="s", turn=0)
    assert spent(*split_step(step)) == spent(request(), response())


def test_nothing_is_known_of_a_run_that_nobody_metered():
    assert total([None, None]) is None
    assert total([]) is None
    partly = total([None, spent(request(), response())])
    assert (partly.usd, partly.unseen, partly.cost.is_exact) == (COST, 1, False)
    assert Spending(unseen=1).usd is None
    assert Spending().usd == 0


def test_repeats_and_cases_add_up_by_model():
    one, other = spent(request(), response()), spent(request(1, "other"), response())
    repeats = [RepeatResult(Status.PASSED, spent=each) for each in (one, other, one)]
    case = CaseResult("c", Status.PASSED, repeats=tuple(repeats))
    assert [(each.model, each.calls) for each in case.spent.models] == [("m", 2), ("other", 1)]
    assert case.spent.usd == 2 * COST


LIST_PRICES = Prices()


@pytest.mark.parametrize(
    "name",
    [
        "gemini-2.5-flash",
        "models/gemini-2.5-flash",
        "publishers/google/models/gemini-2.5-flash",
        "projects/p/locations/europe-west1/publishers/google/models/gemini-2.5-flash",
        "google/gemini-2.5-flash",
        "gemini/gemini-2.5-flash",
        "vertex_ai/gemini-2.5-flash",
    ],
)
def test_the_list_price_is_found_by_any_spelling_of_a_model(name):
    # 600 of input at 0.30, 400 cached at 0.03, 100 of output at 2.50 per million.
    assert LIST_PRICES.price_of(name, TOKENS, THEN) == pytest.approx(0.000442)
    assert LIST_PRICES.source_of(name).startswith("genai-prices ")


@pytest.mark.parametrize(
    "name", ["", "my-llm", "ollama/llama3", "nobody/gpt-4o", "tools:judge", "/", "models/"]
)
def test_an_unknown_model_has_no_price(name):
    assert LIST_PRICES.price_of(name, TOKENS, THEN) is None


def test_a_price_needs_the_tokens():
    assert LIST_PRICES.price_of("gemini-2.5-flash", None, THEN) is None
    assert LIST_PRICES.price_of("gemini-2.5-flash", Tokens(output=4), THEN) is None
    more_cached_than_sent = Tokens(10, 40, None, 0)
    assert LIST_PRICES.price_of("gemini-2.5-flash", more_cached_than_sent, THEN) == pytest.approx(3e-7)


def test_the_price_is_that_of_the_day_of_the_call():
    before, after = datetime(2025, 6, 1, tzinfo=UTC), datetime(2025, 7, 1, tzinfo=UTC)
    prices = {LIST_PRICES.price_of("o3", TOKENS, day) for day in (before, after)}
    assert len(prices) == 2


def test_without_the_table_no_list_price_is_known(monkeypatch):
    monkeypatch.setattr("evaltui.core.cost.prices.table_version", lambda: "")
    assert LIST_PRICES.price_of("gemini-2.5-flash", TOKENS, THEN) is None


def test_money_has_two_digits_below_a_cent_and_is_never_zero_when_unknown():
    shown = {None: "—", 0: "$0", 4.2e-7: "$0.00000042", 0.00424: "$0.0042", 0.00996: "$0.010"}
    shown |= {0.0114: "$0.011", 0.9996: "$1.00", 1.236: "$1.24", 12345.6: "$12,345.60", 0.1: "$0.100"}
    assert {usd: show_money(usd) for usd in shown} == shown


@pytest.mark.parametrize(
    ("cost", "text", "short"),
    [
        (Cost(), "—", "—"),
        (Cost(0.011), "$0.011", "$0.011"),
        (Cost(0.011, unpriced=3), "$0.011 + 3 unpriced calls", "$0.011+"),
        (Cost(unpriced=1), "1 unpriced call", "—"),
        (Cost(0.0, saved_usd=0.31), "$0, saved $0.310", "$0"),
        (Cost(0.011, None, 1, 2), "$0.011 + 1 unpriced call + unseen calls of the agent", "$0.011+"),
        (Cost(unseen=1), "unseen calls of the agent", "—"),
    ],
)
def test_a_cost_says_which_part_of_it_is_not_known(cost, text, short):
    assert (str(cost), cost.short) == (text, short)


def test_the_summary_of_a_case_has_the_costs_of_its_repeats_together():
    one_call, judge = spent(request(), response()), spent(judged=[MeteredCall("judge", "other", (TOKENS,))])
    repeats = tuple(RepeatResult(Status.PASSED, spent=one) for one in (one_call, one_call + judge))
    summary = summarize(CaseResult("c", Status.PASSED, repeats=repeats))
    assert summary.costs == {"agent": Cost(2 * COST), "judge": Cost(unpriced=1)}
    assert summary.cost == Cost(2 * COST, unpriced=1)
    unknown = summarize(CaseResult("c", Status.PASSED, repeats=(RepeatResult(Status.PASSED),)))
    assert (unknown.costs, unknown.cost) == ({}, None)
