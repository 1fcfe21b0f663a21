"""Runs for the tests of the HTML report: many cases, hostile texts, everything that judges say."""

from dataclasses import replace

from example_runs import answer_metric, case, failed, mixed, passed, report, said, trajectory_metric
from judged_metrics import (
    AGREES,
    ANSWERS,
    DISAGREES,
    INVENTED,
    POLITE,
    RUBRICS,
    SENTENCES,
    SHORT,
    SUPPORTED,
    WHOLE,
    judged_metric,
)

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import (
    ArgDiff,
    Call,
    CallDiff,
    ErrorInfo,
    MetricResult,
    ResponseDiff,
    StateDiff,
    Status,
    TurnResult,
)
from evaltui.core.model.text_diff import AuthoredText, IntermediateDiff

HOSTILE = (
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    '"><svg onload=window.pwned=1>',
    "{{ 7 * 7 }}{% raw %} ${7*7} `x` \\",
    "nul \x00 bell \x07 escape \x1b[31m lone \ud800 bom \ufeff line \u2028 end",
    "\u202egnp.exe \u2066 שלום مرحبا",
    "<!-- --> ]]> &lt;b&gt; <a href='javascript:window.pwned=1'>x</a>",
)


def hostile_case(text, eval_id):
    """A case in which every text is this one."""
    calls = (
        CallDiff(
            "changed", Call(text, {text: 1}), Call(text, {text: text}), (ArgDiff(text, "changed", 1, text),)
        ),
        CallDiff("extra", None, Call(text, {text: [text]})),
        CallDiff("same", Call(text, {}), Call(text, {}), (ArgDiff(text, "same", 1, 2, rule=text),)),
    )
    turn = TurnResult(
        "these calls",
        calls,
        ResponseDiff("expected", text, 0.1),
        unscored=(AuthoredText(text, text),),
        intermediate=(
            IntermediateDiff(text, text, f"{text} {text}", 0.5),
            IntermediateDiff(text, text, None),
        ),
    )
    judge = judged_metric(RUBRICS, [replace(SHORT, id=text, subject=text, rationale=text)])
    error = ErrorInfo(text, text, f"Traceback\n  {text}", text, kind="agent")
    broken = MetricResult(text, None, 0.5, Status.ERROR, reason=text, error=error)
    return case(
        eval_id,
        Status.FAILED,
        metrics=(trajectory_metric(Status.FAILED), answer_metric(0.1), judge, broken),
        turns=(turn,),
        state=(StateDiff(text, text, None),),
        actual=(said(text.encode("utf-8", "replace").decode()),),
        error=error,
        stopped=text,
    )


def events_of(text="Find a flight"):
    """What happened in a turn: a call of a model, a tool, and a response."""
    call = {"function_call": {"name": "get_mode", "args": {"q": text}}}
    back = {"function_response": {"name": "get_mode", "response": {"result": text}}}
    usage = {"prompt_token_count": 612, "candidates_token_count": 38}
    return [
        Event("user", {"role": "user", "parts": [{"text": text}]}, turn=0, t=0.0),
        Event("model_request", None, "desk", {"model": text}, id="m", turn=0, t=0.1),
        Event("model_response", {"parts": [call]}, "desk", usage=usage, parent="m", turn=0, t=0.6),
        Event("tool_call", {"parts": [call]}, "desk", id="c", turn=0, t=0.6),
        Event("tool_result", {"parts": [back]}, "desk", parent="c", turn=0, t=0.7),
        Event("text", {"parts": [{"text": text}]}, "desk", turn=0, t=0.9),
        Event("error", None, "desk", {"type": text, "message": text}, turn=0, t=0.95),
        Event("console", None, "", {"text": text}, turn=0, t=0.96),
    ]


def hostile():
    """Every text of the run, and every id, is meant to break out."""
    cases = [hostile_case(text, text) for text in HOSTILE]
    traces = {one.id: {0: events_of(text)} for one, text in zip(cases, HOSTILE, strict=True)}
    return report(
        *cases,
        agent=HOSTILE[0],
        notes=HOSTILE,
        log=HOSTILE[1],
        python=HOSTILE[2],
        address="my_agent",
        events=lambda case: traces.get(case, {}),
    )


def judged():
    """A case with everything that judges say, and one with many equal calls."""
    metrics = (
        judged_metric(RUBRICS, [POLITE, SHORT]),
        judged_metric(SENTENCES, [SUPPORTED, INVENTED]),
        judged_metric(ANSWERS, [DISAGREES]),
        judged_metric(WHOLE, [AGREES]),
    )
    turn = TurnResult(
        "these calls",
        align_calls([Call("get", {"n": n}) for n in range(9)], [Call("get", {"n": n}) for n in range(9)]),
        ResponseDiff("It is warm.\nGood night.", "It is cold.\nGood night.", 0.6),
    )
    one = case("night", Status.FAILED, metrics=metrics, turns=(turn,), actual=[said("How warm?")])
    return report(one, *mixed().cases, address="my_agent", events=lambda _: {0: events_of()})


def many(cases=1_000, failing=100):
    """A run of so many cases, of which every tenth or so failed; each has a trace."""
    step = max(1, cases // failing)
    made = []
    for number in range(cases):
        make = failed if number % step == 0 and number // step < failing else passed
        one = make(f"case_{number:05}")
        made.append(
            replace(
                one,
                repeats=tuple(
                    replace(
                        repeat, turns=one.turns, actual=(said(f"hello {number}"), said("And the kitchen?"))
                    )
                    for repeat in one.repeats
                ),
            )
        )
    return report(*made, address="my_agent", events=lambda _: {0: events_of()})
