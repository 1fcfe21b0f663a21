"""Turns and metrics as JSON, which both evaltui and google-adk read, and strategies for them."""

from hypothesis import strategies as st

from evaltui.core.metrics.metric import MetricInput
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.eval_set import Invocation


def turn(*calls, answer=None, recorded=False, **fields):
    """A turn as JSON; a call is a name or a FunctionCall as a dict."""
    uses = [{"name": call, "args": {}} if isinstance(call, str) else call for call in calls]
    if recorded:
        contents = [{"parts": [{"function_call": use}]} for use in uses]
        data = {"invocation_events": [{"author": "agent", "content": content} for content in contents]}
    else:
        data = {"tool_uses": uses}
    said = None if answer is None else {"role": "model", "parts": [{"text": answer}]}
    return {
        "user_content": {"role": "user", "parts": [{"text": "hello"}]},
        "intermediate_data": data,
        "final_response": said,
        **fields,
    }


def invocations(turns):
    return [Invocation.model_validate(each) for each in turns]


def metric_input(name, *, expected=None, actual=(), threshold=1.0, criterion=None, **marks):
    """Inputs of a metric from turns as JSON. A `criterion` is its keys besides `threshold`."""
    fields = {"metric_name": name, "threshold": threshold}
    if criterion is not None:
        fields["criterion"] = {"threshold": threshold, **criterion}
    return MetricInput(
        expected=None if expected is None else invocations(expected),
        actual=invocations(actual),
        metric=EvalMetric.model_validate(fields),
        **marks,
    )


tool_names = st.sampled_from(["get_time", "set_light", "transfer_to_agent"])
json_values = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, 0.5, "1", "", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=5,
)
tool_calls = st.fixed_dictionaries(
    {"name": tool_names},
    optional={
        "args": st.none() | st.dictionaries(st.sampled_from("ab"), json_values, max_size=2),
        "id": st.sampled_from(["c1", "c2"]),
    },
)
thresholds = st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 0.8, 1.0])


@st.composite
def call_pairs(draw):
    """Expected and actual calls that are often equal or nearly so."""
    expected = draw(st.lists(tool_calls, max_size=4))
    actual = list(expected)
    for change in draw(st.lists(st.sampled_from(_CHANGES), max_size=2)):
        change(draw, actual)
    return expected, actual


def _add(draw, calls):
    calls.insert(draw(st.integers(0, len(calls))), draw(tool_calls))


def _drop(draw, calls):
    if calls:
        del calls[draw(st.integers(0, len(calls) - 1))]


def _shuffle(draw, calls):
    calls[:] = draw(st.permutations(calls))


def _repeat(draw, calls):
    if calls:
        calls.append(draw(st.sampled_from(calls)))


def _respell(draw, calls):
    """Arguments that look alike: some of them are equal in Python, some are not."""
    if calls:
        place = draw(st.integers(0, len(calls) - 1))
        calls[place] = {**calls[place], "args": _lookalike(draw, calls[place].get("args"))}


def _lookalike(draw, value):
    if isinstance(value, dict) and value:
        return {key: _lookalike(draw, value[key]) for key in draw(st.permutations(list(value)))}
    if isinstance(value, list):
        return draw(st.permutations([_lookalike(draw, item) for item in value]))
    for alike in ([None, {}], [True, 1, 1.0, "1"], [False, 0, 0.0]):
        if value in alike:
            return draw(st.sampled_from(alike if value in (None, {}) else [*alike, value]))
    return value


_CHANGES = [_add, _drop, _shuffle, _repeat, _respell]
