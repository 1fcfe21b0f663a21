"""Counting the model calls of a case."""

from evaltui.core.model.events import Event
from evaltui.core.trace.model_calls import NO_CALLS, ModelCalls, count_model_calls


def call(id, *, model="gemini", repeat=0, answer="model_response", replayed=False):
    data = {"replayed": True} if replayed else {}
    yield Event("model_request", id=id, repeat=repeat, data={"model": model})
    yield Event("text", id=f"{id} text", parent=id, repeat=repeat)
    yield Event(answer, id=f"{id} answer", parent=id, repeat=repeat, data=data)


def count(*calls, reported=True):
    return count_model_calls([event for one in calls for event in one], reported=reported)


def test_calls_are_live_unless_they_were_replayed_or_a_stand_in_answered():
    calls = count(call("a"), call("b", replayed=True), call("c", model="scripted-1"))
    assert calls == ModelCalls(live=1, replayed=1)
    assert not calls.need_no_model
    assert count(call("b", replayed=True), call("c", model="scripted")).need_no_model


def test_a_call_that_failed_was_one_and_a_failure_may_be_replayed():
    assert count(call("a", answer="error")) == ModelCalls(live=1)
    assert count(call("a", answer="error", replayed=True)) == ModelCalls(replayed=1)


def test_repeats_count_each_for_itself():
    assert count(call("a", replayed=True), call("a", repeat=1)) == ModelCalls(live=1, replayed=1)


def test_of_a_function_nothing_is_known_unless_it_tells():
    assert not count(reported=False).need_no_model
    assert count(call("a"), reported=False) == ModelCalls(live=1)
    assert count().need_no_model


def test_sums_are_known_where_all_of_it_is():
    assert NO_CALLS + ModelCalls(2, 1) + ModelCalls(is_known=False) == ModelCalls(2, 1, is_known=False)
