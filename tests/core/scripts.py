"""Scripted conversations for the tests of drafting: what an agent does, turn by turn, whatever drives it."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from google.genai import types
from hypothesis import strategies as st

from evaltui.agents.adapters.base import Reporter, SessionSpec, recording
from evaltui.core.conversation.drafting import TurnDraft, draft_case
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import Status
from evaltui.core.model.validation import validate_case
from evaltui.core.scoring import score_case

SECRET = "what nobody should hear"


@dataclass(frozen=True)
class Round:
    """Parts that the model says at once, calls of the tool `put(key, value)` among them."""

    parts: tuple[types.Part, ...]


@dataclass(frozen=True)
class Turn:
    """What the user says, and the rounds in which the agent answers: calls in all of them but the last."""

    user: dict[str, Any]
    rounds: tuple[Round, ...]


@dataclass
class Talk:
    """A conversation with an agent: the events of each turn, and the state before each and at the end."""

    turns: list[list[Any]] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)


async def converse(adapter, messages, spec=None):
    await adapter.open()
    talk = Talk()
    reporter = Reporter(lambda event: talk.turns[-1].append(event))
    session = await adapter.new_session(spec or SessionSpec(), reporter)
    try:
        for number, message in enumerate(messages):
            talk.states.append(await session.state())
            talk.turns.append([])
            reporter.turn = number
            reporter.event("user", message)
            with recording(reporter):
                await session.send(message)
        talk.states.append(await session.state())
    finally:
        await session.close()
        await adapter.close()
    return talk


async def draft_and_run(adapter_of, turns, spec, first):
    """Converse, draft the turns from `first` on, run that with a fresh agent; the draft and the result."""
    talk = await converse(adapter_of(turns), [turn.user for turn in turns], spec)
    draft = draft_case(
        "drafted",
        [TurnDraft(events) for events in talk.turns[first:]],
        app_name=spec.app_name,
        user_id=spec.user_id,
        state=talk.states[first],
        final_state=talk.states[-1],
    )
    case, problems = validate_case(draft.case)
    # Nothing compares attachments of responses, which is told.
    assert [problem for problem in problems if problem.path[-1] != "inline_data"] == []
    again = SessionSpec(**(draft.case.get("session_input") or {}))
    messages = [turn.user_content.model_dump(mode="json", exclude_none=True) for turn in case.conversation]
    second = await converse(adapter_of(turns[first:]), messages, again)
    actual = invocations_from_events(event for events in second.turns for event in events)
    result = await score_case(case, actual, EvalConfig.default(), final_state=second.states[-1])
    return draft, result


def assert_passed(result):
    assert result.status is Status.PASSED, result


# What is said: there is always a word that can be compared.
texts = st.builds(
    "{} {}".format,
    st.sampled_from(["The light is off.", "正解です", "ไฟปิดแล้ว", "19 °C"]),
    st.text(max_size=8),
).map(lambda text: text.encode("utf-8", "ignore").decode())
thoughts = st.just(types.Part(text=SECRET, thought=True))
said = texts.map(lambda text: types.Part(text=text))
signed = st.builds(
    lambda text, seal: types.Part(text=text, thought_signature=seal), texts, st.binary(min_size=1)
)
images = st.binary(min_size=1, max_size=9).map(
    lambda data: types.Part(inline_data=types.Blob(data=data, mime_type="image/png"))
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "日"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
calls = st.builds(
    lambda key, value: types.Part(
        function_call=types.FunctionCall(name="put", args={"key": key, "value": value})
    ),
    st.sampled_from(["lights", "user:name", "a.b"]),
    json_values,
)
acting = st.builds(
    lambda before, made: Round((*before, *made)),
    st.lists(said | thoughts | signed, max_size=2),
    st.lists(calls, min_size=1, max_size=2),
)
answering = st.builds(
    lambda before, text, after: Round((*before, text, *after)),
    st.lists(thoughts, max_size=1),
    said | signed,
    st.lists(said | images, max_size=1),
)
# The answer is thoughts only, so that what was said before is the one that counts.
musing = st.builds(
    lambda text, call, thought: (Round((text, call)), Round((thought,))), said, calls, thoughts
)
users = st.builds(
    lambda text, more: {"role": "user", "parts": [{"text": text}, *more]},
    texts,
    st.lists(
        st.binary(max_size=9).map(
            lambda data: {
                "inline_data": {"data": base64.urlsafe_b64encode(data).decode(), "mime_type": "image/png"}
            }
        ),
        max_size=1,
    ),
)
turns = st.builds(
    Turn,
    users,
    st.builds(
        lambda acts, last: (*acts, *last),
        st.lists(acting, max_size=2),
        answering.map(lambda round_: (round_,)) | musing,
    ),
)
specs = st.builds(
    SessionSpec,
    app_name=st.sampled_from(["", "home"]),
    user_id=st.sampled_from(["", "ada"]),
    state=st.dictionaries(st.sampled_from(["mode", "log", "app:seen"]), json_values, max_size=2),
)
conversations = st.lists(turns, min_size=1, max_size=3).flatmap(
    lambda said_and_done: st.tuples(st.just(said_and_done), st.integers(0, len(said_and_done) - 1))
)
