"""The limiter on a virtual clock: never above a limit, and hardly slower than the limits allow."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_calls import Asked, Course, Service, run_calls

from evaltui.core.model.limits import Limit
from evaltui.runner.limiter import Limiter

_MANY = 5_000


def _calls(
    count: int, seed: int, models: Sequence[str] = ("gemini-test",), firsts: float = 0.0
) -> list[Asked]:
    chance = random.Random(seed)
    calls = []
    for _ in range(count):
        asked, answered = float(chance.randrange(50, 3_000)), chance.randrange(10, 300)
        seconds = chance.uniform(0.2, 8.0)
        # What comes first in a process may take long, everything else reaches its service soon.
        is_first = chance.random() < firsts
        on_the_way = chance.uniform(0.0, seconds if is_first else min(seconds, 0.75))
        tokens, estimate = asked + answered, asked + 300.0
        calls.append(Asked(chance.choice(models), seconds, tokens, estimate, on_the_way, is_first))
    return calls


def _fastest(calls: Sequence[Asked], limit: Limit) -> float:
    """No schedule within the limit is over sooner, seconds: the last begins when all others have begun."""
    last = min(one.seconds for one in calls)
    minutes = [0.0]
    if limit.rpm is not None:
        minutes.append((len(calls) - 1) // limit.rpm)
    if limit.tpm is not None:
        minutes.append((sum(one.tokens for one in calls) - limit.tpm) / limit.tpm)
    at_once = sum(one.seconds for one in calls) / limit.concurrent if limit.concurrent else 0.0
    return max(60.0 * max(minutes) + last, at_once)


def _is_within(course: Course, limit: Limit) -> bool:
    return (
        (limit.rpm is None or course.most_in_a_minute() <= limit.rpm)
        and (limit.tpm is None or course.most_in_a_minute(lambda one: one.asked.tokens) <= limit.tpm)
        and (limit.concurrent is None or course.most_at_once <= limit.concurrent)
    )


@pytest.mark.parametrize(
    "limit",
    [
        Limit("*", rpm=600),
        Limit("*", tpm=500_000),
        Limit("*", concurrent=20),
        Limit("*", rpm=250, tpm=450_000, concurrent=40),
    ],
    ids=str,
)
def test_5000_calls_keep_to_a_limit_and_use_it(limit: Limit) -> None:
    calls = _calls(_MANY, seed=1)

    course = run_calls(calls, [limit], slots=200)

    assert len(course.begun) == _MANY
    assert _is_within(course, limit)
    assert course.ended <= 1.05 * _fastest(calls, limit)


_LIMITS = st.builds(
    Limit,
    st.just("*"),
    st.none() | st.integers(1, 40).map(float),
    st.none() | st.integers(3_300, 40_000).map(float),
    st.none() | st.integers(1, 8),
)


@given(
    _LIMITS, st.integers(1, 60), st.integers(0, 1_000), st.integers(1, 30), st.sampled_from([0.0, 0.2, 1.0])
)
def test_any_limit_is_kept_in_every_window(
    limit: Limit, count: int, seed: int, slots: int, firsts: float
) -> None:
    assert _is_within(run_calls(_calls(count, seed, firsts=firsts), [limit], slots=slots), limit)


@given(_LIMITS, _LIMITS, st.integers(1, 40), st.integers(0, 1_000))
def test_models_are_limited_together_and_by_themselves(
    both: Limit, flash: Limit, count: int, seed: int
) -> None:
    flash = Limit("*-flash", flash.rpm, flash.tpm, flash.concurrent)
    course = run_calls(_calls(count, seed, ("a-flash", "b-pro")), [both, flash])
    of_flash = Course([one for one in course.begun if one.asked.model == "a-flash"], course.ended)

    assert _is_within(course, both)
    assert not of_flash.begun or _is_within(of_flash, flash)


def test_a_model_that_waits_holds_up_no_other() -> None:
    slow, free = Asked("slow"), Asked("free")

    course = run_calls([slow, slow, slow, free], [Limit("slow", rpm=1)])

    assert [one.at for one in course.begun if one.asked is free] == [0.0]
    assert course.ended > 120.0


@pytest.mark.parametrize("says_when", [True, False])
def test_refusals_are_few_and_the_pace_is_found(says_when: bool) -> None:
    calls = _calls(2_000, seed=2)

    course = run_calls(calls, [Limit("*", concurrent=64)], Service(600, retry_after=says_when), slots=64)

    refused = sum(one.is_refused for one in course.begun)
    assert len(course.begun) - refused == 2_000
    assert refused < 200
    assert course.ended < 1.5 * _fastest(calls, Limit("*", rpm=600, concurrent=64))


def test_with_the_limit_of_the_service_nothing_is_refused() -> None:
    course = run_calls(_calls(1_000, seed=3), [Limit("*", rpm=300)], Service(300))

    assert not any(one.is_refused for one in course.begun)


def test_all_calls_of_a_model_wait_after_a_refusal() -> None:
    now = 0.0
    limiter = Limiter([Limit("*", concurrent=10)], lambda: now)
    calls = [limiter.ask("gemini", 1) for _ in range(5)]
    other = limiter.ask("other", 1)
    assert limiter.let_go() == [*calls, other]

    limiter.refused(calls[0], 12.0)
    again = [limiter.ask("gemini", 1), limiter.ask("gemini", 1)]
    assert limiter.let_go() == []
    assert limiter.next_look is None  # five were too many: one of the four has to end, too
    for call in calls[1:]:
        limiter.end(call, 1)
    assert limiter.let_go() == []
    assert limiter.next_look == 12.0
    now = 12.0
    assert limiter.let_go() == again


def test_calls_let_go_together_and_refused_together_lower_the_pace_once() -> None:
    now = 0.0
    limiter = Limiter([Limit("*", concurrent=100)], lambda: now)
    calls = [limiter.ask("gemini", 1) for _ in range(10)]
    limiter.let_go()

    now = 1.0
    for call in calls[:4]:
        limiter.refused(call, 0.0)
    for call in calls[4:]:
        limiter.end(call)
    more = [limiter.ask("gemini", 1) for _ in range(10)]
    # A refusal that asks for no wait brings a short one.
    assert limiter.let_go() == []
    now = 2.0

    assert limiter.let_go() == more[:7]


def test_one_call_above_the_limit_of_tokens_begins_alone() -> None:
    course = run_calls([Asked(tokens=9.0, estimate=9.0)] * 2, [Limit("*", tpm=5)])

    assert [one.at for one in course.begun] == [0.0, 60.75]


def test_tokens_that_were_not_used_are_free_at_once() -> None:
    course = run_calls([Asked(tokens=10.0, estimate=60.0)] * 5, [Limit("*", tpm=100)])

    assert course.ended == 5.0
